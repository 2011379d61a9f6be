/* Parameters of a query, as they are sent and as AWS writes them before it looks at a signature: each name and value
 * decoded and encoded again, so that there is one way to write it, and all of them sorted. */
#include <stdlib.h>

#include "core/base/text.h"
#include "proxy/percent.h"
#include "proxy/sign_private.h"

/* The same bytes in their one form. */
static struct slice recode(struct slice s, struct arena *arena)
{
	struct slice plain = percent_decode(s, arena);
	return plain.ptr ? percent_encode(plain, arena) : plain;
}

static bool param_parse(struct slice raw, struct arena *arena, struct sign_param *out)
{
	struct slice value = raw;
	struct slice name = slice_cut(&value, '=');
	*out = (struct sign_param){.raw = raw, .name = recode(name, arena), .value = recode(value, arena)};
	return out->name.ptr && out->value.ptr;
}

static size_t count(struct slice s, char c)
{
	size_t n = 0;
	for (size_t i = 0; i < s.len; i++)
		n += s.ptr[i] == c;
	return n;
}

bool sign_query_parse(struct slice query, struct arena *arena, struct sign_query *out)
{
	struct slice rest = slice_from(query, 1);
	*out = (struct sign_query){.params = arena_array(arena, count(rest, '&') + 1, sizeof(*out->params))};
	if (!out->params)
		return false;
	while (rest.len > 0) {
		struct slice raw = slice_cut(&rest, '&');
		if (raw.len > 0 && !param_parse(raw, arena, &out->params[out->n++]))
			return false;
	}
	return true;
}

struct sign_param *sign_query_find(const struct sign_query *q, struct slice name, size_t *n)
{
	struct sign_param *found = NULL;
	*n = 0;
	for (size_t i = 0; i < q->n; i++) {
		if (!slice_eq(q->params[i].name, name))
			continue;
		found = &q->params[i];
		(*n)++;
	}
	return found;
}

bool sign_query_set(struct sign_param *p, struct slice value, struct arena *arena)
{
	p->value = percent_encode(value, arena);
	if (!p->value.ptr)
		return false;
	size_t room = p->name.len + 1 + p->value.len;
	char *raw = arena_alloc(arena, room);
	if (!raw)
		return false;
	struct text t = text_in(raw, room);
	text_put(&t, p->name);
	text_put_char(&t, '=');
	text_put(&t, p->value);
	p->raw = text_slice(&t);
	return true;
}

struct slice sign_query_write(const struct sign_query *q, struct arena *arena)
{
	size_t room = 1;
	for (size_t i = 0; i < q->n; i++)
		room += q->params[i].raw.len + 1;
	char *out = arena_alloc(arena, room);
	if (!out)
		return SLICE_NONE;
	struct text t = text_in(out, room);
	for (size_t i = 0; i < q->n; i++) {
		text_put_char(&t, i == 0 ? '?' : '&');
		text_put(&t, q->params[i].raw);
	}
	return text_slice(&t);
}

static int compare_params(const void *a, const void *b)
{
	const struct sign_param *x = a, *y = b;
	int order = slice_compare(x->name, y->name);
	return order != 0 ? order : slice_compare(x->value, y->value);
}

struct slice sign_query_canonical(const struct sign_query *q, struct slice without, struct arena *arena)
{
	struct sign_param *sorted = arena_array(arena, q->n, sizeof(*sorted));
	size_t n = 0, room = 1;
	for (size_t i = 0; sorted && i < q->n; i++) {
		if (slice_eq(q->params[i].name, without))
			continue;
		sorted[n++] = q->params[i];
		room += q->params[i].name.len + q->params[i].value.len + 2;
	}
	char *out = sorted ? arena_alloc(arena, room) : NULL;
	if (!out)
		return SLICE_NONE;
	qsort(sorted, n, sizeof(*sorted), compare_params);
	struct text t = text_in(out, room);
	for (size_t i = 0; i < n; i++) {
		if (i > 0)
			text_put_char(&t, '&');
		text_put(&t, sorted[i].name);
		text_put_char(&t, '=');
		text_put(&t, sorted[i].value);
	}
	return text_slice(&t);
}
