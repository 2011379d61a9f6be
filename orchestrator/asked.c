/* Nothing is taken from the queue: who blocked the signals decides what becomes of them. */
#include "orchestrator/asked.h"

sigset_t asked_signals(void)
{
	sigset_t set;
	sigemptyset(&set);
	for (int i = 0; i < 4; i++)
		sigaddset(&set, (const int[]){SIGINT, SIGTERM, SIGHUP, SIGQUIT}[i]);
	return set;
}

bool is_asked_to_end(void)
{
	sigset_t asked = asked_signals(), waiting;
	return sigpending(&waiting) == 0 && sigandset(&asked, &asked, &waiting) == 0 && !sigisemptyset(&asked);
}
