/* HTTP by orchestrator/azure/web.h, with a token of its own. */
#include "orchestrator/aci/intake.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/wipe.h"
#include "orchestrator/azure/arm.h"

_Static_assert(LIMIT_GATEWAY_CALL_MS > LIMIT_GATEWAY_ANSWER_MS, "who asks gives up before the answer");
_Static_assert(LIMIT_GATEWAY_ANSWER_MS > LIMIT_GATEWAY_RELOAD_MS + LIMIT_GATEWAY_SETTLE_MS, "one change has no time");

json_t *intake_answer(const struct intake_call *c)
{
	return c->exchange.body ? json_loadb(c->exchange.body, c->exchange.len, 0, NULL) : NULL;
}

bool intake_has_field(const struct intake_call *c, const char *name)
{
	struct curl_header *found;
	return c->exchange.curl && curl_easy_header(c->exchange.curl, name, 0, CURLH_HEADER, -1, &found) == CURLHE_OK;
}

static void send_it(const struct intake *in, struct intake_call *c)
{
	struct words headers = {0};
	words_add(&headers, "Authorization: Bearer %s", in->token);
	if (c->body)
		words_add(&headers, "Content-Type: application/json");
	const struct web_request r = {.method = c->method,
				      .url = c->url,
				      .headers = &headers,
				      .body = c->body ? slice_str(c->body) : SLICE_NONE,
				      .ca_file = in->ca_file ? in->ca_file : WEB_SYSTEM};
	c->state = INTAKE_SENDS;
	exchange_begin(in->web, &c->exchange, &r);
	words_wipe(&headers);
}

void intake_begin(const struct intake *in, struct intake_call *c, const char *method, const char *path, json_t *body,
		  unsigned most)
{
	*c = (struct intake_call){.method = method, .most = most};
	c->body = body ? json_dumps(body, JSON_COMPACT) : NULL;
	if ((body && !c->body) || asprintf(&c->url, "%s%s", in->url, path) < 0) {
		c->url = NULL;
		c->state = INTAKE_DONE;
		snprintf(c->why, sizeof(c->why), "no memory");
	} else {
		send_it(in, c);
	}
	json_decref(body);
}

/* Why it was refused, if it says so. */
static void read_problem(struct intake_call *c)
{
	json_t *answer = intake_answer(c);
	const char *detail = json_string_value(json_object_get(answer, "detail"));
	char text[300];
	arm_put_text(text, sizeof(text), detail ? detail : c->exchange.why);
	snprintf(c->why, sizeof(c->why), "%ld%s%s", c->exchange.status, text[0] ? ": " : "", text);
	json_decref(answer);
}

static bool is_worth_another(const struct intake_call *c)
{
	return c->exchange.status == 0 || c->exchange.status == 429 || c->exchange.status >= 500;
}

static void take_answer(const struct intake *in, struct intake_call *c)
{
	if (c->exchange.status < 200 || c->exchange.status >= 300)
		read_problem(c);
	if (!is_worth_another(c) || ++c->tries >= c->most) {
		c->state = INTAKE_DONE;
		return;
	}
	c->again_us = clock_mono_us() + arm_wait_ms(c->tries, c->exchange.retry_after) * 1000ull;
	c->state = INTAKE_RESTS;
	exchange_free(in->web, &c->exchange);
}

void intake_look(const struct intake *in, struct intake_call *c)
{
	if (c->state == INTAKE_RESTS && clock_mono_us() >= c->again_us)
		send_it(in, c);
	if (c->state == INTAKE_SENDS && c->exchange.state == EXCHANGE_ENDED)
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
	exchange_free(in->web, &c->exchange);
	free(c->url);
	wipe_free(c->body); /* it may have a token */
	*c = (struct intake_call){.state = INTAKE_NONE};
}
