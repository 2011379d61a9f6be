/* The end of a sandbox by force: its keeper may be stopped, or gone and its `cage run` still there. Both are found by what they
 * were started with, which names the directory, so that it does not matter who has started them, or when. A number may have become
 * somebody else's before it is killed: it is held by a descriptor, and looked at again.
 *
 * The room ends with `cage run`, and `cage run` by itself when its keeper is gone; it gets some time for that. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <time.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/limits.h"
#include "core/base/say.h"
#include "core/base/slice.h"
#include "orchestrator/backend.h"
#include "orchestrator/service/backend_local.h"
#include "orchestrator/tree_whole.h"

enum whose { NOBODYS, KEEPERS, RUNS };

/* ---- processes ---- */

/* cage-keeper DIR, and cage run ... --policy DIR/policy.yaml ..., or cage-pod or cage-aci with the same somewhere */
static enum whose whose_words(struct slice words, const char *dir)
{
	char policy[BACKEND_PATH];
	struct slice program = slice_cut(&words, '\0');
	snprintf(policy, sizeof(policy), "%s/policy.yaml", dir);
	if (slice_ends(program, SLICE("cage-keeper")) && slice_eq(slice_cut(&words, '\0'), slice_str(dir)))
		return KEEPERS;
	if (!slice_ends(program, SLICE("cage-pod")) && !slice_ends(program, SLICE("cage-aci")) &&
	    (!slice_ends(program, SLICE("cage")) || !slice_eq(slice_cut(&words, '\0'), SLICE("run"))))
		return NOBODYS;
	while (words.len > 0)
		if (slice_eq(slice_cut(&words, '\0'), slice_str(policy)))
			return RUNS;
	return NOBODYS;
}

static enum whose whose(const char *pid, const char *dir)
{
	static char bytes[LIMIT_SERVE_ARGV];
	char path[64];
	snprintf(path, sizeof(path), "/proc/%s/cmdline", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, bytes, sizeof(bytes)) : -1;
	if (fd >= 0)
		close(fd);
	return n > 0 ? whose_words(slice_of(bytes, (size_t)n), dir) : NOBODYS;
}

static void kill_it(const char *pid, enum whose kind, const char *dir)
{
	int fd = pidfd_open((pid_t)strtol(pid, NULL, 10), 0);
	if (fd < 0)
		return;
	if (whose(pid, dir) == kind && pidfd_send_signal(fd, SIGKILL, NULL, 0) == 0)
		say("%s: process %s of it is killed", dir, pid);
	close(fd);
}

/* Kills those of a kind, if it shall; true: there was one. */
static bool look(enum whose kind, const char *dir, bool shall_kill)
{
	bool found = false;
	DIR *all = opendir("/proc");
	for (struct dirent *e = all ? readdir(all) : NULL; e; e = readdir(all)) {
		if (!ascii_is_digit((unsigned char)e->d_name[0]) || whose(e->d_name, dir) != kind)
			continue;
		found = true;
		if (shall_kill)
			kill_it(e->d_name, kind, dir);
	}
	if (all)
		closedir(all);
	return found;
}

/* ---- the keeper's lock ---- */

static bool is_locked(const char *dir)
{
	char path[BACKEND_PATH];
	snprintf(path, sizeof(path), "%s/lock", dir);
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	struct flock of = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	bool is_taken = fd >= 0 && fcntl(fd, F_OFD_GETLK, &of) == 0 && of.l_type != F_UNLCK;
	if (fd >= 0)
		close(fd);
	return is_taken;
}

/* ---- what cage run has outside ---- */

/* The keeper has noted it. */
static void remove_run(const char *dir)
{
	char path[BACKEND_PATH], run[64] = "";
	snprintf(path, sizeof(path), "%s/rundir", dir);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t n = fd >= 0 ? read(fd, run, sizeof(run) - 1) : -1;
	if (fd >= 0)
		close(fd);
	run[n > 0 ? n : 0] = '\0';
	run[strcspn(run, "\n")] = '\0';
	if (strncmp(run, "/tmp/cage-run.", 14) == 0 && !strchr(run + 14, '/'))
		tree_remove(run);
}

/* ---- all of it ---- */

static void rest(void)
{
	const struct timespec moment = {.tv_nsec = 20000000};
	nanosleep(&moment, NULL);
}

bool local_reap(const char *dir)
{
	const uint64_t began_us = clock_mono_us();
	uint64_t passed_ms = 0;
	for (; passed_ms < LIMIT_SERVE_REAP_MS; passed_ms = (clock_mono_us() - began_us) / 1000) {
		bool has_keeper = look(KEEPERS, dir, true) || is_locked(dir);
		bool has_run = look(RUNS, dir, passed_ms > LIMIT_SERVE_REAP_RUN_MS);
		if (!has_keeper && !has_run) {
			remove_run(dir);
			return true;
		}
		rest();
	}
	errno = EBUSY;
	return false;
}
