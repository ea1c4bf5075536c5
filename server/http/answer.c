#include "http/internal.h"

#include <stdio.h>
#include <time.h>

/* An answer's bytes: what the route function or a status says, and what every answer has. */

static const char *phrase(int status)
{
    static const struct {
        int status;
        const char *phrase;
    } phrases[] = {
        {200, "OK"},
        {201, "Created"},
        {202, "Accepted"},
        {204, "No Content"},
        {304, "Not Modified"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {410, "Gone"},
        {413, "Content Too Large"},
        {414, "URI Too Long"},
        {415, "Unsupported Media Type"},
        {417, "Expectation Failed"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
        {505, "HTTP Version Not Supported"},
        {507, "Insufficient Storage"},
    };
    for (size_t i = 0; i < TARN_COUNT_OF(phrases); i++)
        if (phrases[i].status == status)
            return phrases[i].phrase;
    return status < 400 ? "Fine" : "Refused";
}

/* Made once a second by each thread. */
static const char *http_date(void)
{
    static _Thread_local int64_t second = -1;
    static _Thread_local char text[40];
    int64_t now = tarn_clock_wall_ms() / 1000;
    if (now != second) {
        time_t time = (time_t)now;
        struct tm parts;
        gmtime_r(&time, &parts);
        strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &parts);
        second = now;
    }
    return text;
}

void tarn_http_add_header(struct tarn_op *op, struct tarn_http_response *response, const char *name,
                          struct tarn_slice value)
{
    tarn_assert(response->header_count < TARN_HTTP_ANSWER_HEADERS_MAX);
    char *text = tarn_arena_str(op->arena, value);
    for (size_t i = 0; i < value.size; i++)
        if ((uint8_t)text[i] < ' ' || text[i] == 0x7f)
            text[i] = '?';
    response->headers[response->header_count++] =
        (struct tarn_pair){tarn_slice_str(name), tarn_slice_of(text, value.size)};
}

/* --- from a status --- */

static void print_line(const struct tarn_status *status, struct tarn_http_response *response)
{
    response->type = "text/plain; charset=utf-8";
    tarn_buf_printf(&response->body, "%s\n", tarn_status_message(status));
}

void tarn_http__answer_status(struct tarn_http__exchange *x, const struct tarn_status *status,
                              int http_status)
{
    const struct tarn_http_options *options = &x->http->options;
    struct tarn_http_response *response = &x->response;
    tarn_buf_clear(&response->body);
    response->header_count = 0;
    response->type = "application/json";
    response->status = http_status != 0 ? http_status : tarn_status_http(status);
    if (options->print_error != NULL)
        options->print_error(options->print_error_self, &x->request, status, response);
    else
        print_line(status, response);
}

/* --- the bytes --- */

static bool is_text(const char *type)
{
    return strncmp(type, "text/", 5) == 0 || strncmp(type, "application/json", 16) == 0;
}

/* Fast rather than small: the same cores make commits. */
static bool compress(struct tarn_http_response *response)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf small = {0};
    TARN_OWN(tarn_status_drop)
    struct tarn_status *s =
        tarn_zip_compress(TARN_ZIP_GZIP, 1, tarn_buf_slice(&response->body), &small);
    if (s != TARN_OK || small.size >= response->body.size)
        return false;
    tarn_buf_drop(&response->body);
    response->body = small;
    small = (struct tarn_buf){0};
    return true;
}

static bool has_header(const struct tarn_http_response *response, const char *name)
{
    for (size_t i = 0; i < response->header_count; i++)
        if (response->headers[i].key.size == strlen(name) &&
            strncasecmp((const char *)response->headers[i].key.data, name, strlen(name)) == 0)
            return true;
    return false;
}

static void print_headers_of_status(const struct tarn_http__exchange *x, struct tarn_buf *out)
{
    int status = x->response.status;
    if ((status == 429 || status == 503) && !has_header(&x->response, "retry-after"))
        tarn_buf_add_str(out, "Retry-After: 1\r\n");
    if (status == 401)
        tarn_buf_add_str(out, "WWW-Authenticate: Bearer\r\n");
    if (x->allow != NULL)
        tarn_buf_printf(out, "Allow: %s\r\n", x->allow);
}

void tarn_http__answer_print(struct tarn_http__exchange *x, bool may_compress)
{
    struct tarn_http_response *response = &x->response;
    struct tarn_buf *out = &x->answer_head;
    bool no_content = response->status == 204 || response->status == 304;
    bool is_worth_it = response->body.size >= TARN_HTTP_GZIP_MIN && is_text(response->type);
    bool is_small = is_worth_it && may_compress && x->head.takes_gzip && compress(response);
    x->has_answer_body =
        !no_content && response->body.size > 0 && strcmp(x->head.method, "HEAD") != 0;
    x->closes = x->closes || !x->head.keep_alive || atomic_load(&x->http->is_draining);

    tarn_buf_reserve(out, 512);
    tarn_buf_printf(out, "HTTP/1.1 %d %s\r\nDate: %s\r\nx-request-id: %s\r\n", response->status,
                    phrase(response->status), http_date(), x->op.request_id);
    if (response->body.size > 0)
        tarn_buf_printf(out, "Content-Type: %s\r\n", response->type);
    if (!no_content)
        tarn_buf_printf(out, "Content-Length: %zu\r\n", response->body.size);
    if (is_small)
        tarn_buf_add_str(out, "Content-Encoding: gzip\r\n");
    if (is_worth_it)
        tarn_buf_add_str(out, "Vary: Accept-Encoding\r\n");
    if (!has_header(response, "cache-control"))
        tarn_buf_add_str(out, "Cache-Control: no-store\r\n");
    print_headers_of_status(x, out);
    for (size_t i = 0; i < response->header_count; i++)
        tarn_buf_printf(out, "%.*s: %.*s\r\n", TARN_SLICE_ARG(response->headers[i].key),
                        TARN_SLICE_ARG(response->headers[i].value));
    if (x->closes)
        tarn_buf_add_str(out, "Connection: close\r\n");
    else if (x->head.minor == 0)
        tarn_buf_add_str(out, "Connection: keep-alive\r\n");
    tarn_buf_add_str(out, "\r\n");
}
