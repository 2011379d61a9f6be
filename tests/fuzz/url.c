/* Hosts, authorities, paths and URLs. Promises: what is accepted has one canonical form, made of plain bytes, that
 * parses to itself. A name is not what the C library takes for an address, and an address is the one it takes it for.
 * No way of decoding an accepted path further shows a dot segment, and its loose form has none of the bytes that it
 * is there to take away. Values of a query are not in the logged form.
 *
 * Input: the text, which all four parsers get. */
#include <arpa/inet.h>

#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/http/url.h"
#include "tests/fuzz/fuzz.h"

#define ARENA MIB(1)
#define NAME_BYTES "abcdefghijklmnopqrstuvwxyz0123456789-_."
#define UNRESERVED "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"

static bool is_one_of(char c, const char *list)
{
	return c != 0 && strchr(list, c);
}

static bool has_one_of(struct slice s, const char *list)
{
	for (size_t i = 0; i < s.len; i++)
		if (is_one_of(s.ptr[i], list))
			return true;
	return false;
}

static bool is_visible(struct slice s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.ptr[i] < 0x21 || s.ptr[i] > 0x7e)
			return false;
	return true;
}

/* ---- hosts ---- */

static void name_must_be_a_name(const char *text, size_t len)
{
	struct in_addr v4;
	PROMISE(len > 0 && len <= LIMIT_HOST && strspn(text, NAME_BYTES) == len);
	PROMISE(text[0] != '.' && text[len - 1] != '.' && !strstr(text, ".."));
	PROMISE(inet_aton(text, &v4) == 0);
}

static void address_must_be_an_address(const struct addr *addr, const char *text)
{
	unsigned char bytes[16] = {0};
	PROMISE(inet_pton(addr->family == ADDR_V4 ? AF_INET : AF_INET6, text, bytes) == 1);
	PROMISE(memcmp(bytes, addr->bytes, sizeof(bytes)) == 0);
}

static void host_must_be_good(const struct host *host, struct arena *arena)
{
	char text[LIMIT_HOST + 3];
	struct host again;
	const char *why;
	PROMISE(host->text.len <= LIMIT_HOST && !memchr(host->text.ptr, 0, host->text.len));
	bool bracketed = host->kind == HOST_ADDRESS && host->addr.family == ADDR_V6;
	snprintf(text, sizeof(text), "%.*s", SLICE_FMT(host->text));
	if (host->kind == HOST_NAME)
		name_must_be_a_name(text, host->text.len);
	else
		address_must_be_an_address(&host->addr, text);
	snprintf(text, sizeof(text), bracketed ? "[%.*s]" : "%.*s", SLICE_FMT(host->text));
	PROMISE(host_parse(slice_str(text), arena, &again, &why) == CAGE_OK);
	PROMISE(host_eq(host, &again) && addr_eq(&host->addr, &again.addr));
}

static void try_host(struct slice text, struct arena *arena)
{
	struct host host;
	const char *why = NULL;
	if (host_parse(text, arena, &host, &why) == CAGE_OK)
		host_must_be_good(&host, arena);
	else
		PROMISE(why);
}

static void try_authority(struct slice text, uint16_t default_port, struct arena *arena)
{
	struct target t = {.scheme = SCHEME_HTTPS};
	struct host host;
	uint16_t port;
	const char *why = NULL;
	if (authority_parse(text, default_port, arena, &t.host, &t.port, &why) != CAGE_OK) {
		PROMISE(why);
		return;
	}
	host_must_be_good(&t.host, arena);
	PROMISE(t.port > 0);
	PROMISE(authority_parse(host_header(&t, arena), 443, arena, &host, &port, &why) == CAGE_OK);
	PROMISE(host_eq(&t.host, &host) && port == t.port);
}

/* ---- paths ---- */

static int escape_at(struct slice s, size_t i)
{
	if (s.ptr[i] != '%' || s.len - i < 3)
		return -1;
	int high = ascii_hex((unsigned char)s.ptr[i + 1]), low = ascii_hex((unsigned char)s.ptr[i + 2]);
	return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* Is one of the segments "." or "..", when what follows one of the bytes of `ends` is left out? */
static bool has_dots(struct slice path, const char *slashes, const char *ends)
{
	size_t from = 0;
	for (size_t i = 0; i <= path.len; i++) {
		if (i < path.len && !is_one_of(path.ptr[i], slashes))
			continue;
		struct slice segment = slice_of(path.ptr + from, i - from);
		size_t n = 0;
		while (n < segment.len && !is_one_of(segment.ptr[n], ends))
			n++;
		segment = slice_head(segment, n);
		if (slice_eq(segment, SLICE(".")) || slice_eq(segment, SLICE("..")))
			return true;
		from = i + 1;
	}
	return false;
}

/* Decodes one more round, again and again: no origin may find dots, whatever it cuts off. */
static void no_decoding_shows_dots(struct slice path)
{
	struct slice copy = fuzz_copy(path);
	char *text = (char *)copy.ptr;
	for (bool changed = true; changed;) {
		PROMISE(!has_dots(copy, "/\\", "") && !has_dots(copy, "/\\", ";"));
		PROMISE(!has_dots(copy, "/\\", ";?#") && !has_dots(copy, "/\\", "?#"));
		size_t n = 0;
		changed = false;
		for (size_t i = 0; i < copy.len; i++) {
			int value = escape_at(copy, i);
			changed = changed || value >= 0;
			i += value >= 0 ? 2 : 0;
			text[n++] = value >= 0 ? (char)value : text[i];
		}
		copy.len = n;
	}
	fuzz_free(&copy);
}

static void path_must_be_canonical(struct slice path)
{
	static const char lower[] = "abcdef";
	PROMISE(path.len > 0 && path.ptr[0] == '/');
	PROMISE(is_visible(path) && !has_one_of(path, "#?\\"));
	for (size_t i = 0; i < path.len; i++) {
		if (path.ptr[i] != '%')
			continue;
		int value = escape_at(path, i);
		PROMISE(value > 0 && !is_one_of((char)value, UNRESERVED));
		PROMISE(!is_one_of(path.ptr[i + 1], lower) && !is_one_of(path.ptr[i + 2], lower));
	}
}

static void loose_must_be_simple(struct slice loose)
{
	PROMISE(loose.len > 0 && loose.ptr[0] == '/');
	PROMISE(!memchr(loose.ptr, 0, loose.len) && !has_one_of(loose, ";?#\\"));
	PROMISE(!has_dots(loose, "/", ""));
	for (size_t i = 0; i < loose.len; i++) {
		PROMISE(escape_at(loose, i) < 0);
		PROMISE(i == 0 || loose.ptr[i] != '/' || loose.ptr[i - 1] != '/');
	}
}

/* Behind a '=' there is nothing but the next parameter. */
static void values_must_be_left_out(struct slice logged, size_t path_len)
{
	PROMISE(is_visible(logged));
	for (size_t i = path_len; i + 1 < logged.len; i++)
		PROMISE(logged.ptr[i] != '=' || logged.ptr[i + 1] == '&');
}

static void path_must_be_good(const struct target *t, struct arena *arena)
{
	struct target again = {0};
	const char *why;
	if (!slice_eq(t->path, SLICE("*"))) {
		path_must_be_canonical(t->path);
		loose_must_be_simple(t->loose);
		no_decoding_shows_dots(t->path);
	}
	PROMISE(t->query.len == 0 || t->query.ptr[0] == '?');
	PROMISE(is_visible(t->query) && !has_one_of(t->query, "#"));
	values_must_be_left_out(target_logged(t, arena), t->path.len);
	PROMISE(path_parse(target_send(t, arena), arena, &again, &why) == CAGE_OK);
	PROMISE(slice_eq(t->path, again.path) && slice_eq(t->loose, again.loose) && slice_eq(t->query, again.query));
}

static void try_path(struct slice text, struct arena *arena)
{
	struct target t = {0};
	const char *why = NULL;
	if (path_parse(text, arena, &t, &why) == CAGE_OK)
		path_must_be_good(&t, arena);
	else
		PROMISE(why);
}

/* ---- URLs ---- */

static struct slice url_text(const struct target *t, struct arena *arena)
{
	size_t room = LIMIT_TARGET * 2;
	char *buf = arena_alloc(arena, room);
	PROMISE(buf);
	struct text text = text_in(buf, room);
	text_put(&text, scheme_text(t->scheme));
	text_put(&text, SLICE("://"));
	text_put(&text, host_header(t, arena));
	text_put(&text, target_send(t, arena));
	PROMISE(text_ok(&text));
	return text_slice(&text);
}

static void try_url(struct slice text, struct arena *arena)
{
	struct target t, again;
	const char *why = NULL;
	if (url_parse(text, arena, &t, &why) != CAGE_OK) {
		PROMISE(why);
		return;
	}
	host_must_be_good(&t.host, arena);
	path_must_be_good(&t, arena);
	PROMISE(t.port > 0);
	PROMISE(url_parse(url_text(&t, arena), arena, &again, &why) == CAGE_OK);
	PROMISE(t.scheme == again.scheme && host_eq(&t.host, &again.host) && t.port == again.port);
	PROMISE(slice_eq(t.path, again.path) && slice_eq(t.query, again.query));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice text = slice_of(data, size);
	struct arena arena;
	arena_init(&arena, ARENA);
	try_host(text, &arena);
	try_authority(text, 443, &arena);
	try_authority(text, 0, &arena);
	try_path(text, &arena);
	try_url(text, &arena);
	arena_free(&arena);
	return 0;
}
