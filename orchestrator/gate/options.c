/* Parsing of the command line, and the help text that describes it. What describes the room is the room's own to
 * understand. */
#include "orchestrator/gate/options.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "core/base/usage.h"
#include "orchestrator/gate/say.h"

static const char help_text[] =
	"usage: cage-gate [options] -- CMD ARGS...\n"
	"       cage-gate --probe [--mode MODE] [--json]\n"
	"       cage-gate --choose [--mode MODE] [--overlay DIR:STATE]\n"
	"\n"
	"Runs CMD where the network ends at the listeners of cage.\n"
	"\n"
	"  --mode MODE        netns: a network of its own, with nothing but loopback;\n"
	"                     seccomp: for hosts that refuse namespaces, IPv4 TCP on loopback\n"
	"                     only; auto (default): the first of them that works here\n"
	"  --handoff FD       a unix socket to the launcher: the listening sockets are sent over\n"
	"                     it, then one byte is awaited before CMD is run\n"
	"  --ready FD         gets the line \"mode NAME\" when CMD is locked in\n"
	"  --choose           print the mode that would be taken and what the room's files would\n"
	"                     be: overlay (--overlay works here), mounts or shared\n"
	"  --names            where the container is the room: its resolv.conf leads to 127.0.0.1,\n"
	"                     over TCP, and nowhere else, and its own name to 127.0.0.1\n"
	"  --probe            print what this host allows, and exit: 0 if an agent can be\n"
	"                     locked in, with that mode if one is named, else 78\n"
	"  --json             the same as one JSON object\n" ROOM_HELP
	"  --version          print the version and exit\n"
	"  -h, --help         print this and exit\n"
	"\n"
	"Exit codes: that of CMD; 128 and the signal that ended it; 126 or 127 when it can't be\n"
	"executed or found; 78 when the agent can't be locked in; 2 wrong usage.\n";

enum {
	OPT_MODE = 1,
	OPT_HANDOFF,
	OPT_READY,
	OPT_PROBE,
	OPT_CHOOSE,
	OPT_JSON,
	OPT_VERSION,
	OPT_HELP,
	OPT_ROOM,
	OPT_NAMES
};

static const struct option long_options[] = {
	{"mode", required_argument, NULL, OPT_MODE},
	{"handoff", required_argument, NULL, OPT_HANDOFF},
	{"ready", required_argument, NULL, OPT_READY},
	{"names", no_argument, NULL, OPT_NAMES},
	{"probe", no_argument, NULL, OPT_PROBE},
	{"choose", no_argument, NULL, OPT_CHOOSE},
	{"json", no_argument, NULL, OPT_JSON},
	{"version", no_argument, NULL, OPT_VERSION},
	{"help", no_argument, NULL, OPT_HELP},
	ROOM_LONG_OPTIONS(OPT_ROOM),
	{NULL, 0, NULL, 0},
};

const char *mode_name(enum gate_mode mode)
{
	switch (mode) {
	case MODE_AUTO:
		return "auto";
	case MODE_NETNS:
		return "netns";
	case MODE_SECCOMP:
		return "seccomp";
	}
	return "none";
}

static enum options_action usage_error(const char *option, const char *why)
{
	say("%s: %s", option, why);
	say("--help lists all options");
	return OPTIONS_EXIT_USAGE;
}

static enum options_action set_mode(struct options *o, const char *text)
{
	for (enum gate_mode mode = MODE_AUTO; mode <= MODE_SECCOMP; mode++)
		if (strcmp(text, mode_name(mode)) == 0) {
			o->mode = mode;
			return OPTIONS_RUN;
		}
	return usage_error("--mode", "expected auto, netns or seccomp");
}

/* A descriptor that we were given. It must not reach the agent, whatever happens later. */
static bool take_fd(const char *text, int *out)
{
	char *end = NULL;
	errno = 0;
	long fd = strtol(text, &end, 10);
	if (errno || end == text || *end != '\0' || fd < 3 || fd > 65535)
		return false;
	*out = (int)fd;
	return fcntl(*out, F_SETFD, FD_CLOEXEC) == 0;
}

static enum options_action set_handoff(struct options *o, const char *text)
{
	int type = 0;
	socklen_t len = sizeof(type);
	if (!take_fd(text, &o->handoff) || getsockopt(o->handoff, SOL_SOCKET, SO_TYPE, &type, &len) < 0 ||
	    type != SOCK_SEQPACKET)
		return usage_error("--handoff", "expected the number of an open SOCK_SEQPACKET socket");
	return OPTIONS_RUN;
}

static enum options_action take_option(struct options *o, int opt, const char *name, const char *arg,
				       enum options_action *then)
{
	switch (opt) {
	case OPT_MODE:
		return set_mode(o, arg);
	case OPT_HANDOFF:
		return set_handoff(o, arg);
	case OPT_READY:
		return take_fd(arg, &o->ready) ? OPTIONS_RUN
					       : usage_error("--ready", "expected the number of an open descriptor");
	case OPT_NAMES:
		o->names = true;
		return OPTIONS_RUN;
	case OPT_PROBE:
		*then = OPTIONS_PROBE;
		return OPTIONS_RUN;
	case OPT_CHOOSE:
		*then = OPTIONS_CHOOSE;
		return OPTIONS_RUN;
	case OPT_JSON:
		o->json = true;
		return OPTIONS_RUN;
	case OPT_ROOM:
		return room_option(&o->room, name, arg) == 0 ? OPTIONS_RUN : OPTIONS_EXIT_USAGE;
	case OPT_VERSION:
		puts("cage-gate " CAGE_VERSION);
		return OPTIONS_EXIT_OK;
	case 'h':
	case OPT_HELP:
		fputs(help_text, stdout);
		return OPTIONS_EXIT_OK;
	default:
		return OPTIONS_EXIT_USAGE;
	}
}

static enum options_action say_fault(int opt, char **argv)
{
	char word[USAGE_WORD];
	const char *why = usage_fault(opt, argv, long_options, word);
	return usage_error(word, why);
}

enum options_action options_parse(int argc, char **argv, struct options *out)
{
	enum options_action then = OPTIONS_RUN;
	int opt, which = 0;
	*out = (struct options){.handoff = -1, .ready = -1};
	room_init(&out->room);
	while ((opt = usage_next(argc, argv, "+:h", long_options, &which)) != -1) {
		enum options_action next = opt == '?' || opt == ':'
						   ? say_fault(opt, argv)
						   : take_option(out, opt, long_options[which].name, optarg, &then);
		if (next != OPTIONS_RUN)
			return next;
	}
	out->command = argv + optind;
	if (then != OPTIONS_RUN && optind < argc)
		return usage_error("CMD", "is not run with --probe or --choose");
	if (out->json && then != OPTIONS_PROBE)
		return usage_error("--json", "only with --probe");
	if (then != OPTIONS_RUN)
		return then;
	if (optind >= argc)
		return usage_error("CMD", "is missing");
	return then;
}
