/* Workflows: made, listed, shown, cancelled, deleted, and the bytes of their artifacts. */
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/proc/sandbox_id.h"
#include "orchestrator/service/api.h"
#include "orchestrator/service/times.h"
#include "orchestrator/service/unique.h"
#include "orchestrator/service/workflow.h"
#include "orchestrator/service/workflow_check.h"
#include "orchestrator/service/workflow_files.h"

#define SHA256_BYTES 32
#define DIGEST_TEXT 64 /* "sha-256=:...:" */

static void answer_result(struct request *r, enum store_result result)
{
	if (result == STORE_NONE)
		answer_problem(r, 404, "there is no such workflow");
	else
		answer_store(r, result);
}

/* ---- as JSON ---- */

static void put_text(json_t *out, const char *key, const char *text)
{
	if (text && text[0])
		json_object_set_new(out, key, json_string(text));
}

static json_t *row_json(const struct workflow_row *row)
{
	json_t *out = json_pack("{s:s, s:s, s:s, s:s, s:O}", "id", row->id, "name", row->name, "state",
				workflow_state_name(row->state), "reason", row->reason, "labels", row->labels);
	put_time(out, "created_at", row->created_us);
	put_time(out, "ended_at", row->ended_us);
	return out;
}

static json_t *step_json(struct store *store, const char *workflow, const struct step_row *step)
{
	char id[STEP_HISTORY];
	json_t *needs = json_object_get(step->spec, "needs");
	step_history_id(workflow, step->id, id);
	json_t *history = store_history(store, id);
	json_t *out =
		history ? json_pack("{s:s, s:s, s:s, s:o, s:o, s:o}", "id", step->id, "state",
				    workflow_state_name(step->state), "reason", step->reason, "needs",
				    needs ? json_incref(needs) : json_array(), "artifacts",
				    step->artifacts ? json_incref(step->artifacts) : json_array(), "history", history)
			: NULL;
	if (!out)
		return NULL;
	put_text(out, "message", step->message);
	put_text(out, "sandbox", step->sandbox);
	put_time(out, "started_at", step->started_us);
	put_time(out, "ended_at", step->ended_us);
	return out;
}

/* NULL with a message. */
static json_t *workflow_json(struct store *store, const struct workflow_row *row)
{
	json_t *out = row_json(row), *steps = json_array(), *history = store_history(store, row->id);
	bool ok = out && steps && history;
	for (size_t i = 0; ok && i < row->n_steps; i++) {
		json_t *step = step_json(store, row->id, &row->steps[i]);
		ok = step && json_array_append_new(steps, step) == 0;
	}
	json_object_set(out, "steps", steps);
	json_object_set(out, "history", history);
	json_decref(steps);
	json_decref(history);
	if (ok)
		return out;
	json_decref(out);
	return NULL;
}

/* ---- made ---- */

/* To be freed in both cases. */
static bool fill_row(const json_t *body, struct workflow_row *row)
{
	const char *name = json_string_value(json_object_get(body, "name"));
	json_t *labels = json_object_get(body, "labels"), *step;
	size_t i;
	*row = (struct workflow_row){.state = WORKFLOW_RUNNING, .reason = "created"};
	row->created_us = (int64_t)clock_wall_us();
	row->name = strdup(name ? name : "");
	row->labels = labels ? json_incref(labels) : json_object();
	row->steps = calloc(LIMIT_WORKFLOW_STEPS, sizeof(*row->steps));
	unique_text("wf-", row->id, sizeof(row->id));
	json_array_foreach(json_object_get(body, "steps"), i, step)
	{
		if (!row->steps)
			break;
		struct step_row *to = &row->steps[row->n_steps++];
		*to = (struct step_row){.n = i, .state = WORKFLOW_WAITING, .reason = "created"};
		to->spec = json_incref(step);
		snprintf(to->id, sizeof(to->id), "%s", json_string_value(json_object_get(step, "id")));
	}
	return row->name && row->labels && row->steps;
}

static enum store_result store_all(struct request *r, const struct workflow_row *row, const char *location,
				   json_t **out)
{
	struct store *store = r->service->store;
	enum store_result result = store_begin(store);
	if (result != STORE_OK)
		return result;
	result = store_workflow_add(store, row);
	*out = result == STORE_OK ? workflow_json(store, row) : NULL;
	if (result == STORE_OK)
		result = *out ? idempotency_keep(r->key, 201, *out, location) : STORE_FAILED;
	if (result == STORE_OK)
		return store_commit(store);
	store_roll_back(store);
	return result;
}

/* One that is stored and can't begin for want of memory begins with the next service. */
static void make(struct request *r, const json_t *body)
{
	struct workflow_row row;
	char location[128];
	json_t *answer = NULL;
	bool ok = fill_row(body, &row);
	snprintf(location, sizeof(location), "/api/v1/workflows/%s", row.id);
	enum store_result result = ok ? store_all(r, &row, location, &answer) : STORE_FAILED;
	if (result == STORE_OK) {
		workflow_add(r->service, row.id);
		add_header(r, "Location", location);
		answer_json(r, 201, answer);
	} else {
		json_decref(answer);
		answer_store(r, result);
	}
	workflow_row_free(&row);
}

/* Keys of workflows are no keys of sandboxes. */
static bool begin(struct request *r)
{
	snprintf(r->sandbox, sizeof(r->sandbox), "/workflows");
	return idempotency_begin(r);
}

void api_workflow_create(struct request *r)
{
	if (!begin(r))
		return;
	json_t *body = request_json(r), *errors = body ? json_array() : NULL;
	if (!body)
		return;
	workflow_check(body, errors);
	workflow_check_sandboxes(&r->service->config, body, errors);
	if (json_array_size(errors) > 0)
		answer_refusal(r, 422, NULL, json_incref(errors), "the request is not good");
	else if (!workflows_have_room(r->service))
		answer_problem(r, 429, "too many workflows are under way");
	else if (!reserve_has_room(&r->service->reserve))
		answer_refusal(r, 507, "disk.full", NULL, "the disk of the service is full");
	else
		make(r, body);
	json_decref(errors);
	json_decref(body);
}

/* ---- one ---- */

static void answer_workflow(struct request *r, int status)
{
	struct workflow_row row;
	enum store_result result = store_workflow_get(r->service->store, r->sandbox, &row);
	json_t *answer = result == STORE_OK ? workflow_json(r->service->store, &row) : NULL;
	if (answer)
		answer_json(r, status, answer);
	else
		answer_result(r, result == STORE_OK ? STORE_FAILED : result);
	workflow_row_free(&row);
}

void api_workflow_show(struct request *r)
{
	answer_workflow(r, 200);
}

static void cancel(struct request *r, const char *reason, bool is_deleted)
{
	enum store_result result = workflow_cancel(r->service, r->sandbox, reason, is_deleted);
	if (result == STORE_OK)
		answer_workflow(r, 202);
	else
		answer_result(r, result);
}

void api_workflow_cancel(struct request *r)
{
	cancel(r, "asked", false);
}

void api_workflow_delete(struct request *r)
{
	cancel(r, "deleted", true);
}

/* ---- many ---- */

static void add_row(void *arg, const struct workflow_row *row)
{
	json_t *out = row_json(row);
	json_object_set_new(out, "seq", json_integer(row->seq));
	json_array_append_new(arg, out);
}

void api_workflow_list(struct request *r)
{
	char label[PAGE_LABEL] = "";
	struct store_filter f;
	enum workflow_state state;
	const char *wrong = page_read(r, label, &f);
	if (!wrong && f.state && !workflow_state_parse(f.state, &state))
		wrong = "state: expected running, succeeded, failed or cancelled";
	if (wrong) {
		answer_problem(r, 400, "%s", wrong);
		return;
	}
	size_t limit = (size_t)f.limit++;
	json_t *items = json_array();
	enum store_result result = store_workflow_list(r->service->store, &f, add_row, items);
	answer_page(r, result, items, limit);
}

/* ---- artifacts ---- */

/* As RFC 9530 has it. */
static void add_digest(struct request *r, const char *hex)
{
	unsigned char bytes[SHA256_BYTES] = {0}, text[DIGEST_TEXT];
	char field[DIGEST_TEXT + 16];
	for (size_t i = 0; i < SHA256_BYTES; i++) {
		const char digits[] = {hex[2 * i], hex[2 * i + 1], '\0'};
		bytes[i] = (unsigned char)strtoul(digits, NULL, 16);
	}
	EVP_EncodeBlock(text, bytes, sizeof(bytes));
	snprintf(field, sizeof(field), "sha-256=:%s:", (const char *)text);
	add_header(r, "Repr-Digest", field);
}

static void send_artifact(struct request *r, const struct workflow_row *row, size_t step, size_t n)
{
	const json_t *stored = json_array_get(row->steps[step].artifacts, n);
	const char *sha = json_string_value(json_object_get(stored, "sha256"));
	char path[BACKEND_PATH];
	struct stat st;
	workflow_file(r->service, row->id, step, n, path);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && sha && strlen(sha) == 2 * SHA256_BYTES &&
	    st.st_size == json_integer_value(json_object_get(stored, "size"))) {
		add_digest(r, sha);
		answer_file(r, fd, (size_t)st.st_size);
		return;
	}
	if (fd >= 0)
		close(fd);
	answer_problem(r, 409, "it is not what was stored");
}

static void find_artifact(struct request *r, const struct workflow_row *row)
{
	struct slice path = slice_str(r->path), step = slice_cut(&path, '/');
	for (size_t i = 0; i < row->n_steps && path.len > 0; i++) {
		size_t n = artifact_find(row->steps[i].spec, path.ptr);
		if (!slice_eq(step, slice_str(row->steps[i].id)) || !json_array_get(row->steps[i].artifacts, n))
			continue;
		send_artifact(r, row, i, n);
		return;
	}
	answer_problem(r, 404, "there is no such artifact");
}

void api_workflow_artifact(struct request *r)
{
	struct workflow_row row;
	enum store_result result = store_workflow_get(r->service->store, r->sandbox, &row);
	if (result == STORE_OK)
		find_artifact(r, &row);
	else
		answer_result(r, result);
	workflow_row_free(&row);
}
