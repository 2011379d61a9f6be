/* What HTTP/2 with clients and with servers has in common: how a session begins, what it sends, and what its frames
 * earn. */
#ifndef CAGE_PROXY_H2_SESSION_H
#define CAGE_PROXY_H2_SESSION_H

#include <nghttp2/nghttp2.h>

#include "core/net/stream.h"
#include "proxy/h2_budget.h"

/* Which side we are on. */
enum h2_side { H2_SERVER, H2_CLIENT };

/* A session with our bounds; its first frames wait to be sent. All memory of it is overwritten before it is given back,
 * since some field lists carry secrets. callbacks: NULL is no memory, too. NULL without memory. */
nghttp2_session *h2_session_new(enum h2_side side, const nghttp2_session_callbacks *callbacks, void *arg);

/* Sends what there is, but no more than the stream holds: the rest waits in the session, which is bounded too. write:
 * stream_write() or stream_write_secret(). false: it can't go on. */
bool h2_session_send(nghttp2_session *session, struct stream *s, void (*write)(struct stream *, struct slice));

/* Is there nothing left to do? After a GOAWAY that is when the last stream is closed. */
bool h2_session_is_over(nghttp2_session *session);

/* A frame has come or gone: one with bytes of a body earns others. */
void h2_session_earn(struct h2_budget *b, const nghttp2_frame *frame);

#endif
