/*
 * metrics - counters, gauges and histograms in Prometheus' text format.
 *
 * What exists is one table, metrics.def: M(name, kind, label, help). A metric has at most one label.
 *
 *   tarn_metric_add(TARN_M_COMMITS, "append", 1);
 *
 * Threads  any; updates are atomic.
 */
#ifndef TARN_BASE_METRICS_H
#define TARN_BASE_METRICS_H

#include <stdint.h>

#include "base/memory.h"

enum tarn_metric_kind { TARN_COUNTER, TARN_GAUGE, TARN_HISTOGRAM };

enum tarn_metric {
#define M(id, name, kind, label, help) TARN_M_##id,
#include "base/metrics.def"
#undef M
    TARN_METRIC_COUNT
};

#define TARN_METRIC_LABEL_VALUES_MAX 64 /* per metric; further values are counted under "other" */

/* label: the value of the metric's label, NULL where it has none. */
void tarn_metric_add(enum tarn_metric metric, const char *label, double value);
void tarn_metric_set(enum tarn_metric metric, const char *label, double value);
/* Histograms: seconds, buckets 0.5 ms to 64 s by powers of two. */
void tarn_metric_observe(enum tarn_metric metric, const char *label, double seconds);
void tarn_metrics_print(struct tarn_buf *out);

#endif
