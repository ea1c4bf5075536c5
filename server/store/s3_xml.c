/* s3_xml - elements and text of the few XML answers that are read here; see s3.h. */
#include "store/s3.h"

#include <ctype.h>

void tarn_xml_init(struct tarn_xml *xml, struct tarn_slice text, struct tarn_arena *arena)
{
    *xml = (struct tarn_xml){.text = text, .arena = arena};
    if (tarn_slice_starts_with(text, tarn_slice_str("\xef\xbb\xbf")))
        xml->at = 3; /* a byte order mark */
}

static struct tarn_status *bad(const struct tarn_xml *xml, const char *what)
{
    return tarn_status_new(TARN_VALUE_INVALID, "XML, byte %zu: %s", xml->at, what);
}

static struct tarn_slice rest(const struct tarn_xml *xml)
{
    return tarn_slice_of(xml->text.data + xml->at, xml->text.size - xml->at);
}

static bool looks_at(const struct tarn_xml *xml, const char *text)
{
    return tarn_slice_starts_with(rest(xml), tarn_slice_str(text));
}

/* Behind the next `end`. */
static struct tarn_status *skip_to(struct tarn_xml *xml, const char *end)
{
    struct tarn_slice left = rest(xml);
    const uint8_t *found = memmem(left.data, left.size, end, strlen(end));
    if (found == NULL)
        return bad(xml, "the text ends too early");
    xml->at += (size_t)(found - left.data) + strlen(end);
    return TARN_OK;
}

static bool is_name_byte(uint8_t c)
{
    return isalnum(c) || c == '_' || c == '-' || c == '.' || c == ':' || c >= 0x80;
}

static struct tarn_status *take_name(struct tarn_xml *xml, struct tarn_slice *out)
{
    size_t start = xml->at;
    while (xml->at < xml->text.size && is_name_byte(xml->text.data[xml->at]))
        xml->at++;
    *out = tarn_slice_of(xml->text.data + start, xml->at - start);
    return out->size == 0 ? bad(xml, "a name is missing") : TARN_OK;
}

static struct tarn_slice without_prefix(struct tarn_slice name)
{
    const uint8_t *colon = memchr(name.data, ':', name.size);
    if (colon == NULL)
        return name;
    return tarn_slice_of(colon + 1, name.size - (size_t)(colon + 1 - name.data));
}

/* From behind a start tag's name to behind its '>'. */
static struct tarn_status *skip_attributes(struct tarn_xml *xml)
{
    char quote = '\0';
    for (; xml->at < xml->text.size; xml->at++) {
        char c = (char)xml->text.data[xml->at];
        if (quote != '\0') {
            quote = c == quote ? '\0' : quote;
            continue;
        }
        if (c == '"' || c == '\'') {
            quote = c;
        } else if (c == '<') {
            return bad(xml, "'<' inside a tag");
        } else if (c == '>') {
            xml->self_closed = xml->text.data[xml->at - 1] == '/';
            xml->at++;
            return TARN_OK;
        }
    }
    return bad(xml, "the text ends inside a tag");
}

static struct tarn_status *start_tag(struct tarn_xml *xml, enum tarn_xml_event *event)
{
    struct tarn_slice name;
    xml->at++; /* '<' */
    if (xml->depth == 0 && xml->begun)
        return bad(xml, "more than one root element");
    if (xml->depth == TARN_S3_XML_DEPTH_MAX)
        return bad(xml, "elements are nested too deeply");
    TARN_TRY(take_name(xml, &name));
    TARN_TRY(skip_attributes(xml));
    xml->open[xml->depth++] = name;
    xml->begun = true;
    xml->name = without_prefix(name);
    *event = TARN_XML_START;
    return TARN_OK;
}

static void close_element(struct tarn_xml *xml, enum tarn_xml_event *event)
{
    xml->name = without_prefix(xml->open[--xml->depth]);
    *event = TARN_XML_END;
}

static struct tarn_status *end_tag(struct tarn_xml *xml, enum tarn_xml_event *event)
{
    struct tarn_slice name;
    xml->at += 2; /* "</" */
    TARN_TRY(take_name(xml, &name));
    if (xml->depth == 0 || !tarn_slice_equal(xml->open[xml->depth - 1], name))
        return bad(xml, "an end tag without its start");
    while (xml->at < xml->text.size && isspace(xml->text.data[xml->at]))
        xml->at++;
    if (!looks_at(xml, ">"))
        return bad(xml, "an end tag isn't closed");
    xml->at++;
    close_element(xml, event);
    return TARN_OK;
}

/* --- text --- */

static bool add_utf8(struct tarn_buf *out, uint32_t c)
{
    if (c == 0 || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return false;
    if (c < 0x80) {
        tarn_buf_add_byte(out, (uint8_t)c);
        return true;
    }
    int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const uint8_t leads[] = {0, 0xc0, 0xe0, 0xf0};
    tarn_buf_add_byte(out, (uint8_t)(leads[more] | (c >> (6 * more))));
    while (more-- > 0)
        tarn_buf_add_byte(out, (uint8_t)(0x80 | ((c >> (6 * more)) & 0x3f)));
    return true;
}

/* "#38" or "#x26", without '&' and ';' */
static bool add_number(struct tarn_buf *out, struct tarn_slice name)
{
    bool hex = name.size > 2 && name.data[1] == 'x';
    uint32_t value = 0;
    size_t first = hex ? 2 : 1;
    if (name.size <= first || name.size > first + 7)
        return false;
    for (size_t i = first; i < name.size; i++) {
        uint8_t c = name.data[i];
        if (hex ? !isxdigit(c) : !isdigit(c))
            return false;
        uint32_t digit = isdigit(c) ? (uint32_t)(c - '0') : (uint32_t)(tolower(c) - 'a' + 10);
        value = value * (hex ? 16 : 10) + digit;
    }
    return add_utf8(out, value);
}

static bool add_entity(struct tarn_buf *out, struct tarn_slice name)
{
    static const struct {
        const char *name, *text;
    } known[] = {{"amp", "&"}, {"lt", "<"}, {"gt", ">"}, {"quot", "\""}, {"apos", "'"}};
    for (size_t i = 0; i < TARN_COUNT_OF(known); i++)
        if (tarn_slice_is(name, known[i].name)) {
            tarn_buf_add_str(out, known[i].text);
            return true;
        }
    return name.size > 1 && name.data[0] == '#' && add_number(out, name);
}

static struct tarn_status *decode_text(struct tarn_xml *xml, struct tarn_slice raw,
                                       struct tarn_buf *out)
{
    for (size_t i = 0; i < raw.size; i++) {
        if (raw.data[i] != '&') {
            tarn_buf_add_byte(out, raw.data[i]);
            continue;
        }
        const uint8_t *end = memchr(raw.data + i, ';', TARN_MIN(raw.size - i, (size_t)12));
        if (end == NULL ||
            !add_entity(out, tarn_slice_of(raw.data + i + 1, (size_t)(end - raw.data) - i - 1)))
            return bad(xml, "an entity that isn't known");
        i = (size_t)(end - raw.data);
    }
    return TARN_OK;
}

static bool is_blank(struct tarn_slice text)
{
    for (size_t i = 0; i < text.size; i++)
        if (!isspace(text.data[i]))
            return false;
    return true;
}

/* Up to the next tag; with what CDATA sections hold. */
static struct tarn_status *gather_text(struct tarn_xml *xml, struct tarn_buf *out)
{
    while (xml->at < xml->text.size) {
        struct tarn_slice left = rest(xml);
        if (looks_at(xml, "<!--")) {
            TARN_TRY(skip_to(xml, "-->"));
        } else if (looks_at(xml, "<![CDATA[")) {
            size_t start = xml->at + strlen("<![CDATA[");
            TARN_TRY(skip_to(xml, "]]>"));
            tarn_buf_add(out, xml->text.data + start, xml->at - strlen("]]>") - start);
        } else if (left.data[0] == '<') {
            return TARN_OK;
        } else {
            const uint8_t *tag = memchr(left.data, '<', left.size);
            size_t size = tag == NULL ? left.size : (size_t)(tag - left.data);
            TARN_TRY(decode_text(xml, tarn_slice_of(left.data, size), out));
            xml->at += size;
        }
    }
    return TARN_OK;
}

static struct tarn_status *next_text(struct tarn_xml *xml, bool *some)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    TARN_TRY(gather_text(xml, &text));
    *some = text.size > 0 && !is_blank(tarn_buf_slice(&text));
    if (!*some)
        return TARN_OK;
    if (xml->depth == 0)
        return bad(xml, "text outside the root element");
    if (!tarn_utf8_valid(tarn_buf_slice(&text)) || memchr(text.data, '\0', text.size) != NULL)
        return bad(xml, "text that isn't UTF-8");
    xml->value = tarn_arena_copy(xml->arena, tarn_buf_slice(&text));
    return TARN_OK;
}

struct tarn_status *tarn_xml_next(struct tarn_xml *xml, enum tarn_xml_event *event)
{
    bool some;
    if (xml->self_closed) {
        xml->self_closed = false;
        close_element(xml, event);
        return TARN_OK;
    }
    do {
        TARN_TRY(next_text(xml, &some));
        if (some) {
            *event = TARN_XML_TEXT;
            return TARN_OK;
        }
        if (!looks_at(xml, "<?"))
            break;
        TARN_TRY(skip_to(xml, "?>"));
    } while (true);
    if (xml->at == xml->text.size) {
        if (xml->depth > 0 || !xml->begun)
            return bad(xml, "the text ends too early");
        *event = TARN_XML_DONE;
        return TARN_OK;
    }
    if (looks_at(xml, "<!"))
        return bad(xml, "declarations are refused");
    return looks_at(xml, "</") ? end_tag(xml, event) : start_tag(xml, event);
}
