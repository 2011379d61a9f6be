/* A byte stream over a socket, plain or TLS, or to another stream in memory, driven by the loop. The only place that
 * knows sockets and SSL; everything above gets slices and callbacks.
 *
 *	input	what was read and not yet consumed; in one piece, so that a parser sees a whole head. When it is full,
 *		reading stops by itself and goes on after stream_consume: not consuming is how a reader pushes back.
 *	output	what waits to be sent. stream_write never blocks and never fails at once: an error arrives by on_end.
 *		A writer that cares asks stream_is_clogged and waits for on_drained.
 *
 * Callbacks come from the loop only, never from inside a call of the owner's. After stream_close or stream_finish there
 * are none. */
#ifndef CAGE_NET_STREAM_H
#define CAGE_NET_STREAM_H

#include <openssl/ssl.h>

#include "core/base/fifo.h"
#include "core/base/slice.h"
#include "core/base/status.h"
#include "core/net/loop.h"

struct stream;

struct stream_cb {
	void (*on_ready)(struct stream *, void *arg);   /* the TLS handshake is done */
	void (*on_data)(struct stream *, void *arg);    /* there is new input */
	void (*on_drained)(struct stream *, void *arg); /* output fell below the low mark */
	/* Reading is over. CAGE_EOF: the peer ended cleanly; writing may go on. Anything else: the stream is broken
	 * (CAGE_TRUNCATED, CAGE_ETIMEOUT, CAGE_EPROTO, CAGE_EVERIFY, CAGE_ESYS); close it. Input that was read before
	 * stays readable. After CAGE_EOF it can come once more, when the stream breaks while we still write. */
	void (*on_end)(struct stream *, enum cage_status why, void *arg);
};

/* Takes over a connected, non-blocking socket. NULL without memory (fd is closed then). */
struct stream *stream_new(struct loop *l, int fd, const struct stream_cb *cb, void *arg);

/* Two streams without a socket: what is written to one is read from the other, with at most LIMIT_PIPE bytes under way.
 * One whose output is longer than that is clogged until all of it is under way. They end, break, stall and time out like
 * sockets; bytes that carry secrets are overwritten on the whole way. Both have the same owner at first. They can't go
 * on in TLS. false without memory. */
bool stream_pair(struct loop *l, struct stream *ends[2], const struct stream_cb *cb, void *arg);

/* Another owner. */
void stream_set_owner(struct stream *s, const struct stream_cb *cb, void *arg);

/* Goes on in TLS with ssl, which it owns from now on. Input not yet consumed is read by the handshake first.
 * server: accept, else connect. on_ready or on_end follow. */
void stream_start_tls(struct stream *s, SSL *ssl, bool server);

/* Goes on with a handshake that a callback of ours had suspended. */
void stream_resume_handshake(struct stream *s);

SSL *stream_ssl(struct stream *s); /* NULL when plain */

/* From now on what was read and consumed is overwritten: it may carry secrets. */
void stream_cleanse_input(struct stream *s);

/* Nothing is expected for a while: what is not needed meanwhile is given back. */
void stream_rest(struct stream *s);

struct slice stream_input(const struct stream *s);
void stream_consume(struct stream *s, size_t n);
void stream_tell_again(struct stream *s); /* on_data in the next pass, though nothing new may have come */
bool stream_input_is_full(const struct stream *s);
bool stream_has_ended(const struct stream *s);          /* on_end was or will be called, ... */
enum cage_status stream_end_of(const struct stream *s); /* ... with this */

/* Queues bytes; sent at the end of the pass at the latest. */
void stream_write(struct stream *s, struct slice bytes);

/* The same of bytes that carry a secret: the queue is overwritten once they are sent. */
void stream_write_secret(struct stream *s, struct slice bytes);

/* The same with the block at the front of a fifo, if it holds at most max bytes: moved instead of copied. How many bytes
 * that were; 0: none, it holds more. */
size_t stream_write_block(struct stream *s, struct fifo *from, size_t max);

/* Sends what is queued now, as far as the socket takes it; true when nothing is left. */
bool stream_flush(struct stream *s);
bool stream_is_clogged(const struct stream *s);

/* The owner does, or does not, take its input for now: while memory is short (LIMIT_WAITING) no more of it is read. */
void stream_hold(struct stream *s, bool is_held);

/* Bytes that wait in all streams of a loop to be sent. */
size_t stream_waiting(struct loop *l);
size_t stream_unsent(const struct stream *s);

/* Half-close: after what is queued, ends our side (FIN, with close_notify before it). */
void stream_end(struct stream *s);

/* on_end(CAGE_ETIMEOUT) unless set anew before: ms from now; 0: none. */
void stream_set_deadline(struct stream *s, unsigned ms);

/* The same, but each read or write starts it anew. */
void stream_set_idle(struct stream *s, unsigned ms);

/* on_end(CAGE_ETIMEOUT) when the output is clogged and the peer takes nothing of it for that long, whatever else happens
 * and beside the deadline above; 0: it may. */
void stream_set_stall(struct stream *s, unsigned ms);

/* At once; what is queued is lost and, with reset, the peer sees a connection reset. */
void stream_close(struct stream **s);
void stream_reset(struct stream **s);

/* The same of one end of a pair; the other one sees that it broke like this, where a reset is CAGE_TRUNCATED. */
void stream_break(struct stream **s, enum cage_status why);

/* In good order and in the background: sends what is queued, ends our side, drains what still arrives, closes. Within
 * bounds of bytes and time. */
void stream_finish(struct stream **s);

/* Streams on this loop that are not yet freed, those that are finishing included. */
size_t stream_count(struct loop *l);

/* Those of them that have a socket. */
size_t stream_sockets(struct loop *l);

#endif
