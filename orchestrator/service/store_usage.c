/* What was used: a row of numbers for each sandbox, apart from its record, so that sums over many are quick and outlive it. */
#include <string.h>

#include "orchestrator/service/store_private.h"

/* ---- written ---- */

enum store_result store_used_add(struct store *s, const struct row *r, int64_t seq)
{
	sqlite3_stmt *stmt = store_statement(s, "INSERT INTO used(seq,created_us,state) VALUES(?,?,?)");
	if (!stmt)
		return STORE_FAILED;
	sqlite3_bind_int64(stmt, 1, seq);
	sqlite3_bind_int64(stmt, 2, r->created_us);
	bind_text(stmt, 3, state_name(r->state));
	return store_run(s, stmt);
}

static const char *const decisions[] = {"allow", "flag", "block", "error"};
#define DECISIONS 4

static void bind_usage(sqlite3_stmt *stmt, const json_t *usage)
{
	static const char *const reals[] = {"wall_seconds", "cpu_seconds", "gb_seconds"};
	const json_t *cost = json_object_get(usage, "cost"), *counted = json_object_get(usage, "decisions");
	int at = 3;
	for (size_t i = 0; i < 3; i++)
		sqlite3_bind_double(stmt, at++, json_number_value(json_object_get(usage, reals[i])));
	sqlite3_bind_int64(stmt, at++, json_integer_value(json_object_get(usage, "egress_bytes")));
	for (size_t i = 0; i < DECISIONS; i++)
		sqlite3_bind_int64(stmt, at++, json_integer_value(json_object_get(counted, decisions[i])));
	sqlite3_bind_double(stmt, at++, json_number_value(json_object_get(cost, "amount")));
	bind_text(stmt, at, json_string_value(json_object_get(cost, "currency")));
}

enum store_result store_used_enter(struct store *s, const struct row *r, int64_t seq)
{
	static const char plain[] = "UPDATE used SET state=?2 WHERE seq=?1";
	static const char measured[] =
		"UPDATE used SET state=?2,wall_s=?3,cpu_s=?4,gb_s=?5,egress=?6,n_allow=?7,n_flag=?8,"
		"n_block=?9,n_error=?10,amount=?11,currency=?12 WHERE seq=?1";
	sqlite3_stmt *stmt = store_statement(s, r->usage ? measured : plain);
	if (!stmt)
		return STORE_FAILED;
	sqlite3_bind_int64(stmt, 1, seq);
	bind_text(stmt, 2, state_name(r->state));
	if (r->usage)
		bind_usage(stmt, r->usage);
	return store_run(s, stmt);
}

/* ---- summed up ---- */

/* By value and by state, in this order. */
static const char sums[] =
	"SELECT l.value, u.state, count(*), total(wall_s), total(cpu_s), total(gb_s), total(amount), sum(egress),"
	" sum(n_allow), sum(n_flag), sum(n_block), sum(n_error), max(currency) FROM used u"
	" LEFT JOIN label l ON l.name=?1 AND l.seq=u.seq WHERE u.created_us>=?2 GROUP BY l.value, u.state ORDER BY "
	"l.value";

static json_t *sum_row(const char *value)
{
	json_t *of_value = value ? json_string(value) : json_null();
	return json_pack("{s:o, s:i, s:{}, s:f, s:f, s:f, s:i, s:{s:i,s:i,s:i,s:i}, s:{s:f, s:s}}", "value", of_value,
			 "sandboxes", 0, "by_state", "wall_seconds", 0.0, "cpu_seconds", 0.0, "gb_seconds", 0.0,
			 "egress_bytes", 0, "decisions", "allow", 0, "flag", 0, "block", 0, "error", 0, "cost",
			 "amount", 0.0, "currency", "USD");
}

static void add_real(json_t *to, const char *key, double n)
{
	json_object_set_new(to, key, json_real(json_number_value(json_object_get(to, key)) + n));
}

static void add_integer(json_t *to, const char *key, int64_t n)
{
	json_object_set_new(to, key, json_integer(json_integer_value(json_object_get(to, key)) + n));
}

static void add_sums(json_t *row, sqlite3_stmt *stmt)
{
	json_t *cost = json_object_get(row, "cost");
	const char *currency = (const char *)sqlite3_column_text(stmt, 12);
	int64_t n = sqlite3_column_int64(stmt, 2);
	add_integer(row, "sandboxes", n);
	add_integer(json_object_get(row, "by_state"), (const char *)sqlite3_column_text(stmt, 1), n);
	add_real(row, "wall_seconds", sqlite3_column_double(stmt, 3));
	add_real(row, "cpu_seconds", sqlite3_column_double(stmt, 4));
	add_real(row, "gb_seconds", sqlite3_column_double(stmt, 5));
	add_real(cost, "amount", sqlite3_column_double(stmt, 6));
	add_integer(row, "egress_bytes", sqlite3_column_int64(stmt, 7));
	for (int i = 0; i < DECISIONS; i++)
		add_integer(json_object_get(row, "decisions"), decisions[i], sqlite3_column_int64(stmt, 8 + i));
	if (currency)
		json_object_set_new(cost, "currency", json_string(currency));
}

/* The row of a value: the last one, or a new one. */
static json_t *row_of(json_t *list, const char *value)
{
	json_t *last = json_array_size(list) ? json_array_get(list, json_array_size(list) - 1) : NULL;
	const char *have = json_string_value(json_object_get(last, "value"));
	if (last && ((!have && !value) || (have && value && strcmp(have, value) == 0)))
		return last;
	json_t *row = sum_row(value);
	json_array_append_new(list, row);
	return row;
}

enum store_result store_usage(struct store *s, const char *label, int64_t since_us, json_t **out)
{
	sqlite3_stmt *stmt = store_statement(s, sums);
	int rc;
	*out = NULL;
	if (!stmt)
		return STORE_FAILED;
	json_t *list = json_array();
	bind_text(stmt, 1, label ? label : "");
	sqlite3_bind_int64(stmt, 2, since_us);
	while ((rc = sqlite3_step(stmt)) == SQLITE_ROW)
		add_sums(row_of(list, (const char *)sqlite3_column_text(stmt, 0)), stmt);
	enum store_result result = rc == SQLITE_DONE ? STORE_OK : store_fault(s, rc);
	sqlite3_reset(stmt);
	if (result == STORE_OK)
		*out = list;
	else
		json_decref(list);
	return result;
}
