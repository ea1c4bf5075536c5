/*
 * The text of TARN_STORE_FAULTS to rules; its form is explained in faulty.c.
 */
#include "store/internal.h"

#define FIELDS_MAX 6

static const char *const calls[] = {
    "get",   "stat", "put",     "put_if_absent", "remove", "list",   "move_folder",
    "prune", "open", "read_at", "create",        "append", "finish", "*",
};

static const char *const faults[] = {
    [TARN_FAULT_FAIL_BEFORE] = "fail_before",
    [TARN_FAULT_FAIL_AFTER] = "fail_after",
    [TARN_FAULT_UNKNOWN] = "unknown",
    [TARN_FAULT_DELAY] = "delay",
    [TARN_FAULT_TEAR] = "tear",
    [TARN_FAULT_FULL] = "full",
    [TARN_FAULT_EMPTY_LIST] = "empty_list",
    [TARN_FAULT_KILL_BEFORE] = "kill_before",
    [TARN_FAULT_KILL_AFTER] = "kill_after",
};

static int find_word(const char *const *words, size_t count, const char *word)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(words[i], word) == 0)
            return (int)i;
    }
    return -1;
}

static struct tarn_status *parse_count(const char *text, const char *what, int *out)
{
    int64_t value = 0;
    TARN_TRY(tarn_parse_i64(tarn_slice_str(text), &value));
    if (value < 0 || value > INT32_MAX)
        return tarn_status_new(TARN_VALUE_INVALID, "%s is %s, expected 0 or more", what, text);
    *out = (int)value;
    return TARN_OK;
}

/* Cuts `text` at its colons, in place. */
static size_t split(char *text, char *fields[FIELDS_MAX])
{
    size_t count = 0;
    for (char *field; (field = strsep(&text, ":")) != NULL; count++) {
        if (count == FIELDS_MAX)
            return count + 1;
        fields[count] = field;
    }
    return count;
}

static struct tarn_status *parse_rule(char *text, struct tarn_fault_rule *rule)
{
    char *fields[FIELDS_MAX];
    int delay_ms = 0;
    size_t count = split(text, fields);
    if (count < FIELDS_MAX - 1 || count > FIELDS_MAX)
        return tarn_status_new(TARN_VALUE_INVALID,
                               "expected call:key_part:skip:hits:fault[:delay_ms]");
    if (find_word(calls, TARN_COUNT_OF(calls), fields[0]) < 0)
        return tarn_status_new(TARN_VALUE_INVALID, "no call is named '%s'", fields[0]);
    int fault = find_word(faults, TARN_COUNT_OF(faults), fields[4]);
    if (fault < 0)
        return tarn_status_new(TARN_VALUE_INVALID, "no fault is named '%s'", fields[4]);
    *rule = (struct tarn_fault_rule){
        .call = fields[0],
        .key_part = fields[1][0] == '\0' ? NULL : fields[1],
        .fault = (enum tarn_fault)fault,
    };
    TARN_TRY(parse_count(fields[2], "skip", &rule->skip_count));
    TARN_TRY(parse_count(fields[3], "hits", &rule->hit_count));
    if (count == FIELDS_MAX)
        TARN_TRY(parse_count(fields[5], "delay_ms", &delay_ms));
    rule->delay_ms = delay_ms;
    return TARN_OK;
}

struct tarn_status *tarn_store__faulty_parse(struct tarn_store *faulty, const char *text)
{
    TARN_OWN(tarn_free_drop) char *copy = tarn_strdup(text);
    char *rest = copy;
    int number = 0;
    for (char *part; (part = strsep(&rest, ";")) != NULL;) {
        struct tarn_fault_rule rule;
        if (part[0] == '\0') /* a semicolon at the end */
            continue;
        if (++number > TARN_STORE_FAULTS_MAX)
            return tarn_status_new(TARN_CONFIG_INVALID, "TARN_STORE_FAULTS has more than %d rules",
                                   TARN_STORE_FAULTS_MAX);
        struct tarn_status *status = parse_rule(part, &rule);
        if (status != TARN_OK) {
            struct tarn_status *refused =
                tarn_status_new(TARN_CONFIG_INVALID, "TARN_STORE_FAULTS, rule %d: %s", number,
                                tarn_status_message(status));
            tarn_status_free(status);
            return refused;
        }
        tarn_store_faulty_add(faulty, &rule);
    }
    return TARN_OK;
}
