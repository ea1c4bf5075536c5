#include "print.h"

#include "grid.h"
#include "text.h"

/* --- one value, three ways --- */

struct value {
    enum tarn_cli_kind kind;
    bool is_null;
    struct tarn_slice text;
    int64_t number;
    double real;
    const struct tarn_json *json;
};

static void value_table(const struct value *v, struct tarn_buf *out)
{
    switch (v->kind) {
    case TARN_CLI_TEXT:
    case TARN_CLI_ANY:
        tarn_buf_add_slice(out, v->text);
        break;
    case TARN_CLI_INT:
        tarn_buf_printf(out, "%" PRId64, v->number);
        break;
    case TARN_CLI_SIZE:
        tarn_format_size(v->number, out);
        break;
    case TARN_CLI_TIME:
        tarn_cli_local_time(v->number, out);
        break;
    case TARN_CLI_BOOL:
        tarn_buf_add_str(out, v->number ? "yes" : "no");
        break;
    case TARN_CLI_REAL:
        tarn_buf_printf(out, "%.6g", v->real);
        break;
    }
}

static void value_json(const struct value *v, const char *key, struct tarn_json *object)
{
    if (v->kind == TARN_CLI_TIME) {
        TARN_OWN(tarn_free_drop) char *key_ms = tarn_format("%s_ms", key);
        TARN_OWN(tarn_buf_drop) struct tarn_buf iso = {0};
        if (!v->is_null)
            tarn_format_time(v->number, &iso);
        tarn_json_set(object, key_ms, v->is_null ? tarn_json_null() : tarn_json_integer(v->number));
        tarn_json_set(object, key,
                      v->is_null ? tarn_json_null() : tarn_json_string(tarn_buf_slice(&iso)));
        return;
    }
    struct tarn_json *value = NULL;
    if (v->is_null)
        value = tarn_json_null();
    else if (v->kind == TARN_CLI_TEXT)
        value = tarn_json_string(v->text);
    else if (v->kind == TARN_CLI_BOOL)
        value = tarn_json_bool(v->number != 0);
    else if (v->kind == TARN_CLI_REAL)
        value = tarn_json_real(v->real);
    else if (v->kind == TARN_CLI_ANY)
        value = tarn_json_copy(v->json);
    else
        value = tarn_json_integer(v->number);
    tarn_json_set(object, key, value);
}

void tarn_cli_csv_text(struct tarn_slice text, struct tarn_buf *out)
{
    bool plain = text.size > 0;
    for (size_t i = 0; plain && i < text.size; i++)
        plain = text.data[i] != '"' && text.data[i] != ',' && text.data[i] != '\n' &&
                text.data[i] != '\r';
    if (plain) {
        tarn_buf_add_slice(out, text);
        return;
    }
    tarn_buf_add_byte(out, '"');
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] == '"')
            tarn_buf_add_byte(out, '"');
        tarn_buf_add_byte(out, text.data[i]);
    }
    tarn_buf_add_byte(out, '"');
}

static void value_csv(const struct value *v, struct tarn_buf *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};

    if (v->is_null)
        return;
    if (v->kind == TARN_CLI_TIME)
        tarn_format_time(v->number, &text);
    else if (v->kind == TARN_CLI_SIZE)
        tarn_buf_printf(&text, "%" PRId64, v->number);
    else if (v->kind == TARN_CLI_BOOL)
        tarn_buf_add_str(&text, v->number ? "true" : "false");
    else if (v->kind == TARN_CLI_ANY)
        tarn_json_print(v->json, 0, &text);
    else
        value_table(v, &text);
    tarn_cli_csv_text(tarn_buf_slice(&text), out);
}

/* --- lists --- */

struct tarn_cli_list {
    struct tarn_cli *cli;
    const struct tarn_cli_column *columns;
    size_t column_count;
    size_t at; /* the column that comes next */
    int64_t row_count;
    struct tarn_json *array; /* of a record: the rows in JSON; owned */
    struct tarn_cli_grid *grid;
    struct tarn_json *row; /* being made */
    struct tarn_buf line;  /* the same as CSV */
};

static struct tarn_cli_list *list_new(struct tarn_cli *cli, const struct tarn_cli_column *columns,
                                      size_t column_count, int indent)
{
    struct tarn_cli_list *list = tarn_calloc(1, sizeof *list);
    list->cli = cli;
    list->columns = columns;
    list->column_count = column_count;
    if (cli->format != TARN_CLI_TABLE)
        return list;
    list->grid = tarn_cli_grid_new(cli->out, false, indent);
    for (size_t i = 0; i < column_count; i++)
        if (columns[i].title != NULL)
            tarn_cli_grid_title(list->grid, tarn_slice_str(columns[i].title));
    return list;
}

static void csv_head(struct tarn_cli_list *list)
{
    for (size_t i = 0; i < list->column_count; i++)
        fprintf(list->cli->out, "%s%s", i > 0 ? "," : "", list->columns[i].key);
    fputc('\n', list->cli->out);
}

struct tarn_cli_list *tarn_cli_list_new(struct tarn_cli *cli, const struct tarn_cli_column *columns,
                                        size_t column_count)
{
    struct tarn_cli_list *list = list_new(cli, columns, column_count, 0);
    if (cli->format == TARN_CLI_CSV)
        csv_head(list);
    return list;
}

void tarn_cli_list_drop(struct tarn_cli_list **pointer)
{
    struct tarn_cli_list *list = *pointer;
    if (list == NULL)
        return;
    tarn_cli_grid_free(list->grid);
    tarn_json_free(list->array);
    tarn_json_free(list->row);
    tarn_buf_drop(&list->line);
    free(list);
    *pointer = NULL;
}

static void write_buf(FILE *out, const struct tarn_buf *buf)
{
    if (buf->size > 0)
        fwrite(buf->data, 1, buf->size, out);
}

static void row_done(struct tarn_cli_list *list)
{
    FILE *out = list->cli->out;

    list->at = 0;
    list->row_count++;
    if (list->array != NULL) {
        tarn_json_add(list->array, tarn_move(list->row));
    } else if (list->cli->format == TARN_CLI_CSV) {
        tarn_buf_add_byte(&list->line, '\n');
        write_buf(out, &list->line);
        tarn_buf_clear(&list->line);
    } else if (list->row != NULL) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
        if (list->cli->format == TARN_CLI_JSON)
            tarn_buf_add_str(&text, list->row_count == 1 ? "[\n" : ",\n");
        tarn_json_print(list->row, 0, &text);
        if (list->cli->format == TARN_CLI_JSONL)
            tarn_buf_add_byte(&text, '\n');
        write_buf(out, &text);
        tarn_json_drop(&list->row);
    }
}

static void table_cell(struct tarn_cli_list *list, const struct value *v)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};

    if (list->columns[list->at].title == NULL)
        return;
    if (v->is_null) {
        tarn_cli_grid_null(list->grid, "-");
        return;
    }
    value_table(v, &text);
    if (v->kind == TARN_CLI_ANY && text.size == 0)
        tarn_cli_grid_null(list->grid, "-");
    else if (v->kind == TARN_CLI_SIZE)
        tarn_cli_grid_number(list->grid, tarn_buf_slice(&text));
    else
        tarn_cli_grid_cell(list->grid, tarn_buf_slice(&text));
}

static void put(struct tarn_cli_list *list, struct value v)
{
    v.kind = list->columns[list->at].kind;
    v.is_null |= v.kind == TARN_CLI_TIME && v.number == 0;
    if (list->grid != NULL) {
        table_cell(list, &v);
    } else if (list->array == NULL && list->cli->format == TARN_CLI_CSV) {
        if (list->at > 0)
            tarn_buf_add_byte(&list->line, ',');
        value_csv(&v, &list->line);
    } else {
        if (list->row == NULL)
            list->row = tarn_json_object();
        value_json(&v, list->columns[list->at].key, list->row);
    }
    if (++list->at == list->column_count)
        row_done(list);
}

void tarn_cli_list_slice(struct tarn_cli_list *list, struct tarn_slice text)
{
    put(list, (struct value){.text = text, .is_null = text.data == NULL});
}

void tarn_cli_list_text(struct tarn_cli_list *list, const char *text)
{
    tarn_cli_list_slice(list, tarn_slice_str(text));
}

void tarn_cli_list_int(struct tarn_cli_list *list, int64_t value)
{
    put(list, (struct value){.number = value});
}

void tarn_cli_list_real(struct tarn_cli_list *list, double value)
{
    put(list, (struct value){.real = value});
}

void tarn_cli_list_any(struct tarn_cli_list *list, struct tarn_json *consumed,
                       struct tarn_slice text)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *json = consumed;
    put(list, (struct value){.json = json, .text = text});
}

void tarn_cli_list_null(struct tarn_cli_list *list)
{
    put(list, (struct value){.is_null = true});
}

void tarn_cli_list_int_or_null(struct tarn_cli_list *list, bool there, int64_t value)
{
    if (there)
        tarn_cli_list_int(list, value);
    else
        tarn_cli_list_null(list);
}

struct tarn_status *tarn_cli_list_end(struct tarn_cli_list *list)
{
    FILE *out = list->cli->out;
    tarn_assert(list->at == 0 && list->array == NULL);

    if (list->grid != NULL && list->row_count > 0)
        tarn_cli_grid_flush(list->grid);
    else if (list->grid != NULL)
        fputs("(none)\n", out);
    else if (list->cli->format == TARN_CLI_JSON)
        fputs(list->row_count == 0 ? "[]\n" : "\n]\n", out);
    return tarn_cli_flush(list->cli);
}

/* --- records --- */

struct line {
    const char *title;
    struct tarn_buf text; /* of the table */
};
struct part {
    const char *key, *title;
    struct tarn_cli_list *list;
};

struct tarn_cli_record {
    struct tarn_cli *cli;
    struct tarn_json *object;
    struct tarn_buf csv_keys, csv_values;
    struct line *lines;
    size_t line_count, line_capacity;
    struct part *parts;
    size_t part_count, part_capacity;
};

struct tarn_cli_record *tarn_cli_record_new(struct tarn_cli *cli)
{
    struct tarn_cli_record *record = tarn_calloc(1, sizeof *record);
    record->cli = cli;
    record->object = tarn_json_object();
    return record;
}

void tarn_cli_record_drop(struct tarn_cli_record **pointer)
{
    struct tarn_cli_record *record = *pointer;
    if (record == NULL)
        return;
    for (size_t i = 0; i < record->line_count; i++)
        tarn_buf_drop(&record->lines[i].text);
    for (size_t i = 0; i < record->part_count; i++)
        tarn_cli_list_drop(&record->parts[i].list);
    free(record->lines);
    free(record->parts);
    tarn_buf_drop(&record->csv_keys);
    tarn_buf_drop(&record->csv_values);
    tarn_json_free(record->object);
    free(record);
    *pointer = NULL;
}

static void csv_pair(struct tarn_cli_record *record, const char *key, const struct value *v)
{
    if (record->csv_keys.size > 0) {
        tarn_buf_add_byte(&record->csv_keys, ',');
        tarn_buf_add_byte(&record->csv_values, ',');
    }
    tarn_buf_add_str(&record->csv_keys, key);
    value_csv(v, &record->csv_values);
}

static void record_put(struct tarn_cli_record *record, const char *key, const char *title,
                       struct value v)
{
    v.is_null |= v.kind == TARN_CLI_TIME && v.number == 0;
    value_json(&v, key, record->object);
    csv_pair(record, key, &v);
    if (title == NULL)
        return;
    TARN_GROW(record->lines, record->line_count, record->line_capacity);
    struct line *line = &record->lines[record->line_count++];
    *line = (struct line){.title = title};
    if (!v.is_null)
        value_table(&v, &line->text);
    if (line->text.size == 0)
        tarn_buf_add_str(&line->text, "-");
}

void tarn_cli_record_slice(struct tarn_cli_record *record, const char *key, const char *title,
                           struct tarn_slice text)
{
    record_put(record, key, title,
               (struct value){.kind = TARN_CLI_TEXT, .text = text, .is_null = text.data == NULL});
}

void tarn_cli_record_text(struct tarn_cli_record *record, const char *key, const char *title,
                          const char *text)
{
    tarn_cli_record_slice(record, key, title, tarn_slice_str(text));
}

void tarn_cli_record_int(struct tarn_cli_record *record, const char *key, const char *title,
                         enum tarn_cli_kind kind, int64_t value)
{
    record_put(record, key, title, (struct value){.kind = kind, .number = value});
}

void tarn_cli_record_any(struct tarn_cli_record *record, const char *key, const char *title,
                         struct tarn_json *consumed, struct tarn_slice text)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *json = consumed;
    record_put(record, key, title,
               (struct value){.kind = TARN_CLI_ANY, .json = json, .text = text});
}

struct tarn_cli_list *tarn_cli_record_list(struct tarn_cli_record *record, const char *key,
                                           const char *title, const struct tarn_cli_column *columns,
                                           size_t column_count)
{
    struct tarn_cli_list *list = list_new(record->cli, columns, column_count, 2);
    if (list->grid == NULL)
        list->array = tarn_json_array();
    TARN_GROW(record->parts, record->part_count, record->part_capacity);
    record->parts[record->part_count++] = (struct part){key, title, list};
    return list;
}

static void print_lines(struct tarn_cli_record *record)
{
    size_t width = 0;
    for (size_t i = 0; i < record->line_count; i++)
        width = TARN_MAX(width, strlen(record->lines[i].title));
    for (size_t i = 0; i < record->line_count; i++) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
        tarn_cli_escape(tarn_buf_slice(&record->lines[i].text), &text);
        fprintf(record->cli->out, "%-*s  %s\n", (int)width, record->lines[i].title,
                tarn_buf_cstr(&text));
    }
    for (size_t i = 0; i < record->part_count; i++) {
        struct part *part = &record->parts[i];
        if (part->title == NULL || part->list->row_count == 0)
            continue;
        fprintf(record->cli->out, "%s\n", part->title);
        tarn_cli_grid_flush(part->list->grid);
    }
}

static void take_parts(struct tarn_cli_record *record)
{
    for (size_t i = 0; i < record->part_count; i++) {
        struct part *part = &record->parts[i];
        struct value v = {.kind = TARN_CLI_ANY, .json = part->list->array};
        csv_pair(record, part->key, &v);
        tarn_json_set(record->object, part->key, tarn_move(part->list->array));
    }
}

struct tarn_status *tarn_cli_record_end(struct tarn_cli_record *record)
{
    FILE *out = record->cli->out;

    if (record->cli->format == TARN_CLI_TABLE) {
        print_lines(record);
        return tarn_cli_flush(record->cli);
    }
    take_parts(record);
    if (record->cli->format == TARN_CLI_CSV) {
        write_buf(out, &record->csv_keys);
        fputc('\n', out);
        write_buf(out, &record->csv_values);
    } else {
        TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
        tarn_json_print(record->object, record->cli->format == TARN_CLI_JSON ? 2 : 0, &text);
        write_buf(out, &text);
    }
    fputc('\n', out);
    return tarn_cli_flush(record->cli);
}

void tarn_cli_say(struct tarn_cli *cli, const char *format, ...)
{
    if (cli->format != TARN_CLI_TABLE)
        return;
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf escaped = {0};
    va_list args;
    va_start(args, format);
    tarn_buf_vprintf(&text, format, args);
    va_end(args);
    tarn_cli_escape(tarn_buf_slice(&text), &escaped);
    fprintf(cli->out, "%s\n", tarn_buf_cstr(&escaped));
}

struct tarn_status *tarn_cli_dropped(struct tarn_cli *cli, const char *what, const char *name)
{
    if (cli->format == TARN_CLI_TABLE) {
        tarn_cli_say(cli, "dropped %s %s", what, name);
        return TARN_OK;
    }
    TARN_OWN(tarn_cli_record_drop) struct tarn_cli_record *record = tarn_cli_record_new(cli);
    tarn_cli_record_text(record, "dropped", NULL, name);
    return tarn_cli_record_end(record);
}
