/* What begins a job, goes on with it and ends it; its files are here too. */
#include "orchestrator/inside/job_private.h"

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

void job_shut(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static bool may_enter(enum job_state from, enum job_state to)
{
	return to == JOB_FREE || (to == JOB_LEAVING ? from == JOB_RUNNING : from == JOB_FREE);
}

void job_enter(struct job *j, enum job_state next)
{
	if (!may_enter(j->state, next))
		abort();
	if (next == JOB_FREE) {
		job_shut(&j->out);
		job_shut(&j->err);
		beneath_drop(&j->file);
		link_close(&j->link);
	}
	j->state = next;
}

void job_done(struct job *j, job_say *say, const char *how, int number)
{
	char text[32];
	int n = snprintf(text, sizeof(text), "%s %d", how, number);
	job_enter(j, JOB_FREE);
	say(FRAME_DONE, j->id, slice_of(text, (size_t)n));
}

int job_say_used(const struct job *j, job_say *say)
{
	struct statfs fs = {0};
	char text[32];
	int fd = beneath_open_dir(j->root, ".");
	int why = fd >= 0 && fstatfs(fd, &fs) == 0 ? 0 : errno;
	job_shut(&fd);
	if (why != 0)
		return why;
	const unsigned long long used = (fs.f_blocks - fs.f_bfree) * (unsigned long long)fs.f_bsize;
	int n = snprintf(text, sizeof(text), "%llu", used);
	say(FRAME_USED, j->id, slice_of(text, (size_t)n));
	return 0;
}

static void tell_used(struct job *j, job_say *say)
{
	int why = job_say_used(j, say);
	job_done(j, say, why ? "error" : "exit", why);
}

/* ---- words ---- */

/* Words of a payload, which ends with a NUL byte of the reader's. At most n - 1, then NULL. */
static size_t split(char *text, size_t len, char **words, size_t n)
{
	size_t count = 0;
	for (char *at = text; at < text + len && count < n - 1; at += strlen(at) + 1)
		words[count++] = at;
	words[count] = NULL;
	return count;
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
		job_link_ready(j, say);
	else if (j->credit > 0 && job_tell(j, fd == j->out ? &j->out : &j->err, say) == TOLD_ALL &&
		 j->state == JOB_SENDING)
		job_done(j, say, "exit", 0);
}

/* ---- files ---- */

static void send_file(struct job *j, int fd, job_say *say)
{
	if (fd < 0) {
		job_done(j, say, "error", errno);
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
		job_done(j, say, "error", errno);
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
		job_done(j, say, "error", EINVAL);
	else if (f->kind == FRAME_RUN)
		job_run(j, words, say);
	else if (f->kind == FRAME_READ)
		send_file(j, beneath_open_file(root, words[0]), say);
	else if (f->kind == FRAME_TAKE)
		send_file(j, beneath_open_plain(root, words[0]), say);
	else if (f->kind == FRAME_LIST)
		send_file(j, list_make(root, words[0]), say);
	else if (f->kind == FRAME_CONNECT)
		job_begin_link(j, words[0], say);
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
			job_done(j, say, "error", errno);
			return;
		}
		data = slice_from(data, (size_t)n);
	}
}

static void keep_file(struct job *j, job_say *say)
{
	if (beneath_keep(&j->file) == 0)
		job_done(j, say, "exit", 0);
	else
		job_done(j, say, "error", errno);
}

/* The end of a program is told when it is there. */
static void cancel(struct job *j, job_say *say)
{
	if (j->state == JOB_RUNNING)
		job_signal(j, SIGKILL);
	else if (j->state == JOB_LEAVING)
		job_tell_end(j, say);
	else
		job_done(j, say, "error", ECANCELED);
}

static void take_more(struct job *j, const struct frame *f, job_say *say)
{
	j->credit += frame_more(f->payload);
	if (j->credit > LIMIT_INSIDE_WINDOW)
		j->credit = LIMIT_INSIDE_WINDOW;
	if (j->state == JOB_LEAVING)
		job_leave(j, say);
}

void job_go_on(struct job *j, const struct frame *f, job_say *say)
{
	if (f->kind == FRAME_CANCEL)
		cancel(j, say);
	else if (f->kind == FRAME_MORE)
		take_more(j, f, say);
	else if (f->kind == FRAME_STOP && j->state == JOB_RUNNING)
		job_signal(j, SIGTERM);
	else if (j->state == JOB_LINKED)
		job_link_frame(j, f, say);
	else if (j->state == JOB_TAKING && f->kind == FRAME_DATA)
		take_data(j, f->payload, say);
	else if (j->state == JOB_TAKING && f->kind == FRAME_END)
		keep_file(j, say);
}
