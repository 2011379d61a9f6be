/* One buffer for the whole head: a single pass over a few hundred bytes costs less than a pass for each field. */
#include "inspectors/head.h"

#include "core/base/text.h"

struct builder {
	struct text text;
	struct head_part *parts;
	size_t n_parts;
};

static void part_begin(struct builder *b, enum place place, struct slice name)
{
	b->parts[b->n_parts++] = (struct head_part){.start = b->text.len, .place = place, .name = name};
}

/* Of fields. */
static void part_begin_joined(struct builder *b, enum place place)
{
	part_begin(b, place, SLICE_NONE);
	b->parts[b->n_parts - 1].is_joined = true;
}

static void part_end(struct builder *b)
{
	text_put_char(&b->text, '\n');
}

static void put_part(struct builder *b, enum place place, struct slice bytes)
{
	if (bytes.len == 0)
		return;
	part_begin(b, place, SLICE_NONE);
	text_put(&b->text, bytes);
	part_end(b);
}

static void put_field(struct builder *b, enum place place, const struct field *f)
{
	part_begin(b, place, f->name);
	text_put(&b->text, f->name);
	text_put(&b->text, SLICE(": "));
	text_put(&b->text, f->value);
	part_end(b);
}

static void put_others(struct builder *b, struct slice bytes, struct slice drop)
{
	for (size_t i = 0; i < bytes.len; i++)
		if (slice_find(drop, bytes.ptr[i]) == drop.len)
			text_put_char(&b->text, bytes.ptr[i]);
}

/* The bytes without those of `drop`. */
static void put_without(struct builder *b, enum place place, struct slice bytes, struct slice drop)
{
	part_begin(b, place, SLICE_NONE);
	put_others(b, bytes, drop);
	part_end(b);
}

/* In a form a plus sign is a blank. */
static void put_form_value(struct builder *b, struct slice value)
{
	for (size_t i = 0; i < value.len; i++)
		text_put_char(&b->text, value.ptr[i] == '+' ? ' ' : value.ptr[i]);
}

/* "?a=1&b=2" as "12". */
static void put_query_values(struct builder *b, struct slice query)
{
	struct slice rest = slice_from(query, 1);
	part_begin(b, PLACE_QUERY, SLICE_NONE);
	while (rest.len > 0) {
		struct slice pair = slice_cut(&rest, '&');
		size_t at = slice_find(pair, '=');
		put_form_value(b, at == pair.len ? pair : slice_from(pair, at + 1));
	}
	part_end(b);
}

/* Fields that any client sends: values of others are what a secret would be spread over. */
static bool is_common(const struct field *f)
{
	static const struct slice common[] = {WORD("accept"),     WORD("accept-encoding"), WORD("accept-language"),
					      WORD("user-agent"), WORD("content-type"),    WORD("content-encoding")};
	if (f->id != FIELD_OTHER)
		return true;
	for (size_t i = 0; i < sizeof(common) / sizeof(common[0]); i++)
		if (slice_ieq(f->name, common[i]))
			return true;
	return false;
}

static bool is_sent(const struct field *f)
{
	return !field_is_hop_by_hop(f->id) && f->id != FIELD_HOST;
}

enum join { JOIN_ALL, JOIN_UNCOMMON };

static void put_joined_fields(struct builder *b, enum place place, const struct field *fields, size_t n,
			      enum join which)
{
	part_begin_joined(b, place);
	for (size_t i = 0; i < n; i++)
		if (is_sent(&fields[i]) && (which == JOIN_ALL || !is_common(&fields[i])))
			text_put(&b->text, fields[i].value);
	part_end(b);
}

/* ---- cookies ---- */

static bool is_cookie(const struct field *f)
{
	return is_sent(f) && slice_ieq(f->name, SLICE("cookie"));
}

/* "a=1; b=\"2\"" as "12"; what has no name is a value. */
static void put_cookie_values(struct builder *b, struct slice cookie)
{
	while (cookie.len > 0) {
		struct slice pair = slice_cut(&cookie, ';');
		size_t at = slice_find(pair, '=');
		put_others(b, at == pair.len ? pair : slice_from(pair, at + 1), SLICE(" \t\""));
	}
}

/* All cookies of the head as one: HTTP/2 cuts them wherever it likes. */
static void put_joined_cookies(struct builder *b, enum place place, const struct field *fields, size_t n)
{
	part_begin_joined(b, place);
	for (size_t i = 0; i < n; i++)
		if (is_cookie(&fields[i]))
			put_others(b, fields[i].value, SLICE("; \t=\""));
	part_end(b);
	part_begin_joined(b, place);
	for (size_t i = 0; i < n; i++)
		if (is_cookie(&fields[i]))
			put_cookie_values(b, fields[i].value);
	part_end(b);
}

/* ---- all of it ---- */

static bool has_several(struct slice s, char separator)
{
	size_t at = slice_find(slice_from(s, 1), separator);
	return at + 1 < s.len;
}

static size_t fields_size(const struct field *fields, size_t n)
{
	size_t size = 4;
	for (size_t i = 0; i < n; i++)
		size += fields[i].name.len + (is_cookie(&fields[i]) ? 5 : 3) * fields[i].value.len + 3;
	return size;
}

static enum cage_status builder_init(struct builder *b, struct arena *arena, size_t room, size_t n_fields)
{
	char *buf = arena_alloc(arena, room);
	*b = (struct builder){.parts = arena_array(arena, n_fields + 10, sizeof(*b->parts))};
	if (!buf || !b->parts)
		return CAGE_ENOMEM;
	b->text = text_in(buf, room);
	return CAGE_OK;
}

static enum cage_status builder_done(const struct builder *b, struct head_text *out)
{
	*out = (struct head_text){.text = text_slice(&b->text), .parts = b->parts, .n_parts = b->n_parts};
	return text_ok(&b->text) ? CAGE_OK : CAGE_ELIMIT;
}

static void put_fields(struct builder *b, enum place place, const struct field *fields, size_t n)
{
	size_t sent = 0, uncommon = 0, cookies = 0;
	for (size_t i = 0; i < n; i++) {
		if (!is_sent(&fields[i]))
			continue;
		put_field(b, place, &fields[i]);
		sent++;
		uncommon += !is_common(&fields[i]);
		cookies += is_cookie(&fields[i]);
	}
	if (sent > 1)
		put_joined_fields(b, place, fields, n, JOIN_ALL);
	if (uncommon > 1 && uncommon < sent)
		put_joined_fields(b, place, fields, n, JOIN_UNCOMMON);
	if (cookies > 0)
		put_joined_cookies(b, place, fields, n);
}

static bool is_usual(struct slice method)
{
	static const struct slice usual[] = {WORD("GET"),   WORD("POST"),   WORD("HEAD"),   WORD("PUT"),
					     WORD("PATCH"), WORD("DELETE"), WORD("OPTIONS")};
	for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
		if (slice_eq(method, usual[i]))
			return true;
	return false;
}

static const struct target *searched_target(const struct subject *s)
{
	return s->search_target ? s->search_target : s->target;
}

enum cage_status head_text_make(const struct subject *s, struct arena *arena, struct head_text *out)
{
	struct builder b;
	const struct target *target = searched_target(s);
	const struct message *head = s->search_head ? s->search_head : s->head;
	size_t room = s->method.len + 2 * target->path.len + 3 * target->query.len + 10 +
		      fields_size(head->fields, head->n_fields);
	if (builder_init(&b, arena, room, head->n_fields) != CAGE_OK)
		return CAGE_ENOMEM;
	if (!is_usual(s->method))
		put_part(&b, PLACE_METHOD, s->method);
	put_part(&b, PLACE_PATH, target->path);
	put_part(&b, PLACE_QUERY, target->query);
	put_fields(&b, PLACE_HEADER, head->fields, head->n_fields);
	if (has_several(target->path, '/'))
		put_without(&b, PLACE_PATH, target->path, SLICE("/"));
	if (target->query.len > 0) {
		put_without(&b, PLACE_QUERY, target->query, SLICE("?&="));
		put_query_values(&b, target->query);
	}
	return builder_done(&b, out);
}

#define EACH(byte) (0x0101010101010101u * (byte))

/* Eight letters at a time. A byte beyond ASCII is none. */
static uint64_t upper(uint64_t bytes)
{
	uint64_t low = bytes & EACH(0x7f);
	uint64_t from_a = low + EACH(0x80 - 'a'), beyond_z = low + EACH(0x7f - 'z');
	uint64_t letters = from_a & ~beyond_z & ~bytes & EACH(0x80);
	return bytes - (letters >> 2); /* 0x20 */
}

static void put_upper(char *out, const char *in, size_t n)
{
	uint64_t word = 0;
	for (; n >= sizeof(word); n -= sizeof(word), in += sizeof(word), out += sizeof(word)) {
		memcpy(&word, in, sizeof(word));
		word = upper(word);
		memcpy(out, &word, sizeof(word));
	}
	memcpy(&word, in, n);
	word = upper(word);
	memcpy(out, &word, n);
}

size_t head_name_text(struct slice name, char *out)
{
	char *p = out + name.len;
	memcpy(out, name.ptr, name.len);
	*p++ = '\n';
	for (size_t i = 0; i < name.len; i++) {
		*p = name.ptr[i];
		p += *p != '.';
	}
	*p++ = '\n';
	size_t n = (size_t)(p - out);
	put_upper(p, out, n);
	return 2 * n;
}

enum cage_status head_text_make_name(const struct subject *s, struct arena *arena, struct head_text *out)
{
	struct slice name = searched_target(s)->host.text;
	char *buf = arena_alloc(arena, HEAD_NAME_TEXT(name.len));
	struct head_part *parts = arena_array(arena, 4, sizeof(*parts));
	if (!buf || !parts)
		return CAGE_ENOMEM;
	struct slice text = slice_of(buf, name.len > 0 ? head_name_text(name, buf) : 0);
	for (size_t i = 0; i < 4; i++)
		parts[i] = (struct head_part){.start = i / 2 * (text.len / 2) + i % 2 * (name.len + 1),
					      .place = PLACE_HOST};
	*out = (struct head_text){.text = text, .parts = parts, .n_parts = text.len > 0 ? 4 : 0};
	return CAGE_OK;
}

enum cage_status head_text_make_trailers(const struct field *fields, size_t n, struct arena *arena,
					 struct head_text *out)
{
	struct builder b;
	if (builder_init(&b, arena, fields_size(fields, n), n) != CAGE_OK)
		return CAGE_ENOMEM;
	put_fields(&b, PLACE_TRAILER, fields, n);
	return builder_done(&b, out);
}

struct spot head_text_spot(const struct head_text *h, uint64_t offset)
{
	size_t i = h->n_parts;
	while (i > 0 && h->parts[i - 1].start > offset)
		i--;
	if (i == 0)
		return (struct spot){.place = PLACE_HEADER};
	const struct head_part *p = &h->parts[i - 1];
	struct spot spot = {.place = p->place, .name = p->name, .is_joined = p->is_joined, .offset = offset - p->start};
	if (spot.offset < p->name.len)
		spot.name = SLICE_NONE; /* what was found is the name itself */
	else if (p->name.len > 0)
		spot.offset -= spot.offset >= p->name.len + 2 ? p->name.len + 2 : p->name.len; /* in the value */
	return spot;
}
