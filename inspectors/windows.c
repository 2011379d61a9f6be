/* Choosing and measuring windows. The threshold is for whole windows; docs/inspectors.md has the figures behind it. */
#include "inspectors/windows.h"

#include "core/base/map.h"
#include "inspectors/shannon.h"

#define LEAST 256 /* shorter bodies, and ends of bodies, say too little */
#define FIRST 8   /* windows that are all looked at */
#define GROUP 16  /* windows behind them of which one is */

/* Random by nature, and legitimately so. */
static bool is_expected(enum content_kind kind)
{
	switch (kind) {
	case CONTENT_IMAGE:
	case CONTENT_MEDIA:
	case CONTENT_FONT:
	case CONTENT_PDF:
	case CONTENT_ARCHIVE:
	case CONTENT_GRPC:
		return true;
	case CONTENT_EMPTY:
	case CONTENT_TEXT:
	case CONTENT_JSON:
	case CONTENT_XML:
	case CONTENT_MULTIPART:
	case CONTENT_EXECUTABLE:
	case CONTENT_BINARY:
		break;
	}
	return false;
}

/* The threshold is for whole windows. Even random bytes don't reach it in shorter ones, which are held to as much less
 * as random bytes have less: 7.17 bits in 256 bytes, 7.59 in 512, 7.81 in 1024. */
static double threshold_at(size_t n, double threshold)
{
	if (n >= 1024)
		return threshold;
	if (n >= 512)
		return threshold - 0.22 * (double)(1024 - n) / 512;
	return threshold - 0.22 - 0.42 * (double)(512 - n) / 256;
}

/* Each look costs more than the one before, and few windows need the last. */
static bool is_random(struct slice window, double threshold)
{
	double limit = threshold_at(window.len, threshold);
	return shannon_ceiling(window) >= limit &&
	       shannon(slice_head(window, LEAST)) >= threshold_at(LEAST, threshold) && shannon(window) >= limit;
}

/* Which window of a group is looked at: not known outside of this process. */
static uint64_t place_in_group(uint64_t group)
{
	static uint64_t seed;
	while (seed == 0)
		seed = map_seed();
	return slice_hash(slice_of(&group, sizeof(group)), seed) % GROUP;
}

/* The first window from this one on that is looked at. */
static uint64_t next_window(uint64_t n)
{
	if (n < FIRST)
		return n;
	uint64_t group = n / GROUP;
	uint64_t chosen = group * GROUP + place_in_group(group);
	return chosen >= n ? chosen : (group + 1) * GROUP + place_in_group(group + 1);
}

void windows_begin(struct windows *w, uint64_t base)
{
	w->base = base;
	w->at = 0;
	w->filled = 0;
	w->is_kind_known = false;
}

/* A window that ends at w->at. */
static bool windows_judge(struct windows *w, struct slice window, double threshold)
{
	if (!w->is_kind_known) {
		w->kind = sniff(window);
		w->is_kind_known = true;
	}
	return !is_expected(w->kind) && window.len >= LEAST && is_random(window, threshold);
}

/* Takes bytes of a window that is looked at; true: it is whole, and random. */
static bool windows_fill(struct windows *w, struct slice *piece, double threshold)
{
	size_t n = WINDOW - w->filled;
	if (n > piece->len)
		n = piece->len;
	struct slice window = slice_head(*piece, n);
	if (n < WINDOW) {
		memcpy(w->bytes + w->filled, piece->ptr, n);
		window = slice_of(w->bytes, w->filled + n);
	}
	w->filled += n;
	w->at += n;
	*piece = slice_from(*piece, n);
	if (w->filled < WINDOW)
		return false;
	w->filled = 0;
	return windows_judge(w, window, threshold);
}

bool windows_feed(struct windows *w, struct slice piece, double threshold)
{
	while (piece.len > 0) {
		if (w->is_kind_known && is_expected(w->kind)) {
			w->at += piece.len;
			return false;
		}
		uint64_t next = next_window(w->at / WINDOW) * WINDOW;
		if (w->filled > 0 || next <= w->at) {
			if (windows_fill(w, &piece, threshold))
				return true;
			continue;
		}
		size_t skip = next - w->at < piece.len ? (size_t)(next - w->at) : piece.len;
		w->at += skip;
		piece = slice_from(piece, skip);
	}
	return false;
}

bool windows_end(struct windows *w, double threshold)
{
	return w->filled > 0 && windows_judge(w, slice_of(w->bytes, w->filled), threshold);
}

uint64_t windows_last(const struct windows *w)
{
	return w->base + w->at - (w->filled > 0 ? w->filled : WINDOW);
}
