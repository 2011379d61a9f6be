/* Configurations of git. Promises: a setting has a section and a key of plain bytes, its value has no zero and is bounded, and
 * written out with quotes it reads as the same, without a complaint.
 *
 * Input: the text. */
#include "core/base/limits.h"
#include "orchestrator/git_config.h"
#include "tests/fuzz/fuzz.h"

#define NAME_BYTES "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-"

static void must_be_a_name(struct slice name)
{
	PROMISE(name.len > 0);
	for (size_t i = 0; i < name.len; i++)
		PROMISE(name.ptr[i] != 0 && strchr(NAME_BYTES, name.ptr[i]));
}

static bool must_be_same(void *arg, const struct git_setting *s)
{
	struct git_setting *first = arg;
	PROMISE(slice_eq(s->section, first->section) && slice_eq(s->key, first->key) &&
		slice_eq(s->value, first->value));
	first->section = SLICE_NONE; /* only once */
	return true;
}

static size_t put_value(char *to, struct slice value)
{
	size_t n = 0;
	for (size_t i = 0; i < value.len; i++) {
		const char c = value.ptr[i];
		if (c == '"' || c == '\\' || c == '\n')
			to[n++] = '\\';
		to[n++] = c == '\n' ? 'n' : c;
	}
	return n;
}

static bool take(void *arg, const struct git_setting *s)
{
	static char text[3 * LIMIT_GIT_VALUE + MIB(2)];
	struct git_setting first = *s;
	size_t *n = arg;
	must_be_a_name(s->section);
	must_be_a_name(s->key);
	PROMISE(s->value.len <= LIMIT_GIT_VALUE);
	PROMISE(s->value.len == 0 || !memchr(s->value.ptr, 0, s->value.len));
	if (++*n > 100 || s->section.len + s->key.len > MIB(1))
		return true;
	size_t len = (size_t)snprintf(text, sizeof(text), "[%.*s]%.*s=\"", SLICE_FMT(s->section), SLICE_FMT(s->key));
	len += put_value(text + len, s->value);
	text[len++] = '"';
	PROMISE(git_config_parse(slice_of(text, len), must_be_same, &first));
	PROMISE(first.section.len == 0);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t n = 0;
	git_config_parse(slice_of(data, size), take, &n);
	return 0;
}
