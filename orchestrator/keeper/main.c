/* cage-keeper: looks after one sandbox of cage serve (keeper.h). */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/say.h"
#include "core/base/usage.h"
#include "core/proc/process.h"
#include "orchestrator/gate/sweep.h"
#include "orchestrator/keeper/keeper.h"

static const char help_text[] =
	"usage: cage-keeper DIR\n"
	"\n"
	"Looks after one sandbox of cage serve, which has made DIR and starts this: makes its room\n"
	"with cage run, keeps what its command writes, does what the service asks for at\n"
	"DIR/socket, and leaves DIR/result when all of the sandbox is gone. It is not for people.\n";

/* ---- the result ---- */

/* Its place on the disk is taken from the start, so that there is one when the disk is full. */
static bool reserve_result(void)
{
	int fd = open("result.part", O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	bool ok = fd >= 0 && (errno = posix_fallocate(fd, 0, LIMIT_KEEPER_RESULT)) == 0;
	fd_close(&fd);
	return ok;
}

static bool sync_directory(void)
{
	int fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool ok = fd >= 0 && fsync(fd) == 0;
	fd_close(&fd);
	return ok;
}

/* Written last, and there as a whole or not at all. */
static bool write_result(const struct result *r)
{
	char text[LIMIT_KEEPER_RESULT];
	size_t n = result_format(r, text);
	int fd = open("result.part", O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	bool ok = fd >= 0 && pwrite(fd, text, n, 0) == (ssize_t)n && ftruncate(fd, (off_t)n) == 0 && fsync(fd) == 0;
	fd_close(&fd);
	if (ok && rename("result.part", "result") == 0 && sync_directory())
		return true;
	say("result: %s", strerror(errno));
	return false;
}

/* ---- the start ---- */

/* Two of them for one sandbox would both be wrong. */
static bool lock(void)
{
	int fd = open("lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	if (fd >= 0 && fcntl(fd, F_OFD_SETLK, &all) == 0)
		return true; /* until the end of the process */
	say("lock: %s", fd < 0 ? strerror(errno) : "another keeper has it");
	return false;
}

static bool enter_directory(struct keeper *k, const char *path)
{
	char *real = realpath(path, NULL);
	bool ok = real && strlen(real) < sizeof(k->path) && chdir(real) == 0;
	if (ok)
		memcpy(k->path, real, strlen(real) + 1);
	else
		say("%s: %s", path, real ? "can't be entered" : strerror(errno));
	free(real);
	if (!ok || !lock())
		return false;
	if (access("result", F_OK) != 0)
		return true;
	say("%s: this sandbox has ended already", k->path);
	return false;
}

static bool open_signals(struct keeper *k)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	signal(SIGHUP, SIG_IGN);
	k->signals = sigprocmask(SIG_BLOCK, &set, NULL) == 0 ? signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK) : -1;
	return k->signals >= 0;
}

/* False: it is said why, also in the result. */
static bool begin(struct keeper *k)
{
	const char *why;
	char text[LIMIT_KEEPER_MESSAGE];
	if (!spec_read(&k->spec, &why)) {
		snprintf(text, sizeof(text), "spec: %s", why);
		result_say(&k->result, slice_str(text));
		return false;
	}
	if (reserve_result() && output_open(&k->output, k->spec.output) && client_listen(&k->client) &&
	    open_signals(k) && sweep_begin() == 0 && publish_open(k) && room_start(k))
		return true;
	snprintf(text, sizeof(text), "the keeper could not begin: %s", strerror(errno));
	if (!k->result.message[0])
		result_say(&k->result, slice_str(text));
	return false;
}

/* ---- the loop ---- */

static void reap(struct keeper *k)
{
	int status;
	pid_t pid;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (pid == k->room.pid)
			room_ended(k, status);
		else
			fetch_ended(k, pid, status);
}

static void take_signals(struct keeper *k, void *arg, int fd, short events)
{
	struct signalfd_siginfo info;
	(void)arg;
	(void)events;
	while (read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		if (info.ssi_signo != SIGCHLD)
			keeper_stop(k, false);
	reap(k);
}

static int sooner(int a, int b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

static int ms_until(uint64_t at_us)
{
	const uint64_t now = clock_mono_us();
	if (at_us == 0)
		return -1;
	const uint64_t ms = at_us > now ? (at_us - now) / 1000 + 1 : 0;
	return ms < 60000 ? (int)ms : 60000;
}

static bool is_over(uint64_t at_us)
{
	return at_us > 0 && clock_mono_us() >= at_us;
}

static void look_at_clock(struct keeper *k)
{
	if (is_over(k->until_us))
		keeper_time_is_over(k);
	if (keeper_takes_jobs(k) && clock_mono_us() >= k->sample_us)
		keeper_sample(k);
	tools_look(k);
	if (wire_patience(&k->wire) == 0) {
		wire_close(&k->wire);
		keeper_finish(k, RESULT_FAILED, "room.failed", "cage-inside does not answer");
	}
}

static void pass(struct keeper *k)
{
	k->polls.n = 0;
	polls_add(&k->polls, k->signals, POLLIN, take_signals, NULL);
	wire_watch(k);
	room_watch(k);
	client_watch(k);
	tools_watch(k);
	fetch_watch(k);
	publish_watch(k);
	int ms = sooner(ms_until(k->until_us), keeper_takes_jobs(k) ? ms_until(k->sample_us) : -1);
	ms = sooner(sooner(ms, tools_patience(&k->tools)), wire_patience(&k->wire));
	polls_wait(k, ms);
	fill_go_on(k);
	look_at_clock(k);
}

/* ---- all of it ---- */

static void prepare(struct keeper *k)
{
	k->signals = k->output.fd = k->room.control = k->wire.in = k->wire.out = -1;
	k->client.listening = k->client.fd = k->fill.fd = k->pull.fd = k->artifacts.fd = k->tools.fd = -1;
	for (size_t i = 0; i < LIMIT_KEEPER_PUBLISHED; i++)
		k->publish.listening[i] = -1;
	k->sample_us = clock_mono_us();
	keeper_enter(k, KEEPER_STARTING);
}

/* The result is there before nobody listens any more. */
static bool end(struct keeper *k)
{
	struct result *r = &k->result;
	if (r->state == RESULT_NONE) {
		r->state = RESULT_FAILED;
		snprintf(r->reason, sizeof(r->reason), "keeper.failed");
	}
	r->ended_us = r->ended_us ? r->ended_us : clock_wall_us();
	publish_close(k);
	bool ok = write_result(r);
	client_close(k);
	wire_close(&k->wire);
	fd_close(&k->tools.fd);
	fill_free(&k->fill);
	spec_free(&k->spec);
	return ok;
}

int main(int argc, char **argv)
{
	static struct keeper k;
	say_as("cage-keeper");
	process_harden();
	if (argc != 2 || argv[1][0] == '-') {
		const int asked = usage_asked(argc, argv, "cage-keeper", help_text);
		if (asked < 0)
			fputs(help_text, stderr);
		return asked < 0 ? USAGE_WRONG : asked;
	}
	umask(077);
	prepare(&k);
	if (!enter_directory(&k, argv[1]))
		return 1;
	if (begin(&k))
		while (k.state != KEEPER_ENDED)
			pass(&k);
	return end(&k) ? 0 : 1;
}
