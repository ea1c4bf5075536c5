/*
 * fake_s3 - test/lib/fake_s3.py as a child of a test: an S3 store in memory that misbehaves on demand. Its words
 * and rules are explained there.
 */
#ifndef TARN_TEST_LIB_FAKE_S3_H
#define TARN_TEST_LIB_FAKE_S3_H

#include <sys/types.h>

#include "test.h"

struct fake_s3 {
    pid_t pid;
    FILE *in, *out;
    int port;
};

/* `arguments` as a shell would split them at blanks; "" for none. Skips the test where there is no python3. */
void fake_s3_start(struct tarn_test *t, struct fake_s3 *fake, const char *arguments);
void fake_s3_stop(struct fake_s3 *fake);
/* One line there, one back; in t->arena. */
const char *fake_s3_ask(struct tarn_test *t, struct fake_s3 *fake, const char *line);
/* How many of the requests since the last count were METHOD with `part` in their path. */
int fake_s3_count(struct tarn_test *t, struct fake_s3 *fake, const char *method, const char *part);

#endif
