/* From a body to a row in the queue. */
#include "orchestrator/service/creation.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/write_all.h"
#include "orchestrator/inside/beneath.h"
#include "orchestrator/service/admission.h"
#include "orchestrator/service/backends.h"
#include "orchestrator/service/create_one.h"
#include "orchestrator/service/create.h"
#include "orchestrator/service/policies.h"
#include "orchestrator/service/sandbox.h"
#include "orchestrator/service/unique.h"
#include "orchestrator/service/warm.h"
#include "orchestrator/service/workflow_files.h"

struct creation {
	struct creation_order order; /* but for its body */
	struct service *service;
	struct claim claim;
	char dir[BACKEND_PATH];
	json_t *full, *spec, *errors;
	const char *reason; /* of a refusal; NULL: none but its status */
	enum policy_kind kind;
	struct policy_facts facts;
};

/* ---- its end ---- */

static void leave(struct creation *c)
{
	claim_drop(c->service, &c->claim);
	child_forget(c->service->children, c);
	json_decref(c->order.more);
	json_decref(c->order.inputs);
	json_decref(c->full);
	json_decref(c->spec);
	json_decref(c->errors);
	policy_facts_free(&c->facts);
	*c->order.at = NULL;
	free(c);
}

/* Nothing came of it. */
void creation_abandon(struct creation *c)
{
	struct service *s = c->service;
	char id[STORE_ID];
	bool is_made = c->dir[0];
	const struct backend *backend = backend_of(c->spec);
	memcpy(id, c->claim.id, sizeof(id));
	leave(c);
	if (is_made)
		cleanup_drop(s, backend, id);
}

static void refuse(struct creation *c, int status, const char *detail)
{
	const struct creation_order order = c->order;
	const char *reason = status == 507 ? "disk.full" : c->reason;
	json_t *errors = json_array_size(c->errors) ? json_incref(c->errors) : NULL;
	creation_abandon(c);
	order.refused(order.arg, &(struct creation_refusal){status, detail, errors, reason});
	json_decref(errors);
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
static int status_of_file(int error)
{
	if (error == ENOSPC || error == EDQUOT)
		return 507;
	return error == ENOTDIR || error == EISDIR || error == EEXIST || error == ENOTEMPTY ? 422 : 503;
}

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
			status = status_of_file(errno);
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

/* ---- stored ---- */

static void fill_row(const struct creation *c, struct row *row)
{
	*row = (struct row){.state = QUEUED, .reason = "created", .created_us = (int64_t)clock_wall_us()};
	row->spec = json_incref(c->spec);
	row->deadline_us = row->created_us + json_integer_value(json_object_get(c->spec, "lifetime_seconds")) * 1000000;
	memcpy(row->id, c->claim.id, sizeof(row->id));
	memcpy(row->policy_sha, c->facts.sha, sizeof(row->policy_sha));
}

static enum store_result store_all(const struct creation *c, const struct row *row)
{
	struct store *store = c->service->store;
	enum store_result result = store_begin(store);
	if (result != STORE_OK)
		return result;
	result = store_add(store, row);
	if (result == STORE_OK)
		result = c->order.with(c->order.arg, row);
	if (result == STORE_OK)
		return store_commit(store);
	store_roll_back(store);
	return result;
}

static void not_stored(struct creation *c, enum store_result result)
{
	if (result == STORE_FULL)
		refuse(c, 507, "the disk of the service is full");
	else
		refuse(c, 503, "the state of the service can't be read or written now");
}

/* It waits before it is stored: what was stored can't fail any more. Nothing starts in between. */
static void finish(struct creation *c)
{
	struct row row;
	struct service *s = c->service;
	const struct creation_order order = c->order;
	warm_give(s, &(struct warm_wish){c->full, c->spec, &c->facts}, &c->claim, c->dir);
	fill_row(c, &row);
	struct sandbox *b = sandbox_add(s, &row);
	row_free(&row);
	if (!b) {
		refuse(c, 503, "no memory");
		return;
	}
	enum store_result result = store_all(c, &b->row);
	if (result != STORE_OK) {
		sandbox_withdraw(b);
		not_stored(c, result);
		return;
	}
	leave(c);
	order.made(order.arg);
	sandboxes_pump(s);
}

static bool queue_is_full(const struct service *s)
{
	return s->queue.n_waiting >= s->config.queued;
}

/* Others may have come while it was checked. */
static void finish_if_it_may_wait(struct creation *c)
{
	if (queue_is_full(c->service))
		refuse(c, 429, "too many sandboxes are waiting");
	else
		finish(c);
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
	c->reason = a.reason;
	if (a.status)
		refuse(c, a.status, a.reason ? "the image may not be run" : "the image could not be checked");
	else
		finish_if_it_may_wait(c);
}

/* Its policy is good; if it wants an image, that decides. */
static void admit(struct creation *c)
{
	struct service *s = c->service;
	char path[BACKEND_PATH + 16];
	snprintf(path, sizeof(path), "%s/policy.yaml", c->dir);
	if (!image_of(c))
		finish_if_it_may_wait(c);
	else if (!admission_begin(&s->config, s->children, path, image_of(c), on_admitted, c))
		refuse(c, 503, "too many images are being checked");
}

/* ---- the policy ---- */

static void on_checked(void *arg, int status, struct slice said)
{
	struct creation *c = arg;
	char path[BACKEND_PATH + 16];
	snprintf(path, sizeof(path), "%s/policy.yaml", c->dir);
	struct verdict v = policy_verdict(status, said, path, c->errors);
	if (v.status)
		refuse(c, v.status, v.detail);
	else
		admit(c);
}

static void start_check(struct creation *c, const char *path)
{
	const struct policy_trial trial = {.path = path,
					   .facts = &c->facts,
					   .secrets = json_object_get(c->spec, "secrets"),
					   .done = on_checked,
					   .arg = c};
	struct verdict v = trial_verdict(policy_try(&c->service->config, c->service->children, &trial, c->errors));
	if (v.status)
		refuse(c, v.status, v.detail);
}

static void check_policy(struct creation *c)
{
	char path[BACKEND_PATH + 16];
	snprintf(path, sizeof(path), "%s/policy.yaml", c->dir);
	if (!policy_check(&c->service->config, path, c->kind, &c->facts, c->errors))
		refuse(c, 422, "the policy is not good");
	else if (c->kind == POLICY_MADE)
		admit(c);
	else
		start_check(c, path);
}

static void on_taken(void *arg, int status, struct slice said)
{
	struct creation *c = arg;
	char path[BACKEND_PATH + 16];
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

static const char *name_of_policy(const struct creation *c)
{
	return json_string_value(json_object_get(json_object_get(c->full, "policy"), "name"));
}

static void take_policy(struct creation *c)
{
	struct service *s = c->service;
	const char *name = name_of_policy(c);
	if (!name)
		check_policy(c);
	else if (!policy_take(&s->config, s->children, name, c->dir, on_taken, c))
		refuse(c, 503, "too many policies are being checked");
}

/* ---- files of others ---- */

static void on_handed(void *arg, int status, struct slice said)
{
	struct creation *c = arg;
	struct verdict v = workflow_files_verdict(status, said);
	if (v.status)
		refuse(c, v.status, v.detail);
	else
		take_policy(c);
}

static void hand_files(struct creation *c)
{
	if (json_array_size(c->order.inputs) == 0)
		take_policy(c);
	else if (!workflow_files_hand(c->service, c->dir, c->order.inputs, on_handed, c))
		refuse(c, 503, "too much is being done");
}

/* ---- all of it ---- */

static void make(struct creation *c)
{
	char *policy = NULL;
	if (!name_of_policy(c)) {
		policy = policy_text(&c->service->config, c->full, &c->kind, c->errors);
		if (!policy) {
			refuse(c, 422, "the policy can't be used");
			return;
		}
	}
	bool is_made = has_dir(c, policy);
	free(policy);
	if (is_made)
		hand_files(c);
}

json_t *creation_spec(const struct config *config, const json_t *body, json_t **full, json_t *errors)
{
	json_t *spec = NULL;
	*full = NULL;
	create_check(body, errors);
	if (json_array_size(errors) == 0)
		*full = create_with_profile(config, body, errors);
	if (*full)
		spec = create_spec(config, *full, errors);
	if (spec && !create_has_command(backend_of(spec), spec, errors)) {
		json_decref(spec);
		spec = NULL;
	}
	if (spec)
		json_object_set_new(spec, "limits_enforced_by", json_string(backend_limits(backend_of(spec))));
	return spec;
}

/* Labels of a workflow come to those of the sandbox, all else takes its place. */
static void add_more(struct creation *c)
{
	json_t *labels = json_object_get(c->spec, "labels");
	if (!c->spec || !c->order.more)
		return;
	json_object_update(labels, json_object_get(c->order.more, "labels"));
	json_object_set(c->order.more, "labels", labels);
	json_object_update(c->spec, c->order.more);
}

static void begin(struct creation *c, const json_t *body)
{
	c->spec = creation_spec(&c->service->config, body, &c->full, c->errors);
	add_more(c);
	if (!c->spec)
		refuse(c, 422, "the request is not good");
	else if (!policy_may_let_in(&c->service->config, body, c->errors))
		refuse(c, 422, "the policy can't be used");
	else if (queue_is_full(c->service))
		refuse(c, 429, "too many sandboxes are waiting");
	else if (!reserve_has_room(&c->service->reserve))
		refuse(c, 507, "the disk of the service is full");
	else
		make(c);
}

bool creation_has_place(const struct service *s)
{
	return !s->stopping && !queue_is_full(s) && reserve_has_room(&s->reserve);
}

void creation_begin(const struct creation_order *o)
{
	struct creation *c = calloc(1, sizeof(*c));
	json_t *errors = json_array();
	if (!c || !errors) {
		free(c);
		json_decref(errors);
		json_decref(o->more);
		json_decref(o->inputs);
		o->refused(o->arg, &(struct creation_refusal){503, "no memory", NULL, NULL});
		return;
	}
	*c = (struct creation){.order = *o, .service = o->service, .errors = errors};
	c->order.body = NULL;
	unique_text("sb-", c->claim.id, sizeof(c->claim.id));
	claim_take(c->service, &c->claim);
	*o->at = c;
	begin(c, o->body);
}
