/* Jobs: programs, and files beneath the root. */
#include "orchestrator/inside/job.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void shut(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static bool may_enter(enum job_state from, enum job_state to)
{
	return to == JOB_FREE || from == JOB_FREE;
}

static void job_enter(struct job *j, enum job_state next)
{
	if (!may_enter(j->state, next))
		abort();
	if (next == JOB_FREE) {
		shut(&j->out);
		shut(&j->err);
		beneath_drop(&j->file);
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

static enum told tell(struct job *j, int *fd, job_say *say)
{
	char bytes[LIMIT_INSIDE_FRAME];
	ssize_t n = read(*fd, bytes, sizeof(bytes));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return TOLD_NOTHING;
	if (n <= 0) {
		shut(fd);
		return TOLD_ALL;
	}
	say(fd == &j->out ? FRAME_OUT : FRAME_ERR, j->id, slice_of(bytes, (size_t)n));
	return TOLD_SOME;
}

void job_tell(struct job *j, int *fd, job_say *say)
{
	if (tell(j, fd, say) == TOLD_ALL && j->state == JOB_SENDING)
		done(j, say, "exit", 0);
}

/* What is in a pipe by then; who still writes to it is somebody in the background. */
static void tell_rest(struct job *j, int *fd, job_say *say)
{
	for (int i = 0; i < LIMIT_INSIDE_REST && *fd >= 0 && tell(j, fd, say) == TOLD_SOME; i++)
		;
}

void job_ended(struct job *j, int status, job_say *say)
{
	j->pid = 0;
	tell_rest(j, &j->out, say);
	tell_rest(j, &j->err, say);
	if (WIFSIGNALED(status))
		done(j, say, "signal", WTERMSIG(status));
	else
		done(j, say, "exit", WEXITSTATUS(status));
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

static char letter_of(mode_t mode)
{
	return S_ISREG(mode) ? 'f' : S_ISDIR(mode) ? 'd' : S_ISLNK(mode) ? 'l' : 'o';
}

static bool write_entry(int to, int dir, const char *name)
{
	struct stat st;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return true; /* it is gone */
	bool is_file = S_ISREG(st.st_mode);
	return dprintf(to, "%c %lld %s", letter_of(st.st_mode), is_file ? (long long)st.st_size : 0, name) > 0 &&
	       write(to, "", 1) == 1;
}

static bool is_listed(const char *name)
{
	return strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* A file in memory with the list in it. */
static int make_list(int root, const char *path)
{
	int fd = beneath_open_dir(root, path), to = memfd_create("list", MFD_CLOEXEC);
	DIR *list = fd < 0 ? NULL : fdopendir(fd);
	bool ok = list && to >= 0;
	size_t n = 0;
	for (struct dirent *e = ok ? readdir(list) : NULL; e && ok; e = readdir(list))
		if (is_listed(e->d_name))
			ok = n++ < LIMIT_INSIDE_LIST ? write_entry(to, fd, e->d_name) : (errno = E2BIG, false);
	int why = errno;
	if (list)
		closedir(list);
	else if (fd >= 0)
		close(fd);
	if (ok && lseek(to, 0, SEEK_SET) == 0)
		return to;
	shut(&to);
	errno = why;
	return -1;
}

/* ---- frames ---- */

void job_begin(struct job *j, const struct frame *f, int root, job_say *say)
{
	char text[LIMIT_INSIDE_FRAME + 1], *words[LIMIT_INSIDE_WORDS];
	memcpy(text, f->payload.ptr, f->payload.len);
	text[f->payload.len] = '\0';
	*j = (struct job){.id = f->id, .out = -1, .err = -1, .file = {.fd = -1, .dir = -1}};
	size_t n = split(text, f->payload.len, words, LIMIT_INSIDE_WORDS);
	if (n == 0 || (f->kind == FRAME_RUN ? n < 2 || n == LIMIT_INSIDE_WORDS - 1 : n != 1))
		done(j, say, "error", EINVAL);
	else if (f->kind == FRAME_RUN)
		run(j, words, say);
	else if (f->kind == FRAME_READ)
		send_file(j, beneath_open_file(root, words[0]), say);
	else if (f->kind == FRAME_LIST)
		send_file(j, make_list(root, words[0]), say);
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

/* It alone as well: it may not lead a session yet. Its end is told when it is there. */
static void end_program(const struct job *j)
{
	kill(-j->pid, SIGKILL);
	kill(j->pid, SIGKILL);
}

void job_go_on(struct job *j, const struct frame *f, job_say *say)
{
	if (f->kind == FRAME_CANCEL && j->state == JOB_RUNNING)
		end_program(j);
	else if (f->kind == FRAME_CANCEL)
		done(j, say, "error", ECANCELED);
	else if (j->state == JOB_TAKING && f->kind == FRAME_DATA)
		take_data(j, f->payload, say);
	else if (j->state == JOB_TAKING && f->kind == FRAME_END)
		keep_file(j, say);
}
