/* Letter by letter (core/base/utf8_letter.h). */
#include "orchestrator/service/utf8.h"

#include "core/base/utf8_letter.h"

#define FAULT "\xef\xbf\xbd"

/* As far as it goes; how many bytes were used. */
static size_t add(struct evbuffer *out, const char *s, size_t n)
{
	size_t at = 0, good = 0;
	while (at < n) {
		int len = utf8_letter(slice_of(s + at, n - at));
		if (len < 0)
			break;
		if (len > 0) {
			at += (size_t)len;
			continue;
		}
		evbuffer_add(out, s + good, at - good);
		evbuffer_add(out, FAULT, 3);
		good = ++at;
	}
	evbuffer_add(out, s + good, at - good);
	return at;
}

void utf8_add(struct evbuffer *out, struct utf8_rest *rest, struct slice bytes)
{
	while (rest->n > 0 && bytes.len > 0) {
		rest->bytes[rest->n++] = bytes.ptr[0];
		bytes = slice_from(bytes, 1);
		size_t used = add(out, rest->bytes, rest->n);
		memmove(rest->bytes, rest->bytes + used, rest->n - used);
		rest->n -= used;
	}
	if (bytes.len == 0)
		return;
	size_t used = add(out, bytes.ptr, bytes.len);
	rest->n = bytes.len - used;
	memcpy(rest->bytes, bytes.ptr + used, rest->n);
}

void utf8_end(struct evbuffer *out, struct utf8_rest *rest)
{
	if (rest->n > 0)
		evbuffer_add(out, FAULT, 3);
	rest->n = 0;
}

bool utf8_is_good(struct slice bytes)
{
	for (size_t at = 0; at < bytes.len;) {
		int len = utf8_letter(slice_from(bytes, at));
		if (len <= 0)
			return false;
		at += (size_t)len;
	}
	return true;
}
