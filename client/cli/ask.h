/*
 * ask - calls to the daemon, and what their messages are made of.
 *
 * Memory   what these make lies in the arena of cli->op; answers are owned: tarn_cli_message_drop.
 */
#ifndef TARN_CLI_ASK_H
#define TARN_CLI_ASK_H

#include "cli.h"

#include "tarn/v1/common.pb-c.h"
#include "tarn/v1/table.pb-c.h"

TARN_MUST struct tarn_status *tarn_cli_connect(struct tarn_cli *cli);
/* One call; *out gets the answer (a pointer to a generated struct of that type). */
TARN_MUST struct tarn_status *tarn_cli_ask(struct tarn_cli *cli, const char *method,
                                           const ProtobufCMessage *request,
                                           const ProtobufCMessageDescriptor *type, void *out);
/* One request, then a stream of answers. */
TARN_MUST struct tarn_status *tarn_cli_ask_stream(struct tarn_cli *cli, const char *method,
                                                  const ProtobufCMessage *request,
                                                  struct tarn_client_stream **out);
/* The next answer; *out NULL at the end. */
TARN_MUST struct tarn_status *tarn_cli_next(struct tarn_client_stream *stream,
                                            const ProtobufCMessageDescriptor *type, void *out);
void tarn_cli_message_drop(void *pointer_to_message);

/* --- requests --- */
ProtobufCBinaryData tarn_cli_bytes(struct tarn_slice text); /* borrows */
ProtobufCBinaryData tarn_cli_bytes_str(const char *text);   /* NULL: empty */
char *tarn_cli_request_id(struct tarn_cli *cli);            /* a new one */
/* "db.table": the first dot divides. "db.t$branch_x" is a branch; a system table (db.t$x) is not in this version. */
TARN_MUST struct tarn_status *tarn_cli_table_ref(struct tarn_cli *cli, const char *name,
                                                 Tarn__V1__TableRef **out);
/* A file that goes whole into a request. */
TARN_MUST struct tarn_status *tarn_cli_read_file(struct tarn_cli *cli, const char *path,
                                                 ProtobufCBinaryData *out);
/* --option of the command, many times: KEY=VALUE. */
TARN_MUST struct tarn_status *tarn_cli_option_pairs(struct tarn_cli *cli, const char *name,
                                                    Tarn__V1__Option ***out, size_t *count);
/* A value of names with commas between (args.h); none where the option was not given. */
TARN_MUST struct tarn_status *tarn_cli_option_names(struct tarn_cli *cli, const char *name,
                                                    ProtobufCBinaryData **out, size_t *count);
/* "dt=2026-01-31,hour=3"; k=null: where k is null, and a value in quotes is text even where it is 'null'. what: of the command line. In the
 * op's arena (partitions.c). */
TARN_MUST struct tarn_status *tarn_cli_partition(struct tarn_cli *cli, const char *text,
                                                 const char *what, Tarn__V1__PartitionValue ***out,
                                                 size_t *count);
/* --snapshot N or --at TIME; NULL where neither is given. */
TARN_MUST struct tarn_status *tarn_cli_version(struct tarn_cli *cli, Tarn__V1__Version **out);
/* --how; AUTO where it isn't given. */
TARN_MUST struct tarn_status *tarn_cli_changes_how(struct tarn_cli *cli,
                                                   Tarn__V1__Changes__How *out);
#define TARN_CLI_VERSION_OPTIONS                                                                   \
    {"snapshot", 0, "N", "the version that snapshot N made", false},                               \
        {"tag", 0, "TAG", "the version that the tag names", false},                                \
        {"watermark", 0, "N", "the first version whose watermark is at least N", false},           \
    {                                                                                              \
        "at", 0, "TIME", "the latest version committed at or before TIME", false                   \
    }

/* --- answers --- */
struct tarn_slice tarn_cli_slice(ProtobufCBinaryData bytes); /* never absent */
const char *tarn_cli_or_null(const char *text);              /* "" gives NULL */
struct tarn_slice tarn_cli_or_absent(ProtobufCBinaryData bytes);
struct tarn_json *tarn_cli_names_json(const ProtobufCBinaryData *names, size_t count);
struct tarn_slice tarn_cli_names_text(struct tarn_cli *cli, const ProtobufCBinaryData *names,
                                      size_t count); /* "a, b" */
struct tarn_json *tarn_cli_options_json(Tarn__V1__Option *const *options, size_t count);
struct tarn_slice tarn_cli_options_text(struct tarn_cli *cli, Tarn__V1__Option *const *options,
                                        size_t count);
struct tarn_json *tarn_cli_fields_json(Tarn__V1__Field *const *fields, size_t count);
struct tarn_slice tarn_cli_fields_text(struct tarn_cli *cli, Tarn__V1__Field *const *fields,
                                       size_t count); /* "id BIGINT NOT NULL, name STRING" */

#endif
