/*
 * Any bytes as an answer of WebHDFS: files, pages of lists, redirects, exceptions, and as a URI with its endpoint.
 */
#include "store/hdfs.h"

static void try_settings(struct tarn_slice text)
{
    struct tarn_hdfs_settings settings;
    TARN_OWN(tarn_free_drop) char *tail = tarn_slice_dup(text);
    TARN_OWN(tarn_free_drop) char *uri = tarn_format("hdfs:%s", tail);
    TARN_OWN(tarn_free_drop) char *set = tarn_format("hdfs.webhdfs_endpoint=%s", tail);
    struct tarn_conf *conf = tarn_conf_new();
    tarn_status_free(tarn_hdfs__settings_read(conf, uri, &settings));
    tarn_hdfs__settings_fini(&settings);
    tarn_status_free(tarn_conf_set(conf, set));
    tarn_status_free(tarn_hdfs__settings_read(conf, "hdfs://h/w", &settings));
    tarn_hdfs__settings_fini(&settings);
    tarn_conf_free(conf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bool flag;
    char *location = NULL;
    struct tarn_hdfs_status file;
    struct tarn_hdfs_page page;
    struct tarn_hdfs_failure failure;
    struct tarn_slice text = tarn_slice_of(data, size);
    struct tarn_arena *arena = tarn_arena_new();
    tarn_status_free(tarn_hdfs__decode_status(text, arena, &file));
    tarn_status_free(tarn_hdfs__decode_page(text, arena, &page));
    tarn_status_free(tarn_hdfs__decode_boolean(text, &flag));
    struct tarn_status *status = tarn_hdfs__decode_location(text, arena, &location);
    if (status == TARN_OK && tarn_hdfs__may_follow("http://nn:9870", location))
        tarn_assert(strncmp(location, "http://", 7) == 0);
    tarn_status_free(status);
    for (int code = 400; code < 600; code += 101)
        tarn_hdfs__decode_failure(code, text, arena, &failure);
    tarn_assert(failure.reason != TARN_NO_REASON);
    if (size < 4096)
        try_settings(text);
    tarn_arena_free(arena);
    return 0;
}
