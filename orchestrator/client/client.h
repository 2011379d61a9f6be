/* The commands of cage that are clients of cage serve. Start reading here.
 *
 * Each command has a file of its own with its help, its options and what it does: read_command() reads the command line, api.h
 * asks the service, table.h shows what it said. */
#ifndef CAGE_CLIENT_CLIENT_H
#define CAGE_CLIENT_CLIENT_H

#include <getopt.h>

#include "orchestrator/client/http.h"
#include "orchestrator/client/place.h"

/* What every command has. Zeroed at first. */
struct client {
	struct place_options where;
	struct place place;
	struct http http;
	bool json;          /* for programs */
	const char *policy; /* the file whose text is sent as one: errors are said of it; NULL: there is none */
	const char *about;  /* which of several sandboxes problems are said of; NULL: there is one */

	char **operands; /* what is no option, without what stands behind "--" */
	int n_operands;
	char **command; /* what stands behind "--", with a NULL at its end; NULL: there was no "--" */
};

/* Options of every command, for its table, and what they are to getopt. */
enum { OPT_SOCKET = 1000, OPT_URL, OPT_TOKEN_FILE, OPT_JSON };

#define CLIENT_OPTIONS                                                                                     \
	{"socket", required_argument, NULL, OPT_SOCKET}, {"url", required_argument, NULL, OPT_URL},        \
		{"token-file", required_argument, NULL, OPT_TOKEN_FILE}, {"help", no_argument, NULL, 'h'}, \
	{                                                                                                  \
		NULL, 0, NULL, 0                                                                           \
	}

#define CLIENT_OPTION_JSON                          \
	{                                           \
		"json", no_argument, NULL, OPT_JSON \
	}

#define CLIENT_HELP                                                                                  \
	"  --socket PATH        the unix socket of the service (default $CAGE_SOCKET, else socket\n" \
	"                       in the state directory of cage serve)\n"                             \
	"  --url URL            http://ADDRESS:PORT of the service instead, with the token in\n"     \
	"                       $CAGE_TOKEN\n"                                                       \
	"  --token-file FILE    a file with that token\n"                                            \
	"  -h, --help           print this and exit\n"

struct command_line {
	const char *name, *help;
	const struct option *options; /* ends with CLIENT_OPTIONS */
	const char *letters;          /* of short options, for getopt; 'h' is among them */
	bool (*take)(void *own, int opt,
		     const char *value); /* one of its own; false with a message. NULL: it has none */
	int least, most;                 /* operands */
	const char *wanted;              /* what they are, where one is needed */
	bool may_have_command;
};

enum command_read { COMMAND_RUN, COMMAND_EXIT_OK, COMMAND_EXIT_USAGE };

/* Prints help or what is wrong itself. */
enum command_read read_command(int argc, char **argv, const struct command_line *l, struct client *c, void *own);

/* 0 or 2. */
int command_exit(enum command_read r);

/* False, once it was said. */
bool usage_error(const struct command_line *l, const char *what, const char *why);

/* The id of a sandbox among the operands: true, or false with a message. */
bool id_is_good(const char *id);

/* Something could not be written to stdout, as errno says. Who has closed a pipe knows it. */
void say_stdout(void);

void client_close(struct client *c);

/* Is it a sandbox of a service that is to be verified, by this command line of cage verify? */
bool verify_asks_service(int argc, char **argv);

int cmd_create(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_show(int argc, char **argv);
int cmd_logs(int argc, char **argv);
int cmd_output(int argc, char **argv);
int cmd_exec(int argc, char **argv);
int cmd_cp(int argc, char **argv);
int cmd_reload(int argc, char **argv);
int cmd_stop(int argc, char **argv);
int cmd_rm(int argc, char **argv);
int cmd_usage(int argc, char **argv);
int cmd_verify_sandbox(int argc, char **argv);
int cmd_workflow(int argc, char **argv);
int cmd_secret(int argc, char **argv);

#endif
