/* What the files of the client share. */
#ifndef TARN_CLIENT_RECEIVE_H
#define TARN_CLIENT_RECEIVE_H

#include "tarn/client.h"

/* The next message as it came; NULL at the end of a stream that succeeded. */
TARN_MUST struct tarn_status *tarn_client__receive(struct tarn_client_stream *stream,
                                                   struct tarn_message **out);

#endif
