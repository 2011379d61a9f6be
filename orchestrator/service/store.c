/* The database: opening it, the schema, and the rows of sandboxes. */
#include "orchestrator/service/store_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/say.h"

static const char schema[] =
	"CREATE TABLE IF NOT EXISTS sandbox(seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, state TEXT "
	"NOT NULL,"
	" reason TEXT NOT NULL, message TEXT, created_us INTEGER NOT NULL, started_us INTEGER NOT NULL DEFAULT 0,"
	" ended_us INTEGER NOT NULL DEFAULT 0, deadline_us INTEGER NOT NULL, exit_code INTEGER, spec TEXT NOT NULL, "
	"usage TEXT,"
	" policy_sha TEXT NOT NULL DEFAULT '', ending TEXT NOT NULL DEFAULT '', deleting INTEGER NOT NULL DEFAULT 0,"
	" cleanup_tries INTEGER NOT NULL DEFAULT 0, cleanup_at_us INTEGER NOT NULL DEFAULT 0, cleanup_error TEXT,"
	" keep INTEGER NOT NULL);"
	"CREATE INDEX IF NOT EXISTS sandbox_state ON sandbox(state, seq);"
	"CREATE TABLE IF NOT EXISTS label(seq INTEGER NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL,"
	" PRIMARY KEY(name, value, seq)) WITHOUT ROWID;"
	"CREATE TABLE IF NOT EXISTS change(id TEXT NOT NULL, at_us INTEGER NOT NULL, state TEXT NOT NULL, reason TEXT "
	"NOT NULL);"
	"CREATE INDEX IF NOT EXISTS change_id ON change(id);"
	"CREATE TABLE IF NOT EXISTS answer(key TEXT PRIMARY KEY, body_sha TEXT NOT NULL, status INTEGER NOT NULL,"
	" body TEXT NOT NULL, location TEXT, at_us INTEGER NOT NULL) WITHOUT ROWID;"
	"PRAGMA user_version=1;";

/* A sum over all sandboxes reads numbers only. Those that an older build has stored are taken over. */
static const char schema_2[] =
	"CREATE TABLE used(seq INTEGER PRIMARY KEY, created_us INTEGER NOT NULL, state TEXT NOT NULL, wall_s REAL, "
	"cpu_s REAL,"
	" gb_s REAL, egress INTEGER NOT NULL DEFAULT 0, n_allow INTEGER NOT NULL DEFAULT 0, n_flag INTEGER NOT NULL "
	"DEFAULT 0,"
	" n_block INTEGER NOT NULL DEFAULT 0, n_error INTEGER NOT NULL DEFAULT 0, amount REAL, currency TEXT);"
	"INSERT INTO used SELECT "
	"seq,created_us,state,usage->>'$.wall_seconds',usage->>'$.cpu_seconds',usage->>'$.gb_seconds',"
	" coalesce(usage->>'$.egress_bytes',0),coalesce(usage->>'$.decisions.allow',0),coalesce(usage->>'$.decisions."
	"flag',0),"
	" coalesce(usage->>'$.decisions.block',0),coalesce(usage->>'$.decisions.error',0),usage->>'$.cost.amount',"
	" usage->>'$.cost.currency' FROM sandbox;"
	"CREATE INDEX used_state ON used(state, created_us);"
	"CREATE INDEX label_seq ON label(name, seq, value);"
	"CREATE INDEX sandbox_ended ON sandbox(state, ended_us);"
	"ALTER TABLE answer ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;"
	"UPDATE answer SET bytes=length(body);"
	"CREATE INDEX answer_at ON answer(at_us, bytes);"
	"CREATE INDEX answer_location ON answer(location);"
	"PRAGMA user_version=2;";

/* Workflows. Their changes are among those of sandboxes: by the id of one, or that with "/" and the step's. */
static const char schema_3[] =
	"CREATE TABLE workflow(seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, name TEXT NOT NULL,"
	" labels TEXT NOT NULL, state TEXT NOT NULL, reason TEXT NOT NULL, created_us INTEGER NOT NULL,"
	" ended_us INTEGER NOT NULL DEFAULT 0, cancelling TEXT NOT NULL DEFAULT '', deleting INTEGER NOT NULL DEFAULT "
	"0);"
	"CREATE INDEX workflow_state ON workflow(state, ended_us);"
	"CREATE TABLE step(workflow TEXT NOT NULL, n INTEGER NOT NULL, id TEXT NOT NULL, state TEXT NOT NULL,"
	" reason TEXT NOT NULL, message TEXT, sandbox TEXT NOT NULL DEFAULT '', started_us INTEGER NOT NULL DEFAULT 0,"
	" ended_us INTEGER NOT NULL DEFAULT 0, spec TEXT NOT NULL, body TEXT, artifacts TEXT, UNIQUE(workflow, n));"
	"PRAGMA user_version=3;";

enum store_result store_fault(struct store *s, int rc)
{
	if (rc != s->said)
		say("cage.db: %s", sqlite3_errmsg(s->db));
	s->said = rc;
	bool is_full = (rc & 0xff) == SQLITE_FULL || rc == SQLITE_IOERR_WRITE || rc == SQLITE_IOERR_SHMSIZE;
	return is_full ? STORE_FULL : STORE_FAILED;
}

/* ---- a full disk ---- */

void store_on_full(struct store *s, void (*make_room)(void *arg), void *arg)
{
	s->make_room = make_room;
	s->room_arg = arg;
}

/* SQLite's log is as long as it ever was: what is in the file already is cut off. True: it is worth another try. */
bool store_makes_room(struct store *s, enum store_result result)
{
	if (result != STORE_FULL || !s->make_room)
		return false;
	s->make_room(s->room_arg);
	s->unsettled = true;
	store_settle(s);
	return true;
}

static enum store_result run_with_room(struct store *s, sqlite3_stmt *stmt)
{
	enum store_result result = store_run(s, stmt);
	return store_makes_room(s, result) ? store_run(s, stmt) : result;
}

/* ---- opening ---- */

static bool execute(struct store *s, const char *sql)
{
	int rc = sqlite3_exec(s->db, sql, NULL, NULL, NULL);
	if (rc != SQLITE_OK)
		store_fault(s, rc);
	return rc == SQLITE_OK;
}

static int version_of(struct store *s)
{
	sqlite3_stmt *stmt = store_statement(s, "PRAGMA user_version");
	int version = stmt && sqlite3_step(stmt) == SQLITE_ROW ? sqlite3_column_int(stmt, 0) : -1;
	if (stmt)
		sqlite3_reset(stmt);
	return version;
}

static bool make_schema(struct store *s)
{
	int version = version_of(s);
	if (version == 3)
		return true;
	if (version < 0 || version > 3) {
		say("cage.db is of version %d, which this build does not know", version);
		return false;
	}
	return execute(s, "BEGIN IMMEDIATE") && (version > 0 || execute(s, schema)) &&
	       (version > 1 || execute(s, schema_2)) && execute(s, schema_3) && execute(s, "COMMIT");
}

struct store *store_open(const char *path)
{
	struct store *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	if (sqlite3_open_v2(path, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) != SQLITE_OK) {
		say("%s: %s", path, s->db ? sqlite3_errmsg(s->db) : "no memory");
		store_close(&s);
		return NULL;
	}
	sqlite3_extended_result_codes(s->db, 1);
	sqlite3_busy_timeout(s->db, LIMIT_SERVE_BUSY_MS); /* a backup may read at the same time */
	if (!execute(s, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA cache_size=-2000; PRAGMA "
			"secure_delete=ON;") ||
	    !make_schema(s))
		store_close(&s);
	return s;
}

void store_close(struct store **s)
{
	if (!*s)
		return;
	for (size_t i = 0; i < (*s)->n_prepared; i++)
		sqlite3_finalize((*s)->prepared[i].stmt);
	sqlite3_close((*s)->db);
	free(*s);
	*s = NULL;
}

/* ---- statements ---- */

sqlite3_stmt *store_statement(struct store *s, const char *sql)
{
	size_t i = 0;
	while (i < s->n_prepared && s->prepared[i].sql != sql)
		i++;
	if (i == STORE_STATEMENTS) {
		say("cage.db: there are more statements than this build has places for");
		return NULL;
	}
	if (i == s->n_prepared) {
		int rc = sqlite3_prepare_v3(s->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &s->prepared[i].stmt, NULL);
		if (rc != SQLITE_OK) {
			store_fault(s, rc);
			return NULL;
		}
		s->prepared[i].sql = sql;
		s->n_prepared++;
	}
	sqlite3_reset(s->prepared[i].stmt);
	sqlite3_clear_bindings(s->prepared[i].stmt);
	return s->prepared[i].stmt;
}

enum store_result store_run(struct store *s, sqlite3_stmt *stmt)
{
	if (!stmt)
		return STORE_FAILED;
	int rc = sqlite3_step(stmt);
	enum store_result result = rc == SQLITE_DONE ? STORE_OK : store_fault(s, rc);
	if (rc == SQLITE_DONE && sqlite3_get_autocommit(s->db) && !sqlite3_stmt_readonly(stmt))
		s->said = SQLITE_OK; /* it can be written again */
	int changed = sqlite3_changes(s->db);
	sqlite3_reset(stmt);
	return result == STORE_OK && changed == 0 ? STORE_NONE : result;
}

void bind_text(sqlite3_stmt *stmt, int at, const char *text)
{
	if (stmt && text)
		sqlite3_bind_text(stmt, at, text, -1, SQLITE_TRANSIENT);
}

void bind_json(sqlite3_stmt *stmt, int at, const json_t *value)
{
	char *text = value ? json_dumps(value, JSON_COMPACT) : NULL;
	bind_text(stmt, at, text);
	free(text);
}

/* Without rows, and without an outcome but whether it could be done. */
static enum store_result plain(struct store *s, const char *sql)
{
	enum store_result result = store_run(s, store_statement(s, sql));
	return result == STORE_NONE ? STORE_OK : result;
}

enum store_result store_begin(struct store *s)
{
	return plain(s, "BEGIN IMMEDIATE");
}

enum store_result store_commit(struct store *s)
{
	enum store_result result = plain(s, "COMMIT");
	if (result != STORE_OK)
		store_roll_back(s);
	else
		s->said = SQLITE_OK;
	return result;
}

void store_roll_back(struct store *s)
{
	if (!sqlite3_get_autocommit(s->db) && plain(s, "ROLLBACK") != STORE_OK)
		say("cage.db: what was begun can't be undone");
}

/* ---- adding ---- */

enum store_result store_add_change(struct store *s, const char *id, int64_t at_us, const char *state,
				   const char *reason)
{
	sqlite3_stmt *stmt = store_statement(s, "INSERT INTO change(id,at_us,state,reason) VALUES(?,?,?,?)");
	bind_text(stmt, 1, id);
	sqlite3_bind_int64(stmt, 2, at_us);
	bind_text(stmt, 3, state);
	bind_text(stmt, 4, reason);
	return store_run(s, stmt);
}

static enum store_result add_change(struct store *s, const struct row *r, int64_t at_us)
{
	return store_add_change(s, r->id, at_us, state_name(r->state), r->reason);
}

static enum store_result add_labels(struct store *s, const struct row *r, int64_t seq)
{
	const char *name;
	json_t *value;
	enum store_result result = STORE_OK;
	json_object_foreach(json_object_get(r->spec, "labels"), name, value)
	{
		sqlite3_stmt *stmt = store_statement(s, "INSERT INTO label(seq,name,value) VALUES(?,?,?)");
		if (result != STORE_OK)
			break;
		sqlite3_bind_int64(stmt, 1, seq);
		bind_text(stmt, 2, name);
		bind_text(stmt, 3, json_string_value(value));
		result = store_run(s, stmt);
	}
	return result;
}

static enum store_result add_row(struct store *s, const struct row *r)
{
	sqlite3_stmt *stmt =
		store_statement(s, "INSERT INTO sandbox(id,state,reason,created_us,deadline_us,spec,policy_sha,keep)"
				   " VALUES(?,?,?,?,?,?,?,?)");
	bind_text(stmt, 1, r->id);
	bind_text(stmt, 2, state_name(r->state));
	bind_text(stmt, 3, r->reason);
	sqlite3_bind_int64(stmt, 4, r->created_us);
	sqlite3_bind_int64(stmt, 5, r->deadline_us);
	bind_json(stmt, 6, r->spec);
	bind_text(stmt, 7, r->policy_sha);
	sqlite3_bind_int(stmt, 8, json_is_true(json_object_get(r->spec, "keep")));
	return store_run(s, stmt);
}

enum store_result store_add(struct store *s, const struct row *r)
{
	enum store_result result = add_row(s, r);
	const int64_t seq = sqlite3_last_insert_rowid(s->db);
	if (result == STORE_OK)
		result = add_labels(s, r, seq);
	if (result == STORE_OK)
		result = store_used_add(s, r, seq);
	return result == STORE_OK ? add_change(s, r, r->created_us) : result;
}

/* ---- reading ---- */

void copy_text(sqlite3_stmt *stmt, int at, char *out, size_t room)
{
	const unsigned char *text = sqlite3_column_text(stmt, at);
	snprintf(out, room, "%s", text ? (const char *)text : "");
}

char *own_text(sqlite3_stmt *stmt, int at)
{
	const unsigned char *text = sqlite3_column_text(stmt, at);
	return text ? strdup((const char *)text) : NULL;
}

json_t *own_json(sqlite3_stmt *stmt, int at)
{
	const unsigned char *text = sqlite3_column_text(stmt, at);
	return text ? json_loads((const char *)text, 0, NULL) : NULL;
}

bool row_read(sqlite3_stmt *stmt, struct row *out)
{
	char state[16];
	*out = (struct row){.seq = sqlite3_column_int64(stmt, 0)};
	copy_text(stmt, 1, out->id, sizeof(out->id));
	copy_text(stmt, 2, state, sizeof(state));
	bool is_known = state_parse(state, &out->state);
	copy_text(stmt, 3, out->reason, sizeof(out->reason));
	out->message = own_text(stmt, 4);
	out->created_us = sqlite3_column_int64(stmt, 5);
	out->started_us = sqlite3_column_int64(stmt, 6);
	out->ended_us = sqlite3_column_int64(stmt, 7);
	out->deadline_us = sqlite3_column_int64(stmt, 8);
	out->has_exit = sqlite3_column_type(stmt, 9) != SQLITE_NULL;
	out->exit_code = sqlite3_column_int(stmt, 9);
	out->spec = own_json(stmt, 10);
	out->usage = own_json(stmt, 11);
	copy_text(stmt, 12, out->policy_sha, sizeof(out->policy_sha));
	copy_text(stmt, 13, out->ending, sizeof(out->ending));
	out->deleting = sqlite3_column_int(stmt, 14);
	out->cleanup_tries = sqlite3_column_int64(stmt, 15);
	out->cleanup_at_us = sqlite3_column_int64(stmt, 16);
	out->cleanup_error = own_text(stmt, 17);
	if (!is_known)
		say("cage.db: %s has the state \"%s\", which this build does not know", out->id, state);
	return is_known;
}

void row_free(struct row *r)
{
	free(r->message);
	free(r->cleanup_error);
	json_decref(r->spec);
	json_decref(r->usage);
	*r = (struct row){0};
}

enum store_result store_get(struct store *s, const char *id, struct row *out)
{
	sqlite3_stmt *stmt = store_statement(s, "SELECT " ROW_COLUMNS " FROM sandbox WHERE id=?");
	if (!stmt)
		return STORE_FAILED;
	bind_text(stmt, 1, id);
	int rc = sqlite3_step(stmt);
	bool is_good = rc == SQLITE_ROW && row_read(stmt, out);
	enum store_result result = is_good             ? STORE_OK
				   : rc == SQLITE_DONE ? STORE_NONE
				   : rc == SQLITE_ROW  ? STORE_FAILED
						       : store_fault(s, rc);
	sqlite3_reset(stmt);
	if (result == STORE_FAILED)
		row_free(out);
	return result;
}

/* ---- changing ---- */

/* What it is now is part of the statement, so that nobody can be overtaken. */
static enum store_result write_state(struct store *s, const struct row *r, enum state from)
{
	sqlite3_stmt *stmt =
		store_statement(s, "UPDATE sandbox SET state=?,reason=?,message=?,started_us=?,ended_us=?,exit_code=?,"
				   "usage=coalesce(?,usage) WHERE id=? AND state=?");
	bind_text(stmt, 1, state_name(r->state));
	bind_text(stmt, 2, r->reason);
	bind_text(stmt, 3, r->message);
	sqlite3_bind_int64(stmt, 4, r->started_us);
	sqlite3_bind_int64(stmt, 5, r->ended_us);
	if (r->has_exit)
		sqlite3_bind_int(stmt, 6, r->exit_code);
	bind_json(stmt, 7, r->usage);
	bind_text(stmt, 8, r->id);
	bind_text(stmt, 9, state_name(from));
	return store_run(s, stmt);
}

/* What stays of the spec of one that is deleted. */
static json_t *rest_of(const json_t *spec)
{
	static const char *const kept[] = {"backend", "profile",          "tools", "limits", "limits_enforced_by",
					   "rootfs",  "lifetime_seconds", "keep",  "labels"};
	json_t *rest = json_object();
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		if (json_object_get(spec, kept[i]))
			json_object_set(rest, kept[i], json_object_get(spec, kept[i]));
	return rest;
}

static enum store_result empty(struct store *s, const char *id, const json_t *spec)
{
	json_t *rest = rest_of(spec);
	sqlite3_stmt *stmt = rest ? store_statement(s, "UPDATE sandbox SET spec=?,message=NULL WHERE id=?") : NULL;
	bind_json(stmt, 1, rest);
	bind_text(stmt, 2, id);
	json_decref(rest);
	enum store_result result = store_run(s, stmt);
	return result == STORE_OK ? store_empty_answers(s, id) : result;
}

/* Pages that were overwritten are in SQLite's log too, until it is taken into the file and cut. Nobody waits for a reader. */
void store_settle(struct store *s)
{
	if (!s->unsettled)
		return;
	sqlite3_busy_timeout(s->db, 0);
	s->unsettled = sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL) != SQLITE_OK;
	sqlite3_busy_timeout(s->db, LIMIT_SERVE_BUSY_MS);
}

static enum store_result enter(struct store *s, const struct row *r)
{
	struct row now = {0};
	enum store_result result = store_get(s, r->id, &now);
	if (result == STORE_OK)
		result = state_may_follow(now.state, r->state) ? write_state(s, r, now.state) : STORE_REFUSED;
	if (result == STORE_OK)
		result = store_used_enter(s, r, now.seq);
	if (result == STORE_OK && r->state == DELETED)
		result = empty(s, r->id, now.spec);
	row_free(&now);
	return result == STORE_OK ? add_change(s, r, (int64_t)clock_wall_us()) : result;
}

static enum store_result enter_whole(struct store *s, const struct row *r)
{
	enum store_result result = store_begin(s);
	if (result == STORE_OK)
		result = enter(s, r);
	if (result != STORE_OK) {
		store_roll_back(s);
		return result;
	}
	result = store_commit(s);
	s->unsettled |= result == STORE_OK && r->state == DELETED;
	store_settle(s);
	return result;
}

/* One that is to be started can wait until there is room. */
enum store_result store_enter(struct store *s, const struct row *r)
{
	enum store_result result = enter_whole(s, r);
	return r->state != CREATING && store_makes_room(s, result) ? enter_whole(s, r) : result;
}

enum store_result store_set_ending(struct store *s, const char *id, const char *reason)
{
	sqlite3_stmt *stmt = store_statement(s, "UPDATE sandbox SET ending=? WHERE id=?");
	bind_text(stmt, 1, reason);
	bind_text(stmt, 2, id);
	return run_with_room(s, stmt);
}

enum store_result store_set_deleting(struct store *s, const char *id)
{
	sqlite3_stmt *stmt = store_statement(s, "UPDATE sandbox SET deleting=1 WHERE id=?");
	bind_text(stmt, 1, id);
	return run_with_room(s, stmt);
}

enum store_result store_set_cleanup(struct store *s, const char *id, int64_t tries, int64_t at_us, const char *error)
{
	sqlite3_stmt *stmt =
		store_statement(s, "UPDATE sandbox SET cleanup_tries=?,cleanup_at_us=?,cleanup_error=? WHERE id=?");
	sqlite3_bind_int64(stmt, 1, tries);
	sqlite3_bind_int64(stmt, 2, at_us);
	bind_text(stmt, 3, error);
	bind_text(stmt, 4, id);
	return run_with_room(s, stmt);
}

enum store_result store_set_policy(struct store *s, const char *id, const char *sha)
{
	sqlite3_stmt *stmt = store_statement(s, "UPDATE sandbox SET policy_sha=? WHERE id=?");
	bind_text(stmt, 1, sha);
	bind_text(stmt, 2, id);
	return store_run(s, stmt);
}
