/* UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing beyond U+10FFFF. */
#include "orchestrator/service/utf8.h"

#define FAULT "\xef\xbf\xbd"

/* How many bytes the character at the beginning has: 0: it is none; -1: it is cut. */
static int length_at(const unsigned char *s, size_t n)
{
	if (s[0] < 0x80)
		return 1;
	int len = s[0] >= 0xc2 && s[0] <= 0xdf   ? 2
		  : s[0] >= 0xe0 && s[0] <= 0xef ? 3
		  : s[0] >= 0xf0 && s[0] <= 0xf4 ? 4
						 : 0;
	for (int i = 1; i < len; i++) {
		if ((size_t)i == n)
			return -1;
		unsigned char low = 0x80, high = 0xbf;
		if (i == 1) {
			low = s[0] == 0xe0 ? 0xa0 : s[0] == 0xf0 ? 0x90 : 0x80;
			high = s[0] == 0xed ? 0x9f : s[0] == 0xf4 ? 0x8f : 0xbf;
		}
		if (s[i] < low || s[i] > high)
			return 0;
	}
	return len;
}

/* As far as it goes; how many bytes were used. */
static size_t add(struct evbuffer *out, const unsigned char *s, size_t n)
{
	size_t at = 0, good = 0;
	while (at < n) {
		int len = length_at(s + at, n - at);
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
		size_t used = add(out, (const unsigned char *)rest->bytes, rest->n);
		memmove(rest->bytes, rest->bytes + used, rest->n - used);
		rest->n -= used;
	}
	if (bytes.len == 0)
		return;
	size_t used = add(out, (const unsigned char *)bytes.ptr, bytes.len);
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
		int len = length_at((const unsigned char *)bytes.ptr + at, bytes.len - at);
		if (len <= 0)
			return false;
		at += (size_t)len;
	}
	return true;
}
