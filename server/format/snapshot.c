#include "format/snapshot.h"

#include "format/ddl.h"

#include <limits.h>

#define TARN_SNAPSHOT_VERSION 3
#define TARN_SNAPSHOT_PROPERTIES_MAX 100000

static const char *const kinds[] = {"APPEND", "COMPACT", "OVERWRITE", "ANALYZE"};

const char *tarn_commit_kind_name(enum tarn_commit_kind kind)
{
    return (size_t)kind < TARN_COUNT_OF(kinds) ? kinds[kind] : "?";
}

/* How one member lies in the struct: decode and encode walk the same table, in Java's order. */
enum member_kind { NUMBER, SMALL, TEXT, FILE_NAME, KIND, PROPERTIES };
struct member {
    const char *name;
    enum member_kind kind;
    size_t offset;
    bool required;
};

#define MEMBER(name, kind, field, required)                                                        \
    {                                                                                              \
        name, kind, offsetof(struct tarn_snapshot, field), required                                \
    }
static const struct member members[] = {
    MEMBER("version", SMALL, version, true),
    MEMBER("uuid", TEXT, uuid, false),
    MEMBER("id", NUMBER, id, true),
    MEMBER("schemaId", NUMBER, schema_id, true),
    MEMBER("baseManifestList", FILE_NAME, base_list, true),
    MEMBER("baseManifestListSize", NUMBER, base_list_size, false),
    MEMBER("deltaManifestList", FILE_NAME, delta_list, true),
    MEMBER("deltaManifestListSize", NUMBER, delta_list_size, false),
    MEMBER("changelogManifestList", FILE_NAME, changelog_list, false),
    MEMBER("changelogManifestListSize", NUMBER, changelog_list_size, false),
    MEMBER("indexManifest", FILE_NAME, index_manifest, false),
    MEMBER("commitUser", TEXT, commit_user, true),
    MEMBER("writerVersion", TEXT, writer_version, false),
    MEMBER("commitIdentifier", NUMBER, commit_identifier, true),
    MEMBER("commitKind", KIND, kind, true),
    MEMBER("timeMillis", NUMBER, time_ms, true),
    MEMBER("totalRecordCount", NUMBER, total_record_count, false),
    MEMBER("deltaRecordCount", NUMBER, delta_record_count, false),
    MEMBER("changelogRecordCount", NUMBER, changelog_record_count, false),
    MEMBER("watermark", NUMBER, watermark, false),
    MEMBER("statistics", FILE_NAME, statistics, false),
    MEMBER("properties", PROPERTIES, properties, false),
    MEMBER("nextRowId", NUMBER, next_row_id, false),
    MEMBER("operation", TEXT, operation, false),
};

static struct tarn_status *malformed(const char *member, const char *expected)
{
    return tarn_status_new(TARN_SNAPSHOT_MALFORMED, "\"%s\" %s", member, expected);
}

static void *field_at(const struct member *m, struct tarn_snapshot *s)
{
    return (char *)s + m->offset;
}

static const void *field_of(const struct member *m, const struct tarn_snapshot *s)
{
    return (const char *)s + m->offset;
}

/* ---- decode */

static struct tarn_status *decode_text(const struct member *m, const struct tarn_json *value,
                                       struct tarn_arena *arena, struct tarn_snapshot *out)
{
    struct tarn_slice text = tarn_json_text(value);
    if (tarn_json_kind(value) != TARN_JSON_STRING)
        return malformed(m->name, "is no text");
    if (m->kind == FILE_NAME && !tarn_format__is_file_name(text))
        return malformed(m->name, "is no file name");
    *(struct tarn_slice *)field_at(m, out) = tarn_arena_copy(arena, text);
    return TARN_OK;
}

static struct tarn_status *decode_kind(const struct tarn_json *value, struct tarn_snapshot *out)
{
    for (size_t i = 0; i < TARN_COUNT_OF(kinds); i++) {
        if (tarn_slice_is(tarn_json_text(value), kinds[i])) {
            out->kind = (enum tarn_commit_kind)i;
            return TARN_OK;
        }
    }
    return malformed("commitKind", "is none of APPEND, COMPACT, OVERWRITE, ANALYZE");
}

static struct tarn_status *decode_properties(const struct tarn_json *value,
                                             struct tarn_arena *arena, struct tarn_snapshot *out)
{
    if (tarn_json_kind(value) != TARN_JSON_OBJECT)
        return malformed("properties", "is no object");
    size_t n = tarn_json_count(value), i = 0;
    if (n > TARN_SNAPSHOT_PROPERTIES_MAX)
        return malformed("properties", "has too many members");
    struct tarn_pair *pairs = tarn_arena_calloc(arena, n, sizeof *pairs);
    void *cursor = NULL;
    struct tarn_slice key;
    const struct tarn_json *text;
    while (i < n && tarn_json_next(value, &cursor, &key, &text)) {
        if (tarn_json_kind(text) == TARN_JSON_NULL)
            continue;
        if (tarn_json_kind(text) != TARN_JSON_STRING)
            return malformed("properties", "holds a value that is no text");
        pairs[i].key = tarn_arena_copy(arena, key);
        pairs[i++].value = tarn_arena_copy(arena, tarn_json_text(text));
    }
    out->properties = pairs;
    out->property_count = i;
    return TARN_OK;
}

static struct tarn_status *decode_member(const struct member *m, const struct tarn_json *value,
                                         struct tarn_arena *arena, struct tarn_snapshot *out)
{
    switch (m->kind) {
    case NUMBER:
    case SMALL:
        if (tarn_json_kind(value) != TARN_JSON_INTEGER)
            return malformed(m->name, "is no integer");
        if (m->kind == NUMBER) {
            *(int64_t *)field_at(m, out) = tarn_json_int(value);
            return TARN_OK;
        }
        if (tarn_json_int(value) < 0 || tarn_json_int(value) > INT32_MAX)
            return malformed(m->name, "is out of range");
        *(int32_t *)field_at(m, out) = (int32_t)tarn_json_int(value);
        return TARN_OK;
    case TEXT:
    case FILE_NAME:
        return decode_text(m, value, arena, out);
    case KIND:
        return decode_kind(value, out);
    case PROPERTIES:
        return decode_properties(value, arena, out);
    }
    return TARN_OK;
}

static struct tarn_status *check(const struct tarn_snapshot *s)
{
    if (s->version > TARN_SNAPSHOT_VERSION)
        return tarn_status_new(TARN_UNSUPPORTED_FEATURE,
                               "the snapshot is of version %d, written by a newer Paimon; this "
                               "version of Tarn knows %d",
                               (int)s->version, TARN_SNAPSHOT_VERSION);
    if (s->id < 1)
        return malformed("id", "is below 1");
    if (s->schema_id < 0)
        return malformed("schemaId", "is below 0");
    const struct {
        const char *name;
        int64_t value;
    } sizes[] = {
        {"baseManifestListSize", s->base_list_size},
        {"deltaManifestListSize", s->delta_list_size},
        {"changelogManifestListSize", s->changelog_list_size},
        {"nextRowId", s->next_row_id},
    };
    for (size_t i = 0; i < TARN_COUNT_OF(sizes); i++)
        if (sizes[i].value < 0 && sizes[i].value != TARN_SNAPSHOT_NONE)
            return malformed(sizes[i].name, "is negative");
    return TARN_OK;
}

static struct tarn_status *parse(struct tarn_slice json, struct tarn_json **out)
{
    return tarn_status_as(tarn_json_parse(json, out), TARN_SNAPSHOT_MALFORMED);
}

struct tarn_status *tarn_snapshot_decode(struct tarn_slice json, struct tarn_arena *arena,
                                         struct tarn_snapshot *out)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *doc = NULL;
    struct tarn_snapshot s = {0};
    TARN_TRY(parse(json, &doc));
    if (tarn_json_kind(doc) != TARN_JSON_OBJECT)
        return tarn_status_new(TARN_SNAPSHOT_MALFORMED, "the snapshot is no JSON object");
    for (size_t i = 0; i < TARN_COUNT_OF(members); i++) {
        const struct member *m = &members[i];
        const struct tarn_json *value = tarn_json_find(doc, m->name);
        if (m->kind == NUMBER)
            *(int64_t *)field_at(m, &s) = TARN_SNAPSHOT_NONE;
        if (value != NULL && tarn_json_kind(value) != TARN_JSON_NULL)
            TARN_TRY(decode_member(m, value, arena, &s));
        else if (m->required)
            return malformed(m->name, "is missing");
    }
    TARN_TRY(check(&s));
    if (s.total_record_count < 0) /* Paimon adds up what others said, and writes what comes out */
        s.total_record_count = TARN_SNAPSHOT_NONE;
    *out = s;
    return TARN_OK;
}

/* ---- encode */

static void encode_properties(const struct tarn_snapshot *s, struct tarn_json *json)
{
    if (s->property_count == 0)
        return;
    struct tarn_json *object = tarn_json_object();
    for (size_t i = 0; i < s->property_count; i++)
        tarn_json_set_slice(object, s->properties[i].key, s->properties[i].value);
    tarn_json_set(json, "properties", object);
}

void tarn_snapshot_encode(const struct tarn_snapshot *s, struct tarn_buf *out)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *json = tarn_json_object();
    for (size_t i = 0; i < TARN_COUNT_OF(members); i++) {
        const struct member *m = &members[i];
        const void *field = field_of(m, s);
        struct tarn_slice text;
        switch (m->kind) {
        case SMALL:
            tarn_json_set_int(json, m->name, TARN_MAX(s->version, TARN_SNAPSHOT_VERSION));
            break;
        case NUMBER:
            if (*(const int64_t *)field != TARN_SNAPSHOT_NONE)
                tarn_json_set_int(json, m->name, *(const int64_t *)field);
            break;
        case TEXT:
        case FILE_NAME:
            text = *(const struct tarn_slice *)field;
            if (text.data != NULL)
                tarn_json_set_slice(json, tarn_slice_str(m->name), text);
            break;
        case KIND:
            tarn_json_set_str(json, m->name, tarn_commit_kind_name(s->kind));
            break;
        case PROPERTIES:
            encode_properties(s, json);
            break;
        }
    }
    tarn_json_print(json, 2, out);
}

struct tarn_slice tarn_snapshot_proof(const struct tarn_snapshot *snapshot)
{
    return snapshot->uuid.size != 0 ? snapshot->uuid : snapshot->delta_list;
}

bool tarn_snapshot_is(const struct tarn_snapshot *snapshot, struct tarn_slice proof)
{
    return proof.size != 0 && (tarn_slice_equal(proof, snapshot->uuid) ||
                               tarn_slice_equal(proof, snapshot->delta_list));
}
