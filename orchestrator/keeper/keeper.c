/* What follows what. */
#include "orchestrator/keeper/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/say.h"
#include "orchestrator/launch.h"

#define EXIT_WRONG 2 /* of cage run: wrong usage, or a wrong policy */
#define EXIT_OOM 137 /* of a shell whose command was killed */
#define SAID_TAIL 2048

/* ---- states ---- */

static uint64_t bound_of(const struct keeper *k, enum keeper_state state)
{
	switch (state) {
	case KEEPER_STARTING:
	case KEEPER_FILLING:
		return LIMIT_KEEPER_START_MS;
	case KEEPER_STANDING:
		return k->spec.stand_ms;
	case KEEPER_RUNNING:
		return k->spec.wall_ms;
	case KEEPER_STOPPING:
		return k->spec.grace_ms + 1;
	case KEEPER_PULLING:
		return LIMIT_KEEPER_PULL_MS;
	case KEEPER_LEAVING:
		return LIMIT_KEEPER_LEAVE_MS;
	case KEEPER_ENDING:
		return LIMIT_KEEPER_END_MS;
	case KEEPER_ENDED:
		break;
	}
	return 0;
}

void keeper_enter(struct keeper *k, enum keeper_state next)
{
	if (next <= k->state && !(next == KEEPER_STARTING && k->state == KEEPER_STARTING))
		abort();
	k->state = next;
	uint64_t ms = bound_of(k, next);
	k->until_us = ms > 0 ? clock_mono_us() + ms * 1000 : 0;
	if (next >= KEEPER_PULLING)
		publish_close(k);
	if (next == KEEPER_ENDING)
		room_end(&k->room);
}

/* ---- the end ---- */

static bool can_pull(const struct keeper *k)
{
	return (k->spec.keep || artifacts_are_wanted(k)) && keeper_takes_jobs(k) && k->wire.in >= 0 && k->wire.out >= 0;
}

/* A cage-inside that is not there yet is not waited for. */
void keeper_leave(struct keeper *k)
{
	bool is_there = k->state >= KEEPER_RUNNING && k->wire.in >= 0 && k->wire.out >= 0;
	keeper_enter(k, is_there ? KEEPER_LEAVING : KEEPER_ENDING);
}

void keeper_finish(struct keeper *k, enum result_state state, const char *reason, const char *message)
{
	struct result *r = &k->result;
	if (r->state == RESULT_NONE) {
		r->state = state;
		snprintf(r->reason, sizeof(r->reason), "%s", reason);
		if (message)
			result_say(r, slice_str(message));
		r->ended_us = clock_wall_us();
	}
	if (k->state >= KEEPER_LEAVING)
		return;
	if (!can_pull(k)) {
		keeper_leave(k);
		return;
	}
	keeper_enter(k, KEEPER_PULLING);
	if (artifacts_are_wanted(k))
		artifacts_begin(k);
	else
		pull_begin(k);
}

void keeper_took_artifacts(struct keeper *k)
{
	if (k->spec.keep)
		pull_begin(k);
	else
		keeper_leave(k);
}

/* The command, if there is one, does nothing more from here on. */
static void finish_by_force(struct keeper *k, enum result_state state, const char *reason)
{
	if (k->spec.cmd.n > 0)
		wire_send(k, FRAME_CANCEL, 0, SLICE_NONE);
	keeper_finish(k, state, reason, NULL);
}

void keeper_stop(struct keeper *k, bool is_deleted)
{
	if (is_deleted)
		k->spec.keep = false;
	if (k->state == KEEPER_RUNNING && k->spec.cmd.n > 0) {
		wire_send(k, FRAME_STOP, 0, SLICE_NONE);
		keeper_enter(k, KEEPER_STOPPING);
	} else if (k->state < KEEPER_STOPPING || (k->state == KEEPER_PULLING && is_deleted)) {
		keeper_finish(k, RESULT_KILLED, "asked", NULL);
	}
}

void keeper_time_is_over(struct keeper *k)
{
	switch (k->state) {
	case KEEPER_STARTING:
	case KEEPER_FILLING:
		keeper_finish(k, RESULT_FAILED, "room.failed", "the room was not ready in time");
		break;
	case KEEPER_STANDING:
		keeper_finish(k, RESULT_KILLED, "asked", "nobody has asked for it");
		break;
	case KEEPER_RUNNING:
		finish_by_force(k, RESULT_TIMED_OUT, "time.wall");
		break;
	case KEEPER_STOPPING:
		finish_by_force(k, RESULT_KILLED, "asked");
		break;
	case KEEPER_PULLING:
		keeper_leave(k);
		break;
	case KEEPER_LEAVING:
		keeper_enter(k, KEEPER_ENDING);
		break;
	case KEEPER_ENDING:
		k->until_us = 0;
		room_kill(&k->room);
		break;
	case KEEPER_ENDED:
		break;
	}
}

/* ---- the command ---- */

static void command_done(struct keeper *k, const struct frame *f)
{
	struct result *r = &k->result;
	enum done_how how;
	uint64_t number;
	if (!done_parse(f->payload, &how, &number)) {
		keeper_finish(k, RESULT_FAILED, "room.failed", "cage-inside said what it never says");
		return;
	}
	if (k->state == KEEPER_RUNNING && how != DONE_ERROR)
		keeper_has_begun(k); /* it was over before anybody saw that it ran */
	client_send(k, FRAME_DONE, 0, f->payload);
	r->has_exit = how == DONE_EXIT;
	r->exit = how == DONE_EXIT ? number : 0;
	r->signal = how == DONE_SIGNAL ? number : 0;
	if (k->state == KEEPER_PULLING)
		return; /* it was ended by force, and what it wrote is being taken out */
	if (k->state == KEEPER_STOPPING)
		keeper_finish(k, RESULT_KILLED, "asked", NULL);
	else if (how == DONE_ERROR)
		keeper_finish(k, RESULT_FAILED, "room.failed", strerror((int)number));
	else
		keeper_finish(k, how == DONE_EXIT && number == 0 ? RESULT_SUCCEEDED : RESULT_FAILED,
			      how == DONE_EXIT ? "exit" : "signal", NULL);
}

static void command_heard(struct keeper *k, struct task *t, const struct frame *f)
{
	if (f->kind == FRAME_DONE) {
		command_done(k, f);
	} else if (f->kind == FRAME_OUT || f->kind == FRAME_ERR) {
		output_put(&k->output, f->kind, f->payload, &k->result);
		wire_took(k, t, f->payload.len);
	}
}

static void start_command(struct keeper *k)
{
	const struct words *cmd = &k->spec.cmd;
	char words[LIMIT_INSIDE_FRAME];
	size_t n = strlen(k->spec.dir) + 1;
	memcpy(words, k->spec.dir, n);
	for (size_t i = 0; i < cmd->n; i++) {
		size_t len = strlen(cmd->list[i]) + 1;
		memcpy(words + n, cmd->list[i], len); /* it fits: spec_parse() has looked */
		n += len;
	}
	struct task *t = wire_begin_command(k, command_heard);
	if (t)
		wire_send(k, FRAME_RUN, t->id, slice_of(words, n));
}

void keeper_is_ready(struct keeper *k)
{
	if (k->state != KEEPER_STARTING)
		return;
	if (k->spec.stand_ms > 0) {
		keeper_enter(k, KEEPER_STANDING);
		client_send(k, FRAME_STANDS, 0, SLICE_NONE);
		return;
	}
	keeper_enter(k, KEEPER_FILLING);
	fill_begin(k);
}

void keeper_is_filled(struct keeper *k)
{
	keeper_enter(k, KEEPER_RUNNING);
	if (k->spec.aci.n == 0) /* a container group is made only now: cage-aci tells when its command begins */
		k->result.began_us = clock_wall_us();
	if (k->spec.cmd.n > 0)
		start_command(k);
	client_tell_ready(k);
}

void keeper_has_begun(struct keeper *k)
{
	if (k->result.began_us > 0 || !keeper_takes_jobs(k))
		return;
	k->result.began_us = clock_wall_us();
	client_tell_ready(k);
}

/* ---- how full the workspace is ---- */

static void nothing_heard(struct keeper *k, struct task *t, const struct frame *f)
{
	(void)k;
	(void)t;
	(void)f;
}

void keeper_is_full(struct keeper *k, uint64_t bytes)
{
	if (bytes > k->result.disk_peak)
		k->result.disk_peak = bytes;
}

void keeper_sample(struct keeper *k)
{
	struct task *t = keeper_takes_jobs(k) ? wire_begin(k, nothing_heard, NULL) : NULL;
	if (t)
		wire_send(k, FRAME_USED, t->id, SLICE_NONE);
	k->sample_us = clock_mono_us() + LIMIT_KEEPER_SAMPLE_MS * 1000ull;
}

/* ---- the end of the room ---- */

static struct slice last_lines(struct slice text)
{
	while (slice_ends(text, SLICE("\n")))
		text.len--;
	struct slice rest = text;
	size_t at = text.len;
	for (int i = 0; i < LIMIT_KEEPER_LINES && at > 0; i++) {
		at = slice_rfind(rest, '\n');
		if (at == rest.len)
			return text;
		rest = slice_head(rest, at);
	}
	return slice_from(text, at + 1);
}

/* What cage run has said last. */
static void quote_said(struct result *r)
{
	char bytes[SAID_TAIL];
	int fd = open("said", O_RDONLY | O_CLOEXEC);
	off_t size = fd >= 0 ? lseek(fd, 0, SEEK_END) : 0;
	off_t from = size > SAID_TAIL ? size - SAID_TAIL : 0;
	ssize_t n = fd >= 0 ? pread(fd, bytes, sizeof(bytes), from) : 0;
	fd_close(&fd);
	struct slice tail = last_lines(slice_of(bytes, n > 0 ? (size_t)n : 0));
	if (tail.len > 0)
		result_say(r, tail);
}

static void describe_room(struct keeper *k)
{
	const int status = k->room.status;
	char how[64], text[160];
	const bool has_run = k->result.began_us > 0;
	const bool is_wrong = !has_run && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_WRONG;
	status_describe(status, how, sizeof(how));
	snprintf(text, sizeof(text), "%s: cage run %s",
		 has_run ? "the room has ended before its command" : "the room could not be made", how);
	if (k->state == KEEPER_STOPPING)
		keeper_finish(k, RESULT_KILLED, "asked", NULL);
	else
		keeper_finish(k, RESULT_FAILED, is_wrong ? "policy" : "room.failed", text);
}

/* The kernel has killed somebody in it for want of memory, and that was its end. */
static void look_for_oom(struct result *r)
{
	const bool is_killed = r->signal == 9 || (r->has_exit && r->exit == EXIT_OOM);
	const bool is_room = strcmp(r->reason, "room.failed") == 0;
	if (r->oom > 0 && r->state == RESULT_FAILED && (is_killed || is_room))
		snprintf(r->reason, sizeof(r->reason), "oom");
}

void keeper_room_ended(struct keeper *k)
{
	struct result *r = &k->result;
	const bool is_known = r->state != RESULT_NONE;
	if (!is_known) {
		k->spec.keep = false; /* there is nobody who could give it out */
		describe_room(k);
	}
	if (r->state == RESULT_FAILED && !is_known && WIFEXITED(k->room.status))
		quote_said(r); /* who was killed has not said why */
	look_for_oom(r);
	artifacts_end(k);
	if (k->spec.keep)
		pull_end(k);
	keeper_enter(k, KEEPER_ENDED);
}
