/*
 * fake - a daemon of canned answers, and runs of `tarn` against it inside the test's process.
 *
 * A method keeps the messages it got and answers with those it was given, then with its status. A
 * method that was given nothing is UNIMPLEMENTED.
 */
#ifndef TARN_TEST_CLI_FAKE_H
#define TARN_TEST_CLI_FAKE_H

#include "test.h"

#include "cli/cli.h"
#include "wire/wire.h"

struct fake_method {
    char *path; /* owned, as the rest */
    struct tarn_buf *answers;
    size_t answer_count, answer_capacity;
    struct tarn_buf *requests;
    size_t request_count, request_capacity;
    struct tarn_status *outcome;
    struct tarn_status *first_outcome; /* of the first call; NULL: as the others */
    bool early;                        /* answers the first message, and reads no more */
};

struct fake {
    struct tarn_exec *exec;
    struct tarn_wire_server *server;
    struct fake_method *methods;
    size_t method_count;
    bool terminal; /* of the next runs: standard output and error are one */
    int in_fd;
};

void fake_start(struct fake *fake);
void fake_stop(struct fake *fake);
/* "CatalogService/GetTable"; before the first run. */
void fake_answers(struct fake *fake, const char *path, const ProtobufCMessage *message);
void fake_fails(struct fake *fake, const char *path, struct tarn_status *consumed);
void fake_fails_first(struct fake *fake, const char *path, struct tarn_status *consumed);
void fake_early(struct fake *fake, const char *path);
/* What the method got, the i-th message; NULL: not so many. Lies in the test's arena or is leaked to
 * nobody: free it with protobuf_c_message_free_unpacked. */
ProtobufCMessage *fake_request(struct fake *fake, const char *path, size_t index,
                               const ProtobufCMessageDescriptor *type);
size_t fake_request_count(struct fake *fake, const char *path);

struct run {
    int code;
    char *out, *err; /* in the test's arena */
};
/* The words after "tarn --server ADDRESS"; NULL ends them. */
struct run fake_run(struct tarn_test *t, struct fake *fake, ...) __attribute__((sentinel));

#endif
