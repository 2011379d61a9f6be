/* After git's own parser: a section may be followed by a setting in its line, a value may go on in the next one, and what is
 * in quotes is no comment. A line that is wrong ends the reading for git; here it is left out, and said. */
#include "orchestrator/git_config.h"

#include "core/base/limits.h"

struct reader {
	struct slice text;
	size_t at;
	struct slice section;
	char value[LIMIT_GIT_VALUE];
	size_t len;
	git_config_found *found;
	void *arg;
};

enum { LINE_END = '\n' }; /* also where the text ends */

static bool is_at_end(const struct reader *r)
{
	return r->at >= r->text.len;
}

static int peek(const struct reader *r)
{
	if (is_at_end(r))
		return LINE_END;
	const bool is_crlf = r->text.ptr[r->at] == '\r' && r->at + 1 < r->text.len && r->text.ptr[r->at + 1] == '\n';
	return is_crlf ? LINE_END : (unsigned char)r->text.ptr[r->at];
}

static int take(struct reader *r)
{
	const int c = peek(r);
	if (c == LINE_END && !is_at_end(r) && r->text.ptr[r->at] == '\r')
		r->at++;
	r->at += !is_at_end(r);
	return c;
}

static void skip_line(struct reader *r)
{
	while (take(r) != LINE_END)
		;
}

/* What was wrong since then may have been that the line ended. */
static void skip_rest(struct reader *r, size_t since)
{
	if (r->at == since || r->text.ptr[r->at - 1] != '\n')
		skip_line(r);
}

static bool is_space(int c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static void skip_space(struct reader *r)
{
	while (is_space(peek(r)))
		take(r);
}

static bool is_letter(int c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_of_key(int c)
{
	return is_letter(c) || (c >= '0' && c <= '9') || c == '-';
}

/* ---- sections ---- */

/* "sub]", where any byte may stand behind a backslash. */
static bool take_subsection(struct reader *r)
{
	skip_space(r);
	if (take(r) != '"')
		return false;
	for (int c = take(r); c != '"'; c = take(r))
		if (c == LINE_END || (c == '\\' && take(r) == LINE_END))
			return false;
	return take(r) == ']';
}

/* Behind its bracket. The old form [section.sub] has its subsection in the name. */
static bool take_section(struct reader *r)
{
	const size_t from = r->at;
	while (is_of_key(peek(r)) || peek(r) == '.')
		take(r);
	struct slice name = slice_of(r->text.ptr + from, r->at - from);
	r->section = slice_cut(&name, '.');
	if (is_space(peek(r)))
		return take_subsection(r);
	return take(r) == ']';
}

/* ---- settings ---- */

static bool put(struct reader *r, int c)
{
	if (c == 0 || r->len == sizeof(r->value))
		return false;
	r->value[r->len++] = (char)c;
	return true;
}

/* Behind a backslash. */
static bool put_escaped(struct reader *r)
{
	const int c = take(r);
	switch (c) {
	case LINE_END: /* it goes on */
		return true;
	case 't':
		return put(r, '\t');
	case 'n':
		return put(r, '\n');
	case 'b':
		return put(r, '\b');
	case '"':
	case '\\':
		return put(r, c);
	default:
		return false;
	}
}

/* Behind its sign, to the end of the line; space at its end counts only in quotes. */
static bool take_value(struct reader *r)
{
	bool is_quoted = false;
	size_t kept = 0;
	skip_space(r);
	for (int c = peek(r); c != LINE_END; c = peek(r)) {
		if (!is_quoted && (c == '#' || c == ';'))
			break;
		take(r);
		const bool is_loose = !is_quoted && is_space(c);
		if (c == '"')
			is_quoted = !is_quoted;
		else if (c == '\\' ? !put_escaped(r) : !put(r, c))
			return false;
		kept = is_loose ? kept : r->len;
	}
	r->len = kept;
	return !is_quoted;
}

static bool take_setting(struct reader *r)
{
	const size_t from = r->at;
	while (is_of_key(peek(r)))
		take(r);
	struct git_setting s = {.section = r->section, .key = slice_of(r->text.ptr + from, r->at - from)};
	r->len = 0;
	while (peek(r) == ' ' || peek(r) == '\t')
		take(r);
	if (peek(r) != LINE_END && (take(r) != '=' || !take_value(r)))
		return false;
	s.value = slice_of(r->value, r->len);
	if (!r->found(r->arg, &s))
		r->at = r->text.len;
	return true;
}

/* The next thing in the line. */
static bool take_next(struct reader *r)
{
	skip_space(r);
	const int c = peek(r);
	if (c == LINE_END || c == '#' || c == ';') {
		skip_line(r);
		return true;
	}
	if (c != '[')
		return is_letter(c) && r->section.len > 0 && take_setting(r);
	take(r);
	return take_section(r);
}

bool git_config_parse(struct slice text, git_config_found *found, void *arg)
{
	struct reader r = {.text = text, .found = found, .arg = arg};
	bool ok = true;
	if (slice_starts(text, SLICE("\xef\xbb\xbf")))
		r.at = 3;
	while (!is_at_end(&r)) {
		const size_t since = r.at;
		if (take_next(&r))
			continue;
		ok = false;
		skip_rest(&r, since);
	}
	return ok;
}
