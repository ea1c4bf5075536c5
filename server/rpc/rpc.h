/*
 * rpc - the services of tarn.v1 as methods of room `wire`: protobuf to structs of `service` and back.
 *
 * Translation only. Requests are unpacked into the op's arena under a budget that goes with their
 * size, their strings checked for UTF-8. Mutations that carry a request_id are answered from memory
 * when they come again (service/service.h).
 *
 * DataService passes streams of rows on to a worker unread: what is decided about them, before and
 * after, is in `service`.
 *
 * Threads  methods run on threads of `exec`. Free after the wire server.
 */
#ifndef TARN_RPC_H
#define TARN_RPC_H

#include "service/service.h"
#include "wire/wire.h"

struct tarn_rpc;
/* call_max: calls carried out at once; more are BUSY. Must leave threads of `exec` for what calls wait
 * for: with all of them waiting for a table's mailbox, nobody would run it. */
struct tarn_rpc *tarn_rpc_new(struct tarn_service *service, int call_max);
void tarn_rpc_free(struct tarn_rpc *rpc);
/* Borrowed; for tarn_wire_server_start. */
const struct tarn_wire_method *tarn_rpc_methods(const struct tarn_rpc *rpc, size_t *count);
extern const char *const tarn_rpc_services[]; /* names, NULL terminated */

#endif
