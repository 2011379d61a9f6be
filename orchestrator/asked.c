/* Nothing is taken from the queue: who blocked the signals decides what becomes of them. */
#include "orchestrator/asked.h"

#include <stddef.h>

static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
#define N (sizeof(numbers) / sizeof(numbers[0]))

sigset_t asked_signals(void)
{
	sigset_t set;
	sigemptyset(&set);
	for (size_t i = 0; i < N; i++)
		sigaddset(&set, numbers[i]);
	return set;
}

int asked_by(void)
{
	sigset_t waiting;
	if (sigpending(&waiting) != 0)
		return 0;
	for (size_t i = 0; i < N; i++)
		if (sigismember(&waiting, numbers[i]) == 1)
			return numbers[i];
	return 0;
}

bool is_asked_to_end(void)
{
	return asked_by() != 0;
}
