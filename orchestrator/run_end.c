/* The end of a gate that does not end by itself. It is asked first, since it alone can remove the cgroup of the room, and killed
 * when it is asked again or its time is over: it may be stopped, and then hears nothing. */
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "core/base/clock.h"
#include "orchestrator/run_private.h"

void run_end_gate(struct run *r)
{
	if (r->gate <= 0)
		return;
	switch (r->gate_end) {
	case GATE_GOES_ON:
		r->gate_end = GATE_ASKED;
		r->gate_until_us = clock_mono_us() + LIMIT_GATE_END_MS * 1000ull;
		kill(r->gate, HANDOFF_END_NOW);
		return;
	case GATE_ASKED:
		r->gate_end = GATE_KILLED;
		kill(r->gate, SIGKILL);
		return;
	case GATE_KILLED:
		return;
	}
}

int run_gate_patience(const struct run *r)
{
	const uint64_t now = clock_mono_us();
	if (r->gate_end != GATE_ASKED)
		return -1;
	return now < r->gate_until_us ? (int)((r->gate_until_us - now) / 1000) + 1 : 0;
}

void run_look_at_gate(struct run *r)
{
	if (run_gate_patience(r) == 0)
		run_end_gate(r);
}

void run_await_gate(struct run *r)
{
	const struct timespec moment = {.tv_nsec = 1000000};
	while (r->gate > 0 && waitpid(r->gate, NULL, WNOHANG) == 0) {
		run_look_at_gate(r);
		nanosleep(&moment, NULL);
	}
	r->gate = 0;
}
