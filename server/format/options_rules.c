/*
 * What options ask of the columns, the keys and each other when a schema is made: what Paimon refuses then is refused here, too, as its
 * engines could not open the table. A schema that is there already isn't held against it.
 *
 * Source   org.apache.paimon.schema.SchemaValidation.
 */
#include "format/ddl.h"
#include "format/evolve_internal.h"
#include "format/options_judge.h"

#include <limits.h>

static struct tarn_slice option(const struct tarn_schema *s, const char *key)
{
    return tarn_format__trim(tarn_schema_option(s, key));
}

static bool is(const struct tarn_schema *s, const char *key, const char *word)
{
    return tarn_format__is_word(option(s, key), word);
}

static struct tarn_status *refused(const char *key, const struct tarn_schema *s, const char *why)
{
    return tarn_status_new(TARN_SCHEMA_INVALID, "option %s = %.*s %s", key,
                           TARN_SLICE_ARG(option(s, key)), why);
}

static struct tarn_status *check_row_tracking(const struct tarn_schema *s,
                                              const struct tarn_options *o)
{
    static const char key[] = "row-tracking.enabled";
    if (o->row_tracking && !tarn_schema_is_append(s))
        return refused(key, s, "takes no primary key");
    if (o->row_tracking && o->bucket != -1)
        return refused(key, s, "takes no buckets but bucket = -1");
    if (!o->row_tracking && is(s, "data-evolution.enabled", "true"))
        return refused("data-evolution.enabled", s, "needs row-tracking.enabled = true");
    return TARN_OK;
}

static struct tarn_status *check_producer(const struct tarn_schema *s)
{
    static const char key[] = "changelog-producer";
    bool none = option(s, key).data == NULL || is(s, key, "none");
    bool rewrites = is(s, key, "lookup") || is(s, key, "full-compaction");
    if (!none && tarn_schema_is_append(s))
        return refused(key, s, "needs a primary key");
    if (is(s, "merge-engine", "first-row") && !none && !is(s, key, "lookup"))
        return refused(key, s, "isn't for merge-engine = first-row: none or lookup");
    if (is(s, "deletion-vectors.enabled", "true") && is(s, key, "full-compaction"))
        return refused(key, s, "isn't for deletion-vectors.enabled: none, input or lookup");
    if (is(s, "streaming-read-overwrite", "true") && rewrites)
        return refused(key, s, "isn't for streaming-read-overwrite: changes would be read twice");
    return TARN_OK;
}

static struct tarn_status *check_sequence(const struct tarn_schema *s, const struct tarn_options *o)
{
    static const char key[] = "sequence.field";
    if (o->sequence_column_count == 0)
        return TARN_OK;
    if (is(s, "merge-engine", "first-row"))
        return refused(key, s, "isn't for merge-engine = first-row");
    if (!tarn_schema_is_append(s) && tarn_format__crosses_partitions(s))
        return refused(key, s, "needs every partition key in the primary key");
    for (size_t i = 0; i < o->sequence_column_count; i++) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf aggregate = {0};
        tarn_buf_printf(&aggregate, "fields.%.*s.aggregate-function",
                        TARN_SLICE_ARG(s->fields[o->sequence_columns[i]].name));
        if (tarn_schema_option(s, tarn_buf_cstr(&aggregate)).data != NULL)
            return refused(key, s, "names a column that is aggregated");
    }
    return TARN_OK;
}

/* A count of snapshots or changelogs to keep; not a number: as Java would find out. */
static struct tarn_status *count_of(const struct tarn_schema *s, const char *key, int64_t fallback,
                                    int64_t *out)
{
    *out = fallback;
    if (option(s, key).data == NULL)
        return TARN_OK;
    struct tarn_status *bad = tarn_parse_i64(option(s, key), out);
    bool fine = bad == NULL && *out > 0 && *out <= INT_MAX;
    tarn_status_free(bad);
    return fine ? TARN_OK : refused(key, s, "must be a whole number above 0");
}

static struct tarn_status *check_kept(const struct tarn_schema *s)
{
    int64_t least, most;
    TARN_TRY(count_of(s, "snapshot.num-retained.min", 10, &least));
    TARN_TRY(count_of(s, "snapshot.num-retained.max", INT_MAX, &most));
    if (least > most)
        return refused("snapshot.num-retained.max", s, "is below snapshot.num-retained.min");
    int64_t changelog_least, changelog_most;
    TARN_TRY(count_of(s, "changelog.num-retained.min", least, &changelog_least));
    TARN_TRY(count_of(s, "changelog.num-retained.max", most, &changelog_most));
    if (changelog_least > changelog_most)
        return refused("changelog.num-retained.max", s, "is below changelog.num-retained.min");
    return TARN_OK;
}

static struct tarn_status *check_expiry(const struct tarn_schema *s)
{
    static const char key[] = "record-level.time-field";
    int column = tarn_schema_find(s, option(s, key));
    if (column < 0) /* absent: that it names a column is seen elsewhere */
        return TARN_OK;
    enum tarn_type_id id = s->fields[column].type->id;
    return id == TARN_TYPE_INT || id == TARN_TYPE_BIGINT || id == TARN_TYPE_TIMESTAMP ||
                   id == TARN_TYPE_TIMESTAMP_LTZ
               ? TARN_OK
               : refused(key, s, "names a column that is neither INT, BIGINT nor TIMESTAMP");
}

bool tarn_format__is_blob(const struct tarn_type *type)
{
    bool wraps = type->id == TARN_TYPE_ARRAY || type->id == TARN_TYPE_MAP;
    return (wraps ? type->element : type)->id == TARN_TYPE_BLOB;
}

static bool holds_blob(const struct tarn_type *type)
{
    if (type == NULL)
        return false;
    bool holds = type->id == TARN_TYPE_BLOB || holds_blob(type->key) || holds_blob(type->element);
    for (size_t i = 0; i < type->field_count; i++)
        holds = holds || holds_blob(type->fields[i].type);
    return holds;
}

/* The elements of a VECTOR, however deep, are numbers or truth values. */
static bool vectors_are_fine(const struct tarn_type *type)
{
    static const uint32_t kinds = 1U << TARN_TYPE_BOOLEAN | 1U << TARN_TYPE_TINYINT |
                                  1U << TARN_TYPE_SMALLINT | 1U << TARN_TYPE_INT |
                                  1U << TARN_TYPE_BIGINT | 1U << TARN_TYPE_FLOAT |
                                  1U << TARN_TYPE_DOUBLE;
    if (type == NULL)
        return true;
    bool fine = type->id != TARN_TYPE_VECTOR || (kinds & 1U << type->element->id) != 0;
    fine = fine && vectors_are_fine(type->key) && vectors_are_fine(type->element);
    for (size_t i = 0; i < type->field_count; i++)
        fine = fine && vectors_are_fine(type->fields[i].type);
    return fine;
}

/* Columns of a list must be what the list is of; those that aren't there are seen elsewhere. */
static struct tarn_status *check_kind(const struct tarn_schema *s, const char *key,
                                      enum tarn_type_id id, bool wrapped, const char *what)
{
    struct tarn_slice names = option(s, key), each;
    while (tarn_format__next_name(&names, &each)) {
        int column = tarn_schema_find(s, each);
        const struct tarn_type *type = column < 0 ? NULL : s->fields[column].type;
        if (type == NULL || !(type->id == id || (wrapped && tarn_format__is_blob(type))))
            return refused(key, s, what);
    }
    return TARN_OK;
}

static struct tarn_status *check_blobs_and_vectors(const struct tarn_schema *s)
{
    size_t count = 0;
    for (size_t i = 0; i < s->field_count; i++) {
        bool blob = tarn_format__is_blob(s->fields[i].type);
        count += blob;
        if (!vectors_are_fine(s->fields[i].type))
            return tarn_status_new(TARN_SCHEMA_INVALID,
                                   "column %.*s holds a VECTOR of what is no number or BOOLEAN",
                                   TARN_SLICE_ARG(s->fields[i].name));
        if (!blob && holds_blob(s->fields[i].type))
            return tarn_status_new(
                TARN_SCHEMA_INVALID,
                "column %.*s holds a BLOB deeper than ARRAY<BLOB> or MAP<X, BLOB>",
                TARN_SLICE_ARG(s->fields[i].name));
    }
    if (count > 0 && count == s->field_count)
        return tarn_status_new(TARN_SCHEMA_INVALID, "a table needs a column that is no BLOB");
    if (count > 0 && tarn_schema_is_append(s) && !is(s, "data-evolution.enabled", "true"))
        return tarn_status_new(TARN_SCHEMA_INVALID,
                               "a table with BLOBs needs data-evolution.enabled = true");
    TARN_TRY(check_kind(s, "blob-field", TARN_TYPE_BLOB, true, "names a column that is no BLOB"));
    TARN_TRY(check_kind(s, "blob-descriptor-field", TARN_TYPE_BLOB, false,
                        "names a column that is no BLOB"));
    TARN_TRY(
        check_kind(s, "blob-view-field", TARN_TYPE_BLOB, false, "names a column that is no BLOB"));
    return check_kind(s, "vector-field", TARN_TYPE_VECTOR, false,
                      "names a column that is no VECTOR");
}

struct tarn_status *tarn_format__check_rules(const struct tarn_schema *s,
                                             const struct tarn_options *o)
{
    bool append = tarn_schema_is_append(s);
    if (o->bucket == -2 && append)
        return refused("bucket", s, "needs a primary key");
    if (!append && tarn_format__crosses_partitions(s) && o->bucket != -1)
        return tarn_status_new(TARN_SCHEMA_INVALID,
                               "the primary key must hold every partition key where bucket = %d",
                               o->bucket);
    if (append && is(s, "streaming-read-overwrite", "true"))
        return refused("streaming-read-overwrite", s, "needs a primary key");
    if (!append && tarn_schema_option(s, "upsert-key").data != NULL)
        return refused("upsert-key", s, "isn't for a table with a primary key");
    if (o->deletion_vectors && !o->pk_clustering && is(s, "merge-engine", "first-row"))
        return refused("deletion-vectors.enabled", s, "isn't for merge-engine = first-row");
    TARN_TRY(check_row_tracking(s, o));
    TARN_TRY(check_producer(s));
    TARN_TRY(check_sequence(s, o));
    TARN_TRY(check_kept(s));
    TARN_TRY(check_blobs_and_vectors(s));
    TARN_TRY(check_expiry(s));
    return tarn_format__check_named_columns(s);
}
