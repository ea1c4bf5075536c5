/*
 * Promise: what other writers put into a table's folder is told: a line in the log and the count of their snapshots; what this
 * process puts there is not.
 */
#include "fault_others.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

struct told { /* standard error, from begin to end */
    int file, saved;
};

static void told_begin(struct told *told)
{
    told->file = memfd_create("told", MFD_CLOEXEC);
    told->saved = dup(STDERR_FILENO);
    expect_true(told->file >= 0 && told->saved >= 0);
    dup2(told->file, STDERR_FILENO);
}

static const char *told_end(struct tarn_test *t, struct told *told)
{
    size_t size = (size_t)lseek(told->file, 0, SEEK_END);
    char *text = tarn_arena_calloc(t->arena, size + 1, 1);
    dup2(told->saved, STDERR_FILENO);
    close(told->saved);
    expect_int(pread(told->file, text, size, 0), (int64_t)size);
    close(told->file);
    return text;
}

#define ADOPTED "tarn_snapshots_adopted_total"

static int64_t foreign(struct fixture *f, const char *name)
{
    struct tarn_manifest_entry e = fixture_file(f, name);
    return fixture_foreign(f, "an other", &e, 1);
}

static void look(struct fixture *f)
{
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    expect_ok(tarn_table_look(f->t->op, f->table, &view));
}

TARN_TEST(adopted, snapshots_of_others_are_told_by_reads_and_by_puts)
{
    TARN_OWN(fixture_fini) struct fixture f;
    struct told told;
    fixture_init(&f, t);
    int64_t before = fixture_metric(ADOPTED);
    told_begin(&told);
    fixture_land(&f, 1, "a");
    foreign(&f, "b");
    look(&f);
    const char *text = told_end(t, &told);
    expect_contains(text, " warn table.adopted ");
    expect_contains(text, " table=\"db.t\" snapshot=2 behind=1 user=\"an other\"\n");
    expect_int(fixture_metric(ADOPTED), before + 1);
    fixture_look_every(&f, 3600000); /* nobody looks: the put meets them */
    foreign(&f, "c");
    foreign(&f, "d");
    told_begin(&told);
    expect_int(fixture_land(&f, 2, "e"), 5);
    expect_contains(told_end(t, &told), " table=\"db.t\" snapshot=4 behind=2 user=\"an other\"\n");
    expect_int(fixture_metric(ADOPTED), before + 3);
}

TARN_TEST(adopted, nothing_of_ours_is)
{
    TARN_OWN(fixture_fini) struct fixture f;
    struct told told;
    fixture_init(&f, t);
    int64_t before = fixture_metric(ADOPTED);
    struct tarn_schema next;
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    told_begin(&told);
    expect_ok(tarn_table_look(t->op, f.table, &view));
    next = view->schema;
    next.id = 1;
    expect_ok(tarn_table_put_schema(t->op, f.table, &next, false));
    for (int i = 1; i < 4; i++) {
        fixture_land(&f, i, tarn_arena_printf(t->arena, "f%d", i));
        look(&f);
    }
    fixture_restart(&f, true);
    look(&f);
    const char *text = told_end(t, &told);
    expect_null(strstr(text, "adopted"));
    expect_int(fixture_metric(ADOPTED), before);
}

TARN_TEST(adopted, what_came_while_we_were_away_is_told_and_may_be_ours)
{
    TARN_OWN(fixture_fini) struct fixture f;
    struct told told;
    fixture_init(&f, t);
    fixture_land(&f, 1, "a");
    int64_t before = fixture_metric(ADOPTED);
    foreign(&f, "b");
    told_begin(&told);
    fixture_restart(&f, false);
    look(&f);
    const char *text = told_end(t, &told);
    expect_contains(text, " info table.adopted ");
    expect_contains(text, " table=\"db.t\" snapshot=2 behind=1 user=\"an other\"\n");
    expect_int(fixture_metric(ADOPTED), before);
}

TARN_TEST(adopted, schemas_of_others_are_told)
{
    TARN_OWN(fixture_fini) struct fixture f;
    struct told told;
    fixture_init(&f, t);
    fixture_land(&f, 1, "a");
    told_begin(&told);
    others_put_schema(&f, 1, "w");
    look(&f);
    look(&f);
    const char *text = told_end(t, &told);
    const char *line = strstr(text, " warn table.schema_adopted ");
    expect_not_null(line);
    expect_contains(line, " table=\"db.t\" schema=1\n");
    expect_null(strstr(line + 20, "schema_adopted")); /* once */
}
