/* What stands in a patch and should be seen before it is applied. The formats are those that the proxy looks for. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "core/base/say.h"
#include "inspectors/scan/scan.h"
#include "orchestrator/holes.h"
#include "orchestrator/workspace.h"

/* How often each format is in a text. */
struct seen {
	const struct format *formats;
	unsigned n[LIMIT_SEEN_FORMATS];
};

static void count(void *arg, const struct scan_hit *hit)
{
	struct seen *seen = arg;
	size_t i = (size_t)(hit->format - seen->formats);
	if (i < LIMIT_SEEN_FORMATS)
		seen->n[i]++;
}

static bool scan_piece(struct scan *s, int fd, off_t at, off_t end)
{
	char buf[65536];
	while (at < end) {
		ssize_t n = pread(fd, buf, sizeof(buf), at);
		if (n <= 0 || scan_feed(s, slice_of(buf, (size_t)n)) != CAGE_OK)
			return false;
		at += n;
	}
	return true;
}

/* In the place of a hole, one of its bytes. */
static bool scan_open(struct scan *s, int fd)
{
	int more;
	for (off_t at = 0, end = 0; (more = holes_skip(fd, &at, &end)) > 0; at = end)
		if (scan_feed(s, SLICE("\0")) != CAGE_OK || !scan_piece(s, fd, at, end))
			return false;
	return more == 0;
}

/* False: it could not be looked at. What is not there has nothing in it, and neither has a link. */
static bool scan_file(const char *dir, const char *kind, const char *path, struct seen *seen)
{
	char name[2 * LIMIT_WORKSPACE_PATH + 16];
	struct scan *s = scan_catalogue() ? scan_new(scan_catalogue(), count, seen) : NULL;
	snprintf(name, sizeof(name), "%s/%s/%s", dir, kind, path);
	int fd = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	bool ok = s && (fd >= 0 ? scan_open(s, fd) : errno == ENOENT || errno == ENOTDIR || errno == ELOOP);
	ok = ok && scan_end(s) == CAGE_OK;
	if (fd >= 0)
		close(fd);
	scan_free(&s);
	return ok;
}

/* Says the name of what is pointed out, once. */
static void point_out(const char **name, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void point_out(const char **name, const char *format, ...)
{
	char line[256];
	va_list args;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	if (*name)
		say("  %s", *name);
	*name = NULL;
	say("    %s", line);
}

/* Only what was not there before. */
static void look_for_secrets(const char *patch, const char *path, const char **name)
{
	size_t n = 0;
	const struct format *formats = scan_catalogue_formats(&n);
	struct seen before = {.formats = formats}, after = {.formats = formats};
	if (!scan_file(patch, "base", path, &before) || !scan_file(patch, "files", path, &after)) {
		point_out(name, "could not be looked through for credentials");
		return;
	}
	for (size_t i = 0; i < n && i < LIMIT_SEEN_FORMATS; i++)
		if (after.n[i] > before.n[i])
			point_out(name, "has what looks like a credential: %.*s", SLICE_FMT(formats[i].id));
}

bool patch_look(const char *patch, const struct obeyed_in *in, const char *path, const char *name)
{
	const char *why = obeyed_why(in, path);
	const bool is_listed = name == NULL;
	look_for_secrets(patch, path, &name);
	if (why)
		point_out(&name, "%s", why);
	return !is_listed && !name;
}
