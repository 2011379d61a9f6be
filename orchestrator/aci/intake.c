/* What an answer of it means. */
#include "orchestrator/aci/intake.h"

#include <stdio.h>
#include <string.h>

#include "orchestrator/aci/settings.h"
#include "orchestrator/azure/arm.h"

/* A change is checked and its placeholders are printed; then it is taken, and settles or is undone. */
_Static_assert(LIMIT_GATEWAY_CALL_MS > LIMIT_GATEWAY_ASK_MS + LIMIT_GATEWAY_ANSWER_MS,
	       "who asks gives up before the answer");
_Static_assert(LIMIT_GATEWAY_ANSWER_MS > 2 * LIMIT_GATEWAY_CHECK_MS + 2 * LIMIT_GATEWAY_RELOAD_MS &&
		       LIMIT_GATEWAY_ANSWER_MS > 2 * LIMIT_GATEWAY_CHECK_MS + LIMIT_GATEWAY_RELOAD_MS +
							 LIMIT_GATEWAY_SETTLE_MS + LIMIT_GATEWAY_ADMIN_MS,
	       "one change has no time");

json_t *intake_answer(const struct intake_call *c)
{
	return c->attempt.exchange.body ? json_loadb(c->attempt.exchange.body, c->attempt.exchange.len, 0, NULL) : NULL;
}

static void send_it(const struct intake *in, struct intake_call *c)
{
	c->state = INTAKE_SENDS;
	attempt_send(in->web, &c->attempt, in->token, in->ca_file ? in->ca_file : WEB_SYSTEM);
}

void intake_begin(const struct intake *in, struct intake_call *c, const char *method, const char *path, json_t *body,
		  unsigned most)
{
	char *text = body ? json_dumps(body, JSON_COMPACT) : NULL, *url = NULL;
	if (asprintf(&url, "%s%s", in->url, path) < 0)
		url = NULL;
	const bool ok = url && (text || !body);
	*c = (struct intake_call){.state = INTAKE_DONE};
	attempt_begin(&c->attempt, method, url, text, text ? strlen(text) : 0, most);
	c->attempt.call_ms = LIMIT_GATEWAY_CALL_MS;
	json_decref(body);
	if (ok)
		send_it(in, c);
	else
		snprintf(c->why, sizeof(c->why), "no memory");
}

const char *intake_shown(const struct intake *in, const char *text)
{
	struct hidden sent = {0};
	hidden_add(&sent, slice_str(in->token));
	if (in->credential)
		hidden_add(&sent, slice_str(in->credential));
	const bool is_in = hidden_is_in(&sent, text);
	hidden_wipe(&sent);
	return is_in ? ARM_LEFT_OUT : text;
}

/* What only who has set it up can mend; false: it is another trouble. */
static bool say_whose_fault(struct intake_call *c)
{
	const struct exchange *x = &c->attempt.exchange;
	if (x->is_disbelieved)
		snprintf(c->why, sizeof(c->why),
			 "%s: --intake-ca (`intake_ca`) has to name the gateway's CA, and the "
			 "address one of the names in its certificate",
			 x->why);
	else if (x->status == 401)
		snprintf(c->why, sizeof(c->why), "401: " INTAKE_TOKEN " is not the gateway's");
	else if (x->status == 0)
		snprintf(c->why, sizeof(c->why), "%s", x->why);
	return x->status == 401 || x->status == 0;
}

/* Why it was refused, if it says so. */
static void read_problem(const struct intake *in, struct intake_call *c)
{
	if (say_whose_fault(c))
		return;
	json_t *answer = intake_answer(c);
	const char *detail = json_string_value(json_object_get(answer, "detail"));
	char text[300];
	arm_put_text(text, sizeof(text), detail ? intake_shown(in, detail) : NULL);
	snprintf(c->why, sizeof(c->why), "%ld%s%s", c->attempt.exchange.status, text[0] ? ": " : "", text);
	json_decref(answer);
}

static bool is_worth_another(const struct intake_call *c)
{
	return c->attempt.exchange.status == 0 || c->attempt.exchange.status == 429 ||
	       c->attempt.exchange.status >= 500;
}

static void take_answer(const struct intake *in, struct intake_call *c)
{
	if (c->attempt.exchange.status < 200 || c->attempt.exchange.status >= 300)
		read_problem(in, c);
	c->state = is_worth_another(c) && attempt_rest(in->web, &c->attempt) ? INTAKE_RESTS : INTAKE_DONE;
}

void intake_look(const struct intake *in, struct intake_call *c)
{
	if (c->state == INTAKE_RESTS && attempt_is_due(&c->attempt))
		send_it(in, c);
	if (c->state == INTAKE_SENDS && c->attempt.exchange.state == EXCHANGE_ENDED)
		take_answer(in, c);
}

void intake_await(const struct intake *in, struct intake_call *c)
{
	while (c->state != INTAKE_DONE) {
		web_wait(in->web, NULL, 0, LIMIT_ACI_PASS_MS);
		intake_look(in, c);
	}
}

void intake_free(const struct intake *in, struct intake_call *c)
{
	attempt_free(in->web, &c->attempt);
	*c = (struct intake_call){.state = INTAKE_NONE};
}
