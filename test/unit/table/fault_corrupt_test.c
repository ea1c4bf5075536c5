/*
 * Promise: whatever byte of a table's snapshots, manifests, lists, hints or schemas is cut off, zeroed or flipped, nothing crashes, the error
 * is a typed one that names the object, other tables are not affected, and with the object put right the table works again. With
 * its index the table goes on where it can. (docs/faults.md, rows 22, 23, 27)
 */
#include "fault_others.h"

#include "table/internal.h"

#define NONE TARN_SNAPSHOT_NONE
#define OBJECTS_MAX 64

static int64_t append(struct fixture *f, int64_t identifier, const char *name)
{
    struct tarn_manifest_entry e = fixture_entry(f, TARN_ENTRY_ADD, name, 0, 0, 1, 10, 0);
    int64_t id;
    expect_ok(fixture_append(f, "u", identifier, &e, 1, &id));
    return id;
}

static void fill(struct fixture *f)
{
    append(f, 1, "a");
    append(f, 2, "b");
    struct tarn_manifest_entry change[] = {fixture_entry(f, TARN_ENTRY_DELETE, "a", 0, 0, 1, 10, 0),
                                           fixture_entry(f, TARN_ENTRY_ADD, "c", 0, 5, 1, 10, 0)};
    int64_t id;
    expect_ok(fixture_compact(f, change, 2, &id));
    folder_put(f, "snapshot/EARLIEST", tarn_slice_str("1"));
}

struct object {
    const char *name; /* "manifest/manifest-…" */
    struct tarn_slice body;
};

static int read_objects(struct fixture *f, struct object *out)
{
    struct tarn_object *objects;
    size_t count;
    expect_ok(tarn_store_list(f->inner, f->t->op, "db.db/t", true, &objects, &count));
    expect_true(count <= OBJECTS_MAX);
    for (size_t i = 0; i < count; i++) {
        const char *key = tarn_arena_str(f->t->arena, objects[i].key);
        out[i] = (struct object){key + strlen("db.db/t/"), folder_get(f, key + strlen("db.db/t/"))};
    }
    return (int)count;
}

/* --- one damage --- */

enum damage { CUT, FLIPPED, ZEROED, DOUBLED, GARBAGE, DAMAGE_COUNT };

static struct tarn_slice damaged(struct tarn_test *t, struct tarn_slice body, enum damage how)
{
    size_t at = body.size == 0 ? 0 : tarn_test_random_below(t, body.size);
    if (how == CUT)
        return tarn_slice_of(body.data, at);
    if (how == GARBAGE)
        return tarn_test_random_bytes(t, body.size);
    TARN_OWN(tarn_buf_drop) struct tarn_buf buf = {0};
    tarn_buf_add_slice(&buf, body);
    if (how == DOUBLED)
        tarn_buf_add_slice(&buf, body);
    else if (how == FLIPPED && body.size > 0)
        buf.data[at] ^= (uint8_t)(1u << tarn_test_random_below(t, 8));
    else if (how == ZEROED && body.size > 0)
        memset(buf.data + at, 0, TARN_MIN((size_t)40, body.size - at));
    return tarn_arena_copy(t->arena, tarn_buf_slice(&buf));
}

static const char *base_name(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash == NULL ? name : slash + 1;
}

/* Two that can be read and don't agree, where nothing tells which of them is damaged: a manifest with another file's name in
 * it and the one that removes that file, a manifest and its list. */
static bool fits_no_other(const char *message)
{
    return strstr(message, "manifest manifest-") != NULL &&
           (strstr(message, "is not live") != NULL ||
            strstr(message, "the list that names it says") != NULL);
}

/* Typed, and with the name of the table at least; of the object, where it is the object that can't be read. */
static void expect_telling(struct tarn_status *s, const struct object *o)
{
    enum tarn_reason reason = tarn_status_reason(s);
    const char *message = tarn_status_message(s);
    switch (reason) {
    case TARN_SNAPSHOT_MALFORMED:
    case TARN_MANIFEST_MALFORMED:
    case TARN_AVRO_MALFORMED:
    case TARN_SCHEMA_MALFORMED:
    case TARN_TOO_LARGE:
        if (strstr(message, base_name(o->name)) == NULL && strncmp(o->name, "manifest/", 9) == 0 &&
            !fits_no_other(message))
            expect_unreachable("%s is damaged, and it is said: %s", o->name, message);
        break;
    case TARN_OBJECT_NOT_FOUND:    /* a name that was damaged */
    case TARN_SCHEMA_INVALID:      /* an option */
    case TARN_UNSUPPORTED_FEATURE: /* a version, type or option that was damaged */
    case TARN_INVALID_ARGUMENT:
    case TARN_TABLE_NOT_FOUND:
    case TARN_SNAPSHOT_NOT_FOUND:
    case TARN_PATH_INVALID:
        break;
    default:
        expect_unreachable("%s is damaged, and it is said: %s: %s", o->name,
                           tarn_reason_name(reason), message);
    }
    expect_true(strstr(message, "db.t") != NULL || strstr(message, "db.db/t") != NULL ||
                strstr(message, base_name(o->name)) != NULL);
    tarn_status_free(s);
}

struct seen {
    int refused, right, wrong;
};

static const char *files_of(struct fixture *f, struct tarn_table *table, struct tarn_status **s)
{
    struct tarn_plan_request request = {.version = TARN_VERSION_LATEST, .no_splits = true};
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    struct tarn_plan plan;
    tarn_op_init(&op);
    *s = tarn_table_plan(&op, table, &request, &plan);
    if (*s != TARN_OK)
        return NULL;
    for (size_t i = 0; i < plan.file_count; i++)
        tarn_buf_printf(&text, "%s%.*s", i == 0 ? "" : " ",
                        TARN_SLICE_ARG(plan.files[i].entry.file.name));
    return tarn_arena_str(f->t->arena, tarn_buf_slice(&text));
}

/* As a daemon that lost its state: another uuid is another index. */
static void open_anew(struct fixture *f, const struct object *o, struct seen *seen)
{
    static int number;
    struct tarn_table *table = NULL;
    struct tarn_status *s;
    const char *uuid = tarn_arena_printf(f->t->arena, "11111111-2222-3333-4444-%012d", number++);
    s = tarn_table_open(f->t->op, &f->env, "db.db/t", uuid, "db.t", &table);
    const char *files = NULL;
    if (s == TARN_OK)
        files = files_of(f, table, &s);
    if (s != TARN_OK) {
        seen->refused++;
        expect_telling(s, o);
    } else if (strcmp(files, "b c") == 0 || strcmp(files, "c b") == 0) {
        seen->right++;
    } else {
        seen->wrong++;
        print_message("%s is damaged, and the plan is \"%s\"\n", o->name, files);
    }
    if (table != NULL)
        expect_ok(tarn_table_retire(f->t->op, table, true));
    tarn_table_drop_ref(&table);
}

static void other_table_works(struct fixture *f, struct tarn_table *other)
{
    struct tarn_status *s;
    const char *files = files_of(f, other, &s);
    expect_ok(s);
    expect_str(files, "");
}

static bool is_hint(const char *name)
{
    return strstr(name, "LATEST") != NULL || strstr(name, "EARLIEST") != NULL;
}

TARN_TEST(corrupt, each_object_cut_zeroed_or_flipped_is_named)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    fill(&f);
    struct tarn_table *other = NULL;
    expect_ok(tarn_store_put(f.store, t->op, "db.db/u/schema/schema-0",
                             folder_get(&f, "schema/schema-0")));
    expect_ok(tarn_table_open(t->op, &f.env, "db.db/u", "99999999-2222-3333-4444-555555555555",
                              "db.u", &other));
    struct object objects[OBJECTS_MAX];
    int count = read_objects(&f, objects), rounds = tarn_test_rounds(6), wrong = 0;
    for (int i = 0; i < count; i++) {
        const struct object *o = &objects[i];
        struct seen seen = {0};
        for (int r = 0; r < rounds * DAMAGE_COUNT; r++) {
            folder_put(&f, o->name, damaged(t, o->body, (enum damage)(r % DAMAGE_COUNT)));
            open_anew(&f, o, &seen);
            other_table_works(&f, other);
        }
        folder_put(&f, o->name, o->body);
        struct seen whole = {0};
        open_anew(&f, o, &whole);
        expect_int(whole.right, 1);
        if (is_hint(o->name))
            expect_int(seen.refused, 0);
        print_message("%s: %d refused, %d right, %d wrong\n", o->name, seen.refused, seen.right,
                      seen.wrong);
        wrong += seen.wrong;
    }
    expect_int(wrong, 0);
    tarn_table_drop_ref(&other);
}

/* --- cut where an Avro container may end: behind its header, and between its blocks --- */

/* The size of the container up to its mark number `i`; 0: that is all of it. */
static size_t cut_at(struct tarn_slice body, size_t i)
{
    struct tarn_slice mark = tarn_slice_of(body.data + body.size - 16, 16);
    size_t at = 0;
    for (size_t n = 0; n <= i; n++) {
        const uint8_t *found = memmem(body.data + at, body.size - at, mark.data, mark.size);
        expect_not_null(found);
        at = (size_t)(found - body.data) + mark.size;
    }
    return at == body.size ? 0 : at;
}

/* All that lists and manifests are read for: a plan without an index, and what snapshots name. */
static struct tarn_status *read_all(struct fixture *f)
{
    static int number;
    const char *uuid = tarn_arena_printf(f->t->arena, "11111111-2222-3333-5555-%012d", number++);
    struct tarn_table *table = NULL;
    struct tarn_status *s = tarn_table_open(f->t->op, &f->env, "db.db/t", uuid, "db.t", &table);
    if (s == TARN_OK)
        files_of(f, table, &s);
    for (int64_t id = 1; id <= others_newest(f) && s == TARN_OK; id++) {
        struct tarn_manifest_file *lists[2];
        size_t counts[2];
        struct tarn_snapshot snapshot;
        expect_ok(tarn_snapshot_decode(
            folder_get(f, tarn_arena_printf(f->t->arena, "snapshot/snapshot-%" PRId64, id)),
            f->t->arena, &snapshot));
        s = tarn_table_manifests(f->t->op, table, &snapshot, &lists[0], &counts[0], &lists[1],
                                 &counts[1]);
    }
    if (table != NULL)
        expect_ok(tarn_table_retire(f->t->op, table, true));
    tarn_table_drop_ref(&table);
    return s;
}

/* Every container in the folder, at every place: how often that was. */
static int cut_all(struct fixture *f)
{
    struct tarn_object *objects;
    size_t count, at;
    int cuts = 0;
    expect_ok(tarn_store_list(f->inner, f->t->op, "db.db/t/manifest", true, &objects, &count));
    for (size_t i = 0; i < count; i++) {
        const char *name = tarn_arena_str(f->t->arena, objects[i].key) + strlen("db.db/t/");
        struct tarn_slice body = folder_get(f, name);
        for (size_t n = 0; (at = cut_at(body, n)) != 0; n++, cuts++) {
            folder_put(f, name, tarn_slice_of(body.data, at));
            expect_status(read_all(f), TARN_MANIFEST_MALFORMED, base_name(name));
        }
        folder_put(f, name, body);
        expect_ok(read_all(f));
    }
    return cuts;
}

TARN_TEST(corrupt, a_container_that_ends_early_is_no_shorter_answer)
{
    enum { MANY = 1000 };
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    append(&f, 1, "a");
    append(&f, 2, "b");
    struct tarn_manifest_entry *many = tarn_arena_calloc(t->arena, MANY, sizeof *many);
    for (int i = 0; i < MANY; i++)
        many[i] = fixture_entry(&f, TARN_ENTRY_ADD, tarn_arena_printf(t->arena, "many-%d", i), 1, 0,
                                1, 10, 0);
    struct tarn_manifest_entry log = fixture_file(&f, "log");
    struct tarn_commit commit = {
        .user = tarn_slice_str("u"),
        .identifier = 3,
        .append = {.entries = many, .count = MANY, .changelog = &log, .changelog_count = 1}};
    struct tarn_commit_result result;
    expect_ok(tarn_table_commit(t->op, f.table, &commit, &result));
    others_append(&f, "x"); /* who doesn't say how large its lists are */
    int cuts = cut_all(&f);
    expect_true(cuts >
                8 + 5); /* 8 lists with something in them, 5 manifests, one of several blocks */
}

/* As many bytes and a readable file, but of other entries. */
TARN_TEST(corrupt, a_manifest_of_other_counts_is_told)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    append(&f, 1, "a");
    struct tarn_manifest_file list = f.table->head->manifests[0], *files = &list;
    struct tarn_manifest_entry *entries;
    size_t count;
    expect_ok(tarn_table__read_manifest(t->op, f.table, files, t->arena, &entries, &count));
    list.added_count = 0;
    list.deleted_count = 1;
    expect_status(tarn_table__read_manifest(t->op, f.table, files, t->arena, &entries, &count),
                  TARN_MANIFEST_MALFORMED, "says 0 and 1");
}

/* A commit of others that can't be read takes nothing away from the index: as soon as it can, the index goes on from there. */
TARN_TEST(corrupt, a_commit_of_others_that_is_cut_leaves_the_index)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    append(&f, 1, "a");
    int64_t id = others_append(&f, "x");
    struct tarn_snapshot s;
    expect_ok(tarn_snapshot_decode(
        folder_get(&f, tarn_arena_printf(t->arena, "snapshot/snapshot-%" PRId64, id)), t->arena,
        &s));
    const char *name = tarn_arena_printf(t->arena, "manifest/%.*s", TARN_SLICE_ARG(s.delta_list));
    struct tarn_slice body = folder_get(&f, name);
    int64_t indexed;
    uint64_t hash;
    folder_put(&f, name, tarn_slice_of(body.data, cut_at(body, 0)));
    struct tarn_status *status;
    expect_null(files_of(&f, f.table, &status));
    expect_status(status, TARN_MANIFEST_MALFORMED, base_name(name));
    expect_ok(tarn_table__indexed_id(f.table, &indexed, &hash));
    expect_int(indexed, 1);
    folder_put(&f, name, body);
    expect_str(fixture_files(&f, NONE, NULL), "a x");
}

/* With its index, a table needs what it read before no more: what it can't do is told, and nothing of the past is lost. */
TARN_TEST(corrupt, objects_do_not_change_what_was_indexed)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    fill(&f);
    struct object objects[OBJECTS_MAX];
    int count = read_objects(&f, objects);
    for (int i = 0; i < count; i++) {
        const struct object *o = &objects[i];
        for (int how = 0; how < DAMAGE_COUNT; how++) {
            folder_put(&f, o->name, damaged(t, o->body, (enum damage)how));
            struct tarn_status *s;
            const char *files = files_of(&f, f.table, &s);
            if (s != TARN_OK)
                expect_telling(s, o);
            else
                expect_str(files, "b c");
            folder_put(&f, o->name, o->body);
            expect_str(fixture_files(&f, NONE, NULL), "b c");
        }
    }
    expect_int(append(&f, 9, "d"), 4);
    folder_check(&f);
    fixture_restart(&f, false);
    expect_str(fixture_files(&f, NONE, NULL), "b c d");
}

/* A head that is another text by one bit has the index built anew, which fails half way; then the text is as it was. */
TARN_TEST(corrupt, a_head_for_a_while_leaves_an_index_that_is_built_again)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    fill(&f);
    struct tarn_slice body = folder_get(&f, "snapshot/snapshot-3");
    struct tarn_snapshot s;
    expect_ok(tarn_snapshot_decode(body, t->arena, &s));
    struct tarn_slice other = tarn_arena_copy(t->arena, body);
    uint8_t *name =
        memmem((uint8_t *)(uintptr_t)other.data, other.size, s.delta_list.data, s.delta_list.size);
    expect_not_null(name);
    name[s.delta_list.size - 3] ^= 1;
    folder_put(&f, "snapshot/snapshot-3", other);
    struct tarn_status *status;
    expect_null(files_of(&f, f.table, &status));
    expect_status(status, TARN_OBJECT_NOT_FOUND, "db.t");
    folder_put(&f, "snapshot/snapshot-3", body);
    expect_str(fixture_files(&f, NONE, NULL), "b c");
    expect_int(append(&f, 9, "d"), 4);
}

/* Of each kind: a hint that points anywhere, or is text. */
TARN_TEST(corrupt, hints_are_only_hints)
{
    static const char *const texts[] = {
        "",    "0",   "-1", "2",  "3",        "4",  "99999999999999999999",
        "abc", "1\n", " 3", "3 ", "\xff\xfe", "007"};
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    fill(&f);
    for (size_t i = 0; i < TARN_COUNT_OF(texts); i++) {
        for (size_t k = 0; k < TARN_COUNT_OF(texts); k++) {
            struct seen seen = {0};
            struct object o = {"snapshot/LATEST", {0}};
            folder_put(&f, "snapshot/LATEST", tarn_slice_str(texts[i]));
            folder_put(&f, "snapshot/EARLIEST", tarn_slice_str(texts[k]));
            open_anew(&f, &o, &seen);
            expect_int(seen.right, 1);
        }
    }
    expect_int(append(&f, 9, "d"), 4);
}

/* Snapshots would be of a schema that nobody can read. */
TARN_TEST(corrupt, a_schema_that_says_it_is_another_one_is_told)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    fill(&f);
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    folder_put(&f, "schema/schema-1", folder_get(&f, "schema/schema-0"));
    expect_status(tarn_table_look_now(t->op, f.table, &view), TARN_SCHEMA_MALFORMED,
                  "schema-1 says it is schema 0");
    folder_remove(&f, "schema/schema-1");
    expect_int(append(&f, 9, "d"), 4);
}
