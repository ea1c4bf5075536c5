/*
 * Comments of new columns that say what the column is: "__BLOB_FIELD; a photo" on BYTES makes it a BLOB, "__VECTOR_FIELD; 128" on an
 * ARRAY a VECTOR. The directive goes, the rest stays as the comment, and the option that lists such columns gets the name.
 *
 * Source   org.apache.paimon.schema.ColumnDirectiveUtils.
 */
#include "format/evolve_internal.h"

#include "format/ddl.h"
#include "format/options_judge.h"

static const struct directive {
    const char *word, *option;
} directives[] = {
    {"__BLOB_FIELD", "blob-field"},
    {"__BLOB_DESCRIPTOR_FIELD", "blob-descriptor-field"},
    {"__BLOB_VIEW_FIELD", "blob-view-field"},
    {"__VECTOR_FIELD", "vector-field"},
};

static struct tarn_status *refused(const struct tarn_field *field, const char *why)
{
    return tarn_status_new(TARN_SCHEMA_INVALID, "column %.*s with comment \"%.*s\": %s",
                           TARN_SLICE_ARG(field->name),
                           (int)TARN_MIN(field->description.size, (size_t)100),
                           (const char *)field->description.data, why);
}

bool tarn_format__is_directive(struct tarn_slice comment)
{
    comment = tarn_format__trim(comment);
    return tarn_slice_starts_with(comment, tarn_slice_str("__BLOB")) ||
           tarn_slice_starts_with(comment, tarn_slice_str("__VECTOR"));
}

/* The directive at the comment's start, and what stands behind it. */
static const struct directive *find_directive(struct tarn_slice comment, struct tarn_slice *rest)
{
    for (size_t i = 0; i < TARN_COUNT_OF(directives); i++) {
        size_t n = strlen(directives[i].word);
        if (!tarn_slice_starts_with(comment, tarn_slice_str(directives[i].word)) ||
            (comment.size > n && comment.data[n] != ';'))
            continue;
        n = TARN_MIN(n + 1, comment.size);
        *rest = tarn_format__trim(tarn_slice_of(comment.data + n, comment.size - n));
        return &directives[i];
    }
    return NULL;
}

/* "128; the rest" */
static struct tarn_status *take_length(const struct tarn_field *field, struct tarn_slice *rest,
                                       int32_t *out)
{
    const uint8_t *end = rest->size == 0 ? NULL : memchr(rest->data, ';', rest->size);
    size_t size = end == NULL ? rest->size : (size_t)(end - rest->data);
    int64_t length = 0;
    struct tarn_status *s =
        tarn_parse_i64(tarn_format__trim(tarn_slice_of(rest->data, size)), &length);
    bool fine = s == NULL && length >= 1 && length <= INT32_MAX;
    tarn_status_free(s);
    if (!fine)
        return refused(field, "a vector needs its length, as in \"__VECTOR_FIELD; 128; comment\"");
    size += end != NULL;
    *rest = tarn_format__trim(tarn_slice_of(rest->data + size, rest->size - size));
    *out = (int32_t)length;
    return TARN_OK;
}

static struct tarn_status *to_vector(struct tarn_format__draft *d, struct tarn_field *field,
                                     struct tarn_slice *rest)
{
    struct tarn_type *vector = tarn_arena_alloc(d->arena, sizeof *vector);
    *vector = *field->type;
    if (vector->id != TARN_TYPE_ARRAY)
        return refused(field, "only an ARRAY becomes a VECTOR");
    vector->id = TARN_TYPE_VECTOR;
    TARN_TRY(take_length(field, rest, &vector->length));
    field->type = vector;
    return TARN_OK;
}

static bool is_bytes(const struct tarn_type *type)
{
    return type->id == TARN_TYPE_BINARY || type->id == TARN_TYPE_VARBINARY ||
           type->id == TARN_TYPE_BLOB;
}

/* Of BYTES, and where `nested` of ARRAY<BYTES> and MAP<X, BYTES>. */
static struct tarn_status *to_blob(struct tarn_format__draft *d, struct tarn_field *field,
                                   bool nested)
{
    struct tarn_type *outer = tarn_arena_alloc(d->arena, sizeof *outer);
    struct tarn_type *blob = tarn_arena_calloc(d->arena, 1, sizeof *blob);
    *outer = *field->type;
    bool wrapped = nested && (outer->id == TARN_TYPE_ARRAY || outer->id == TARN_TYPE_MAP);
    const struct tarn_type *bytes = wrapped ? outer->element : outer;
    if (!is_bytes(bytes))
        return refused(field, nested ? "only BYTES, ARRAY<BYTES> and MAP<X, BYTES> become BLOBs"
                                     : "only BYTES become such a BLOB");
    *blob = (struct tarn_type){.id = TARN_TYPE_BLOB, .nullable = bytes->nullable};
    outer->element = blob;
    field->type = wrapped ? outer : blob;
    return TARN_OK;
}

struct tarn_status *tarn_format__apply_directive(struct tarn_format__draft *d, bool in_table,
                                                 struct tarn_field *field)
{
    struct tarn_slice rest;
    if (!tarn_format__is_directive(field->description))
        return TARN_OK;
    const struct directive *found = find_directive(tarn_format__trim(field->description), &rest);
    if (found == NULL)
        return refused(field, "there is no such directive: __BLOB_FIELD, __BLOB_DESCRIPTOR_FIELD, "
                              "__BLOB_VIEW_FIELD or __VECTOR_FIELD");
    if (!in_table)
        return refused(field, "a directive isn't for a column inside another");
    if (strcmp(found->option, "vector-field") == 0)
        TARN_TRY(to_vector(d, field, &rest));
    else
        TARN_TRY(to_blob(d, field, strcmp(found->option, "blob-field") == 0));
    field->default_value = (struct tarn_slice){0};
    field->description = rest.size == 0 ? (struct tarn_slice){0} : rest;
    tarn_format__add_to_list(d, found->option, field->name);
    return TARN_OK;
}

struct tarn_status *tarn_format__apply_directives(struct tarn_schema *s, struct tarn_arena *arena)
{
    struct tarn_format__draft d = {
        .old = s,
        .arena = arena,
        .options =
            tarn_arena_calloc(arena, s->option_count + s->field_count + 1, sizeof *d.options),
        .option_count = s->option_count,
    };
    struct tarn_field *fields = tarn_arena_calloc(arena, s->field_count, sizeof *fields);
    for (size_t i = 0; i < s->option_count; i++)
        d.options[i] = s->options[i];
    for (size_t i = 0; i < s->field_count; i++) {
        fields[i] = s->fields[i];
        TARN_TRY(tarn_format__apply_directive(&d, true, &fields[i]));
    }
    s->fields = fields;
    s->options = d.options;
    s->option_count = d.option_count;
    return TARN_OK;
}
