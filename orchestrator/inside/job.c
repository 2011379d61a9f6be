/* Jobs: programs, files beneath the root, and connections. */
#include "orchestrator/inside/job.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "orchestrator/inside/list.h"

static void shut(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static bool may_enter(enum job_state from, enum job_state to)
{
	return to == JOB_FREE || (to == JOB_LEAVING ? from == JOB_RUNNING : from == JOB_FREE);
}

static void job_enter(struct job *j, enum job_state next)
{
	if (!may_enter(j->state, next))
		abort();
	if (next == JOB_FREE) {
		shut(&j->out);
		shut(&j->err);
		beneath_drop(&j->file);
		link_close(&j->link);
	}
	j->state = next;
}

static void done(struct job *j, job_say *say, const char *how, int number)
{
	char text[32];
	int n = snprintf(text, sizeof(text), "%s %d", how, number);
	job_enter(j, JOB_FREE);
	say(FRAME_DONE, j->id, slice_of(text, (size_t)n));
}

/* How full the file system of the root is: it has no other files than those of the sandbox. 0, or an errno. */
static int say_used(const struct job *j, job_say *say)
{
	struct statfs fs = {0};
	char text[32];
	int fd = beneath_open_dir(j->root, ".");
	int why = fd >= 0 && fstatfs(fd, &fs) == 0 ? 0 : errno;
	shut(&fd);
	if (why != 0)
		return why;
	const unsigned long long used = (fs.f_blocks - fs.f_bfree) * (unsigned long long)fs.f_bsize;
	int n = snprintf(text, sizeof(text), "%llu", used);
	say(FRAME_USED, j->id, slice_of(text, (size_t)n));
	return 0;
}

static void tell_used(struct job *j, job_say *say)
{
	int why = say_used(j, say);
	done(j, say, why ? "error" : "exit", why);
}

/* ---- programs ---- */

/* Words of a payload, which ends with a NUL byte of the reader's. At most n - 1, then NULL. */
static size_t split(char *text, size_t len, char **words, size_t n)
{
	size_t count = 0;
	for (char *at = text; at < text + len && count < n - 1; at += strlen(at) + 1)
		words[count++] = at;
	words[count] = NULL;
	return count;
}

static _Noreturn void become(char **words, const int out[2], const int err[2])
{
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setsid();
	int input = open("/dev/null", O_RDONLY);
	if (input < 0 || dup2(input, 0) < 0 || dup2(out[1], 1) < 0 || dup2(err[1], 2) < 0)
		_exit(126);
	if (close_range(3, ~0u, 0) != 0)
		_exit(126);
	if (words[0][0] && chdir(words[0]) != 0) {
		dprintf(2, "%s: %s\n", words[0], strerror(errno));
		_exit(126);
	}
	execvp(words[1], words + 1);
	dprintf(2, "%s: %s\n", words[1], strerror(errno));
	_exit(127);
}

static int start(char **words, const int out[2], const int err[2])
{
	pid_t pid = fork();
	if (pid == 0)
		become(words, out, err);
	return pid;
}

static void run(struct job *j, char **words, job_say *say)
{
	int out[2], err[2];
	if (pipe2(out, O_CLOEXEC | O_NONBLOCK) != 0) {
		done(j, say, "error", errno);
		return;
	}
	if (pipe2(err, O_CLOEXEC | O_NONBLOCK) != 0) {
		close(out[0]);
		close(out[1]);
		done(j, say, "error", errno);
		return;
	}
	/* What the program writes to must not be non-blocking for it. */
	fcntl(out[1], F_SETFL, 0);
	fcntl(err[1], F_SETFL, 0);
	j->pid = start(words, out, err);
	int why = errno;
	j->out = out[0];
	j->err = err[0];
	close(out[1]);
	close(err[1]);
	if (j->pid < 0)
		done(j, say, "error", why);
	else
		job_enter(j, JOB_RUNNING);
}

/* ---- telling ---- */

enum told { TOLD_SOME, TOLD_NOTHING, TOLD_ALL };

/* As much as the window lets through: there is some room in it. */
static enum told tell(struct job *j, int *fd, job_say *say)
{
	char bytes[LIMIT_INSIDE_FRAME];
	ssize_t n = read(*fd, bytes, j->credit < sizeof(bytes) ? j->credit : sizeof(bytes));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return TOLD_NOTHING;
	if (n <= 0) {
		shut(fd);
		return TOLD_ALL;
	}
	j->credit -= (size_t)n;
	say(fd == &j->out ? FRAME_OUT : FRAME_ERR, j->id, slice_of(bytes, (size_t)n));
	return TOLD_SOME;
}

/* What is in a pipe by then; who still writes to it is somebody in the background. False: the window is full. */
static bool tell_rest(struct job *j, int *fd, job_say *say)
{
	enum told told = TOLD_SOME;
	while (*fd >= 0 && told == TOLD_SOME && j->rest > 0 && j->credit > 0) {
		told = tell(j, fd, say);
		j->rest--;
	}
	if (*fd >= 0 && told == TOLD_SOME && j->rest > 0)
		return false;
	shut(fd);
	return true;
}

static void tell_end(struct job *j, job_say *say)
{
	say_used(j, say);
	if (WIFSIGNALED(j->status))
		done(j, say, "signal", WTERMSIG(j->status));
	else
		done(j, say, "exit", WEXITSTATUS(j->status));
}

static void leave(struct job *j, job_say *say)
{
	if (tell_rest(j, &j->out, say) && tell_rest(j, &j->err, say))
		tell_end(j, say);
}

void job_ended(struct job *j, int status, job_say *say)
{
	j->pid = 0;
	j->status = status;
	j->rest = LIMIT_INSIDE_REST;
	job_enter(j, JOB_LEAVING);
	leave(j, say);
}

/* ---- connections ---- */

static void begin_link(struct job *j, const char *word, job_say *say)
{
	uint64_t port = 0;
	if (!slice_to_u64(slice_str(word), UINT16_MAX, &port) || port == 0)
		done(j, say, "error", EINVAL);
	else if (link_open(&j->link, (uint16_t)port) == 0)
		job_enter(j, JOB_LINKED);
	else
		done(j, say, "error", errno);
}

static void look_at_link(struct job *j, job_say *say)
{
	if (link_is_over(&j->link))
		done(j, say, "exit", 0);
}

static void give_to_link(struct job *j, job_say *say)
{
	ssize_t n = link_give(&j->link);
	if (n < 0) {
		done(j, say, "error", errno);
		return;
	}
	uint32_t more = (uint32_t)n;
	if (more > 0)
		say(FRAME_MORE, j->id, slice_of(&more, sizeof(more)));
	look_at_link(j, say);
}

static void tell_link(struct job *j, job_say *say)
{
	char bytes[LIMIT_INSIDE_FRAME];
	ssize_t n = link_read(&j->link, bytes, j->credit < sizeof(bytes) ? j->credit : sizeof(bytes));
	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		done(j, say, "error", errno);
	} else if (n > 0) {
		j->credit -= (size_t)n;
		say(FRAME_OUT, j->id, slice_of(bytes, (size_t)n));
	} else if (n == 0) {
		say(FRAME_END, j->id, SLICE_NONE);
		look_at_link(j, say);
	}
}

static void link_ready(struct job *j, job_say *say)
{
	give_to_link(j, say);
	if (j->state == JOB_LINKED && j->link.out == LINK_OPEN && j->credit > 0)
		tell_link(j, say);
}

static void link_frame(struct job *j, const struct frame *f, job_say *say)
{
	if (f->kind == FRAME_END)
		link_end(&j->link);
	else if (f->kind == FRAME_DATA && !link_take(&j->link, f->payload)) {
		done(j, say, "error", EPROTO);
		return;
	}
	give_to_link(j, say);
}

/* ---- what is waited for ---- */

static void add_wait(struct job_wait *out, size_t *n, int fd, short events)
{
	if (fd >= 0 && events)
		out[(*n)++] = (struct job_wait){fd, events};
}

size_t job_waits(const struct job *j, struct job_wait out[2])
{
	size_t n = 0;
	if (j->state == JOB_LINKED)
		add_wait(out, &n, j->link.fd, link_events(&j->link, j->credit > 0));
	else if ((j->state == JOB_RUNNING || j->state == JOB_SENDING) && j->credit > 0) {
		add_wait(out, &n, j->out, POLLIN);
		add_wait(out, &n, j->err, POLLIN);
	}
	return n;
}

void job_ready(struct job *j, int fd, job_say *say)
{
	if (j->state == JOB_LINKED)
		link_ready(j, say);
	else if (j->credit > 0 && tell(j, fd == j->out ? &j->out : &j->err, say) == TOLD_ALL && j->state == JOB_SENDING)
		done(j, say, "exit", 0);
}

/* ---- files ---- */

static void send_file(struct job *j, int fd, job_say *say)
{
	if (fd < 0) {
		done(j, say, "error", errno);
		return;
	}
	j->out = fd;
	job_enter(j, JOB_SENDING);
}

static void take_file(struct job *j, int root, const char *path, job_say *say)
{
	if (beneath_create(root, path, &j->file) == 0)
		job_enter(j, JOB_TAKING);
	else
		done(j, say, "error", errno);
}

/* ---- frames ---- */

static bool has_good_words(enum frame_kind kind, size_t n)
{
	if (kind == FRAME_USED)
		return n == 0;
	return kind == FRAME_RUN ? n >= 2 && n < LIMIT_INSIDE_WORDS - 1 : n == 1;
}

void job_begin(struct job *j, const struct frame *f, int root, job_say *say)
{
	char text[LIMIT_INSIDE_FRAME + 1], *words[LIMIT_INSIDE_WORDS];
	memcpy(text, f->payload.ptr, f->payload.len);
	text[f->payload.len] = '\0';
	*j = (struct job){.id = f->id,
			  .root = root,
			  .out = -1,
			  .err = -1,
			  .credit = LIMIT_INSIDE_WINDOW,
			  .file = {.fd = -1, .dir = -1},
			  .link = {.fd = -1}};
	size_t n = split(text, f->payload.len, words, LIMIT_INSIDE_WORDS);
	if (!has_good_words(f->kind, n))
		done(j, say, "error", EINVAL);
	else if (f->kind == FRAME_RUN)
		run(j, words, say);
	else if (f->kind == FRAME_READ)
		send_file(j, beneath_open_file(root, words[0]), say);
	else if (f->kind == FRAME_LIST)
		send_file(j, list_make(root, words[0]), say);
	else if (f->kind == FRAME_CONNECT)
		begin_link(j, words[0], say);
	else if (f->kind == FRAME_USED)
		tell_used(j, say);
	else
		take_file(j, root, words[0], say);
}

static void take_data(struct job *j, struct slice data, job_say *say)
{
	while (data.len > 0) {
		ssize_t n = write(j->file.fd, data.ptr, data.len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			done(j, say, "error", errno);
			return;
		}
		data = slice_from(data, (size_t)n);
	}
}

static void keep_file(struct job *j, job_say *say)
{
	if (beneath_keep(&j->file) == 0)
		done(j, say, "exit", 0);
	else
		done(j, say, "error", errno);
}

/* It alone as well: it may not lead a session yet. */
static void signal_program(const struct job *j, int number)
{
	if (kill(-j->pid, number) != 0)
		kill(j->pid, number);
}

/* The end of a program is told when it is there. */
static void cancel(struct job *j, job_say *say)
{
	if (j->state == JOB_RUNNING)
		signal_program(j, SIGKILL);
	else if (j->state == JOB_LEAVING)
		tell_end(j, say);
	else
		done(j, say, "error", ECANCELED);
}

static void take_more(struct job *j, const struct frame *f, job_say *say)
{
	j->credit += frame_more(f->payload);
	if (j->credit > LIMIT_INSIDE_WINDOW)
		j->credit = LIMIT_INSIDE_WINDOW;
	if (j->state == JOB_LEAVING)
		leave(j, say);
}

void job_go_on(struct job *j, const struct frame *f, job_say *say)
{
	if (f->kind == FRAME_CANCEL)
		cancel(j, say);
	else if (f->kind == FRAME_MORE)
		take_more(j, f, say);
	else if (f->kind == FRAME_STOP && j->state == JOB_RUNNING)
		signal_program(j, SIGTERM);
	else if (j->state == JOB_LINKED)
		link_frame(j, f, say);
	else if (j->state == JOB_TAKING && f->kind == FRAME_DATA)
		take_data(j, f->payload, say);
	else if (j->state == JOB_TAKING && f->kind == FRAME_END)
		keep_file(j, say);
}
