/* Creating a sandbox: what is asked for is checked, its directory is made with its policy and files, and then it is stored and
 * queued. A directory without a row is nobody's: whatever fails on the way, the sweeper finds it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "orchestrator/inside/beneath.h"
#include "orchestrator/service/admission.h"
#include "orchestrator/service/api.h"
#include "orchestrator/service/backends.h"
#include "orchestrator/service/create.h"
#include "orchestrator/service/policies.h"
#include "orchestrator/service/sandbox.h"
#include "orchestrator/service/unique.h"
#include "core/base/write_all.h"

struct creation {
	struct request *request; /* NULL: its client is gone */
	struct service *service;
	struct claim claim;
	char dir[BACKEND_PATH];
	json_t *full, *spec, *errors;
	const char *reason; /* of a refusal; NULL: none but its status */
	struct policy_facts facts;
};

static void creation_free(struct creation *c)
{
	claim_drop(c->service, &c->claim);
	child_forget(c->service->children, c);
	json_decref(c->full);
	json_decref(c->spec);
	json_decref(c->errors);
	policy_facts_free(&c->facts);
	free(c);
}

/* Nothing came of it. */
static void give_up(struct creation *c)
{
	struct service *s = c->service;
	char id[STORE_ID];
	bool is_made = c->dir[0];
	const struct backend *backend = backend_of(c->spec);
	memcpy(id, c->claim.id, sizeof(id));
	creation_free(c);
	if (is_made)
		cleanup_drop(s, backend, id);
}

static void on_gone(void *work)
{
	give_up(work);
}

static void refuse(struct creation *c, int status, const char *detail)
{
	struct request *r = c->request;
	const char *reason = status == 507 ? "disk.full" : c->reason;
	json_t *errors = json_array_size(c->errors) ? json_incref(c->errors) : NULL;
	give_up(c);
	answer_refusal(r, status, reason, errors, detail);
}

/* ---- files ---- */

static bool write_file(int root, const char *path, const json_t *text)
{
	struct beneath_file f;
	if (beneath_create(root, path, &f) != 0)
		return false;
	if (write_all(f.fd, json_string_value(text), json_string_length(text)))
		return beneath_keep(&f) == 0;
	beneath_drop(&f);
	return false;
}

/* "a" and "a/b" can't both be files: that is the request's fault. */
static int write_files(struct creation *c)
{
	char path[BACKEND_PATH + 8];
	const char *name;
	json_t *text;
	int status = 0;
	snprintf(path, sizeof(path), "%s/files", c->dir);
	int root = mkdir(path, 0700) == 0 ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	if (root < 0)
		return errno == ENOSPC ? 507 : 503;
	json_object_foreach(json_object_get(c->full, "files"), name, text)
	{
		if (!write_file(root, name, text)) {
			status = errno == ENOSPC || errno == EDQUOT ? 507 : 422;
			break;
		}
	}
	close(root);
	return status;
}

/* ---- the directory ---- */

/* policy: NULL, it is written later. */
static int make_dir(struct creation *c, const char *policy)
{
	char dir[BACKEND_PATH];
	service_dir(c->service, c->claim.id, dir);
	if (mkdir(dir, 0700) != 0)
		return errno == ENOSPC || errno == EDQUOT ? 507 : 503;
	memcpy(c->dir, dir, sizeof(dir));
	if (policy && !policy_write(c->dir, "policy.yaml", policy))
		return errno == ENOSPC || errno == EDQUOT ? 507 : 503;
	return write_files(c);
}

/* ---- stored ---- */

static void fill_row(const struct creation *c, struct row *row)
{
	*row = (struct row){.state = QUEUED, .reason = "created", .created_us = (int64_t)clock_wall_us()};
	row->spec = json_incref(c->spec);
	row->deadline_us = row->created_us + json_integer_value(json_object_get(c->spec, "lifetime_seconds")) * 1000000;
	memcpy(row->id, c->claim.id, sizeof(row->id));
	memcpy(row->policy_sha, c->facts.sha, sizeof(row->policy_sha));
}

static enum store_result store_all(const struct creation *c, const struct row *row, const char *location, json_t **out)
{
	struct store *store = c->service->store;
	enum store_result result = store_begin(store);
	if (result != STORE_OK)
		return result;
	result = store_add(store, row);
	*out = result == STORE_OK ? sandbox_json(c->service, row) : NULL;
	if (result == STORE_OK)
		result = *out ? idempotency_keep(c->request->key, 201, *out, location) : STORE_FAILED;
	if (result == STORE_OK)
		return store_commit(store);
	store_roll_back(store);
	return result;
}

/* It was stored, and can't be queued: its row has to say so before its directory goes. If it can't, the row and the directory
 * stay as they are, and it starts with the next service. */
static void take_back(struct creation *c, struct row *row)
{
	row->state = KILLED;
	row->ended_us = (int64_t)clock_wall_us();
	snprintf(row->reason, sizeof(row->reason), "no.memory");
	if (store_enter(c->service->store, row) == STORE_OK)
		give_up(c);
	else
		creation_free(c);
}

static void finish(struct creation *c)
{
	struct row row;
	char location[128];
	json_t *answer = NULL;
	struct service *s = c->service;
	struct request *r = c->request;
	fill_row(c, &row);
	snprintf(location, sizeof(location), "/api/v1/sandboxes/%s", row.id);
	enum store_result result = store_all(c, &row, location, &answer);
	r->gone = NULL;
	if (result != STORE_OK || !sandbox_add(s, &row)) {
		json_decref(answer);
		if (result == STORE_OK)
			take_back(c, &row);
		else
			give_up(c);
		row_free(&row);
		answer_store(r, result == STORE_OK ? STORE_FAILED : result);
		return;
	}
	creation_free(c);
	add_header(r, "Location", location);
	answer_json(r, 201, answer);
	sandboxes_pump(s);
}

/* ---- the image ---- */

static const char *image_of(const struct creation *c)
{
	return json_string_value(json_object_get(c->spec, "image"));
}

static void on_admitted(void *arg, int status, struct slice said)
{
	struct creation *c = arg;
	struct admission a = admission_told(status, said, image_of(c), c->errors);
	if (!a.status) {
		finish(c);
		return;
	}
	c->request->gone = NULL;
	c->reason = a.reason;
	refuse(c, a.status, a.reason ? "the image may not be run" : "the image could not be checked");
}

/* Its policy is good; if it wants an image, that decides. */
static void admit(struct creation *c)
{
	struct service *s = c->service;
	char path[BACKEND_PATH + 16];
	if (!image_of(c)) {
		finish(c);
		return;
	}
	snprintf(path, sizeof(path), "%s/policy.yaml", c->dir);
	c->request->gone = NULL;
	if (!admission_begin(&s->config, s->children, path, image_of(c), on_admitted, c)) {
		refuse(c, 503, "too many images are being checked");
		return;
	}
	c->request->gone = on_gone;
	c->request->work = c;
}

/* ---- the policy ---- */

static void on_checked(void *arg, int status, struct slice said)
{
	struct creation *c = arg;
	char path[BACKEND_PATH + 16];
	snprintf(path, sizeof(path), "%s/policy.yaml", c->dir);
	struct verdict v = policy_verdict(status, said, path, c->errors);
	if (!v.status) {
		admit(c);
		return;
	}
	c->request->gone = NULL;
	refuse(c, v.status, v.detail);
}

static void start_check(struct creation *c, const char *path)
{
	const struct policy_trial trial = {.path = path,
					   .facts = &c->facts,
					   .secrets = json_object_get(c->spec, "secrets"),
					   .done = on_checked,
					   .arg = c};
	struct verdict v = trial_verdict(policy_try(&c->service->config, c->service->children, &trial, c->errors));
	if (v.status) {
		refuse(c, v.status, v.detail);
		return;
	}
	c->request->gone = on_gone;
	c->request->work = c;
}

static void check_policy(struct creation *c, enum policy_kind kind)
{
	char path[BACKEND_PATH + 16];
	snprintf(path, sizeof(path), "%s/policy.yaml", c->dir);
	if (!policy_check(&c->service->config, path, kind, &c->facts, c->errors)) {
		refuse(c, 422, "the policy is not good");
		return;
	}
	if (kind == POLICY_MADE)
		admit(c);
	else
		start_check(c, path);
}

/* ---- all of it ---- */

/* True: there is a directory; else it was refused. */
static bool has_dir(struct creation *c, const char *policy)
{
	int status = make_dir(c, policy);
	if (status == 422)
		refuse(c, 422, "files: one of them lies below another");
	else if (status)
		refuse(c, status, status == 507 ? "the disk of the service is full" : "its directory can't be made");
	return status == 0;
}

static void on_taken(void *arg, int status, struct slice said)
{
	struct creation *c = arg;
	char path[BACKEND_PATH + 16];
	c->request->gone = NULL;
	snprintf(path, sizeof(path), "%s/policy.yaml", c->dir);
	int wrong = policy_taken(status, said, &c->facts, c->errors);
	if (wrong)
		refuse(c, wrong,
		       wrong == 422   ? "the policy is not good"
		       : wrong == 507 ? "the disk of the service is full"
				      : "the policy could not be checked");
	else
		start_check(c, path);
}

static void make_with_named(struct creation *c, const char *name)
{
	struct service *s = c->service;
	if (!has_dir(c, NULL))
		return;
	if (!policy_take(&s->config, s->children, name, c->dir, on_taken, c)) {
		refuse(c, 503, "too many policies are being checked");
		return;
	}
	c->request->gone = on_gone;
	c->request->work = c;
}

static void make(struct creation *c)
{
	enum policy_kind kind;
	const char *name = json_string_value(json_object_get(json_object_get(c->full, "policy"), "name"));
	if (name) {
		make_with_named(c, name);
		return;
	}
	char *policy = policy_text(&c->service->config, c->full, &kind, c->errors);
	if (!policy) {
		refuse(c, 422, "the policy can't be used");
		return;
	}
	bool is_made = has_dir(c, policy);
	free(policy);
	if (is_made)
		check_policy(c, kind);
}

void api_create(struct request *r)
{
	if (!idempotency_begin(r))
		return;
	json_t *body = request_json(r);
	if (!body)
		return;
	struct creation *c = calloc(1, sizeof(*c));
	if (!c) {
		json_decref(body);
		answer_problem(r, 503, "no memory");
		return;
	}
	*c = (struct creation){.request = r, .service = r->service, .errors = json_array()};
	unique_text("sb-", c->claim.id, sizeof(c->claim.id));
	claim_take(c->service, &c->claim);
	create_check(body, c->errors);
	if (json_array_size(c->errors) == 0)
		c->full = create_with_profile(&c->service->config, body, c->errors);
	if (c->full)
		c->spec = create_spec(&c->service->config, c->full, c->errors);
	json_decref(body);
	if (c->spec)
		json_object_set_new(c->spec, "limits_enforced_by", json_string(backend_limits(backend_of(c->spec))));
	if (!c->spec)
		refuse(c, 422, "the request is not good");
	else if (c->service->queue.n_waiting >= c->service->config.queued)
		refuse(c, 429, "too many sandboxes are waiting");
	else if (!reserve_has_room(&c->service->reserve))
		refuse(c, 507, "the disk of the service is full");
	else
		make(c);
}
