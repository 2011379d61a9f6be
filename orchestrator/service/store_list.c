/* Lists out of the database: pages, what is due, and answers that are remembered. */
#include "orchestrator/service/store_private.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "orchestrator/service/times.h"

enum store_result store_each_row(struct store *s, sqlite3_stmt *stmt, store_each *each, void *arg)
{
	int rc = SQLITE_ERROR;
	if (!stmt)
		return STORE_FAILED;
	while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
		struct row r;
		bool is_good = row_read(stmt, &r);
		if (is_good)
			each(arg, &r);
		row_free(&r);
		if (!is_good)
			break;
	}
	enum store_result result = rc == SQLITE_DONE ? STORE_OK : rc == SQLITE_ROW ? STORE_FAILED : store_fault(s, rc);
	sqlite3_reset(stmt);
	return result;
}

enum store_result store_list(struct store *s, const struct store_filter *f, store_each *each, void *arg)
{
	static const char all[] = "SELECT " ROW_COLUMNS " FROM sandbox WHERE seq<?1 AND (?2 IS NULL OR state=?2)"
				  " ORDER BY seq DESC LIMIT ?3";
	static const char labelled[] = "SELECT " ROW_COLUMNS " FROM sandbox WHERE seq<?1 AND (?2 IS NULL OR state=?2)"
				       " AND seq IN (SELECT seq FROM label WHERE name=?4 AND value=?5)"
				       " ORDER BY seq DESC LIMIT ?3";
	sqlite3_stmt *stmt = store_statement(s, f->label ? labelled : all);
	if (!stmt)
		return STORE_FAILED;
	sqlite3_bind_int64(stmt, 1, f->before ? f->before : INT64_MAX);
	bind_text(stmt, 2, f->state);
	sqlite3_bind_int64(stmt, 3, f->limit);
	if (f->label) {
		bind_text(stmt, 4, f->label);
		bind_text(stmt, 5, f->value);
	}
	return store_each_row(s, stmt, each, arg);
}

enum store_result store_list_open(struct store *s, store_each *each, void *arg)
{
	return store_each_row(s,
			      store_statement(s, "SELECT " ROW_COLUMNS " FROM sandbox WHERE state IN "
						 "('queued','creating','running') ORDER BY seq"),
			      each, arg);
}

enum store_result store_list_due(struct store *s, int64_t now_us, int64_t ended_before_us, store_each *each, void *arg)
{
	sqlite3_stmt *stmt = store_statement(
		s, "SELECT " ROW_COLUMNS " FROM sandbox WHERE state IN ('succeeded','failed','timed_out','killed')"
		   " AND (deleting OR (NOT keep AND ended_us<?1)) AND cleanup_at_us<=?2 LIMIT 100");
	if (!stmt)
		return STORE_FAILED;
	sqlite3_bind_int64(stmt, 1, ended_before_us);
	sqlite3_bind_int64(stmt, 2, now_us);
	return store_each_row(s, stmt, each, arg);
}

json_t *store_history(struct store *s, const char *id)
{
	sqlite3_stmt *stmt = store_statement(s, "SELECT state,at_us,reason FROM change WHERE id=? ORDER BY rowid");
	json_t *list = stmt ? json_array() : NULL;
	int rc = SQLITE_DONE;
	bind_text(stmt, 1, id);
	while (list && (rc = sqlite3_step(stmt)) == SQLITE_ROW)
		json_array_append_new(list, json_pack("{s:s, s:o, s:s}", "state", sqlite3_column_text(stmt, 0), "at",
						      time_json(sqlite3_column_int64(stmt, 1)), "reason",
						      sqlite3_column_text(stmt, 2)));
	if (rc != SQLITE_DONE) {
		store_fault(s, rc);
		json_decref(list);
		list = NULL;
	}
	if (stmt)
		sqlite3_reset(stmt);
	return list;
}

/* ---- what is forgotten ---- */

/* A bounded piece of it, so that nobody waits for it; numbers for `usage` stay longer than the record. */
static enum store_result forget(struct store *s, const char *sql, int64_t before_us)
{
	sqlite3_stmt *stmt = store_statement(s, sql);
	if (!stmt)
		return STORE_FAILED;
	sqlite3_bind_int64(stmt, 1, before_us);
	sqlite3_bind_int64(stmt, 2, LIMIT_SERVE_FORGET);
	enum store_result result = store_run(s, stmt);
	return result == STORE_NONE ? STORE_OK : result;
}

#define OLD_RECORDS "FROM sandbox WHERE state='deleted' AND ended_us<?1 ORDER BY ended_us LIMIT ?2"
#define OLD_NUMBERS "(SELECT seq FROM used WHERE state='deleted' AND created_us<?1 ORDER BY created_us LIMIT ?2)"

void store_forget_old(struct store *s, int64_t record, int64_t used)
{
	if (store_begin(s) != STORE_OK)
		return;
	if (forget(s, "DELETE FROM change WHERE id IN (SELECT id " OLD_RECORDS ")", record) == STORE_OK &&
	    forget(s, "DELETE FROM sandbox WHERE seq IN (SELECT seq " OLD_RECORDS ")", record) == STORE_OK &&
	    forget(s, "DELETE FROM label WHERE seq IN " OLD_NUMBERS, used) == STORE_OK &&
	    forget(s, "DELETE FROM used WHERE seq IN " OLD_NUMBERS, used) == STORE_OK) {
		if (store_commit(s) != STORE_OK)
			return; /* it was said, and the next sweep tries again */
	} else {
		store_roll_back(s);
	}
}

/* ---- answers ---- */

/* Are there more than are remembered? An index has all that is needed for that. */
static enum store_result too_many_answers(struct store *s, bool *out)
{
	sqlite3_stmt *stmt = store_statement(s, "SELECT count(*),total(bytes) FROM answer");
	int rc = stmt ? sqlite3_step(stmt) : SQLITE_ERROR;
	if (rc == SQLITE_ROW)
		*out = sqlite3_column_int64(stmt, 0) > LIMIT_SERVE_ANSWERS ||
		       sqlite3_column_double(stmt, 1) > LIMIT_SERVE_ANSWER_BYTES;
	if (stmt)
		sqlite3_reset(stmt);
	return rc == SQLITE_ROW ? STORE_OK : store_fault(s, rc);
}

/* The oldest go, and a quarter at once, so that this is seldom done. */
static enum store_result bound_answers(struct store *s)
{
	bool too_many = false;
	enum store_result result = too_many_answers(s, &too_many);
	if (result != STORE_OK || !too_many)
		return result;
	sqlite3_stmt *stmt = store_statement(
		s, "DELETE FROM answer WHERE key IN (SELECT key FROM (SELECT key, row_number() OVER w AS n, sum(bytes) "
		   "OVER w"
		   " AS b FROM answer WINDOW w AS (ORDER BY at_us DESC, key)) WHERE n>?1 OR (n>1 AND b>?2))");
	if (!stmt)
		return STORE_FAILED;
	sqlite3_bind_int64(stmt, 1, LIMIT_SERVE_ANSWERS * 3 / 4);
	sqlite3_bind_int64(stmt, 2, LIMIT_SERVE_ANSWER_BYTES * 3 / 4);
	result = store_run(s, stmt);
	return result == STORE_NONE ? STORE_OK : result;
}

/* Called within the transaction of the end. An answer to the create stays as a key, so that it is not done again. */
enum store_result store_empty_answers(struct store *s, const char *id)
{
	sqlite3_stmt *stmt = store_statement(s, "DELETE FROM answer WHERE key>=?1||' ' AND key<?1||'!'");
	bind_text(stmt, 1, id);
	enum store_result result = store_run(s, stmt);
	if (result != STORE_OK && result != STORE_NONE)
		return result;
	stmt = store_statement(
		s, "UPDATE answer SET status=410, body='', bytes=0 WHERE location='/api/v1/sandboxes/'||?1");
	bind_text(stmt, 1, id);
	result = store_run(s, stmt);
	return result == STORE_NONE ? STORE_OK : result;
}

enum store_result store_keep_answer(struct store *s, const char *key, const char *body_sha, const struct answer *a,
				    int64_t now_us)
{
	sqlite3_stmt *stmt = store_statement(
		s,
		"INSERT OR REPLACE INTO answer(key,body_sha,status,body,location,at_us,bytes) VALUES(?,?,?,?,?,?,?)");
	if (!stmt)
		return STORE_FAILED;
	bind_text(stmt, 1, key);
	bind_text(stmt, 2, body_sha);
	sqlite3_bind_int(stmt, 3, a->status);
	bind_text(stmt, 4, a->body);
	bind_text(stmt, 5, a->location);
	sqlite3_bind_int64(stmt, 6, now_us);
	sqlite3_bind_int64(stmt, 7, (int64_t)strlen(a->body));
	enum store_result result = store_run(s, stmt);
	return result == STORE_OK ? bound_answers(s) : result;
}

static char *copy(const unsigned char *text)
{
	return text ? strdup((const char *)text) : NULL;
}

enum store_result store_find_answer(struct store *s, const char *key, const char *body_sha, struct answer *out,
				    bool *same)
{
	sqlite3_stmt *stmt = store_statement(s, "SELECT body_sha,status,body,location FROM answer WHERE key=?");
	if (!stmt)
		return STORE_FAILED;
	bind_text(stmt, 1, key);
	int rc = sqlite3_step(stmt);
	if (rc == SQLITE_ROW) {
		*same = strcmp((const char *)sqlite3_column_text(stmt, 0), body_sha) == 0;
		*out = (struct answer){sqlite3_column_int(stmt, 1), copy(sqlite3_column_text(stmt, 2)),
				       copy(sqlite3_column_text(stmt, 3))};
	}
	sqlite3_reset(stmt);
	return rc == SQLITE_ROW ? STORE_OK : rc == SQLITE_DONE ? STORE_NONE : store_fault(s, rc);
}

void answer_free(struct answer *a)
{
	free(a->body);
	free(a->location);
	*a = (struct answer){0};
}

void store_forget_answer(struct store *s, const char *key)
{
	sqlite3_stmt *stmt = store_statement(s, "DELETE FROM answer WHERE key=?");
	bind_text(stmt, 1, key);
	if (store_run(s, stmt) > STORE_REFUSED)
		return; /* it was said, and the key is answered as one whose outcome is not known */
}

void store_forget_answers(struct store *s, int64_t before_us)
{
	sqlite3_stmt *stmt = store_statement(s, "DELETE FROM answer WHERE at_us<?");
	if (!stmt)
		return;
	sqlite3_bind_int64(stmt, 1, before_us);
	if (store_run(s, stmt) > STORE_REFUSED)
		return; /* it was said, and the next sweep tries again */
}
