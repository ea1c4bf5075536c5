#include "base/metrics.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#define LABEL_SIZE_MAX 128
/* Upper bounds of buckets: 2^-11 s (0.49 ms) to 2^6 s; one more counts the rest. */
#define BUCKET_EXPONENT_MIN (-11)
#define BUCKET_COUNT 18

struct row {
    const char *name;
    enum tarn_metric_kind kind;
    const char *label; /* "": none */
    const char *help;
};

static const struct row rows[TARN_METRIC_COUNT] = {
#define M(id, name, kind, label, help) {name, kind, label, help},
#include "base/metrics.def"
#undef M
};

/* One metric under one value of its label; lives as long as the process. */
struct series {
    char label[LABEL_SIZE_MAX];
    _Atomic uint64_t value_bits;                /* a double's; of a histogram the sum */
    _Atomic uint64_t buckets[BUCKET_COUNT + 1]; /* not cumulative */
};

/* Slots fill from the front and never change once set; the last one is "other". */
static _Atomic(struct series *) all_series[TARN_METRIC_COUNT][TARN_METRIC_LABEL_VALUES_MAX + 1];
static pthread_mutex_t grow_lock = PTHREAD_MUTEX_INITIALIZER; /* guards adding to all_series */

/* Prometheus takes UTF-8 only; label values of ours are ASCII, others may come from a request. */
static void copy_label(char out[LABEL_SIZE_MAX], const char *label)
{
    size_t n = strnlen(label, LABEL_SIZE_MAX - 1);
    for (size_t i = 0; i < n; i++)
        out[i] = label[i] >= 0x20 && label[i] < 0x7f ? label[i] : '?';
    out[n] = 0;
}

static struct series *add_series(enum tarn_metric metric, size_t first, const char *label)
{
    pthread_mutex_lock(&grow_lock);
    struct series *s = NULL;
    for (size_t i = first; i <= TARN_METRIC_LABEL_VALUES_MAX; i++) {
        const char *name = i == TARN_METRIC_LABEL_VALUES_MAX ? "other" : label;
        s = atomic_load(&all_series[metric][i]);
        if (s == NULL) {
            s = tarn_calloc(1, sizeof *s);
            memcpy(s->label, name, strlen(name) + 1);
            atomic_store(&all_series[metric][i], s);
        }
        if (strcmp(s->label, name) == 0)
            break;
    }
    pthread_mutex_unlock(&grow_lock);
    return s;
}

static struct series *series_of(enum tarn_metric metric, const char *label)
{
    tarn_assert((unsigned)metric < TARN_METRIC_COUNT);
    tarn_assert((label == NULL) == (rows[metric].label[0] == 0));
    char name[LABEL_SIZE_MAX];
    copy_label(name, label == NULL ? "" : label);

    size_t i = 0;
    for (int tries = 0; tries < 2; tries++) { /* the second time as "other" */
        for (i = 0; i < TARN_METRIC_LABEL_VALUES_MAX; i++) {
            struct series *s = atomic_load_explicit(&all_series[metric][i], memory_order_acquire);
            if (s == NULL)
                return add_series(metric, i, name);
            if (strcmp(s->label, name) == 0)
                return s;
        }
        memcpy(name, "other", sizeof "other");
    }
    return add_series(metric, i, name);
}

static double double_of(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static void add_to(_Atomic uint64_t *bits, double value)
{
    uint64_t before = atomic_load_explicit(bits, memory_order_relaxed);
    while (!atomic_compare_exchange_weak(bits, &before, bits_of(double_of(before) + value)))
        ;
}

void tarn_metric_add(enum tarn_metric metric, const char *label, double value)
{
    struct series *s = series_of(metric, label);
    tarn_assert(rows[metric].kind != TARN_HISTOGRAM);
    add_to(&s->value_bits, value);
}

void tarn_metric_set(enum tarn_metric metric, const char *label, double value)
{
    struct series *s = series_of(metric, label);
    tarn_assert(rows[metric].kind == TARN_GAUGE);
    atomic_store(&s->value_bits, bits_of(value));
}

static double bucket_bound(int bucket)
{
    return ldexp(1.0, BUCKET_EXPONENT_MIN + bucket);
}

void tarn_metric_observe(enum tarn_metric metric, const char *label, double seconds)
{
    struct series *s = series_of(metric, label);
    tarn_assert(rows[metric].kind == TARN_HISTOGRAM);
    int bucket = 0;
    while (bucket < BUCKET_COUNT && !(seconds <= bucket_bound(bucket)))
        bucket++;
    atomic_fetch_add_explicit(&s->buckets[bucket], 1, memory_order_relaxed);
    add_to(&s->value_bits, seconds);
}

static void print_double(double value, struct tarn_buf *out)
{
    bool is_whole = fabs(value) < 9007199254740992.0 && value == trunc(value);
    tarn_buf_printf(out, is_whole ? "%.0f\n" : "%.17g\n", value);
}

/* name{label="value",le="0.5"}: either may be missing. */
static void print_name(const struct row *row, const char *suffix, const struct series *s,
                       const char *le, struct tarn_buf *out)
{
    bool has_label = row->label[0] != 0;
    tarn_buf_printf(out, "%s%s", row->name, suffix);
    if (has_label || le != NULL)
        tarn_buf_add_byte(out, '{');
    if (has_label) {
        tarn_buf_printf(out, "%s=\"", row->label);
        for (const char *p = s->label; *p != 0; p++) {
            if (*p == '"' || *p == '\\')
                tarn_buf_add_byte(out, '\\');
            tarn_buf_add_byte(out, (uint8_t)*p);
        }
        tarn_buf_add_byte(out, '"');
    }
    if (le != NULL)
        tarn_buf_printf(out, "%sle=\"%s\"", has_label ? "," : "", le);
    tarn_buf_add_str(out, has_label || le != NULL ? "} " : " ");
}

static void print_histogram(const struct row *row, struct series *s, struct tarn_buf *out)
{
    uint64_t count = 0;
    double sum = double_of(atomic_load(&s->value_bits));
    for (int i = 0; i <= BUCKET_COUNT; i++) {
        char le[32] = "+Inf";
        if (i < BUCKET_COUNT)
            snprintf(le, sizeof le, "%.12g", bucket_bound(i));
        count += atomic_load(&s->buckets[i]);
        print_name(row, "_bucket", s, le, out);
        tarn_buf_printf(out, "%" PRIu64 "\n", count);
    }
    print_name(row, "_sum", s, NULL, out);
    print_double(sum, out);
    print_name(row, "_count", s, NULL, out);
    tarn_buf_printf(out, "%" PRIu64 "\n", count);
}

void tarn_metrics_print(struct tarn_buf *out)
{
    static const char *const kinds[] = {"counter", "gauge", "histogram"};
    for (int m = 0; m < TARN_METRIC_COUNT; m++) {
        const struct row *row = &rows[m];
        if (row->label[0] == 0) /* those without a label are there from the start */
            series_of((enum tarn_metric)m, NULL);
        tarn_buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", row->name, row->help, row->name,
                        kinds[row->kind]);
        for (size_t i = 0; i <= TARN_METRIC_LABEL_VALUES_MAX; i++) {
            struct series *s = atomic_load(&all_series[m][i]);
            if (s == NULL)
                continue;
            if (row->kind == TARN_HISTOGRAM) {
                print_histogram(row, s, out);
                continue;
            }
            print_name(row, "", s, NULL, out);
            print_double(double_of(atomic_load(&s->value_bits)), out);
        }
    }
}
