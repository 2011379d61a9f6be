/* A chain of blocks with a read and a write offset in each:
 *
 *	data[0 .. start)  dropped    data[start .. end)  bytes    data[end .. FIFO_BLOCK)  room
 */
#include "core/base/fifo.h"

#include <stdlib.h>
#include <string.h>

#define FIFO_SPARE 64 /* recycled blocks kept by a process */

struct fifo_block {
	struct fifo_block *next;
	size_t start, end;
	char data[FIFO_BLOCK];
};

static struct fifo_block *spare;
static size_t n_spare;

static struct fifo_block *block_new(void)
{
	struct fifo_block *b = spare;
	if (b) {
		spare = b->next;
		n_spare--;
	} else {
		b = malloc(sizeof(*b));
		if (!b)
			return NULL;
	}
	b->next = NULL;
	b->start = b->end = 0;
	return b;
}

static void block_free(struct fifo_block *b, bool carried_secrets)
{
	if (carried_secrets)
		explicit_bzero(b->data, b->end);
	if (n_spare >= FIFO_SPARE) {
		free(b);
		return;
	}
	b->next = spare;
	spare = b;
	n_spare++;
}

/* A chain of new blocks with room for n bytes; NULL without memory. */
static struct fifo_block *chain_new(size_t n, struct fifo_block **last)
{
	struct fifo_block *first = NULL, **link = &first;
	for (size_t room = 0; room < n; room += FIFO_BLOCK) {
		struct fifo_block *b = block_new();
		if (!b) {
			while (first) {
				b = first->next;
				block_free(first, false);
				first = b;
			}
			return NULL;
		}
		*link = *last = b;
		link = &b->next;
	}
	return first;
}

static void count_in(struct fifo *f, size_t n)
{
	f->len += n;
	if (f->total)
		*f->total += n;
}

static void count_out(struct fifo *f, size_t n)
{
	f->len -= n;
	if (f->total)
		*f->total -= n;
}

enum cage_status fifo_put(struct fifo *f, struct slice s)
{
	if (s.len == 0)
		return CAGE_OK;
	size_t room = f->last ? FIFO_BLOCK - f->last->end : 0;
	struct fifo_block *b = f->last;
	if (s.len > room) {
		struct fifo_block *last = NULL;
		struct fifo_block *more = chain_new(s.len - room, &last);
		if (!more)
			return CAGE_ENOMEM;
		if (f->last)
			f->last->next = more;
		else
			f->first = b = more;
		f->last = last;
	}
	count_in(f, s.len);
	while (s.len > 0) {
		size_t n = FIFO_BLOCK - b->end;
		if (n > s.len)
			n = s.len;
		memcpy(b->data + b->end, s.ptr, n);
		b->end += n;
		s = slice_from(s, n);
		b = b->next;
	}
	return CAGE_OK;
}

struct slice fifo_front(const struct fifo *f)
{
	return fifo_at(f, 0);
}

struct slice fifo_at(const struct fifo *f, size_t offset)
{
	for (const struct fifo_block *b = f->first; b; b = b->next) {
		size_t n = b->end - b->start;
		if (offset < n)
			return slice_of(b->data + b->start + offset, n - offset);
		offset -= n;
	}
	return SLICE_NONE;
}

void fifo_drop(struct fifo *f, size_t n)
{
	count_out(f, n);
	while (f->first) {
		struct fifo_block *b = f->first;
		size_t have = b->end - b->start;
		if (n < have) {
			b->start += n;
			return;
		}
		n -= have;
		f->first = b->next;
		block_free(b, f->carries_secrets);
	}
	f->last = NULL;
	f->carries_secrets = false;
}

size_t fifo_move_block(struct fifo *to, struct fifo *from, size_t max)
{
	struct fifo_block *b = from->first;
	size_t n = b ? b->end - b->start : 0;
	if (n == 0 || n > max)
		return 0;
	from->first = b->next;
	if (!from->first)
		from->last = NULL;
	to->carries_secrets |= from->carries_secrets;
	b->next = NULL;
	if (to->last)
		to->last->next = b;
	else
		to->first = b;
	to->last = b;
	count_out(from, n);
	count_in(to, n);
	return n;
}

void fifo_clear(struct fifo *f)
{
	fifo_drop(f, f->len);
}
