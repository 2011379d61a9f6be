/* "Type its name": what can't be undone is not done by a slip of a finger. */
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "core/base/say.h"
#include "core/base/slice.h"
#include "orchestrator/deploy/deploy.h"

/* One line; a signal ends it. */
static struct slice read_line(struct deploy *d, char *out, size_t room)
{
	struct pollfd p[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = d->signals, .events = POLLIN}};
	size_t len = 0;
	while (len < room && (len == 0 || out[len - 1] != '\n')) {
		if (poll(p, 2, -1) < 0)
			return SLICE_NONE;
		d->is_stopped = p[1].revents != 0;
		if (d->is_stopped)
			return SLICE_NONE;
		ssize_t n = read(STDIN_FILENO, out + len, room - len);
		if (n <= 0)
			return SLICE_NONE;
		len += (size_t)n;
	}
	return slice_of(out, len > 0 && out[len - 1] == '\n' ? len - 1 : len);
}

int confirm(struct deploy *d, const char *what, const char *done)
{
	char line[LIMIT_DEPLOY_NAME];
	if (d->options->yes)
		return 0;
	if (!isatty(STDIN_FILENO)) {
		say("nobody can be asked here whether that is to go: --yes says it");
		return EXIT_WRONG;
	}
	fprintf(stderr, "This can't be undone. The name of the resource group, to %s: ", what);
	const struct slice typed = read_line(d, line, sizeof(line));
	if (slice_eq(typed, slice_str(d->options->azure.group)))
		return 0;
	if (d->is_stopped)
		return EXIT_STOPPED;
	say("that is not its name: nothing was %s", done);
	return EXIT_FAILED;
}
