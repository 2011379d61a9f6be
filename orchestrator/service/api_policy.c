/* A new policy for a running sandbox. It is checked beside the old one, takes its place, and cage run is told; what it does not
 * take is put back. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "orchestrator/service/api.h"
#include "orchestrator/service/check.h"
#include "orchestrator/service/http_private.h"
#include "orchestrator/service/policies.h"
#include "orchestrator/service/sandbox.h"

#define NEW "policy.new.yaml"

struct reload {
	struct request *request;
	struct service *service;
	char id[STORE_ID];
	char dir[BACKEND_PATH];
	char sha[65];
	struct link_job *job;
};

static void reload_free(struct reload *l)
{
	if (l->job)
		job_forget(l->job);
	child_forget(l->service->children, l);
	free(l);
}

static void on_gone(void *work)
{
	reload_free(work);
}

static void path_of(const struct reload *l, const char *name, char out[BACKEND_PATH + 32])
{
	snprintf(out, BACKEND_PATH + 32, "%s/%s", l->dir, name);
}

static void refuse(struct reload *l, int status, json_t *errors, const char *detail)
{
	struct request *r = l->request;
	char path[BACKEND_PATH + 32];
	path_of(l, NEW, path);
	unlink(path);
	r->gone = NULL;
	reload_free(l);
	answer_refusal(r, status, NULL, errors, detail);
}

static bool move(const struct reload *l, const char *from, const char *to)
{
	char source[BACKEND_PATH + 32], target[BACKEND_PATH + 32];
	path_of(l, from, source);
	path_of(l, to, target);
	return rename(source, target) == 0;
}

static void on_reloaded(void *arg, struct job_end end)
{
	struct reload *l = arg;
	struct request *r = l->request;
	l->job = NULL;
	if (end.how != JOB_EXIT || end.number != 0) {
		if (!move(l, "policy.old.yaml", "policy.yaml"))
			refuse(l, 503, NULL, "it was refused, and the old policy can't be put back in its place");
		else
			refuse(l, end.how == JOB_EXIT ? 422 : 503, NULL,
			       "the sandbox did not take it; the old one stays");
		return;
	}
	enum store_result result = store_set_policy(l->service->store, l->id, l->sha);
	r->gone = NULL;
	reload_free(l);
	if (result == STORE_OK)
		api_show(r);
	else
		answer_store(r, result);
}

static bool keep_old(const struct reload *l)
{
	char from[BACKEND_PATH + 32], to[BACKEND_PATH + 32];
	path_of(l, "policy.yaml", from);
	path_of(l, "policy.old.yaml", to);
	unlink(to);
	return link(from, to) == 0;
}

static void put_in_force(struct reload *l)
{
	static const struct job_events events = {.done = on_reloaded};
	struct sandbox *b = sandbox_find(l->service, l->id);
	if (!b || b->phase != PHASE_READY) {
		refuse(l, 409, NULL, "it is not running any more");
		return;
	}
	if (!keep_old(l) || !move(l, NEW, "policy.yaml")) {
		refuse(l, errno == ENOSPC ? 507 : 503, NULL, "the policy can't be written");
		return;
	}
	l->job = link_begin(b->link, FRAME_RELOAD, SLICE_NONE, &events, l);
	if (!l->job)
		on_reloaded(l, (struct job_end){JOB_ERROR, EBUSY});
}

static void on_checked(void *arg, int status, struct slice said)
{
	struct reload *l = arg;
	char path[BACKEND_PATH + 32];
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
		put_in_force(l);
		return;
	}
	json_t *errors = json_array();
	path_of(l, NEW, path);
	policy_read_errors(said, path, errors);
	refuse(l, WIFEXITED(status) && WEXITSTATUS(status) == 2 ? 422 : 503, errors, "the policy is not good");
}

/* The values of its secrets are with cage-proxy, which looks at them again when it reloads. */
static void check(struct reload *l)
{
	char path[BACKEND_PATH + 32];
	json_t *errors = json_array();
	path_of(l, NEW, path);
	if (!policy_check(&l->service->config, path, POLICY_GIVEN, l->sha, errors)) {
		refuse(l, 422, errors, "the policy is not good");
		return;
	}
	json_decref(errors);
	char *argv[] = {"cage-proxy", "--policy", path, "--check", NULL};
	const struct child_spec spec = {
		.program = "cage-proxy", .argv = argv, .hears_errors = true, .done = on_checked, .arg = l};
	if (!child_run(l->service->children, &spec))
		refuse(l, 503, NULL, "too many policies are being checked");
}

/* One at a time: both would write the same file. */
static bool is_under_way(const struct request *r)
{
	for (const struct request *other = r->http->requests; other; other = other->next)
		if (other->gone == on_gone && strcmp(other->sandbox, r->sandbox) == 0)
			return true;
	return false;
}

static char *text_of(struct request *r)
{
	struct slice body = request_body(r);
	char *text = body.len <= MIB(1) ? malloc(body.len + 1) : NULL;
	if (!text)
		return NULL;
	if (body.len > 0)
		memcpy(text, body.ptr, body.len);
	text[body.len] = '\0';
	return text;
}

void api_policy(struct request *r)
{
	struct sandbox *b = api_ready_sandbox(r);
	if (!b)
		return;
	if (is_under_way(r)) {
		answer_problem(r, 409, "it is being given another policy already");
		return;
	}
	char *text = text_of(r);
	struct reload *l = text ? calloc(1, sizeof(*l)) : NULL;
	if (!l) {
		free(text);
		answer_problem(r, 413, "the policy is too large");
		return;
	}
	*l = (struct reload){.request = r, .service = r->service};
	memcpy(l->id, b->row.id, sizeof(l->id));
	memcpy(l->dir, b->dir, sizeof(l->dir));
	r->gone = on_gone;
	r->work = l;
	bool ok = policy_write(l->dir, NEW, text);
	free(text);
	if (ok)
		check(l);
	else
		refuse(l, errno == ENOSPC ? 507 : 503, NULL, "the policy can't be written");
}
