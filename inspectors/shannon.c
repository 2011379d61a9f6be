/* Shannon entropy: H = log2(n) - sum(c * log2(c)) / n over the counts c of each value. The terms come from a table that
 * is made at the first call. */
#include "inspectors/shannon.h"

#include <math.h>

#define LANES 0x0101010101010101u /* one bit in each byte of a word */

/* c * log2(c) for each c */
static const double *terms(void)
{
	static double table[SHANNON_BYTES + 1];
	if (table[2] == 0)
		for (size_t c = 2; c <= SHANNON_BYTES; c++)
			table[c] = (double)c * log2((double)c);
	return table;
}

/* Two counts for each value, so that equal neighbours don't wait for each other. */
double shannon(struct slice bytes)
{
	const double *term = terms();
	uint16_t even[256] = {0}, odd[256] = {0};
	double sum = 0;
	if (bytes.len == 0)
		return 0;
	for (size_t i = 0; i + 1 < bytes.len; i += 2) {
		even[(unsigned char)bytes.ptr[i]]++;
		odd[(unsigned char)bytes.ptr[i + 1]]++;
	}
	if (bytes.len % 2 != 0)
		even[(unsigned char)bytes.ptr[bytes.len - 1]]++;
	for (size_t i = 0; i < 256; i++)
		sum += term[even[i] + odd[i]];
	return (term[bytes.len] - sum) / (double)bytes.len;
}

static uint64_t word_at(const char *p)
{
	uint64_t w;
	memcpy(&w, p, sizeof(w));
	return w;
}

/* How many bytes are above 0x7f: counted in the eight bytes of a word, which hold up to SHANNON_BYTES / 8 each. */
static size_t count_high(struct slice s)
{
	uint64_t lanes = 0;
	size_t i = 0, n = 0;
	for (; i + 32 <= s.len; i += 32) {
		const char *p = s.ptr + i;
		lanes += (word_at(p) >> 7 & LANES) + (word_at(p + 8) >> 7 & LANES) + (word_at(p + 16) >> 7 & LANES) +
			 (word_at(p + 24) >> 7 & LANES);
	}
	for (; i < s.len; i++)
		n += (unsigned char)s.ptr[i] >> 7;
	for (; lanes > 0; lanes >>= 8)
		n += lanes & 0xff;
	return n;
}

double shannon_ceiling(struct slice bytes)
{
	const double *term = terms();
	if (bytes.len == 0)
		return 0;
	size_t high = count_high(bytes);
	return 7 + (term[bytes.len] - term[high] - term[bytes.len - high]) / (double)bytes.len;
}
