/* Jobs that are connections to a port of the sandbox. */
#include <errno.h>

#include "orchestrator/inside/job_private.h"

void job_begin_link(struct job *j, const char *word, job_say *say)
{
	uint64_t port = 0;
	if (!slice_to_u64(slice_str(word), UINT16_MAX, &port) || port == 0)
		job_done(j, say, "error", EINVAL);
	else if (link_open(&j->link, (uint16_t)port) == 0)
		job_enter(j, JOB_LINKED);
	else
		job_done(j, say, "error", errno);
}

static void look_at_link(struct job *j, job_say *say)
{
	if (link_is_over(&j->link))
		job_done(j, say, "exit", 0);
}

static void give_to_link(struct job *j, job_say *say)
{
	ssize_t n = link_give(&j->link);
	if (n < 0) {
		job_done(j, say, "error", errno);
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
		job_done(j, say, "error", errno);
	} else if (n > 0) {
		j->credit -= (size_t)n;
		say(FRAME_OUT, j->id, slice_of(bytes, (size_t)n));
	} else if (n == 0) {
		say(FRAME_END, j->id, SLICE_NONE);
		look_at_link(j, say);
	}
}

void job_link_ready(struct job *j, job_say *say)
{
	give_to_link(j, say);
	if (j->state == JOB_LINKED && j->link.out == LINK_OPEN && j->credit > 0)
		tell_link(j, say);
}

void job_link_frame(struct job *j, const struct frame *f, job_say *say)
{
	if (f->kind == FRAME_END)
		link_end(&j->link);
	else if (f->kind == FRAME_DATA && !link_take(&j->link, f->payload)) {
		job_done(j, say, "error", EPROTO);
		return;
	}
	give_to_link(j, say);
}
