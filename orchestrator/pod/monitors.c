/* Containers that Podman does not know any more, or not yet: a podman command that was killed at a bad moment has started conmon, which
 * watches over a container's first process, and has not noted it. They are found by their names, which are in conmon's command line. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/say.h"
#include "orchestrator/pod/pod.h"

struct monitor {
	pid_t pid;
	char line[LIMIT_POD_MONITOR]; /* its words; what is behind the bound is not looked at */
	size_t len;
	const char *name, *bundle, *container, *runtime; /* in line; NULL: not said */
};

/* ---- one of them ---- */

static void take_word(struct monitor *m, const char *option, const char *value)
{
	if (strcmp(option, "-n") == 0)
		m->name = value;
	else if (strcmp(option, "-b") == 0)
		m->bundle = value;
	else if (strcmp(option, "-c") == 0)
		m->container = value;
	else if (strcmp(option, "-r") == 0)
		m->runtime = value;
}

/* What is behind --exit-command is another program's. */
static void read_words(struct monitor *m)
{
	const char *before = m->line;
	for (size_t at = strlen(m->line) + 1; at < m->len && strcmp(before, "--exit-command") != 0;) {
		const char *word = m->line + at;
		take_word(m, before, word);
		before = word;
		at += strlen(word) + 1;
	}
}

static void read_line(const char *pid, struct monitor *m)
{
	char path[64];
	struct stat st;
	*m = (struct monitor){.pid = (pid_t)strtol(pid, NULL, 10)};
	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)m->pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n =
		fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() ? read(fd, m->line, sizeof(m->line) - 1) : -1;
	if (fd >= 0)
		close(fd);
	m->len = n > 0 ? (size_t)n : 0;
}

static bool is_program(const struct monitor *m, const char *name)
{
	const char *slash = strrchr(m->line, '/');
	return strcmp(slash ? slash + 1 : m->line, name) == 0;
}

/* False: it is none, or none of ours. */
static bool read_monitor(const char *pid, struct monitor *m)
{
	read_line(pid, m);
	if (!is_program(m, "conmon"))
		return false;
	read_words(m);
	return m->name && m->bundle && m->container && m->runtime && m->runtime[0] == '/';
}

/* "PPid:" of its status; 0: there is none any more. */
static pid_t parent_of(pid_t pid)
{
	char path[64], line[256];
	pid_t parent = 0;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	FILE *f = fopen(path, "re");
	while (f && parent == 0 && fgets(line, sizeof(line), f))
		if (strncmp(line, "PPid:", 5) == 0)
			parent = (pid_t)strtol(line + 5, NULL, 10);
	if (f)
		fclose(f);
	return parent;
}

bool monitors_bundle(pid_t first, char out[POD_PATH])
{
	static struct monitor m;
	char pid[16];
	snprintf(pid, sizeof(pid), "%d", (int)parent_of(first));
	return read_monitor(pid, &m) && snprintf(out, POD_PATH, "%s", m.bundle) < POD_PATH;
}

static bool is_of(const struct monitor *m, const struct pod_options *o, const char *id)
{
	char name[LIMIT_POD_NAME];
	const size_t n = o->root ? strlen(o->root) : 0;
	if (n > 0 && (strncmp(m->bundle, o->root, n) != 0 || m->bundle[n] != '/'))
		return false;
	for (enum role role = ROLE_PROXY; role < ROLES; role++) {
		snprintf(name, sizeof(name), "cage-%s-%s", id, role_names[role]);
		if (strcmp(m->name, name) == 0)
			return true;
	}
	return false;
}

/* ---- podman commands that make one ---- */

/* "podman ... run ... --name cage-ID-ROLE", with the storage of ours. */
static bool makes_one(const char *pid, const struct pod_options *o, const char *id)
{
	static struct monitor m;
	char name[LIMIT_POD_NAME];
	bool is_root = !o->root, is_name = false;
	read_line(pid, &m);
	if (!is_program(&m, "podman"))
		return false;
	snprintf(name, sizeof(name), "cage-%s-", id);
	const char *before = m.line;
	for (size_t at = strlen(m.line) + 1; at < m.len; at += strlen(before) + 1) {
		const char *word = m.line + at;
		is_root = is_root || (strcmp(before, "--root") == 0 && strcmp(word, o->root) == 0);
		is_name = is_name || (strcmp(before, "--name") == 0 && strncmp(word, name, strlen(name)) == 0);
		before = word;
	}
	return is_root && is_name;
}

static bool is_being_made(const struct pod_options *o, const char *id)
{
	bool found = false;
	DIR *all = opendir("/proc");
	for (struct dirent *e = all ? readdir(all) : NULL; e && !found; e = readdir(all))
		found = e->d_name[0] >= '0' && e->d_name[0] <= '9' && makes_one(e->d_name, o, id);
	if (all)
		closedir(all);
	return found;
}

/* One of those names is a word of its command line, whatever storage it works on. */
static bool names_one(const char *pid, const char *id)
{
	static struct monitor m;
	char name[LIMIT_POD_NAME];
	read_line(pid, &m);
	if (!is_program(&m, "podman") && !is_program(&m, "conmon"))
		return false;
	snprintf(name, sizeof(name), "cage-%s-", id);
	for (size_t at = 0; at < m.len; at += strlen(m.line + at) + 1)
		if (strncmp(m.line + at, name, strlen(name)) == 0)
			return true;
	return false;
}

bool monitors_are_others(const char *id)
{
	bool found = false;
	DIR *all = opendir("/proc");
	for (struct dirent *e = all ? readdir(all) : NULL; e && !found; e = readdir(all))
		found = e->d_name[0] >= '0' && e->d_name[0] <= '9' && names_one(e->d_name, id);
	if (all)
		closedir(all);
	return found;
}

void monitors_await(const struct pod_options *o, const char *id)
{
	const struct timespec moment = {.tv_nsec = 50000000};
	const uint64_t until_us = clock_mono_us() + LIMIT_POD_COMMAND_MS * 1000ull;
	while (clock_mono_us() < until_us && is_being_made(o, id))
		nanosleep(&moment, NULL);
}

/* ---- its end ---- */

/* The runtime knows the container, whatever Podman does: its processes and its cgroup go. */
static void end_container(const struct monitor *m)
{
	char *argv[] = {(char *)m->runtime, "delete", "--force", (char *)m->container, NULL};
	struct launch l = {.name = m->runtime, .argv = argv, .envp = environ, .death_signal = SIGKILL};
	pid_t pid = launch(&l);
	if (pid > 0)
		call_wait_for(pid);
}

static void end_monitor(const struct monitor *m, const struct pod_options *o, const char *id)
{
	struct monitor again;
	char pid[16];
	snprintf(pid, sizeof(pid), "%d", (int)m->pid);
	int fd = pidfd_open(m->pid, 0);
	if (fd >= 0 && read_monitor(pid, &again) && is_of(&again, o, id)) /* the number is still its own */
		pidfd_send_signal(fd, SIGKILL, NULL, 0);
	if (fd >= 0)
		close(fd);
}

/* One whose container was removed has an end to tell of, and ends by itself soon after. */
static bool is_leaving(const struct monitor *m)
{
	const struct timespec moment = {.tv_nsec = 20000000};
	const uint64_t until_us = clock_mono_us() + LIMIT_POD_MONITOR_MS * 1000ull;
	int fd = pidfd_open(m->pid, 0);
	struct pollfd p = {.fd = fd, .events = POLLIN};
	while (fd >= 0 && poll(&p, 1, 0) == 0 && clock_mono_us() < until_us)
		nanosleep(&moment, NULL);
	const bool has_left = fd < 0 || p.revents;
	if (fd >= 0)
		close(fd);
	return has_left;
}

bool monitors_end(const struct pod_options *o, const char *id)
{
	static struct monitor m;
	bool found = false;
	DIR *all = opendir("/proc");
	for (struct dirent *e = all ? readdir(all) : NULL; e; e = readdir(all)) {
		if (e->d_name[0] < '0' || e->d_name[0] > '9' || !read_monitor(e->d_name, &m) || !is_of(&m, o, id) ||
		    is_leaving(&m))
			continue;
		found = true;
		say("%s: Podman does not know it, and it is ended", m.name);
		end_container(&m);
		end_monitor(&m, o, id);
	}
	if (all)
		closedir(all);
	return found;
}
