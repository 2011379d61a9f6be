/* POST of a sandbox: the client is answered when it is stored. One that leaves before ends it. */
#include <stdio.h>
#include <stdlib.h>

#include "orchestrator/service/api.h"
#include "orchestrator/service/creation.h"

struct asked {
	struct request *request;
	struct creation *creation; /* NULL: it has come to its end */
	json_t *answer;
	char location[128];
};

static struct request *asked_free(struct asked *a)
{
	struct request *r = a->request;
	json_decref(a->answer);
	free(a);
	r->gone = NULL;
	return r;
}

static void on_gone(void *work)
{
	struct asked *a = work;
	creation_abandon(a->creation);
	asked_free(a);
}

static enum store_result keep_answer(void *arg, const struct row *row)
{
	struct asked *a = arg;
	snprintf(a->location, sizeof(a->location), "/api/v1/sandboxes/%s", row->id);
	a->answer = sandbox_json(a->request->service, row);
	return a->answer ? idempotency_keep(a->request->key, 201, a->answer, a->location) : STORE_FAILED;
}

static void on_made(void *arg)
{
	struct asked *a = arg;
	json_t *answer = json_incref(a->answer);
	add_header(a->request, "Location", a->location);
	answer_json(asked_free(a), 201, answer);
}

static void on_refused(void *arg, const struct creation_refusal *why)
{
	answer_refusal(asked_free(arg), why->status, why->reason, json_incref(why->errors), why->detail);
}

void api_create(struct request *r)
{
	if (!idempotency_begin(r))
		return;
	json_t *body = request_json(r);
	if (!body)
		return;
	struct asked *a = calloc(1, sizeof(*a));
	if (!a) {
		json_decref(body);
		answer_problem(r, 503, "no memory");
		return;
	}
	a->request = r;
	const struct creation_order order = {.service = r->service,
					     .body = body,
					     .at = &a->creation,
					     .with = keep_answer,
					     .made = on_made,
					     .refused = on_refused,
					     .arg = a};
	r->gone = on_gone;
	r->work = a;
	creation_begin(&order);
	json_decref(body);
}
