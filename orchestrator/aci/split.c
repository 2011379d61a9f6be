/* The identity of a sandbox at its gateway, from coming to going. */
#include "orchestrator/aci/split.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "core/base/base64.h"
#include "core/base/clock.h"
#include "core/base/say.h"
#include "orchestrator/aci/aci.h"

static void split_enter(struct aci *a, enum split_state next);

/* ---- the beginning and the end ---- */

struct intake split_intake(const struct aci_options *o, struct web *web)
{
	return (struct intake){.web = web, .url = o->intake, .ca_file = o->intake_ca, .token = o->intake_token};
}

/* Letters that stand in a URL as they are. */
static bool make_token(char out[SPLIT_TOKEN])
{
	unsigned char bytes[32];
	char digits[BASE64_DIGITS(sizeof(bytes))];
	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return false;
	base64_write(slice_of(bytes, sizeof(bytes)), digits);
	for (size_t i = 0; i < SPLIT_TOKEN - 1; i++)
		out[i] = digits[i] == '+' ? '-' : digits[i] == '/' ? '_' : digits[i];
	out[SPLIT_TOKEN - 1] = '\0';
	explicit_bzero(bytes, sizeof(bytes));
	explicit_bzero(digits, sizeof(digits));
	return true;
}

bool split_open(struct aci *a)
{
	a->split.intake = split_intake(a->options, &a->arm.web);
	a->split.intake.credential = a->split.token;
	if (make_token(a->split.token))
		return true;
	say("there are no random bytes");
	return false;
}

void split_close(struct aci *a)
{
	intake_free(&a->split.intake, &a->split.call);
	explicit_bzero(a->split.token, sizeof(a->split.token));
}

/* Its group is asked for, or runs. */
static bool is_looked_at(const struct aci *a)
{
	return a->state >= ACI_LOOKS && a->state <= ACI_TELLS;
}

/* ---- the identity ---- */

static json_t *policy_text(const char *path)
{
	static char bytes[LIMIT_POLICY_FILE + 1];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd >= 0 ? read(fd, bytes, sizeof(bytes)) : -1;
	if (fd >= 0)
		close(fd);
	json_t *text = n > 0 && (size_t)n <= LIMIT_POLICY_FILE ? json_stringn(bytes, (size_t)n) : NULL;
	if (!text)
		say("%s: can't be read, is too long, or no text", path);
	return text;
}

static void put(struct aci *a)
{
	char path[LIMIT_ARM_URL];
	const struct run_options *run = &a->options->run;
	json_t *policy = policy_text(run->policy);
	if (!policy) {
		aci_fail(a, "the policy can't be told to the gateway");
		return;
	}
	snprintf(path, sizeof(path), SPLIT_SANDBOXES "/%s", run->sandbox);
	intake_begin(
		&a->split.intake, &a->split.call, "PUT", path,
		json_pack("{s:s, s:s, s:o}", "token", a->split.token, "owner", a->options->state, "policy", policy),
		LIMIT_ARM_TRIES);
}

/* Of hex digits and one '-'. */
static bool is_cursor(const struct split *s, const char *text)
{
	const size_t n = text ? strlen(text) : 0;
	return n > 0 && n < sizeof(s->cursor) && strspn(text, "0123456789abcdef-") == n;
}

/* False: this is none, and the one before stays. */
static bool set_cursor(struct split *s, const char *text)
{
	if (is_cursor(s, text))
		snprintf(s->cursor, sizeof(s->cursor), "%s", text);
	return is_cursor(s, text);
}

/* Its lines begin there; but one that the same gateway has forgotten had some before. What another one has written, that was not looked at,
 * nobody has any more. */
static void take_beginning(struct split *s, const json_t *answer)
{
	const char *at = json_string_value(json_object_get(answer, "log"));
	const size_t instance = strcspn(s->cursor, "-");
	const bool is_first = s->cursor[0] == '\0';
	if (!at || (!is_first && strncmp(s->cursor, at, instance + 1) == 0))
		return;
	if (set_cursor(s, at) && !is_first)
		say("the gateway was started anew: what its log got between the last look at it and its end is lost");
}

static void say_errors(const struct split *s)
{
	size_t i;
	json_t *one, *answer = intake_answer(&s->call);
	json_array_foreach(json_object_get(answer, "errors"), i, one)
	{
		if (json_is_string(one))
			say("%s", intake_shown(&s->intake, json_string_value(one)));
	}
	json_decref(answer);
}

static void take_put(struct aci *a)
{
	struct split *s = &a->split;
	const bool is_first = s->state == SPLIT_COMES;
	if (!intake_is_good(&s->call)) {
		char why[sizeof(s->call.why)];
		memcpy(why, s->call.why, sizeof(why));
		say_errors(s);
		split_hold(a);
		aci_fail(a, "the gateway does not take the sandbox: %s", why);
		return;
	}
	json_t *answer = intake_answer(&s->call);
	take_beginning(s, answer);
	const char *fault = is_first ? told_variables(a, json_object_get(answer, "env")) : NULL;
	json_decref(answer);
	split_enter(a, SPLIT_IDLE);
	if (fault)
		aci_fail(a, "the gateway can't be believed: %s", fault);
	else if (is_first)
		create_begin(a);
}

/* ---- the log ---- */

static void ask_for_log(struct aci *a, unsigned most)
{
	char path[LIMIT_ARM_URL];
	const char *cursor = a->split.cursor;
	snprintf(path, sizeof(path), SPLIT_SANDBOXES "/%s/log%s%s", a->options->run.sandbox, cursor[0] ? "?from=" : "",
		 cursor);
	intake_begin(&a->split.intake, &a->split.call, "GET", path, NULL, most);
}

enum taken {
	TAKEN_ALL,
	TAKEN_MORE, /* and there is more to be had at once */
	TAKEN_NOT,  /* said why: they are to be had by another look */
	TAKEN_NONE  /* nobody has answered, or the sandbox is not known */
};

static enum taken take_log(struct aci *a)
{
	struct split *s = &a->split;
	struct exchange *x = &s->call.attempt.exchange;
	const bool moves = strcmp(s->cursor, x->log_next) != 0;
	if (!intake_is_good(&s->call))
		return TAKEN_NONE;
	if (!is_cursor(s, x->log_next)) {
		say("the gateway does not say where its log goes on");
		return TAKEN_NOT;
	}
	if (x->log_lost[0])
		say("lines of the decision log are lost: the gateway does not have them any more");
	if (!log_keep(a, ACI_PROXY, told_lines(a, x->body, x->len)))
		return TAKEN_NOT;
	set_cursor(s, x->log_next);
	return moves && x->log_more[0] ? TAKEN_MORE : TAKEN_ALL;
}

/* A gateway that was started anew knows nobody. Who is about to go is not told again. */
static void take_look(struct aci *a)
{
	const bool is_forgotten = a->split.call.attempt.exchange.status == 404 && is_looked_at(a);
	if (is_forgotten)
		say("the gateway has forgotten the sandbox: it is told again");
	const bool has_more = take_log(a) == TAKEN_MORE && ++a->split.looks < LIMIT_ACI_MORE;
	split_enter(a, is_forgotten ? SPLIT_PUTS : has_more ? SPLIT_LOGS : SPLIT_IDLE);
}

/* ---- going ---- */

bool split_is_left(const struct intake_call *c)
{
	return intake_is_good(c) || c->attempt.exchange.status == 404 || c->attempt.exchange.status == 409;
}

void split_path(const struct aci_options *o, const char *id, char out[LIMIT_ARM_URL])
{
	snprintf(out, LIMIT_ARM_URL, SPLIT_SANDBOXES "/%s?owner=%s", id, o->state);
}

static void begin_delete(struct aci *a)
{
	char path[LIMIT_ARM_URL];
	split_path(a->options, a->options->run.sandbox, path);
	intake_begin(&a->split.intake, &a->split.call, "DELETE", path, NULL, LIMIT_GATEWAY_LEAVE_TRIES);
}

static void take_delete(struct aci *a)
{
	if (!split_is_left(&a->split.call)) {
		say("the sandbox can't be removed from the gateway: %s", a->split.call.why);
		a->code = EXIT_FAILED;
	}
	split_enter(a, SPLIT_GONE);
	aci_enter(a, ACI_ENDED);
}

/* A gateway that does not know it lets nobody through for it: that is no fault of the run. */
static void lose_rest(struct aci *a, const char *why)
{
	say("the last lines of the decision log are lost, if there were any: %s", why);
	if (a->split.call.attempt.exchange.status != 404)
		a->code = EXIT_FAILED;
	split_enter(a, SPLIT_DELETES);
}

static void take_rest(struct aci *a)
{
	struct split *s = &a->split;
	char why[sizeof(s->call.why)];
	memcpy(why, s->call.why, sizeof(why));
	const enum taken taken = take_log(a);
	s->look_us = taken == TAKEN_NOT ? clock_mono_us() + LIMIT_ACI_LOOK_MS * 1000ull : 0;
	if (taken == TAKEN_ALL)
		split_enter(a, SPLIT_DELETES);
	else if (taken == TAKEN_NONE)
		lose_rest(a, why);
	else if (taken == TAKEN_MORE ? ++s->looks >= LIMIT_ACI_PAGES : ++s->lasts >= LIMIT_ACI_LAST_LOOKS)
		lose_rest(a, taken == TAKEN_MORE ? "there are too many" : "they can't be kept");
	else
		split_enter(a, SPLIT_TELLS);
}

/* ---- states ---- */

static void split_enter(struct aci *a, enum split_state next)
{
	if (!split_may_follow(a->split.state, next))
		abort();
	intake_free(&a->split.intake, &a->split.call);
	a->split.state = next;
	switch (next) {
	case SPLIT_IDLE:
		a->split.looks = 0;
		a->split.look_us = clock_mono_us() + LIMIT_ACI_LOOK_MS * 1000ull;
		return;
	case SPLIT_COMES:
	case SPLIT_PUTS:
		put(a);
		return;
	case SPLIT_LOGS:
		ask_for_log(a, 1); /* there is another look soon */
		return;
	case SPLIT_DELETES:
		begin_delete(a);
		return;
	case SPLIT_TELLS: /* asked for when it is due */
	case SPLIT_NONE:
	case SPLIT_GONE:
	case SPLIT_STATES:
		return;
	}
}

void split_begin(struct aci *a)
{
	aci_enter(a, ACI_REGISTERS);
	split_enter(a, SPLIT_COMES);
}

void split_hold(struct aci *a)
{
	if (a->split.state == SPLIT_COMES)
		split_enter(a, SPLIT_NONE);
	else if (a->split.state == SPLIT_PUTS)
		split_enter(a, SPLIT_IDLE);
}

/* Nobody who was never told of has to be forgotten; but an answer may have been lost. */
void split_leave(struct aci *a)
{
	split_hold(a);
	a->split.looks = 0;
	a->split.look_us = 0;
	split_enter(a, a->split.state == SPLIT_NONE ? SPLIT_DELETES : SPLIT_TELLS);
}

void split_look(struct aci *a)
{
	struct split *s = &a->split;
	if (s->state == SPLIT_IDLE && is_looked_at(a) && clock_mono_us() >= s->look_us)
		split_enter(a, SPLIT_LOGS);
	if (s->state == SPLIT_TELLS && s->call.state == INTAKE_NONE && clock_mono_us() >= s->look_us)
		ask_for_log(a, LIMIT_GATEWAY_LEAVE_TRIES);
	intake_look(&s->intake, &s->call);
	if (s->call.state != INTAKE_DONE)
		return;
	if (s->state == SPLIT_COMES || s->state == SPLIT_PUTS)
		take_put(a);
	else if (s->state == SPLIT_LOGS)
		take_look(a);
	else if (s->state == SPLIT_TELLS)
		take_rest(a);
	else if (s->state == SPLIT_DELETES)
		take_delete(a);
}
