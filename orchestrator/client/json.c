/* Small helpers for JSON, and problems (RFC 9457) for people. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/say.h"
#include "orchestrator/client/api.h"
#include "orchestrator/client/shown.h"

const char *json_text(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	return text ? text : "";
}

#define DIGITS 15 /* of a real number: those that are the same on both sides */

bool json_print(const json_t *value)
{
	char *text = json_dumps(value, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(DIGITS));
	if (!text)
		errno = ENOMEM;
	bool ok = text && puts(text) >= 0 && fflush(stdout) == 0;
	if (!ok)
		say_stdout();
	free(text);
	return ok;
}

/* The service has its text, and we know its name. */
static void say_error(const char *pointer, const char *detail, const char *policy)
{
	static const char of_policy[] = "policy:";
	const size_t n = sizeof(of_policy) - 1;
	if (policy && !pointer[0] && strncmp(detail, of_policy, n) == 0)
		say("  %s:%s", policy, detail + n);
	else
		say("  %s%s%s", pointer, pointer[0] ? ": " : "", detail);
}

static void say_errors(const json_t *problem, const char *policy)
{
	char pointer[LIMIT_CLIENT_CELL], detail[4 * LIMIT_CLIENT_CELL];
	size_t i;
	const json_t *error;
	json_array_foreach(json_object_get(problem, "errors"), i, error)
	{
		shown(json_text(error, "pointer"), pointer, sizeof(pointer));
		shown(json_text(error, "detail"), detail, sizeof(detail));
		say_error(pointer, detail, policy);
	}
}

static void say_problem(const json_t *problem, const char *about, const char *policy)
{
	char title[LIMIT_CLIENT_CELL], detail[4 * LIMIT_CLIENT_CELL];
	shown(json_text(problem, "title"), title, sizeof(title));
	shown(json_text(problem, "detail"), detail, sizeof(detail));
	say("%s%s%s%s%s", about ? about : "", about ? ": " : "", title, detail[0] ? ": " : "", detail);
	say_errors(problem, policy);
}

void problem_say(struct client *c)
{
	size_t len;
	char *text = api_read_all(c, &len);
	json_t *problem = text ? json_loadb(text, len, 0, NULL) : NULL;
	if (json_text(problem, "title")[0])
		say_problem(problem, c->about, c->policy);
	else if (text)
		say("the service at %s answers with status %d", c->place.name, c->http.head.status);
	json_decref(problem);
	free(text);
}
