/* Failures, unfolded: Azure nests errors in "details", and now and then a whole answer, as text, in a message. */
#include <string.h>

#include "core/base/say.h"
#include "orchestrator/client/api.h"
#include "orchestrator/client/shown.h"
#include "orchestrator/deploy/deploy.h"

static void say_one(const char *about, const json_t *error, unsigned depth);

/* {"error": {...}}, or what is in it. */
static const json_t *inner(const json_t *error)
{
	const json_t *in = json_object_get(error, "error");
	return json_is_object(in) ? in : error;
}

/* True: the message was an answer itself, and was said. */
static bool say_nested(const char *about, const char *message, unsigned depth)
{
	json_t *nested = message[0] == '{' ? json_loads(message, 0, NULL) : NULL;
	const bool is_one = json_is_object(inner(nested)) && json_text(inner(nested), "message")[0];
	if (is_one)
		say_one(about, inner(nested), depth);
	json_decref(nested);
	return is_one;
}

static void say_one(const char *about, const json_t *error, unsigned depth)
{
	char code[LIMIT_CLIENT_CELL], message[4 * LIMIT_CLIENT_CELL];
	size_t i;
	const json_t *detail;
	if (depth >= LIMIT_DEPLOY_NESTED)
		return;
	if (!say_nested(about, json_text(error, "message"), depth + 1)) {
		shown(json_text(error, "code"), code, sizeof(code));
		shown(json_text(error, "message"), message, sizeof(message));
		say("%s%s: %s%s%s", depth > 0 ? "  " : "", about, code, code[0] && message[0] ? ": " : "", message);
	}
	json_array_foreach(json_object_get(error, "details"), i, detail)
	{
		if (i < LIMIT_DEPLOY_DETAILS)
			say_one(about, detail, depth + 1);
	}
}

void errors_say(const char *about, const json_t *error)
{
	char name[LIMIT_CLIENT_CELL];
	say_one(shown(about, name, sizeof(name)), inner(error), 0);
}

/* True: the answer told it. code and message of a call were taken from it before it was looked through. */
static bool say_answer(const char *about, const json_t *answer)
{
	const json_t *error = inner(answer);
	if (!json_text(error, "message")[0] && !json_text(error, "code")[0])
		return false;
	errors_say(about, error);
	return true;
}

void errors_say_call(const char *about, const struct arm_call *c)
{
	if (say_answer(about, c->answer))
		return;
	if (c->answer)
		say("%s: status %ld", about, c->status);
	else
		say("%s: %s", about, c->message);
}

void errors_say_operation(const char *about, const struct operation *o)
{
	if (!say_answer(about, o->call.answer))
		say("%s: %s%s%s", about, o->code, o->code[0] ? ": " : "", o->message);
}
