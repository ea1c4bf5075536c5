#include "format/options_judge.h"

#include <strings.h>

enum kind { TEXT, INT, BOOL, SIZE, DURATION, REAL, ENUM, STATS };
enum effect { USED, LATER, PASSIVE, REFUSE_WRITE, REFUSE, REFUSE_COMMIT, REFUSE_ALL };

static const struct option {
    const char *key;
    enum kind kind;
    const char *fallback;
    enum effect effect;
} table[] = {
#define O(key, kind, fallback, effect) {key, kind, fallback, effect},
#include "format/options.def"
#undef O
};

static bool ends_with(struct tarn_slice s, const char *end)
{
    size_t n = strlen(end);
    return s.size >= n && memcmp(s.data + s.size - n, end, n) == 0;
}

bool tarn_format__is_column_stats(struct tarn_slice key)
{
    return tarn_slice_starts_with(key, tarn_slice_str("fields.")) && ends_with(key, ".stats-mode");
}

static const struct option *find_option(struct tarn_slice key)
{
    static const struct option column_stats = {"fields.*.stats-mode", STATS, "", USED};
    static const struct option column_rule = {"fields.*", TEXT, "", USED};
    if (tarn_format__is_column_stats(key))
        return &column_stats;
    if (tarn_format__is_engine_option(key))
        return &column_rule;
    for (size_t i = 0; i < TARN_COUNT_OF(table); i++) {
        size_t n = strlen(table[i].key);
        bool pattern = table[i].key[n - 1] == '*';
        if (pattern ? tarn_slice_starts_with(key, tarn_slice_of(table[i].key, n - 1))
                    : tarn_slice_is(key, table[i].key))
            return &table[i];
    }
    return NULL;
}

const char *tarn_format__option_default(const char *key)
{
    const struct option *option = find_option(tarn_slice_str(key));
    tarn_assert(option != NULL); /* options.c asks only for what options.def has */
    return option->fallback;
}

/* Java takes words of an enum without case, and _ for -. */
bool tarn_format__is_word(struct tarn_slice value, const char *word)
{
    if (value.size != strlen(word))
        return false;
    for (size_t i = 0; i < value.size; i++) {
        char c = (char)(value.data[i] == '_' ? '-' : value.data[i]);
        if (strncasecmp(&c, word + i, 1) != 0)
            return false;
    }
    return true;
}

struct tarn_slice tarn_format__trim(struct tarn_slice s)
{
    while (s.size > 0 && s.data[0] == ' ')
        s = tarn_slice_of(s.data + 1, s.size - 1);
    while (s.size > 0 && s.data[s.size - 1] == ' ')
        s.size--;
    return s;
}

/* ---- what isn't implemented */

static void note(struct tarn_options *o, const char *reason, struct tarn_refusal what)
{
    size_t at = 0;
    while (at < o->refusal_count && !tarn_slice_is(o->refusals[at].reason, reason))
        at++;
    if (at == TARN_REFUSALS_MAX)
        return;
    struct tarn_refusal *r = &o->refusals[at];
    r->reason = tarn_slice_str(reason);
    r->write |= what.write;
    r->merge |= what.merge;
    r->commit |= what.commit;
    o->refusal_count = TARN_MAX(o->refusal_count, at + 1);
}

/* The first reason is the one that calls are refused with. */
void tarn_format__refuse(struct tarn_options *o, bool merge, const char *reason)
{
    note(o, reason, (struct tarn_refusal){.write = true, .merge = merge});
    if (o->refuse_write.data == NULL)
        o->refuse_write = tarn_slice_str(reason);
    if (merge && o->refuse_merge.data == NULL)
        o->refuse_merge = tarn_slice_str(reason);
}

void tarn_format__refuse_commit(struct tarn_options *o, const char *reason)
{
    note(o, reason, (struct tarn_refusal){.commit = true});
    if (o->refuse_commit.data == NULL)
        o->refuse_commit = tarn_slice_str(reason);
}

static void judge_option(const struct tarn_pair *pair, struct tarn_arena *arena,
                         struct tarn_options *o)
{
    const struct option *option = find_option(pair->key);
    if (option == NULL || option->effect <= PASSIVE)
        return;
    struct tarn_slice value = tarn_format__trim(pair->value);
    if (option->fallback[0] != 0 && tarn_format__is_word(value, option->fallback))
        return;
    const char *reason =
        tarn_arena_printf(arena, "%.*s = %.*s", TARN_SLICE_ARG(pair->key),
                          (int)TARN_MIN(value.size, (size_t)200), (const char *)value.data);
    tarn_format__refuse(o, option->effect == REFUSE || option->effect == REFUSE_ALL, reason);
    if (option->effect == REFUSE_COMMIT || option->effect == REFUSE_ALL)
        tarn_format__refuse_commit(o, reason);
}

/* BLOB columns lie in files of their own, whose row ids are of the file that they accompany. */
static bool has_blob(const struct tarn_type *type)
{
    if (type == NULL)
        return false;
    for (size_t i = 0; i < type->field_count; i++)
        if (has_blob(type->fields[i].type))
            return true;
    return type->id == TARN_TYPE_BLOB || has_blob(type->key) || has_blob(type->element);
}

static bool has_unreadable_part(const struct tarn_type *type)
{
    if (type == NULL)
        return false;
    if (type->id == TARN_TYPE_VARIANT || type->id == TARN_TYPE_BLOB ||
        type->id == TARN_TYPE_GEOMETRY || type->id == TARN_TYPE_GEOGRAPHY ||
        type->id == TARN_TYPE_VECTOR)
        return true;
    for (size_t i = 0; i < type->field_count; i++)
        if (has_unreadable_part(type->fields[i].type))
            return true;
    return has_unreadable_part(type->key) || has_unreadable_part(type->element);
}

static void judge_columns(const struct tarn_schema *schema, struct tarn_arena *arena,
                          struct tarn_options *o)
{
    for (size_t i = 0; i < schema->field_count; i++) {
        if (schema->fields[i].default_value.data != NULL) /* what Java puts where a row has null */
            tarn_format__refuse(o, false,
                                tarn_arena_printf(arena, "column %.*s DEFAULT",
                                                  TARN_SLICE_ARG(schema->fields[i].name)));
        if (!has_unreadable_part(schema->fields[i].type))
            continue;
        TARN_OWN(tarn_buf_drop) struct tarn_buf type = {0};
        tarn_type_print(schema->fields[i].type, &type);
        const char *reason =
            tarn_arena_printf(arena, "column %.*s %.*s", TARN_SLICE_ARG(schema->fields[i].name),
                              (int)TARN_MIN(type.size, (size_t)200), (const char *)type.data);
        tarn_format__refuse(o, true, reason);
        if (has_blob(schema->fields[i].type))
            tarn_format__refuse_commit(o, reason);
    }
}

/* Is a partition column no part of the primary key, so that a key may move between partitions? */
bool tarn_format__crosses_partitions(const struct tarn_schema *schema)
{
    for (size_t i = 0; i < schema->partition_key_count; i++) {
        bool in_key = false;
        for (size_t j = 0; j < schema->primary_key_count; j++)
            in_key = in_key || tarn_slice_equal(schema->partition_keys[i], schema->primary_keys[j]);
        if (!in_key)
            return true;
    }
    return false;
}

/* Where a changelog of compactions isn't written here. */
static void judge_changelog(struct tarn_options *o)
{
    /* Of several versions above level 0 only the lowest counts for lookup, which merges of these engines don't keep; what they tell of a full
     * compaction isn't held against Paimon's yet. */
    if (o->merge_engine != TARN_MERGE_DEDUPLICATE &&
        o->changelog_producer == TARN_CHANGELOG_FULL_COMPACTION)
        tarn_format__refuse(o, false,
                            "changelog-producer = full-compaction with this merge-engine");
    if (o->changelog_producer != TARN_CHANGELOG_LOOKUP)
        return;
    if (o->merge_engine != TARN_MERGE_DEDUPLICATE)
        tarn_format__refuse(o, false, "changelog-producer = lookup with this merge-engine");
    if (o->deletion_vectors)
        tarn_format__refuse(o, false, "changelog-producer = lookup with deletion-vectors.enabled");
}

/* Which tables with a primary key aren't written with deletion vectors. */
static void judge_vectors(struct tarn_options *o)
{
    if (o->merge_engine != TARN_MERGE_DEDUPLICATE)
        tarn_format__refuse(o, false, "deletion-vectors.enabled with this merge-engine");
    if (o->changelog_producer == TARN_CHANGELOG_FULL_COMPACTION)
        tarn_format__refuse(o, false,
                            "changelog-producer = full-compaction with deletion-vectors.enabled");
    if (o->bucket == -2)
        tarn_format__refuse(o, false, "bucket = -2 (postpone) with deletion-vectors.enabled");
    if (o->keys_cross_partitions) /* what is in level 0 is not in the plan that keys are sought by */
        tarn_format__refuse(o, false,
                            "a primary key without the partition keys (cross-partition upsert) "
                            "with deletion-vectors.enabled");
}

void tarn_format__judge(const struct tarn_schema *schema, struct tarn_arena *arena,
                        struct tarn_options *o)
{
    if (schema->version > 3) {
        const char *reason = tarn_arena_printf(arena, "schema version %d", schema->version);
        tarn_format__refuse(o, true, reason);
        tarn_format__refuse_commit(o, reason);
    }
    for (size_t i = 0; i < schema->option_count; i++)
        judge_option(&schema->options[i], arena, o);
    tarn_format__judge_formats(schema, arena, o);
    judge_changelog(o);
    judge_columns(schema, arena, o);
    o->keys_cross_partitions =
        !tarn_schema_is_append(schema) && tarn_format__crosses_partitions(schema);
    if (o->keys_cross_partitions && (o->bucket != -1 || o->merge_engine != TARN_MERGE_DEDUPLICATE))
        tarn_format__refuse(
            o, false,
            "a primary key without the partition keys (cross-partition upsert), with "
            "buckets or a merge engine other than deduplicate");
    if (o->deletion_vectors &&
        o->row_tracking) /* ids of rows that are passed over aren't counted */
        tarn_format__refuse(o, false, "row-tracking.enabled with deletion-vectors.enabled");
    if (!tarn_schema_is_append(schema) && o->deletion_vectors)
        judge_vectors(o);
}
