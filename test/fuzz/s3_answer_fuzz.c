/* Any bytes as S3's and STS's XML: decoded or refused; what is decoded holds together. */
#include "store/s3.h"

static void page_of(struct tarn_slice text, struct tarn_arena *arena)
{
    struct tarn_s3_page page = {0};
    struct tarn_status *status = tarn_s3__decode_page(text, arena, &page);
    if (status == TARN_OK) {
        tarn_assert(!page.more || page.token.size > 0);
        for (size_t i = 0; i < page.count; i++)
            tarn_assert(page.objects[i].key.size > 0 && page.objects[i].size >= 0);
    }
    tarn_status_free(status);
}

static void events_of(struct tarn_slice text, struct tarn_arena *arena)
{
    struct tarn_xml xml;
    enum tarn_xml_event event;
    struct tarn_status *status;
    int depth = 0;
    tarn_xml_init(&xml, text, arena);
    do {
        status = tarn_xml_next(&xml, &event);
        if (status != TARN_OK)
            break;
        depth += event == TARN_XML_START ? 1 : event == TARN_XML_END ? -1 : 0;
        tarn_assert(depth >= 0 && depth <= TARN_S3_XML_DEPTH_MAX);
        tarn_assert(event != TARN_XML_TEXT || tarn_utf8_valid(xml.value));
    } while (event != TARN_XML_DONE);
    tarn_assert(status != TARN_OK || depth == 0);
    tarn_status_free(status);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bool found;
    int64_t a, b, c;
    struct tarn_s3_error error;
    struct tarn_s3_keys *keys = NULL;
    struct tarn_slice text = tarn_slice_of(data, size), value;
    struct tarn_arena *arena = tarn_arena_new();
    events_of(text, arena);
    page_of(text, arena);
    tarn_status_free(tarn_s3__decode_error(text, arena, &found, &error));
    tarn_status_free(tarn_s3__decode_one(text, arena, "CopyObject", "ETag", &value));
    tarn_status_free(tarn_s3__decode_role(text, arena, &keys));
    tarn_s3__keys_drop(&keys);
    tarn_status_free(tarn_s3__profile_find(text, "default", &keys));
    tarn_s3__keys_drop(&keys);
    tarn_s3__http_date(text, &a);
    if (tarn_s3__content_range(text, &a, &b, &c))
        tarn_assert(a <= b && b < c);
    tarn_arena_free(arena);
    return 0;
}
