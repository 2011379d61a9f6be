/* From lines to fields. The gate has seen to it that every line is a token, a colon and clean bytes. */
#include "core/http/h1_private.h"

#include "core/base/limits.h"

struct slice h1_cut_line(struct slice *rest)
{
	struct slice line = slice_cut(rest, '\n');
	if (line.len > 0 && line.ptr[line.len - 1] == '\r')
		line.len--;
	return line;
}

static size_t count_lines(struct slice section)
{
	size_t n = 0;
	while (section.len > 0) {
		slice_cut(&section, '\n');
		n++;
	}
	return n;
}

enum cage_status h1_parse_fields(struct slice section, struct arena *arena, struct field **fields, size_t *n,
				 struct h1_error *err)
{
	size_t count = count_lines(section);
	*fields = NULL;
	*n = 0;
	if (count == 0)
		return CAGE_OK;
	if (count > LIMIT_HEADERS) {
		*err = (struct h1_error){REASON_HEAD_TOO_LARGE, "there are too many header fields"};
		return CAGE_ELIMIT;
	}
	struct field *out = arena_array(arena, count, sizeof(*out));
	if (!out) {
		*err = (struct h1_error){REASON_INTERNAL, "there is no memory for the header fields"};
		return CAGE_ENOMEM;
	}
	for (size_t i = 0; i < count; i++) {
		struct slice value = h1_cut_line(&section);
		struct slice name = slice_cut(&value, ':');
		out[i] = (struct field){name, slice_trim(value), field_identify(name)};
	}
	*fields = out;
	*n = count;
	return CAGE_OK;
}

static const struct slice protected_names[] = {
	{"age", 3},
	{"authorization", 13},
	{"cache-control", 13},
	{"connection", 10},
	{"cookie", 6},
	{"date", 4},
	{"expect", 6},
	{"expires", 7},
	{"forwarded", 9},
	{"host", 4},
	{"location", 8},
	{"max-forwards", 12},
	{"origin", 6},
	{"pragma", 6},
	{"range", 5},
	{"referer", 7},
	{"retry-after", 11},
	{"set-cookie", 10},
	{"trailer", 7},
	{"transfer-encoding", 17},
	{"user-agent", 10},
	{"vary", 4},
	{"via", 3},
	{"warning", 7},
	{"www-authenticate", 16},
	{"x-api-key", 9},
	{"x-http-method-override", 22},
};

static const struct slice protected_prefixes[] = {
	{"accept", 6}, {"access-control-", 15}, {"content-", 8},      {"if-", 3},
	{"sec-", 4},   {"x-cage-", 7},          {"x-forwarded-", 12},
};

bool h1_is_protected(struct slice name)
{
	for (size_t i = 0; i < sizeof(protected_names) / sizeof(protected_names[0]); i++)
		if (slice_ieq(name, protected_names[i]))
			return true;
	for (size_t i = 0; i < sizeof(protected_prefixes) / sizeof(protected_prefixes[0]); i++)
		if (slice_ieq(slice_head(name, protected_prefixes[i].len), protected_prefixes[i]))
			return true;
	return false;
}

size_t h1_count_fields(const struct message *m, enum field_id id, const struct field **first)
{
	size_t n = 0;
	*first = NULL;
	for (size_t i = 0; i < m->n_fields; i++) {
		if (m->fields[i].id != id)
			continue;
		if (n++ == 0)
			*first = &m->fields[i];
	}
	return n;
}
