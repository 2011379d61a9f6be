/* What the service knows, in SQLite: sandboxes, the changes of their states, answers to idempotency keys. Each call is one
 * transaction, whole or not at all, but for store_add, which is made between store_begin and store_commit. What can't be written is told by STORE_FULL or STORE_FAILED, and the service goes on. */
#ifndef CAGE_SERVICE_STORE_H
#define CAGE_SERVICE_STORE_H

#include <jansson.h>
#include <stdint.h>

#include "core/base/limits.h"
#include "core/base/status.h"
#include "orchestrator/service/state.h"

struct store;

enum store_result {
	STORE_OK,
	STORE_NONE,    /* there is no such row */
	STORE_REFUSED, /* that state can't follow */
	STORE_FULL,    /* no room on the disk */
	STORE_FAILED   /* it was said why */
};

#define STORE_ID (LIMIT_SANDBOX + 1)

/* A row. Texts that are NULL are not there; times in microseconds since 1970, 0: not yet. */
struct row {
	int64_t seq; /* the order of creation */
	char id[STORE_ID];
	enum state state;
	char reason[64];
	char *message;
	int64_t created_us, started_us, ended_us, deadline_us;
	bool has_exit;
	int exit_code;
	json_t *spec;  /* create.h */
	json_t *usage; /* measure.h; NULL: not measured */
	char policy_sha[65];
	char ending[64];                      /* why we have asked it to end; "": we have not */
	bool deleting;                        /* it is to be removed */
	int64_t cleanup_tries, cleanup_at_us; /* removals that have failed, and when the next is due */
	char *cleanup_error;
};

void row_free(struct row *r);

/* path: of the file. NULL with a message. */
struct store *store_open(const char *path);
void store_close(struct store **s);

/* What can be done when the disk is full, before what ends or removes a sandbox is tried once more. */
void store_on_full(struct store *s, void (*make_room)(void *arg), void *arg);

/* A sandbox in QUEUED: several statements, so that it needs store_begin before it. */
enum store_result store_add(struct store *s, const struct row *r) MUST_CHECK;

enum store_result store_get(struct store *s, const char *id, struct row *out) MUST_CHECK;

/* The only way from a state to another: the row and the change in one. Of `r` are written: state, reason, message, started_us,
 * ended_us, exit_code, usage. With DELETED all goes but what tells who has used how much: no command, no variables, no message, no
 * answer about it, and nothing of that is left in the file. */
enum store_result store_enter(struct store *s, const struct row *r) MUST_CHECK;

/* We have asked it to end, or want it removed. */
enum store_result store_set_ending(struct store *s, const char *id, const char *reason) MUST_CHECK;
enum store_result store_set_deleting(struct store *s, const char *id) MUST_CHECK;
enum store_result store_set_cleanup(struct store *s, const char *id, int64_t tries, int64_t at_us,
				    const char *error) MUST_CHECK;
enum store_result store_set_policy(struct store *s, const char *id, const char *sha) MUST_CHECK;

/* A new list of {state, at, reason}; NULL with a message. */
json_t *store_history(struct store *s, const char *id);

struct store_filter {
	const char *state;         /* NULL: all */
	const char *label, *value; /* NULL: all */
	int64_t before;            /* seq; 0: from the newest */
	int64_t limit;
};

/* The newest first. Called for each; it may not call the store. */
typedef void store_each(void *arg, const struct row *r);
enum store_result store_list(struct store *s, const struct store_filter *f, store_each *each, void *arg) MUST_CHECK;

/* Those in QUEUED, CREATING and RUNNING, the oldest first. */
enum store_result store_list_open(struct store *s, store_each *each, void *arg) MUST_CHECK;

/* Those that have ended and are due: wanted away, or without `keep` and ended before then. */
enum store_result store_list_due(struct store *s, int64_t now_us, int64_t ended_before_us, store_each *each,
				 void *arg) MUST_CHECK;

/* Sums for each value of a label (NULL: of all), of those created since then: *out is a new list of rows. */
enum store_result store_usage(struct store *s, const char *label, int64_t since_us, json_t **out) MUST_CHECK;

/* Forgets the records of those that were deleted long ago, and later their numbers: some of them, at each call. */
void store_forget_old(struct store *s, int64_t records_before_us, int64_t numbers_before_us);

/* Overwrites what was deleted where that could not be done at once. */
void store_settle(struct store *s);

/* ---- idempotency ---- */

struct answer {
	int status;
	char *body;     /* owned; "": the sandbox that was made is deleted */
	char *location; /* owned; NULL: none */
};

/* Keeps the answer to a key. Where there are too many, the oldest are forgotten. */
enum store_result store_keep_answer(struct store *s, const char *key, const char *body_sha, const struct answer *a,
				    int64_t now_us) MUST_CHECK;

/* STORE_NONE: the key is new. *same: was the body the same? */
enum store_result store_find_answer(struct store *s, const char *key, const char *body_sha, struct answer *out,
				    bool *same) MUST_CHECK;
void answer_free(struct answer *a);

/* Forgets one, as if it had not been asked; where that can't be, it stays. */
void store_forget_answer(struct store *s, const char *key);

/* Forgets answers from before then. */
void store_forget_answers(struct store *s, int64_t before_us);

/* Several calls that belong together: all of them, or none. */
enum store_result store_begin(struct store *s) MUST_CHECK;
enum store_result store_commit(struct store *s) MUST_CHECK;
void store_roll_back(struct store *s);

#endif
