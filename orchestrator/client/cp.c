/* cage cp: a file into a sandbox, or out of it, in pieces of any number. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/say.h"
#include "orchestrator/client/api.h"
#include "orchestrator/client/copy.h"

static const char help_text[] =
	"usage: cage cp [options] FILE ID:PATH\n"
	"       cage cp [options] ID:PATH FILE\n"
	"\n"
	"Copies a file of this machine into the workspace of a sandbox that runs, or one of there\n"
	"to this machine: also of one that has ended, if it was created with --keep. PATH is\n"
	"relative to the workspace. FILE may be a directory, where the file gets the name it has,\n"
	"or - for stdin or stdout; one with a colon in its name is written ./a:b.\n"
	"\n"
	"What comes out of a sandbox gets its name when it is whole, and is never made executable;\n"
	"through a link it is written into the file that is there. A file has 256 MiB at most.\n"
	"\n" CLIENT_HELP;

static const struct option long_options[] = {CLIENT_OPTIONS};

static const struct command_line command_line = {.name = "cp",
						 .help = help_text,
						 .options = long_options,
						 .letters = "h",
						 .least = 2,
						 .most = 2,
						 .wanted = "FILE ID:PATH or ID:PATH FILE"};

/* ID:PATH, cut in two at its colon. False: it is a file of this machine. */
static bool cut_place(char *text, const char **path)
{
	char *colon = strchr(text, ':'), *slash = strchr(text, '/');
	if (!colon || (slash && slash < colon))
		return false;
	*colon = '\0';
	*path = colon + 1;
	return true;
}

static struct http_request file_request(const char *method, struct target *t, const char *id, const char *path)
{
	target_sandbox(t, id, "files/");
	target_file(t, path);
	return api_request(method, t);
}

/* ---- into it ---- */

/* What the service would refuse, said before all of it was sent. */
static bool can_be_sent(int fd, const char *file)
{
	struct stat st;
	if (fstat(fd, &st) != 0)
		say("%s: %s", file, strerror(errno));
	else if (S_ISDIR(st.st_mode))
		say("%s is a directory: cp copies one file", file);
	else if (S_ISREG(st.st_mode) && (uint64_t)st.st_size > LIMIT_SERVE_FILE)
		say("%s is too large: a file has %zu MiB at most", file, (size_t)LIMIT_SERVE_FILE >> 20);
	else
		return true;
	return false;
}

static bool copy_in(struct client *c, const char *file, const char *id, const char *path)
{
	struct target t;
	struct http_request r = file_request("PUT", &t, id, path);
	r.type = "application/octet-stream";
	r.from_file = true;
	r.fd = strcmp(file, "-") == 0 ? STDIN_FILENO : open(file, O_RDONLY | O_CLOEXEC);
	if (r.fd < 0) {
		say("%s: %s", file, strerror(errno));
		return false;
	}
	r.name = r.fd == STDIN_FILENO ? "stdin" : file;
	bool ok = can_be_sent(r.fd, r.name) && api_open(c, &r);
	if (r.fd != STDIN_FILENO)
		close(r.fd);
	return ok;
}

/* ---- out of it ---- */

/* Where it goes: into a directory under its own name. */
static bool out_name(const char *file, const char *path, char *out, size_t room)
{
	struct stat st;
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	bool is_dir = stat(file, &st) == 0 && S_ISDIR(st.st_mode);
	if (is_dir && (base[0] == '\0' || strcmp(base, ".") == 0 || strcmp(base, "..") == 0)) {
		say("%s is a directory, and %s names no file", file, path);
		return false;
	}
	int n = is_dir ? snprintf(out, room, "%s/%s", file, base) : snprintf(out, room, "%s", file);
	if (n < (int)room)
		return true;
	say("%s: the name is too long", file);
	return false;
}

/* What is no file (a pipe, a device, a link: whoever made it wants it to stay one) is written where it is. */
static bool is_other(const char *name)
{
	struct stat st;
	return lstat(name, &st) == 0 && !S_ISREG(st.st_mode);
}

/* Of a file that a link leads to nothing is left; of all else there is nothing to take away. */
static bool make_empty(int fd, const char *name)
{
	struct stat st;
	if (fstat(fd, &st) == 0 && (!S_ISREG(st.st_mode) || ftruncate(fd, 0) == 0))
		return true;
	say("%s: %s", name, strerror(errno));
	return false;
}

static bool take_to(struct client *c, const struct http_request *r, int fd)
{
	return api_open(c, r) && copy_body(c, fd);
}

static bool take_in_place(struct client *c, const struct http_request *r, const char *name)
{
	int fd = open(name, O_WRONLY | O_CLOEXEC);
	if (fd < 0) {
		say("%s: %s", name, strerror(errno));
		return false;
	}
	bool ok = api_open(c, r) && make_empty(fd, name) && copy_body(c, fd);
	return close(fd) == 0 && ok;
}

static bool set_name(int fd, const char *part, const char *name)
{
	mode_t mask = umask(0);
	umask(mask);
	if (fchmod(fd, 0666 & ~mask) == 0 && rename(part, name) == 0)
		return true;
	say("%s: %s", name, strerror(errno));
	return false;
}

static bool take_whole(struct client *c, const struct http_request *r, const char *name)
{
	char part[PATH_MAX];
	if (snprintf(part, sizeof(part), "%s.XXXXXX", name) >= (int)sizeof(part)) {
		say("%s: the name is too long", name);
		return false;
	}
	int fd = mkostemp(part, O_CLOEXEC);
	if (fd < 0) {
		say("%s: %s", name, strerror(errno));
		return false;
	}
	bool ok = take_to(c, r, fd) && set_name(fd, part, name);
	if (!ok)
		unlink(part);
	close(fd);
	return ok;
}

bool copy_to(struct client *c, const struct http_request *r, const char *path, const char *file)
{
	char name[PATH_MAX];
	if (strcmp(file, "-") == 0)
		return take_to(c, r, STDOUT_FILENO);
	if (!out_name(file, path, name, sizeof(name)))
		return false;
	return is_other(name) ? take_in_place(c, r, name) : take_whole(c, r, name);
}

static bool copy_out(struct client *c, const char *id, const char *path, const char *file)
{
	struct target t;
	struct http_request r = file_request("GET", &t, id, path);
	return copy_to(c, &r, path, file);
}

static bool path_is_good(const char *path)
{
	if (path[strlen(path) - 1] == '/')
		return usage_error(&command_line, path, "expected the name of a file");
	if (path[0] != '/')
		return true;
	return usage_error(&command_line, path,
			   "expected a path that is relative to /workspace, without a / before it");
}

int cmd_cp(int argc, char **argv)
{
	struct client c = {0};
	const char *from = NULL, *to = NULL;
	enum command_read r = read_command(argc, argv, &command_line, &c, NULL);
	if (r != COMMAND_RUN)
		return command_exit(r);
	bool is_out = cut_place(c.operands[0], &from), is_in = cut_place(c.operands[1], &to);
	if (is_in == is_out || (is_in ? to : from)[0] == '\0') {
		usage_error(&command_line, "cp", "expected FILE ID:PATH or ID:PATH FILE");
		return 2;
	}
	if (!id_is_good(c.operands[is_in]) || !path_is_good(is_in ? to : from))
		return 2;
	bool ok = is_in ? copy_in(&c, c.operands[0], c.operands[1], to)
			: copy_out(&c, c.operands[0], from, c.operands[1]);
	client_close(&c);
	return ok ? 0 : 1;
}
