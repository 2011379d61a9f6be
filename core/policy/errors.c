/* Errors of a policy: collected all at once, so that an author mends a file in one go. Whatever comes out of the file
 * is escaped and cut before it reaches a terminal or a log. */
#include "core/policy/errors.h"

#include <stdarg.h>
#include <stdio.h>

#include "core/base/text.h"

static void put_escaped(struct text *t, unsigned char c)
{
	if (c == '"' || c == '\\')
		text_put_char(t, '\\');
	if (c >= 0x20 && c <= 0x7e) {
		text_put_char(t, (char)c);
		return;
	}
	text_put(t, SLICE("\\x"));
	text_put_hex(t, &c, 1);
}

struct quoted quote(struct slice s)
{
	struct quoted q;
	struct text t = text_in(q.text, sizeof(q.text) - 1);
	text_put_char(&t, '"');
	for (size_t i = 0; i < s.len && i < LIMIT_POLICY_VALUE; i++)
		put_escaped(&t, (unsigned char)s.ptr[i]);
	if (s.len > LIMIT_POLICY_VALUE)
		text_put(&t, SLICE("..."));
	text_put_char(&t, '"');
	q.text[t.len] = 0;
	return q;
}

/* The end of a long path says more than its start. */
static void set_file(char *out, size_t room, const char *file)
{
	size_t len = strlen(file);
	if (len < room)
		memcpy(out, file, len + 1);
	else
		snprintf(out, room, "...%s", file + len - (room - sizeof("...")));
	for (char *c = out; *c; c++)
		if (*c < 0x20 || *c > 0x7e)
			*c = '?';
}

void error_at(struct policy_errors *errs, struct where at, const char *fmt, ...)
{
	if (errs->n == LIMIT_POLICY_ERRORS) {
		errs->more++;
		return;
	}
	struct policy_error *e = &errs->list[errs->n++];
	set_file(e->file, sizeof(e->file), at.file);
	e->line = at.line;
	e->column = at.column;
	va_list args;
	va_start(args, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, args);
	va_end(args);
}

static bool comes_before(const struct policy_error *a, const struct policy_error *b)
{
	int order = strcmp(a->file, b->file);
	if (order != 0)
		return order < 0;
	return a->line != b->line ? a->line < b->line : a->column < b->column;
}

/* By insertion: the list is short, and nearly in order already. */
void errors_sort(struct policy_errors *errs)
{
	for (size_t i = 1; i < errs->n; i++) {
		struct policy_error e = errs->list[i];
		size_t to = i;
		for (; to > 0 && comes_before(&e, &errs->list[to - 1]); to--)
			errs->list[to] = errs->list[to - 1];
		errs->list[to] = e;
	}
}

void policy_errors_print(const struct policy_errors *errs, int fd)
{
	for (size_t i = 0; i < errs->n; i++) {
		const struct policy_error *e = &errs->list[i];
		if (e->line > 0)
			dprintf(fd, "%s:%u:%u: %s\n", e->file, e->line, e->column, e->text);
		else
			dprintf(fd, "%s: %s\n", e->file, e->text);
	}
	if (errs->more > 0)
		dprintf(fd, "and %zu more\n", errs->more);
}
