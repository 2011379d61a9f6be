/* cage run, as a whole. */
#include "orchestrator/run.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/say.h"
#include "core/base/usage.h"
#include "orchestrator/gate/sweep.h"
#include "orchestrator/run_private.h"
#include "orchestrator/summary.h"
#include "orchestrator/tree_whole.h"

static bool may_enter(enum run_state from, enum run_state to)
{
	switch (to) {
	case RUN_SOCKETS:
		return false;
	case RUN_HELPERS:
		return from == RUN_SOCKETS;
	case RUN_CMD:
		return from == RUN_HELPERS;
	case RUN_ENDED:
		return true;
	}
	return false;
}

void run_enter(struct run *r, enum run_state next)
{
	if (!may_enter(r->state, next))
		abort();
	r->state = next;
}

/* The first end counts. */
void run_end(struct run *r, int code)
{
	if (r->state != RUN_ENDED)
		r->code = code;
	run_enter(r, RUN_ENDED);
}

void run_mark(struct run *r, enum run_work next)
{
	if (next != r->work + 1)
		abort();
	r->work = next;
}

/* Before CMD runs it is kept too, until its start is known to be one. */
void run_note(struct run *r, const char *line)
{
	size_t len = strlen(line);
	if (r->state == RUN_CMD && r->tty.master < 0) {
		fprintf(stderr, "%s\n", line);
		return;
	}
	if (len + 1 > sizeof(r->notes) - r->n_notes)
		return;
	memcpy(r->notes + r->n_notes, line, len);
	r->n_notes += len;
	r->notes[r->n_notes++] = '\n';
}

void run_tell_notes(struct run *r)
{
	fwrite(r->notes, 1, r->n_notes, stderr);
	r->n_notes = 0;
}

/* Blocked, and read from a descriptor; the children have none of it. */
static bool open_signals(struct run *r)
{
	static const int numbers[] = {SIGCHLD, SIGINT,  SIGTERM,  SIGHUP,  SIGQUIT,
				      SIGUSR1, SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT};
	sigset_t set;
	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		sigaddset(&set, numbers[i]);
	r->signals = sigprocmask(SIG_BLOCK, &set, NULL) == 0 ? signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK) : -1;
	if (r->signals < 0)
		say("signals can't be waited for: %s", strerror(errno));
	return r->signals >= 0;
}

/* The launcher's socket, if there is one. */
static bool open_control(struct run *r)
{
	const char *text = r->options->control;
	if (!text || control_open(&r->control, text))
		return true;
	say("--control %s: expected fd:N, a socket of kind SOCK_SEQPACKET", text);
	r->control.fd = -1;
	r->code = EXIT_WRONG;
	return false;
}

static bool adopt_orphans(void)
{
	if (sweep_begin() == 0)
		return true;
	say("what CMD leaves behind could not be ended: %s", strerror(errno));
	return false;
}

/* Without a pid namespace of the room what CMD has started may live on, and go on writing. */
static void end_orphans(struct run *r)
{
	const struct helper *helpers[] = {&r->proxy, &r->dns};
	pid_t ours[2];
	size_t n = 0;
	for (size_t i = 0; i < 2; i++)
		if (helpers[i]->state == HELPER_STARTING || helpers[i]->state == HELPER_READY)
			ours[n++] = helpers[i]->pid;
	if (sweep_end(ours, n))
		return;
	say("processes of the command are left, and can't be ended");
	r->code = EXIT_FAILED;
	if (r->work == WORK_DONE)
		run_mark(r, WORK_GOES_ON);
}

/* A gate that still waits for its go takes no signals. */
static void end_handoff(struct run *r)
{
	const char no_go = HANDOFF_NO_GO;
	if (r->handoff < 0)
		return;
	send(r->handoff, &no_go, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	close(r->handoff);
	r->handoff = -1;
}

/* Those in the room go first, so that nobody is left whom the helpers would have to wait for. */
static void end_programs(struct run *r)
{
	if (r->gate_end == GATE_GOES_ON)
		run_end_gate(r);
	end_handoff(r);
	run_await_gate(r);
	end_orphans(r);
	sockets_close(&r->sockets);
	streams_close(&r->streams);
	tty_close(&r->tty);
	helper_stop(&r->proxy);
	helper_stop(&r->dns);
}

/* A log that is not there any more is no run without decisions. */
static void tell(struct run *r)
{
	struct summary s = {0};
	run_tell_notes(r);
	if (r->work == WORK_NONE)
		return;
	bool ok = summary_read(&s, r->log, r->log_from);
	if (r->dns.state != HELPER_ABSENT)
		ok = summary_read(&s, r->dns_log, r->dns_log_from) && ok;
	if (!ok && r->code == 0)
		r->code = EXIT_FAILED;
	if (ok && !r->options->quiet)
		summary_print(&s, r->options->log);
}

/* It is all that there is of CMD's work. */
static void leave_view(struct run *r)
{
	say("what the command has written is left in %s", r->workspace.view);
	tree_remove(r->dir.hidden);
	r->dir.top[0] = '\0';
}

/* Changes that can't be kept or made are a failure of the run. */
static void keep_changes(struct run *r)
{
	struct workspace *w = &r->workspace;
	bool ok = workspace_keep(w, r->ca_dir, &r->own);
	if (!ok)
		leave_view(r);
	if (ok && w->n_changes == 0) {
		tree_remove(w->patch);
	} else if (ok && r->options->apply && r->code == 0) {
		ok = patch_apply(w->patch, APPLY_PLAIN) == 0;
		say(ok ? "also kept in %s" : "kept in %s", w->patch);
	} else if (ok) {
		say("kept in %s; to make them in the workspace: cage apply %s", w->patch, w->patch);
	}
	if (!ok && r->code == 0)
		r->code = EXIT_FAILED;
}

/* What CMD did to its view of the workspace. */
static void end_workspace(struct run *r)
{
	if (!r->workspace.dir[0])
		return;
	switch (r->work) {
	case WORK_NONE:
		return;
	case WORK_DONE:
		keep_changes(r);
		return;
	case WORK_GOES_ON:
		leave_view(r);
		return;
	}
}

static void clean_up(struct run *r)
{
	rundir_remove(&r->dir);
	workspace_free(&r->workspace);
	own_files_free(&r->own);
	words_wipe(&r->proxy_env);
	words_free(&r->dns_env);
	words_free(&r->room_env);
	if (r->lock >= 0)
		close(r->lock);
	if (r->signals >= 0)
		close(r->signals);
	control_close(&r->control);
}

int run_command(const struct run_options *options)
{
	static struct run r;
	r = (struct run){.options = options, .code = EXIT_FAILED, .lock = -1, .handoff = -1, .signals = -1};
	r.tty.master = r.tty.slave = -1;
	r.control.fd = -1;
	for (int fd = 0; fd < 3; fd++)
		r.streams.ours[fd] = r.streams.theirs[fd] = -1;
	r.proxy.said = r.dns.said = r.proxy.reloads = r.dns.reloads = -1;
	if (open_control(&r) && adopt_orphans() && open_signals(&r) && run_prepare(&r) && run_start_gate(&r))
		run_loop(&r);
	end_programs(&r);
	if (r.streams.failed && r.code == 0)
		r.code = EXIT_FAILED;
	if (r.work != WORK_NONE)
		control_say_usage(&r.control, &r.usage);
	tell(&r);
	end_workspace(&r);
	clean_up(&r);
	return r.code;
}

int cmd_run(int argc, char **argv)
{
	struct run_options options;
	int code = EXIT_WRONG;
	switch (run_options_parse(argc, argv, &options)) {
	case OPTIONS_RUN:
		code = run_command(&options);
		break;
	case OPTIONS_EXIT_OK:
		code = usage_printed();
		break;
	case OPTIONS_EXIT_USAGE:
		break;
	}
	run_options_free(&options);
	return code;
}
