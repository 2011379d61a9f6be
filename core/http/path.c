/* Two readings of one path. The canonical one is what is matched and what is sent, byte for byte. The loose one is
 * what an origin makes of it that decodes too often and forgives too much; rules must hold for that one too. */
#include "core/http/url.h"

#include "core/base/escape.h"
#include "core/base/limits.h"

static enum cage_status refuse(const char **why, const char *sentence)
{
	*why = sentence;
	return CAGE_EPROTO;
}

/* NULL when every byte may stand in a target, else what is wrong. */
static const char *bytes_fault(struct slice s)
{
	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.ptr[i];
		if (c < 0x21 || c > 0x7e)
			return "the target has a byte that no target may have";
		if (c == '#')
			return "the target has a fragment";
	}
	return NULL;
}

/* Writes path with its escapes in their one form: unreserved bytes plain, all others in upper case. */
static const char *put_canonical_escapes(struct slice path, char *out, size_t *len)
{
	size_t n = 0;
	for (size_t i = 0; i < path.len; i++) {
		if (path.ptr[i] == '\\')
			return "the path has a backslash";
		if (path.ptr[i] != '%') {
			out[n++] = path.ptr[i];
			continue;
		}
		int value = escape_percent_value(path, i);
		if (value <= 0)
			return value == 0 ? "the path has an encoded NUL" : "the path has a broken percent escape";
		i += 2;
		n += escape_percent((unsigned char)value, out + n);
	}
	*len = n;
	return NULL;
}

/* Resolves "." and ".." in place; path starts with '/'. False when it climbs above the root. */
static bool resolve_dots(char *path, size_t *len)
{
	size_t n = 0; /* bytes of the result: whole segments, each with the '/' before it */
	for (size_t i = 0; i < *len;) {
		struct slice rest = slice_of(path + i + 1, *len - i - 1);
		struct slice segment = slice_head(rest, slice_find(rest, '/'));
		bool is_last = segment.len == rest.len;
		i += 1 + segment.len;
		if (slice_eq(segment, SLICE("."))) {
			if (is_last)
				path[n++] = '/';
		} else if (slice_eq(segment, SLICE(".."))) {
			if (n == 0)
				return false;
			n = slice_rfind(slice_of(path, n), '/');
			if (is_last)
				path[n++] = '/';
		} else {
			path[n++] = '/';
			memmove(path + n, segment.ptr, segment.len);
			n += segment.len;
		}
	}
	*len = n;
	return true;
}

/* One round of decoding in place; an incomplete escape stays as it is. True when something was decoded. */
static bool decode_once(char *path, size_t *len)
{
	size_t n = 0;
	for (size_t i = 0; i < *len; i++) {
		int value = escape_percent_value(slice_of(path, *len), i);
		path[n++] = value < 0 ? path[i] : (char)value;
		if (value >= 0)
			i += 2;
	}
	bool changed = n != *len;
	*len = n;
	return changed;
}

/* Makes '\' a '/', cuts parameters off each segment and a query or fragment off the end, and collapses "//", in place. */
static void simplify(char *path, size_t *len)
{
	size_t n = 0;
	bool in_parameter = false;
	for (size_t i = 0; i < *len && path[i] != '?' && path[i] != '#'; i++) {
		char c = path[i] == '\\' ? '/' : path[i];
		if (c == '/')
			in_parameter = false;
		else if (c == ';')
			in_parameter = true;
		if (in_parameter || (c == '/' && n > 0 && path[n - 1] == '/'))
			continue;
		path[n++] = c;
	}
	*len = n;
}

/* Decodes all rounds in place; false when there are too many. */
static bool decode_all(char *path, size_t *len)
{
	for (unsigned round = 0; decode_once(path, len); round++)
		if (round == LIMIT_PATH_DECODES)
			return false;
	return true;
}

/* With a parameter and a hidden slash in one segment, what is left of it depends on which an origin looks at first. */
static bool has_two_readings(struct slice path, char *scratch)
{
	while (path.len > 0) {
		struct slice segment = slice_cut(&path, '/');
		size_t len = segment.len;
		if (len == 0)
			continue;
		memcpy(scratch, segment.ptr, len);
		decode_all(scratch, &len);
		if (memchr(scratch, ';', len) && (memchr(scratch, '/', len) || memchr(scratch, '\\', len)))
			return true;
	}
	return false;
}

/* Index of the first byte that is one of those in set, or s.len. */
static size_t find_any(struct slice s, struct slice set)
{
	size_t n = 0;
	while (n < s.len && !memchr(set.ptr, s.ptr[n], set.len))
		n++;
	return n;
}

/* In a decoded path: also behind a `?` or `#`, since an origin may take those for a part of a name. */
static bool has_dot_segment(struct slice path)
{
	while (path.len > 0) {
		struct slice segment = slice_head(path, find_any(path, SLICE("/\\")));
		path = slice_from(path, segment.len + 1);
		segment = slice_head(segment, find_any(segment, SLICE(";?#")));
		if (slice_eq(segment, SLICE(".")) || slice_eq(segment, SLICE("..")))
			return true;
	}
	return false;
}

static enum cage_status make_loose(struct slice path, struct arena *arena, struct slice *out, const char **why)
{
	struct slice copy = arena_dup(arena, path);
	if (!copy.ptr) {
		*why = "there is no memory for the path";
		return CAGE_ENOMEM;
	}
	char *loose = (char *)copy.ptr;
	size_t len = copy.len;
	if (has_two_readings(path, loose))
		return refuse(why, "the path hides a slash beside a parameter");
	memcpy(loose, path.ptr, path.len);
	if (!decode_all(loose, &len))
		return refuse(why, "the path is percent-encoded too many times");
	if (memchr(loose, 0, len))
		return refuse(why, "the path has an encoded NUL");
	if (has_dot_segment(slice_of(loose, len)))
		return refuse(why, "the path hides a dot segment");
	simplify(loose, &len);
	*out = slice_of(loose, len);
	return CAGE_OK;
}

/* A path that reads the same to everybody: no escapes, parameters, "//" or segments that start with a dot. */
static bool is_plain(struct slice path)
{
	for (size_t i = 0; i < path.len; i++) {
		char c = path.ptr[i];
		if (c == '%' || c == ';' || c == '\\')
			return false;
		if ((c == '/' || c == '.') && i > 0 && path.ptr[i - 1] == '/')
			return false;
	}
	return true;
}

/* Sets both readings of a path that starts with '/'. */
static enum cage_status set_path(struct slice path, struct arena *arena, struct target *out, const char **why)
{
	char *buf = arena_alloc(arena, path.len);
	if (!buf) {
		*why = "there is no memory for the path";
		return CAGE_ENOMEM;
	}
	if (is_plain(path)) {
		memcpy(buf, path.ptr, path.len);
		out->path = out->loose = slice_of(buf, path.len);
		return CAGE_OK;
	}
	size_t len = 0;
	const char *fault = put_canonical_escapes(path, buf, &len);
	if (fault)
		return refuse(why, fault);
	if (!resolve_dots(buf, &len))
		return refuse(why, "the path climbs above the root");
	out->path = slice_of(buf, len);
	return make_loose(out->path, arena, &out->loose, why);
}

enum cage_status path_parse(struct slice path_and_query, struct arena *arena, struct target *out, const char **why)
{
	if (path_and_query.len > LIMIT_TARGET) {
		*why = "the target is too long";
		return CAGE_ELIMIT;
	}
	out->query = SLICE_NONE;
	if (slice_eq(path_and_query, SLICE("*"))) {
		out->path = out->loose = SLICE("*");
		return CAGE_OK;
	}
	const char *fault = bytes_fault(path_and_query);
	if (fault)
		return refuse(why, fault);
	if (path_and_query.len == 0 || path_and_query.ptr[0] != '/')
		return refuse(why, "the path does not start with a slash");
	size_t path_len = slice_find(path_and_query, '?');
	struct slice query = slice_from(path_and_query, path_len);
	if (query.len > 0) {
		out->query = arena_dup(arena, query);
		if (!out->query.ptr) {
			*why = "there is no memory for the path";
			return CAGE_ENOMEM;
		}
	}
	return set_path(slice_head(path_and_query, path_len), arena, out, why);
}
