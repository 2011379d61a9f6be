/* Four digits are three bytes; the last four may be fewer, with '=' for what is not there. */
#include "core/base/base64.h"

/* The value of a digit of base64, not of base64url; -1: it is none. */
static int digit(char c)
{
	return c == '-' || c == '_' ? -1 : ascii_base64((unsigned char)c);
}

/* How many bytes four digits are; 0: they are none. */
static size_t read_four(const char *four, bool is_last, unsigned char out[3])
{
	size_t n = four[3] != '=' ? 4 : four[2] != '=' ? 3 : 2;
	uint32_t bits = 0;
	if (n < 4 && !is_last)
		return 0;
	for (size_t i = 0; i < 4; i++) {
		int value = i < n ? digit(four[i]) : 0;
		if (value < 0)
			return 0;
		bits = bits << 6 | (uint32_t)value;
	}
	for (size_t i = 0; i < 3; i++)
		out[i] = (unsigned char)(bits >> (16 - 8 * i));
	bool has_rest = (n == 3 && out[2] != 0) || (n == 2 && (out[1] != 0 || out[2] != 0));
	return has_rest ? 0 : n - 1;
}

bool base64_is_good(struct slice text)
{
	unsigned char three[3];
	size_t i = 0;
	while (i + 4 <= text.len && read_four(text.ptr + i, i + 4 == text.len, three) > 0)
		i += 4;
	return i == text.len;
}

bool base64_read(struct slice text, void *out, size_t room, size_t *n)
{
	unsigned char three[3];
	*n = 0;
	if (text.len % 4 != 0)
		return false;
	for (size_t i = 0; i < text.len; i += 4) {
		size_t got = read_four(text.ptr + i, i + 4 == text.len, three);
		if (got == 0 || got > room - *n)
			return false;
		memcpy((char *)out + *n, three, got);
		*n += got;
	}
	return true;
}

void base64_write(struct slice bytes, char *out)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	for (size_t i = 0; i < bytes.len; i += 3) {
		uint32_t bits = 0;
		for (size_t j = 0; j < 3; j++)
			bits = bits << 8 | (i + j < bytes.len ? (unsigned char)bytes.ptr[i + j] : 0);
		for (size_t j = 0; j < 4; j++)
			*out++ = i + j <= bytes.len ? digits[bits >> (18 - 6 * j) & 63] : '=';
	}
}
