#include "http/internal.h"

/*
 * The head of a request, RFC 9112, as strictly as that allows. What a proxy in front of us might read
 * differently (where a line ends, which header it is, where the body ends) is refused, never guessed.
 */

#define METHOD_SIZE_MAX 16

static struct tarn_status *malformed(const char *what)
{
    return tarn_status_new(TARN_INVALID_ARGUMENT, "malformed request: %s", what);
}

static bool is_token_char(uint8_t c)
{
    static const char others[] = "!#$%&'*+-.^_`|~";
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != 0 && strchr(others, c) != NULL);
}

static bool is_token(struct tarn_slice s)
{
    for (size_t i = 0; i < s.size; i++)
        if (!is_token_char(s.data[i]))
            return false;
    return s.size > 0;
}

static uint8_t lower(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? (uint8_t)(c - 'A' + 'a') : c;
}

static bool is_word(struct tarn_slice s, const char *word) /* in lower case */
{
    size_t size = strlen(word);
    for (size_t i = 0; i < size && size == s.size; i++)
        if (lower(s.data[i]) != (uint8_t)word[i])
            return false;
    return size == s.size;
}

/* Cuts what stands before `c` off the front of *rest; all of it where there is none. */
static struct tarn_slice cut(struct tarn_slice *rest, char c)
{
    const uint8_t *at = rest->size == 0 ? NULL : memchr(rest->data, c, rest->size);
    struct tarn_slice front = *rest;
    if (at == NULL) {
        *rest = (struct tarn_slice){NULL, 0};
        return front;
    }
    front.size = (size_t)(at - rest->data);
    rest->data = at + 1;
    rest->size -= front.size + 1;
    return front;
}

struct tarn_status *tarn_http__head_find(struct tarn_slice text, size_t *scanned, size_t *size,
                                         int *http)
{
    *size = 0;
    if (text.size > 0 && text.data[0] != '\r' && !is_token_char(text.data[0]))
        return malformed("this is no HTTP"); /* TLS, mostly: don't wait for its line to end */
    while (*scanned < text.size) {
        const uint8_t *newline = memchr(text.data + *scanned, '\n', text.size - *scanned);
        size_t i = newline == NULL ? text.size : (size_t)(newline - text.data);
        if (i >= TARN_HTTP_HEAD_MAX) {
            *http = 431;
            return tarn_status_new(TARN_INVALID_ARGUMENT, "the request's headers exceed %d bytes",
                                   TARN_HTTP_HEAD_MAX);
        }
        *scanned = newline == NULL ? i : i + 1;
        if (newline == NULL)
            return TARN_OK;
        if (i == 0 || text.data[i - 1] != '\r')
            return malformed("a line ends without CR");
        /* One empty line in front is left over from an older client's last body. */
        if (i >= 3 && text.data[i - 2] == '\n') {
            *size = i + 1;
            return TARN_OK;
        }
    }
    return TARN_OK;
}

/* --- the request line --- */

static struct tarn_status *parse_version(struct tarn_slice version, int *minor, int *http)
{
    bool is_http = version.size == 8 && memcmp(version.data, "HTTP/", 5) == 0 &&
                   version.data[6] == '.' && version.data[5] >= '0' && version.data[5] <= '9' &&
                   version.data[7] >= '0' && version.data[7] <= '9';
    if (!is_http)
        return malformed("want METHOD TARGET HTTP/1.1");
    if (version.data[5] != '1') {
        *http = 505;
        return tarn_status_new(TARN_UNIMPLEMENTED, "this server speaks HTTP/1.1 and 1.0");
    }
    *minor = version.data[7] == '0' ? 0 : 1;
    return TARN_OK;
}

static struct tarn_status *parse_request_line(struct tarn_slice line, struct tarn_arena *arena,
                                              struct tarn_http__head *out, int *http)
{
    struct tarn_slice method = cut(&line, ' ');
    if (!is_token(method) || method.size > METHOD_SIZE_MAX)
        return malformed("want METHOD TARGET HTTP/1.1");
    out->method = tarn_arena_str(arena, method);
    out->target = cut(&line, ' ');
    if (out->target.size > TARN_HTTP_TARGET_MAX) {
        *http = 414;
        return tarn_status_new(TARN_INVALID_ARGUMENT, "path and query exceed %d bytes",
                               TARN_HTTP_TARGET_MAX);
    }
    return parse_version(line, &out->minor, http);
}

/* --- headers --- */

static struct tarn_status *parse_header(uint8_t *line, size_t size, struct tarn_pair *out)
{
    struct tarn_slice rest = tarn_slice_of(line, size);
    if (memchr(line, ':', size) == NULL)
        return malformed("a header without a colon");
    out->key = cut(&rest, ':');
    if (!is_token(out->key)) /* also a folded line, and a blank before the colon */
        return malformed("a header's name");
    for (size_t i = 0; i < out->key.size; i++)
        line[i] = lower(line[i]);
    out->value = tarn_trim(rest);
    for (size_t i = 0; i < out->value.size; i++) {
        uint8_t c = out->value.data[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return malformed("a control character in a header");
    }
    return TARN_OK;
}

/* The value of a header that may stand there once; absent otherwise. */
static struct tarn_status *find_single(const struct tarn_http__head *head, const char *name,
                                       struct tarn_slice *out)
{
    *out = (struct tarn_slice){NULL, 0};
    for (size_t i = 0; i < head->header_count; i++) {
        if (!tarn_slice_is(head->headers[i].key, name))
            continue;
        if (out->data != NULL)
            return tarn_status_new(TARN_INVALID_ARGUMENT, "malformed request: header %s twice",
                                   name);
        *out = head->headers[i].value;
        if (out->data == NULL)
            *out = tarn_slice_of("", 0);
    }
    return TARN_OK;
}

static struct tarn_status *check_host(const struct tarn_http__head *head)
{
    struct tarn_slice host;
    TARN_TRY(find_single(head, "host", &host));
    if (host.data == NULL && head->minor > 0)
        return malformed("header host is missing");
    for (size_t i = 0; i < host.size; i++)
        if (host.data[i] <= ' ' || host.data[i] >= 0x7f ||
            strchr("/\\@?#,<>\"{}", host.data[i]) != NULL)
            return malformed("header host");
    return TARN_OK;
}

static struct tarn_status *parse_length(struct tarn_slice text, uint64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9' || text.size > 18)
            return malformed("header content-length");
        *out = *out * 10 + (uint64_t)(text.data[i] - '0');
    }
    return text.size > 0 ? TARN_OK : malformed("header content-length");
}

static struct tarn_status *parse_framing(struct tarn_http__head *head, int *http)
{
    struct tarn_slice length, coding;
    TARN_TRY(find_single(head, "content-length", &length));
    TARN_TRY(find_single(head, "transfer-encoding", &coding));
    if (length.data != NULL && coding.data != NULL)
        return malformed("both content-length and transfer-encoding");
    if (coding.data != NULL && head->minor == 0)
        return malformed("transfer-encoding in HTTP/1.0");
    if (coding.data != NULL && !is_word(coding, "chunked")) {
        *http = 501;
        return tarn_status_new(TARN_UNIMPLEMENTED, "transfer-encoding other than chunked");
    }
    head->is_chunked = coding.data != NULL;
    if (length.data != NULL)
        TARN_TRY(parse_length(length, &head->length));
    head->has_body = head->is_chunked || head->length > 0;
    return TARN_OK;
}

static struct tarn_status *parse_content_encoding(struct tarn_http__head *head, int *http)
{
    struct tarn_slice coding;
    TARN_TRY(find_single(head, "content-encoding", &coding));
    head->is_gzipped = is_word(coding, "gzip") || is_word(coding, "x-gzip");
    if (head->is_gzipped || coding.size == 0 || is_word(coding, "identity"))
        return TARN_OK;
    *http = 415;
    return tarn_status_new(TARN_INVALID_ARGUMENT, "content-encoding other than gzip");
}

static struct tarn_status *parse_expect(struct tarn_http__head *head, int *http)
{
    struct tarn_slice expect;
    TARN_TRY(find_single(head, "expect", &expect));
    head->expects_continue = is_word(expect, "100-continue") && head->minor > 0;
    if (expect.data == NULL || is_word(expect, "100-continue"))
        return TARN_OK;
    *http = 417;
    return tarn_status_new(TARN_INVALID_ARGUMENT, "expect other than 100-continue");
}

static void parse_connection(struct tarn_http__head *head)
{
    head->keep_alive = head->minor > 0;
    for (size_t i = 0; i < head->header_count; i++) {
        struct tarn_slice list = head->headers[i].value;
        if (!tarn_slice_is(head->headers[i].key, "connection"))
            continue;
        while (list.size > 0) {
            struct tarn_slice word = tarn_trim(cut(&list, ','));
            if (is_word(word, "close")) {
                head->keep_alive = false;
                return;
            }
            head->keep_alive = head->keep_alive || is_word(word, "keep-alive");
        }
    }
}

/* "q=0", "q=0.000": not this one. */
static bool is_ruled_out(struct tarn_slice parameters)
{
    struct tarn_slice weight = tarn_trim(cut(&parameters, ';'));
    if (weight.size < 3 || lower(weight.data[0]) != 'q' || weight.data[1] != '=')
        return false;
    for (size_t i = 2; i < weight.size; i++)
        if (weight.data[i] != '0' && weight.data[i] != '.')
            return false;
    return true;
}

static void parse_accept_encoding(struct tarn_http__head *head)
{
    bool any = false, named = false;
    for (size_t i = 0; i < head->header_count; i++) {
        struct tarn_slice list = head->headers[i].value;
        if (!tarn_slice_is(head->headers[i].key, "accept-encoding"))
            continue;
        while (list.size > 0) {
            struct tarn_slice rest = cut(&list, ',');
            struct tarn_slice coding = tarn_trim(cut(&rest, ';'));
            if (is_word(coding, "gzip") || is_word(coding, "x-gzip")) {
                named = true;
                head->takes_gzip = !is_ruled_out(rest);
            }
            any = any || (is_word(coding, "*") && !is_ruled_out(rest));
        }
    }
    head->takes_gzip = named ? head->takes_gzip : any;
}

static struct tarn_status *parse_authorization(struct tarn_http__head *head)
{
    struct tarn_slice value;
    TARN_TRY(find_single(head, "authorization", &value));
    if (is_word(cut(&value, ' '), "bearer"))
        head->bearer = tarn_trim(value);
    return TARN_OK;
}

/* The client's own id for the request, if it can stand in a log line. */
static void take_request_id(struct tarn_http__head *head)
{
    for (size_t i = 0; i < head->header_count; i++) {
        struct tarn_slice id = head->headers[i].value;
        if (!tarn_slice_is(head->headers[i].key, "x-request-id"))
            continue;
        bool good = id.size > 0 && id.size < TARN_UUID_SIZE;
        for (size_t c = 0; good && c < id.size; c++)
            good = is_token_char(id.data[c]) && strchr("!#$%&'*+^`|~", id.data[c]) == NULL;
        if (good)
            head->request_id = id;
        return;
    }
}

static struct tarn_status *split_headers(uint8_t *text, size_t size, struct tarn_arena *arena,
                                         struct tarn_http__head *out, int *http)
{
    struct tarn_pair *headers = tarn_arena_alloc(arena, TARN_HTTP_HEADERS_MAX * sizeof *headers);
    out->headers = headers;
    while (size > 2) { /* the empty line */
        uint8_t *end = memchr(text, '\r', size);
        if (end == NULL || end + 1 == text + size || end[1] != '\n')
            return malformed("a CR without LF");
        if (out->header_count == TARN_HTTP_HEADERS_MAX) {
            *http = 431;
            return tarn_status_new(TARN_INVALID_ARGUMENT, "more than %d headers",
                                   TARN_HTTP_HEADERS_MAX);
        }
        TARN_TRY(parse_header(text, (size_t)(end - text), &headers[out->header_count++]));
        size -= (size_t)(end + 2 - text);
        text = end + 2;
    }
    return TARN_OK;
}

struct tarn_status *tarn_http__head_parse(uint8_t *text, size_t size, struct tarn_arena *arena,
                                          struct tarn_http__head *out, int *http)
{
    *out = (struct tarn_http__head){.method = ""};
    if (size > 2 && text[0] == '\r' && text[1] == '\n')
        text += 2, size -= 2;
    uint8_t *end = memchr(text, '\r', size);
    if (end == NULL || end + 1 == text + size || end[1] != '\n')
        return malformed("a CR without LF");
    TARN_TRY(parse_request_line(tarn_slice_of(text, (size_t)(end - text)), arena, out, http));
    TARN_TRY(split_headers(end + 2, size - (size_t)(end + 2 - text), arena, out, http));
    parse_connection(out);
    parse_accept_encoding(out);
    take_request_id(out);
    TARN_TRY(check_host(out));
    TARN_TRY(parse_framing(out, http));
    TARN_TRY(parse_authorization(out));
    TARN_TRY(parse_content_encoding(out, http));
    return parse_expect(out, http);
}
