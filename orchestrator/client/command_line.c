/* Command lines of clients: options may stand anywhere before "--", which ends them as it ends the operands. */
#include <errno.h>
#include <stdio.h>

#include "core/base/say.h"
#include "core/proc/sandbox_id.h"
#include "orchestrator/client/client.h"

bool usage_error(const struct command_line *l, const char *what, const char *why)
{
	say("%s: %s", what, why);
	say("cage %s --help says more", l->name);
	return false;
}

/* What stands behind "--" is not for getopt to look at. How many words are before it. */
static int cut_command(int argc, char **argv, struct client *c)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--") == 0) {
			c->command = argv + i + 1;
			argv[i] = NULL;
			return i;
		}
	}
	return argc;
}

static bool set(const char **where, const char *value)
{
	*where = value;
	return true;
}

static bool take_option(const struct command_line *l, struct client *c, void *own, int opt, const char *value)
{
	switch (opt) {
	case OPT_SOCKET:
		return set(&c->where.socket, value);
	case OPT_URL:
		return set(&c->where.url, value);
	case OPT_TOKEN_FILE:
		return set(&c->where.token_file, value);
	case OPT_JSON:
		return c->json = true;
	case '?':
		say("cage %s --help lists all options", l->name);
		return false;
	default:
		return l->take && l->take(own, opt, value);
	}
}

static bool operands_are_good(const struct command_line *l, const struct client *c)
{
	char expected[160];
	snprintf(expected, sizeof(expected), "expected %s", l->wanted ? l->wanted : "");
	if (c->n_operands < l->least)
		return usage_error(l, l->name, expected);
	if (l->most >= 0 && c->n_operands > l->most)
		return usage_error(l, c->operands[l->most],
				   l->may_have_command ? "is not expected here; put -- before a command"
						       : "is not expected here");
	if (c->command && !l->may_have_command)
		return usage_error(l, "--", "no command is expected here");
	return true;
}

enum command_read read_command(int argc, char **argv, const struct command_line *l, struct client *c, void *own)
{
	static char name[32];
	int opt, n = cut_command(argc, argv, c);
	snprintf(name, sizeof(name), "cage: %s", l->name);
	argv[0] = name; /* with which getopt begins what it says */
	optind = 0;     /* also what getopt knows of another command line is forgotten */
	while ((opt = getopt_long(n, argv, l->letters, l->options, NULL)) != -1) {
		if (opt == 'h')
			return fputs(l->help, stdout) >= 0 && fflush(stdout) == 0 ? COMMAND_EXIT_OK
										  : COMMAND_EXIT_USAGE;
		if (!take_option(l, c, own, opt, optarg))
			return COMMAND_EXIT_USAGE;
	}
	c->operands = argv + optind;
	c->n_operands = n - optind;
	return operands_are_good(l, c) && place_find(&c->where, &c->place) ? COMMAND_RUN : COMMAND_EXIT_USAGE;
}

int command_exit(enum command_read r)
{
	return r == COMMAND_EXIT_OK ? 0 : 2;
}

/* "." and ".." would be taken for steps of a path by those who stand between. */
bool id_is_good(const char *id)
{
	if (sandbox_id_is_good(slice_str(id)) && strcmp(id, ".") != 0 && strcmp(id, "..") != 0)
		return true;
	say("that is no id of a sandbox: expected " SANDBOX_ID);
	return false;
}

void say_stdout(void)
{
	if (errno != EPIPE) /* who read it has what it wanted */
		say("stdout can't be written: %s", strerror(errno));
}

void client_close(struct client *c)
{
	http_close(&c->http);
	explicit_bzero(c->place.token, sizeof(c->place.token));
}
