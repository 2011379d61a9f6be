/* Rows of workflows and of their steps. */
#include "orchestrator/service/store_workflow.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/say.h"
#include "orchestrator/service/store_private.h"

#define WORKFLOW_COLUMNS "seq,id,name,labels,state,reason,created_us,ended_us,cancelling,deleting"
#define STEP_COLUMNS "n,id,state,reason,message,sandbox,started_us,ended_us,spec,artifacts"

void step_history_id(const char *workflow, const char *step, char out[STEP_HISTORY])
{
	snprintf(out, STEP_HISTORY, "%s/%s", workflow, step);
}

static void step_free(struct step_row *r)
{
	free(r->message);
	json_decref(r->spec);
	json_decref(r->artifacts);
}

void workflow_row_free(struct workflow_row *r)
{
	for (size_t i = 0; i < r->n_steps; i++)
		step_free(&r->steps[i]);
	free(r->steps);
	free(r->name);
	json_decref(r->labels);
	*r = (struct workflow_row){0};
}

/* ---- whole transactions ---- */

/* With what has to be made room for, if the disk is full. */
static enum store_result whole(struct store *s, enum store_result (*work)(struct store *, const void *),
			       const void *with)
{
	enum store_result result = STORE_FAILED;
	for (int i = 0; i < 2; i++) {
		result = store_begin(s);
		if (result == STORE_OK)
			result = work(s, with);
		if (result == STORE_OK)
			result = store_commit(s);
		else
			store_roll_back(s);
		if (!store_makes_room(s, result))
			break;
	}
	return result;
}

/* ---- adding ---- */

/* What is asked for a sandbox may be long, and is read once: it is apart from the rest. */
static void bind_spec(sqlite3_stmt *stmt, int at, const json_t *spec)
{
	json_t *rest = json_copy((json_t *)spec);
	json_object_del(rest, "sandbox");
	bind_json(stmt, at, rest);
	bind_json(stmt, at + 1, json_object_get(spec, "sandbox"));
	json_decref(rest);
}

static enum store_result add_step(struct store *s, const struct workflow_row *w, const struct step_row *r)
{
	char id[STEP_HISTORY];
	sqlite3_stmt *stmt =
		store_statement(s, "INSERT INTO step(workflow,n,id,state,reason,spec,body) VALUES(?,?,?,?,?,?,?)");
	if (!stmt)
		return STORE_FAILED;
	bind_text(stmt, 1, w->id);
	sqlite3_bind_int64(stmt, 2, (int64_t)r->n);
	bind_text(stmt, 3, r->id);
	bind_text(stmt, 4, workflow_state_name(r->state));
	bind_text(stmt, 5, r->reason);
	bind_spec(stmt, 6, r->spec);
	enum store_result result = store_run(s, stmt);
	step_history_id(w->id, r->id, id);
	return result == STORE_OK ? store_add_change(s, id, w->created_us, workflow_state_name(r->state), r->reason)
				  : result;
}

static enum store_result add_workflow(struct store *s, const struct workflow_row *r)
{
	sqlite3_stmt *stmt =
		store_statement(s, "INSERT INTO workflow(id,name,labels,state,reason,created_us) VALUES(?,?,?,?,?,?)");
	if (!stmt)
		return STORE_FAILED;
	bind_text(stmt, 1, r->id);
	bind_text(stmt, 2, r->name);
	bind_json(stmt, 3, r->labels);
	bind_text(stmt, 4, workflow_state_name(r->state));
	bind_text(stmt, 5, r->reason);
	sqlite3_bind_int64(stmt, 6, r->created_us);
	enum store_result result = store_run(s, stmt);
	return result == STORE_OK ? store_add_change(s, r->id, r->created_us, workflow_state_name(r->state), r->reason)
				  : result;
}

enum store_result store_workflow_add(struct store *s, const struct workflow_row *r)
{
	enum store_result result = add_workflow(s, r);
	for (size_t i = 0; i < r->n_steps && result == STORE_OK; i++)
		result = add_step(s, r, &r->steps[i]);
	return result;
}

/* ---- reading ---- */

static bool read_state(sqlite3_stmt *stmt, int at, const char *id, enum workflow_state *out)
{
	char name[16];
	copy_text(stmt, at, name, sizeof(name));
	if (workflow_state_parse(name, out))
		return true;
	say("cage.db: %s has the state \"%s\", which this build does not know", id, name);
	return false;
}

static bool read_workflow(sqlite3_stmt *stmt, struct workflow_row *out)
{
	*out = (struct workflow_row){.seq = sqlite3_column_int64(stmt, 0)};
	copy_text(stmt, 1, out->id, sizeof(out->id));
	out->name = own_text(stmt, 2);
	out->labels = own_json(stmt, 3);
	copy_text(stmt, 5, out->reason, sizeof(out->reason));
	out->created_us = sqlite3_column_int64(stmt, 6);
	out->ended_us = sqlite3_column_int64(stmt, 7);
	copy_text(stmt, 8, out->cancelling, sizeof(out->cancelling));
	out->deleting = sqlite3_column_int(stmt, 9);
	return read_state(stmt, 4, out->id, &out->state);
}

static bool read_step(sqlite3_stmt *stmt, struct step_row *out)
{
	*out = (struct step_row){.n = (size_t)sqlite3_column_int64(stmt, 0)};
	copy_text(stmt, 1, out->id, sizeof(out->id));
	copy_text(stmt, 3, out->reason, sizeof(out->reason));
	out->message = own_text(stmt, 4);
	copy_text(stmt, 5, out->sandbox, sizeof(out->sandbox));
	out->started_us = sqlite3_column_int64(stmt, 6);
	out->ended_us = sqlite3_column_int64(stmt, 7);
	out->spec = own_json(stmt, 8);
	out->artifacts = own_json(stmt, 9);
	return read_state(stmt, 2, out->id, &out->state);
}

static enum store_result each_workflow(struct store *s, sqlite3_stmt *stmt, store_each_workflow *each, void *arg)
{
	int rc = SQLITE_ERROR;
	if (!stmt)
		return STORE_FAILED;
	while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
		struct workflow_row r;
		bool is_good = read_workflow(stmt, &r);
		if (is_good)
			each(arg, &r);
		workflow_row_free(&r);
		if (!is_good)
			break;
	}
	enum store_result result = rc == SQLITE_DONE ? STORE_OK : rc == SQLITE_ROW ? STORE_FAILED : store_fault(s, rc);
	sqlite3_reset(stmt);
	return result;
}

static enum store_result get_steps(struct store *s, struct workflow_row *out)
{
	sqlite3_stmt *stmt = store_statement(s, "SELECT " STEP_COLUMNS " FROM step WHERE workflow=? ORDER BY n");
	out->steps = calloc(LIMIT_WORKFLOW_STEPS, sizeof(*out->steps));
	int rc = SQLITE_ERROR;
	bool is_good = stmt && out->steps;
	if (is_good)
		bind_text(stmt, 1, out->id);
	while (is_good && out->n_steps < LIMIT_WORKFLOW_STEPS && (rc = sqlite3_step(stmt)) == SQLITE_ROW)
		is_good = read_step(stmt, &out->steps[out->n_steps++]);
	if (stmt)
		sqlite3_reset(stmt);
	return !is_good ? STORE_FAILED : rc == SQLITE_DONE || rc == SQLITE_ROW ? STORE_OK : store_fault(s, rc);
}

enum store_result store_step_body(struct store *s, const char *workflow, size_t n, json_t **out)
{
	sqlite3_stmt *stmt = store_statement(s, "SELECT body FROM step WHERE workflow=? AND n=?");
	*out = NULL;
	if (!stmt)
		return STORE_FAILED;
	bind_text(stmt, 1, workflow);
	sqlite3_bind_int64(stmt, 2, (int64_t)n);
	int rc = sqlite3_step(stmt);
	if (rc == SQLITE_ROW)
		*out = own_json(stmt, 0);
	sqlite3_reset(stmt);
	return *out ? STORE_OK : rc == SQLITE_ROW || rc == SQLITE_DONE ? STORE_NONE : store_fault(s, rc);
}

enum store_result store_workflow_get(struct store *s, const char *id, struct workflow_row *out)
{
	sqlite3_stmt *stmt = store_statement(s, "SELECT " WORKFLOW_COLUMNS " FROM workflow WHERE id=?");
	*out = (struct workflow_row){0};
	if (!stmt)
		return STORE_FAILED;
	bind_text(stmt, 1, id);
	int rc = sqlite3_step(stmt);
	bool is_good = rc == SQLITE_ROW && read_workflow(stmt, out);
	sqlite3_reset(stmt);
	enum store_result result = is_good             ? get_steps(s, out)
				   : rc == SQLITE_DONE ? STORE_NONE
				   : rc == SQLITE_ROW  ? STORE_FAILED
						       : store_fault(s, rc);
	if (result != STORE_OK)
		workflow_row_free(out);
	return result;
}

enum store_result store_workflow_list(struct store *s, const struct store_filter *f, store_each_workflow *each,
				      void *arg)
{
	static const char all[] =
		"SELECT " WORKFLOW_COLUMNS
		" FROM workflow WHERE seq<?1 AND (?2 IS NULL OR state=?2) AND (?4 IS NULL OR "
		"EXISTS(SELECT 1 FROM json_each(labels) WHERE key=?4 AND value=?5)) ORDER BY seq DESC LIMIT ?3";
	sqlite3_stmt *stmt = store_statement(s, all);
	if (!stmt)
		return STORE_FAILED;
	sqlite3_bind_int64(stmt, 1, f->before ? f->before : INT64_MAX);
	bind_text(stmt, 2, f->state);
	sqlite3_bind_int64(stmt, 3, f->limit);
	bind_text(stmt, 4, f->label);
	bind_text(stmt, 5, f->value);
	return each_workflow(s, stmt, each, arg);
}

enum store_result store_workflow_open(struct store *s, store_each_workflow *each, void *arg)
{
	return each_workflow(
		s, store_statement(s, "SELECT " WORKFLOW_COLUMNS " FROM workflow WHERE state='running' ORDER BY seq"),
		each, arg);
}

enum store_result store_workflow_due(struct store *s, int64_t ended_before_us, store_each_workflow *each, void *arg)
{
	sqlite3_stmt *stmt = store_statement(s, "SELECT " WORKFLOW_COLUMNS
						" FROM workflow WHERE state IN ('succeeded','failed','cancelled')"
						" AND (deleting OR ended_us<?) ORDER BY ended_us LIMIT 100");
	if (!stmt)
		return STORE_FAILED;
	sqlite3_bind_int64(stmt, 1, ended_before_us);
	return each_workflow(s, stmt, each, arg);
}

/* ---- changing ---- */

/* The state of a row, by a statement that gives it. */
static enum store_result state_now(struct store *s, sqlite3_stmt *stmt, enum workflow_state *out)
{
	int rc = sqlite3_step(stmt);
	bool is_known = rc == SQLITE_ROW && read_state(stmt, 0, "a row", out);
	sqlite3_reset(stmt);
	return is_known            ? STORE_OK
	       : rc == SQLITE_DONE ? STORE_NONE
	       : rc == SQLITE_ROW  ? STORE_FAILED
				   : store_fault(s, rc);
}

static enum store_result enter_workflow(struct store *s, const void *with)
{
	const struct workflow_row *r = with;
	enum workflow_state now = WORKFLOW_SUCCEEDED; /* which nothing may follow */
	sqlite3_stmt *stmt = store_statement(s, "SELECT state FROM workflow WHERE id=?");
	if (!stmt)
		return STORE_FAILED;
	bind_text(stmt, 1, r->id);
	enum store_result result = state_now(s, stmt, &now);
	if (result == STORE_OK && !workflow_state_may_follow(now, r->state))
		result = STORE_REFUSED;
	if (result != STORE_OK)
		return result;
	stmt = store_statement(s, "UPDATE workflow SET state=?,reason=?,ended_us=? WHERE id=?");
	if (!stmt)
		return STORE_FAILED;
	bind_text(stmt, 1, workflow_state_name(r->state));
	bind_text(stmt, 2, r->reason);
	sqlite3_bind_int64(stmt, 3, r->ended_us);
	bind_text(stmt, 4, r->id);
	result = store_run(s, stmt);
	return result == STORE_OK
		       ? store_add_change(s, r->id, (int64_t)clock_wall_us(), workflow_state_name(r->state), r->reason)
		       : result;
}

enum store_result store_workflow_enter(struct store *s, const struct workflow_row *r)
{
	return whole(s, enter_workflow, r);
}

/* No step comes back to WORKFLOW_WAITING: what its sandbox was to be is not needed any more. */
static enum store_result write_step(struct store *s, const char *workflow, const struct step_row *r)
{
	sqlite3_stmt *stmt = store_statement(
		s, "UPDATE step SET state=?,reason=?,message=?,sandbox=?,started_us=?,ended_us=?,artifacts=?,body=NULL "
		   "WHERE workflow=? AND n=?");
	if (!stmt)
		return STORE_FAILED;
	bind_text(stmt, 1, workflow_state_name(r->state));
	bind_text(stmt, 2, r->reason);
	bind_text(stmt, 3, r->message);
	bind_text(stmt, 4, r->sandbox);
	sqlite3_bind_int64(stmt, 5, r->started_us);
	sqlite3_bind_int64(stmt, 6, r->ended_us);
	bind_json(stmt, 7, r->artifacts);
	bind_text(stmt, 8, workflow);
	sqlite3_bind_int64(stmt, 9, (int64_t)r->n);
	return store_run(s, stmt);
}

enum store_result store_step_put(struct store *s, const char *workflow, const struct step_row *r)
{
	char id[STEP_HISTORY];
	enum workflow_state now = WORKFLOW_SUCCEEDED; /* which nothing may follow */
	sqlite3_stmt *stmt = store_statement(s, "SELECT state FROM step WHERE workflow=? AND n=?");
	if (!stmt)
		return STORE_FAILED;
	bind_text(stmt, 1, workflow);
	sqlite3_bind_int64(stmt, 2, (int64_t)r->n);
	enum store_result result = state_now(s, stmt, &now);
	if (result == STORE_OK)
		result = workflow_state_may_follow(now, r->state) ? write_step(s, workflow, r) : STORE_REFUSED;
	step_history_id(workflow, r->id, id);
	return result == STORE_OK
		       ? store_add_change(s, id, (int64_t)clock_wall_us(), workflow_state_name(r->state), r->reason)
		       : result;
}

struct step_of {
	const char *workflow;
	const struct step_row *row;
};

static enum store_result enter_step(struct store *s, const void *with)
{
	const struct step_of *step = with;
	return store_step_put(s, step->workflow, step->row);
}

enum store_result store_step_enter(struct store *s, const char *workflow, const struct step_row *r)
{
	return whole(s, enter_step, &(struct step_of){workflow, r});
}

/* ---- its end ---- */

struct cancel {
	const char *id, *reason;
	bool is_deleted;
};

static enum store_result cancel(struct store *s, const void *with)
{
	const struct cancel *c = with;
	sqlite3_stmt *stmt = store_statement(
		s, "UPDATE workflow SET cancelling=iif(cancelling='' AND state='running',?1,cancelling),deleting=max("
		   "deleting,?2) WHERE id=?3");
	if (!stmt)
		return STORE_FAILED;
	bind_text(stmt, 1, c->reason);
	sqlite3_bind_int(stmt, 2, c->is_deleted);
	bind_text(stmt, 3, c->id);
	return store_run(s, stmt);
}

enum store_result store_workflow_cancel(struct store *s, const char *id, const char *reason, bool is_deleted)
{
	return whole(s, cancel, &(struct cancel){id, reason, is_deleted});
}

static enum store_result by_id(struct store *s, const char *sql, const char *id)
{
	sqlite3_stmt *stmt = store_statement(s, sql);
	bind_text(stmt, 1, id);
	enum store_result result = store_run(s, stmt);
	return result == STORE_NONE ? STORE_OK : result;
}

static enum store_result remove_all(struct store *s, const void *with)
{
	static const char *const all[] = {
		"DELETE FROM workflow WHERE id=?1", "DELETE FROM step WHERE workflow=?1",
		"DELETE FROM change WHERE id=?1 OR (id>?1||'/' AND id<?1||'0')",
		"UPDATE answer SET status=410, body='', bytes=0 WHERE location='/api/v1/workflows/'||?1"};
	enum store_result result = STORE_OK;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]) && result == STORE_OK; i++)
		result = by_id(s, all[i], with);
	return result;
}

enum store_result store_workflow_remove(struct store *s, const char *id)
{
	enum store_result result = whole(s, remove_all, id);
	s->unsettled |= result == STORE_OK;
	store_settle(s);
	return result;
}
