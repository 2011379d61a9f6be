/* Whole URLs: taken apart once when they come in, and put together from the canonical parts whenever one goes out. */
#include "core/http/url.h"

#include "core/base/limits.h"
#include "core/base/text.h"

static enum cage_status refuse(const char **why, const char *sentence)
{
	*why = sentence;
	return CAGE_EPROTO;
}

static uint16_t scheme_port(enum scheme s)
{
	return s == SCHEME_HTTPS ? 443 : 80;
}

/* Cuts "http://" or "https://" off *rest. */
static bool cut_scheme(struct slice *rest, enum scheme *out)
{
	if (slice_ieq(slice_head(*rest, 7), SLICE("http://"))) {
		*out = SCHEME_HTTP;
		*rest = slice_from(*rest, 7);
		return true;
	}
	if (slice_ieq(slice_head(*rest, 8), SLICE("https://"))) {
		*out = SCHEME_HTTPS;
		*rest = slice_from(*rest, 8);
		return true;
	}
	return false;
}

static size_t authority_len(struct slice s)
{
	size_t n = 0;
	while (n < s.len && s.ptr[n] != '/' && s.ptr[n] != '?' && s.ptr[n] != '#')
		n++;
	return n;
}

/* An absolute URL may leave the path out, with or without a query behind. */
static struct slice with_path(struct slice s, struct arena *arena)
{
	if (s.len > 0 && s.ptr[0] != '?')
		return s;
	char *buf = arena_alloc(arena, s.len + 1);
	if (!buf)
		return SLICE_NONE;
	buf[0] = '/';
	if (s.len > 0)
		memcpy(buf + 1, s.ptr, s.len);
	return slice_of(buf, s.len + 1);
}

enum cage_status url_parse(struct slice url, struct arena *arena, struct target *out, const char **why)
{
	struct slice rest = url;
	*out = (struct target){0};
	if (url.len > LIMIT_TARGET) {
		*why = "the target is too long";
		return CAGE_ELIMIT;
	}
	if (!cut_scheme(&rest, &out->scheme))
		return refuse(why, "the scheme is neither http nor https");
	struct slice authority = slice_head(rest, authority_len(rest));
	if (slice_find(authority, '@') != authority.len)
		return refuse(why, "the URL has a user name");
	enum cage_status st = authority_parse(authority, scheme_port(out->scheme), arena, &out->host, &out->port, why);
	if (st != CAGE_OK)
		return st;
	rest = with_path(slice_from(rest, authority.len), arena);
	if (!rest.ptr) {
		*why = "there is no memory for the path";
		return CAGE_ENOMEM;
	}
	return path_parse(rest, arena, out, why);
}

struct slice host_header(const struct target *t, struct arena *arena)
{
	size_t room = t->host.text.len + sizeof("[]:65535");
	char *buf = arena_alloc(arena, room);
	if (!buf)
		return SLICE_NONE;
	struct text text = text_in(buf, room);
	bool bracketed = t->host.kind == HOST_ADDRESS && t->host.addr.family == ADDR_V6;
	if (bracketed)
		text_put_char(&text, '[');
	text_put(&text, t->host.text);
	if (bracketed)
		text_put_char(&text, ']');
	if (t->port != scheme_port(t->scheme)) {
		text_put_char(&text, ':');
		text_put_u64(&text, t->port);
	}
	return text_slice(&text);
}

struct slice target_send(const struct target *t, struct arena *arena)
{
	if (t->query.len == 0)
		return t->path;
	size_t room = t->path.len + t->query.len;
	char *buf = arena_alloc(arena, room);
	if (!buf)
		return SLICE_NONE;
	struct text text = text_in(buf, room);
	text_put(&text, t->path);
	text_put(&text, t->query);
	return text_slice(&text);
}

/* Only '&' parts parameters here: where another byte would, too much is left out rather than too little. */
struct slice target_logged(const struct target *t, struct arena *arena)
{
	size_t room = t->path.len + t->query.len;
	char *buf = arena_alloc(arena, room);
	if (!buf)
		return SLICE_NONE;
	struct text text = text_in(buf, room);
	text_put(&text, t->path);
	bool in_value = false;
	for (size_t i = 0; i < t->query.len; i++) {
		char c = t->query.ptr[i];
		if (c == '&')
			in_value = false;
		if (!in_value)
			text_put_char(&text, c);
		if (c == '=')
			in_value = true;
	}
	return text_slice(&text);
}
