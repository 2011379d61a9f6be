/* The benign corpus: request bodies of real programs, each with the head that its manifest says. Bodies come with their
 * content codings undone. CAGE_CORPORA says where the corpora are; without them the tests are skipped. */
#ifndef CAGE_TESTS_INSPECTORS_CORPUS_H
#define CAGE_TESTS_INSPECTORS_CORPUS_H

#include <stdio.h>

#include "core/http/decode.h"
#include "tests/unit/corpus.h"
#include "tests/unit/inspectors/stub.h"

#define CORPUS_LINE 4096
#define CORPUS_BODY MIB(16)

struct corpus_item {
	char file[256], content_type[256], coding[32];
	char *body;
	size_t len;
};

/* The text of a key of a flat JSON object; manifests have no escapes. */
static inline void corpus_get(const char *line, const char *key, char *out, size_t room)
{
	char quoted[64];
	snprintf(quoted, sizeof(quoted), "\"%s\": \"", key);
	const char *value = strstr(line, quoted);
	assert_non_null(value);
	value += strlen(quoted);
	size_t n = strcspn(value, "\"");
	assert_true(n < room);
	memcpy(out, value, n);
	out[n] = '\0';
}

static inline enum cage_status corpus_sink(void *arg, unsigned codings, struct slice piece)
{
	struct corpus_item *item = arg;
	if (codings > 0)
		return CAGE_OK;
	assert_true(item->len + piece.len <= CORPUS_BODY);
	memcpy(item->body + item->len, piece.ptr, piece.len);
	item->len += piece.len;
	return CAGE_OK;
}

static inline void corpus_read(const char *dir, struct corpus_item *item)
{
	char path[1024], block[16384];
	struct decoder *decoder;
	snprintf(path, sizeof(path), "%s/benign/%s", dir, item->file);
	FILE *f = fopen(path, "rb");
	assert_non_null(f);
	assert_int_equal(decoder_new(slice_str(item->coding), corpus_sink, item, &decoder), CAGE_OK);
	for (size_t n; (n = fread(block, 1, sizeof(block), f)) > 0;) {
		struct slice piece = slice_of(block, n);
		assert_int_equal(decoder ? decoder_feed(decoder, piece) : corpus_sink(item, 0, piece), CAGE_OK);
	}
	if (decoder)
		assert_int_equal(decoder_end(decoder), CAGE_OK);
	decoder_free(&decoder);
	fclose(f);
}

static inline void corpus_each(void (*look)(const struct corpus_item *))
{
	const char *dir = getenv("CAGE_CORPORA");
	char line[CORPUS_LINE];
	FILE *manifest = corpus_open("benign/manifest");
	struct corpus_item *item = calloc(1, sizeof(*item));
	assert_non_null(item);
	item->body = malloc(CORPUS_BODY);
	assert_non_null(item->body);
	while (fgets(line, sizeof(line), manifest)) {
		item->len = 0;
		corpus_get(line, "file", item->file, sizeof(item->file));
		corpus_get(line, "content_type", item->content_type, sizeof(item->content_type));
		corpus_get(line, "content_encoding", item->coding, sizeof(item->coding));
		corpus_read(dir ? dir : CORPORA, item);
		look(item);
	}
	free(item->body);
	free(item);
	fclose(manifest);
}

#endif
