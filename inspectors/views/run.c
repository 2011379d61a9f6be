/* What runs of base64 and hex have in common. A run is one piece of characters, or several with gaps between: line ends,
 * indentation, quotes and commas of a list, the plus of a program. Whether a run is read is not known before some of it
 * has come, so its last characters are kept. They also let a text go on behind a gap when it has ended before it: two
 * pieces may be one value or two, and what is at the end of the first must be found in either case. */
#include "inspectors/views/views_private.h"

#define STEP (SHORT_RUN / 2) /* characters after which a kept run is looked at once more */

void run_start(struct run *r, uint64_t at, uint64_t now)
{
	r->state = RUN_KEPT;
	r->start = r->at = at;
	r->length = r->judged = 0;
	r->began = now;
	r->piece = r->last_piece = 0;
	r->gap = r->quotes = r->commas = r->breaks = 0;
	r->gap_sum = r->last_gap_sum = 0;
	r->gap_is_loose = false;
	r->last = 0;
	run_start_stretch(r);
}

void run_start_stretch(struct run *r)
{
	r->stretch_at = r->at;
	r->stretch = 0;
}

void run_count(struct run *r, const unsigned char *chars, size_t n)
{
	if (r->stretch < RUN_START) {
		size_t some = RUN_START - (size_t)r->stretch;
		memcpy(r->first + r->stretch, chars, n < some ? n : some);
	}
	r->length += n;
	r->stretch += n;
	r->piece += n;
}

void run_keep(struct run *r, const unsigned char *chars, size_t n)
{
	for (size_t done = 0; done < n;) {
		size_t to = (size_t)(r->length - n + done) % SHORT_RUN;
		size_t some = n - done < SHORT_RUN - to ? n - done : SHORT_RUN - to;
		memcpy(r->kept + to, chars + done, some);
		done += some;
	}
}

void run_take(struct run *r, const unsigned char *chars, size_t n)
{
	run_count(r, chars, n);
	run_keep(r, chars, n);
}

size_t run_until_due(const struct run *r, size_t n)
{
	size_t step = STEP - (size_t)r->length % STEP;
	if (r->stretch < SHORT_RUN && SHORT_RUN - r->stretch < step)
		step = SHORT_RUN - (size_t)r->stretch;
	return n < step ? n : step;
}

bool run_is_due(const struct run *r)
{
	return r->stretch == SHORT_RUN || (r->length >= SHORT_RUN && r->length % STEP == 0);
}

bool run_is_joined(const struct run *r, unsigned per_byte)
{
	return r->length - r->stretch >= (TEXT_LONG - TEXT_SHORT) * per_byte;
}

size_t run_last(const struct run *r, size_t n, unsigned char out[SHORT_RUN])
{
	size_t have = r->length < SHORT_RUN ? (size_t)r->length : SHORT_RUN;
	n = n < have ? n : have;
	size_t from = (size_t)(r->length - n) % SHORT_RUN;
	size_t some = n < SHORT_RUN - from ? n : SHORT_RUN - from;
	memcpy(out, r->kept + from, some);
	memcpy(out + some, r->kept, n - some);
	return n;
}

bool run_take_gap(struct run *r, unsigned char c)
{
	if (r->gap == RUN_GAP)
		return false;
	r->gap++;
	r->gap_sum = r->gap_sum * 31 + c;
	r->last = c;
	return true;
}

bool run_cross_gap(struct run *r)
{
	bool is_alike = r->piece == r->last_piece && r->gap_sum == r->last_gap_sum;
	r->last_piece = r->piece;
	r->last_gap_sum = r->gap_sum;
	r->piece = 0;
	r->gap = r->quotes = r->commas = r->breaks = 0;
	r->gap_sum = 0;
	r->gap_is_loose = false;
	return is_alike;
}

void run_report(const struct layer *t, const struct run *r, enum view_kind kind)
{
	size_t n = r->stretch < RUN_START ? (size_t)r->stretch : RUN_START;
	layer_report(t, kind, r->stretch_at, r->stretch, slice_of(r->first, n));
}
