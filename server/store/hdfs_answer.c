/*
 * hdfs_answer - what WebHDFS says, decoded: JSON of files, lists and exceptions.
 *
 * Source   "WebHDFS REST API" of Hadoop 3.4, sections "JSON Schemas" and "Error Responses".
 */
#include "store/hdfs.h"

#define PAGE_ENTRIES_MAX ((size_t)100000) /* dfs.ls.limit is 1,000 as HDFS comes */
#define LOCATION_SIZE_MAX ((size_t)32 << 10)
#define MESSAGE_SIZE_MAX 300

static struct tarn_status *not_webhdfs(const char *what)
{
    return tarn_status_new(TARN_STORE_UNAVAILABLE, "that is no answer of WebHDFS: %s", what);
}

static struct tarn_status *parse(struct tarn_slice json, struct tarn_json **out)
{
    struct tarn_status *status = tarn_json_parse(json, out);
    if (status == TARN_OK)
        return TARN_OK;
    struct tarn_status *refused = not_webhdfs(tarn_status_message(status));
    tarn_status_free(status);
    return refused;
}

/* --- files --- */

static struct tarn_status *take_number(const struct tarn_json *object, const char *name,
                                       int64_t *out)
{
    const struct tarn_json *value = tarn_json_find(object, name);
    *out = tarn_json_int(value);
    if (tarn_json_kind(value) != TARN_JSON_INTEGER || *out < 0)
        return tarn_status_new(TARN_STORE_UNAVAILABLE, "that is no answer of WebHDFS: no %s", name);
    return TARN_OK;
}

static struct tarn_status *take_status(const struct tarn_json *object, struct tarn_arena *arena,
                                       struct tarn_hdfs_status *out)
{
    struct tarn_slice type = tarn_json_text(tarn_json_find(object, "type"));
    struct tarn_slice name = tarn_json_text(tarn_json_find(object, "pathSuffix"));
    *out = (struct tarn_hdfs_status){.is_folder = tarn_slice_is(type, "DIRECTORY")};
    if (!out->is_folder && !tarn_slice_is(type, "FILE") && !tarn_slice_is(type, "SYMLINK"))
        return not_webhdfs("no type");
    if (name.data == NULL)
        return not_webhdfs("no pathSuffix");
    TARN_TRY(take_number(object, "length", &out->size));
    TARN_TRY(take_number(object, "modificationTime", &out->mtime_ms));
    out->file_id = TARN_MAX(tarn_json_int(tarn_json_find(object, "fileId")), (int64_t)0);
    out->name = tarn_arena_copy(arena, name);
    return TARN_OK;
}

struct tarn_status *tarn_hdfs__decode_status(struct tarn_slice json, struct tarn_arena *arena,
                                             struct tarn_hdfs_status *out)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *root = NULL;
    TARN_TRY(parse(json, &root));
    const struct tarn_json *status = tarn_json_find(root, "FileStatus");
    if (tarn_json_kind(status) != TARN_JSON_OBJECT)
        return not_webhdfs("no FileStatus");
    return take_status(status, arena, out);
}

/* {"DirectoryListing":{"partialListing":{"FileStatuses":{"FileStatus":[…]}},"remainingEntries":0}} */
struct tarn_status *tarn_hdfs__decode_page(struct tarn_slice json, struct tarn_arena *arena,
                                           struct tarn_hdfs_page *out)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *root = NULL;
    TARN_TRY(parse(json, &root));
    const struct tarn_json *listing = tarn_json_find(root, "DirectoryListing");
    const struct tarn_json *partial = tarn_json_find(listing, "partialListing");
    const struct tarn_json *entries =
        tarn_json_find(tarn_json_find(partial, "FileStatuses"), "FileStatus");
    if (tarn_json_kind(entries) != TARN_JSON_ARRAY)
        return not_webhdfs("no FileStatuses");
    size_t count = tarn_json_count(entries);
    if (count > PAGE_ENTRIES_MAX)
        return not_webhdfs("a page too long");
    *out = (struct tarn_hdfs_page){
        .entries = tarn_arena_calloc(arena, count + 1, sizeof *out->entries), .count = count};
    TARN_TRY(take_number(listing, "remainingEntries", &out->remaining));
    for (size_t i = 0; i < count; i++)
        TARN_TRY(take_status(tarn_json_at(entries, i), arena, &out->entries[i]));
    return TARN_OK;
}

struct tarn_status *tarn_hdfs__decode_boolean(struct tarn_slice json, bool *out)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *root = NULL;
    TARN_TRY(parse(json, &root));
    const struct tarn_json *value = tarn_json_find(root, "boolean");
    if (tarn_json_kind(value) != TARN_JSON_BOOL)
        return not_webhdfs("no boolean");
    *out = tarn_json_is_true(value);
    return TARN_OK;
}

/* --- where to go --- */

/* Java's URI leaves letters beyond ASCII as they are. */
static char *encode_rest(struct tarn_slice location, struct tarn_arena *arena)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};
    for (size_t i = 0; i < location.size; i++) {
        if (location.data[i] >= 0x80)
            tarn_buf_printf(&out, "%%%02X", location.data[i]);
        else
            tarn_buf_add_byte(&out, location.data[i]);
    }
    return tarn_arena_str(arena, tarn_buf_slice(&out));
}

struct tarn_status *tarn_hdfs__decode_location(struct tarn_slice json, struct tarn_arena *arena,
                                               char **out)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *root = NULL;
    TARN_TRY(parse(json, &root));
    struct tarn_slice location = tarn_json_text(tarn_json_find(root, "Location"));
    if (location.size == 0 || location.size > LOCATION_SIZE_MAX)
        return not_webhdfs("no Location");
    *out = encode_rest(location, arena);
    return TARN_OK;
}

bool tarn_hdfs__may_follow(const char *endpoint, const char *location)
{
    bool secure = strncmp(endpoint, "https://", 8) == 0;
    const char *scheme = secure ? "https://" : "http://";
    size_t size = strlen(scheme);
    if (strncmp(location, scheme, size) != 0 || strlen(location) > LOCATION_SIZE_MAX)
        return false;
    size_t host = strcspn(location + size, "/?#");
    if (host == 0 || memchr(location + size, '@', host) != NULL)
        return false;
    for (const unsigned char *p = (const unsigned char *)location; *p != '\0'; p++) {
        if (*p <= ' ' || *p >= 0x7f || *p == '\\' || *p == '#')
            return false;
    }
    return true;
}

/* --- failures --- */

static const struct {
    const char *exception;
    enum tarn_reason reason;
    bool standby, again;
} known[] = {
    {"FileNotFoundException", TARN_OBJECT_NOT_FOUND, false, false},
    {"FileAlreadyExistsException", TARN_OBJECT_EXISTS, false, false},
    {"AccessControlException", TARN_STORE_DENIED, false, false},
    {"AuthorizationException", TARN_STORE_DENIED, false, false},
    {"AuthenticationException", TARN_STORE_DENIED, false, false},
    {"SecurityException", TARN_STORE_DENIED, false, false},
    {"InvalidToken", TARN_STORE_DENIED, false, false},
    {"ParentNotDirectoryException", TARN_PATH_INVALID, false, false},
    {"InvalidPathException", TARN_PATH_INVALID, false, false},
    {"PathComponentTooLongException", TARN_PATH_INVALID, false, false},
    {"StandbyException", TARN_STORE_UNAVAILABLE, true, true},
    {"ObserverRetryOnActiveException", TARN_STORE_UNAVAILABLE, true, true},
    {"RetriableException", TARN_STORE_UNAVAILABLE, false, true},
    {"SafeModeException", TARN_STORE_UNAVAILABLE, false, true},
    {"NotReplicatedYetException", TARN_STORE_UNAVAILABLE, false, true},
    {"DSQuotaExceededException", TARN_DISK_FULL, false, false},
    {"NSQuotaExceededException", TARN_DISK_FULL, false, false},
    {"QuotaByStorageTypeExceededException", TARN_DISK_FULL, false, false},
    {"DiskOutOfSpaceException", TARN_DISK_FULL, false, false},
};

/* An exception of another name, or none: what the HTTP status alone says. 404 says nothing: a gateway, or a
 * server that isn't WebHDFS, answers it to everything. */
static enum tarn_reason reason_of(int http_status, bool has_exception)
{
    if (http_status == 401 || (http_status == 403 && !has_exception))
        return TARN_STORE_DENIED;
    if (http_status == 400 && has_exception)
        return TARN_INVALID_ARGUMENT;
    return has_exception ? TARN_IO_ERROR : TARN_STORE_UNAVAILABLE;
}

static const char *first_line(struct tarn_slice text, struct tarn_arena *arena)
{
    size_t size = 0;
    while (size < text.size && size < MESSAGE_SIZE_MAX && text.data[size] >= ' ')
        size++;
    while (size > 0 && size < text.size && (text.data[size] & 0xc0) == 0x80)
        size--; /* not through a character */
    return tarn_arena_str(arena, tarn_slice_of(text.data, size));
}

void tarn_hdfs__decode_failure(int http_status, struct tarn_slice body, struct tarn_arena *arena,
                               struct tarn_hdfs_failure *out)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *root = NULL;
    struct tarn_status *status = tarn_json_parse(body, &root);
    const struct tarn_json *exception =
        status == TARN_OK ? tarn_json_find(root, "RemoteException") : NULL;
    struct tarn_slice name = tarn_json_text(tarn_json_find(exception, "exception"));
    tarn_status_free(status);
    *out = (struct tarn_hdfs_failure){
        .exception = first_line(name, arena),
        .message = first_line(tarn_json_text(tarn_json_find(exception, "message")), arena),
        .reason = reason_of(http_status, name.size > 0),
    };
    for (size_t i = 0; i < TARN_COUNT_OF(known); i++) {
        if (!tarn_slice_is(name, known[i].exception))
            continue;
        out->reason = known[i].reason;
        out->standby = known[i].standby;
        out->again = known[i].again;
    }
    /* A file on the way to the path: a question of kind, not of right. Of the latter it says "Permission
     * denied: user=…". */
    static const char no_folder[] = "(is not a directory)";
    size_t size = strlen(out->message), end = sizeof no_folder - 1;
    if (out->reason == TARN_STORE_DENIED && size > end &&
        strcmp(out->message + size - end, no_folder) == 0 &&
        strncmp(out->message, "Permission denied", 17) != 0)
        out->reason = TARN_PATH_INVALID;
    /* Safe mode is wrapped in others, by version. */
    if (strstr(out->message, "Name node is in safe mode") != NULL) {
        out->reason = TARN_STORE_UNAVAILABLE;
        out->again = true;
    }
}
