/* One call: what is sent, what its answer means, and when it is sent again. */
#include "orchestrator/azure/arm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/say.h"
#include "orchestrator/azure/json_mend.h"
#include "orchestrator/azure/json_scrub.h"

bool arm_open(struct arm *a, const struct azure_options *o)
{
	const bool is_near = strncmp(o->endpoint, "http://", 7) == 0; /* a stand-in */
	const char *own = is_near ? AZURE_ENDPOINT : o->endpoint;
	*a = (struct arm){.options = o, .token = {.options = o, .resource = o->resource ? o->resource : own}};
	return web_open(&a->web, o->ca_file);
}

void arm_close(struct arm *a)
{
	token_free(&a->token, &a->web);
	hidden_wipe(&a->secrets);
	web_close(&a->web);
}

void arm_path(const struct arm *a, const char *resource, const char *version, char out[LIMIT_ARM_URL])
{
	snprintf(out, LIMIT_ARM_URL, "/subscriptions/%s/resourceGroups/%s/providers/%s?api-version=%s",
		 a->options->subscription, a->options->group, resource, version);
}

int arm_pause(const struct arm_call *c, int most_ms)
{
	return c->state == ARM_RESTS ? attempt_ms_until(c->attempt.again_us, most_ms) : most_ms;
}

/* ---- secrets that were sent, and may come back ---- */

static bool is_secret_key(const char *key)
{
	return strcmp(key, "secureValue") == 0 || strcmp(key, "password") == 0 || strcmp(key, "secret") == 0;
}

static void keep_secrets(struct hidden *h, json_t *value, bool is_secret)
{
	size_t i;
	const char *key;
	json_t *item;
	if (is_secret && json_is_string(value))
		hidden_add(h, slice_of(json_string_value(value), json_string_length(value)));
	json_array_foreach(value, i, item) keep_secrets(h, item, is_secret);
	json_object_foreach(value, key, item) keep_secrets(h, item, is_secret || is_secret_key(key));
}

struct unseen {
	const struct hidden *sent, *tokens;
};

/* False: no memory. */
static bool clean(const void *arg, json_t *text)
{
	const struct unseen *u = arg;
	const char *its = json_string_value(text);
	return (!hidden_is_in(u->sent, its) && !hidden_is_in(u->tokens, its)) ||
	       json_string_set(text, ARM_LEFT_OUT) == 0;
}

void arm_clean(const struct arm *a, struct arm_call *c)
{
	struct hidden tokens = {0};
	if (a->token.text)
		hidden_add(&tokens, slice_str(a->token.text));
	if (a->token.last)
		hidden_add(&tokens, slice_str(a->token.last));
	const bool ok = json_scrub(c->answer, clean, &(struct unseen){&a->secrets, &tokens});
	hidden_wipe(&tokens);
	if (ok)
		return;
	json_decref(c->answer);
	c->answer = NULL;
}

/* ---- its end ---- */

void arm_put_text(char *out, size_t room, const char *text)
{
	size_t n = 0;
	for (; text && text[n] && n + 1 < room; n++)
		out[n] = (unsigned char)text[n] >= 0x20 && (unsigned char)text[n] < 0x7f ? text[n] : '?';
	out[n] = '\0';
}

/* {"error": {"code", "message"}}, and what some services write without the first. */
static void read_error(struct arm_call *c)
{
	const json_t *error = json_object_get(c->answer, "error");
	if (!json_is_object(error))
		error = c->answer;
	arm_put_text(c->code, sizeof(c->code), json_string_value(json_object_get(error, "code")));
	arm_put_text(c->message, sizeof(c->message), json_string_value(json_object_get(error, "message")));
	if (!c->message[0])
		snprintf(c->message, sizeof(c->message), "status %ld", c->status);
}

static void finish(struct arm_call *c, long status, const char *message)
{
	c->state = ARM_DONE;
	c->status = status;
	if (message)
		arm_put_text(c->message, sizeof(c->message), message);
}

/* ---- once more ---- */

static bool is_transitioning(const struct arm_call *c)
{
	return c->status == 409 &&
	       (strstr(c->code, "Transitioning") || strstr(c->code, "Conflict") || strstr(c->message, "transition"));
}

/* Was it surely not obeyed? */
static bool was_refused(const struct arm_call *c)
{
	return c->status == 429 || c->status == 503 || is_transitioning(c);
}

static bool is_worth_another(const struct arm_call *c)
{
	return was_refused(c) || c->status == 0 || c->status == 408 || c->status == 500 || c->status == 502 ||
	       c->status == 504;
}

/* Once for each call: who waits is told for what. That something is still on its way is no trouble. */
static void say_again(const struct arm *a, const struct arm_call *c)
{
	if (a->is_quiet || c->attempt.tries != 1 || is_transitioning(c))
		return;
	if (c->status == 0)
		say("%s: asked again", c->message);
	else
		say("%s answers %ld%s%s: asked again", a->options->endpoint, c->status, c->code[0] ? ", " : "",
		    c->code);
}

static void rest(struct arm *a, struct arm_call *c)
{
	c->state = attempt_rest(&a->web, &c->attempt) ? ARM_RESTS : ARM_DONE;
	if (c->state == ARM_RESTS)
		say_again(a, c);
}

/* Whatever it waits for: a token, an answer, or the next time that it is made. */
static bool is_overdue(const struct arm *a, const struct arm_call *c)
{
	return a->patience_ms > 0 && c->state != ARM_NONE && c->state != ARM_DONE &&
	       clock_mono_us() >= c->attempt.until_us;
}

static void give_up(struct arm *a, struct arm_call *c)
{
	char last[sizeof(c->message)], text[sizeof(c->message)];
	snprintf(last, sizeof(last), "%s", c->message);
	snprintf(text, sizeof(text), "%s has not answered in %u s%s%.300s", a->options->endpoint, a->patience_ms / 1000,
		 last[0] ? ": " : "", last);
	exchange_free(&a->web, &c->attempt.exchange);
	finish(c, 0, text);
}

/* ---- sending ---- */

static void look_for_token(struct arm *a, struct arm_call *c)
{
	token_want(&a->token, &a->web);
	token_look(&a->token, &a->web);
	if (a->token.state == TOKEN_HELD) {
		c->state = ARM_SENDS;
		attempt_send(&a->web, &c->attempt, a->token.text, NULL);
	} else if (a->token.state == TOKEN_FAILED) {
		finish(c, 0, a->token.why);
		rest(a, c);
	} else if (a->token.state == TOKEN_REFUSED) {
		finish(c, 0, a->token.why);
	}
}

/* ---- the answer ---- */

static void take_answer(struct arm *a, struct arm_call *c)
{
	const struct exchange *x = &c->attempt.exchange;
	json_decref(c->answer);
	if (x->body)
		json_mend(x->body, x->len);
	c->answer = x->body ? json_loadb(x->body, x->len, JSON_DECODE_ANY, NULL) : NULL;
	c->code[0] = c->message[0] = '\0';
	finish(c, x->status, x->status ? NULL : x->why);
	if (c->status >= 300) {
		arm_clean(a, c);
		read_error(c);
	}
	if (c->status == 401 && !c->has_lost_token) {
		c->has_lost_token = true;
		token_drop(&a->token);
		exchange_free(&a->web, &c->attempt.exchange);
		c->state = ARM_TOKEN;
	} else if (c->repeat == ARM_REPEATS ? is_worth_another(c) : was_refused(c)) {
		rest(a, c);
	}
}

void arm_look(struct arm *a, struct arm_call *c)
{
	if (c->state == ARM_RESTS && attempt_is_due(&c->attempt))
		c->state = ARM_TOKEN;
	if (c->state == ARM_TOKEN)
		look_for_token(a, c);
	if (c->state == ARM_SENDS && c->attempt.exchange.state == EXCHANGE_ENDED)
		take_answer(a, c);
	if (is_overdue(a, c))
		give_up(a, c);
}

/* ---- from outside ---- */

/* Not a byte of a token goes to somebody else: an address that came in an answer has to lie where the others do. */
static bool make_url(const struct arm *a, const char *where, char **out)
{
	const size_t n = strlen(a->options->endpoint);
	if (where[0] == '/')
		return asprintf(out, "%s%s", a->options->endpoint, where) >= 0 || (*out = NULL);
	*out = strdup(where);
	return *out && strncmp(where, a->options->endpoint, n) == 0 && where[n] == '/';
}

/* body: taken over; NULL with is_wanted: there was no memory for it. */
static void begin(struct arm *a, struct arm_call *c, const char *method, const char *where, char *body, size_t n,
		  bool is_wanted)
{
	char *url = NULL;
	const bool is_ours = make_url(a, where, &url);
	attempt_begin(&c->attempt, method, url, body, n, LIMIT_ARM_TRIES);
	if (a->patience_ms > 0)
		c->attempt.until_us = clock_mono_us() + a->patience_ms * 1000ull;
	c->state = ARM_TOKEN;
	if (!is_ours)
		finish(c, 0, "an address in an answer is not one of this API");
	else if (is_wanted && !body)
		finish(c, 0, "no memory");
}

void arm_begin(struct arm *a, struct arm_call *c, const char *method, const char *where, json_t *body,
	       enum arm_repeat repeat)
{
	char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
	keep_secrets(&a->secrets, body, false);
	*c = (struct arm_call){.repeat = repeat};
	begin(a, c, method, where, text, text ? strlen(text) : 0, body != NULL);
	json_decref(body);
	arm_look(a, c);
}

void arm_begin_bytes(struct arm *a, struct arm_call *c, const char *method, const char *where, struct slice body,
		     const char *coding, enum arm_repeat repeat)
{
	char *copy = malloc(body.len + 1);
	if (copy && body.len > 0)
		memcpy(copy, body.ptr, body.len);
	*c = (struct arm_call){.repeat = repeat};
	begin(a, c, method, where, copy, body.len, true);
	c->attempt.coding = coding;
	arm_look(a, c);
}

void arm_await(struct arm *a, struct arm_call *c)
{
	while (c->state != ARM_DONE) {
		web_wait(&a->web, NULL, 0, arm_pause(c, LIMIT_ARM_LOOK_MS));
		arm_look(a, c);
	}
}

void arm_free(struct arm *a, struct arm_call *c)
{
	attempt_free(&a->web, &c->attempt);
	json_decref(c->answer);
	*c = (struct arm_call){.state = ARM_NONE};
}
