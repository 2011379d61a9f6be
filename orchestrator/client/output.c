/* cage output and cage logs: what a command wrote, and what was decided about it. Both as they are: what is a terminal's to show
 * and what is not is for the reader to say, as with any other program's output. */
#include <errno.h>
#include <unistd.h>

#include "core/base/say.h"
#include "orchestrator/client/api.h"
#include "orchestrator/client/copy.h"
#include "orchestrator/client/sse.h"
#include "orchestrator/client/watch.h"
#include "core/base/write_all.h"

static const char output_help[] =
	"usage: cage output [options] ID\n"
	"\n"
	"Prints what the command of a sandbox has written, on stdout; with -f what it wrote on\n"
	"stderr goes to stderr. Its bytes are printed as they are, also on a terminal.\n"
	"\n"
	"  -f, --follow         until it ends; bytes that are no UTF-8 are shown as U+FFFD then\n"
	"  --stdout             only what it wrote on stdout\n"
	"  --stderr             only what it wrote on stderr\n" CLIENT_HELP;

static const char logs_help[] = "usage: cage logs [options] ID\n"
				"\n"
				"Prints the decision log of a sandbox: one JSON object a line (docs/log.md).\n"
				"\n"
				"  --dns                that of the DNS filter\n"
				"  -f, --follow         until it ends\n" CLIENT_HELP;

enum { OPT_STDOUT = 1, OPT_STDERR, OPT_DNS };

static const struct option output_options[] = {{"follow", no_argument, NULL, 'f'},
					       {"stdout", no_argument, NULL, OPT_STDOUT},
					       {"stderr", no_argument, NULL, OPT_STDERR},
					       CLIENT_OPTIONS};

static const struct option logs_options[] = {
	{"follow", no_argument, NULL, 'f'}, {"dns", no_argument, NULL, OPT_DNS}, CLIENT_OPTIONS};

struct reading {
	const char *which; /* of the streams, or of the logs; NULL: the service's default */
	bool follow;
};

static bool take_option(void *own, int opt, const char *value)
{
	struct reading *o = own;
	(void)value;
	if (opt == 'f')
		o->follow = true;
	else if (opt == OPT_DNS)
		o->which = "dns";
	else
		o->which = o->which ? "both" : opt == OPT_STDOUT ? "stdout" : "stderr";
	return true;
}

static const struct command_line output_line = {.name = "output",
						.help = output_help,
						.options = output_options,
						.letters = "hf",
						.take = take_option,
						.least = 1,
						.most = 1,
						.wanted = "ID"};

static const struct command_line logs_line = {.name = "logs",
					      .help = logs_help,
					      .options = logs_options,
					      .letters = "hf",
					      .take = take_option,
					      .least = 1,
					      .most = 1,
					      .wanted = "ID"};

/* ---- as a whole ---- */

bool copy_body(struct client *c, int fd)
{
	struct slice piece;
	enum cage_status st;
	while ((st = http_read(&c->http, LIMIT_CLIENT_IDLE_MS, &piece)) == CAGE_OK) {
		if (!write_all(fd, piece.ptr, piece.len)) {
			if (fd == STDOUT_FILENO)
				say_stdout();
			else
				say("it can't be written: %s", strerror(errno));
			return false;
		}
	}
	return st == CAGE_EOF;
}

static bool print_whole(struct client *c, const char *what, const char *parameter, const char *which)
{
	struct target t;
	target_sandbox(&t, c->operands[0], what);
	target_query(&t, parameter, which);
	struct http_request r = api_request("GET", &t);
	return api_open(c, &r) && copy_body(c, STDOUT_FILENO);
}

/* ---- followed ---- */

static bool print_line(void *arg, struct slice name, struct slice data)
{
	bool *failed = arg;
	(void)name;
	*failed = !write_all(STDOUT_FILENO, data.ptr, data.len) || !write_all(STDOUT_FILENO, "\n", 1);
	return !*failed;
}

static bool follow_lines(struct client *c, struct sse *events)
{
	struct slice piece;
	bool failed = false;
	enum cage_status st, fed = CAGE_OK;
	while ((st = http_read(&c->http, LIMIT_CLIENT_FOLLOW_MS, &piece)) == CAGE_OK && fed == CAGE_OK)
		fed = sse_feed(events, piece, print_line, &failed);
	if (failed)
		say_stdout();
	else if (fed == CAGE_ELIMIT)
		say("the service sent more at once than can be taken");
	return st == CAGE_EOF && fed == CAGE_OK;
}

static bool follow_logs(struct client *c, const char *source)
{
	struct target t;
	struct sse events;
	target_sandbox(&t, c->operands[0], "logs");
	target_query(&t, "follow", "true");
	target_query(&t, "source", source);
	struct http_request r = api_request("GET", &t);
	if (!api_open(c, &r) || !sse_init(&events))
		return false;
	bool ok = follow_lines(c, &events);
	sse_free(&events);
	return ok;
}

static bool follow_streams(struct client *c, const char *stream)
{
	json_t *ending;
	bool ok = follow_output(c, c->operands[0], stream, &ending);
	json_decref(ending);
	return ok;
}

int cmd_output(int argc, char **argv)
{
	struct client c = {0};
	struct reading o = {0};
	enum command_read r = read_command(argc, argv, &output_line, &c, &o);
	if (r != COMMAND_RUN)
		return command_exit(r);
	if (!id_is_good(c.operands[0]))
		return 2;
	bool ok = o.follow ? follow_streams(&c, o.which) : print_whole(&c, "output", "stream", o.which);
	client_close(&c);
	return ok ? 0 : 1;
}

int cmd_logs(int argc, char **argv)
{
	struct client c = {0};
	struct reading o = {0};
	enum command_read r = read_command(argc, argv, &logs_line, &c, &o);
	if (r != COMMAND_RUN)
		return command_exit(r);
	if (!id_is_good(c.operands[0]))
		return 2;
	bool ok = o.follow ? follow_logs(&c, o.which) : print_whole(&c, "logs", "source", o.which);
	client_close(&c);
	return ok ? 0 : 1;
}
