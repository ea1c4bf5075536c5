/*
 * Promise: the score of a bucket grows with what makes it worth compacting and falls with what it costs; shares never turn it over by
 * more than a factor of three; whoever waits long enough comes before whoever came later; deadlines and orders come first. Budgets are never exceeded.
 */
#include "maintain/maintain.h"
#include "test/lib/test.h"

static struct tarn_score_inputs random_inputs(struct tarn_test *t)
{
    struct tarn_score_inputs in = {
        .runs = (int32_t)tarn_test_random_between(t, 1, 100),
        .run_trigger = (int32_t)tarn_test_random_between(t, 1, 20),
        .new_size = tarn_test_random_between(t, 1, 1000000),
        .row_count = tarn_test_random_between(t, 1, 100000),
        .file_count = tarn_test_random_between(t, 1, 100),
        .full_interval_ms = tarn_test_random_one_in(t, 2) ? -1 : 60000,
        .full_age_ms = tarn_test_random_between(t, 0, 600000),
        .waiting_ms = tarn_test_random_between(t, 0, 600000),
        .database_share = (double)tarn_test_random_below(t, 101) / 100,
        .table_share = (double)tarn_test_random_below(t, 101) / 100,
    };
    in.pick_size = in.new_size + tarn_test_random_between(t, 0, 10000000);
    in.delete_row_count = tarn_test_random_between(t, 0, in.row_count);
    in.small_file_count = tarn_test_random_between(t, 0, in.file_count);
    return in;
}

static double total(const struct tarn_score_inputs *in)
{
    struct tarn_score score;
    tarn_score(in, &score);
    return score.total;
}

TARN_TEST(score, grows_with_need_and_falls_with_cost)
{
    for (int i = 0; i < 2000; i++) {
        struct tarn_score_inputs in = random_inputs(t), more = in;
        double base = total(&in);
        expect_true(base >= 0);
        more.runs++;
        expect_true(total(&more) > base);
        more = in;
        more.pick_size += more.pick_size + 1;
        expect_true(total(&more) < base);
        more = in;
        more.waiting_ms += 1000;
        expect_true(total(&more) > base);
        more = in;
        more.delete_row_count = in.row_count;
        more.small_file_count = in.file_count;
        expect_true(total(&more) >= base);
        more = in;
        more.table_share += 0.5;
        expect_true(total(&more) < base);
    }
}

TARN_TEST(score, shares_are_worth_a_factor_of_three_at_most)
{
    for (int i = 0; i < 2000; i++) {
        struct tarn_score_inputs alone = random_inputs(t), crowded = alone;
        alone.database_share = alone.table_share = 0;
        crowded.database_share = crowded.table_share = 1;
        expect_true(total(&alone) <= 3.0001 * total(&crowded));
        expect_true(total(&alone) >= total(&crowded));
    }
}

TARN_TEST(score, who_waits_long_enough_comes_first)
{
    for (int i = 0; i < 2000; i++) {
        struct tarn_score_inputs old = random_inputs(t), young = random_inputs(t);
        young.waiting_ms = 0;
        young.freshness_ms = 10000; /* even where it is late */
        young.lag_ms = tarn_test_random_between(t, 0, 1000000);
        young.run_stop_trigger = young.run_trigger + 3;
        old.waiting_ms = (int64_t)24 * 3600 * 1000;
        expect_true(total(&old) > total(&young));
    }
}

TARN_TEST(score, deadlines_and_orders_come_first)
{
    struct tarn_score_inputs busy = {.runs = 20, .run_trigger = 5, .run_stop_trigger = 8};
    struct tarn_score_inputs fresh = {.runs = 1, .run_trigger = 5, .freshness_ms = 10000};
    struct tarn_score_inputs late = fresh, ordered = {.runs = 1, .run_trigger = 5, .ordered = true};
    late.lag_ms = 20000;
    expect_true(total(&fresh) > total(&busy));
    expect_true(total(&late) > total(&fresh));
    expect_true(total(&ordered) > total(&late));
}

TARN_TEST(budget, is_never_exceeded)
{
    for (int round = 0; round < 50; round++) {
        int64_t rate = tarn_test_random_between(t, 1, 100000), now = 0, begun = 0;
        int64_t burst = rate * TARN_BUDGET_BURST_SECONDS;
        double taken = 0; /* the last one left out: it may be larger than what was there */
        struct tarn_budget b;
        tarn_budget_init(&b, rate, 0);
        for (int i = 0; i < 500; i++) {
            int64_t amount = tarn_test_random_between(t, 1, burst * 3);
            now += tarn_test_random_between(t, 0, 20000);
            if (!tarn_budget_has(&b, amount, now))
                continue;
            expect_true(taken <= (double)burst + (double)rate * (double)(now - begun) / 1000 + 1);
            tarn_budget_take(&b, amount, now);
            taken += (double)amount;
        }
        expect_true(taken > 0);
    }
}

TARN_TEST(budget, lets_all_through_in_time)
{
    struct tarn_budget b;
    tarn_budget_init(&b, 100, 0);
    expect_true(tarn_budget_has(&b, 1000000, 0)); /* larger than the burst: when it is full */
    tarn_budget_take(&b, 5000, 0);
    expect_int(tarn_budget_tokens(&b, 0), -4000);
    expect_false(tarn_budget_has(&b, 1, 39999));
    expect_true(tarn_budget_has(&b, 1, 41000));
    tarn_budget_take(&b, -5000, 41000); /* it wasn't needed */
    expect_int(tarn_budget_tokens(&b, 41000), 1000);
    tarn_budget_init(&b, 0, 0);
    expect_true(tarn_budget_has(&b, INT64_MAX, 0));
}

TARN_TEST(window, opens_and_closes)
{
    struct tarn_window w;
    const int64_t hour = 3600000;
    expect_ok(tarn_window_parse(tarn_slice_str("22:00-06:30"), &w));
    expect_true(tarn_window_is_open(&w, 23 * hour));
    expect_true(tarn_window_is_open(&w, 6 * hour + 29 * 60000));
    expect_false(tarn_window_is_open(&w, 6 * hour + 30 * 60000));
    expect_false(tarn_window_is_open(&w, 12 * hour));
    expect_ok(tarn_window_parse(tarn_slice_str("08:00-12:00"), &w));
    expect_true(tarn_window_is_open(&w, 8 * hour));
    expect_false(tarn_window_is_open(&w, 12 * hour));
    expect_ok(tarn_window_parse(tarn_slice_str(""), &w));
    expect_true(tarn_window_is_open(&w, 12 * hour));
    static const char *const bad[] = {"22:00",           "22:00-",      "25:00-06:00",
                                      "22:60-06:00",     "22:00-22:00", "22:00-06:00 ",
                                      "at night, please"};
    for (size_t i = 0; i < TARN_COUNT_OF(bad); i++)
        expect_status(tarn_window_parse(tarn_slice_str(bad[i]), &w), TARN_INVALID_ARGUMENT,
                      "22:00-06:00");
}
