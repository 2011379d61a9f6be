/* Prints how we read URLs and hosts, for tests/integration/test_differential.py to hold against other readers.
 *
 * In: lines of "u HEX" (a URL) or "a HEX" (an authority, as in a Host field of https). Out, for each: "-" when it is
 * refused, else scheme, host, port and path, parted by blanks, none of which can stand in them. */
#include <stdio.h>

#include "core/base/limits.h"
#include "core/http/url.h"

static size_t decode(const char *hex, char *out)
{
	size_t n = 0;
	while (ascii_hex((unsigned char)hex[2 * n]) >= 0 && ascii_hex((unsigned char)hex[2 * n + 1]) >= 0) {
		out[n] = (char)(ascii_hex((unsigned char)hex[2 * n]) * 16 + ascii_hex((unsigned char)hex[2 * n + 1]));
		n++;
	}
	return n;
}

static bool parse(char kind, struct slice text, struct arena *arena, struct target *out)
{
	const char *why;
	if (kind == 'u')
		return url_parse(text, arena, out, &why) == CAGE_OK;
	*out = (struct target){.scheme = SCHEME_HTTPS, .path = SLICE("/")};
	return authority_parse(text, 443, arena, &out->host, &out->port, &why) == CAGE_OK;
}

static void print(const struct target *t)
{
	struct slice scheme = scheme_text(t->scheme);
	printf("%.*s %.*s %u %.*s\n", (int)scheme.len, scheme.ptr, (int)t->host.text.len, t->host.text.ptr,
	       (unsigned)t->port, (int)t->path.len, t->path.ptr);
}

int main(void)
{
	static char line[4 * LIMIT_TARGET], bytes[2 * LIMIT_TARGET];
	while (fgets(line, sizeof(line), stdin) && line[0] != '\n') {
		struct arena arena;
		struct target target;
		arena_init(&arena, KIB(64));
		if (parse(line[0], slice_of(bytes, decode(line + 2, bytes)), &arena, &target))
			print(&target);
		else
			puts("-");
		arena_free(&arena);
	}
	return 0;
}
