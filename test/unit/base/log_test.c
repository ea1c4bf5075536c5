/*
 * Promise: an event is one line in one write, whatever its values hold: nothing from outside can
 * begin a second line or a second field.
 */
#include "test.h"

#include <fcntl.h>
#include <unistd.h>

/* Standard error goes into a pipe of packets while an event is logged: each read is one write. */
struct capture {
    int pipe[2];
    int saved;
};

static void begin_capture(struct capture *c)
{
    expect_int(pipe2(c->pipe, O_DIRECT | O_NONBLOCK), 0);
    c->saved = dup(STDERR_FILENO);
    dup2(c->pipe[1], STDERR_FILENO);
    tarn_clock_fake(1764443255123);
}

static const char *end_capture(struct tarn_test *t, struct capture *c)
{
    static char bytes[65536];
    dup2(c->saved, STDERR_FILENO);
    close(c->saved);
    ssize_t got = read(c->pipe[0], bytes, sizeof bytes);
    char more;
    ssize_t second = read(c->pipe[0], &more, 1);
    close(c->pipe[0]);
    close(c->pipe[1]);
    expect_true(second <= 0); /* there was one write only */
    return tarn_arena_str(t->arena, tarn_slice_of(bytes, got < 0 ? 0 : (size_t)got));
}

#define CAPTURE(...)                                                                               \
    ({                                                                                             \
        struct capture c;                                                                          \
        begin_capture(&c);                                                                         \
        tarn_log(__VA_ARGS__);                                                                     \
        end_capture(t, &c);                                                                        \
    })

TARN_TEST(log, writes_one_line_of_time_level_event_and_pairs)
{
    expect_str(CAPTURE(NULL, TARN_INFO, "table.commit", "table=%s files=%d", "db.t", 3),
               "2025-11-29T19:07:35.123Z info table.commit table=db.t files=3\n");
    snprintf(t->op->request_id, sizeof t->op->request_id, "r-1");
    expect_str(CAPTURE(t->op, TARN_ERROR, "x.y", "a=1"),
               "2025-11-29T19:07:35.123Z error x.y req=r-1 a=1\n");
    const char *no_pairs = "";
    expect_str(CAPTURE(NULL, TARN_WARN, "x.y", "%s", no_pairs),
               "2025-11-29T19:07:35.123Z warn x.y\n");
}

TARN_TEST(log, stays_silent_below_its_level)
{
    expect_str(CAPTURE(NULL, TARN_DEBUG, "x.y", "a=1"), "");
    tarn_log_set_level(TARN_DEBUG);
    expect_contains(CAPTURE(NULL, TARN_DEBUG, "x.y", "a=1"), " debug x.y a=1\n");
    tarn_log_set_level(TARN_INFO);
}

TARN_TEST(log, keeps_breaks_and_controls_out_of_the_line)
{
    expect_contains(CAPTURE(NULL, TARN_INFO, "x.y", "a=%s", "1\n2025 info forged"),
                    " a=1\\n2025 info forged\n");
    expect_contains(CAPTURE(NULL, TARN_INFO, "x.y", "a=%s",
                            tarn_log_quote(t->op, "say \"hi\"\t\x01\x1b[31m\xff\\")),
                    " a=\"say \\\"hi\\\"\\t\\u0001\\u001b[31m\\ufffd\\\\\"\n");
}

TARN_TEST(log, writes_json_that_parses)
{
    tarn_log_set_json(true);
    snprintf(t->op->request_id, sizeof t->op->request_id, "r-1");
    const char *line = CAPTURE(t->op, TARN_INFO, "x.y", "a=1 b=%s c=d\\e free text \"",
                               tarn_log_quote(NULL, "two\nlines = \"x\" \xc3\xa9"));
    tarn_log_set_json(false);
    TARN_OWN(tarn_json_drop) struct tarn_json *json = NULL;
    expect_ok(tarn_json_parse(tarn_slice_str(line), &json));
    expect_slice(tarn_json_text(tarn_json_find(json, "time")), "2025-11-29T19:07:35.123Z");
    expect_slice(tarn_json_text(tarn_json_find(json, "level")), "info");
    expect_slice(tarn_json_text(tarn_json_find(json, "event")), "x.y");
    expect_slice(tarn_json_text(tarn_json_find(json, "req")), "r-1");
    expect_slice(tarn_json_text(tarn_json_find(json, "a")), "1");
    expect_slice(tarn_json_text(tarn_json_find(json, "b")), "two\nlines = \"x\" \xc3\xa9");
    expect_slice(tarn_json_text(tarn_json_find(json, "c")), "d\\e");
    expect_slice(tarn_json_text(tarn_json_find(json, "text")), "free text \"");
}

TARN_TEST(log, cuts_what_is_endless)
{
    char *huge = tarn_arena_alloc(t->arena, 1 << 20);
    memset(huge, '\n', (1 << 20) - 1);
    huge[(1 << 20) - 1] = 0;
    for (int json = 0; json < 2; json++) {
        tarn_log_set_json(json);
        /* In text form the line must fit a packet of the capture: a break becomes two bytes. */
        const char *line =
            CAPTURE(NULL, TARN_INFO, "x.y", "a=%.1000s b=%s", huge, tarn_log_quote(NULL, huge));
        expect_true(strlen(line) < 4096);
        expect_true(strchr(line, '\n') == line + strlen(line) - 1);
    }
    tarn_log_set_json(false);
    expect_true(strlen(tarn_log_quote(NULL, huge)) < 512);
    expect_contains(tarn_log_quote(NULL, huge), "...\"");
}

TARN_TEST(log, names_the_reason_of_a_status_and_consumes_it)
{
    struct capture c;
    begin_capture(&c);
    tarn_log_status(NULL, TARN_WARN, "x.failed", tarn_status_new(TARN_DISK_FULL, "no \"room\""));
    expect_contains(end_capture(t, &c),
                    " warn x.failed reason=DISK_FULL error=\"no \\\"room\\\"\"\n");
    begin_capture(&c);
    tarn_log_status(NULL, TARN_WARN, "x.failed", TARN_OK);
    expect_str(end_capture(t, &c), "");
}

TARN_TEST(log, level_is_one_of_four_words)
{
    enum tarn_log_level level = TARN_INFO;
    expect_ok(tarn_log_level_parse("error", &level));
    expect_int(level, TARN_ERROR);
    expect_status(tarn_log_level_parse("loud", &level), TARN_VALUE_INVALID, "debug, info");
    expect_status(tarn_log_level_parse("", &level), TARN_VALUE_INVALID, "");
}
