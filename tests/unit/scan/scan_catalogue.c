/* The catalogue that is built in, against the examples of policies/catalogue.yaml: every hit is found wherever it is
 * cut, no miss is. */
#include "core/base/text.h"
#include "inspectors/scan/expand.h"
#include "tests/unit/scan/fixture.h"

#include <yaml.h>

static yaml_document_t yaml;
static struct scan *scan;
static struct hits hits;

static int setup(void **state)
{
	yaml_parser_t parser;
	FILE *in = fopen(CATALOGUE, "rb");
	(void)state;
	if (!in || !yaml_parser_initialize(&parser))
		return -1;
	yaml_parser_set_input_file(&parser, in);
	int loaded = yaml_parser_load(&parser, &yaml);
	yaml_parser_delete(&parser);
	fclose(in);
	const struct scan_set *set = scan_catalogue();
	scan = set ? scan_new(set, see, NULL) : NULL;
	return loaded && scan ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	hits_clear(&hits);
	scan_free(&scan);
	yaml_document_delete(&yaml);
	return 0;
}

static yaml_node_t *node_at(int id)
{
	return yaml_document_get_node(&yaml, id);
}

static struct slice text_of(const yaml_node_t *node)
{
	assert_int_equal(node->type, YAML_SCALAR_NODE);
	return slice_of(node->data.scalar.value, node->data.scalar.length);
}

/* The value of a key in a map; NULL: it is not there. */
static yaml_node_t *value_of(const yaml_node_t *map, const char *key)
{
	assert_int_equal(map->type, YAML_MAPPING_NODE);
	for (const yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top; p++)
		if (slice_eq(text_of(node_at(p->key)), slice_str(key)))
			return node_at(p->value);
	return NULL;
}

typedef void example(struct slice id, struct slice text);

/* Calls f for each text in that list of each format. */
static void each(const char *list, example *f)
{
	const yaml_node_t *formats = value_of(yaml_document_get_root_node(&yaml), "formats");
	for (const yaml_node_item_t *i = formats->data.sequence.items.start; i < formats->data.sequence.items.top;
	     i++) {
		struct slice id = text_of(value_of(node_at(*i), "id"));
		const yaml_node_t *texts = value_of(node_at(*i), list);
		assert_non_null(texts);
		for (const yaml_node_item_t *t = texts->data.sequence.items.start; t < texts->data.sequence.items.top;
		     t++)
			f(id, text_of(node_at(*t)));
	}
}

/* The first hit of that format; NULL: none. */
static const struct seen *hit_of(struct slice id)
{
	for (size_t i = 0; i < hits.n; i++)
		if (slice_eq(hits.list[i].format->id, id))
			return &hits.list[i];
	return NULL;
}

static void must_hit(struct slice id, struct slice text, size_t cut, size_t step, const struct seen *wanted)
{
	scan_cut(scan, text, cut, step, &hits);
	const struct seen *got = hit_of(id);
	if (!got || got->certainty != SCAN_CONFIRMED)
		fail_msg("%.*s: not found in '%.*s' cut at %zu", SLICE_FMT(id), SLICE_FMT(text), cut);
	assert_memory_equal(text.ptr + got->offset, got->value.ptr, got->value.len);
	if (wanted && (got->offset != wanted->offset || !slice_eq(got->value, wanted->value)))
		fail_msg("%.*s: another value in '%.*s' cut at %zu", SLICE_FMT(id), SLICE_FMT(text), cut);
}

static void hit_is_found(struct slice id, struct slice text)
{
	must_hit(id, text, text.len, 0, NULL);
	struct seen whole = *hit_of(id);
	char *value = malloc(whole.value.len + 1);
	assert_non_null(value);
	memcpy(value, whole.value.ptr, whole.value.len);
	whole.value.ptr = value;
	for (size_t cut = 0; cut < text.len; cut++)
		must_hit(id, text, cut, 0, &whole);
	must_hit(id, text, 0, 1, &whole);
	free(value);
}

/* In the middle of a long text, where the tail and the seam matter. */
static void hit_is_found_far_inside(struct slice id, struct slice text)
{
	enum { BEFORE = 9000, AFTER = 5000 };
	size_t len = BEFORE + text.len + AFTER;
	char *padded = malloc(len);
	assert_non_null(padded);
	memset(padded, '\n', len);
	memcpy(padded + BEFORE, text.ptr, text.len);
	for (size_t step = 512; step <= 8192; step *= 2)
		must_hit(id, slice_of(padded, len), BEFORE + text.len / 2, step, NULL);
	free(padded);
}

static void miss_is_not_found(struct slice id, struct slice text)
{
	scan_cut(scan, text, text.len / 2, 0, &hits);
	if (hit_of(id))
		fail_msg("%.*s: found in '%.*s'", SLICE_FMT(id), SLICE_FMT(text));
}

static size_t lost;

/* As a line of a file that stands in a JSON string. */
static void hit_is_found_in_a_json_string(struct slice id, struct slice text)
{
	static const struct slice before = {"first line\\n", 12}, after = {"\\nlast line", 11};
	char *quoted = malloc(before.len + 2 * text.len + after.len);
	assert_non_null(quoted);
	struct text t = text_in(quoted, before.len + 2 * text.len + after.len);
	text_put(&t, before);
	for (size_t i = 0; i < text.len; i++) {
		char c = text.ptr[i];
		if (c == '"' || c == '\\' || c == '\n' || c == '\t' || c == '\r')
			text_put_char(&t, '\\');
		text_put_char(&t, c == '\n' ? 'n' : c == '\t' ? 't' : c == '\r' ? 'r' : c);
	}
	text_put(&t, after);
	scan_cut(scan, text_slice(&t), 0, 7, &hits);
	if (!hit_of(id)) {
		print_error("%.*s: not found in '%.*s'\n", SLICE_FMT(id), SLICE_FMT(text_slice(&t)));
		lost++;
	}
	free(quoted);
}

static void t29_every_hit_in_a_json_string(void **state)
{
	(void)state;
	lost = 0;
	each("hits", hit_is_found_in_a_json_string);
	assert_int_equal(lost, 0);
}

static void every_hit(void **state)
{
	(void)state;
	each("hits", hit_is_found);
}

static void t25_every_hit_far_inside(void **state)
{
	(void)state;
	each("hits", hit_is_found_far_inside);
}

static void no_miss(void **state)
{
	(void)state;
	each("misses", miss_is_not_found);
}

static void table(void **state)
{
	(void)state;
	size_t n;
	struct arena arena;
	const struct format *formats = scan_catalogue_formats(&n);
	const yaml_node_t *list = value_of(yaml_document_get_root_node(&yaml), "formats");
	assert_int_equal(n, list->data.sequence.items.top - list->data.sequence.items.start);
	assert_true(n >= 120);
	arena_init(&arena, MIB(4));
	for (size_t i = 0; i < n; i++) {
		const yaml_node_t *format = node_at(list->data.sequence.items.start[i]);
		const yaml_node_t *hosts = value_of(format, "hosts");
		assert_true(slice_eq(formats[i].id, text_of(value_of(format, "id"))));
		assert_true(slice_eq(formats[i].pattern, pattern_expand(text_of(value_of(format, "pattern")), &arena)));
		assert_true(formats[i].max_len > 0 && formats[i].max_len < LIMIT_SCAN_TAIL);
		assert_int_equal(formats[i].n_hosts,
				 hosts ? hosts->data.sequence.items.top - hosts->data.sequence.items.start : 0);
	}
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table),
		cmocka_unit_test(every_hit),
		cmocka_unit_test(t29_every_hit_in_a_json_string),
		cmocka_unit_test(t25_every_hit_far_inside),
		cmocka_unit_test(no_miss),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
