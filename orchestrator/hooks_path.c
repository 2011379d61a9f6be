/* Where git looks for hooks if the repository of a workspace says so: core.hooksPath. Only lines of its own configuration
 * are read, as they are mostly written, and no git is run for it. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/slice.h"
#include "orchestrator/below.h"
#include "orchestrator/obeyed.h"

/* The value of a line "hooksPath = VALUE", without quotes; empty: it is another one. */
static struct slice value_of(struct slice line)
{
	struct slice name = slice_trim(slice_cut(&line, '='));
	struct slice value = slice_trim(line);
	if (!slice_ieq(name, SLICE("hookspath")))
		return SLICE_NONE;
	if (value.len >= 2 && value.ptr[0] == '"' && value.ptr[value.len - 1] == '"')
		value = slice_head(slice_from(value, 1), value.len - 2);
	return value;
}

/* Below the workspace, without "./" before it and "/" behind it; empty: it lies elsewhere. */
static void make_relative(const char *dir, struct slice value, char out[LIMIT_WORKSPACE_PATH])
{
	char *real = realpath(dir, NULL);
	out[0] = '\0';
	while (slice_starts(value, SLICE("./")))
		value = slice_from(value, 2);
	while (slice_ends(value, SLICE("/")))
		value = slice_head(value, value.len - 1);
	if (real && value.len > 0 && value.len < LIMIT_WORKSPACE_PATH)
		snprintf(out, LIMIT_WORKSPACE_PATH, "%.*s", SLICE_FMT(value));
	if (out[0] == '/') {
		bool is_inside = path_is_at_or_below(out, real) && strlen(out) > strlen(real) + 1;
		size_t skip = is_inside ? strlen(real) + 1 : strlen(out);
		memmove(out, out + skip, strlen(out + skip) + 1);
	}
	free(real);
}

void obeyed_find_hooks(const char *dir, char out[LIMIT_WORKSPACE_PATH])
{
	enum { ROOM = 65536 };
	char path[LIMIT_WORKSPACE_PATH + 16], text[ROOM];
	snprintf(path, sizeof(path), "%s/.git/config", dir);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text));
	struct slice rest = slice_of(text, n > 0 ? (size_t)n : 0);
	out[0] = '\0';
	while (rest.len > 0) {
		struct slice value = value_of(slice_cut(&rest, '\n'));
		if (value.len > 0)
			make_relative(dir, value, out); /* the last one counts */
	}
	if (fd >= 0)
		close(fd);
}
