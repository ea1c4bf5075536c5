/*
 * access - who asks, and may they? Today: mode none (everybody is "anonymous", loopback only) and mode token
 * (a file of bearer tokens, one a line, "name:token" or "token"). One hook for all later permissions.
 *
 * Threads  any. Errors  UNAUTHENTICATED, PERMISSION_DENIED; CONFIG_INVALID at open.
 */
#ifndef TARN_ACCESS_H
#define TARN_ACCESS_H

#include "base/base.h"

enum tarn_action {
    TARN_ACTION_READ,
    TARN_ACTION_WRITE,
    TARN_ACTION_CREATE,
    TARN_ACTION_DROP,
    TARN_ACTION_ALTER,
    TARN_ACTION_MAINTAIN,
    TARN_ACTION_ADMIN,
    TARN_ACTION_WORK
};

struct tarn_access;
TARN_MUST struct tarn_status *tarn_access_open(const struct tarn_conf *conf,
                                               struct tarn_access **out);
void tarn_access_close(struct tarn_access *access);
/* Reads the token file again; the old tokens stay on an error. */
TARN_MUST struct tarn_status *tarn_access_reload(struct tarn_access *access);
/* The secret that workers authenticate with, and the daemon to them; borrowed. A new one each start, or the
 * token of principal tarn-worker in the file, where workers of other hosts join. */
const char *tarn_access_worker_secret(const struct tarn_access *access);
/* Sets op->principal (in op->arena). */
TARN_MUST struct tarn_status *tarn_access_authenticate(struct tarn_access *access,
                                                       struct tarn_op *op,
                                                       struct tarn_slice bearer_token);
/* May op->principal do this to that? database, table NULL: the warehouse. */
TARN_MUST struct tarn_status *tarn_access_check(struct tarn_access *access, struct tarn_op *op,
                                                enum tarn_action action, const char *database,
                                                const char *table);

/* Who can be op->principal besides workers: the names of the token file, in order, each once; "anonymous" alone where nobody needs a
 * token. In the op's arena. Each of them may do everything (see above). */
void tarn_access_principals(struct tarn_access *access, struct tarn_op *op,
                            const struct tarn_slice **out, size_t *count);

#endif
