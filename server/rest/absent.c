#include "rest/internal.h"

/* What the protocol has and Tarn doesn't yet. */

static struct tarn_status *not_yet(struct tarn_rest__call *call)
{
    return tarn_status_new(TARN_UNIMPLEMENTED, "%s %.*s is not implemented", call->request->method,
                           TARN_SLICE_ARG(call->request->path));
}

#define DATABASE "/databases/{database}"
#define TABLE DATABASE "/tables/{table}"
const struct tarn_rest__endpoint tarn_rest__absent_endpoints[] = {
    {"POST", TABLE "/replace", not_yet},         {"POST", DATABASE "/register", not_yet},
    {"POST", TABLE "/partitions", not_yet},      {"POST", TABLE "/partitions/mark", not_yet},
    {"POST", TABLE "/partitions/drop", not_yet}, TARN_REST_END,
};
