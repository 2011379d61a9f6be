/* cage-inside: does in a sandbox what its keeper asks for (frame.h), over stdin and stdout. It is the first program of a
 * sandbox that is made by cage serve; the sandbox ends with it. Paths are those below the directory that it starts in. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/usage.h"
#include "core/base/write_all.h"
#include "orchestrator/inside/await.h"
#include "orchestrator/inside/enter.h"
#include "orchestrator/inside/job.h"
#include "orchestrator/inside/verify.h"

static const char help_text[] =
	"usage: cage-inside [--verify]\n"
	"       cage-inside --enter ADDRESS:PORT [--files FILE] -- CMD [ARGS]\n"
	"       cage-inside --await FILE -- PROGRAM [ARGS]\n"
	"\n"
	"Runs in a sandbox of cage serve: starts programs, and reads and writes files below the\n"
	"directory that it is started in, as the keeper of the sandbox asks over stdin. It is not\n"
	"for people.\n"
	"\n"
	"  --verify   tries all known ways out of the sandbox instead, for cage verify ID\n"
	"  --enter    in a container that shares its network with the proxy's: tries them, and runs\n"
	"             CMD only if nothing but the proxy can be reached; 78 if not. FILE has what a\n"
	"             keeper would say of files, which are put into the current directory before\n"
	"  --await    in a container that stands ready: waits for what FILE will say, and runs PROGRAM\n"
	"             with the arguments, variables and files that it has; 78 if it is not as it should be\n";

struct inside {
	int root, signals;
	struct frame_reader in;
	struct job jobs[LIMIT_INSIDE_JOBS];
};

static void say(enum frame_kind kind, uint16_t id, struct slice payload)
{
	char header[FRAME_HEADER];
	frame_header(header, kind, id, payload.len);
	if (!write_all(1, header, sizeof(header)) || !write_all(1, payload.ptr, payload.len))
		_exit(1); /* the keeper is gone, and the sandbox with it */
}

/* ---- frames ---- */

static struct job *find(struct inside *in, uint16_t id)
{
	for (size_t i = 0; i < LIMIT_INSIDE_JOBS; i++)
		if (in->jobs[i].state != JOB_FREE && in->jobs[i].id == id)
			return &in->jobs[i];
	return NULL;
}

static struct job *find_free(struct inside *in)
{
	for (size_t i = 0; i < LIMIT_INSIDE_JOBS; i++)
		if (in->jobs[i].state == JOB_FREE)
			return &in->jobs[i];
	return NULL;
}

static bool begins(enum frame_kind kind)
{
	return kind == FRAME_RUN || kind == FRAME_READ || kind == FRAME_TAKE || kind == FRAME_WRITE ||
	       kind == FRAME_LIST || kind == FRAME_CONNECT || kind == FRAME_USED;
}

static void refuse(uint16_t id, int why)
{
	char text[32];
	int n = snprintf(text, sizeof(text), "error %d", why);
	say(FRAME_DONE, id, slice_of(text, (size_t)n));
}

/* A room that stood before anybody had asked for it gets its variables when somebody has. */
static void set_variable(struct slice text)
{
	char word[LIMIT_INSIDE_FRAME + 1];
	const size_t at = slice_find(text, '=');
	memcpy(word, text.ptr, text.len);
	word[text.len] = '\0';
	if (at == 0 || at >= text.len)
		return;
	word[at] = '\0';
	if (setenv(word, word + at + 1, 1) != 0)
		_exit(1); /* a program without it would not be what was asked for */
}

static void take_frame(struct inside *in, const struct frame *f)
{
	if (f->kind == FRAME_ENV) {
		set_variable(f->payload);
		return;
	}
	struct job *job = find(in, f->id);
	if (!begins(f->kind)) {
		if (job) /* else it has ended already */
			job_go_on(job, f, say);
		return;
	}
	struct job *place = find_free(in);
	if (job || !place)
		refuse(f->id, job ? EEXIST : EBUSY);
	else
		job_begin(place, f, in->root, say);
}

/* False: the keeper is gone, or is none. */
static bool take_input(struct inside *in)
{
	size_t room;
	char *to = frame_room(&in->in, &room);
	ssize_t n = read(0, to, room);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (n <= 0)
		return false;
	frame_arrived(&in->in, (size_t)n);
	struct frame f;
	enum frame_result result;
	while ((result = frame_take(&in->in, &f)) == FRAME_TAKEN)
		take_frame(in, &f);
	return result == FRAME_PARTIAL;
}

/* ---- processes ---- */

static void reap(struct inside *in)
{
	struct signalfd_siginfo info;
	int status;
	pid_t pid;
	while (read(in->signals, &info, sizeof(info)) > 0)
		;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (size_t i = 0; i < LIMIT_INSIDE_JOBS; i++)
			if (in->jobs[i].state == JOB_RUNNING && in->jobs[i].pid == pid)
				job_ended(&in->jobs[i], status, say);
}

/* ---- the loop ---- */

struct watched {
	nfds_t n;
	struct pollfd fds[2 + 2 * LIMIT_INSIDE_JOBS];
	struct job *jobs[2 + 2 * LIMIT_INSIDE_JOBS];
};

static void watch(struct watched *w, struct job *job)
{
	struct job_wait waits[2];
	size_t n = job_waits(job, waits);
	for (size_t i = 0; i < n; i++) {
		w->jobs[w->n] = job;
		w->fds[w->n++] = (struct pollfd){.fd = waits[i].fd, .events = waits[i].events};
	}
}

/* Is it still waited for? A job that came to its end in this pass is not. */
static bool still_waits(const struct job *job, int fd)
{
	struct job_wait waits[2];
	size_t n = job_waits(job, waits);
	return (n > 0 && waits[0].fd == fd) || (n > 1 && waits[1].fd == fd);
}

static bool pass(struct inside *in)
{
	static struct watched w;
	w.n = 2;
	w.fds[0] = (struct pollfd){.fd = 0, .events = POLLIN};
	w.fds[1] = (struct pollfd){.fd = in->signals, .events = POLLIN};
	for (size_t i = 0; i < LIMIT_INSIDE_JOBS; i++)
		watch(&w, &in->jobs[i]);
	if (poll(w.fds, w.n, -1) < 0)
		return errno == EINTR;
	for (nfds_t i = 2; i < w.n; i++)
		if (w.fds[i].revents && still_waits(w.jobs[i], w.fds[i].fd))
			job_ready(w.jobs[i], w.fds[i].fd, say);
	if (w.fds[1].revents)
		reap(in);
	return !w.fds[0].revents || take_input(in);
}

/* ---- the end ---- */

static bool has_programs(const struct inside *in)
{
	for (size_t i = 0; i < LIMIT_INSIDE_JOBS; i++)
		if (in->jobs[i].state == JOB_RUNNING)
			return true;
	return false;
}

/* Those that we have waited for are counted in what the sandbox has used; the others end with it all the same. */
static void end_programs(struct inside *in)
{
	const struct frame cancel = {.kind = FRAME_CANCEL};
	struct pollfd signals = {.fd = in->signals, .events = POLLIN};
	for (size_t i = 0; i < LIMIT_INSIDE_JOBS; i++)
		if (in->jobs[i].state == JOB_RUNNING)
			job_go_on(&in->jobs[i], &cancel, say);
	while (has_programs(in) && poll(&signals, 1, LIMIT_INSIDE_END_MS) > 0)
		reap(in);
}

static bool prepare(struct inside *in)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	signal(SIGPIPE, SIG_IGN);
	umask(022); /* not that of whoever has started the service */
	in->root = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	in->signals = sigprocmask(SIG_BLOCK, &set, NULL) == 0 ? signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK) : -1;
	/* Those whose parents have gone are ours to wait for; nobody in the sandbox may look into this process. */
	return in->root >= 0 && in->signals >= 0 && prctl(PR_SET_CHILD_SUBREAPER, 1) == 0 &&
	       prctl(PR_SET_DUMPABLE, 0) == 0;
}

int main(int argc, char **argv)
{
	static struct inside in;
	if (argc == 2 && strcmp(argv[1], "--verify") == 0)
		return verify_sandbox();
	if (argc > 2 && strcmp(argv[1], "--enter") == 0)
		return enter(argc - 2, argv + 2);
	if (argc > 2 && strcmp(argv[1], "--await") == 0)
		return await_given(argc - 2, argv + 2);
	if (argc > 1) {
		const int asked = usage_asked(argc, argv, "cage-inside", help_text);
		if (asked < 0)
			fputs(help_text, stderr);
		return asked < 0 ? USAGE_WRONG : asked;
	}
	if (!prepare(&in)) {
		perror("cage-inside");
		return 1;
	}
	say(FRAME_READY, 0, SLICE_NONE);
	while (pass(&in))
		;
	end_programs(&in);
	return 0;
}
