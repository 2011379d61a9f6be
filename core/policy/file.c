/* Reading the files of a policy: regular ones, up to a bound, whole. */
#include "core/policy/load.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

const char *file_beside_policy(struct loader *l, struct slice name)
{
	struct slice policy = slice_str(l->path);
	size_t slash = slice_rfind(policy, '/');
	struct slice dir =
		slash == policy.len || slice_starts(name, SLICE("/")) ? SLICE_NONE : slice_head(policy, slash + 1);
	char *path = load_scratch(l, dir.len + name.len + 1, 1);
	if (!path)
		return NULL;
	if (dir.len > 0)
		memcpy(path, dir.ptr, dir.len);
	memcpy(path + dir.len, name.ptr, name.len);
	return path;
}

/* Up to max + 1 bytes, so that too long is seen; -1 on failure. */
static ssize_t read_all(int fd, char *buf, size_t max)
{
	size_t len = 0;
	while (len <= max) {
		ssize_t n = read(fd, buf + len, max + 1 - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	return (ssize_t)len;
}

static struct slice read_open(struct loader *l, int fd, size_t max, struct file_id *id, const char **why)
{
	struct stat st;
	if (fstat(fd, &st) != 0) {
		*why = strerror(errno);
		return SLICE_NONE;
	}
	*id = (struct file_id){st.st_dev, st.st_ino};
	*why = !S_ISREG(st.st_mode) ? "it is not a regular file" : "it is too big";
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > max)
		return SLICE_NONE;
	size_t room = (size_t)st.st_size;
	char *buf = arena_alloc(&l->scratch, room + 1);
	if (!buf) {
		*why = "no memory to read it";
		return SLICE_NONE;
	}
	ssize_t n = read_all(fd, buf, room);
	*why = n < 0 ? strerror(errno) : (size_t)n > room ? "it changed while it was read" : NULL;
	return *why ? SLICE_NONE : slice_of(buf, (size_t)n);
}

static void note_file(struct loader *l, const char *path)
{
	struct policy_file *file = load_keep(l, 1, sizeof(*file));
	if (!file)
		return;
	*file = (struct policy_file){text_keep(l, slice_str(path)), NULL};
	struct policy_file **last = &l->policy->files;
	while (*last)
		last = &(*last)->next;
	*last = file;
}

struct slice file_read(struct loader *l, const char *path, size_t max, struct file_id *id, const char **why)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0) {
		*why = strerror(errno);
		return SLICE_NONE;
	}
	struct slice bytes = read_open(l, fd, max, id, why);
	close(fd);
	if (!*why)
		note_file(l, path);
	return bytes;
}
