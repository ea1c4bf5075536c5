/*
 * upload - the bytes of local files, or of standard input, into a stream of IngestRequests.
 *
 * Errors   those of files name the file; those of a stream are the server's.
 */
#ifndef TARN_CLI_UPLOAD_H
#define TARN_CLI_UPLOAD_H

#include "ask.h"
#include "progress.h"

#include "tarn/v1/data.pb-c.h"

#define TARN_CLI_CHUNK_SIZE TARN_WIRE_CHUNK_SIZE

struct tarn_cli_source {
    const char *path; /* "-": standard input */
    const char *name; /* for messages */
    Tarn__V1__DataFormat format;
    bool tabs; /* .tsv */
};

/* Looks whether the file can be read, and what its name or `format_text` (NULL: not given) says. */
TARN_MUST struct tarn_status *tarn_cli_source_of(struct tarn_cli *cli, const char *path,
                                                 const char *format_text,
                                                 struct tarn_cli_source *out);
int64_t tarn_cli_source_size(const struct tarn_cli_source *source); /* 0: not known */
/* `*sent` grows by the bytes that were sent. */
TARN_MUST struct tarn_status *tarn_cli_upload(struct tarn_cli *cli,
                                              struct tarn_client_stream *stream,
                                              const struct tarn_cli_source *source,
                                              struct tarn_cli_progress *progress, int64_t *sent);

#endif
