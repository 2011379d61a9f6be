/* What the files of the store share: statements that are prepared once, and the reading of rows. */
#ifndef CAGE_SERVICE_STORE_PRIVATE_H
#define CAGE_SERVICE_STORE_PRIVATE_H

#include <sqlite3.h>

#include "orchestrator/service/store.h"

#define STORE_STATEMENTS 80

struct store {
	sqlite3 *db;
	struct {
		const char *sql; /* a literal: known by its address */
		sqlite3_stmt *stmt;
	} prepared[STORE_STATEMENTS];
	size_t n_prepared;
	void (*make_room)(void *arg); /* NULL: nobody can */
	void *room_arg;
	int said;       /* the fault that was said last, until something is written; SQLITE_OK: none */
	bool unsettled; /* what was deleted may still be in the log of SQLite */
};

/* The statement, reset and without values; NULL with a message. */
sqlite3_stmt *store_statement(struct store *s, const char *sql);

/* Runs one that gives no rows. STORE_NONE: it changed none. */
enum store_result store_run(struct store *s, sqlite3_stmt *stmt);

/* What an error of SQLite means; it is said. */
enum store_result store_fault(struct store *s, int rc);

void bind_text(sqlite3_stmt *stmt, int at, const char *text);
void bind_json(sqlite3_stmt *stmt, int at, const json_t *value);

/* Columns; the last two are new, NULL: there is none. */
void copy_text(sqlite3_stmt *stmt, int at, char *out, size_t room);
char *own_text(sqlite3_stmt *stmt, int at);
json_t *own_json(sqlite3_stmt *stmt, int at);

/* Is it worth another try, now that there is more room on the disk? */
bool store_makes_room(struct store *s, enum store_result result);

/* Within a transaction: a change of whatever has states, by its id. */
enum store_result store_add_change(struct store *s, const char *id, int64_t at_us, const char *state,
				   const char *reason);

#define ROW_COLUMNS                                                                                               \
	"seq,id,state,reason,message,created_us,started_us,ended_us,deadline_us,exit_code,spec,usage,policy_sha," \
	"ending,deleting,cleanup_tries,cleanup_at_us,cleanup_error"

/* False with a message: it is none that this build knows. To be freed in both cases. */
bool row_read(sqlite3_stmt *stmt, struct row *out);

enum store_result store_each_row(struct store *s, sqlite3_stmt *stmt, store_each *each, void *arg);

/* Within a transaction: the numbers of a sandbox (store_usage.c), and what was answered about one that is deleted. */
enum store_result store_used_add(struct store *s, const struct row *r, int64_t seq);
enum store_result store_used_enter(struct store *s, const struct row *r, int64_t seq);
enum store_result store_empty_answers(struct store *s, const char *id);

#endif
