/*
 * What merge engines ask of columns: options fields.COLUMN.aggregate-function and its like, sequence groups, and what
 * deletes do. What Paimon refuses is SCHEMA_INVALID; what only this version lacks is noted as a refusal.
 *
 * Source   org.apache.paimon.mergetree.compact: PartialUpdateMergeFunction, aggregate.factory.*.
 */
#include "format/options_judge.h"

#include <limits.h>

static const struct {
    const char *name;
    bool retracts;
} functions[] = {
    [TARN_AGGREGATE_NONE] = {"", false},
    [TARN_AGGREGATE_KEY] = {"primary-key", true},
    [TARN_AGGREGATE_LAST] = {"last_value", true},
    [TARN_AGGREGATE_LAST_NON_NULL] = {"last_non_null_value", true},
    [TARN_AGGREGATE_FIRST] = {"first_value", false},
    [TARN_AGGREGATE_FIRST_NON_NULL] = {"first_non_null_value", false},
    [TARN_AGGREGATE_SUM] = {"sum", true},
    [TARN_AGGREGATE_PRODUCT] = {"product", true},
    [TARN_AGGREGATE_MIN] = {"min", false},
    [TARN_AGGREGATE_MAX] = {"max", false},
    [TARN_AGGREGATE_BOOL_AND] = {"bool_and", false},
    [TARN_AGGREGATE_BOOL_OR] = {"bool_or", false},
    [TARN_AGGREGATE_LISTAGG] = {"listagg", false},
    [TARN_AGGREGATE_COLLECT] = {"collect", true},
    [TARN_AGGREGATE_MERGE_MAP] = {"merge_map", true},
    [TARN_AGGREGATE_MERGE_MAP_BY_TIME] = {"merge_map_with_keytime", false},
    [TARN_AGGREGATE_NESTED_UPDATE] = {"nested_update", true},
    [TARN_AGGREGATE_NESTED_PARTIAL_UPDATE] = {"nested_partial_update", false},
    [TARN_AGGREGATE_BITMAP] = {"rbm32", false},
};

bool tarn_aggregate_retracts(enum tarn_aggregate aggregate)
{
    return functions[aggregate].retracts;
}

const char *tarn_aggregate_name(enum tarn_aggregate aggregate)
{
    return functions[aggregate].name;
}

bool tarn_format__is_engine_option(struct tarn_slice key)
{
    static const char *const endings[] = {".aggregate-function",
                                          ".sequence-group",
                                          ".ignore-retract",
                                          ".distinct",
                                          ".list-agg-delimiter",
                                          ".nested-key",
                                          ".nested-key-null-strategy",
                                          ".nested-sequence-field",
                                          ".count-limit",
                                          ".ts-field"};

    if (tarn_slice_is(key, "fields.default-aggregate-function"))
        return true;
    if (!tarn_slice_starts_with(key, tarn_slice_str("fields.")))
        return false;
    for (size_t i = 0; i < TARN_COUNT_OF(endings); i++) {
        size_t n = strlen(endings[i]);
        if (key.size > n + 7 && memcmp(key.data + key.size - n, endings[i], n) == 0)
            return true;
    }
    return false;
}

static struct tarn_status *invalid(struct tarn_slice column, const char *what,
                                   struct tarn_slice value, const char *expected)
{
    return tarn_status_new(TARN_SCHEMA_INVALID, "option fields.%.*s.%s = \"%.*s\": expected %s",
                           TARN_SLICE_ARG(column), what, (int)TARN_MIN(value.size, (size_t)200),
                           (const char *)value.data, expected);
}

static struct tarn_slice option_of(const struct tarn_schema *schema, struct tarn_slice column,
                                   const char *what)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};

    tarn_buf_printf(&key, "fields.%.*s.%s", TARN_SLICE_ARG(column), what);
    return tarn_schema_option(schema, tarn_buf_cstr(&key));
}

static struct tarn_status *take_bool(const struct tarn_schema *schema, struct tarn_slice column,
                                     const char *what, bool *out)
{
    struct tarn_slice value = option_of(schema, column, what);

    *out = value.data != NULL && tarn_format__is_word(tarn_format__trim(value), "true");
    if (value.data == NULL || *out || tarn_format__is_word(tarn_format__trim(value), "false"))
        return TARN_OK;
    return invalid(column, what, value, "true or false");
}

/* --- names in a list --- */

/* The next of "a,b", without blanks around; false at the end. */
static bool next_name(struct tarn_slice list, size_t *at, struct tarn_slice *out)
{
    size_t begin = *at, end = begin;

    if (list.data == NULL || begin > list.size)
        return false;
    while (end < list.size && list.data[end] != ',')
        end++;
    *out = tarn_format__trim(tarn_slice_of(list.data + begin, end - begin));
    *at = end + 1;
    return true;
}

static size_t count_names(struct tarn_slice list)
{
    size_t count = 0, at = 0;
    struct tarn_slice name;

    while (next_name(list, &at, &name))
        count++;
    return count;
}

static int find_subfield(const struct tarn_type *row, struct tarn_slice name)
{
    for (size_t i = 0; i < row->field_count; i++) {
        if (tarn_slice_equal(row->fields[i].name, name))
            return (int)i;
    }
    return -1;
}

/* Subfields of the rows in an ARRAY<ROW>. */
static struct tarn_status *take_subfields(const struct tarn_schema *schema,
                                          const struct tarn_field *field, const char *what,
                                          struct tarn_arena *arena, const int **out, size_t *count)
{
    struct tarn_slice list = option_of(schema, field->name, what), name;
    int *places = tarn_arena_calloc(arena, count_names(list) + 1, sizeof *places);
    size_t at = 0;

    *count = 0;
    while (next_name(list, &at, &name)) {
        int place = find_subfield(field->type->element, name);
        if (place < 0)
            return invalid(field->name, what, list, "fields of the column's rows");
        places[(*count)++] = place;
    }
    *out = places;
    return TARN_OK;
}

/* --- one column's function --- */

static struct tarn_status *find_function(struct tarn_slice column, struct tarn_slice name,
                                         struct tarn_arena *arena, struct tarn_options *o,
                                         enum tarn_aggregate *out)
{
    static const char *const lacking[] = {"rbm64", "hll_sketch", "theta_sketch"};

    for (size_t i = 1; i < TARN_COUNT_OF(functions); i++) {
        if (tarn_slice_is(name, functions[i].name)) {
            *out = (enum tarn_aggregate)i;
            return TARN_OK;
        }
    }
    if (tarn_slice_is(name, "first_not_null_value")) {
        *out = TARN_AGGREGATE_FIRST_NON_NULL;
        return TARN_OK;
    }
    for (size_t i = 0; i < TARN_COUNT_OF(lacking); i++) {
        if (!tarn_slice_is(name, lacking[i]))
            continue;
        *out = TARN_AGGREGATE_LAST_NON_NULL; /* never computed: the table is refused */
        tarn_format__refuse(o, true,
                            tarn_arena_printf(arena, "fields.%.*s.aggregate-function = %s",
                                              TARN_SLICE_ARG(column), lacking[i]));
        return TARN_OK;
    }
    return invalid(
        column, "aggregate-function", name,
        "a function of Paimon: sum, product, min, max, last_value, last_non_null_value, "
        "first_value, first_non_null_value, bool_and, bool_or, listagg, collect, "
        "merge_map, merge_map_with_keytime, nested_update, nested_partial_update, rbm32");
}

static bool is_numeric(enum tarn_type_id id)
{
    return id == TARN_TYPE_TINYINT || id == TARN_TYPE_SMALLINT || id == TARN_TYPE_INT ||
           id == TARN_TYPE_BIGINT || id == TARN_TYPE_FLOAT || id == TARN_TYPE_DOUBLE ||
           id == TARN_TYPE_DECIMAL;
}

static bool is_row_array(const struct tarn_type *type)
{
    return type->id == TARN_TYPE_ARRAY && type->element->id == TARN_TYPE_ROW;
}

/* What a function takes, in words; NULL: the column's type is such. */
static const char *expected_type(enum tarn_aggregate aggregate, const struct tarn_type *type)
{
    switch (aggregate) {
    case TARN_AGGREGATE_SUM:
    case TARN_AGGREGATE_PRODUCT:
        return is_numeric(type->id) ? NULL : "a numeric column for this function";
    case TARN_AGGREGATE_MIN:
    case TARN_AGGREGATE_MAX:
        return tarn_type_is_ordered(type) ? NULL
                                          : "a column that can be compared for this function";
    case TARN_AGGREGATE_BOOL_AND:
    case TARN_AGGREGATE_BOOL_OR:
        return type->id == TARN_TYPE_BOOLEAN ? NULL : "a BOOLEAN column for this function";
    case TARN_AGGREGATE_LISTAGG:
        return type->id == TARN_TYPE_VARCHAR && type->length == INT_MAX
                   ? NULL
                   : "a STRING column for this function";
    case TARN_AGGREGATE_COLLECT:
        return type->id == TARN_TYPE_ARRAY ? NULL : "an ARRAY column for this function";
    case TARN_AGGREGATE_MERGE_MAP:
        return type->id == TARN_TYPE_MAP ? NULL : "a MAP column for this function";
    case TARN_AGGREGATE_MERGE_MAP_BY_TIME:
        return type->id == TARN_TYPE_MAP && type->element->id == TARN_TYPE_ROW &&
                       type->element->field_count >= 2
                   ? NULL
                   : "a MAP column with ROWs of two fields or more for this function";
    case TARN_AGGREGATE_NESTED_UPDATE:
    case TARN_AGGREGATE_NESTED_PARTIAL_UPDATE:
        return is_row_array(type) ? NULL : "an ARRAY<ROW> column for this function";
    case TARN_AGGREGATE_BITMAP:
        return type->id == TARN_TYPE_VARBINARY ? NULL : "a VARBINARY column for this function";
    default:
        return NULL;
    }
}

static struct tarn_status *take_nested_null(const struct tarn_schema *schema,
                                            struct tarn_slice column, struct tarn_column_rule *rule)
{
    static const char *const words[] = {"merge", "ignore", "error"};
    static const char what[] = "nested-key-null-strategy";
    struct tarn_slice value = option_of(schema, column, what);

    if (value.data == NULL)
        return TARN_OK;
    if (rule->nested_key_count == 0)
        return invalid(column, what, value, "none without nested-key");
    for (size_t i = 0; i < TARN_COUNT_OF(words); i++) {
        if (tarn_format__is_word(tarn_format__trim(value), words[i])) {
            rule->nested_null = (enum tarn_nested_null)i;
            return TARN_OK;
        }
    }
    return invalid(column, what, value, "merge, ignore or error");
}

static struct tarn_status *take_count_limit(const struct tarn_schema *schema,
                                            struct tarn_slice column, struct tarn_column_rule *rule)
{
    struct tarn_slice value = option_of(schema, column, "count-limit");
    int64_t limit = INT32_MAX;

    if (value.data != NULL) {
        struct tarn_status *s = tarn_parse_i64(tarn_format__trim(value), &limit);
        bool fine = s == TARN_OK && limit >= 0 && limit <= INT32_MAX;
        tarn_status_free(s);
        if (!fine)
            return invalid(column, "count-limit", value, "a number from 0 to 2147483647");
    }
    rule->count_limit = (int32_t)limit;
    return TARN_OK;
}

static struct tarn_status *take_nested(const struct tarn_schema *schema,
                                       const struct tarn_field *field, struct tarn_arena *arena,
                                       struct tarn_column_rule *rule)
{
    TARN_TRY(take_subfields(schema, field, "nested-key", arena, &rule->nested_keys,
                            &rule->nested_key_count));
    if (rule->aggregate == TARN_AGGREGATE_NESTED_PARTIAL_UPDATE && rule->nested_key_count == 0)
        return tarn_status_new(TARN_SCHEMA_INVALID,
                               "nested_partial_update on column %.*s needs option "
                               "fields.%.*s.nested-key",
                               TARN_SLICE_ARG(field->name), TARN_SLICE_ARG(field->name));
    TARN_TRY(take_subfields(schema, field, "nested-sequence-field", arena, &rule->nested_sequence,
                            &rule->nested_sequence_count));
    if (rule->nested_sequence_count > 0 && rule->nested_key_count == 0)
        return invalid(field->name, "nested-sequence-field",
                       option_of(schema, field->name, "nested-sequence-field"),
                       "none without nested-key");
    for (size_t i = 0; i < rule->nested_sequence_count; i++) {
        if (!tarn_type_is_ordered(field->type->element->fields[rule->nested_sequence[i]].type))
            return invalid(field->name, "nested-sequence-field",
                           option_of(schema, field->name, "nested-sequence-field"),
                           "fields that can be compared");
    }
    TARN_TRY(take_nested_null(schema, field->name, rule));
    return take_count_limit(schema, field->name, rule);
}

static struct tarn_status *take_time_field(const struct tarn_schema *schema,
                                           const struct tarn_field *field,
                                           struct tarn_column_rule *rule)
{
    struct tarn_slice name = option_of(schema, field->name, "ts-field");
    const struct tarn_type *row = field->type->element;

    rule->time_field = name.data == NULL ? (int)row->field_count - 1 : find_subfield(row, name);
    if (rule->time_field < 0)
        return invalid(field->name, "ts-field", name, "a field of the map's rows");
    enum tarn_type_id id = row->fields[rule->time_field].type->id;
    if (id != TARN_TYPE_VARCHAR && id != TARN_TYPE_CHAR) /* times are compared as texts */
        return invalid(field->name, "ts-field", row->fields[rule->time_field].name,
                       "a field of type STRING");
    return TARN_OK;
}

/* The rest of a column's rule once its function is known. */
static struct tarn_status *take_details(const struct tarn_schema *schema,
                                        const struct tarn_field *field, struct tarn_arena *arena,
                                        struct tarn_options *o, struct tarn_column_rule *rule)
{
    const char *expected = expected_type(rule->aggregate, field->type);

    if (expected != NULL)
        return invalid(field->name, "aggregate-function",
                       tarn_slice_str(tarn_aggregate_name(rule->aggregate)), expected);
    TARN_TRY(take_bool(schema, field->name, "ignore-retract", &rule->ignore_retract));
    if (rule->ignore_retract && o->remove_on_delete && o->merge_engine == TARN_MERGE_AGGREGATION)
        return invalid(field->name, "ignore-retract", tarn_slice_str("true"),
                       "false where aggregation.remove-record-on-delete is true");
    TARN_TRY(take_bool(schema, field->name, "distinct", &rule->distinct));
    rule->delimiter = option_of(schema, field->name, "list-agg-delimiter");
    if (rule->delimiter.data == NULL)
        rule->delimiter = tarn_slice_str(",");
    if (rule->aggregate == TARN_AGGREGATE_MERGE_MAP_BY_TIME)
        return take_time_field(schema, field, rule);
    if (rule->aggregate == TARN_AGGREGATE_NESTED_UPDATE ||
        rule->aggregate == TARN_AGGREGATE_NESTED_PARTIAL_UPDATE)
        return take_nested(schema, field, arena, rule);
    return TARN_OK;
}

static bool is_among(const struct tarn_slice *names, size_t count, struct tarn_slice name)
{
    for (size_t i = 0; i < count; i++) {
        if (tarn_slice_equal(names[i], name))
            return true;
    }
    return false;
}

static bool is_sequence_field(const struct tarn_options *o, int column)
{
    for (size_t i = 0; i < o->sequence_column_count; i++) {
        if (o->sequence_columns[i] == column)
            return true;
    }
    return false;
}

/* The function's name that options give the column; absent: none. */
static struct tarn_slice named_function(const struct tarn_schema *schema, struct tarn_slice column)
{
    struct tarn_slice name = option_of(schema, column, "aggregate-function");
    return name.data != NULL ? name
                             : tarn_schema_option(schema, "fields.default-aggregate-function");
}

/* --- aggregation --- */

static struct tarn_status *parse_aggregation(const struct tarn_schema *schema,
                                             struct tarn_arena *arena, struct tarn_options *o,
                                             struct tarn_column_rule *rules)
{
    for (size_t i = 0; i < schema->field_count; i++) {
        const struct tarn_field *field = &schema->fields[i];
        struct tarn_slice name = named_function(schema, field->name);

        rules[i].aggregate = TARN_AGGREGATE_LAST_NON_NULL;
        if (is_sequence_field(o, (int)i))
            rules[i].aggregate = TARN_AGGREGATE_LAST;
        else if (is_among(schema->primary_keys, schema->primary_key_count, field->name))
            rules[i].aggregate = TARN_AGGREGATE_KEY;
        else if (name.data != NULL)
            TARN_TRY(find_function(field->name, name, arena, o, &rules[i].aggregate));
        TARN_TRY(take_details(schema, field, arena, o, &rules[i]));
    }
    return TARN_OK;
}

/* --- partial-update --- */

/* X of fields.X.sequence-group; absent for other options. */
static struct tarn_slice group_of(struct tarn_slice key)
{
    static const char begin[] = "fields.", end[] = ".sequence-group";
    size_t a = sizeof begin - 1, b = sizeof end - 1;

    if (key.size <= a + b || !tarn_slice_starts_with(key, tarn_slice_str(begin)) ||
        memcmp(key.data + key.size - b, end, b) != 0)
        return (struct tarn_slice){0};
    return tarn_slice_of(key.data + a, key.size - a - b);
}

static struct tarn_status *join_group(const struct tarn_schema *schema, struct tarn_slice name,
                                      int group, struct tarn_slice ordered_by,
                                      struct tarn_column_rule *rules, int *column)
{
    *column = tarn_schema_find(schema, name);
    if (*column < 0)
        return tarn_status_new(TARN_SCHEMA_INVALID,
                               "option fields.%.*s.sequence-group names \"%.*s\": no column of the "
                               "table",
                               TARN_SLICE_ARG(ordered_by), TARN_SLICE_ARG(name));
    if (is_among(schema->primary_keys, schema->primary_key_count, name))
        return tarn_status_new(TARN_SCHEMA_INVALID,
                               "option fields.%.*s.sequence-group: column %.*s is of the primary "
                               "key; leave it out",
                               TARN_SLICE_ARG(ordered_by), TARN_SLICE_ARG(name));
    if (rules[*column].group >= 0)
        return tarn_status_new(TARN_SCHEMA_INVALID,
                               "option fields.%.*s.sequence-group: column %.*s is in a group "
                               "already; a column can be in one",
                               TARN_SLICE_ARG(ordered_by), TARN_SLICE_ARG(name));
    rules[*column].group = group;
    return TARN_OK;
}

static struct tarn_status *parse_group(const struct tarn_schema *schema,
                                       const struct tarn_pair *option, int number,
                                       struct tarn_arena *arena, struct tarn_column_rule *rules,
                                       struct tarn_sequence_group *out)
{
    struct tarn_slice ordered_by = group_of(option->key), name;
    int *columns = tarn_arena_calloc(arena, count_names(ordered_by), sizeof *columns);
    size_t at = 0;
    int column;

    while (next_name(ordered_by, &at, &name)) {
        TARN_TRY(join_group(schema, name, number, ordered_by, rules, &column));
        if (!tarn_type_is_ordered(schema->fields[column].type))
            return invalid(ordered_by, "sequence-group", option->value,
                           "a group ordered by columns that can be compared");
        rules[column].orders = true;
        columns[out->column_count++] = column;
    }
    out->columns = columns;
    at = 0;
    while (next_name(option->value, &at, &name))
        TARN_TRY(join_group(schema, name, number, ordered_by, rules, &column));
    return TARN_OK;
}

/* partial-update.remove-record-on-sequence-group: columns that order groups. */
static struct tarn_status *parse_removal(const struct tarn_schema *schema,
                                         const struct tarn_column_rule *rules,
                                         struct tarn_sequence_group *groups)
{
    static const char key[] = "partial-update.remove-record-on-sequence-group";
    struct tarn_slice list = tarn_schema_option(schema, key), name;
    size_t at = 0;

    while (next_name(list, &at, &name)) {
        int column = tarn_schema_find(schema, name);
        if (column < 0 || !rules[column].orders)
            return tarn_status_new(TARN_SCHEMA_INVALID,
                                   "option %s names \"%.*s\", which orders no sequence group", key,
                                   TARN_SLICE_ARG(name));
        groups[rules[column].group].removes_record = true;
    }
    return TARN_OK;
}

static struct tarn_status *parse_groups(const struct tarn_schema *schema, struct tarn_arena *arena,
                                        struct tarn_options *o, struct tarn_column_rule *rules)
{
    struct tarn_sequence_group *groups =
        tarn_arena_calloc(arena, schema->option_count + 1, sizeof *groups);

    for (size_t i = 0; i < schema->option_count; i++) {
        if (group_of(schema->options[i].key).data == NULL)
            continue;
        TARN_TRY(parse_group(schema, &schema->options[i], (int)o->group_count, arena, rules,
                             &groups[o->group_count]));
        o->group_count++;
    }
    o->groups = groups;
    return parse_removal(schema, rules, groups);
}

static struct tarn_status *check_partial_deletes(const struct tarn_schema *schema,
                                                 const struct tarn_options *o)
{
    static const char on_delete[] = "partial-update.remove-record-on-delete";
    static const char on_group[] = "partial-update.remove-record-on-sequence-group";
    bool by_group = tarn_schema_option(schema, on_group).data != NULL;

    if (o->ignore_delete && (o->remove_on_delete || by_group))
        return tarn_status_new(TARN_SCHEMA_INVALID, "option %s isn't for ignore-delete = true",
                               o->remove_on_delete ? on_delete : on_group);
    if (o->remove_on_delete && o->group_count > 0)
        return tarn_status_new(TARN_SCHEMA_INVALID,
                               "option %s isn't for a table with sequence groups: see %s",
                               on_delete, on_group);
    return TARN_OK;
}

static struct tarn_status *parse_partial(const struct tarn_schema *schema, struct tarn_arena *arena,
                                         struct tarn_options *o, struct tarn_column_rule *rules)
{
    TARN_TRY(parse_groups(schema, arena, o, rules));
    for (size_t i = 0; i < schema->field_count; i++) {
        const struct tarn_field *field = &schema->fields[i];
        struct tarn_slice name = named_function(schema, field->name);
        struct tarn_column_rule *rule = &rules[i];

        if (is_among(schema->primary_keys, schema->primary_key_count, field->name)) {
            rule->aggregate = TARN_AGGREGATE_KEY;
        } else if (name.data != NULL && !rule->orders) {
            TARN_TRY(find_function(field->name, name, arena, o, &rule->aggregate));
            if (rule->group < 0 && rule->aggregate != TARN_AGGREGATE_LAST_NON_NULL)
                return invalid(field->name, "aggregate-function", name,
                               "a sequence group that has the column: partial-update computes "
                               "such functions within groups only");
        }
        TARN_TRY(take_details(schema, field, arena, o, rule));
    }
    return check_partial_deletes(schema, o);
}

struct tarn_status *tarn_format__parse_engine(const struct tarn_schema *schema,
                                              struct tarn_arena *arena, struct tarn_options *o)
{
    bool partial = o->merge_engine == TARN_MERGE_PARTIAL_UPDATE;
    struct tarn_slice remove =
        tarn_schema_option(schema, partial ? "partial-update.remove-record-on-delete"
                                           : "aggregation.remove-record-on-delete");

    o->skip_level_0 = o->merge_engine == TARN_MERGE_FIRST_ROW;
    if (!partial && o->merge_engine != TARN_MERGE_AGGREGATION)
        return TARN_OK;
    struct tarn_column_rule *rules =
        tarn_arena_calloc(arena, schema->field_count + 1, sizeof *rules);
    for (size_t i = 0; i < schema->field_count; i++)
        rules[i].group = -1;
    o->remove_on_delete =
        remove.data != NULL && tarn_format__is_word(tarn_format__trim(remove), "true");
    TARN_TRY(partial ? parse_partial(schema, arena, o, rules)
                     : parse_aggregation(schema, arena, o, rules));
    o->rules = rules;
    return TARN_OK;
}
