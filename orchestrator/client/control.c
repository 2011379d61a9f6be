/* cage reload, cage stop and cage rm: what is done to a sandbox that is there. */
#include <stdio.h>
#include <stdlib.h>

#include "core/base/say.h"
#include "orchestrator/client/api.h"
#include "orchestrator/client/file_text.h"
#include "orchestrator/client/watch.h"

static const char reload_help[] =
	"usage: cage reload [options] ID POLICY\n"
	"\n"
	"Gives a sandbox that runs a new policy, of the file POLICY (- reads stdin). Nothing is\n"
	"restarted. One that is wrong is refused with what is wrong in it, and the old one stays\n"
	"in force.\n"
	"\n" CLIENT_HELP;

static const char stop_help[] = "usage: cage stop [options] ID...\n"
				"\n"
				"Ends the command of a sandbox; its record, output and log stay, as after any end.\n"
				"\n" CLIENT_HELP;

static const char rm_help[] =
	"usage: cage rm [options] ID...\n"
	"\n"
	"Ends sandboxes and removes everything they wrote. One that is removed already is no error.\n"
	"\n"
	"  --wait               until all of it is gone\n" CLIENT_HELP;

enum { OPT_WAIT = 1 };

static const struct option plain_options[] = {CLIENT_OPTIONS};
static const struct option rm_options[] = {{"wait", no_argument, NULL, OPT_WAIT}, CLIENT_OPTIONS};

static bool take_wait(void *own, int opt, const char *value)
{
	(void)opt;
	(void)value;
	return *(bool *)own = true;
}

static const struct command_line reload_line = {.name = "reload",
						.help = reload_help,
						.options = plain_options,
						.letters = "h",
						.least = 2,
						.most = 2,
						.wanted = "ID POLICY"};
static const struct command_line stop_line = {.name = "stop",
					      .help = stop_help,
					      .options = plain_options,
					      .letters = "h",
					      .least = 1,
					      .most = -1,
					      .wanted = "ID..."};
static const struct command_line rm_line = {.name = "rm",
					    .help = rm_help,
					    .options = rm_options,
					    .letters = "h",
					    .take = take_wait,
					    .least = 1,
					    .most = -1,
					    .wanted = "ID..."};

static bool ids_are_good(const struct client *c)
{
	for (int i = 0; i < c->n_operands; i++)
		if (!id_is_good(c->operands[i]))
			return false;
	return true;
}

/* Asks for something of which only the success counts. */
static bool ask(struct client *c, const char *method, const char *id, const char *rest)
{
	struct target t;
	c->about = c->n_operands > 1 ? id : NULL;
	target_sandbox(&t, id, rest);
	struct http_request r = api_request(method, &t);
	json_t *sandbox = api_json(c, &r);
	json_decref(sandbox);
	return sandbox != NULL;
}

static bool reload(struct client *c)
{
	struct target t;
	size_t len;
	char *policy = file_text("POLICY", c->operands[1], &len);
	if (!policy)
		return false;
	c->policy = c->operands[1];
	target_sandbox(&t, c->operands[0], "policy");
	struct http_request r = api_request("PUT", &t);
	r.type = "application/yaml";
	r.body = slice_of(policy, len);
	json_t *sandbox = api_json(c, &r);
	free(policy);
	json_decref(sandbox);
	return sandbox != NULL;
}

int cmd_reload(int argc, char **argv)
{
	struct client c = {0};
	enum command_read r = read_command(argc, argv, &reload_line, &c, NULL);
	if (r != COMMAND_RUN)
		return command_exit(r);
	if (!id_is_good(c.operands[0]))
		return 2;
	bool ok = reload(&c);
	client_close(&c);
	return ok ? 0 : 1;
}

int cmd_stop(int argc, char **argv)
{
	struct client c = {0};
	bool ok = true;
	enum command_read r = read_command(argc, argv, &stop_line, &c, NULL);
	if (r != COMMAND_RUN)
		return command_exit(r);
	if (!ids_are_good(&c))
		return 2;
	for (int i = 0; i < c.n_operands; i++)
		ok &= ask(&c, "POST", c.operands[i], "stop");
	client_close(&c);
	return ok ? 0 : 1;
}

/* All are asked for before the first is waited for. */
int cmd_rm(int argc, char **argv)
{
	struct client c = {0};
	bool ok = true, wait = false;
	enum command_read r = read_command(argc, argv, &rm_line, &c, &wait);
	if (r != COMMAND_RUN)
		return command_exit(r);
	if (!ids_are_good(&c))
		return 2;
	for (int i = 0; i < c.n_operands; i++)
		ok &= ask(&c, "DELETE", c.operands[i], NULL);
	for (int i = 0; wait && ok && i < c.n_operands; i++)
		ok = wait_until_deleted(&c, c.operands[i]);
	client_close(&c);
	return ok ? 0 : 1;
}
