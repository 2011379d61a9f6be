/* cage-door, as a whole. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/limits.h"
#include "core/base/say.h"
#include "core/base/usage.h"
#include "orchestrator/pod/door/door.h"

static const char help_text[] = "usage: cage-door agent NETWORK/BITS OWN HELPERS PROGRAM [ARGS]\n"
				"       cage-door stdio-agent NETWORK/BITS OWN HELPERS PROGRAM [ARGS]\n"
				"       cage-door helper PROGRAM [ARGS]\n"
				"\n"
				"The first program of a container of cage-pod. It is not for people.\n";

/* ---- words ---- */

/* All of them, until the empty one; NULL: they are not whole, or too long. */
static char *read_words(int from, size_t *len)
{
	char *bytes = malloc(LIMIT_POD_WORDS);
	ssize_t n = 1;
	*len = 0;
	while (bytes && n > 0 && *len < LIMIT_POD_WORDS) {
		n = read(from, bytes + *len, LIMIT_POD_WORDS - *len);
		if (n < 0 && errno == EINTR)
			n = 1;
		else if (n > 0)
			*len += (size_t)n;
	}
	bool is_whole =
		bytes && n == 0 && *len > 0 && bytes[*len - 1] == '\0' && (*len == 1 || bytes[*len - 2] == '\0');
	if (is_whole)
		return bytes;
	free(bytes);
	return NULL;
}

/* They stay where they are: the environment points at them. */
static bool take_words(int from)
{
	size_t len = 0;
	char *bytes = read_words(from, &len);
	close(from);
	if (!bytes)
		return false;
	for (size_t at = 0; at < len && bytes[at]; at += strlen(bytes + at) + 1)
		if (!strchr(bytes + at, '=') || putenv(bytes + at) != 0)
			return false;
	return true;
}

/* ---- programs ---- */

static _Noreturn void become(char **argv)
{
	execvp(argv[0], argv);
	say("%s: %s", argv[0], strerror(errno));
	_exit(127);
}

static bool read_network(char **argv, struct door_network *out)
{
	char *slash = strchr(argv[0], '/');
	long bits = slash ? strtol(slash + 1, NULL, 10) : 0;
	if (!slash || bits < 1 || bits > 30)
		return false;
	*slash = '\0';
	out->mask.s_addr = htonl(~0u << (32 - bits));
	return inet_pton(AF_INET, argv[0], &out->first) == 1 && inet_pton(AF_INET, argv[1], &out->own) == 1 &&
	       inet_pton(AF_INET, argv[2], &out->helpers) == 1;
}

/* What is said from here on would be the agent's, in our name. */
static bool leave_stderr(void)
{
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	return null >= 0 && dup2(null, STDERR_FILENO) >= 0;
}

/* By what an agent is spoken to. */
struct ways {
	const char *name;
	int words, said, in, out;
};

static const struct ways by_descriptors = {"agent", DOOR_WORDS, DOOR_SAID, DOOR_FIRST, DOOR_FIRST + 1},
			 by_stdio = {"stdio-agent", DOOR_STDIO_WORDS, DOOR_STDIO_SAID, 0, 0};

/* argv: NETWORK/BITS OWN HELPERS PROGRAM [ARGS] */
static int run_agent(char **argv, const struct ways *w)
{
	struct door_network n;
	if (!read_network(argv, &n)) {
		say("the agent was started in a way that it can't be");
		return DOOR_UNLOCKED;
	}
	if (!door_has_no_rights() || !take_words(w->words) || !door_has_no_other_way(&n) ||
	    !door_reaches_only_helpers(&n))
		return DOOR_UNLOCKED;
	if (dup2(w->in, 0) < 0 || dup2(w->out, 1) < 0 || close_range(3, INT_MAX, 0) != 0) {
		say("the agent's descriptors are not what they have to be: %s", strerror(errno));
		return DOOR_UNLOCKED;
	}
	if (strchr(argv[3], '/') && access(argv[3], X_OK) != 0)
		become(argv + 3); /* which says why not */
	say("ready");
	if (!leave_stderr())
		return DOOR_UNLOCKED;
	become(argv + 3);
}

static int run_helper(char **argv)
{
	if (dup2(DOOR_SAID, STDERR_FILENO) < 0)
		return DOOR_UNLOCKED;
	close(DOOR_SAID);
	if (!take_words(DOOR_WORDS))
		return 1;
	become(argv);
}

static const struct ways *ways_of(int argc, char **argv)
{
	if (argc > 5 && strcmp(argv[1], by_descriptors.name) == 0)
		return &by_descriptors;
	return argc > 5 && strcmp(argv[1], by_stdio.name) == 0 ? &by_stdio : NULL;
}

int main(int argc, char **argv)
{
	const struct ways *ways = ways_of(argc, argv);
	say_as("cage-door");
	if (ways)
		return dup2(ways->said, STDERR_FILENO) >= 0 ? run_agent(argv + 2, ways) : DOOR_UNLOCKED;
	if (argc > 2 && strcmp(argv[1], "helper") == 0)
		return run_helper(argv + 2);
	const int asked = usage_asked(argc, argv, "cage-door", help_text);
	if (asked < 0)
		fputs(help_text, stderr);
	return asked < 0 ? USAGE_WRONG : asked;
}
