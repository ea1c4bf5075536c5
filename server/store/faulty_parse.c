/*
 * The text of TARN_STORE_FAULTS to rules and a plan; its form is explained in faulty.h.
 */
#include "store/internal.h"

#include "store/faulty_internal.h"

#define FIELDS_MIN 5
#define FIELDS_MAX 7
#define PER_MILLE_MAX 1000

static struct tarn_status *parse_count(const char *text, const char *what, int max, int *out)
{
    int64_t value = 0;
    TARN_TRY(tarn_parse_i64(tarn_slice_str(text), &value));
    if (value < 0 || value > max)
        return tarn_status_new(TARN_VALUE_INVALID, "%s is %s, expected 0 to %d", what, text, max);
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
    if (count < FIELDS_MIN || count > FIELDS_MAX)
        return tarn_status_new(TARN_VALUE_INVALID,
                               "expected call:key_part:skip:hits:fault[:delay_ms[:calls]]");
    if (!tarn_store__faulty_is_call(fields[0]))
        return tarn_status_new(TARN_VALUE_INVALID, "no call is named '%s'", fields[0]);
    enum tarn_fault fault = tarn_store__faulty_find(fields[4]);
    if (fault == TARN_FAULT_COUNT)
        return tarn_status_new(TARN_VALUE_INVALID, "no fault is named '%s'", fields[4]);
    *rule = (struct tarn_fault_rule){
        .call = fields[0],
        .key_part = fields[1][0] == '\0' ? NULL : fields[1],
        .fault = fault,
    };
    TARN_TRY(parse_count(fields[2], "skip", INT32_MAX, &rule->skip_count));
    TARN_TRY(parse_count(fields[3], "hits", INT32_MAX, &rule->hit_count));
    if (count > 5)
        TARN_TRY(parse_count(fields[5], "delay_ms", INT32_MAX, &delay_ms));
    if (count > 6)
        TARN_TRY(parse_count(fields[6], "calls", INT32_MAX, &rule->calls));
    rule->delay_ms = delay_ms;
    return TARN_OK;
}

static struct tarn_status *parse_number_of_plan(const char *name, const char *value,
                                                struct tarn_fault_plan *plan)
{
    int number = 0;
    enum tarn_fault fault = tarn_store__faulty_find(name);
    if (fault != TARN_FAULT_COUNT)
        return parse_count(value, name, PER_MILLE_MAX, &plan->per_mille[fault]);
    TARN_TRY(parse_count(value, name, INT32_MAX, &number));
    if (strcmp(name, "seed") == 0)
        plan->seed = (uint64_t)number;
    else if (strcmp(name, "delay_ms") == 0)
        plan->delay_ms = number;
    else if (strcmp(name, "throttle_ms") == 0)
        plan->throttle_ms = number;
    else if (strcmp(name, "late_ms") == 0)
        plan->late_ms = number;
    else if (strcmp(name, "late_calls") == 0)
        plan->late_calls = number;
    else if (strcmp(name, "stale_calls") == 0)
        plan->stale_calls = number;
    else
        return tarn_status_new(TARN_VALUE_INVALID, "a plan has no '%s'", name);
    return TARN_OK;
}

static struct tarn_status *parse_plan(char *text, struct tarn_fault_plan *plan)
{
    for (char *name; (name = strsep(&text, ",")) != NULL;) {
        if (name[0] == '\0')
            continue;
        char *value = strchr(name, '=');
        if (value == NULL)
            return tarn_status_new(TARN_VALUE_INVALID, "expected name=value, not '%s'", name);
        *value++ = '\0';
        if (strcmp(name, "key") == 0)
            plan->key_part = value;
        else
            TARN_TRY(parse_number_of_plan(name, value, plan));
    }
    return TARN_OK;
}

static struct tarn_status *parse_part(struct tarn_store *faulty, char *part)
{
    if (strcmp(part, "remote") == 0) {
        tarn_store_faulty_set_remote(faulty, true);
        return TARN_OK;
    }
    if (strncmp(part, "plan:", 5) == 0) {
        struct tarn_fault_plan plan = {0};
        TARN_TRY(parse_plan(part + 5, &plan));
        tarn_store_faulty_plan(faulty, &plan);
        return TARN_OK;
    }
    struct tarn_fault_rule rule;
    TARN_TRY(parse_rule(part, &rule));
    tarn_store_faulty_add(faulty, &rule);
    return TARN_OK;
}

struct tarn_status *tarn_store__faulty_parse(struct tarn_store *faulty, const char *text)
{
    TARN_OWN(tarn_free_drop) char *copy = tarn_strdup(text);
    char *rest = copy;
    int number = 0;
    for (char *part; (part = strsep(&rest, ";")) != NULL;) {
        if (part[0] == '\0') /* a semicolon at the end */
            continue;
        if (++number > TARN_STORE_FAULTS_MAX)
            return tarn_status_new(TARN_CONFIG_INVALID, "TARN_STORE_FAULTS has more than %d rules",
                                   TARN_STORE_FAULTS_MAX);
        struct tarn_status *status = parse_part(faulty, part);
        if (status != TARN_OK) {
            struct tarn_status *refused =
                tarn_status_new(TARN_CONFIG_INVALID, "TARN_STORE_FAULTS, rule %d: %s", number,
                                tarn_status_message(status));
            tarn_status_free(status);
            return refused;
        }
    }
    return TARN_OK;
}
