/* Is there text in these bytes? Identifiers, paths and digests are runs of base64 or hex characters too; what short ones
 * decode to is only read when there is text in it: ASCII, UTF-8 or UTF-16. Without branches that depend on the bytes,
 * since most of them are random. */
#include "inspectors/views/views_private.h"

enum { ASCII = 1, ZERO = 2, NEXT = 4, LEAD = 8, LONG_LEAD = 16 };

static const unsigned char classes[256] = {
	[0] = ZERO,
	['\t'] = ASCII,
	['\n'] = ASCII,
	['\r'] = ASCII,
	[0x20 ... 0x7e] = ASCII,
	[0x80 ... 0xbf] = NEXT,
	[0xc2 ... 0xdf] = LEAD,
	[0xe0 ... 0xf4] = LEAD | LONG_LEAD,
};

static bool window_has_text(const unsigned char *bytes, size_t n, unsigned least)
{
	union found found = {{0}};
	for (size_t i = 0; i < n; i++)
		found.bytes[i] = classes[bytes[i]];
	uint64_t zero = found_mask(&found, ZERO), next = found_mask(&found, NEXT), lead = found_mask(&found, LEAD);
	uint64_t long_lead = found_mask(&found, LONG_LEAD);
	lead &= next >> 1;
	long_lead &= lead & next >> 2;
	uint64_t text = found_mask(&found, ASCII) | (zero & ~(zero << 1)) | lead | lead << 1 | long_lead << 2 |
			(long_lead << 3 & next);
	text &= text >> 1;
	text &= text >> 2;
	uint64_t eight = text & text >> 4;
	return (least == TEXT_SHORT ? eight : eight & text >> 8) != 0;
}

bool has_text(const unsigned char *bytes, size_t n, unsigned least)
{
	size_t at = 0;
	for (; at + BLOCK < n; at += BLOCK - TEXT_LONG)
		if (window_has_text(bytes + at, BLOCK, least))
			return true;
	return n - at >= least && window_has_text(bytes + at, n - at, least);
}
