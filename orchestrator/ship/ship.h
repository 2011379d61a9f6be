/* cage-ship: copies of decision logs, on their way to Azure's Logs Ingestion API. Start reading here.
 *
 * It only reads: the log is the spool, whoever writes it never waits for us, and no more than one batch of it is in memory. A file is
 * known by its device and inode, so that one that is renamed goes on where it was. How far each has been taken is its place (place.c),
 * a small file that is written before the next batch goes out.
 *
 *	SHIP_FILLS -> SHIP_SENDS -> SHIP_STORES -> SHIP_FILLS
 *	    ^          |     ^
 *	    |          v     |
 *	    |        SHIP_RESTS       refused: the same batch again, slowly
 *	    +----------+              too big: a smaller one
 *
 * So no line is lost by whatever kills us, and at most the batch that was under way is sent twice. ship_enter() alone changes the state.
 *
 *	scan.c    which files there are      source.c  one of them          take.c    its lines, into the batch
 *	batch.c   the array, compressed      send.c    what an answer means  loop.c    what comes when
 *	status.c  what is told of all that */
#ifndef CAGE_SHIP_H
#define CAGE_SHIP_H

#include <sys/types.h>

#include "core/audit/chain.h"
#include "orchestrator/azure/arm.h"

#define SHIP_VERSION "2023-01-01"
#define SHIP_RESOURCE "https://monitor.azure.com"
#define SHIP_HASH 64 /* hex digits */
#define SHIP_PATH 4096

/* ---- the command line ---- */

enum root_kind {
	ROOT_LOG,  /* a file, and what was rotated from it */
	ROOT_TREE, /* the logs in a directory, and in those right below it */
	ROOT_KEPT  /* a directory of logs to which nothing is added any more: removed when they are shipped */
};

struct root {
	enum root_kind kind;
	const char *path;
};

struct ship_options {
	struct azure_options azure;
	const char *rule, *stream;
	const char *state;  /* directory of places; NULL: the default */
	const char *status; /* file; NULL: none */
	struct root roots[LIMIT_SHIP_ROOTS];
	size_t n_roots;
	uint64_t age_s; /* that a line waits for others */
	bool once;
};

/* options.c: OPTIONS_GO_ON, or an exit code. */
int ship_options_parse(int argc, char **argv, struct ship_options *out);

/* ---- files ---- */

/* How far a file has been taken. */
struct place {
	uint64_t offset;      /* up to here; what is behind it has not been */
	uint64_t hash_at;     /* where the last line of it ends that was; 0: there is none */
	uint64_t seq;         /* of that line */
	char hash[SHIP_HASH]; /* likewise */
};

struct source {
	struct source *same_bucket;
	uint64_t dev, ino;
	uint64_t size;        /* when it was looked at */
	char *path;           /* owned: where it was seen last */
	char *kept;           /* owned: its name in a directory of ROOT_KEPT; NULL: it has none */
	int fd;               /* -1: closed */
	struct place place;   /* as it is stored */
	struct place reached; /* with what is in the batch */
	uint64_t passed;      /* lines of it that were passed over */
	unsigned missed;      /* scans that have not met it */
	bool is_seen;         /* by this scan */
	bool is_checked;      /* it is the file that its place is about */
	bool skips;           /* the rest of a line that is too long */
	bool has_told;        /* that there is something in it that is no line */
};

/* ---- the batch ---- */

struct batch {
	char *json; /* owned, LIMIT_SHIP_BATCH bytes: "[" and lines with commas between them, without the end */
	size_t len;
	uint64_t lines;
	size_t most;       /* bytes that it may have now */
	uint64_t since_us; /* monotonic: of its first line */
	char *packed;      /* owned, compressed */
	size_t n_packed, room;
};

bool batch_open(struct batch *b);
void batch_free(struct batch *b);
void batch_clear(struct batch *b);

/* False: it does not fit any more. */
bool batch_add(struct batch *b, struct slice line);

/* Ends the array, and compresses it. False: it could not be. */
bool batch_pack(struct batch *b);

/* ---- all of it ---- */

enum ship_state { SHIP_FILLS, SHIP_SENDS, SHIP_RESTS, SHIP_STORES, SHIP_ENDED };

struct ship_counts {
	uint64_t lines, bytes, batches; /* taken by Azure; bytes: of lines, before they were compressed */
	uint64_t retries, refused;      /* answers that were neither good nor too many at once */
	uint64_t too_big,
		foreign;     /* lines that were skipped: too long, or not a whole line of a log as it was written */
	uint64_t restarted;  /* files that were cut, or replaced: begun again */
	uint64_t lost_bytes; /* of files that went before they were taken */
};

#define SHIP_BUCKETS 4096

struct ship {
	const struct ship_options *options;
	enum ship_state state;
	int code;            /* of SHIP_ENDED */
	int signals, places; /* places: the directory */
	char dir[SHIP_PATH], where[LIMIT_ARM_URL];
	struct arm arm;
	struct arm_call call;
	struct batch batch;
	struct audit_hasher hasher;
	char *piece; /* owned: what was read of a file */
	struct source *list[LIMIT_SHIP_LOGS];
	struct source *buckets[SHIP_BUCKETS];
	size_t n, n_open, next; /* next: where filling begins */
	size_t entries;         /* of this scan */
	bool is_whole;          /* all of this scan could be read */
	bool is_full;           /* there are more logs than are followed, and it was told */
	unsigned scans;         /* up to LIMIT_SHIP_MISSED */
	uint64_t scan_us, again_us, status_us, say_us, end_us;
	unsigned told_tries; /* of the call */
	struct ship_counts counts;
	uint64_t shipped_us, error_us; /* wall clock; 0: never */
	char error[500];
};

/* ---- loop.c ---- */

void ship_enter(struct ship *s, enum ship_state next);

/* The end of it: what is under way may come to its own. */
void ship_end(struct ship *s, int code);
void ship_loop(struct ship *s);

/* The last trouble: kept for the status, and said unless that was done a moment ago. */
void ship_trouble(struct ship *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- place.c ---- */

/* Reads what place_save() has written. False: it is none, or of another file. */
bool place_parse(struct slice text, uint64_t dev, uint64_t ino, struct place *out) MUST_CHECK;

/* The place of a file, or its beginning. */
void place_load(const struct ship *s, struct source *f);

/* On the disk when it returns, but for the directory. False with errno. */
bool place_save(const struct ship *s, const struct source *f) MUST_CHECK;
void place_drop(const struct ship *s, uint64_t dev, uint64_t ino);

/* Those of files that are not there any more. */
void places_tidy(struct ship *s);

/* ---- scan.c ---- */

void ship_scan(struct ship *s);
struct source *source_find(const struct ship *s, uint64_t dev, uint64_t ino);

/* ---- source.c ---- */

struct source *source_new(struct ship *s, uint64_t dev, uint64_t ino, const char *path);
void source_free(struct ship *s, struct source **f);

/* Open, and the file that its place is about, or begun again. False: it can't be read now. */
bool source_open(struct ship *s, struct source *f);
void source_rest(struct ship *s, struct source *f);

static inline bool source_has_moved(const struct source *f)
{
	return f->reached.offset != f->place.offset;
}

/* ---- take.c ---- */

/* Is it a whole line of a decision log, as it was written? Without its newline. */
bool line_is_good(struct audit_hasher *h, struct slice line, struct audit_chain *after) MUST_CHECK;

enum taken { TAKEN_ALL, TAKEN_FULL };

/* Lines of a file into the batch. TAKEN_ALL: there are no more now. */
enum taken source_take(struct ship *s, struct source *f);

/* ---- send.c ---- */

void send_begin(struct ship *s);
void send_look(struct ship *s);

/* What was taken is not taken: it is read once more. */
void ship_rewind(struct ship *s);

/* ---- status.c ---- */

void status_write(struct ship *s);
void status_say(const struct ship *s);

#endif
