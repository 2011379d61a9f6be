/* Placeholders in the query and the path of a request. Both may be percent-encoded in any way; what is put in is percent-encoded
 * but for unreserved bytes, so that it makes no parameter and no segment of its own. All other bytes stay. */
#include "core/base/escape.h"
#include "proxy/inject_private.h"

/* Writes a text with what is put in, and says for which secrets. */
typedef uint64_t part_writer(struct rewrite *r, struct slice text, struct made *out);

/* *part is left alone when nothing is found in it. */
static enum cage_status rewrite_part(struct rewrite *r, part_writer *write, struct slice *part)
{
	struct made made = {0};
	uint64_t found = write(r, *part, &made);
	if (found == 0)
		return CAGE_OK;
	made = (struct made){.ptr = arena_alloc(r->arena, made.len)};
	if (!made.ptr)
		return CAGE_ENOMEM;
	write(r, *part, &made);
	*part = slice_of(made.ptr, made.len);
	return CAGE_OK;
}

/* ---- query ---- */

/* Is the name of a parameter, as it is written, that one? */
static bool is_named(struct slice written, struct slice name)
{
	size_t at = 0;
	for (size_t i = 0; i < name.len; i++, at++) {
		if (at == written.len)
			return false;
		char c = written.ptr[at] == '+' ? ' ' : written.ptr[at];
		int value = escape_percent_value(written, at);
		if (value >= 0) {
			c = (char)value;
			at += 2;
		}
		if (c != name.ptr[i])
			return false;
	}
	return at == written.len;
}

static uint64_t secrets_for(const struct rewrite *r, struct slice name)
{
	uint64_t which = 0;
	for (uint64_t left = r->active; left > 0;) {
		unsigned i = take_bit(&left);
		const struct policy_secret *s = r->secrets[i].secret;
		for (size_t q = 0; q < s->n_queries; q++)
			if (is_named(name, s->queries[q]))
				which |= bit_of(i);
	}
	return which;
}

/* The secret whose placeholder is all that there is, as a bit. */
static uint64_t held_alone(const struct words *w, struct slice value)
{
	struct word_place place = {0};
	struct word_match m;
	bool is_all = words_find(w, value, 0, true, &place, &m) == WORD_FOUND && m.start == 0 && m.end == value.len;
	return is_all ? bit_of(m.secret) : 0;
}

static uint64_t write_parameter(struct rewrite *r, struct slice parameter, struct made *out)
{
	size_t at = slice_find(parameter, '=');
	struct slice name = slice_head(parameter, at);
	uint64_t which = secrets_for(r, name);
	struct words words;
	if (which == 0) {
		made_put(out, parameter);
		return 0;
	}
	made_put(out, slice_head(parameter, at + 1));
	words_init(&words, r->secrets, which, WORD_PERCENT);
	struct slice value = slice_from(parameter, at + 1);
	uint64_t found = made_put_replaced(out, &words, value, r->coded);
	rewrite_saw(r, SLOT_QUERY, name, which, found & held_alone(&words, value));
	r->found |= found;
	return found;
}

/* Only '&' parts parameters, as in the log: with ';' a value would be cut in two that most readers take as one. */
static uint64_t write_query(struct rewrite *r, struct slice query, struct made *out)
{
	uint64_t found = 0;
	struct slice rest = query;
	while (rest.len > 0) {
		made_put(out, slice_head(rest, 1)); /* '?' or '&' */
		rest = slice_from(rest, 1);
		struct slice parameter = slice_head(rest, slice_find(rest, '&'));
		found |= write_parameter(r, parameter, out);
		rest = slice_from(rest, parameter.len);
	}
	return found;
}

/* ---- path ---- */

static uint64_t secrets_in_path(const struct rewrite *r)
{
	uint64_t which = 0;
	for (uint64_t left = r->active; left > 0;) {
		unsigned i = take_bit(&left);
		if (r->secrets[i].secret->in_path)
			which |= bit_of(i);
	}
	return which;
}

/* Segment by segment: no placeholder reaches over a slash that is one. */
static uint64_t write_path(struct rewrite *r, struct slice path, struct made *out)
{
	struct words words;
	uint64_t found = 0;
	words_init(&words, r->secrets, secrets_in_path(r), WORD_PERCENT);
	for (struct slice rest = path; rest.len > 0;) {
		made_put(out, slice_head(rest, 1));
		rest = slice_from(rest, 1);
		struct slice segment = slice_head(rest, slice_find(rest, '/'));
		found |= made_put_replaced(out, &words, segment, r->coded);
		rest = slice_from(rest, segment.len);
	}
	r->found |= found;
	r->present |= found; /* a path is always there: it counts as a slot when it is used as one */
	return found;
}

/* ---- both ---- */

static bool has_queries(const struct rewrite *r)
{
	for (uint64_t left = r->active; left > 0;)
		if (r->secrets[take_bit(&left)].secret->n_queries > 0)
			return true;
	return false;
}

enum cage_status rewrite_target(struct rewrite *r, struct target *target)
{
	struct slice path = target->path;
	enum cage_status st = CAGE_OK;
	if (has_queries(r))
		st = rewrite_part(r, write_query, &target->query);
	if (st == CAGE_OK && secrets_in_path(r) != 0)
		st = rewrite_part(r, write_path, &target->path);
	if (target->path.ptr != path.ptr)
		target->loose = SLICE_NONE; /* rules have been asked already; nothing matches without it */
	return st;
}
