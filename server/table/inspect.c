#include "table/inspect_internal.h"

#include <stdarg.h>
#include <stdio.h>

#include "table/refs.h"
#include "table/watch.h"

/* What lies in a folder, one thing after the other: schemas, history, hints, tags, consumers, and the same of each branch. */

#define MEND "put it back from a backup"

/* --- findings --- */

void tarn_inspect__find(struct tarn_inspect *in, enum tarn_finding_kind kind, const char *where,
                        const char *advice, const char *format, ...)
{
    in->found.damage_count += kind == TARN_FINDING_DAMAGE;
    in->found.limit_count += kind == TARN_FINDING_LIMIT;
    if (in->found.finding_count == TARN_FINDINGS_MAX) {
        in->found.left_off_count++;
        return;
    }
    TARN_OWN(tarn_buf_drop) struct tarn_buf what = {0};
    va_list args;
    va_start(args, format);
    tarn_buf_vprintf(&what, format, args);
    va_end(args);
    in->list[in->found.finding_count++] =
        (struct tarn_finding){.kind = kind,
                              .where = where,
                              .what = tarn_arena_str(in->op->arena, tarn_buf_slice(&what)),
                              .advice = advice};
}

void tarn_inspect__take_back(struct tarn_inspect *in, const struct tarn_inspection *before)
{
    in->found.damage_count = before->damage_count;
    in->found.limit_count = before->limit_count;
    in->found.finding_count = before->finding_count;
    in->found.left_off_count = before->left_off_count;
}

/* What is wrong with the folder is a finding, and *bad; that it can't be asked is an error. Consumes s. */
struct tarn_status *tarn_inspect__judge(struct tarn_inspect *in, struct tarn_status *s,
                                        const char *where, const char *what, bool *bad)
{
    *bad = s != TARN_OK;
    if (s == TARN_OK)
        return TARN_OK;
    if (tarn_store_is_away(s) || tarn_op_is_cancelled(in->op) ||
        tarn_status_reason(s) == TARN_DEADLINE_EXCEEDED)
        return s;
    tarn_inspect__find(in, TARN_FINDING_DAMAGE, where, tarn_reason_advice(tarn_status_reason(s)),
                       "%s: %s", what, tarn_status_message(s));
    tarn_status_free(s);
    return TARN_OK;
}

static const char *print(struct tarn_inspect *in, const char *format, ...) TARN_PRINTF(2, 3);
static const char *print(struct tarn_inspect *in, const char *format, ...)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    va_list args;
    va_start(args, format);
    tarn_buf_vprintf(&text, format, args);
    va_end(args);
    return tarn_arena_str(in->op->arena, tarn_buf_slice(&text));
}

/* --- schemas --- */

static bool parse_number(struct tarn_slice text, int64_t *out)
{
    struct tarn_status *s = tarn_parse_i64(text, out);
    bool is = s == TARN_OK && *out >= 0 && text.size > 0 && text.data[0] != '+';
    tarn_status_free(s);
    return is;
}

static void judge_options(struct tarn_inspect *in, const char *where)
{
    const struct tarn_options *o = &in->options;
    for (size_t i = 0; i < o->refusal_count; i++) {
        const struct tarn_refusal *r = &o->refusals[i];
        tarn_inspect__find(in, TARN_FINDING_LIMIT, where,
                           "go on with the engine that made it; docs/compatibility.md has the list",
                           "%.*s: %s%s%s", TARN_SLICE_ARG(r->reason),
                           r->merge   ? "rows are neither read, loaded nor compacted here"
                           : r->write ? "rows are neither loaded nor compacted here"
                                      : "",
                           r->commit && (r->merge || r->write) ? ", " : "",
                           r->commit ? "nothing is committed here" : "");
    }
}

static struct tarn_status *check_schema(struct tarn_inspect *in, int64_t id)
{
    struct tarn_schema *schema = tarn_arena_calloc(in->op->arena, 1, sizeof *schema);
    const char *where = tarn_table__key(in->op, in->table, "schema/schema-%" PRId64, id);
    bool found = false, bad;
    struct tarn_status *s =
        tarn_table__read_schema(in->op, in->table, id, in->op->arena, &found, schema);
    TARN_TRY(tarn_inspect__judge(in, s, where, "the schema can't be read", &bad));
    if (bad || !found)
        return TARN_OK;
    in->found.schema_count++;
    tarn_map_set(in->schemas, tarn_slice_str(print(in, "%" PRId64, id)), schema);
    if (in->latest == NULL || schema->id > in->latest->id)
        in->latest = schema;
    return TARN_OK;
}

static struct tarn_status *check_schemas(struct tarn_inspect *in, bool is_main)
{
    struct tarn_named *names;
    size_t count;
    int64_t id, latest = -1;
    bool bad;
    TARN_TRY(tarn_table__list_named(in->op, in->table, "schema", "schema-", &names, &count));
    for (size_t i = 0; i < count; i++)
        if (parse_number(names[i].name, &id)) {
            latest = TARN_MAX(latest, id);
            TARN_TRY(check_schema(in, id));
        }
    const char *where = tarn_table__key(in->op, in->table, "schema");
    if (latest < 0)
        tarn_inspect__find(in, TARN_FINDING_DAMAGE, where, MEND, "there is no schema");
    if (in->latest == NULL)
        return TARN_OK;
    where = tarn_table__key(in->op, in->table, "schema/schema-%" PRId64, in->latest->id);
    TARN_TRY(tarn_inspect__judge(in, tarn_options_parse(in->latest, in->op->arena, &in->options),
                                 where, "its options can't be used", &bad));
    in->has_options = !bad;
    if (!bad && is_main) {
        in->found.is_write_only = in->options.write_only;
        in->found.can_compact =
            in->options.refuse_write.data == NULL && in->options.refuse_merge.data == NULL;
    }
    if (!bad)
        judge_options(in, where);
    return TARN_OK;
}

bool tarn_inspect__has_schema(const struct tarn_inspect *in, int64_t id)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, id);
    return tarn_map_find(in->schemas, tarn_slice_str(text)) != NULL;
}

/* --- history --- */

static struct tarn_status *check_hint(struct tarn_inspect *in, const char *name, int64_t expected)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    bool found = false, bad;
    int64_t id = -1;
    const char *where = tarn_table__key(in->op, in->table, "snapshot/%s", name);
    struct tarn_status *s = tarn_store_find(in->table->env->store, in->op, where, &found, &text);
    TARN_TRY(tarn_inspect__judge(in, s, where, "the hint can't be read", &bad));
    if (bad || (found && parse_number(tarn_buf_slice(&text), &id) && id == expected))
        return TARN_OK;
    bool is_latest = strcmp(name, "LATEST") == 0;
    const char *advice =
        is_latest ? "none needed: engines list the folder then, and the next commit writes it"
                  : "none needed: engines list the folder then, and the next expiry writes it";
    if (!found && !is_latest) /* only expiries and roll-backs write it */
        return TARN_OK;
    if (!found)
        tarn_inspect__find(in, TARN_FINDING_NOTE, where, advice, "the hint isn't there");
    else
        tarn_inspect__find(in, TARN_FINDING_NOTE, where, advice,
                           "the hint says %.*s, and it is snapshot %" PRId64,
                           (int)TARN_MIN(text.size, (size_t)40), (const char *)text.data, expected);
    return TARN_OK;
}

/* Snapshots that are there and no part of history: behind or below a gap. */
static struct tarn_status *check_gaps(struct tarn_inspect *in, struct tarn_range range)
{
    struct tarn_named *names;
    size_t count;
    int64_t id;
    TARN_TRY(tarn_table__list_named(in->op, in->table, "snapshot", "snapshot-", &names, &count));
    for (size_t i = 0; i < count; i++) {
        if (!parse_number(names[i].name, &id) || id == 0 ||
            (id >= range.earliest && id <= range.latest))
            continue;
        bool there; /* others may commit or expire meanwhile */
        const char *where = tarn_table__key(in->op, in->table, "snapshot/snapshot-%" PRId64, id);
        TARN_TRY(tarn_store_stat(in->table->env->store, in->op, where, &there, NULL));
        int64_t next = id < range.earliest ? range.earliest - 1 : range.latest + 1;
        const char *gap = tarn_table__key(in->op, in->table, "snapshot/snapshot-%" PRId64, next);
        bool filled;
        TARN_TRY(tarn_store_stat(in->table->env->store, in->op, gap, &filled, NULL));
        if (there && !filled)
            tarn_inspect__find(in, TARN_FINDING_DAMAGE, where,
                               "put the missing snapshot back from a backup; else this one stays "
                               "out of reach, and may be removed",
                               "snapshot %" PRId64
                               " is missing between it and history, which is %" PRId64
                               " to %" PRId64,
                               next, range.earliest, range.latest);
    }
    return TARN_OK;
}

/* Is the base list what the snapshot below left? */
static struct tarn_status *check_stands(struct tarn_inspect *in, int64_t id)
{
    bool bad, stands = true;
    const char *where = tarn_table__key(in->op, in->table, "snapshot/snapshot-%" PRId64, id);
    if (in->below.arena == NULL || in->this.arena == NULL)
        return TARN_OK;
    struct tarn_status *s =
        tarn_table__stands_on(in->op, in->table, &in->below, &in->this, &stands);
    if (s != TARN_OK && !tarn_store_is_away(s)) { /* told where its manifests were read */
        tarn_status_free(s);
        return TARN_OK;
    }
    TARN_TRY(tarn_inspect__judge(in, s, where, "", &bad));
    if (!stands)
        tarn_inspect__find(in, TARN_FINDING_DAMAGE, where,
                           "nothing: history begins with it here; what engines read as older "
                           "snapshots is another history's",
                           "snapshot %" PRId64 " was not made upon the one below it: its base list "
                           "isn't what that one left",
                           id);
    return TARN_OK;
}

static struct tarn_status *check_snapshot(struct tarn_inspect *in, struct tarn_range range,
                                          int64_t id, bool *found)
{
    struct tarn_snapshot snapshot;
    struct tarn_slice json;
    bool bad;
    const char *where = tarn_table__key(in->op, in->table, "snapshot/snapshot-%" PRId64, id);
    struct tarn_status *s =
        tarn_table__read_snapshot(in->op, in->table, id, in->op->arena, found, &json, &snapshot);
    tarn_table__manifests_fini(&in->below);
    in->below = in->this;
    in->this = (struct tarn_manifests){0};
    TARN_TRY(tarn_inspect__judge(in, s, where, "the snapshot can't be read", &bad));
    if (bad || !*found)
        return TARN_OK;
    struct tarn_version_check check = {
        .snapshot = &snapshot,
        .name = print(in, "snapshot %" PRId64, id),
        .where = where,
        .is_first = id == range.earliest,
        .is_latest = id == range.latest,
    };
    TARN_TRY(tarn_inspect__version(in, &check));
    return check_stands(in, id);
}

static struct tarn_status *is_there(struct tarn_inspect *in, int64_t id, bool *out)
{
    return tarn_store_stat(in->table->env->store, in->op,
                           tarn_table__key(in->op, in->table, "snapshot/snapshot-%" PRId64, id),
                           out, NULL);
}

/* A snapshot isn't there. Expiry takes the earliest first, a roll-back the latest: where both are there, it is missing. */
static struct tarn_status *check_missing(struct tarn_inspect *in, struct tarn_range range,
                                         int64_t id)
{
    bool first, last;
    TARN_TRY(is_there(in, range.earliest, &first));
    TARN_TRY(is_there(in, range.latest, &last));
    if (first && last)
        tarn_inspect__find(in, TARN_FINDING_DAMAGE,
                           tarn_table__key(in->op, in->table, "snapshot/snapshot-%" PRId64, id),
                           MEND, "snapshot %" PRId64 " is missing between %" PRId64 " and %" PRId64,
                           id, range.earliest, range.latest);
    return TARN_OK;
}

/* What was found wrong with a snapshot is nothing where it went meanwhile, and what it names. */
static struct tarn_status *check_one(struct tarn_inspect *in, struct tarn_range range, int64_t id)
{
    struct tarn_inspection before = in->found;
    bool found = false, there = true;
    TARN_TRY(tarn_op_check(in->op));
    TARN_TRY(check_snapshot(in, range, id, &found));
    if (!found && in->found.damage_count == before.damage_count)
        return check_missing(in, range, id);
    if (in->found.damage_count > before.damage_count)
        TARN_TRY(is_there(in, id, &there));
    if (!there)
        tarn_inspect__take_back(in, &before);
    return TARN_OK;
}

static struct tarn_status *check_history(struct tarn_inspect *in, bool is_main)
{
    struct tarn_range range;
    bool bad;
    const char *where = tarn_table__key(in->op, in->table, "snapshot");
    TARN_TRY(tarn_inspect__judge(in, tarn_table__find_range(in->op, in->table, &range), where,
                                 "its history can't be found", &bad));
    if (bad)
        return TARN_OK;
    TARN_TRY(check_gaps(in, range));
    in->range = range;
    if (is_main) {
        in->found.earliest_id = range.earliest;
        in->found.latest_id = range.latest;
        in->found.snapshot_count = range.latest == 0 ? 0 : range.latest - range.earliest + 1;
        in->found.file_count = range.latest == 0 ? 0 : -1;
    }
    if (range.latest == 0)
        return TARN_OK;
    TARN_TRY(check_hint(in, "LATEST", range.latest));
    TARN_TRY(check_hint(in, "EARLIEST", range.earliest));
    for (int64_t id = range.earliest; id <= range.latest; id++)
        TARN_TRY(check_one(in, range, id));
    tarn_table__manifests_fini(&in->below);
    tarn_table__manifests_fini(&in->this);
    return TARN_OK;
}

/* --- tags, consumers, changelogs --- */

static struct tarn_status *check_tag(struct tarn_inspect *in, struct tarn_slice name)
{
    struct tarn_tag tag;
    struct tarn_slice json;
    bool bad;
    const char *where = tarn_table__key(in->op, in->table, "tag/tag-%.*s", TARN_SLICE_ARG(name));
    struct tarn_status *s = tarn_tag_check_name(name);
    if (s != TARN_OK) {
        tarn_inspect__find(in, TARN_FINDING_LIMIT, where,
                           "give the snapshot a tag of another name, and drop this one with the "
                           "engine that made it",
                           "the tag can't be used here: %s", tarn_status_message(s));
        tarn_status_free(s);
        return TARN_OK;
    }
    s = tarn_table__read_tag(in->op, in->table, name, &json, &tag);
    if (tarn_status_reason(s) == TARN_TAG_NOT_FOUND) { /* dropped meanwhile */
        tarn_status_free(s);
        return TARN_OK;
    }
    in->found.tag_count++;
    TARN_TRY(tarn_inspect__judge(in, s, where, "the tag can't be read", &bad));
    if (bad)
        return TARN_OK;
    struct tarn_version_check check = {
        .snapshot = &tag.snapshot,
        .name = print(in, "tag %.*s", TARN_SLICE_ARG(name)),
        .where = where,
        .is_tag = true,
    };
    return tarn_inspect__version(in, &check);
}

static struct tarn_status *check_tags(struct tarn_inspect *in)
{
    struct tarn_named *names;
    size_t count;
    TARN_TRY(tarn_table__list_named(in->op, in->table, "tag", "tag-", &names, &count));
    for (size_t i = 0; i < count; i++)
        TARN_TRY(check_tag(in, names[i].name));
    return TARN_OK;
}

static struct tarn_status *check_consumer(struct tarn_inspect *in, struct tarn_slice id)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    int64_t next = 0;
    bool found = false, bad;
    const char *where =
        tarn_table__key(in->op, in->table, "consumer/consumer-%.*s", TARN_SLICE_ARG(id));
    struct tarn_status *s = tarn_store_find(in->table->env->store, in->op, where, &found, &text);
    if (s == TARN_OK && !found)
        return TARN_OK;
    if (s == TARN_OK)
        s = tarn_consumer_decode(tarn_buf_slice(&text), &next);
    in->found.consumer_count++;
    bool unread = s != TARN_OK && !tarn_store_is_away(s);
    if (unread) {
        tarn_inspect__find(in, TARN_FINDING_DAMAGE, where,
                           "set it anew with tarn consumer set, or remove it: expiry keeps "
                           "nothing for it",
                           "the consumer can't be read: %s", tarn_status_message(s));
        tarn_status_free(s);
        return TARN_OK;
    }
    TARN_TRY(tarn_inspect__judge(in, s, where, "", &bad));
    if (in->range.earliest > 0 && next < in->range.earliest)
        tarn_inspect__find(in, TARN_FINDING_NOTE, where,
                           "see whether its reader still lives; tarn consumer set or drop",
                           "the consumer wants snapshot %" PRId64 ", and the earliest is %" PRId64,
                           next, in->range.earliest);
    return TARN_OK;
}

static struct tarn_status *check_consumers(struct tarn_inspect *in)
{
    struct tarn_named *names;
    size_t count;
    TARN_TRY(tarn_table__list_named(in->op, in->table, "consumer", "consumer-", &names, &count));
    for (size_t i = 0; i < count; i++)
        TARN_TRY(check_consumer(in, names[i].name));
    TARN_TRY(tarn_table__list_named(in->op, in->table, "changelog", "changelog-", &names, &count));
    if (count > 0)
        tarn_inspect__find(in, TARN_FINDING_LIMIT, tarn_table__key(in->op, in->table, "changelog"),
                           "read changes below the earliest snapshot with the engine that made it",
                           "%zu changelogs that outlived their snapshots aren't read here", count);
    return TARN_OK;
}

/* --- the main branch, and each other --- */

static struct tarn_status *check_line(struct tarn_inspect *in, bool is_main)
{
    in->schemas = tarn_map_new();
    in->latest = NULL;
    in->has_options = false;
    in->range = (struct tarn_range){0, 0};
    struct tarn_status *s = check_schemas(in, is_main);
    if (s == TARN_OK)
        s = check_history(in, is_main);
    if (s == TARN_OK)
        s = check_tags(in);
    if (s == TARN_OK)
        s = check_consumers(in);
    if (s == TARN_OK)
        s = tarn_inspect__look_at_files(in);
    tarn_map_free(in->schemas);
    tarn_table__manifests_fini(&in->below);
    tarn_table__manifests_fini(&in->this);
    return s;
}

static struct tarn_status *check_branch(struct tarn_inspect *in, struct tarn_slice name)
{
    const char *where =
        tarn_table__key(in->op, in->table, TARN_BRANCH_FOLDER "%.*s", TARN_SLICE_ARG(name));
    struct tarn_table *main = in->table;
    struct tarn_status *s = tarn_branch_check_name(name);
    in->found.branch_count++;
    if (s != TARN_OK) {
        tarn_inspect__find(in, TARN_FINDING_LIMIT, where,
                           "rename the branch with the engine that made it",
                           "the branch can't be used here: %s", tarn_status_message(s));
        tarn_status_free(s);
        return TARN_OK;
    }
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *branch = tarn_table__bare(
        main->env, main->path, name, print(in, "%s$branch_%.*s", main->name, TARN_SLICE_ARG(name)));
    in->table = branch;
    s = check_line(in, false);
    in->table = main;
    return s;
}

static struct tarn_status *check_branches(struct tarn_inspect *in)
{
    struct tarn_object *objects;
    size_t count;
    const char *folder = tarn_table__key(in->op, in->table, TARN_BRANCH_FOLDER);
    size_t prefix = strlen(folder);
    TARN_TRY(tarn_store_list(in->table->env->store, in->op,
                             tarn_table__key(in->op, in->table, "branch"), false, &objects,
                             &count));
    for (size_t i = 0; i < count; i++) {
        struct tarn_slice key = objects[i].key;
        if (objects[i].is_folder && tarn_slice_starts_with(key, tarn_slice_str(folder)))
            TARN_TRY(check_branch(in, tarn_slice_of(key.data + prefix, key.size - prefix)));
    }
    return TARN_OK;
}

struct tarn_status *tarn_table_inspect(struct tarn_op *op, const struct tarn_table_env *env,
                                       const char *path, const char *name,
                                       enum tarn_inspect_files files, struct tarn_inspection *out)
{
    TARN_OWN(tarn_table_drop_ref)
    struct tarn_table *table = tarn_table__bare(env, path, tarn_slice_str(""), name);
    struct tarn_inspect in = {.op = op, .table = table, .files = files};
    in.list = tarn_arena_calloc(op->arena, TARN_FINDINGS_MAX, sizeof *in.list);
    in.seen = tarn_map_new();
    struct tarn_status *s = check_line(&in, true);
    if (s == TARN_OK)
        s = check_branches(&in);
    tarn_map_free(in.seen);
    in.found.findings = in.list;
    *out = in.found;
    return s;
}
