/* cage create: asks for a sandbox, waits until it runs, and follows it where that was asked for. */
#include "orchestrator/client/create.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "core/base/say.h"
#include "orchestrator/client/api.h"
#include "orchestrator/client/shown.h"
#include "orchestrator/client/watch.h"

static json_t *ask(struct client *c, const json_t *body)
{
	struct target t;
	target_sandbox(&t, NULL, NULL);
	return api_make(c, &t, body);
}

/* ---- Ctrl-C ---- */

static char goes_on[2 * LIMIT_CLIENT_CELL]; /* what is said then */

static void on_interrupt(int number)
{
	ssize_t n = write(STDERR_FILENO, goes_on, strlen(goes_on));
	(void)n;
	signal(number, SIG_DFL);
	raise(number);
}

/* It is the service's: who stops waiting for it has not ended it. */
static void tell_if_interrupted(const char *id)
{
	const struct sigaction act = {.sa_handler = on_interrupt};
	snprintf(goes_on, sizeof(goes_on), "cage: %s goes on; cage stop %s ends it\n", id, id);
	sigaction(SIGINT, &act, NULL);
}

/* ---- waiting ---- */

/* On stdout, unless that is for the output of CMD. */
static bool print_id(const struct create *own, const char *id)
{
	if (own->follow)
		say("%s", id);
	else if (puts(id) < 0 || fflush(stdout) != 0) {
		say_stdout();
		return false;
	}
	return true;
}

/* It could not be begun, or ended at once in another way than well. */
static void say_ending(const json_t *sandbox)
{
	char state[LIMIT_CLIENT_CELL], reason[LIMIT_CLIENT_CELL], message[2 * LIMIT_CLIENT_CELL];
	shown(json_text(sandbox, "state"), state, sizeof(state));
	shown(json_text(sandbox, "reason"), reason, sizeof(reason));
	shown(json_text(sandbox, "message"), message, sizeof(message));
	say("%s %s: %s%s%s", json_text(sandbox, "id"), state, reason, message[0] ? ": " : "", message);
}

static int follow(struct client *c, const char *id)
{
	json_t *ending = NULL, *sandbox;
	if (!follow_output(c, id, "both", &ending))
		return 1;
	int code = ending_exit_code(ending);
	bool is_plain = json_is_integer(json_object_get(ending, "exit_code")) &&
			strcmp(json_text(ending, "reason"), "exit") == 0;
	json_decref(ending);
	if (!is_plain && code != 0 && (sandbox = sandbox_get(c, id))) {
		say_ending(sandbox);
		json_decref(sandbox);
	}
	return code;
}

/* It runs, or did; or could not. */
static int begun(const struct client *c, const struct create *own, const json_t *sandbox)
{
	const char *state = json_text(sandbox, "state");
	bool is_good = strcmp(state, "running") == 0 || strcmp(state, "succeeded") == 0 ||
		       json_is_integer(json_object_get(sandbox, "exit_code"));
	if (!is_good)
		say_ending(sandbox);
	if (c->json && !own->follow && !json_print(sandbox))
		return 1;
	return is_good ? 0 : 1;
}

static int watch(struct client *c, const struct create *own, const char *id)
{
	json_t *sandbox = wait_until_runs(c, id);
	if (!sandbox)
		return 1;
	bool has_output = json_object_get(sandbox, "started_at") != NULL;
	int code = own->follow && has_output ? 0 : begun(c, own, sandbox);
	json_decref(sandbox);
	return own->follow && has_output ? follow(c, id) : code;
}

static int create(struct client *c, struct create *own)
{
	json_t *made = ask(c, own->body);
	if (!made)
		return 1;
	const char *id = json_text(made, "id");
	int code = 0;
	tell_if_interrupted(id);
	if (c->json && own->detach)
		code = json_print(made) ? 0 : 1;
	else if (!c->json || own->follow)
		code = print_id(own, id) ? 0 : 1;
	if (code == 0 && !own->detach)
		code = watch(c, own, id);
	json_decref(made);
	return code;
}

int cmd_create(int argc, char **argv)
{
	struct client c = {0};
	struct create own = {.body = json_object()};
	int code = 2;
	if (!own.body)
		return 1;
	enum command_read r = read_command(argc, argv, &create_command_line, &c, &own);
	if (r != COMMAND_RUN)
		code = command_exit(r);
	else if (create_complete(&own, &c)) {
		c.policy = own.policy;
		code = create(&c, &own);
	}
	json_decref(own.body);
	client_close(&c);
	return code;
}
