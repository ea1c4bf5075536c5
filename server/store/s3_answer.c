/* s3_answer - what S3 and STS answer, as structs; see s3.h. Bounded by the answer's own size. */
#include "store/s3.h"

#include <ctype.h>
#include <time.h>

#define WORD_SIZE_MAX ((size_t)128)
#define MESSAGE_SIZE_MAX ((size_t)500)

/* The text of the element that was just begun, up to its end; elements inside it are skipped. */
static struct tarn_status *take_text(struct tarn_xml *xml, struct tarn_slice *out)
{
    int depth = xml->depth;
    *out = tarn_slice_of("", 0);
    for (;;) {
        enum tarn_xml_event event;
        TARN_TRY(tarn_xml_next(xml, &event));
        if (event == TARN_XML_TEXT && xml->depth == depth)
            *out = xml->value;
        if (event == TARN_XML_END && xml->depth < depth)
            return TARN_OK;
    }
}

static struct tarn_status *skip_element(struct tarn_xml *xml)
{
    struct tarn_slice text;
    return take_text(xml, &text);
}

/* The next element right below the one at `depth`; *found false: that one's end, which is consumed. */
static struct tarn_status *next_child(struct tarn_xml *xml, int depth, bool *found)
{
    for (;;) {
        enum tarn_xml_event event;
        TARN_TRY(tarn_xml_next(xml, &event));
        *found = event == TARN_XML_START;
        if (*found || (event == TARN_XML_END && xml->depth < depth))
            return TARN_OK;
    }
}

static struct tarn_status *open_root(struct tarn_xml *xml, struct tarn_slice text,
                                     struct tarn_arena *arena)
{
    enum tarn_xml_event event;
    tarn_xml_init(xml, text, arena);
    TARN_TRY(tarn_xml_next(xml, &event));
    tarn_assert(event == TARN_XML_START); /* anything else is an error of next */
    return TARN_OK;
}

/* Nothing may follow the root's end. */
static struct tarn_status *close_root(struct tarn_xml *xml)
{
    enum tarn_xml_event event;
    TARN_TRY(tarn_xml_next(xml, &event));
    tarn_assert(event == TARN_XML_DONE);
    return TARN_OK;
}

static struct tarn_slice cut(struct tarn_slice text, size_t size_max)
{
    while (text.size > size_max || (text.size > 0 && !tarn_utf8_valid(text)))
        text.size--;
    return text;
}

/* --- errors --- */

static struct tarn_status *error_fields(struct tarn_xml *xml, struct tarn_s3_error *out)
{
    bool found;
    int depth = xml->depth;
    for (;;) {
        struct tarn_slice text;
        TARN_TRY(next_child(xml, depth, &found));
        if (!found)
            return TARN_OK;
        struct tarn_slice name = xml->name;
        TARN_TRY(take_text(xml, &text));
        if (tarn_slice_is(name, "Code"))
            out->code = cut(text, WORD_SIZE_MAX);
        else if (tarn_slice_is(name, "Message"))
            out->message = cut(text, MESSAGE_SIZE_MAX);
        else if (tarn_slice_is(name, "Region"))
            out->region = cut(text, WORD_SIZE_MAX);
    }
}

struct tarn_status *tarn_s3__decode_error(struct tarn_slice xml_text, struct tarn_arena *arena,
                                          bool *found, struct tarn_s3_error *out)
{
    struct tarn_xml xml;
    *found = false;
    *out = (struct tarn_s3_error){0};
    TARN_TRY(open_root(&xml, xml_text, arena));
    if (tarn_slice_is(xml.name, "Error")) {
        TARN_TRY(error_fields(&xml, out));
    } else if (tarn_slice_is(xml.name, "ErrorResponse")) { /* STS */
        for (bool child = true; child;) {
            TARN_TRY(next_child(&xml, 1, &child));
            if (child && tarn_slice_is(xml.name, "Error"))
                TARN_TRY(error_fields(&xml, out));
            else if (child)
                TARN_TRY(skip_element(&xml));
        }
    }
    *found = out->code.size > 0;
    return TARN_OK;
}

/* --- lists --- */

/* Names come percent-encoded (encoding-type=url), since XML can't hold every character. */
static struct tarn_status *decode_name(struct tarn_slice text, struct tarn_arena *arena,
                                       struct tarn_slice *out)
{
    if (tarn_url_decode(text, arena, out))
        return TARN_OK;
    return tarn_status_new(TARN_VALUE_INVALID, "key '%.*s' is badly encoded",
                           TARN_SLICE_ARG(cut(text, MESSAGE_SIZE_MAX)));
}

static struct tarn_status *object_fields(struct tarn_xml *xml, struct tarn_object *out)
{
    bool found;
    int depth = xml->depth;
    *out = (struct tarn_object){.size = -1};
    for (;;) {
        struct tarn_slice text;
        TARN_TRY(next_child(xml, depth, &found));
        if (!found)
            break;
        struct tarn_slice name = xml->name;
        TARN_TRY(take_text(xml, &text));
        if (tarn_slice_is(name, "Key"))
            out->key = text;
        else if (tarn_slice_is(name, "Size"))
            TARN_TRY(tarn_parse_i64(text, &out->size));
        else if (tarn_slice_is(name, "LastModified"))
            TARN_TRY(tarn_parse_time(text, &out->mtime_ms));
    }
    if (out->key.size == 0 || out->size < 0)
        return tarn_status_new(TARN_VALUE_INVALID, "an object without a key or a size");
    return TARN_OK;
}

static void add_object(struct tarn_s3_page *page, struct tarn_object object,
                       struct tarn_arena *arena)
{
    if (page->count == page->capacity) {
        size_t capacity = page->capacity == 0 ? 64 : page->capacity * 2;
        struct tarn_object *grown = tarn_arena_alloc(arena, capacity * sizeof *grown);
        if (page->count > 0)
            memcpy(grown, page->objects, page->count * sizeof *grown);
        page->objects = grown;
        page->capacity = capacity;
    }
    page->objects[page->count++] = object;
}

static struct tarn_status *folder_fields(struct tarn_xml *xml, struct tarn_object *out)
{
    bool found;
    int depth = xml->depth;
    *out = (struct tarn_object){.is_folder = true};
    for (;;) {
        TARN_TRY(next_child(xml, depth, &found));
        if (!found)
            break;
        struct tarn_slice name = xml->name, text;
        TARN_TRY(take_text(xml, &text));
        if (tarn_slice_is(name, "Prefix"))
            out->key = text;
    }
    if (out->key.size == 0)
        return tarn_status_new(TARN_VALUE_INVALID, "a common prefix without its text");
    return TARN_OK;
}

struct list_fields {
    bool truncated, url_encoded;
    struct tarn_slice token;
    size_t first; /* object of this page */
};

static struct tarn_status *list_child(struct tarn_xml *xml, struct tarn_arena *arena,
                                      struct list_fields *fields, struct tarn_s3_page *page)
{
    struct tarn_object object;
    struct tarn_slice name = xml->name, text;
    if (tarn_slice_is(name, "Contents") || tarn_slice_is(name, "CommonPrefixes")) {
        TARN_TRY(tarn_slice_is(name, "Contents") ? object_fields(xml, &object)
                                                 : folder_fields(xml, &object));
        add_object(page, object, arena);
        return TARN_OK;
    }
    TARN_TRY(take_text(xml, &text));
    if (tarn_slice_is(name, "IsTruncated")) {
        if (!tarn_slice_is(text, "true") && !tarn_slice_is(text, "false"))
            return tarn_status_new(TARN_VALUE_INVALID, "IsTruncated is neither true nor false");
        fields->truncated = tarn_slice_is(text, "true");
    } else if (tarn_slice_is(name, "NextContinuationToken")) {
        fields->token = text;
    } else if (tarn_slice_is(name, "EncodingType")) {
        fields->url_encoded = tarn_slice_is(text, "url");
    }
    return TARN_OK;
}

struct tarn_status *tarn_s3__decode_page(struct tarn_slice xml_text, struct tarn_arena *arena,
                                         struct tarn_s3_page *out)
{
    struct tarn_xml xml;
    struct list_fields fields = {.first = out->count};
    TARN_TRY(open_root(&xml, xml_text, arena));
    if (!tarn_slice_is(xml.name, "ListBucketResult"))
        return tarn_status_new(TARN_VALUE_INVALID, "'%.*s' is no list",
                               TARN_SLICE_ARG(cut(xml.name, WORD_SIZE_MAX)));
    for (bool found = true; found;) {
        TARN_TRY(next_child(&xml, 1, &found));
        if (found)
            TARN_TRY(list_child(&xml, arena, &fields, out));
    }
    TARN_TRY(close_root(&xml));
    if (fields.truncated && fields.token.size == 0)
        return tarn_status_new(TARN_VALUE_INVALID, "the list goes on, but doesn't say where");
    for (size_t i = fields.first; fields.url_encoded && i < out->count; i++)
        TARN_TRY(decode_name(out->objects[i].key, arena, &out->objects[i].key));
    out->more = fields.truncated;
    out->token = fields.token;
    return TARN_OK;
}

/* --- the others --- */

struct tarn_status *tarn_s3__decode_one(struct tarn_slice xml_text, struct tarn_arena *arena,
                                        const char *root, const char *name, struct tarn_slice *out)
{
    struct tarn_xml xml;
    bool found = true;
    struct tarn_slice text;
    *out = (struct tarn_slice){0};
    TARN_TRY(open_root(&xml, xml_text, arena));
    if (!tarn_slice_starts_with(xml.name, tarn_slice_str(root))) /* "...Result", mostly */
        return tarn_status_new(TARN_VALUE_INVALID, "'%.*s', want '%sResult'",
                               TARN_SLICE_ARG(cut(xml.name, WORD_SIZE_MAX)), root);
    while (found) {
        TARN_TRY(next_child(&xml, 1, &found));
        if (!found)
            break;
        bool wanted = tarn_slice_is(xml.name, name);
        TARN_TRY(take_text(&xml, &text));
        if (wanted)
            *out = text;
    }
    TARN_TRY(close_root(&xml));
    return out->size > 0 ? TARN_OK
                         : tarn_status_new(TARN_VALUE_INVALID, "'%s' without a '%s'", root, name);
}

struct tarn_status *tarn_s3__decode_role(struct tarn_slice xml_text, struct tarn_arena *arena,
                                         struct tarn_s3_keys **out)
{
    struct tarn_xml xml;
    struct tarn_slice access = {0}, secret = {0}, token = {0};
    int64_t expires_ms = INT64_MAX;
    enum tarn_xml_event event;
    TARN_TRY(open_root(&xml, xml_text, arena));
    /* AssumeRoleWithWebIdentityResponse/AssumeRoleWithWebIdentityResult/Credentials */
    do {
        TARN_TRY(tarn_xml_next(&xml, &event));
        if (event != TARN_XML_START || xml.depth != 4)
            continue;
        struct tarn_slice name = xml.name, text;
        TARN_TRY(take_text(&xml, &text));
        if (tarn_slice_is(name, "AccessKeyId"))
            access = text;
        else if (tarn_slice_is(name, "SecretAccessKey"))
            secret = text;
        else if (tarn_slice_is(name, "SessionToken"))
            token = text;
        else if (tarn_slice_is(name, "Expiration"))
            TARN_TRY(tarn_parse_time(text, &expires_ms));
    } while (event != TARN_XML_DONE);
    if (access.size == 0 || secret.size == 0)
        return tarn_status_new(TARN_VALUE_INVALID, "the answer holds no credentials");
    *out = tarn_s3__keys_new(access, secret, token, expires_ms);
    return TARN_OK;
}

/* --- headers --- */

bool tarn_s3__http_date(struct tarn_slice text, int64_t *wall_ms)
{
    char copy[40];
    struct tm parts = {0};
    if (text.size == 0 || text.size >= sizeof copy)
        return false;
    memcpy(copy, text.data, text.size);
    copy[text.size] = '\0';
    const char *end = strptime(copy, "%a, %d %b %Y %H:%M:%S GMT", &parts);
    if (end == NULL || *end != '\0' || parts.tm_year < 70)
        return false;
    *wall_ms = (int64_t)timegm(&parts) * 1000;
    return true;
}

static bool take_number(struct tarn_slice *text, int64_t *out)
{
    size_t digits = 0;
    while (digits < text->size && isdigit(text->data[digits]))
        digits++;
    struct tarn_status *status = tarn_parse_i64(tarn_slice_of(text->data, digits), out);
    bool good = digits > 0 && status == TARN_OK;
    tarn_status_free(status);
    text->data += digits;
    text->size -= digits;
    return good;
}

static bool take_byte(struct tarn_slice *text, char c)
{
    if (text->size == 0 || text->data[0] != (uint8_t)c)
        return false;
    text->data++;
    text->size--;
    return true;
}

bool tarn_s3__content_range(struct tarn_slice text, int64_t *first, int64_t *last, int64_t *size)
{
    *first = *last = -1;
    if (!tarn_slice_starts_with(text, tarn_slice_str("bytes ")))
        return false;
    text = tarn_slice_of(text.data + 6, text.size - 6);
    if (!take_byte(&text, '*') && !(take_number(&text, first) && take_byte(&text, '-') &&
                                    take_number(&text, last) && *first <= *last))
        return false;
    return take_byte(&text, '/') && take_number(&text, size) && text.size == 0 && *last < *size;
}
