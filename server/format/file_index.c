/*
 * The container of file indexes, bloom filters, and the predicate over all of them. Nodes answer two
 * questions, as where statistics are asked: can it be true for a row, can it be false? First without
 * looking at rows; only if the file may match then, and indexes of rows could tell more, with them.
 */
#include "format/file_index_internal.h"

#include "format/predicate_internal.h"

#include <stdarg.h>
#include <stdio.h>

#define MAGIC UINT64_C(0x00054e4ed01a35ae)
#define CONTAINER_VERSION 1
#define EMPTY_INDEX (-1)       /* start of an index without rows */
#define BLOOM_HASHES_MAX 10000 /* hash functions of a bloom filter; 1e-300 of errors takes 1000 */
#define BLOOM_SIZE_MAX (INT32_MAX / 8)

struct tarn_status *tarn_index__malformed(const char *format, ...)
{
    char what[200];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return tarn_status_new(TARN_FILE_INDEX_MALFORMED, "file index: %s", what);
}

/* ---- bytes */

struct tarn_slice tarn_index__take_bytes(struct tarn_index__reader *r, int64_t size)
{
    if (r->failed || size < 0 || size > r->end - r->cursor) {
        r->failed = true;
        return (struct tarn_slice){0};
    }
    struct tarn_slice bytes = tarn_slice_of(r->cursor, (size_t)size);
    r->cursor += size;
    return bytes;
}

uint64_t tarn_index__take(struct tarn_index__reader *r, size_t size)
{
    uint64_t value = 0;
    struct tarn_slice bytes = tarn_index__take_bytes(r, (int64_t)size);
    for (size_t i = 0; i < bytes.size; i++)
        value = value << 8 | bytes.data[i];
    return value;
}

int32_t tarn_index__take_int(struct tarn_index__reader *r)
{
    return (int32_t)tarn_index__take(r, 4);
}

/* ---- the container */

struct column { /* one that the predicate looks at */
    int column;
    const struct tarn_type *type, *file_type;
    struct tarn_buf name; /* in the container's spelling; empty: the file hasn't got it */
    struct tarn_slice bitmap, bloom;
};

struct judge {
    const struct tarn_predicate *where;
    const struct tarn_schema *schema;
    int64_t row_count;
    struct column *columns; /* as where->columns */
    struct tarn_index__budget budget;
    bool with_rows;
};

/* Java's modified UTF-8: NUL and what lies beyond the basic plane are spelled otherwise. */
static void add_modified(struct tarn_buf *out, uint32_t code)
{
    if (code >= 0x10000) {
        add_modified(out, 0xd800 + ((code - 0x10000) >> 10));
        add_modified(out, 0xdc00 + ((code - 0x10000) & 0x3ff));
        return;
    }
    if (code != 0 && code < 0x80) {
        tarn_buf_add_byte(out, (uint8_t)code);
        return;
    }
    if (code >= 0x800) {
        tarn_buf_add_byte(out, (uint8_t)(0xe0 | code >> 12));
        tarn_buf_add_byte(out, (uint8_t)(0x80 | (code >> 6 & 0x3f)));
    } else {
        tarn_buf_add_byte(out, (uint8_t)(0xc0 | code >> 6));
    }
    tarn_buf_add_byte(out, (uint8_t)(0x80 | (code & 0x3f)));
}

void tarn_index__spell(struct tarn_slice name, struct tarn_buf *out)
{
    uint32_t code;
    for (size_t at = 0; at < name.size;) {
        at += tarn_format__utf8_next(tarn_slice_of(name.data + at, name.size - at), &code);
        add_modified(out, code);
    }
}

/* Are the values of the file those of the column, although its type may have changed since? Where it
 * can only have grown wider they are. */
static bool same_values(const struct tarn_type *now, const struct tarn_type *then)
{
    bool integers = now->id >= TARN_TYPE_TINYINT && now->id <= TARN_TYPE_BIGINT &&
                    then->id >= TARN_TYPE_TINYINT && then->id <= now->id;
    bool texts = now->id == then->id && now->length >= then->length &&
                 (now->id == TARN_TYPE_VARCHAR || now->id == TARN_TYPE_VARBINARY);
    return integers || texts || tarn_type_equal(now, then, true);
}

/* "m[k]" may be the values of key k of map m. */
static bool may_be_nested(struct tarn_slice name)
{
    return name.size > 0 && name.data[name.size - 1] == ']' &&
           memchr(name.data, '[', name.size) != NULL;
}

static void prepare_column(struct judge *j, const struct tarn_schema *file_schema, size_t i)
{
    struct column *c = &j->columns[i];
    const struct tarn_field *now = &j->schema->fields[j->where->columns[i]];
    int at = tarn_schema_find_id(file_schema, now->id);
    c->column = j->where->columns[i];
    c->type = now->type;
    if (at < 0)
        return;
    c->file_type = file_schema->fields[at].type;
    if (same_values(c->type, c->file_type) && !may_be_nested(file_schema->fields[at].name))
        tarn_index__spell(file_schema->fields[at].name, &c->name);
}

static struct tarn_slice take_name(struct tarn_index__reader *r)
{
    return tarn_index__take_bytes(r, (int64_t)tarn_index__take(r, 2));
}

/* One index of the column: kept where it is of a kind we read. */
static struct tarn_status *take_index(struct tarn_slice file, struct tarn_index__reader *r,
                                      struct column *c)
{
    struct tarn_slice type = take_name(r);
    int64_t start = tarn_index__take_int(r), length = tarn_index__take_int(r);
    if (r->failed || c == NULL || start == EMPTY_INDEX)
        return TARN_OK;
    if (start < 0 || length < 0 || start > (int64_t)file.size ||
        length > (int64_t)file.size - start)
        return tarn_index__malformed("the index at %" PRId64 " with %" PRId64
                                     " bytes lies beyond its %zu bytes",
                                     start, length, file.size);
    struct tarn_slice bytes = tarn_slice_of(file.data + start, (size_t)length);
    if (tarn_slice_is(type, "bitmap"))
        c->bitmap = bytes;
    else if (tarn_slice_is(type, "bloom-filter"))
        c->bloom = bytes;
    return TARN_OK;
}

static struct column *find_column(struct judge *j, struct tarn_slice name)
{
    for (size_t i = 0; i < j->where->column_count && name.size > 0; i++)
        if (tarn_slice_equal(tarn_buf_slice(&j->columns[i].name), name))
            return &j->columns[i];
    return NULL;
}

static struct tarn_status *read_container(struct judge *j, struct tarn_slice file)
{
    struct tarn_index__reader r = {.cursor = file.data, .end = file.data + file.size};
    uint64_t magic = tarn_index__take(&r, 8);
    int32_t version = tarn_index__take_int(&r), head = tarn_index__take_int(&r);
    if (r.failed || magic != MAGIC)
        return tarn_index__malformed("the first bytes are not those of an index");
    if (version != CONTAINER_VERSION)
        return tarn_index__malformed("version %" PRId32 ": known is 1", version);
    if (head < r.cursor - file.data || (size_t)head > file.size)
        return tarn_index__malformed("a head of %" PRId32 " bytes", head);
    r.end = file.data + head;
    int32_t columns = tarn_index__take_int(&r);
    for (int32_t i = 0; i < columns && !r.failed; i++) {
        struct tarn_slice name = take_name(&r);
        struct column *c = find_column(j, name);
        j->budget.steps -= 1 + (int64_t)j->where->column_count / 8;
        int32_t count = tarn_index__take_int(&r);
        for (int32_t k = 0; k < count && !r.failed; k++)
            TARN_TRY(take_index(file, &r, c));
        if (count < 0)
            r.failed = true;
        if (j->budget.steps < 0)
            return TARN_OK;
    }
    return r.failed || columns < 0 ? tarn_index__malformed("the head is cut short") : TARN_OK;
}

/* ---- bloom filters */

/* Thomas Wang's mix of 64 bits; shifts to the right keep the sign. */
static uint64_t mix(int64_t number)
{
    uint64_t k = (uint64_t)number;
    k = ~k + (k << 21);
    k ^= (uint64_t)((int64_t)k >> 24);
    k = k + (k << 3) + (k << 8);
    k ^= (uint64_t)((int64_t)k >> 14);
    k = k + (k << 2) + (k << 4);
    k ^= (uint64_t)((int64_t)k >> 28);
    return k + (k << 31);
}

/* Java has one NaN. */
int64_t tarn_index__real_bits(const struct tarn_type *type, double real)
{
    float narrow = (float)real;
    int32_t bits32;
    int64_t bits64;
    memcpy(&bits32, &narrow, sizeof bits32);
    memcpy(&bits64, &real, sizeof bits64);
    if (type->id == TARN_TYPE_FLOAT)
        return real != real ? 0x7fc00000 : bits32;
    return real != real ? INT64_C(0x7ff8000000000000) : bits64;
}

bool tarn_index__bloom_takes(const struct tarn_type *type)
{
    return (tarn_index__bitmap_takes(type) && type->id != TARN_TYPE_BOOLEAN) ||
           type->id == TARN_TYPE_BINARY || type->id == TARN_TYPE_VARBINARY;
}

int64_t tarn_index__time_number(const struct tarn_type *type, const struct tarn_value *v)
{
    if (type->precision <= 3)
        return v->time.ms;
    return (int64_t)((uint64_t)v->time.ms * 1000 + (uint64_t)(v->time.ns / 1000));
}

uint64_t tarn_index__bloom_hash(const struct tarn_type *type, const struct tarn_value *v)
{
    switch (type->id) {
    case TARN_TYPE_CHAR:
    case TARN_TYPE_VARCHAR:
    case TARN_TYPE_BINARY:
    case TARN_TYPE_VARBINARY:
        return tarn_xxh64(v->bytes, 0);
    case TARN_TYPE_FLOAT:
    case TARN_TYPE_DOUBLE:
        return mix(tarn_index__real_bits(type, v->real));
    case TARN_TYPE_TIMESTAMP:
    case TARN_TYPE_TIMESTAMP_LTZ:
        return mix(tarn_index__time_number(type, v));
    default:
        return mix(v->integer);
    }
}

uint32_t tarn_index__bloom_bit(uint64_t hash, int32_t i, uint32_t bit_count)
{
    int32_t mixed = (int32_t)((uint32_t)hash + (uint32_t)i * (uint32_t)(hash >> 32));
    return (uint32_t)(mixed < 0 ? ~mixed : mixed) % bit_count;
}

static bool bloom_holds(struct tarn_slice bits, int32_t hash_count, uint64_t hash,
                        struct tarn_index__budget *budget)
{
    uint32_t bit_count = (uint32_t)bits.size * 8;
    for (int32_t i = 1; i <= hash_count; i++) {
        uint32_t at = tarn_index__bloom_bit(hash, i, bit_count);
        if ((bits.data[at / 8] >> (at % 8) & 1) == 0)
            return false;
    }
    budget->steps -= hash_count / 8;
    return true;
}

static struct tarn_status *judge_bloom(struct judge *j, const struct column *c,
                                       const struct tarn_predicate_node *leaf,
                                       struct tarn_index__chance *out)
{
    struct tarn_index__reader r = {.cursor = c->bloom.data, .end = c->bloom.data + c->bloom.size};
    int32_t hash_count = tarn_index__take_int(&r);
    struct tarn_slice bits = tarn_slice_of(r.cursor, (size_t)(r.end - r.cursor));
    if (r.failed || hash_count < 1 || hash_count > BLOOM_HASHES_MAX || bits.size == 0 ||
        bits.size > BLOOM_SIZE_MAX)
        return tarn_index__malformed("a bloom filter of %zu bytes with %" PRId32 " hash functions",
                                     c->bloom.size, hash_count);
    out->yes = false;
    for (size_t i = 0; i < leaf->value_count && !out->yes && j->budget.steps >= 0; i++) {
        j->budget.steps--;
        out->yes = leaf->values[i].is_null ||
                   bloom_holds(bits, hash_count,
                               tarn_index__bloom_hash(c->file_type, &leaf->values[i]), &j->budget);
    }
    out->yes = out->yes || j->budget.steps < 0;
    out->why_yes = (struct tarn_index__why){leaf->column, "bloom-filter"};
    return TARN_OK;
}

/* ---- the predicate */

static bool asks_for_values(enum tarn_predicate_op op)
{
    return op == TARN_PRED_EQ || op == TARN_PRED_SAFE_EQ || op == TARN_PRED_IN;
}

static const struct column *column_of(const struct judge *j, int column)
{
    for (size_t i = 0; i < j->where->column_count; i++)
        if (j->columns[i].column == column)
            return &j->columns[i];
    return NULL;
}

static bool has_bitmap(const struct column *c)
{
    return c != NULL && c->bitmap.data != NULL && tarn_index__bitmap_takes(c->file_type);
}

static struct tarn_status *judge_leaf(struct judge *j, const struct tarn_predicate_node *leaf,
                                      struct tarn_index__chance *out)
{
    const struct column *c = column_of(j, leaf->column);
    *out = (struct tarn_index__chance){.yes = true, .no = true};
    if (j->budget.steps < 0)
        return TARN_OK;
    if (has_bitmap(c)) {
        struct tarn_index__bitmap bitmap = {c->bitmap, c->type, c->file_type, j->row_count};
        return tarn_index__bitmap_judge(&bitmap, leaf, j->with_rows, &j->budget, out);
    }
    if (c != NULL && c->bloom.data != NULL && tarn_index__bloom_takes(c->file_type) &&
        asks_for_values(leaf->op))
        return judge_bloom(j, c, leaf, out);
    return TARN_OK;
}

static size_t words_of(const struct judge *j)
{
    return (size_t)(j->row_count + 63) / 64;
}

/* Both must hold: the rows of both. Takes what b holds. */
static void meet(struct judge *j, bool *a, uint64_t **a_rows, struct tarn_index__why *why, bool b,
                 uint64_t **b_rows, struct tarn_index__why b_why)
{
    bool any = false;
    if (*a && (!b || why->index == NULL))
        *why = b_why;
    *a = *a && b;
    for (size_t i = 0; *a && *a_rows != NULL && *b_rows != NULL && i < words_of(j); i++) {
        (*a_rows)[i] &= (*b_rows)[i];
        any = any || (*a_rows)[i] != 0;
    }
    if (*a && *a_rows != NULL && *b_rows != NULL) {
        *a = any;
        j->budget.steps -= (int64_t)words_of(j) / 16;
    }
    if (*a_rows == NULL) {
        *a_rows = *b_rows;
        *b_rows = NULL;
    }
}

/* One suffices: the rows of either, where those of both are known. */
static void join(struct judge *j, bool *a, uint64_t **a_rows, struct tarn_index__why *why, bool b,
                 uint64_t **b_rows, struct tarn_index__why b_why)
{
    bool any_row = (*a && *a_rows == NULL) || (b && *b_rows == NULL);
    for (size_t i = 0; !any_row && *a && b && i < words_of(j); i++)
        (*a_rows)[i] |= (*b_rows)[i];
    if (any_row) {
        tarn_index__rows_free(a_rows, j->row_count, &j->budget);
    } else if (!*a) {
        uint64_t *none = *a_rows;
        *a_rows = *b_rows;
        *b_rows = none;
    }
    if (*a && b)
        j->budget.steps -= (int64_t)words_of(j) / 16;
    if ((!*a && b) || why->index == NULL)
        *why = b_why;
    *a = *a || b;
}

static void drop_rows(struct judge *j, struct tarn_index__chance *c)
{
    tarn_index__rows_free(&c->yes_rows, j->row_count, &j->budget);
    tarn_index__rows_free(&c->no_rows, j->row_count, &j->budget);
}

static void combine(struct judge *j, enum tarn_predicate_op op, struct tarn_index__chance *a,
                    struct tarn_index__chance *b)
{
    if (op == TARN_PRED_AND) {
        meet(j, &a->yes, &a->yes_rows, &a->why_yes, b->yes, &b->yes_rows, b->why_yes);
        join(j, &a->no, &a->no_rows, &a->why_no, b->no, &b->no_rows, b->why_no);
    } else {
        join(j, &a->yes, &a->yes_rows, &a->why_yes, b->yes, &b->yes_rows, b->why_yes);
        meet(j, &a->no, &a->no_rows, &a->why_no, b->no, &b->no_rows, b->why_no);
    }
    drop_rows(j, b);
}

static void turn(struct tarn_index__chance *c)
{
    *c = (struct tarn_index__chance){c->no, c->yes, c->no_rows, c->yes_rows, c->why_no, c->why_yes};
}

static struct tarn_status *judge_nodes(struct judge *j, struct tarn_index__chance *stack,
                                       size_t *top)
{
    for (size_t i = 0; i < j->where->node_count; i++) {
        const struct tarn_predicate_node *node = &j->where->nodes[i];
        switch (node->op) {
        case TARN_PRED_TRUE:
        case TARN_PRED_FALSE:
        case TARN_PRED_UNKNOWN:
            stack[(*top)++] = (struct tarn_index__chance){.yes = node->op == TARN_PRED_TRUE,
                                                          .no = node->op == TARN_PRED_FALSE};
            break;
        case TARN_PRED_NOT:
            turn(&stack[*top - 1]);
            break;
        case TARN_PRED_AND:
        case TARN_PRED_OR:
            combine(j, node->op, &stack[*top - 2], &stack[*top - 1]);
            (*top)--;
            break;
        default:
            TARN_TRY(judge_leaf(j, node, &stack[*top]));
            (*top)++;
        }
    }
    return TARN_OK;
}

static struct tarn_status *judge_once(struct judge *j, struct tarn_file_index_verdict *out)
{
    size_t depth = tarn_format__predicate_depth(j->where->nodes, j->where->node_count), top = 0;
    TARN_OWN(tarn_free_drop) struct tarn_index__chance *stack =
        tarn_calloc(depth + 1, sizeof *stack);
    struct tarn_status *s = judge_nodes(j, stack, &top);
    if (s == NULL && j->budget.steps >= 0 && !stack[0].yes && stack[0].why_yes.index != NULL)
        *out = (struct tarn_file_index_verdict){
            .may_match = false, .column = stack[0].why_yes.column, .index = stack[0].why_yes.index};
    while (top > 0)
        drop_rows(j, &stack[--top]);
    return s;
}

/* Two leaves at least have bitmaps, which could exclude each other row by row. */
static bool rows_may_help(const struct judge *j)
{
    size_t leaves = 0;
    for (size_t i = 0; i < j->where->node_count; i++) {
        enum tarn_predicate_op op = j->where->nodes[i].op;
        if (op >= TARN_PRED_EQ && op <= TARN_PRED_IS_NULL)
            leaves += has_bitmap(column_of(j, j->where->nodes[i].column));
    }
    return leaves > 1;
}

static struct tarn_status *judge_file(struct judge *j, struct tarn_slice bytes,
                                      struct tarn_file_index_verdict *out)
{
    TARN_TRY(read_container(j, bytes));
    TARN_TRY(judge_once(j, out));
    if (!out->may_match || j->budget.steps < 0 || !rows_may_help(j))
        return TARN_OK;
    j->with_rows = true;
    return judge_once(j, out);
}

struct tarn_status *tarn_file_index_may_match(
    struct tarn_slice bytes, const struct tarn_predicate *where, const struct tarn_schema *schema,
    const struct tarn_schema *file_schema, int64_t row_count, struct tarn_file_index_verdict *out)
{
    struct judge j = {.where = where,
                      .schema = schema,
                      .row_count = row_count,
                      .budget = {TARN_FILE_INDEX_STEPS_MAX, TARN_FILE_INDEX_ROWS_MAX}};
    struct tarn_file_index_verdict verdict = {.may_match = true, .column = -1};
    *out = verdict;
    if (where->node_count == 0 || where->column_count == 0 || row_count < 0)
        return TARN_OK;
    j.columns = tarn_calloc(where->column_count, sizeof *j.columns);
    for (size_t i = 0; i < where->column_count; i++)
        prepare_column(&j, file_schema, i);
    struct tarn_status *s = judge_file(&j, bytes, &verdict);
    for (size_t i = 0; i < where->column_count; i++)
        tarn_buf_drop(&j.columns[i].name);
    free(j.columns);
    if (s == NULL)
        *out = verdict;
    return s;
}

/* ---- what the planner asks before */

bool tarn_file_index_helps(const struct tarn_predicate *where)
{
    return where->column_count > 0;
}

struct tarn_slice tarn_file_index_side(const struct tarn_data_file *file)
{
    static const char suffix[] = ".index";
    struct tarn_slice found = {0};
    size_t count = 0, length = sizeof suffix - 1;
    for (size_t i = 0; i < file->extra_file_count; i++) {
        struct tarn_slice name = file->extra_files[i];
        if (name.size > length && memcmp(name.data + name.size - length, suffix, length) == 0) {
            found = name;
            count++;
        }
    }
    return count == 1 && file->embedded_index.data == NULL ? found : (struct tarn_slice){0};
}
