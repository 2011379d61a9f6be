/* The file, pipe or device that lines go to. Only here does the log touch the system. */
#ifndef CAGE_AUDIT_LOGFILE_H
#define CAGE_AUDIT_LOGFILE_H

#include <sys/types.h>

#include "core/audit/chain.h"

enum logfile_kind {
	LOGFILE_CLOSED = 0,
	LOGFILE_REGULAR, /* read back, locked, cut, synced */
	LOGFILE_STREAM   /* a pipe, a terminal, a device: written and no more */
};

struct logfile {
	enum logfile_kind kind;
	int fd;
	dev_t dev;
	ino_t ino;
	off_t cut_at; /* >= 0: what is behind must still be cut off, before anything is written */
};

/* "-" is stdout. false with a message on stderr: it can't be opened, is in use, or is no place for a log. */
bool logfile_open(struct logfile *f, const char *path) MUST_CHECK;
void logfile_close(struct logfile *f);

/* Where the chain in the file ends. A torn last line is cut off. *empty: there is no line, and *end is not set; so it
 * is always for a stream. false with a message: its last line is not one of a log. */
bool logfile_read_end(struct logfile *f, const char *path, struct audit_hasher *h, struct audit_chain *end,
		      bool *empty) MUST_CHECK;

/* Writes buf from *sent on and moves *sent. CAGE_ESYS: not all could be written. A regular file is then cut back to
 * where it was, and *sent is 0; a stream can't take back, and goes on at *sent the next time. */
enum cage_status logfile_write(struct logfile *f, struct slice buf, size_t *sent) MUST_CHECK;

/* Bytes in a regular file; of a stream nobody knows. */
uint64_t logfile_size(const struct logfile *f);

enum cage_status logfile_sync(struct logfile *f) MUST_CHECK;

/* Is the open file still the one at path? */
bool logfile_is_at(const struct logfile *f, const char *path);

#endif
