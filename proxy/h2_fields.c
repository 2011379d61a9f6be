/* HTTP/2 fields as they arrive, one by one. What RFC 9113, 8.2 and 8.3 call malformed is refused here, whatever the
 * library below lets through: these bytes become HTTP/1.1 text next, where a CR or a blank means something. */
#include "core/base/limits.h"
#include "core/http/chars.h"
#include "proxy/h2_text.h"

#define FIRST_ROOM 16 /* fields that a list has room for at first */
#define FIELD_EXTRA 4 /* ": " and CRLF */

struct pseudo {
	struct slice name;
	enum h2_kind kind;
	size_t offset; /* of its slice in struct h2_fields */
};

static const struct pseudo pseudos[] = {
	{WORD(":method"), H2_REQUEST, offsetof(struct h2_fields, method)},
	{WORD(":scheme"), H2_REQUEST, offsetof(struct h2_fields, scheme)},
	{WORD(":authority"), H2_REQUEST, offsetof(struct h2_fields, authority)},
	{WORD(":path"), H2_REQUEST, offsetof(struct h2_fields, path)},
	{WORD(":protocol"), H2_REQUEST, offsetof(struct h2_fields, protocol)},
	{WORD(":status"), H2_RESPONSE, offsetof(struct h2_fields, status)},
};

void h2_fields_init(struct h2_fields *f, enum h2_kind kind, struct arena *arena)
{
	*f = (struct h2_fields){.kind = kind, .arena = arena};
}

/* Where the value of that pseudo field goes; NULL: there is no such field in this kind of list. */
static struct slice *pseudo_slot(struct h2_fields *f, struct slice name)
{
	for (size_t i = 0; i < sizeof(pseudos) / sizeof(pseudos[0]); i++)
		if (pseudos[i].kind == f->kind && slice_eq(pseudos[i].name, name))
			return (struct slice *)(void *)((char *)f + pseudos[i].offset);
	return NULL;
}

/* They come first, once each, and none has a blank or is empty. */
static enum cage_status add_pseudo(struct h2_fields *f, struct slice name, struct slice value)
{
	struct slice *slot = pseudo_slot(f, name);
	if (!slot || slot->ptr || f->n_pseudo != f->n_all)
		return CAGE_EPROTO;
	if (value.len == 0 || char_span(value, CHAR_TARGET) != value.len)
		return CAGE_EPROTO;
	*slot = arena_dup(f->arena, value);
	f->n_pseudo++;
	return slot->ptr ? CAGE_OK : CAGE_ENOMEM;
}

/* A token without upper case. */
static bool is_name(struct slice name)
{
	for (size_t i = 0; i < name.len; i++)
		if (!char_is(name.ptr[i], CHAR_TOKEN) || (name.ptr[i] >= 'A' && name.ptr[i] <= 'Z'))
			return false;
	return name.len > 0;
}

static bool is_value(struct slice value)
{
	return char_span(value, CHAR_VALUE) == value.len && slice_trim(value).len == value.len;
}

/* Fields about one connection do not exist in HTTP/2 (RFC 9113, 8.2.2); trailers have none about the message. */
static bool is_allowed(enum h2_kind kind, enum field_id id, struct slice value)
{
	switch (id) {
	case FIELD_CONNECTION:
	case FIELD_KEEP_ALIVE:
	case FIELD_PROXY_CONNECTION:
	case FIELD_TRANSFER_ENCODING:
	case FIELD_UPGRADE:
		return false;
	case FIELD_TE:
		return slice_eq(value, SLICE("trailers"));
	case FIELD_CONTENT_LENGTH:
	case FIELD_HOST:
		return kind != H2_TRAILERS;
	case FIELD_OTHER:
	case FIELD_EXPECT:
	case FIELD_PROXY_AUTHENTICATE:
	case FIELD_PROXY_AUTHORIZATION:
	case FIELD_TRAILER:
	case FIELD_AUTHORIZATION:
	case FIELD_WWW_AUTHENTICATE:
	case FIELD_DROPPED:
		return true;
	}
	return false;
}

static enum cage_status set_content_length(struct h2_fields *f, struct slice value)
{
	if (f->has_content_length || !slice_to_u64(value, INT64_MAX, &f->content_length))
		return CAGE_EPROTO;
	f->has_content_length = true;
	return CAGE_OK;
}

static enum cage_status set_host(struct h2_fields *f, struct slice value)
{
	if (f->host.ptr)
		return CAGE_EPROTO;
	f->host = arena_dup(f->arena, value);
	return f->host.ptr ? CAGE_OK : CAGE_ENOMEM;
}

static enum cage_status make_room(struct h2_fields *f)
{
	if (f->n_fields < f->room)
		return CAGE_OK;
	size_t room = f->room ? 2 * f->room : FIRST_ROOM;
	struct field *more = arena_array(f->arena, room, sizeof(*more));
	if (!more)
		return CAGE_ENOMEM;
	if (f->n_fields > 0)
		memcpy(more, f->fields, f->n_fields * sizeof(*more));
	f->fields = more;
	f->room = room;
	return CAGE_OK;
}

static enum cage_status append(struct h2_fields *f, enum field_id id, struct slice name, struct slice value)
{
	struct field copy = {arena_dup(f->arena, name), arena_dup(f->arena, value), id};
	if (!copy.name.ptr || !copy.value.ptr || make_room(f) != CAGE_OK)
		return CAGE_ENOMEM;
	f->fields[f->n_fields++] = copy;
	return CAGE_OK;
}

static enum cage_status add_regular(struct h2_fields *f, struct slice name, struct slice value)
{
	if (!is_name(name) || !is_value(value))
		return CAGE_EPROTO;
	enum field_id id = field_identify(name);
	if (!is_allowed(f->kind, id, value))
		return CAGE_EPROTO;
	if (id == FIELD_CONTENT_LENGTH)
		return set_content_length(f, value);
	if (id == FIELD_HOST && f->kind == H2_REQUEST)
		return set_host(f, value);
	return append(f, id, name, value);
}

enum cage_status h2_fields_add(struct h2_fields *f, struct slice name, struct slice value)
{
	size_t limit = f->kind == H2_TRAILERS ? LIMIT_TRAILERS : LIMIT_HEAD;
	size_t bytes = name.len + value.len + FIELD_EXTRA;
	if (f->n_all == LIMIT_HEADERS || bytes > limit - f->bytes)
		return CAGE_ELIMIT;
	f->bytes += bytes;
	bool is_pseudo = slice_starts(name, SLICE(":"));
	enum cage_status st = is_pseudo ? add_pseudo(f, name, value) : add_regular(f, name, value);
	f->n_all++;
	return st;
}
