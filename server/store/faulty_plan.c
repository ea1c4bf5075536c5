/*
 * Which call suffers what: rules in order, then the dice of the plan.
 *
 * The dice are a hash of seed, call, class of key and how many such calls there were, so that threads
 * may come in any order. The class of a key is the key with its uuids taken out.
 */
#include "store/faulty_internal.h"

#define PER_MILLE 1000

static const char *const calls[] = {
    "get",  "stat",          "put",    "put_hint", "put_many",    "puts",
    "*",    "put_if_absent", "remove", "list",     "move_folder", "prune",
    "open", "read_at",       "create", "append",   "finish",
};

static const char *const puts_calls[] = {"put",    "put_hint", "put_many", "put_if_absent",
                                         "create", "append",   "finish"};

static const char *const words[TARN_FAULT_COUNT] = {
    [TARN_FAULT_FAIL_BEFORE] = "fail_before",
    [TARN_FAULT_FAIL_AFTER] = "fail_after",
    [TARN_FAULT_UNKNOWN] = "unknown",
    [TARN_FAULT_DELAY] = "delay",
    [TARN_FAULT_TEAR] = "tear",
    [TARN_FAULT_FULL] = "full",
    [TARN_FAULT_EMPTY_LIST] = "empty_list",
    [TARN_FAULT_KILL_BEFORE] = "kill_before",
    [TARN_FAULT_KILL_AFTER] = "kill_after",
    [TARN_FAULT_KILL_WITHIN] = "kill_within",
    [TARN_FAULT_LATE] = "late",
    [TARN_FAULT_SHORT_LIST] = "short_list",
    [TARN_FAULT_STALE_LIST] = "stale_list",
    [TARN_FAULT_DENIED] = "denied",
    [TARN_FAULT_NOT_FOUND] = "not_found",
    [TARN_FAULT_UNAVAILABLE] = "unavailable",
    [TARN_FAULT_THROTTLE] = "throttle",
};

static bool is_one_of(const char *const *list, size_t count, const char *word)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(list[i], word) == 0)
            return true;
    }
    return false;
}

bool tarn_store__faulty_is_call(const char *word)
{
    return is_one_of(calls, TARN_COUNT_OF(calls), word);
}

enum tarn_fault tarn_store__faulty_find(const char *word)
{
    int i = 0;
    while (i < TARN_FAULT_COUNT && strcmp(words[i], word) != 0)
        i++;
    return (enum tarn_fault)i;
}

/* ---- rules ---- */

static bool names_call(const char *word, const char *call)
{
    return strcmp(word, "*") == 0 || strcmp(word, call) == 0 ||
           (strcmp(word, "puts") == 0 && is_one_of(puts_calls, TARN_COUNT_OF(puts_calls), call));
}

static bool matches(const struct fault_rule *rule, const char *call, const char *key)
{
    return names_call(rule->is.call, call) &&
           (rule->is.key_part == NULL || strstr(key, rule->is.key_part) != NULL);
}

static bool strikes_now(struct fault_rule *rule)
{
    int64_t nth = rule->seen++;
    return nth >= rule->is.skip_count &&
           (rule->is.hit_count == 0 || nth - rule->is.skip_count < rule->is.hit_count);
}

static void ask_rules(struct faulty *f, struct strike *strike, int64_t *delay_ms)
{
    for (size_t i = 0; i < f->rule_count; i++) {
        struct fault_rule *rule = &f->rules[i];
        if (!matches(rule, strike->call, strike->key) || !strikes_now(rule))
            continue;
        if (rule->is.fault == TARN_FAULT_DELAY) {
            *delay_ms += rule->is.delay_ms;
            continue;
        }
        strike->hit = true;
        strike->fault = rule->is.fault;
        strike->delay_ms = rule->is.delay_ms;
        strike->calls = rule->is.calls;
        return;
    }
}

/* ---- the plan ---- */

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* 8-4-4-4-12 digits, as tarn_uuid_random and Paimon write them. */
static bool is_uuid(const char *text)
{
    for (int i = 0; i < 36; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash ? text[i] != '-' : !is_hex(text[i])) /* ends at a NUL too */
            return false;
    }
    return true;
}

static uint64_t hash_class(uint64_t seed, const char *call, const char *key)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    tarn_buf_printf(&text, "%s:", call);
    while (*key != '\0') {
        if (is_uuid(key))
            key += 36;
        else
            tarn_buf_add(&text, key++, 1);
    }
    return tarn_xxh64(tarn_buf_slice(&text), seed);
}

static bool writes(const char *call)
{
    return is_one_of(puts_calls, TARN_COUNT_OF(puts_calls), call);
}

static bool makes_sense(enum tarn_fault fault, const char *call)
{
    switch (fault) {
    case TARN_FAULT_LATE:
        return strcmp(call, "put_if_absent") == 0;
    case TARN_FAULT_EMPTY_LIST:
    case TARN_FAULT_SHORT_LIST:
    case TARN_FAULT_STALE_LIST:
        return strcmp(call, "list") == 0;
    case TARN_FAULT_NOT_FOUND:
        return strcmp(call, "get") == 0 || strcmp(call, "stat") == 0 || strcmp(call, "open") == 0;
    case TARN_FAULT_FULL:
        return writes(call);
    case TARN_FAULT_TEAR:
    case TARN_FAULT_KILL_WITHIN:
        return writes(call) && strcmp(call, "create") != 0 && strcmp(call, "finish") != 0;
    default:
        return true;
    }
}

static int64_t up_to(uint64_t *dice, int64_t max)
{
    int64_t value = max <= 0 ? 0 : 1 + (int64_t)(*dice % (uint64_t)max);
    *dice /= max <= 0 ? 1 : (uint64_t)max;
    return value;
}

static void fill_from_plan(const struct tarn_fault_plan *plan, struct strike *strike)
{
    uint64_t *dice = &strike->dice;
    switch (strike->fault) {
    case TARN_FAULT_DELAY:
        strike->delay_ms = up_to(dice, plan->delay_ms);
        break;
    case TARN_FAULT_THROTTLE:
        strike->delay_ms = up_to(dice, plan->throttle_ms);
        break;
    case TARN_FAULT_LATE:
        strike->delay_ms = up_to(dice, plan->late_ms);
        strike->calls = (int)up_to(dice, plan->late_calls);
        break;
    case TARN_FAULT_STALE_LIST:
        strike->calls = (int)up_to(dice, plan->stale_calls);
        break;
    default:
        break;
    }
}

static void ask_plan(struct faulty *f, struct strike *strike, int64_t *delay_ms)
{
    const struct tarn_fault_plan *plan = &f->plan;
    if (!f->has_plan || (plan->key_part != NULL && strstr(strike->key, plan->key_part) == NULL))
        return;
    uint64_t class = hash_class(plan->seed, strike->call, strike->key);
    uint32_t nth = f->counters[class & (TARN_STORE_PLAN_COUNTERS - 1)]++;
    strike->dice = tarn_xxh64(tarn_slice_of(&nth, sizeof nth), class);
    int64_t roll = (int64_t)(strike->dice % PER_MILLE);
    strike->dice /= PER_MILLE;
    for (int fault = 0; fault < TARN_FAULT_COUNT && !strike->hit; fault++) {
        if (!makes_sense((enum tarn_fault)fault, strike->call))
            continue;
        roll -= plan->per_mille[fault];
        if (roll < 0) {
            strike->hit = true;
            strike->fault = (enum tarn_fault)fault;
            fill_from_plan(plan, strike);
        }
    }
    if (strike->hit && strike->fault == TARN_FAULT_DELAY) {
        *delay_ms += strike->delay_ms;
        strike->hit = false;
    }
}

/* ---- both ---- */

void tarn_store__faulty_draw(struct faulty *f, const char *call, const char *key,
                             struct strike *out, int64_t *delay_ms)
{
    int64_t now_ms = tarn_clock_mono_ms();
    *delay_ms = 0;
    *out = (struct strike){.call = call, .key = key};
    pthread_mutex_lock(&f->mutex);
    out->number = atomic_fetch_add(&f->call_count, 1);
    if (now_ms < f->throttled_until_ms) {
        out->hit = true;
        out->fault = TARN_FAULT_THROTTLE;
        out->delay_ms = f->throttled_until_ms - now_ms;
    } else {
        ask_rules(f, out, delay_ms);
        if (!out->hit)
            ask_plan(f, out, delay_ms);
        if (out->hit && out->fault == TARN_FAULT_THROTTLE)
            f->throttled_until_ms = now_ms + out->delay_ms;
    }
    pthread_mutex_unlock(&f->mutex);
}

void tarn_store__faulty_forget_rules(struct faulty *f)
{
    for (size_t i = 0; i < f->rule_count; i++) {
        free((char *)f->rules[i].is.call);
        free((char *)f->rules[i].is.key_part);
    }
    f->rule_count = 0;
}

void tarn_store__faulty_forget_plan(struct faulty *f)
{
    free((char *)f->plan.key_part);
    free(f->counters);
    f->counters = NULL;
    f->plan = (struct tarn_fault_plan){0};
    f->has_plan = false;
}
