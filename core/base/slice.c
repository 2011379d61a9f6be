/* Comparing, searching and cutting of borrowed bytes. */
#include "core/base/slice.h"

bool slice_ieq(struct slice a, struct slice b)
{
	if (a.len != b.len)
		return false;
	for (size_t i = 0; i < a.len; i++)
		if (ascii_lower((unsigned char)a.ptr[i]) != ascii_lower((unsigned char)b.ptr[i]))
			return false;
	return true;
}

bool slice_is_one_of(struct slice s, const struct slice *table, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (slice_ieq(s, table[i]))
			return true;
	return false;
}

size_t slice_find(struct slice s, char c)
{
	if (s.len == 0)
		return 0;
	const char *p = memchr(s.ptr, c, s.len);
	return p ? (size_t)(p - s.ptr) : s.len;
}

size_t slice_rfind(struct slice s, char c)
{
	for (size_t i = s.len; i > 0; i--)
		if (s.ptr[i - 1] == c)
			return i - 1;
	return s.len;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

struct slice slice_trim(struct slice s)
{
	while (s.len > 0 && is_blank(s.ptr[0]))
		s = slice_from(s, 1);
	while (s.len > 0 && is_blank(s.ptr[s.len - 1]))
		s.len--;
	return s;
}

struct slice slice_cut(struct slice *rest, char sep)
{
	size_t at = slice_find(*rest, sep);
	struct slice head = slice_head(*rest, at);
	*rest = slice_from(*rest, at + 1);
	return head;
}

bool slice_to_u64(struct slice s, uint64_t max, uint64_t *out)
{
	uint64_t v = 0;
	if (s.len == 0)
		return false;
	for (size_t i = 0; i < s.len; i++) {
		if (!ascii_is_digit((unsigned char)s.ptr[i]))
			return false;
		uint64_t digit = (uint64_t)(s.ptr[i] - '0');
		if (digit > max || v > (max - digit) / 10)
			return false;
		v = v * 10 + digit;
	}
	*out = v;
	return true;
}

int slice_compare(struct slice a, struct slice b)
{
	size_t n = a.len < b.len ? a.len : b.len;
	int order = n > 0 ? memcmp(a.ptr, b.ptr, n) : 0;
	return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

bool slice_eq_secret(struct slice a, struct slice b)
{
	if (a.len != b.len)
		return false;
	volatile unsigned char diff = 0;
	for (size_t i = 0; i < a.len; i++)
		diff = (unsigned char)(diff | (unsigned char)(a.ptr[i] ^ b.ptr[i]));
	return diff == 0;
}
