/* How a job has ended, as a keeper says it, who has it out of a sandbox. Promises: a number is one that such an end can have, and
 * what was understood is understood as the same when it is written again. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>

#include "orchestrator/service/link.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const words[] = {[JOB_EXIT] = "exit", [JOB_SIGNAL] = "signal", [JOB_ERROR] = "error"};
	struct slice input = fuzz_copy(slice_of(data, size));
	struct job_end end = job_end_parse(input);
	char text[32];
	int n = snprintf(text, sizeof(text), "%s %d", words[end.how], end.number);
	struct job_end again = job_end_parse(slice_of(text, (size_t)n));
	PROMISE(again.how == end.how && again.number == end.number);
	PROMISE(end.how != JOB_EXIT || (end.number >= 0 && end.number <= 255));
	PROMISE(end.how != JOB_SIGNAL || (end.number > 0 && end.number < _NSIG));
	PROMISE(end.how != JOB_ERROR || end.number > 0);
	PROMISE(slice_starts(input, slice_str(words[end.how])) || end.number == EPROTO);
	fuzz_free(&input);
	return 0;
}
