/* Names of what is obeyed. There may be thousands, and as many links and changes to compare with: they are sorted, with "/" as
 * the least of all bytes and whatever their case. None of them is below another, so whatever is at or below one has that one
 * right before it. */
#include <stdlib.h>
#include <string.h>

#include "orchestrator/obeyed_private.h"

static int rank(char c)
{
	return c == '/' ? 0 : 1 + ascii_lower((unsigned char)c);
}

static int compare(struct slice a, struct slice b)
{
	size_t i = 0;
	while (i < a.len && i < b.len && rank(a.ptr[i]) == rank(b.ptr[i]))
		i++;
	if (i < a.len && i < b.len)
		return rank(a.ptr[i]) - rank(b.ptr[i]);
	return (a.len > b.len) - (a.len < b.len);
}

/* Of the first one that is not before it. */
static size_t place_of(const struct words *found, struct slice path)
{
	size_t low = 0, high = found->n;
	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		if (compare(slice_str(found->list[middle]), path) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool is_at_or_below(struct slice path, struct slice dir)
{
	return slice_ieq(slice_head(path, dir.len), dir) && (path.len == dir.len || path.ptr[dir.len] == '/');
}

static bool is_below(const struct words *found, size_t i, struct slice dir)
{
	return i < found->n && is_at_or_below(slice_str(found->list[i]), dir);
}

bool obeyed_is_found(const struct words *found, const char *path)
{
	const struct slice p = slice_str(path);
	const size_t i = place_of(found, p);
	if (i < found->n && slice_ieq(slice_str(found->list[i]), p))
		return true;
	return i > 0 && is_at_or_below(p, slice_str(found->list[i - 1]));
}

bool obeyed_touches_found(const struct words *found, const char *path)
{
	const struct slice p = slice_str(path);
	return obeyed_is_found(found, path) || is_below(found, place_of(found, p), p);
}

/* Those that are below it go. */
static void take_out_below(struct words *found, size_t from, struct slice dir)
{
	size_t to = from;
	for (; is_below(found, to, dir); to++)
		free(found->list[to]);
	if (to == from)
		return;
	memmove(found->list + from, found->list + to, (found->n + 1 - to) * sizeof(*found->list));
	found->n -= to - from;
}

void obeyed_found_add(struct words *found, const char *name)
{
	const size_t place = place_of(found, slice_str(name));
	if (obeyed_is_found(found, name))
		return;
	take_out_below(found, place, slice_str(name));
	const size_t n = found->n;
	if (n == LIMIT_OBEYED)
		found->failed = true;
	else
		words_add(found, "%s", name);
	if (found->failed)
		return;
	char *word = found->list[n];
	memmove(found->list + place + 1, found->list + place, (n - place) * sizeof(*found->list));
	found->list[place] = word;
}
