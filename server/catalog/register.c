#include "catalog/internal.h"

/* A table that others put into the warehouse is made known by name and place, where one is asked to be. */

static struct tarn_status *register_table(struct tarn_op *op, struct tarn_catalog *catalog,
                                          struct tarn_slice database, struct tarn_slice name,
                                          struct tarn_slice path, struct tarn_table **out)
{
    TARN_OWN(tarn_table_drop_ref)
    struct tarn_table *known = tarn_catalog__known(catalog, database, name);
    TARN_TRY(tarn_catalog__check_new(op, catalog, database, name));
    TARN_TRY(tarn_catalog__check_no_entry(op, catalog, database, name));
    TARN_TRY(tarn_catalog__check_no_view(op, catalog, database, name));
    TARN_TRY(tarn_catalog__find_again(op, catalog, database, name, out));
    if (known != NULL && *out == known)
        return tarn_status_new(TARN_TABLE_EXISTS, "table %.*s.%.*s is registered already",
                               TARN_SLICE_ARG(database), TARN_SLICE_ARG(name));
    return *out != NULL ? TARN_OK
                        : tarn_status_new(TARN_PATH_INVALID,
                                          "there is no table in %.*s: a table's folder has "
                                          "schema/schema-0",
                                          TARN_SLICE_ARG(path));
}

struct tarn_status *tarn_catalog_register_table(struct tarn_op *op, struct tarn_catalog *catalog,
                                                struct tarn_slice database, struct tarn_slice name,
                                                struct tarn_slice path, struct tarn_table **out)
{
    struct tarn_slice there, there_name;
    TARN_TRY(tarn_catalog__check_name("database", database));
    TARN_TRY(tarn_catalog__check_name("table", name));
    TARN_TRY(tarn_catalog_locate(op, catalog, path, &there, &there_name));
    if (!tarn_slice_equal(there, database) || !tarn_slice_equal(there_name, name))
        return tarn_status_new(TARN_PATH_INVALID,
                               "table %.*s.%.*s can't lie in %.*s: a table lies in the folder of "
                               "its name, this one in %s; move the folder there",
                               TARN_SLICE_ARG(database), TARN_SLICE_ARG(name), TARN_SLICE_ARG(path),
                               tarn_catalog__table_key(op, database, name));
    *out = NULL;
    tarn_exec_lock(&catalog->change);
    struct tarn_status *s = register_table(op, catalog, database, name, path, out);
    pthread_mutex_unlock(&catalog->change);
    return s;
}
