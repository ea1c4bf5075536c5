/*
 * Each index gathers what it needs of its column: a bloom filter its bits, a bitmap index each distinct value with its
 * rows, as the distances between them. The order of Java's hash maps is computed when all is known.
 */
#include "format/file_index_write.h"

#include "base/map.h"
#include "format/file_index_internal.h"
#include "format/row.h"
#include "format/value_internal.h"

#include <math.h>

#define MAGIC UINT64_C(0x00054e4ed01a35ae)
#define VALUE_OVERHEAD                                                                             \
    200              /* bytes of a distinct value, about: itself, its key in the map, its place */
#define BINS_MIN 16  /* of a Java hash map */
#define BINS_TREE 64 /* from here on a full bin becomes a tree; below, there are more bins */
#define BIN_FULL 8

struct distinct { /* one value of a bitmap index */
    struct tarn_slice bytes;
    uint32_t first, last, count; /* its rows */
    struct tarn_buf more;        /* distances of those behind the first, 7 bits a byte */
    int32_t hash;                /* Java's */
    int32_t offset,
        length; /* of its rows among the bodies; length -1: one row, which the offset is */
};

struct one { /* index */
    const struct tarn_file_index_spec *spec;
    const struct tarn_field *field;
    bool given_up;
    uint32_t row_count;
    struct tarn_buf bits; /* of a bloom filter */
    int32_t hash_count;
    struct tarn_map *values; /* of a bitmap: struct distinct */
    bool asked_again;        /* for a value that is there, since the last new one */
    struct distinct nulls;
    struct tarn_arena *arena;
    struct tarn_buf numbers,
        present; /* of a bit-slice index: of each row an int64_t, and a bool: it isn't null */
};

struct tarn_file_index_writer {
    struct one *ones; /* as options->file_indexes */
    size_t count;
    int64_t held; /* bytes of all bitmaps, about */
};

void tarn_index__put(struct tarn_buf *out, uint64_t value, size_t size)
{
    while (size-- > 0)
        tarn_buf_add_byte(out, (uint8_t)(value >> (8 * size)));
}

const char *tarn_index__kind_name(enum tarn_file_index_kind kind)
{
    static const char *const names[] = {"bloom-filter", "bitmap", "bsi"};
    return names[kind];
}

/* ---- the order of Java's hash maps */

struct place {
    uint32_t hash;
    size_t index; /* in order of insertion */
};

static uint32_t spread(int32_t hash)
{
    uint32_t h = (uint32_t)hash;
    return h ^ h >> 16;
}

enum filled {      /* how a map was */
              PUT, /* it grows once it is full; the new one goes to the end of its bin */
              COMPUTED, /* computeIfAbsent: it grows when it is asked again; the new one goes to the front of its bin */
              COMPUTED_AGAIN /* and it was asked for one that it had since the last was new */
};

/* How many bins the map has when all are in. A small map also grows where one bin gets long. */
static void more_bins(const struct place *places, size_t count, uint32_t *bins, uint8_t *filled)
{
    *bins *= 2;
    memset(filled, 0, BINS_TREE);
    for (size_t i = 0; i < count && *bins < BINS_TREE; i++)
        filled[places[i].hash & (*bins - 1)]++;
}

static uint32_t count_bins(const struct place *places, size_t count, enum filled how)
{
    bool early = how == PUT;
    uint32_t bins = BINS_MIN;
    uint8_t filled[BINS_TREE] = {0};
    for (size_t i = 0; i < count; i++) {
        if (!early && 4 * i > 3 * (size_t)bins)
            more_bins(places, i, &bins, filled);
        if (bins < BINS_TREE && ++filled[places[i].hash & (bins - 1)] >= BIN_FULL + early)
            more_bins(places, i + 1, &bins, filled);
        if (early && 4 * (i + 1) > 3 * (size_t)bins)
            more_bins(places, i + 1, &bins, filled);
    }
    if (how == COMPUTED_AGAIN && 4 * count > 3 * (size_t)bins)
        bins *= 2;
    return bins;
}

static int by_bin(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

/* Sorts what is in, given in order of insertion, as the map is walked. */
static void walk_order(struct place *places, size_t count, enum filled how)
{
    uint32_t bins = count_bins(places, count, how);
    bool early = how == PUT;
    for (size_t i = 0; i < count; i++) {
        places[i].hash &= bins - 1;
        places[i].index = early ? places[i].index : SIZE_MAX - places[i].index;
    }
    qsort(places, count, sizeof *places, by_bin);
    for (size_t i = 0; i < count && !early; i++)
        places[i].index = SIZE_MAX - places[i].index;
}

/* String.hashCode, over UTF-16. */
static uint32_t string_hash(struct tarn_slice text)
{
    uint32_t hash = 0, code;
    for (size_t at = 0; at < text.size;) {
        at += tarn_format__utf8_next(tarn_slice_of(text.data + at, text.size - at), &code);
        if (code >= 0x10000) {
            hash = 31 * hash + (0xd800 + ((code - 0x10000) >> 10));
            code = 0xdc00 + ((code - 0x10000) & 0x3ff);
        }
        hash = 31 * hash + code;
    }
    return hash;
}

/* ---- values of a bitmap index */

static uint64_t number_of(struct tarn_slice bytes)
{
    uint64_t number = 0;
    for (size_t i = 0; i < bytes.size; i++)
        number = number << 8 | bytes.data[i];
    return number;
}

static bool is_text(const struct tarn_type *type)
{
    return type->id == TARN_TYPE_CHAR || type->id == TARN_TYPE_VARCHAR;
}

static int32_t java_hash(const struct tarn_type *type, struct tarn_slice bytes)
{
    uint64_t number = is_text(type) ? 0 : number_of(bytes);
    switch (type->id) {
    case TARN_TYPE_CHAR:
    case TARN_TYPE_VARCHAR:
        return tarn_bytes_hash(bytes);
    case TARN_TYPE_BOOLEAN:
        return number != 0 ? 1231 : 1237;
    case TARN_TYPE_TINYINT:
        return (int8_t)number;
    case TARN_TYPE_SMALLINT:
        return (int16_t)number;
    default:
        return (int32_t)(uint32_t)(bytes.size == 8 ? number ^ number >> 32 : number);
    }
}

/* As the index holds it, texts without their length. */
static struct tarn_slice encode(const struct tarn_type *type, const struct tarn_value *v,
                                uint8_t buffer[8])
{
    size_t width = tarn_row_element_size(type);
    uint64_t number = (uint64_t)v->integer;
    if (is_text(type))
        return v->bytes;
    if (type->id == TARN_TYPE_FLOAT || type->id == TARN_TYPE_DOUBLE)
        number = (uint64_t)tarn_index__real_bits(type, v->real);
    else if (type->id == TARN_TYPE_TIMESTAMP || type->id == TARN_TYPE_TIMESTAMP_LTZ)
        number = (uint64_t)tarn_index__time_number(type, v);
    for (size_t i = 0; i < width; i++)
        buffer[i] = (uint8_t)(number >> (8 * (width - 1 - i)));
    return tarn_slice_of(buffer, width);
}

static void put_value(const struct tarn_type *type, struct tarn_slice bytes, struct tarn_buf *out)
{
    if (is_text(type))
        tarn_index__put(out, bytes.size, 4);
    tarn_buf_add_slice(out, bytes);
}

/* ---- rows */

/* What the set grew by. */
static int64_t add_row(struct distinct *d, uint32_t row)
{
    size_t before = d->more.capacity;
    if (d->count++ == 0) {
        d->first = row;
    } else {
        uint32_t distance = row - d->last;
        for (; distance >= 0x80; distance >>= 7)
            tarn_buf_add_byte(&d->more, (uint8_t)(distance | 0x80));
        tarn_buf_add_byte(&d->more, (uint8_t)distance);
    }
    d->last = row;
    return (int64_t)(d->more.capacity - before);
}

static uint32_t next_distance(const uint8_t **at)
{
    uint32_t distance = 0;
    int shift = 0;
    while (**at >= 0x80) {
        distance |= (uint32_t)(*(*at)++ & 0x7f) << shift;
        shift += 7;
    }
    return distance | (uint32_t) * (*at)++ << shift;
}

static void put_rows(struct tarn_index__rows_writer *w, const struct distinct *d,
                     struct tarn_buf *out)
{
    const uint8_t *at = d->more.data;
    uint32_t row = d->first;
    size_t n = 0;
    for (uint32_t i = 0; i < d->count; i++) {
        uint32_t next = i == 0 ? row : row + next_distance(&at);
        if (n > 0 && next >> 16 != row >> 16) {
            tarn_roaring_add(&w->bitmap, (uint16_t)(row >> 16), w->lows, n);
            n = 0;
        }
        row = next;
        w->lows[n++] = (uint16_t)row;
    }
    if (n > 0)
        tarn_roaring_add(&w->bitmap, (uint16_t)(row >> 16), w->lows, n);
    tarn_roaring_take(&w->bitmap, out);
}

/* ---- a writer */

int64_t tarn_file_index_bloom_size(int32_t items, double fpp, int32_t *hash_count)
{
    double bits = -items * log(fpp) / (log(2) * log(2));
    if (!(bits >= 0 && bits < INT32_MAX - 8))
        return -1;
    int64_t count = (int64_t)bits + (8 - (int64_t)bits % 8);
    if (hash_count != NULL)
        *hash_count =
            (int32_t)TARN_MAX(INT64_C(1), (int64_t)floor((double)count / items * log(2) + 0.5));
    return count / 8;
}

static void open_one(struct one *o, const struct tarn_field *field,
                     const struct tarn_file_index_spec *spec)
{
    *o = (struct one){.spec = spec, .field = field};
    if (spec->kind == TARN_FILE_INDEX_BLOOM) {
        int64_t size = tarn_file_index_bloom_size(spec->items, spec->fpp, &o->hash_count);
        tarn_buf_add_zeros(&o->bits, (size_t)size);
    } else if (spec->kind == TARN_FILE_INDEX_BITMAP) {
        o->arena = tarn_arena_new();
        o->values = tarn_map_new();
    }
}

struct tarn_file_index_writer *tarn_file_index_writer_new(const struct tarn_schema *schema,
                                                          const struct tarn_options *options)
{
    if (options->file_index_count == 0)
        return NULL;
    struct tarn_file_index_writer *w = tarn_calloc(1, sizeof *w);
    w->count = options->file_index_count;
    w->ones = tarn_calloc(w->count, sizeof *w->ones);
    for (size_t i = 0; i < w->count; i++)
        open_one(&w->ones[i], &schema->fields[options->file_indexes[i].column],
                 &options->file_indexes[i]);
    return w;
}

static void forget_values(struct one *o)
{
    struct tarn_slice key;
    void *value;
    size_t cursor = 0;
    while (o->values != NULL && tarn_map_next(o->values, &cursor, &key, &value))
        tarn_buf_drop(&((struct distinct *)value)->more);
    tarn_buf_drop(&o->nulls.more);
    tarn_map_drop(&o->values);
    tarn_arena_free(o->arena);
    o->arena = NULL;
    tarn_buf_drop(&o->numbers);
    tarn_buf_drop(&o->present);
}

void tarn_file_index_writer_free(struct tarn_file_index_writer *w)
{
    if (w == NULL)
        return;
    for (size_t i = 0; i < w->count; i++) {
        forget_values(&w->ones[i]);
        tarn_buf_drop(&w->ones[i].bits);
    }
    free(w->ones);
    free(w);
}

static void add_to_bloom(struct one *o, const struct tarn_value *value)
{
    uint64_t hash = tarn_index__bloom_hash(o->field->type, value);
    uint32_t bit_count = (uint32_t)o->bits.size * 8;
    for (int32_t i = 1; i <= o->hash_count; i++) {
        uint32_t at = tarn_index__bloom_bit(hash, i, bit_count);
        o->bits.data[at / 8] |= (uint8_t)(1u << (at % 8));
    }
}

/* What it takes. The smallest BIGINT has no positive counterpart, which is what the index would hold. */
static int64_t add_number(struct one *o, const struct tarn_value *value)
{
    const struct tarn_type *type = o->field->type;
    int64_t number = value->is_null ? 0 : value->integer;
    if (!value->is_null && type->id == TARN_TYPE_DECIMAL)
        number = (int64_t)value->decimal;
    else if (!value->is_null &&
             (type->id == TARN_TYPE_TIMESTAMP || type->id == TARN_TYPE_TIMESTAMP_LTZ))
        number = tarn_index__time_number(type, value);
    o->given_up = number == INT64_MIN;
    tarn_buf_add(&o->numbers, &number, sizeof number);
    tarn_buf_add_byte(&o->present, !value->is_null);
    return sizeof number + 1;
}

static struct distinct *find_value(struct tarn_file_index_writer *w, struct one *o,
                                   const struct tarn_value *value)
{
    uint8_t buffer[8];
    struct tarn_slice bytes = encode(o->field->type, value, buffer);
    struct distinct *d = tarn_map_find(o->values, bytes);
    o->asked_again = d != NULL;
    if (d != NULL)
        return d;
    d = tarn_arena_calloc(o->arena, 1, sizeof *d);
    d->bytes = tarn_arena_copy(o->arena, bytes);
    d->hash = java_hash(o->field->type, bytes);
    tarn_map_set(o->values, bytes, d);
    w->held += VALUE_OVERHEAD + 2 * (int64_t)bytes.size;
    return d;
}

void tarn_file_index_writer_add(struct tarn_file_index_writer *w, size_t index,
                                const struct tarn_value *value)
{
    struct one *o = &w->ones[index];
    if (o->given_up)
        return;
    if (o->spec->kind == TARN_FILE_INDEX_BLOOM) {
        if (!value->is_null)
            add_to_bloom(o, value);
        return;
    }
    if (o->spec->kind == TARN_FILE_INDEX_BSI)
        w->held += add_number(o, value);
    else
        w->held += add_row(value->is_null ? &o->nulls : find_value(w, o, value), o->row_count);
    o->row_count++;
    if (o->given_up)
        forget_values(o);
    if (w->held > TARN_FILE_INDEX_MEMORY_MAX || o->row_count == INT32_MAX) {
        forget_values(
            o); /* what it held isn't given to the others: as many rows would fill it again */
        o->given_up = true;
    }
}

/* ---- a bitmap index */

struct written { /* its values in the order of Java's map, with what they come to */
    struct distinct **values;
    size_t count;
    struct tarn_buf bodies;
};

static void collect(struct one *o, struct written *out)
{
    size_t n = tarn_map_count(o->values), cursor = 0, i = 0;
    struct place *places = tarn_calloc(n + 1, sizeof *places);
    struct distinct **listed = tarn_calloc(n + 1, sizeof(struct distinct *));
    struct tarn_slice key;
    void *value;
    while (tarn_map_next(o->values, &cursor, &key, &value)) {
        listed[i] = value;
        places[i] = (struct place){spread(listed[i]->hash), i};
        i++;
    }
    walk_order(places, n, o->asked_again ? COMPUTED_AGAIN : COMPUTED);
    out->values = tarn_calloc(n + 1, sizeof(struct distinct *));
    out->count = n;
    for (i = 0; i < n; i++)
        out->values[i] = listed[places[i].index];
    free(listed);
    free(places);
}

/* Where the rows of each value are; a single one is its own place. */
static void lay_out(struct one *o, struct written *out)
{
    struct tarn_index__rows_writer *rows = tarn_calloc(1, sizeof *rows);
    if (o->nulls.count > 0) {
        put_rows(rows, &o->nulls, &out->bodies);
        o->nulls.length = (int32_t)out->bodies.size;
    }
    if (o->nulls.count == 1) { /* its length is said all the same */
        o->nulls.offset = -1 - (int32_t)o->nulls.first;
        tarn_buf_clear(&out->bodies);
    }
    for (size_t i = 0; i < out->count; i++) {
        struct distinct *d = out->values[i];
        size_t begin = out->bodies.size;
        d->length = -1;
        d->offset = d->count == 1 ? -1 - (int32_t)d->first : (int32_t)begin;
        if (d->count > 1) {
            put_rows(rows, d, &out->bodies);
            d->length = (int32_t)(out->bodies.size - begin);
        }
    }
    tarn_roaring_fini(&rows->bitmap);
    free(rows);
}

static int compare_values(const void *a, const void *b, void *arg)
{
    const struct distinct *x = *(const struct distinct *const *)a;
    const struct distinct *y = *(const struct distinct *const *)b;
    const struct tarn_type *type = arg;
    if (is_text(type))
        return tarn_slice_compare(x->bytes, y->bytes);
    bool real = type->id == TARN_TYPE_FLOAT || type->id == TARN_TYPE_DOUBLE;
    int shift = 64 - 8 * (int)x->bytes.size;
    int64_t left = (int64_t)(number_of(x->bytes) << shift);
    int64_t right = (int64_t)(number_of(y->bytes) << shift);
    if (real && left < 0 && right < 0) /* sign and magnitude */
        return (left < right) - (left > right);
    return (left > right) - (left < right);
}

static size_t entry_size(const struct tarn_type *type, const struct distinct *d)
{
    return d->bytes.size + (is_text(type) ? 4 : 0) + 8;
}

/* Values in order, in blocks of about block_size; before them each block's first value and place. */
static void put_blocks(const struct one *o, struct written *w, struct tarn_buf *out)
{
    const struct tarn_type *type = o->field->type;
    TARN_OWN(tarn_buf_drop) struct tarn_buf heads = {0}, blocks = {0};
    int32_t count = 0;
    qsort_r(w->values, w->count, sizeof *w->values, compare_values, (void *)(uintptr_t)type);
    for (size_t i = 0, end; i < w->count; i = end, count++) {
        size_t size = 4 + entry_size(type, w->values[i]);
        put_value(type, w->values[i]->bytes, &heads);
        tarn_index__put(&heads, blocks.size, 4);
        for (end = i + 1; end < w->count; end++) {
            size += entry_size(type, w->values[end]);
            if ((int64_t)size > o->spec->block_size)
                break;
        }
        tarn_index__put(&blocks, end - i, 4);
        for (size_t k = i; k < end; k++) {
            put_value(type, w->values[k]->bytes, &blocks);
            tarn_index__put(&blocks, (uint32_t)w->values[k]->offset, 4);
            tarn_index__put(&blocks, (uint32_t)w->values[k]->length, 4);
        }
    }
    tarn_index__put(out, (uint32_t)count, 4);
    tarn_buf_add_slice(out, tarn_buf_slice(&heads));
    tarn_index__put(out, blocks.size, 4);
    tarn_buf_add_slice(out, tarn_buf_slice(&blocks));
}

static void put_bitmap(struct one *o, struct tarn_buf *out)
{
    struct written w = {0};
    collect(o, &w);
    lay_out(o, &w);
    tarn_index__put(out, (uint64_t)o->spec->version, 1);
    tarn_index__put(out, o->row_count, 4);
    tarn_index__put(out, w.count, 4);
    tarn_index__put(out, o->nulls.count > 0, 1);
    if (o->nulls.count > 0)
        tarn_index__put(out, (uint32_t)o->nulls.offset, 4);
    if (o->spec->version == 1) {
        for (size_t i = 0; i < w.count; i++) {
            put_value(o->field->type, w.values[i]->bytes, out);
            tarn_index__put(out, (uint32_t)w.values[i]->offset, 4);
        }
    } else {
        if (o->nulls.count > 0)
            tarn_index__put(out, (uint32_t)o->nulls.length, 4);
        put_blocks(o, &w, out);
    }
    tarn_buf_add_slice(out, tarn_buf_slice(&w.bodies));
    tarn_buf_drop(&w.bodies);
    free(w.values);
}

/* ---- the container */

static const char *type_name(const struct one *o)
{
    return tarn_index__kind_name(o->spec->kind);
}

/* A column is found among the options by Column.hashCode, then by its name among those of a type, then by its name again. */
static uint32_t column_hash(const struct one *o)
{
    return ((31 + string_hash(o->field->name)) * 31 + 0) * 31 + 1237 /* of false */;
}

struct listing {
    struct one **items;
    size_t count;
};

static void sort_listing(struct listing *l, enum filled how, uint32_t (*hash)(const struct one *))
{
    struct place *places = tarn_calloc(l->count + 1, sizeof *places);
    struct one **was = tarn_calloc(l->count + 1, sizeof(struct one *));
    for (size_t i = 0; i < l->count; i++) {
        was[i] = l->items[i];
        places[i] = (struct place){spread((int32_t)hash(was[i])), i};
    }
    walk_order(places, l->count, how);
    for (size_t i = 0; i < l->count; i++)
        l->items[i] = was[places[i].index];
    free(was);
    free(places);
}

static uint32_t name_hash(const struct one *o)
{
    return string_hash(o->field->name);
}

static bool has_column(const struct listing *l, const struct tarn_field *field)
{
    for (size_t i = 0; i < l->count; i++)
        if (l->items[i]->field == field)
            return true;
    return false;
}

/* Those of one kind in the order in which Java has their columns; adds what `columns` hasn't yet. */
static void list_kind(struct listing *all, enum tarn_file_index_kind of, struct listing *columns,
                      enum filled *how)
{
    struct listing kind = {tarn_calloc(all->count + 1, sizeof(struct one *)), 0};
    for (size_t i = 0; i < all->count; i++)
        if (all->items[i]->spec->kind == of)
            kind.items[kind.count++] = all->items[i];
    sort_listing(&kind, PUT, name_hash);
    for (size_t i = 0; i < kind.count; i++) {
        if (kind.items[i]->given_up)
            continue;
        *how = has_column(columns, kind.items[i]->field) ? COMPUTED_AGAIN : COMPUTED;
        if (*how == COMPUTED)
            columns->items[columns->count++] = kind.items[i];
    }
    free(kind.items);
}

/* One index for each column, in the container's order. */
static void list_columns(struct tarn_file_index_writer *w, struct listing *columns)
{
    struct listing all = {tarn_calloc(w->count + 1, sizeof(struct one *)), 0};
    enum filled how = COMPUTED;
    for (size_t i = 0; i < w->count; i++) {
        how = has_column(&all, w->ones[i].field) ? COMPUTED_AGAIN : COMPUTED;
        if (how == COMPUTED)
            all.items[all.count++] = &w->ones[i];
    }
    sort_listing(&all, how, column_hash);
    struct listing sorted = {tarn_calloc(w->count + 1, sizeof(struct one *)), 0};
    for (size_t i = 0; i < all.count; i++)
        for (size_t k = 0; k < w->count; k++)
            if (w->ones[k].field == all.items[i]->field)
                sorted.items[sorted.count++] = &w->ones[k];
    columns->items = tarn_calloc(w->count + 1, sizeof(struct one *));
    for (enum tarn_file_index_kind of = 0; of < TARN_FILE_INDEX_KINDS; of++)
        list_kind(&sorted, of, columns, &how);
    sort_listing(columns, how, name_hash);
    free(sorted.items);
    free(all.items);
}

static void put_name(struct tarn_slice modified, struct tarn_buf *out)
{
    tarn_index__put(out, modified.size, 2);
    tarn_buf_add_slice(out, modified);
}

struct container {
    struct tarn_buf head, body;
    size_t head_size; /* of what the container begins with, head and all */
};

static void put_index(struct one *o, struct container *c)
{
    size_t begin = c->body.size;
    if (o->spec->kind == TARN_FILE_INDEX_BSI) {
        tarn_index__put_slices(tarn_buf_slice(&o->numbers), tarn_buf_slice(&o->present), &c->body);
    } else if (o->spec->kind == TARN_FILE_INDEX_BLOOM) {
        tarn_index__put(&c->body, (uint32_t)o->hash_count, 4);
        tarn_buf_add_slice(&c->body, tarn_buf_slice(&o->bits));
    } else {
        put_bitmap(o, &c->body);
    }
    put_name(tarn_slice_str(type_name(o)), &c->head);
    tarn_index__put(&c->head, c->head_size + begin, 4);
    tarn_index__put(&c->head, c->body.size - begin, 4);
}

static struct one *find_one(struct tarn_file_index_writer *w, const struct tarn_field *field,
                            enum tarn_file_index_kind of)
{
    for (size_t i = 0; i < w->count; i++)
        if (w->ones[i].field == field && w->ones[i].spec->kind == of && !w->ones[i].given_up)
            return &w->ones[i];
    return NULL;
}

static size_t named_size(const struct tarn_file_index_writer *w, const struct listing *columns)
{
    size_t size =
        8 + 4 + 4 + 4 + 4; /* magic, version, size of the head, count; and the 0 behind the names */
    for (size_t i = 0; i < columns->count; i++) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf name = {0};
        tarn_index__spell(columns->items[i]->field->name, &name);
        size += 2 + name.size + 4;
    }
    for (size_t i = 0; i < w->count; i++)
        if (!w->ones[i].given_up)
            size += 2 + strlen(type_name(&w->ones[i])) + 8;
    return size;
}

void tarn_file_index_writer_finish(struct tarn_file_index_writer *w, struct tarn_buf *out)
{
    struct listing columns = {0};
    list_columns(w, &columns);
    struct container c = {.head_size = named_size(w, &columns)};
    for (size_t i = 0; i < columns.count; i++) {
        const struct tarn_field *field = columns.items[i]->field;
        struct one *kinds[TARN_FILE_INDEX_KINDS];
        size_t count = 0;
        TARN_OWN(tarn_buf_drop) struct tarn_buf name = {0};
        tarn_index__spell(field->name, &name);
        put_name(tarn_buf_slice(&name), &c.head);
        for (enum tarn_file_index_kind of = 0; of < TARN_FILE_INDEX_KINDS; of++) {
            kinds[count] = find_one(w, field, of);
            count += kinds[count] != NULL;
        }
        tarn_index__put(&c.head, count, 4);
        for (size_t k = 0; k < count; k++)
            put_index(kinds[k], &c);
    }
    if (columns.count > 0) {
        tarn_index__put(out, MAGIC, 8);
        tarn_index__put(out, 1, 4);
        tarn_index__put(out, c.head_size, 4);
        tarn_index__put(out, columns.count, 4);
        tarn_buf_add_slice(out, tarn_buf_slice(&c.head));
        tarn_index__put(out, 0, 4);
        tarn_buf_add_slice(out, tarn_buf_slice(&c.body));
    }
    tarn_buf_drop(&c.head);
    tarn_buf_drop(&c.body);
    free(columns.items);
}
