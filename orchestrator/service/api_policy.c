/* A new policy for a running sandbox. It is checked beside the old one, takes its place, and cage run is told; what it does not
 * take is put back. That is the sandbox's affair, and goes on to its end when the client has left.
 *
 * From before the new one takes its place until it is stored that it has, policy.old.yaml is there: where it is found when a room
 * is linked again, nobody knows what cage run has heard of, and it is told anew to take the old one. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/say.h"
#include "core/net/loop.h"
#include "orchestrator/service/api.h"
#include "orchestrator/service/check.h"
#include "orchestrator/service/http_private.h"
#include "orchestrator/service/policies.h"
#include "orchestrator/service/sandbox.h"

#define IN_FORCE "policy.yaml"
#define NEW "policy.new.yaml"
#define OLD "policy.old.yaml"
#define NEXT "policy.next" /* a link to the SHA-256 of the new one: whether it was stored can be told by it */

enum reload_state {
	RELOAD_CHECKING,
	RELOAD_TELLING,  /* the new one is in its place, and cage run is told */
	RELOAD_RETURNING /* the old one is, likewise */
};

struct reload {
	struct request *request; /* NULL: its client is gone, or was answered */
	struct sandbox *sandbox;
	struct service *service;
	enum reload_state state;
	struct policy_facts facts;
	struct link_job *job;
	struct event *clock; /* until cage run has answered */
};

struct place_name {
	char path[BACKEND_PATH + 32];
};

static struct place_name place_of(const struct sandbox *b, const char *name)
{
	struct place_name out;
	snprintf(out.path, sizeof(out.path), "%s/%s", b->dir, name);
	return out;
}

static void drop_file(const struct sandbox *b, const char *name)
{
	unlink(place_of(b, name).path);
}

static bool move(const struct sandbox *b, const char *from, const char *to)
{
	return rename(place_of(b, from).path, place_of(b, to).path) == 0;
}

/* ---- ends ---- */

static void on_gone(void *work)
{
	struct reload *l = work;
	l->request = NULL;
}

static struct request *leave(struct reload *l)
{
	struct request *r = l->request;
	if (r)
		r->gone = NULL;
	l->request = NULL;
	return r;
}

void sandbox_drop_reload(struct sandbox *b)
{
	struct reload *l = b->reload;
	if (!l)
		return;
	b->reload = NULL;
	if (l->job)
		job_forget(l->job);
	child_forget(l->service->children, l);
	event_free(l->clock);
	struct request *r = leave(l);
	policy_facts_free(&l->facts);
	free(l);
	if (r)
		answer_problem(r, 409, "it is not running any more");
}

static void refuse(struct reload *l, int status, json_t *errors, const char *detail)
{
	struct sandbox *b = l->sandbox;
	struct request *r = leave(l);
	drop_file(b, NEW);
	sandbox_drop_reload(b);
	if (r)
		answer_refusal(r, status, NULL, errors, detail);
	else
		json_decref(errors);
}

/* ---- the old one again ---- */

/* OLD stays, until it is known to be in force. */
static bool put_back(const struct sandbox *b)
{
	drop_file(b, NEW);
	bool ok = link(place_of(b, OLD).path, place_of(b, NEW).path) == 0 && move(b, NEW, IN_FORCE);
	if (!ok)
		say("%s: its policy can't be put back: %s", b->row.id, strerror(errno));
	drop_file(b, NEW); /* two names of one file: rename() has left both */
	return ok;
}

static void forget_old(const struct sandbox *b)
{
	drop_file(b, OLD);
	drop_file(b, NEXT);
}

static void tell(struct reload *l, enum reload_state state);

/* It was told; if that failed, OLD is there for the next time. */
static void on_returned(struct reload *l, struct job_end end)
{
	struct sandbox *b = l->sandbox;
	if (end.how == JOB_EXIT && end.number == 0)
		forget_old(b);
	else
		say("%s: it was not told to take its old policy again", b->row.id);
	sandbox_drop_reload(b);
}

static void go_back(struct reload *l)
{
	if (put_back(l->sandbox))
		tell(l, RELOAD_RETURNING);
	else
		sandbox_drop_reload(l->sandbox);
}

/* ---- the new one ---- */

static void on_refused(struct reload *l, struct job_end end)
{
	bool is_back = put_back(l->sandbox);
	if (is_back && end.how == JOB_EXIT)
		forget_old(l->sandbox);
	if (!is_back)
		refuse(l, 503, NULL, "it was refused, and the old policy can't be put back in its place");
	else
		refuse(l, end.how == JOB_EXIT ? 422 : 503, NULL, "the sandbox did not take it; the old one stays");
}

static void on_taken(struct reload *l)
{
	struct sandbox *b = l->sandbox;
	enum store_result result = store_set_policy(l->service->store, b->row.id, l->facts.sha);
	struct request *r = leave(l);
	if (result == STORE_OK) {
		memcpy(b->row.policy_sha, l->facts.sha, sizeof(b->row.policy_sha));
		forget_old(b);
		sandbox_drop_reload(b);
	} else {
		go_back(l);
	}
	if (r && result == STORE_OK)
		api_show(r);
	else if (r)
		answer_store(r, result);
}

static void on_told(void *arg, struct job_end end)
{
	struct reload *l = arg;
	l->job = NULL;
	evtimer_del(l->clock);
	if (l->state == RELOAD_RETURNING)
		on_returned(l, end);
	else if (end.how == JOB_EXIT && end.number == 0)
		on_taken(l);
	else
		on_refused(l, end);
}

/* Whether it will take the new one is not known: it is told to take the old one again, after the other. Where it does not answer to
 * that either, OLD stays. */
static void on_late(evutil_socket_t fd, short what, void *arg)
{
	struct reload *l = arg;
	(void)fd, (void)what;
	job_forget(l->job);
	l->job = NULL;
	if (l->state == RELOAD_RETURNING) {
		on_returned(l, (struct job_end){JOB_ERROR, ETIMEDOUT});
		return;
	}
	struct request *r = leave(l);
	go_back(l);
	if (r)
		answer_problem(r, 504, "the sandbox did not answer in time; the old policy is put back");
}

static void tell(struct reload *l, enum reload_state state)
{
	static const struct job_events events = {.done = on_told};
	const struct timeval time = loop_ms(LIMIT_SERVE_RELOAD_MS);
	l->state = state;
	evtimer_add(l->clock, &time);
	l->job = link_begin(l->sandbox->link, FRAME_RELOAD, SLICE_NONE, &events, l);
	if (!l->job)
		on_told(l, (struct job_end){JOB_ERROR, EBUSY});
}

static bool keep_old(const struct reload *l)
{
	const struct sandbox *b = l->sandbox;
	forget_old(b);
	return symlink(l->facts.sha, place_of(b, NEXT).path) == 0 &&
	       link(place_of(b, IN_FORCE).path, place_of(b, OLD).path) == 0;
}

static void put_in_force(struct reload *l)
{
	struct sandbox *b = l->sandbox;
	if (b->phase != PHASE_READY)
		refuse(l, 409, NULL, "it is not running any more");
	else if (keep_old(l) && move(b, NEW, IN_FORCE))
		tell(l, RELOAD_TELLING);
	else {
		int status = errno == ENOSPC ? 507 : 503;
		forget_old(b);
		refuse(l, status, NULL, "the policy can't be written");
	}
}

/* ---- the check ---- */

static void on_checked(void *arg, int status, struct slice said)
{
	struct reload *l = arg;
	json_t *errors = json_array();
	struct verdict v = policy_verdict(status, said, place_of(l->sandbox, NEW).path, errors);
	if (v.status) {
		refuse(l, v.status, errors, v.detail);
		return;
	}
	json_decref(errors);
	put_in_force(l);
}

/* Only the values that it was created with: cage-proxy has no others. */
static void check(struct reload *l)
{
	const struct place_name new = place_of(l->sandbox, NEW);
	const struct config *config = &l->service->config;
	json_t *errors = json_array();
	if (!policy_check(config, new.path, POLICY_GIVEN, &l->facts, errors)) {
		refuse(l, 422, errors, "the policy is not good");
		return;
	}
	const struct policy_trial trial = {.path = new.path,
					   .facts = &l->facts,
					   .secrets = json_object_get(l->sandbox->row.spec, "secrets"),
					   .may_lack = true,
					   .done = on_checked,
					   .arg = l};
	struct verdict v = trial_verdict(policy_try(config, l->service->children, &trial, errors));
	if (v.status)
		refuse(l, v.status, errors, v.detail);
	else
		json_decref(errors);
}

/* ---- the beginning ---- */

static struct reload *reload_new(struct sandbox *b, struct request *r)
{
	struct reload *l = calloc(1, sizeof(*l));
	if (!l)
		return NULL;
	*l = (struct reload){.request = r, .sandbox = b, .service = b->service};
	l->clock = evtimer_new(b->service->base, on_late, l);
	if (!l->clock) {
		free(l);
		return NULL;
	}
	b->reload = l;
	if (r) {
		r->gone = on_gone;
		r->work = l;
	}
	return l;
}

static bool was_stored(const struct sandbox *b)
{
	char sha[65] = "";
	ssize_t n = readlink(place_of(b, NEXT).path, sha, sizeof(sha) - 1);
	return n == (ssize_t)sizeof(sha) - 1 && strcmp(sha, b->row.policy_sha) == 0;
}

void sandbox_settle_policy(struct sandbox *b)
{
	if (b->reload || access(place_of(b, OLD).path, F_OK) != 0)
		return;
	if (was_stored(b)) {
		forget_old(b);
		return;
	}
	struct reload *l = reload_new(b, NULL);
	if (l)
		go_back(l);
}

static char *text_of(struct request *r)
{
	struct slice body = request_body(r);
	char *text = malloc(body.len + 1);
	if (!text)
		return NULL;
	if (body.len > 0)
		memcpy(text, body.ptr, body.len);
	text[body.len] = '\0';
	return text;
}

static void begin(struct sandbox *b, struct request *r, const char *text)
{
	json_t *errors = json_array();
	struct reload *l = text && errors ? reload_new(b, r) : NULL;
	if (!l) {
		answer_problem(r, 503, "no memory");
	} else if (!policy_may_come(text, errors)) {
		refuse(l, 422, json_incref(errors), "the policy can't be used");
	} else if (policy_write(b->dir, NEW, text)) {
		check(l);
	} else {
		refuse(l, errno == ENOSPC ? 507 : 503, NULL, "the policy can't be written");
	}
	json_decref(errors);
}

/* One at a time: both would write the same file. */
void api_policy(struct request *r)
{
	struct sandbox *b = api_ready_sandbox(r);
	if (!b)
		return;
	if (b->reload) {
		answer_problem(r, 409, "it is being given another policy already");
		return;
	}
	if (request_body(r).len > LIMIT_SERVE_POLICY) {
		answer_problem(r, 413, "a policy has at most %zu bytes", (size_t)LIMIT_SERVE_POLICY);
		return;
	}
	char *text = text_of(r);
	begin(b, r, text);
	free(text);
}
