#include "upload.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- formats --- */

struct known {
    const char *name; /* as --format has it, and as an extension */
    Tarn__V1__DataFormat format;
    bool tabs;
};

static const struct known formats[] = {
    {"parquet", TARN__V1__DATA_FORMAT__PARQUET, false},
    {"orc", TARN__V1__DATA_FORMAT__ORC, false},
    {"csv", TARN__V1__DATA_FORMAT__CSV, false},
    {"jsonl", TARN__V1__DATA_FORMAT__JSONL, false},
    {"arrow", TARN__V1__DATA_FORMAT__ARROW, false},
    /* extensions only */
    {"tsv", TARN__V1__DATA_FORMAT__CSV, true},
    {"ndjson", TARN__V1__DATA_FORMAT__JSONL, false},
    {"feather", TARN__V1__DATA_FORMAT__ARROW, false},
    {"ipc", TARN__V1__DATA_FORMAT__ARROW, false},
};
#define NAMED_COUNT 5
static const char *const packed[] = {"gz", "bz2", "xz", "zst", "zip", "lz4", "snappy"};

static const struct known *find_format(const char *name, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcasecmp(name, formats[i].name) == 0)
            return &formats[i];
    return NULL;
}

static struct tarn_status *format_given(struct tarn_cli *cli, const char *text,
                                        struct tarn_cli_source *source)
{
    const char *names[NAMED_COUNT];
    const struct known *found = find_format(text, NAMED_COUNT);

    if (found == NULL) {
        for (size_t i = 0; i < NAMED_COUNT; i++)
            names[i] = formats[i].name;
        const char *nearest = tarn_nearest(text, names, NAMED_COUNT);
        return tarn_cli_usage(
            cli, "--format \"%.50s\": expected parquet, orc, csv, jsonl or arrow%s%s%s", text,
            nearest ? "; did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
    }
    source->format = found->format;
    return TARN_OK;
}

static struct tarn_status *format_by_name(struct tarn_cli *cli, struct tarn_cli_source *source)
{
    const char *base = strrchr(source->path, '/');
    const char *dot = strrchr(base != NULL ? base : source->path, '.');

    if (strcmp(source->path, "-") == 0)
        return tarn_cli_usage(cli,
                              "standard input has no name to tell its format by: add --format");
    for (size_t i = 0; dot != NULL && i < TARN_COUNT_OF(packed); i++)
        if (strcasecmp(dot + 1, packed[i]) == 0)
            return tarn_cli_usage(cli,
                                  "%s is compressed: unpack it, or pipe it through standard input "
                                  "(-) with --format",
                                  source->path);
    const struct known *found = dot == NULL ? NULL : find_format(dot + 1, TARN_COUNT_OF(formats));
    if (found == NULL)
        return tarn_cli_usage(cli, "%s: its name does not tell its format: add --format",
                              source->path);
    source->format = found->format;
    source->tabs = found->tabs;
    return TARN_OK;
}

static struct tarn_status *check_readable(const char *path)
{
    struct stat about;
    if (stat(path, &about) != 0)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "%s: %s; nothing was sent", path,
                               strerrordesc_np(errno));
    if (S_ISDIR(about.st_mode))
        return tarn_status_new(TARN_INVALID_ARGUMENT, "%s is a folder; name the files in it", path);
    if (access(path, R_OK) != 0)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "%s: %s; nothing was sent", path,
                               strerrordesc_np(errno));
    return TARN_OK;
}

struct tarn_status *tarn_cli_source_of(struct tarn_cli *cli, const char *path,
                                       const char *format_text, struct tarn_cli_source *out)
{
    bool stdin_wanted = strcmp(path, "-") == 0;

    *out = (struct tarn_cli_source){.path = path, .name = stdin_wanted ? "<stdin>" : path};
    if (format_text != NULL)
        TARN_TRY(format_given(cli, format_text, out));
    else
        TARN_TRY(format_by_name(cli, out));
    return stdin_wanted ? TARN_OK : check_readable(path);
}

int64_t tarn_cli_source_size(const struct tarn_cli_source *source)
{
    struct stat about;
    if (strcmp(source->path, "-") == 0 || stat(source->path, &about) != 0 ||
        !S_ISREG(about.st_mode))
        return 0;
    return about.st_size;
}

/* --- sending --- */

static struct tarn_status *send_head(struct tarn_client_stream *stream,
                                     const struct tarn_cli_source *source)
{
    Tarn__V1__IngestFile file = TARN__V1__INGEST_FILE__INIT;
    Tarn__V1__IngestRequest request = TARN__V1__INGEST_REQUEST__INIT;
    file.name = tarn_cli_bytes_str(source->name);
    file.format = source->format;
    request.part_case = TARN__V1__INGEST_REQUEST__PART_FILE;
    request.file = &file;
    return tarn_client_stream_send(stream, &request.base);
}

static struct tarn_status *send_bytes(struct tarn_cli *cli, struct tarn_client_stream *stream,
                                      int fd, const char *name, struct tarn_cli_progress *progress,
                                      int64_t *sent)
{
    TARN_OWN(tarn_free_drop) uint8_t *chunk = tarn_alloc(TARN_CLI_CHUNK_SIZE);

    for (;;) {
        TARN_TRY(tarn_op_check(&cli->op));
        ssize_t got = read(fd, chunk, TARN_CLI_CHUNK_SIZE);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return tarn_cli_local(cli, tarn_status_errno(errno, "cannot read %s", name));
        if (got == 0)
            return TARN_OK;
        TARN_TRY(tarn_client_stream_send_bytes(stream, TARN__V1__INGEST_REQUEST__PART_DATA,
                                               tarn_slice_of(chunk, (size_t)got)));
        *sent += got;
        tarn_cli_progress_step(progress, *sent);
    }
}

struct tarn_status *tarn_cli_upload(struct tarn_cli *cli, struct tarn_client_stream *stream,
                                    const struct tarn_cli_source *source,
                                    struct tarn_cli_progress *progress, int64_t *sent)
{
    bool own = strcmp(source->path, "-") != 0;
    int fd = own ? open(source->path, O_RDONLY | O_CLOEXEC) : cli->in_fd;
    if (fd < 0)
        return tarn_cli_local(cli, tarn_status_errno(errno, "cannot open %s", source->path));
    struct tarn_status *status = send_head(stream, source);
    if (status == NULL)
        status = send_bytes(cli, stream, fd, source->name, progress, sent);
    if (own)
        close(fd);
    return status;
}
