/* file_format - in which format, and how compressed, the new data files of a table are. */
#include "format/options_judge.h"

#include <strings.h>

static const char *const known[] = {"parquet", "orc", "avro"};

static const char *find_format(struct tarn_slice word)
{
    for (size_t i = 0; i < TARN_COUNT_OF(known); i++) {
        if (word.size == strlen(known[i]) &&
            strncasecmp((const char *)word.data, known[i], word.size) == 0)
            return known[i];
    }
    return NULL;
}

/* Takes the next pair off "0:avro,1:zstd"; false at the end, or where it is none (then *level is -1). */
static bool next_pair(struct tarn_slice *map, int64_t *level, struct tarn_slice *value)
{
    if (map->size == 0)
        return false;
    const uint8_t *comma = memchr(map->data, ',', map->size);
    size_t size = comma == NULL ? map->size : (size_t)(comma - map->data);
    struct tarn_slice pair = tarn_slice_of(map->data, size);
    const uint8_t *colon = pair.size == 0 ? NULL : memchr(pair.data, ':', pair.size);

    *map = comma == NULL ? (struct tarn_slice){0} : tarn_slice_of(comma + 1, map->size - size - 1);
    *level = -1;
    *value = pair;
    if (colon == NULL)
        return false;
    size_t before = (size_t)(colon - pair.data);
    struct tarn_status *s =
        tarn_parse_i64(tarn_format__trim(tarn_slice_of(pair.data, before)), level);
    if (s != TARN_OK)
        *level = -1;
    tarn_status_free(s);
    *value = tarn_format__trim(tarn_slice_of(colon + 1, pair.size - before - 1));
    return *level >= 0;
}

static struct tarn_slice of_level(struct tarn_slice map, int level, struct tarn_slice fallback)
{
    struct tarn_slice value;
    int64_t at;

    while (next_pair(&map, &at, &value)) {
        if (at == level)
            return value;
    }
    return fallback;
}

const char *tarn_options_file_format(const struct tarn_options *o, int level)
{
    return find_format(of_level(o->file_format_per_level, level, o->file_format));
}

struct tarn_slice tarn_options_file_compression(const struct tarn_options *o, int level)
{
    const char *format = tarn_options_file_format(o, level);

    if (o->avro_codec.size > 0 && format != NULL && strcmp(format, "avro") == 0)
        return o->avro_codec;
    return of_level(o->file_compression_per_level, level, o->file_compression);
}

const char *tarn_options_changelog_format(const struct tarn_options *o, int level)
{
    return o->changelog_file_format.data == NULL ? tarn_options_file_format(o, level)
                                                 : find_format(o->changelog_file_format);
}

struct tarn_slice tarn_options_changelog_compression(const struct tarn_options *o, int level)
{
    return o->changelog_file_compression.data == NULL ? tarn_options_file_compression(o, level)
                                                      : o->changelog_file_compression;
}

int64_t tarn_options_block_size(const struct tarn_options *o, int level)
{
    const char *format = tarn_options_file_format(o, level);

    if (o->row_group_size == 0 && format != NULL && strcmp(format, "orc") == 0)
        return o->orc_stripe_size;
    return o->row_group_size;
}

/* ---- what a format doesn't hold, or Java's reader and writer of it don't */

static bool is_sized_binary(const struct tarn_type *type)
{
    return type->id == TARN_TYPE_BINARY ||
           (type->id == TARN_TYPE_VARBINARY && type->length != TARN_TYPE_LENGTH_MAX);
}

static bool is_fine_time(const struct tarn_type *type)
{
    return (type->id == TARN_TYPE_TIME && type->precision > 3) ||
           ((type->id == TARN_TYPE_TIMESTAMP || type->id == TARN_TYPE_TIMESTAMP_LTZ) &&
            type->precision > 6);
}

static bool lacks(const char *format, const struct tarn_type *type)
{
    if (type == NULL)
        return false;
    for (size_t i = 0; i < type->field_count; i++) {
        if (lacks(format, type->fields[i].type))
            return true;
    }
    if (strcmp(format, "orc") == 0 && (is_sized_binary(type) || type->id == TARN_TYPE_MULTISET))
        return true;
    if (strcmp(format, "avro") == 0 && is_fine_time(type))
        return true;
    return lacks(format, type->key) || lacks(format, type->element);
}

static void judge_format(const struct tarn_schema *schema, struct tarn_arena *arena,
                         const char *key, struct tarn_slice word, struct tarn_options *o)
{
    const char *format = find_format(word);

    if (format == NULL) {
        tarn_format__refuse(o, true,
                            tarn_arena_printf(arena, "%s = %.*s", key,
                                              (int)TARN_MIN(word.size, (size_t)200),
                                              (const char *)word.data));
        return;
    }
    for (size_t i = 0; i < schema->field_count && strcmp(format, "parquet") != 0; i++) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf type = {0};

        if (!lacks(format, schema->fields[i].type))
            continue;
        tarn_type_print(schema->fields[i].type, &type);
        tarn_format__refuse(
            o, false,
            tarn_arena_printf(arena, "%s = %s with column %.*s %.*s, which it doesn't hold", key,
                              format, TARN_SLICE_ARG(schema->fields[i].name),
                              (int)TARN_MIN(type.size, (size_t)200), (const char *)type.data));
        return;
    }
}

void tarn_format__judge_formats(const struct tarn_schema *schema, struct tarn_arena *arena,
                                struct tarn_options *o)
{
    struct tarn_slice map = o->file_format_per_level, word;
    int64_t level = 0;

    judge_format(schema, arena, "file.format", tarn_format__trim(o->file_format), o);
    if (o->changelog_file_format.data != NULL)
        judge_format(schema, arena, "changelog-file.format", o->changelog_file_format, o);
    while (next_pair(&map, &level, &word))
        judge_format(schema, arena, "file.format.per.level", word, o);
    if (level < 0)
        tarn_format__refuse(o, true,
                            tarn_arena_printf(arena, "file.format.per.level = %.*s",
                                              (int)TARN_MIN(word.size, (size_t)200),
                                              (const char *)word.data));
}
