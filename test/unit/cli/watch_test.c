/*
 * Promise: tarn watch asks for what its words say, prints rows of each snapshot once and whole, header once, moves its
 * consumer behind what it printed and no further, and tells the server's end as the server says it; tarn consumer and
 * tarn scan --changes ask for what their words say.
 */
#include "fake.h"

#include "tarn/v1/catalog.pb-c.h"
#include "tarn/v1/data.pb-c.h"
#include "tarn/v1/table.pb-c.h"

#define SERVE                                                                                      \
    TARN_OWN(fake_stop) struct fake fake = {0};                                                    \
    fake_start(&fake);                                                                             \
    has_table(&fake)

#define SUBSCRIBE "TableService/Subscribe"
#define SCAN "DataService/Scan"

static void has_table(struct fake *fake)
{
    Tarn__V1__Table table = TARN__V1__TABLE__INIT;
    table.snapshot_id = 11;
    fake_answers(fake, "CatalogService/GetTable", &table.base);
}

static void tells(struct fake *fake, int64_t id)
{
    Tarn__V1__Snapshot snapshot = TARN__V1__SNAPSHOT__INIT;
    Tarn__V1__SubscribeResponse event = TARN__V1__SUBSCRIBE_RESPONSE__INIT;
    snapshot.id = id;
    snapshot.delta_record_count = 2;
    snapshot.total_record_count = 10;
    event.snapshot = &snapshot;
    event.last_of_snapshot = true;
    event.resume_token = (ProtobufCBinaryData){3, (uint8_t *)(uintptr_t) "tok"};
    fake_answers(fake, SUBSCRIBE, &event.base);
}

static void gives_rows(struct fake *fake, const char *bytes, int64_t rows)
{
    Tarn__V1__ScanResponse part = TARN__V1__SCAN_RESPONSE__INIT,
                           end = TARN__V1__SCAN_RESPONSE__INIT;
    Tarn__V1__ScanSummary summary = TARN__V1__SCAN_SUMMARY__INIT;
    part.data = (ProtobufCBinaryData){strlen(bytes), (uint8_t *)(uintptr_t)bytes};
    summary.rows = rows;
    end.summary = &summary;
    fake_answers(fake, SCAN, &part.base);
    fake_answers(fake, SCAN, &end.base);
}

static Tarn__V1__SubscribeRequest *asked(struct fake *fake)
{
    return (Tarn__V1__SubscribeRequest *)fake_request(fake, SUBSCRIBE, 0,
                                                      &tarn__v1__subscribe_request__descriptor);
}

static void drop(void *message)
{
    protobuf_c_message_free_unpacked(message, NULL);
}

TARN_TEST(cli_watch, prints_each_snapshot_s_rows_and_the_header_once)
{
    SERVE;
    tells(&fake, 4);
    tells(&fake, 5);
    gives_rows(&fake, "rowkind,id\n+I,1\n-D,2\n", 2);
    struct run run = fake_run(t, &fake, "watch", "db.t", "-o", "csv", "--until", "5", NULL);
    expect_str(run.out, "rowkind,id\n+I,1\n-D,2\n+I,1\n-D,2\n");
    expect_int(run.code, 0);
    for (size_t i = 0; i < 2; i++) {
        Tarn__V1__ScanRequest *q = (Tarn__V1__ScanRequest *)fake_request(
            &fake, SCAN, i, &tarn__v1__scan_request__descriptor);
        expect_int(q->changes->from_snapshot, 3 + (int64_t)i);
        expect_int(q->version->snapshot_id, 4 + (int64_t)i);
        expect_int(q->changes->how, TARN__V1__CHANGES__HOW__AUTO);
        drop(q);
    }
}

TARN_TEST(cli_watch, is_a_table_for_people_and_lines_for_programs)
{
    SERVE;
    tells(&fake, 4);
    gives_rows(&fake, "rowkind,id\n+I,1\n-D,\n", 2);
    fake.terminal = true;
    struct run run = fake_run(t, &fake, "watch", "db.t", "--until", "4", NULL);
    expect_str(run.out,
               "snapshot 4, APPEND\nrowkind    id\n-------  ----\n+I          1\n-D       null\n");
    fake.terminal = false;
    run = fake_run(t, &fake, "watch", "db.t", "--events", "--limit", "1", NULL);
    expect_contains(run.out, "{\"id\":4,");
    expect_contains(run.out, "\"delta_records\":2,");
    expect_true(strchr(run.out, '\n') == run.out + strlen(run.out) - 1); /* one line, no array */
    fake.terminal = true;
    run = fake_run(t, &fake, "watch", "db.t", "--events", "--limit", "1", NULL);
    expect_contains(run.out,
                    "snapshot 4  1970-01-01T00:00:00.000Z  APPEND     +2 records, 10 in all");
}

TARN_TEST(cli_watch, begins_where_its_words_say)
{
    static const struct {
        const char *word;
        Tarn__V1__SubscribeRequest__FromCase from;
    } words[] = {
        {"latest", TARN__V1__SUBSCRIBE_REQUEST__FROM_SNAPSHOT_ID}, /* as it is now: it won't move */
        {"earliest", TARN__V1__SUBSCRIBE_REQUEST__FROM_EARLIEST},
        {"17", TARN__V1__SUBSCRIBE_REQUEST__FROM_SNAPSHOT_ID},
        {"2026-01-31 12:00", TARN__V1__SUBSCRIBE_REQUEST__FROM_TIME_MS},
    };
    for (size_t i = 0; i < TARN_COUNT_OF(words); i++) {
        SERVE;
        tells(&fake, 20);
        struct run run = fake_run(t, &fake, "watch", "db.t", "--events", "--from", words[i].word,
                                  "--limit", "1", NULL);
        expect_int(run.code, 0);
        Tarn__V1__SubscribeRequest *q = asked(&fake);
        expect_int(q->from_case, words[i].from);
        if (i == 0)
            expect_int(q->snapshot_id, 12);
        if (i == 2)
            expect_int(q->snapshot_id, 17);
        if (i == 3)
            expect_int(q->time_ms, 1769860800000);
        expect_int(q->what, TARN__V1__SUBSCRIBE_REQUEST__WHAT__SNAPSHOTS);
        drop(q);
    }
    SERVE;
    tells(&fake, 20);
    struct run run = fake_run(t, &fake, "watch", "db.t", "--from", "yesterday", NULL);
    expect_int(run.code, 2);
    expect_contains(run.err, "--from \"yesterday\"");
    expect_int(fake_run(t, &fake, "watch", "db.t", "--from", "0", NULL).code, 2);
    expect_int(fake_run(t, &fake, "watch", "db.t", "--resume", "7", NULL).code, 2);
    expect_int(fake_run(t, &fake, "watch", "db.t", "--resume", "", NULL).code, 2);
    expect_int(fake_run(t, &fake, "watch", "db.t", "--resume", "7a", "--from", "2", NULL).code, 2);
    expect_int(fake_run(t, &fake, "watch", "db.t", "--events", "--where", "a = 1", NULL).code, 2);
    expect_int(fake_run(t, &fake, "watch", "db.t", "--how", "guess", NULL).code, 2);
}

TARN_TEST(cli_watch, goes_on_behind_a_token_that_it_printed)
{
    SERVE;
    tells(&fake, 4);
    struct run run = fake_run(t, &fake, "watch", "db.t", "--events", "-o", "jsonl", "--resume",
                              "00ff746f6b", "--consumer", "me", "--limit", "1", NULL);
    expect_contains(run.out, ",\"resume_token\":\"746f6b\"}\n");
    Tarn__V1__SubscribeRequest *q = asked(&fake);
    expect_int(q->from_case, TARN__V1__SUBSCRIBE_REQUEST__FROM_RESUME_TOKEN);
    expect_true(q->resume_token.len == 5 && memcmp(q->resume_token.data, "\0\xfftok", 5) == 0);
    expect_str(q->keep_consumer, "me");
    drop(q);
}

TARN_TEST(cli_watch, moves_its_consumer_behind_what_was_printed)
{
    SERVE;
    Tarn__V1__SetConsumerResponse moved = TARN__V1__SET_CONSUMER_RESPONSE__INIT;
    tells(&fake, 4);
    tells(&fake, 5);
    gives_rows(&fake, "{\"rowkind\": \"+I\"}\n", 1);
    fake_answers(&fake, "TableService/SetConsumer", &moved.base);
    struct run run = fake_run(t, &fake, "watch", "db.t", "--consumer", "me", "--until", "5", NULL);
    expect_int(run.code, 0);
    Tarn__V1__SubscribeRequest *q = asked(&fake);
    expect_str(q->consumer, "me");
    expect_str(q->keep_consumer, "me");
    drop(q);
    size_t count = fake_request_count(&fake, "TableService/SetConsumer");
    expect_true(count >= 1);
    Tarn__V1__SetConsumerRequest *last = (Tarn__V1__SetConsumerRequest *)fake_request(
        &fake, "TableService/SetConsumer", count - 1, &tarn__v1__set_consumer_request__descriptor);
    expect_int(last->next_snapshot, 6);
    expect_str(last->id, "me");
    drop(last);
}

static size_t moves(struct tarn_test *t, struct fake *fake, const char *limit, struct run *run)
{
    *run = fake_run(t, fake, "watch", "db.t", "--consumer", "me", "--limit", limit, NULL);
    expect_int(run->code, 0);
    return fake_request_count(fake, "TableService/SetConsumer");
}

TARN_TEST(cli_watch, leaves_its_consumer_in_front_of_what_the_limit_cut)
{
    SERVE;
    Tarn__V1__SetConsumerResponse moved = TARN__V1__SET_CONSUMER_RESPONSE__INIT;
    struct run run;
    tells(&fake, 4);
    gives_rows(&fake, "{\"rowkind\": \"+I\"}\n{\"rowkind\": \"+I\"}\n", 2); /* whatever the limit */
    fake_answers(&fake, "TableService/SetConsumer", &moved.base);
    expect_int(moves(t, &fake, "1", &run), 0);
    expect_contains(run.err, "snapshot 4 has more rows than --limit: consumer me stays in front");
    expect_int(moves(t, &fake, "2", &run), 1);
    expect_str(run.err, "");
    Tarn__V1__ScanRequest *q =
        (Tarn__V1__ScanRequest *)fake_request(&fake, SCAN, 3, &tarn__v1__scan_request__descriptor);
    expect_int(q->limit, 3); /* one more than was printed: is there one? */
    drop(q);
}

TARN_TEST(cli_watch, tells_what_ended_it)
{
    SERVE;
    tells(&fake, 4);
    fake_fails(&fake, SUBSCRIBE,
               tarn_status_new(TARN_SNAPSHOT_EXPIRED,
                               "snapshot 5 of table db.t has expired; the earliest snapshot is 9"));
    struct run run = fake_run(t, &fake, "watch", "db.t", "--events", NULL);
    expect_int(run.code, 1);
    expect_contains(run.out, "{\"id\":4,");
    expect_str(run.err, "tarn: snapshot 5 of table db.t has expired; the earliest snapshot is 9\n");
}

TARN_TEST(cli_watch, prints_nothing_of_a_scan_that_broke_off)
{
    SERVE;
    Tarn__V1__ScanResponse part = TARN__V1__SCAN_RESPONSE__INIT;
    tells(&fake, 4);
    part.data = (ProtobufCBinaryData){5, (uint8_t *)(uintptr_t) "half\n"};
    fake_answers(&fake, SCAN, &part.base);
    fake_fails(&fake, SCAN, tarn_status_new(TARN_OBJECT_NOT_FOUND, "file f is gone"));
    struct run run = fake_run(t, &fake, "watch", "db.t", NULL);
    expect_int(run.code, 1);
    expect_str(run.out, "");
    expect_contains(run.err, "rows of snapshot 4: file f is gone");
}

/* A server that stops cancels what is under way, and so may the worker below it: nobody here gave up. */
TARN_TEST(cli_watch, asks_again_for_a_scan_that_others_cancelled)
{
    SERVE;
    tells(&fake, 4);
    gives_rows(&fake, "k\n1\n", 1);
    fake_fails_first(&fake, SCAN, tarn_status_new(TARN_CANCELLED, "the client went away"));
    struct run run = fake_run(t, &fake, "watch", "db.t", "-o", "csv", "--until", "4", NULL);
    expect_int(run.code, 0);
    expect_int(fake_request_count(&fake, SCAN), 2);
    expect_str(run.out, "k\n1\n");
    expect_contains(run.err, "trying again");
}

TARN_TEST(cli_scan, asks_for_changes)
{
    SERVE;
    gives_rows(&fake, "{\"rowkind\": \"+I\"}\n", 1);
    struct run run = fake_run(t, &fake, "scan", "db.t", "--changes", "3..7", "--how", "diff", NULL);
    expect_int(run.code, 0);
    expect_str(run.out, "{\"rowkind\": \"+I\"}\n");
    Tarn__V1__ScanRequest *q =
        (Tarn__V1__ScanRequest *)fake_request(&fake, SCAN, 0, &tarn__v1__scan_request__descriptor);
    expect_int(q->changes->from_snapshot, 3);
    expect_int(q->changes->how, TARN__V1__CHANGES__HOW__DIFF);
    expect_int(q->version->snapshot_id, 7);
    drop(q);
    run = fake_run(t, &fake, "scan", "db.t", "--changes", "3..", NULL);
    expect_int(run.code, 0);
    q = (Tarn__V1__ScanRequest *)fake_request(&fake, SCAN, 1, &tarn__v1__scan_request__descriptor);
    expect_null(q->version);
    drop(q);
    static const char *const bad[] = {"3", "..", "7..3", "a..b", "3..x", "-1..2"};
    for (size_t i = 0; i < TARN_COUNT_OF(bad); i++)
        expect_int(fake_run(t, &fake, "scan", "db.t", "--changes", bad[i], NULL).code, 2);
    expect_int(
        fake_run(t, &fake, "scan", "db.t", "--changes", "1..2", "--snapshot", "2", NULL).code, 2);
    expect_int(fake_run(t, &fake, "scan", "db.t", "--how", "diff", NULL).code, 2);
}

TARN_TEST(cli_consumer, lists_sets_and_drops)
{
    SERVE;
    Tarn__V1__Consumer consumer = TARN__V1__CONSUMER__INIT;
    Tarn__V1__Consumer *list[] = {&consumer};
    Tarn__V1__ListConsumersResponse listed = TARN__V1__LIST_CONSUMERS_RESPONSE__INIT;
    Tarn__V1__SetConsumerResponse set = TARN__V1__SET_CONSUMER_RESPONSE__INIT;
    Tarn__V1__DropConsumerResponse dropped = TARN__V1__DROP_CONSUMER_RESPONSE__INIT;
    consumer.id = (char *)(uintptr_t) "billing";
    consumer.next_snapshot = 7;
    listed.consumers = list;
    listed.n_consumers = 1;
    set.consumer = &consumer;
    fake_answers(&fake, "TableService/ListConsumers", &listed.base);
    fake_answers(&fake, "TableService/SetConsumer", &set.base);
    fake_answers(&fake, "TableService/DropConsumer", &dropped.base);
    struct run run = fake_run(t, &fake, "consumer", "list", "db.t", "-o", "csv", NULL);
    expect_contains(run.out, "billing,7,");
    run = fake_run(t, &fake, "consumer", "set", "db.t", "billing", "--next", "7", "-o", "jsonl",
                   NULL);
    expect_str(run.out, "{\"id\":\"billing\",\"next_snapshot\":7}\n");
    run = fake_run(t, &fake, "consumer", "drop", "db.t", "billing", "-o", "jsonl", NULL);
    expect_str(run.out, "{\"dropped\":\"billing\"}\n");
    expect_int(fake_run(t, &fake, "consumer", "set", "db.t", NULL).code, 2);
    expect_int(fake_run(t, &fake, "consumer", "set", "db.t", "x", "--next", "0", NULL).code, 2);
}
