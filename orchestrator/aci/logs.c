/* Where the decisions of a sandbox go: the files that `cage run` would have, and no more than --log-max in each. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/say.h"
#include "core/base/write_all.h"
#include "orchestrator/aci/aci.h"

static bool open_log(struct aci_log *l, const char *path, uint64_t most)
{
	struct stat st;
	l->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (l->fd < 0 || fstat(l->fd, &st) != 0) {
		say("%s: %s", path, strerror(errno));
		return false;
	}
	l->left = (uint64_t)st.st_size < most ? most - (uint64_t)st.st_size : 0;
	return true;
}

/* A gateway has one log for both. */
bool logs_open(struct aci *a)
{
	char path[ACI_PATH];
	uint64_t most = LIMIT_LOG_MOST;
	const struct run_options *run = &a->options->run;
	for (enum aci_container c = ACI_AGENT; c < ACI_CONTAINERS; c++)
		a->logs[c].fd = -1;
	if (run->log_max && (!slice_to_u64(slice_str(run->log_max), LIMIT_LOG_MOST, &most) || most < LIMIT_LOG_LEAST)) {
		say("--log-max: expected a number of bytes, 256 KiB to 1 TiB");
		a->code = EXIT_WRONG;
		return false;
	}
	if (!run->log)
		return true;
	snprintf(path, sizeof(path), "%s.dns", run->log);
	return open_log(&a->logs[ACI_PROXY], run->log, most) &&
	       (aci_is_split(a->options) || open_log(&a->logs[ACI_DNS], path, most));
}

void logs_close(struct aci *a)
{
	for (enum aci_container c = ACI_AGENT; c < ACI_CONTAINERS; c++) {
		arm_free(&a->arm, &a->logs[c].call);
		log_window_free(&a->logs[c].window);
		if (a->logs[c].fd >= 0)
			close(a->logs[c].fd);
		a->logs[c].fd = -1;
	}
}

/* All of it or nothing, since who could not write lines asks for them again: what was written of them is taken back. */
static bool write_whole(struct aci *a, int fd, struct slice lines)
{
	struct stat st;
	if (fstat(fd, &st) != 0)
		return false;
	if (write_all(fd, lines.ptr, lines.len))
		return true;
	const int why = errno;
	if (S_ISREG(st.st_mode) && ftruncate(fd, st.st_size) != 0)
		a->keeping = ACI_LOG_TORN;
	errno = why;
	return false;
}

/* Whoever calls it may hold what aci_fail() lets go: that the run ends is seen to in the next pass. */
bool log_keep(struct aci *a, enum aci_container c, struct slice lines)
{
	struct aci_log *l = &a->logs[c];
	if (l->fd < 0 || lines.len == 0 || a->keeping != ACI_LOG_KEPT)
		return true;
	if (lines.len > l->left) {
		say("the decision log of %s has reached its bound, --log-max", aci_containers[c]);
		a->keeping = ACI_LOG_FULL;
		a->code = EXIT_FAILED;
		return true;
	}
	if (write_whole(a, l->fd, lines)) {
		l->left -= lines.len;
		return true;
	}
	if (a->keeping == ACI_LOG_TORN)
		a->code = EXIT_FAILED;
	say("lines of the decision log can't be written: %s%s", strerror(errno),
	    a->keeping == ACI_LOG_TORN ? ", and a part of them can't be taken back" : "");
	return false;
}
