/*
 * Promise: counts are exact under threads, label values are bounded, and the text is Prometheus'
 * exposition format. The numbers are the process': each test uses metrics of its own.
 */
#include "test.h"

#include <pthread.h>

static const char *print(struct tarn_test *t)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf buf = {0};
    tarn_metrics_print(&buf);
    return tarn_arena_str(t->arena, tarn_buf_slice(&buf));
}

static void *add_many(void *arg)
{
    for (int i = 0; i < 20000; i++) {
        tarn_metric_add(TARN_M_PLANS, NULL, 1);
        tarn_metric_add(TARN_M_COMMITS, i % 2 == 0 ? "append" : "compact", 1);
    }
    return NULL;
}

TARN_TEST(metrics, lose_nothing_between_threads)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        expect_int(pthread_create(&threads[i], NULL, add_many, NULL), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    const char *text = print(t);
    expect_contains(text, "\ntarn_plans_total 80000\n");
    expect_contains(text, "\ntarn_commits_total{kind=\"append\"} 40000\n");
    expect_contains(text, "\ntarn_commits_total{kind=\"compact\"} 40000\n");
}

TARN_TEST(metrics, have_help_type_and_zero_from_the_start)
{
    const char *text = print(t);
    expect_contains(text,
                    "# HELP tarn_tables Tables known\n# TYPE tarn_tables gauge\ntarn_tables 0\n");
    expect_contains(text, "# TYPE tarn_commit_seconds histogram\n");
    expect_contains(text, "tarn_commit_seconds_bucket{le=\"+Inf\"} 0\n");
}

TARN_TEST(metrics, gauges_go_both_ways)
{
    tarn_metric_set(TARN_M_WORKERS, NULL, 5);
    tarn_metric_add(TARN_M_WORKERS, NULL, -2);
    expect_contains(print(t), "\ntarn_workers 3\n");
    tarn_metric_set(TARN_M_WORKERS, NULL, 0.5);
    expect_contains(print(t), "\ntarn_workers 0.5\n");
}

TARN_TEST(metrics, histograms_are_cumulative_with_bounds_inclusive)
{
    tarn_metric_observe(TARN_M_PLAN_SECONDS, NULL, 0);
    tarn_metric_observe(TARN_M_PLAN_SECONDS, NULL, 1);
    tarn_metric_observe(TARN_M_PLAN_SECONDS, NULL, 1.25);
    tarn_metric_observe(TARN_M_PLAN_SECONDS, NULL, 1000);
    const char *text = print(t);
    expect_contains(text, "tarn_plan_seconds_bucket{le=\"0.00048828125\"} 1\n");
    expect_contains(text, "tarn_plan_seconds_bucket{le=\"0.5\"} 1\n");
    expect_contains(text, "tarn_plan_seconds_bucket{le=\"1\"} 2\n");
    expect_contains(text, "tarn_plan_seconds_bucket{le=\"2\"} 3\n");
    expect_contains(text, "tarn_plan_seconds_bucket{le=\"64\"} 3\n");
    expect_contains(text, "tarn_plan_seconds_bucket{le=\"+Inf\"} 4\n");
    expect_contains(text, "tarn_plan_seconds_sum 1002.25\ntarn_plan_seconds_count 4\n");
}

TARN_TEST(metrics, label_values_are_bounded_and_made_harmless)
{
    tarn_metric_add(TARN_M_RPC_CALLS, "a\"b\\c\n\xff", 1);
    for (int i = 0; i < 200; i++) {
        char label[16];
        snprintf(label, sizeof label, "L%d", i);
        tarn_metric_add(TARN_M_RPC_CALLS, label, 1);
    }
    const char *text = print(t);
    expect_contains(text, "\ntarn_rpc_calls_total{code=\"a\\\"b\\\\c??\"} 1\n");
    expect_contains(text, "\ntarn_rpc_calls_total{code=\"L62\"} 1\n");
    expect_contains(text, "\ntarn_rpc_calls_total{code=\"other\"} 137\n");
    expect_null(strstr(text, "\"L63\""));
    char huge[1000];
    memset(huge, 'x', sizeof huge - 1);
    huge[sizeof huge - 1] = 0;
    tarn_metric_add(TARN_M_COMPACTIONS, huge, 1);
    expect_null(strstr(print(t), tarn_arena_str(t->arena, tarn_slice_of(huge, 200))));
}

TARN_TEST(metrics, other_is_one_series_also_where_somebody_is_called_so)
{
    tarn_metric_add(TARN_M_HTTP_REQUESTS, "other", 1);
    for (int i = 0; i < 100; i++) {
        char label[16];
        snprintf(label, sizeof label, "%d", i);
        tarn_metric_add(TARN_M_HTTP_REQUESTS, label, 1);
    }
    expect_contains(print(t), "\ntarn_http_requests_total{status=\"other\"} 38\n");
}
