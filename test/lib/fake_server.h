/*
 * fake_server - a script of test/lib as a child of a test, that serves on loopback and obeys lines. Its words are
 * explained in the script.
 */
#ifndef TARN_TEST_LIB_FAKE_SERVER_H
#define TARN_TEST_LIB_FAKE_SERVER_H

#include <sys/types.h>

#include "test.h"

struct fake_server {
    pid_t pid;
    FILE *in, *out;
    int ports[2]; /* as it says in its first line, "port N [N]" */
};

/* `arguments` are split at blanks; "" for none. Skips the test where there is no python3. */
void fake_server_start(struct tarn_test *t, struct fake_server *fake, const char *script,
                       const char *arguments);
void fake_server_stop(struct fake_server *fake);
/* One line there, one back; in t->arena. */
const char *fake_server_ask(struct tarn_test *t, struct fake_server *fake, const char *line);
/* How many of the requests since the last count (word "log": [[kind, path, ...], ...]) were of that kind, with `part` in
 * their path. */
int fake_server_count(struct tarn_test *t, struct fake_server *fake, const char *kind,
                      const char *part);

#endif
