/* Lists out of the database: pages, what is due, sums, and answers that are remembered. */
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
		row_read(stmt, &r);
		each(arg, &r);
		row_free(&r);
	}
	sqlite3_reset(stmt);
	return rc == SQLITE_DONE ? STORE_OK : store_fault(s, rc);
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
	json_t *list = json_array();
	bind_text(stmt, 1, id);
	while (stmt && sqlite3_step(stmt) == SQLITE_ROW)
		json_array_append_new(list, json_pack("{s:s, s:o, s:s}", "state", sqlite3_column_text(stmt, 0), "at",
						      time_json(sqlite3_column_int64(stmt, 1)), "reason",
						      sqlite3_column_text(stmt, 2)));
	if (stmt)
		sqlite3_reset(stmt);
	return list;
}

/* ---- sums ---- */

static json_t *sum_row(const char *value, const char *currency)
{
	json_t *of_value = value ? json_string(value) : json_null();
	return json_pack("{s:o, s:i, s:{}, s:f, s:f, s:f, s:i, s:{s:i,s:i,s:i,s:i}, s:{s:f, s:s}}", "value", of_value,
			 "sandboxes", 0, "by_state", "wall_seconds", 0.0, "cpu_seconds", 0.0, "gb_seconds", 0.0,
			 "egress_bytes", 0, "decisions", "allow", 0, "flag", 0, "block", 0, "error", 0, "cost",
			 "amount", 0.0, "currency", currency);
}

static void add_real(json_t *to, const char *key, const json_t *from)
{
	json_object_set_new(
		to, key,
		json_real(json_number_value(json_object_get(to, key)) + json_number_value(json_object_get(from, key))));
}

static void add_integer(json_t *to, const char *key, json_int_t n)
{
	json_object_set_new(to, key, json_integer(json_integer_value(json_object_get(to, key)) + n));
}

static void add_usage(json_t *row, const char *state, const json_t *usage)
{
	static const char *const decisions[] = {"allow", "flag", "block", "error"};
	const json_t *counted = json_object_get(usage, "decisions"), *cost = json_object_get(usage, "cost");
	add_integer(row, "sandboxes", 1);
	add_integer(json_object_get(row, "by_state"), state, 1);
	add_real(row, "wall_seconds", usage);
	add_real(row, "cpu_seconds", usage);
	add_real(row, "gb_seconds", usage);
	add_integer(row, "egress_bytes", json_integer_value(json_object_get(usage, "egress_bytes")));
	for (size_t i = 0; i < 4; i++)
		add_integer(json_object_get(row, "decisions"), decisions[i],
			    json_integer_value(json_object_get(counted, decisions[i])));
	add_real(json_object_get(row, "cost"), "amount", cost);
	if (cost)
		json_object_set(json_object_get(row, "cost"), "currency", json_object_get(cost, "currency"));
}

/* The row of a value, made if it is not there: the last one where rows come in the order of their values. */
static json_t *row_of(json_t *list, const char *value)
{
	json_t *last = json_array_size(list) ? json_array_get(list, json_array_size(list) - 1) : NULL;
	const char *have = json_string_value(json_object_get(last, "value"));
	if (last && ((!have && !value) || (have && value && strcmp(have, value) == 0)))
		return last;
	json_t *row = sum_row(value, "USD");
	json_array_append_new(list, row);
	return row;
}

json_t *store_usage(struct store *s, const char *label, int64_t since_us)
{
	sqlite3_stmt *stmt = store_statement(
		s, "SELECT l.value, s.state, s.usage FROM sandbox s LEFT JOIN label l ON l.seq=s.seq AND l.name=?1"
		   " WHERE s.created_us>=?2 ORDER BY l.value");
	json_t *list = json_array();
	if (!stmt)
		return list;
	bind_text(stmt, 1, label ? label : "");
	sqlite3_bind_int64(stmt, 2, since_us);
	while (sqlite3_step(stmt) == SQLITE_ROW) {
		const char *text = (const char *)sqlite3_column_text(stmt, 2);
		json_t *usage = text ? json_loads(text, 0, NULL) : NULL;
		add_usage(row_of(list, (const char *)sqlite3_column_text(stmt, 0)),
			  (const char *)sqlite3_column_text(stmt, 1), usage);
		json_decref(usage);
	}
	sqlite3_reset(stmt);
	return list;
}

/* ---- answers ---- */

enum store_result store_keep_answer(struct store *s, const char *key, const char *body_sha, const struct answer *a,
				    int64_t now_us)
{
	sqlite3_stmt *stmt = store_statement(
		s, "INSERT OR REPLACE INTO answer(key,body_sha,status,body,location,at_us) VALUES(?,?,?,?,?,?)");
	if (!stmt)
		return STORE_FAILED;
	bind_text(stmt, 1, key);
	bind_text(stmt, 2, body_sha);
	sqlite3_bind_int(stmt, 3, a->status);
	bind_text(stmt, 4, a->body);
	bind_text(stmt, 5, a->location);
	sqlite3_bind_int64(stmt, 6, now_us);
	return store_run(s, stmt);
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

void store_forget_answers(struct store *s, int64_t before_us)
{
	sqlite3_stmt *stmt = store_statement(s, "DELETE FROM answer WHERE at_us<?");
	if (!stmt)
		return;
	sqlite3_bind_int64(stmt, 1, before_us);
	if (store_run(s, stmt) > STORE_REFUSED)
		return; /* it was said, and the next sweep tries again */
}
