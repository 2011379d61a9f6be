/* Making a set: its ways, then the tables, by comparing each way with the starts that it may have. */
#include "inspectors/known/set.h"

#include <stdlib.h>

/* Starts as they are found. */
struct starts {
	struct known_start *list;
	size_t n, room;
};

static void starts_free(struct starts *s)
{
	if (s->n > 0)
		explicit_bzero(s->list, s->n * sizeof(*s->list));
	free(s->list);
}

static bool starts_put(struct starts *s, uint32_t key, size_t way)
{
	if (s->n == s->room) {
		struct starts more = {.n = s->n, .room = s->room ? 2 * s->room : 1024};
		more.list = malloc(more.room * sizeof(*more.list));
		if (!more.list)
			return false;
		if (s->n > 0)
			memcpy(more.list, s->list, s->n * sizeof(*s->list));
		starts_free(s);
		*s = more;
	}
	s->list[s->n++] = (struct known_start){key, (uint32_t)way};
	return true;
}

static bool can_begin(const struct known_way *way, struct slice text)
{
	size_t len;
	return known_compare(way, text, &len) != COMPARE_DIFFERS;
}

static bool is_whole_start(const char *text, size_t len)
{
	return len >= KNOWN_START && len >= known_start_length(text);
}

/* Takes the lowest byte out of the set; false: it is empty. */
static bool take_byte(struct known_bytes *bytes, unsigned char *c)
{
	for (unsigned k = 0; k < 4; k++) {
		if (bytes->bits[k] == 0)
			continue;
		*c = (unsigned char)(64 * k + (unsigned)__builtin_ctzll(bytes->bits[k]));
		bytes->bits[k] &= bytes->bits[k] - 1;
		return true;
	}
	return false;
}

/* text has a start of the way, of len bytes: enters each that is a byte longer. */
static bool learn(struct known_set *set, size_t way, char text[KNOWN_START_MAX], size_t len, struct starts *starts)
{
	struct known_bytes next = known_next_bytes(&set->ways[way], slice_of(text, len));
	bool is_good = true;
	for (unsigned char c; is_good && take_byte(&next, &c);) {
		text[len] = (char)c;
		if (!can_begin(&set->ways[way], slice_of(text, len + 1)))
			continue;
		if (len == 0)
			set->firsts[c] = true;
		else if (len < KNOWN_START)
			set->pairs[known_pair(text + len - 1)] |= (unsigned char)(1u << (len - 1));
		is_good = is_whole_start(text, len + 1) ? starts_put(starts, known_start_key(text), way)
							: learn(set, way, text, len + 1, starts);
	}
	return is_good;
}

/* Sorts the starts by bucket; within one, ways stay in order. */
static bool fill_buckets(struct known_set *set, const struct starts *s)
{
	uint32_t next[KNOWN_BUCKETS];
	set->starts = calloc(s->n ? s->n : 1, sizeof(*set->starts));
	if (!set->starts)
		return false;
	for (size_t i = 0; i < s->n; i++)
		set->buckets[known_bucket(s->list[i].key) + 1]++;
	for (size_t b = 0; b < KNOWN_BUCKETS; b++) {
		set->buckets[b + 1] += set->buckets[b];
		next[b] = set->buckets[b];
	}
	for (size_t i = 0; i < s->n; i++)
		set->starts[next[known_bucket(s->list[i].key)]++] = s->list[i];
	return true;
}

static bool make_tables(struct known_set *set)
{
	struct starts starts = {0};
	bool is_good = true;
	for (size_t w = 0; is_good && w < set->n_ways; w++) {
		char text[KNOWN_START_MAX];
		is_good = learn(set, w, text, 0, &starts);
	}
	is_good = is_good && fill_buckets(set, &starts);
	starts_free(&starts);
	return is_good;
}

static void add_way(struct known_set *set, const struct known_item *item, enum known_form form, unsigned align)
{
	struct known_way *way = &set->ways[set->n_ways++];
	*way = (struct known_way){item, form, align};
	size_t reach = known_way_reach(way);
	if (reach > set->reach)
		set->reach = reach;
}

static void add_ways(struct known_set *set, const struct known_item *item, unsigned forms)
{
	for (unsigned form = 0; form < KNOWN_FORMS; form++) {
		if (!(forms & 1u << form))
			continue;
		/* Backwards it would begin with any digits, and it is nobody's secret. */
		if (form == KNOWN_REVERSED && item->kind == KNOWN_RANDOM_PLACEHOLDER)
			continue;
		for (unsigned align = 0; align < (form == KNOWN_BASE64 ? 3 : 1); align++)
			add_way(set, item, form, align);
	}
}

struct known_set *known_set_new(const struct known_item *items, size_t n, unsigned forms)
{
	struct known_set *set = calloc(1, sizeof(*set));
	if (!set)
		return NULL;
	set->refs = 1;
	set->n_items = n;
	set->items = calloc(n ? n : 1, sizeof(*set->items));
	set->ways = calloc(n ? n * (KNOWN_FORMS + 2) : 1, sizeof(*set->ways));
	if (!set->items || !set->ways)
		goto failed;
	for (size_t i = 0; i < n; i++) {
		set->items[i] = items[i];
		add_ways(set, &set->items[i], forms);
	}
	if (!make_tables(set))
		goto failed;
	return set;
failed:
	known_set_unref(&set);
	return NULL;
}

struct known_set *known_set_ref(struct known_set *set)
{
	set->refs++;
	return set;
}

void known_set_unref(struct known_set **set)
{
	struct known_set *s = *set;
	*set = NULL;
	if (!s || --s->refs > 0)
		return;
	if (s->starts)
		explicit_bzero(s->starts, s->buckets[KNOWN_BUCKETS] * sizeof(*s->starts));
	explicit_bzero(s->pairs, sizeof(s->pairs));
	free(s->items);
	free(s->ways);
	free(s->starts);
	free(s);
}

bool known_set_is_empty(const struct known_set *set)
{
	return set->n_items == 0;
}

size_t known_set_reach(const struct known_set *set)
{
	return set->reach;
}
