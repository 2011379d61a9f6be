/* Waiting: the service is asked again and again, at first often. On a terminal one line says what is waited for. */
#include "orchestrator/client/watch.h"

#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "core/base/say.h"
#include "orchestrator/client/api.h"
#include "orchestrator/client/shown.h"

bool state_is_last(const char *state)
{
	static const char *const last[] = {"succeeded", "failed", "timed_out", "killed", "deleted"};
	for (size_t i = 0; i < sizeof(last) / sizeof(last[0]); i++)
		if (strcmp(state, last[i]) == 0)
			return true;
	return false;
}

json_t *sandbox_get(struct client *c, const char *id)
{
	struct target t;
	target_sandbox(&t, id, NULL);
	struct http_request r = api_request("GET", &t);
	return api_json(c, &r);
}

/* ---- one line that is drawn anew ---- */

static void draw(const json_t *sandbox)
{
	char state[LIMIT_CLIENT_CELL];
	json_t *before = json_object_get(sandbox, "queued_before");
	if (!isatty(STDERR_FILENO))
		return;
	fprintf(stderr, "\r\033[K%s %s", json_text(sandbox, "id"),
		shown(json_text(sandbox, "state"), state, sizeof(state)));
	if (json_is_integer(before))
		fprintf(stderr, " (%lld before it)", (long long)json_integer_value(before));
	fprintf(stderr, " ...");
	fflush(stderr);
}

static void wipe_line(void)
{
	if (isatty(STDERR_FILENO)) {
		fputs("\r\033[K", stderr);
		fflush(stderr);
	}
}

/* ---- waiting ---- */

static bool has_begun(const char *state)
{
	return strcmp(state, "queued") != 0 && strcmp(state, "creating") != 0;
}

static bool is_deleted(const char *state)
{
	return strcmp(state, "deleted") == 0;
}

/* Longer each time. */
static void rest(int *ms)
{
	poll(NULL, 0, *ms);
	*ms = *ms * 3 / 2 < LIMIT_CLIENT_POLL_MOST_MS ? *ms * 3 / 2 : LIMIT_CLIENT_POLL_MOST_MS;
}

/* Each once. */
static void say_waiting(const json_t *sandbox, char last[2 * LIMIT_CLIENT_CELL])
{
	char text[2 * LIMIT_CLIENT_CELL];
	shown(json_text(sandbox, "message"), text, sizeof(text));
	if (has_begun(json_text(sandbox, "state")) || !text[0] || strcmp(text, last) == 0)
		return;
	wipe_line();
	say("%s: %s", json_text(sandbox, "id"), text);
	memcpy(last, text, sizeof(text));
}

static json_t *wait_for(struct client *c, const char *id, bool (*is_there)(const char *state))
{
	json_t *sandbox;
	int ms = LIMIT_CLIENT_POLL_MS;
	char last[2 * LIMIT_CLIENT_CELL] = "";
	while ((sandbox = sandbox_get(c, id)) && !is_there(json_text(sandbox, "state"))) {
		say_waiting(sandbox, last);
		draw(sandbox);
		json_decref(sandbox);
		rest(&ms);
	}
	wipe_line();
	return sandbox;
}

json_t *wait_until_runs(struct client *c, const char *id)
{
	return wait_for(c, id, has_begun);
}

bool wait_until_deleted(struct client *c, const char *id)
{
	json_t *sandbox = wait_for(c, id, is_deleted);
	json_decref(sandbox);
	return sandbox != NULL;
}
