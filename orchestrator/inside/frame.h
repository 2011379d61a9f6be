/* What the keeper of a sandbox and cage-inside, which does its work in there, say to each other over two pipes, and the service
 * and the keeper over a socket:
 *
 *	| kind: 1 byte | 0 | id: 2 bytes | length: 4 bytes | payload |
 *
 * The same machine is on both sides, so the numbers are in its own byte order. The id is that of a job, chosen by the keeper.
 * Whatever else runs in the sandbox can be behind what comes out of it: the keeper believes nothing of that but its form.
 *
 * Several words in one payload are separated by NUL bytes.
 *
 * Of each job at most LIMIT_INSIDE_WINDOW bytes of payload are under way in a direction: FRAME_OUT and FRAME_ERR out of the
 * sandbox, and FRAME_DATA of a connection into it. Who has taken some says so with FRAME_MORE. One job that nobody listens to
 * neither holds up others nor makes anybody hold much. */
#ifndef CAGE_INSIDE_FRAME_H
#define CAGE_INSIDE_FRAME_H

#include "core/base/limits.h"
#include "core/base/slice.h"

enum frame_kind {
	/* the keeper's: each begins a job, of which FRAME_DONE is the end */
	FRAME_RUN = 'R',     /* a directory, then a program and its arguments */
	FRAME_READ = 'G',    /* the path of a file */
	FRAME_TAKE = 'A',    /* the same of one to which no link leads */
	FRAME_WRITE = 'P',   /* of one to be written; its contents follow */
	FRAME_LIST = 'L',    /* the path of a directory */
	FRAME_CONNECT = 'N', /* a port of the sandbox's loopback */
	FRAME_USED = 'U',    /* nothing; back comes the number of bytes that the workspace takes */
	/* the keeper's, for a job that is there */
	FRAME_DATA = 'D', /* more contents of FRAME_WRITE, or for a connection */
	FRAME_END = 'E',  /* that was all; also what comes back of a connection */
	FRAME_CANCEL = 'C',
	FRAME_STOP = 'K', /* a program is asked to end (SIGTERM). Of the service: the sandbox; payload is the reason */
	FRAME_ENV = 'V',  /* NAME=VALUE: a variable of all programs from then on; it is no job */
	/* both ways */
	FRAME_MORE = 'M', /* four bytes: so many more may be sent */
	/* between the service and the keeper only */
	FRAME_FETCH = 'F',  /* JSON for cage-fetch, or nothing, and FRAME_DATA follows */
	FRAME_TOOL = 'T',   /* decision, reason, tool, detail: for the decision log */
	FRAME_RELOAD = 'H', /* there is a new policy */
	FRAME_BEGIN = 'B',  /* who was told to stand reads its spec anew, and begins */
	FRAME_STANDS = 's', /* back: the room stands, and waits for that */
	/* what comes back */
	FRAME_READY =
		'r', /* once, before all others; of the keeper also FRAME_READY_WAITS, and once more when that is over */
	FRAME_OUT = 'o', /* stdout, contents of a file, or a list; of that words such as "f SIZE NAME", "d 0 NAME" */
	FRAME_ERR = 'e', /* stderr */
	FRAME_DONE = 'd' /* "exit N", "signal N" or "error N", an errno; of a program FRAME_USED comes before it */
};

struct frame {
	enum frame_kind kind;
	uint16_t id;
	struct slice payload;
};

#define FRAME_HEADER 8

/* The room was given its command, which has not begun: what it runs in is only made now. */
#define FRAME_READY_WAITS SLICE("waits")

/* Bytes that have come and are not a whole frame yet. */
struct frame_reader {
	size_t len, taken;
	char bytes[FRAME_HEADER + LIMIT_INSIDE_FRAME];
};

enum frame_result {
	FRAME_TAKEN,
	FRAME_PARTIAL, /* there is more to come */
	FRAME_BROKEN   /* nobody who keeps to this sends it */
};

/* Where more may be put, and how much. */
char *frame_room(struct frame_reader *r, size_t *n);
void frame_arrived(struct frame_reader *r, size_t n);

/* The next frame; good until frame_room() is called. */
enum frame_result frame_take(struct frame_reader *r, struct frame *out);

/* The header of one with that many bytes. */
void frame_header(char out[FRAME_HEADER], enum frame_kind kind, uint16_t id, size_t len);

/* The payload of FRAME_MORE; 0: it is none. */
uint32_t frame_more(struct slice payload);

#endif
