/* file-index.TYPE.columns and file-index.TYPE.COLUMN.WHAT: which indexes new data files get. What isn't written is refused by name. */
#include "format/file_index_internal.h"
#include "format/file_index_write.h"
#include "format/options_judge.h"

#include <stdlib.h>

#define PREFIX "file-index."
#define SUFFIX ".columns"
#define BLOOM_ITEMS 1000000
#define BLOOM_FPP 0.1
#define BLOCK_SIZE (16 << 10)

struct parse {
    const struct tarn_schema *schema;
    struct tarn_arena *arena;
    struct tarn_options *o;
    struct tarn_file_index_spec *specs;
    size_t count;
    int64_t bloom_size; /* of all bloom filters of a file */
};

static void refuse(struct parse *p, struct tarn_slice key, struct tarn_slice item, const char *why)
{
    tarn_format__refuse(p->o, false,
                        tarn_arena_printf(p->arena, "%.*s: %.*s %s", TARN_SLICE_ARG(key),
                                          (int)TARN_MIN(item.size, (size_t)100),
                                          (const char *)item.data, why));
}

/* The option of one column; absent also where its name has a dot, as Paimon passes such options over. */
static struct tarn_slice detail(const struct parse *p, const struct tarn_file_index_spec *spec,
                                const char *what)
{
    struct tarn_slice name = p->schema->fields[spec->column].name;
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    if (memchr(name.data, '.', name.size) != NULL)
        return (struct tarn_slice){0};
    tarn_buf_printf(&key, PREFIX "%s.%.*s.%s", tarn_index__kind_name(spec->kind),
                    TARN_SLICE_ARG(name), what);
    return tarn_format__trim(tarn_schema_option(p->schema, tarn_buf_cstr(&key)));
}

static bool take_number(struct tarn_slice text, int64_t min, int64_t max, int64_t *out)
{
    struct tarn_status *s = text.size == 0 ? TARN_OK : tarn_parse_i64(text, out);
    bool fine = s == TARN_OK && *out >= min && *out <= max;
    tarn_status_free(s);
    return fine;
}

static bool take_fpp(struct tarn_slice text, double *out)
{
    TARN_OWN(tarn_free_drop) char *copy = tarn_slice_dup(text);
    char *end = NULL;
    if (text.size == 0)
        return true;
    *out = strtod(copy, &end);
    return end != copy && *end == 0 && *out > 0 && *out < 1;
}

/* What is wrong with a bloom filter's options; NULL: nothing. */
static const char *take_bloom(struct parse *p, struct tarn_file_index_spec *spec)
{
    int64_t items = BLOOM_ITEMS, size;
    spec->fpp = BLOOM_FPP;
    if (!take_number(detail(p, spec, "items"), 1, INT32_MAX, &items))
        return "has items that are no number above 0";
    if (!take_fpp(detail(p, spec, "fpp"), &spec->fpp))
        return "has an fpp that is not between 0 and 1";
    spec->items = (int32_t)items;
    size = tarn_file_index_bloom_size(spec->items, spec->fpp, NULL);
    if (size < 0 || p->bloom_size + size > TARN_FILE_INDEX_MEMORY_MAX)
        return "makes the bloom filters of a file larger than 64 MiB";
    p->bloom_size += size;
    return NULL;
}

static const char *take_bitmap(struct parse *p, struct tarn_file_index_spec *spec)
{
    int64_t version = 2;
    struct tarn_slice size = detail(p, spec, "index-block-size");
    spec->block_size = BLOCK_SIZE;
    if (!take_number(detail(p, spec, "version"), 1, 2, &version))
        return "has a version that is neither 1 nor 2";
    spec->version = (int)version;
    struct tarn_status *s = size.size == 0 ? TARN_OK : tarn_parse_size(size, &spec->block_size);
    bool fine = s == TARN_OK;
    tarn_status_free(s);
    return fine ? NULL : "has an index-block-size that is no size such as 16 kb";
}

static bool is_known(const struct parse *p, const struct tarn_file_index_spec *spec)
{
    for (size_t i = 0; i < p->count; i++)
        if (p->specs[i].column == spec->column && p->specs[i].kind == spec->kind)
            return true;
    return false;
}

static bool takes(enum tarn_file_index_kind kind, const struct tarn_type *type)
{
    if (kind == TARN_FILE_INDEX_BLOOM)
        return tarn_index__bloom_takes(type);
    return kind == TARN_FILE_INDEX_BITMAP ? tarn_index__bitmap_takes(type)
                                          : tarn_index__bsi_takes(type);
}

static void take_item(struct parse *p, struct tarn_slice key, struct tarn_slice item,
                      enum tarn_file_index_kind kind)
{
    struct tarn_file_index_spec spec = {.column = tarn_schema_find(p->schema, item), .kind = kind};
    if (item.size > 0 && item.data[item.size - 1] == ']' &&
        memchr(item.data, '[', item.size) != NULL) {
        refuse(p, key, item, "(a key of a map)");
        return;
    }
    if (spec.column < 0) {
        refuse(p, key, item, "is no column");
        return;
    }
    const struct tarn_type *type = p->schema->fields[spec.column].type;
    if (!takes(kind, type)) {
        refuse(p, key, item, "is of a type that such an index doesn't take");
        return;
    }
    if (is_known(p, &spec))
        return;
    const char *wrong = kind == TARN_FILE_INDEX_BLOOM    ? take_bloom(p, &spec)
                        : kind == TARN_FILE_INDEX_BITMAP ? take_bitmap(p, &spec)
                                                         : NULL;
    if (wrong != NULL)
        refuse(p, key, item, wrong);
    else
        p->specs[p->count++] = spec;
}

static void take_list(struct parse *p, const struct tarn_pair *option)
{
    struct tarn_slice names = option->value;
    size_t before = sizeof PREFIX - 1, behind = sizeof SUFFIX - 1;
    struct tarn_slice type =
        tarn_slice_of(option->key.data + before, option->key.size - before - behind);
    enum tarn_file_index_kind kind = 0;
    while (kind < TARN_FILE_INDEX_KINDS && !tarn_slice_is(type, tarn_index__kind_name(kind)))
        kind++;
    if (kind == TARN_FILE_INDEX_KINDS) {
        refuse(p, option->key, names, "(indexes of this type aren't written)");
        return;
    }
    for (size_t i = 0, start = 0; i <= names.size; i++) {
        if (i < names.size && names.data[i] != ',')
            continue;
        take_item(p, option->key, tarn_format__trim(tarn_slice_of(names.data + start, i - start)),
                  kind);
        start = i + 1;
    }
}

static bool is_list(struct tarn_slice key)
{
    size_t behind = sizeof SUFFIX - 1;
    return key.size > sizeof PREFIX - 1 + behind &&
           tarn_slice_starts_with(key, tarn_slice_str(PREFIX)) &&
           memcmp(key.data + key.size - behind, SUFFIX, behind) == 0;
}

void tarn_format__parse_indexes(const struct tarn_schema *schema, struct tarn_arena *arena,
                                struct tarn_options *o)
{
    struct parse p = {.schema = schema, .arena = arena, .o = o};
    for (size_t i = 0; i < schema->option_count; i++) {
        if (!is_list(schema->options[i].key))
            continue;
        if (p.specs == NULL)
            p.specs = tarn_arena_calloc(arena, TARN_FILE_INDEX_KINDS * schema->field_count + 1,
                                        sizeof *p.specs);
        take_list(&p, &schema->options[i]);
    }
    o->file_indexes = p.specs;
    o->file_index_count = p.count;
}
