/* What the files of the stream share: the stream itself and the table that makes it plain, TLS or a pipe. */
#ifndef CAGE_NET_STREAM_INTERNAL_H
#define CAGE_NET_STREAM_INTERNAL_H

#include <event2/event_struct.h>

#include "core/net/stream.h"

/* The transport under a stream. read and write return the bytes moved, or 0 with *st saying why. */
struct stream_ops {
	size_t high, low; /* more output than `high` clogs the stream, until there is less than `low` */
	enum cage_status (*handshake)(struct stream *);
	size_t (*read)(struct stream *, void *buf, size_t room, enum cage_status *st);
	size_t (*write)(struct stream *, const void *buf, size_t n, enum cage_status *st);
	void (*end)(struct stream *);              /* ends our side, where the transport has a word for it, ... */
	void (*shut)(struct stream *);             /* ... and takes the way to write away */
	bool (*maybe_more)(const struct stream *); /* may another read find bytes at once? */
	int (*unsent)(const struct stream *);      /* bytes that were written and that the peer has not taken */
	void (*harden)(struct stream *);           /* the peer shall see a reset: what it has is not all */
	void (*free)(struct stream *);
};

enum stream_state {
	STREAM_HANDSHAKE, /* TLS is being set up */
	STREAM_OPEN,
	STREAM_FINISHING, /* the owner has let go; sending what is left, draining what comes */
	STREAM_CLOSED     /* waits to be freed at the end of the pass */
};

enum read_state {
	READ_OPEN,
	READ_ENDED, /* `end` says how; the owner is to be told */
	READ_TOLD
};

enum write_state {
	WRITE_OPEN,
	WRITE_ENDING, /* our end follows what is queued */
	WRITE_ENDED,
	WRITE_BROKEN
};

/* data[start .. end) is input not yet consumed. */
struct stream_buffer {
	char *data; /* NULL while there is nothing in it */
	size_t start, end;
	bool cleanses; /* what was in it is overwritten before somebody else gets it */
};

/* One end of a pair. */
struct stream_pipe {
	struct stream *peer;  /* NULL: it is gone */
	struct fifo arriving; /* what the peer wrote and this end has not read: at most LIMIT_PIPE */
	enum cage_status end; /* what follows it: CAGE_AGAIN, the peer may write more; CAGE_EOF; CAGE_TRUNCATED */
};

#define STREAM_MAGIC 0x57e4a301u

struct stream {
	unsigned magic;
	struct loop *loop;
	int fd;
	bool has_socket; /* or had one, until it was closed */
	const struct stream_ops *ops;
	const struct stream_cb *cb;
	void *arg;

	enum stream_state state;
	enum read_state reading;
	enum write_state writing;
	enum cage_status end;    /* how reading ended */
	enum cage_status broken; /* with WRITE_BROKEN: why */
	bool clogged;            /* output went over the high mark and has not yet fallen below the low one */
	bool more_to_read;       /* reading stopped at a bound of ours: no event will tell of the rest */
	bool is_held;            /* the owner does not take its input for now */
	bool tells_again;        /* the owner wants to be told of its input once more */
	bool socket_filled;      /* the last read of the socket gave all that was asked for: there may be more */

	struct stream_buffer in;
	struct fifo out;
	bool more_follows; /* the write under way is not the last of this pass: the kernel need not hurry */
	uint64_t drained;  /* thrown away while finishing */

	SSL *ssl;                 /* NULL when plain */
	struct stream_buffer pre; /* read before TLS began: the handshake's first bytes */
	struct stream_pipe pipe;  /* of one end of a pair */
	short handshake_on;       /* the event that the handshake waits for; 0: a callback of ours */
	short read_on, write_on;  /* the event that reading and writing wait for */

	struct event ev_read, ev_write, ev_timer, ev_again;
	bool read_armed, write_armed;
	uint64_t deadline_us; /* 0: none */
	int unsent;           /* bytes on their way to the peer when stall_us was set */
	uint64_t stall_us;    /* until when the peer must take some of the output; 0: it need not */
	uint64_t timer_us;    /* when ev_timer fires; 0: it is not set */
	unsigned idle_ms;     /* activity moves the deadline this far; 0: it stays */
	unsigned stall_ms;    /* and a write stall_us */
	struct deferred work;
};

extern const struct stream_ops stream_plain_ops;
extern const struct stream_ops stream_tls_ops;

/* Do so many bytes wait in all streams that each has to do with less? */
bool stream_memory_is_short(const struct stream *s);

/* An open stream over that transport; NULL without memory. */
struct stream *stream_create(struct loop *l, int fd, const struct stream_ops *ops, const struct stream_cb *cb,
			     void *arg);

/* What no descriptor tells: there is something to read, there is room to write, nothing can be written any more. */
void stream_is_readable(struct stream *s);
void stream_is_writable(struct stream *s);
void stream_is_broken(struct stream *s, enum cage_status why);

/* The socket itself: CAGE_AGAIN, CAGE_EOF or CAGE_TRUNCATED when nothing was moved. */
size_t stream_recv(struct stream *s, void *buf, size_t room, enum cage_status *st);
size_t stream_send(struct stream *s, const void *buf, size_t n, enum cage_status *st);
void stream_shut_socket(struct stream *s);
int stream_socket_unsent(const struct stream *s);
void stream_harden_socket(struct stream *s);
void stream_close_socket(struct stream *s);

/* Ties ssl to the stream's socket. */
bool stream_tls_attach(struct stream *s, SSL *ssl);

/* Makes room for a read; false without memory. Gives a buffer back, or only when there is nothing left in it. */
bool stream_buffer_reserve(struct stream_buffer *b);
void stream_buffer_drop(struct stream_buffer *b);
void stream_buffer_release(struct stream_buffer *b);

#endif
