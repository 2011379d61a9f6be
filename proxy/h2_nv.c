/* From a message of HTTP/1.1 to the list of fields that nghttp2 sends. What belongs to one hop stays behind. */
#include "proxy/h2_text.h"

#define MAX_PSEUDO 4

/* Words in the names of fields that may carry a credential: such a value is never put into a table from which its
 * length or its being the same as another's could be told. */
static const struct slice credential_words[] = {WORD("authorization"), WORD("cookie"), WORD("key"), WORD("token"),
						WORD("secret")};

static bool has_word(struct slice name, struct slice word)
{
	for (size_t i = 0; i + word.len <= name.len; i++)
		if (slice_starts(slice_from(name, i), word))
			return true;
	return false;
}

/* name: in lower case. */
static uint8_t flags_of(struct slice name)
{
	for (size_t i = 0; i < sizeof(credential_words) / sizeof(credential_words[0]); i++)
		if (has_word(name, credential_words[i]))
			return NGHTTP2_NV_FLAG_NO_INDEX;
	return NGHTTP2_NV_FLAG_NONE;
}

/* nghttp2 reads through these pointers and does not write. */
static void add(struct h2_nv *list, struct slice name, struct slice value)
{
	list->nv[list->n++] = (nghttp2_nv){.name = (uint8_t *)name.ptr,
					   .value = (uint8_t *)value.ptr,
					   .namelen = name.len,
					   .valuelen = value.len,
					   .flags = flags_of(name)};
}

static struct slice lower(struct slice name, struct arena *arena)
{
	char *out = arena_alloc(arena, name.len);
	if (!out)
		return SLICE_NONE;
	for (size_t i = 0; i < name.len; i++)
		out[i] = (char)ascii_lower((unsigned char)name.ptr[i]);
	return slice_of(out, name.len);
}

/* TE is the one field of a hop that HTTP/2 has, with this one value. */
static bool goes_on(const struct field *f)
{
	if (f->id == FIELD_TE)
		return slice_ieq(f->value, SLICE("trailers"));
	return f->id != FIELD_HOST && !field_is_hop_by_hop(f->id);
}

static enum cage_status add_field(struct h2_nv *list, const struct field *f, struct arena *arena)
{
	if (!goes_on(f))
		return CAGE_OK;
	struct slice name = lower(f->name, arena);
	if (!name.ptr)
		return CAGE_ENOMEM;
	add(list, name, f->id == FIELD_TE ? SLICE("trailers") : f->value);
	return CAGE_OK;
}

static enum cage_status add_fields(struct h2_nv *list, const struct field *fields, size_t n, struct arena *arena)
{
	enum cage_status st = CAGE_OK;
	for (size_t i = 0; i < n && st == CAGE_OK; i++)
		st = add_field(list, &fields[i], arena);
	return st;
}

static enum cage_status start(struct h2_nv *list, size_t n_fields, struct arena *arena)
{
	*list = (struct h2_nv){.nv = arena_array(arena, n_fields + MAX_PSEUDO, sizeof(*list->nv))};
	return list->nv ? CAGE_OK : CAGE_ENOMEM;
}

enum cage_status h2_nv_request(const struct message *m, struct arena *arena, struct h2_nv *out)
{
	if (!m->has_host || (m->form != TARGET_ORIGIN && m->form != TARGET_ASTERISK))
		return CAGE_EPROTO;
	if (start(out, m->n_fields, arena) != CAGE_OK)
		return CAGE_ENOMEM;
	add(out, SLICE(":method"), m->method);
	add(out, SLICE(":scheme"), SLICE("https"));
	add(out, SLICE(":authority"), m->host);
	add(out, SLICE(":path"), m->target);
	return add_fields(out, m->fields, m->n_fields, arena);
}

enum cage_status h2_nv_response(const struct message *m, struct arena *arena, struct h2_nv *out)
{
	char *status = arena_alloc(arena, 3);
	if (!status || start(out, m->n_fields, arena) != CAGE_OK)
		return CAGE_ENOMEM;
	status[0] = (char)('0' + m->status / 100);
	status[1] = (char)('0' + m->status / 10 % 10);
	status[2] = (char)('0' + m->status % 10);
	add(out, SLICE(":status"), slice_of(status, 3));
	return add_fields(out, m->fields, m->n_fields, arena);
}

enum cage_status h2_nv_trailers(const struct field *fields, size_t n, struct arena *arena, struct h2_nv *out)
{
	enum cage_status st = start(out, n, arena);
	return st == CAGE_OK ? add_fields(out, fields, n, arena) : st;
}
