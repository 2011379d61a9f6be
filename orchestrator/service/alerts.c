/* A bounded queue before the webhook: one at a time, a few tries each. What does not fit is only logged. */
#include "orchestrator/service/alerts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "core/base/clock.h"
#include "core/base/say.h"
#include "core/net/loop.h"
#include "orchestrator/service/times.h"

struct alerts {
	struct service *service;
	json_t *waiting[LIMIT_SERVE_ALERTS]; /* the first is on its way */
	size_t n;
	unsigned tries; /* of the first */
	struct event *again;
};

/* ---- the webhook ---- */

static void send_first(struct alerts *a);

static void drop_first(struct alerts *a)
{
	json_decref(a->waiting[0]);
	memmove(a->waiting, a->waiting + 1, --a->n * sizeof(a->waiting[0]));
	a->tries = 0;
	if (a->n > 0)
		send_first(a);
}

static bool was_taken(int status, struct slice said)
{
	json_t *answer = said.len ? json_loadb(said.ptr, said.len, 0, NULL) : NULL;
	json_int_t code = json_integer_value(json_object_get(answer, "status"));
	json_decref(answer);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 && code >= 200 && code < 300;
}

static void on_sent(void *arg, int status, struct slice said)
{
	struct alerts *a = arg;
	if (was_taken(status, said)) {
		drop_first(a);
		return;
	}
	if (++a->tries >= LIMIT_SERVE_ALERT_TRIES) {
		say("the webhook does not take an alert; it is given up");
		drop_first(a);
		return;
	}
	const struct timeval later = loop_ms((unsigned)LIMIT_SERVE_ALERT_RETRY_MS << (a->tries - 1));
	evtimer_add(a->again, &later);
}

static void on_again(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	send_first(arg);
}

static void send_first(struct alerts *a)
{
	char *body = json_dumps(a->waiting[0], JSON_COMPACT);
	json_t *order =
		json_pack("{s:s, s:s, s:{s:s}, s:s, s:i}", "method", "POST", "url", a->service->config.alerts.webhook,
			  "headers", "Content-Type", "application/json", "body", body, "timeout_ms", 10000);
	char *text = order ? json_dumps(order, JSON_COMPACT) : NULL;
	char *argv[] = {"cage-fetch", NULL};
	const struct child_spec spec = {.program = "cage-fetch",
					.argv = argv,
					.input = text ? slice_str(text) : SLICE_NONE,
					.done = on_sent,
					.arg = a};
	if (!text || !child_run(a->service->children, &spec))
		on_sent(a, 1 << 8, SLICE_NONE);
	json_decref(order);
	free(text);
	free(body);
}

/* ---- what is told ---- */

/* alert: taken over. */
static void put(struct service *s, json_t *alert)
{
	struct alerts *a = s->alerts;
	if (a->n == LIMIT_SERVE_ALERTS) {
		say("there are too many alerts for the webhook; this one is not sent");
		json_decref(alert);
		return;
	}
	a->waiting[a->n++] = alert;
	if (a->n == 1)
		send_first(a);
}

static void tell(struct service *s, const struct row *row, const char *kind, json_int_t value)
{
	if (s->config.alerts.log)
		say("alert: %s: %s %lld", row->id, kind, (long long)value);
	if (s->config.alerts.webhook[0])
		put(s, json_pack("{s:s, s:s, s:I, s:s, s:s, s:O, s:o}", "alert", kind, "sandbox", row->id, "value",
				 value, "state", state_name(row->state), "reason", row->reason, "labels",
				 json_object_get(row->spec, "labels"), "at", time_json((int64_t)clock_wall_us())));
}

void alerts_tell(struct service *s, const char *kind, json_int_t value)
{
	if (s->config.alerts.log)
		say("alert: %s %lld", kind, (long long)value);
	if (s->config.alerts.webhook[0])
		put(s, json_pack("{s:s, s:I, s:o}", "alert", kind, "value", value, "at",
				 time_json((int64_t)clock_wall_us())));
}

void alerts_look(struct service *s, const struct row *row)
{
	json_int_t oom = json_integer_value(json_object_get(row->usage, "oom_kills"));
	json_int_t egress = json_integer_value(json_object_get(row->usage, "egress_bytes"));
	json_int_t blocks = json_integer_value(json_object_get(json_object_get(row->usage, "decisions"), "block"));
	if (json_is_false(json_object_get(row->usage, "counted"))) /* whatever it sent, nobody knows */
		tell(s, row, "not_counted", 1);
	if (oom > 0)
		tell(s, row, "oom", oom);
	if (row->state == TIMED_OUT)
		tell(s, row, "timeout", (json_int_t)((row->ended_us - row->created_us) / 1000000));
	if (s->config.alerts.egress && (uint64_t)egress > s->config.alerts.egress)
		tell(s, row, "egress", egress);
	if (s->config.alerts.blocks && (uint64_t)blocks > s->config.alerts.blocks)
		tell(s, row, "blocks", blocks);
}

bool alerts_start(struct service *s)
{
	s->alerts = calloc(1, sizeof(*s->alerts));
	if (!s->alerts)
		return false;
	s->alerts->service = s;
	s->alerts->again = evtimer_new(s->base, on_again, s->alerts);
	return s->alerts->again;
}

void alerts_free(struct service *s)
{
	if (!s->alerts)
		return;
	child_forget(s->children, s->alerts);
	for (size_t i = 0; i < s->alerts->n; i++)
		json_decref(s->alerts->waiting[i]);
	if (s->alerts->again)
		event_free(s->alerts->again);
	free(s->alerts);
	s->alerts = NULL;
}
