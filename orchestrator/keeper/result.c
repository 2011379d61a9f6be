/* The same table for reading and writing. */
#include "orchestrator/keeper/result.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include "core/base/text.h"

static const char *const states[] = {[RESULT_NONE] = "none",
				     [RESULT_SUCCEEDED] = "succeeded",
				     [RESULT_FAILED] = "failed",
				     [RESULT_TIMED_OUT] = "timed_out",
				     [RESULT_KILLED] = "killed"};

static const struct number {
	struct slice name;
	size_t offset;
} numbers[] = {{WORD("signal"), offsetof(struct result, signal)},
	       {WORD("began_us"), offsetof(struct result, began_us)},
	       {WORD("ended_us"), offsetof(struct result, ended_us)},
	       {WORD("cpu_us"), offsetof(struct result, cpu_us)},
	       {WORD("memory_peak"), offsetof(struct result, memory_peak)},
	       {WORD("disk_peak"), offsetof(struct result, disk_peak)},
	       {WORD("oom"), offsetof(struct result, oom)},
	       {WORD("output_bytes"), offsetof(struct result, output_bytes)},
	       {WORD("output_lost"), offsetof(struct result, output_lost)},
	       {WORD("marks"), offsetof(struct result, marks)},
	       {WORD("memory_average"), offsetof(struct result, memory_average)},
	       {WORD("received"), offsetof(struct result, received)},
	       {WORD("sent"), offsetof(struct result, sent)},
	       {WORD("metered_s"), offsetof(struct result, metered_s)},
	       {WORD("billed_s"), offsetof(struct result, billed_s)},
	       {WORD("vcpu_us"), offsetof(struct result, vcpu_us)},
	       {WORD("gb_us"), offsetof(struct result, gb_us)}};

#define N_NUMBERS (sizeof(numbers) / sizeof(numbers[0]))

const char *result_state_name(enum result_state state)
{
	return states[state];
}

/* ---- writing ---- */

static void put(struct text *t, struct slice name, struct slice value)
{
	text_put(t, name);
	text_put_char(t, '=');
	text_put(t, value);
	text_put_char(t, '\n');
}

static void put_number(struct text *t, struct slice name, uint64_t value)
{
	char digits[24];
	int n = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)value);
	put(t, name, slice_of(digits, (size_t)n));
}

size_t result_format(const struct result *r, char out[LIMIT_KEEPER_RESULT])
{
	struct text t = text_in(out, LIMIT_KEEPER_RESULT);
	put(&t, SLICE("state"), slice_str(states[r->state]));
	put(&t, SLICE("reason"), slice_str(r->reason));
	if (r->has_exit)
		put_number(&t, SLICE("exit"), r->exit);
	for (size_t i = 0; i < N_NUMBERS; i++)
		put_number(&t, numbers[i].name, *(const uint64_t *)((const char *)r + numbers[i].offset));
	put(&t, SLICE("message"), slice_str(r->message));
	return t.len;
}

void result_say(struct result *r, struct slice text)
{
	size_t n = text.len < LIMIT_KEEPER_MESSAGE ? text.len : LIMIT_KEEPER_MESSAGE;
	for (size_t i = 0; i < n; i++)
		r->message[i] = text.ptr[i] >= ' ' && text.ptr[i] <= '~' ? text.ptr[i]
				: text.ptr[i] == '\n'                    ? ' '
									 : '?';
	r->message[n] = '\0';
}

/* ---- reading ---- */

static bool take_state(struct result *r, struct slice value)
{
	for (size_t i = 1; i < sizeof(states) / sizeof(states[0]); i++)
		if (slice_eq(value, slice_str(states[i])))
			r->state = (enum result_state)i;
	return r->state != RESULT_NONE;
}

static bool take_reason(struct result *r, struct slice value)
{
	for (size_t i = 0; i < value.len; i++)
		if ((value.ptr[i] < 'a' || value.ptr[i] > 'z') && value.ptr[i] != '.' && value.ptr[i] != '_')
			return false;
	if (value.len == 0 || value.len >= sizeof(r->reason))
		return false;
	memcpy(r->reason, value.ptr, value.len);
	r->reason[value.len] = '\0';
	return true;
}

bool result_take_number(struct result *r, struct slice name, struct slice value)
{
	for (size_t i = 0; i < N_NUMBERS; i++)
		if (slice_eq(name, numbers[i].name))
			return slice_to_u64(value, UINT64_MAX, (uint64_t *)((char *)r + numbers[i].offset));
	return true;
}

static bool take(struct result *r, struct slice name, struct slice value)
{
	if (slice_eq(name, SLICE("state")))
		return take_state(r, value);
	if (slice_eq(name, SLICE("reason")))
		return take_reason(r, value);
	if (slice_eq(name, SLICE("exit")))
		return (r->has_exit = slice_to_u64(value, UINT8_MAX, &r->exit));
	if (!slice_eq(name, SLICE("message")))
		return result_take_number(r, name, value);
	result_say(r, value);
	return true;
}

bool result_parse(struct slice bytes, struct result *out)
{
	*out = (struct result){0};
	if (bytes.len > LIMIT_KEEPER_RESULT || !slice_ends(bytes, SLICE("\n")))
		return false;
	while (bytes.len > 0) {
		struct slice value = slice_cut(&bytes, '\n'), name = slice_cut(&value, '=');
		if (!take(out, name, value))
			return false;
	}
	return out->state != RESULT_NONE && out->reason[0];
}

bool result_read(const char *dir, struct result *out)
{
	char path[LIMIT_KEEPER_PATH + 16], bytes[LIMIT_KEEPER_RESULT];
	snprintf(path, sizeof(path), "%s/result", dir);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t n = fd >= 0 ? read(fd, bytes, sizeof(bytes)) : -1;
	if (fd >= 0)
		close(fd);
	return n > 0 && result_parse(slice_of(bytes, (size_t)n), out);
}
