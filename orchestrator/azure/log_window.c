/* Two looks at one log, and what they have in common. */
#include "orchestrator/azure/log_window.h"

#include <stdlib.h>

#include "core/base/hash.h"

/* ---- lines ---- */

/* The next one with its break, if it has one. */
static struct slice cut_line(struct slice *rest)
{
	const size_t n = slice_find(*rest, '\n');
	struct slice line = slice_head(*rest, n < rest->len ? n + 1 : n);
	*rest = slice_from(*rest, line.len);
	return line;
}

static bool is_whole(struct slice line)
{
	return slice_ends(line, SLICE("\n"));
}

static size_t count_lines(struct slice content, bool is_last)
{
	size_t n = 0;
	while (content.len > 0)
		n += is_whole(cut_line(&content)) || is_last;
	return n;
}

static uint64_t *hash_lines(struct slice content, size_t n)
{
	uint64_t *hashes = calloc(n ? n : 1, sizeof(*hashes));
	for (size_t i = 0; hashes && i < n; i++)
		hashes[i] = hash_bytes(cut_line(&content));
	return hashes;
}

/* ---- what two looks share ---- */

/* For each length of a beginning of `text`: that of the longest one that it ends with too, but for itself. */
static size_t *borders_of(const uint64_t *text, size_t n)
{
	size_t *borders = calloc(n + 1, sizeof(*borders));
	size_t k = 0;
	for (size_t i = 1; borders && i < n; i++) {
		while (k > 0 && text[i] != text[k])
			k = borders[k];
		k += text[i] == text[k];
		borders[i + 1] = k;
	}
	return borders;
}

/* How many lines of the new look are the last ones of the old: as many as can be. */
static bool overlap(const uint64_t *old, size_t n_old, const uint64_t *new, size_t n_new, size_t *out)
{
	size_t k = 0, *borders = borders_of(new, n_new);
	if (!borders)
		return false;
	for (size_t i = 0; i < n_old && n_new > 0; i++) {
		while (k > 0 && (k == n_new || old[i] != new[k]))
			k = borders[k];
		k += old[i] == new[k];
	}
	free(borders);
	*out = k;
	return true;
}

/* ---- from outside ---- */

/* "2026-11-17T16:57:23.123456789Z text": one without a time is told as it is. */
static struct slice without_time(struct slice line)
{
	const size_t space = slice_find(line, ' ');
	if (space > 40 || space < 20 || line.ptr[4] != '-' || line.ptr[10] != 'T')
		return line;
	return slice_from(line, space + 1);
}

/* The first n lines of a look are known now. If there are none, what was seen before stays so. */
static void keep_seen(struct log_window *w, uint64_t *hashes, size_t n)
{
	free(n > 0 ? w->seen : hashes);
	if (n > 0) {
		w->seen = hashes;
		w->n_seen = n;
	}
}

bool log_window_take(struct log_window *w, struct slice content, bool is_last, log_line *each, void *arg)
{
	const size_t n = count_lines(content, is_last);
	uint64_t *hashes = hash_lines(content, n);
	size_t known = 0, i = 0;
	if (!hashes || !overlap(w->seen, w->n_seen, hashes, n, &known)) {
		free(hashes);
		return false;
	}
	for (; i < n; i++) {
		struct slice line = cut_line(&content);
		if (i >= known && !each(arg, without_time(line)))
			break;
	}
	w->gaps += i > 0 && w->n_seen > 0 && known == 0;
	keep_seen(w, hashes, i);
	return i == n;
}

void log_window_free(struct log_window *w)
{
	free(w->seen);
	*w = (struct log_window){0};
}
