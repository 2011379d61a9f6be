/* A sandbox has a copy of its policy and no file beside it, and a container sees no file of this machine: so the keys go into the copy.
 * They are put where the names stand, in one line, so that all lines keep their numbers, and errors their places. */
#include "orchestrator/service/policy_keys.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/base/base64.h"
#include "core/base/text.h"
#include "core/policy/load.h"

#define PEM_BEGIN "\"-----BEGIN PUBLIC KEY-----\\n"
#define PEM_END "\\n-----END PUBLIC KEY-----\\n\""
#define DIGITS BASE64_DIGITS(IMAGE_KEY_DER)
#define WRITTEN (sizeof(PEM_BEGIN PEM_END) + DIGITS)

/* What is under way: the text up to `rest` is in `out`. */
struct copying {
	struct loader loader;
	struct slice whole, rest;
	struct text out;
};

static const struct node *get(const struct node *map, const char *key)
{
	return map && map->kind == NODE_MAP ? node_get(map, slice_str(key)) : NULL;
}

/* How many bytes of a line its first n characters are. */
static size_t bytes_of(struct slice line, size_t n)
{
	size_t at = 0;
	for (; at < line.len; at++)
		if (((unsigned char)line.ptr[at] & 0xc0) != 0x80 && n-- == 0)
			break;
	return at;
}

/* The text from the place of a value on. */
static struct slice text_at(struct slice whole, struct where at)
{
	for (unsigned line = 1; line < at.line; line++)
		slice_cut(&whole, '\n');
	return slice_from(whole, bytes_of(whole, at.column - 1));
}

/* How many bytes the name takes there, with its quotes; 0: it is not written as it is. */
static size_t written_length(struct slice there, struct slice name)
{
	const bool is_quoted = there.len > 0 && (there.ptr[0] == '"' || there.ptr[0] == '\'');
	const size_t quote = is_quoted ? 1 : 0, all = name.len + 2 * quote;
	if (there.len < all || memcmp(there.ptr + quote, name.ptr, name.len) != 0)
		return 0;
	return is_quoted && there.ptr[all - 1] != there.ptr[0] ? 0 : all;
}

static void put_key(struct text *out, const unsigned char der[IMAGE_KEY_DER])
{
	char digits[DIGITS];
	base64_write(slice_of(der, IMAGE_KEY_DER), digits);
	text_put(out, SLICE(PEM_BEGIN));
	text_put(out, slice_of(digits, sizeof(digits)));
	text_put(out, SLICE(PEM_END));
}

static void replace(struct copying *c, const struct node *key)
{
	unsigned char der[IMAGE_KEY_DER];
	struct slice there = text_at(c->whole, key->at);
	const size_t written = written_length(there, key->text);
	if (!image_key_read(&c->loader, key, der))
		return;
	if (written == 0 || there.ptr < c->rest.ptr) {
		node_error(c->loader.errs, key, "expected the name of a file in one line, as it is, or the key itself");
		return;
	}
	text_put(&c->out, slice_of(c->rest.ptr, (size_t)(there.ptr - c->rest.ptr)));
	put_key(&c->out, der);
	c->rest = slice_from(there, written);
}

static void replace_all(struct copying *c, const struct node *images)
{
	for (const struct node *n = images && images->kind == NODE_LIST ? images->first : NULL; n; n = n->next) {
		const struct node *key = get(n, "key");
		if (key && key->kind == NODE_TEXT && !image_key_is_pem(key->text) && n->index < LIMIT_IMAGES)
			replace(c, key);
	}
	text_put(&c->out, c->rest);
	text_put_char(&c->out, '\0');
}

char *policy_with_keys(const char *text, const char *path, struct policy_errors *errs)
{
	struct policy policy = {.files = NULL};
	struct policy_errors *syntax = calloc(1, sizeof(*syntax));
	struct arena arena;
	const size_t before = errs->n, room = strlen(text) + LIMIT_IMAGES * WRITTEN + 1;
	char *out = malloc(room);
	struct copying c = {.loader = {.errs = errs, .arena = &arena, .policy = &policy, .path = path},
			    .whole = slice_str(text),
			    .rest = slice_str(text),
			    .out = text_in(out, room)};
	arena_init(&arena, LIMIT_POLICY_REGION);
	arena_init(&c.loader.scratch, LIMIT_POLICY_SCRATCH);
	c.loader.room = (struct node_room){&c.loader.scratch, LIMIT_POLICY_NODES};
	if (syntax && out)
		replace_all(&c, get(node_read_yaml(c.whole, path, &c.loader.room, syntax), "images"));
	if (!syntax || errs->n > before || !text_ok(&c.out)) {
		free(out);
		out = NULL;
	}
	arena_free(&c.loader.scratch);
	arena_free(&arena);
	free(syntax);
	return out;
}
