/* A program of the build: checks the catalogue of formats and writes it as C, with the database that Hyperscan makes of
 * it, so that cage starts without compiling patterns.
 *
 * usage: mkcatalogue CATALOGUE.yaml OUTPUT.c
 * Prints what is wrong as FILE:LINE: TEXT and ends with 1. */
#include <stdio.h>
#include <stdlib.h>
#include <yaml.h>

#include "core/base/limits.h"
#include "inspectors/scan/checks.h"
#include "inspectors/scan/expand.h"
#include "inspectors/scan/scan.h"

#define FORMATS_MAX 1024
#define HOSTS_MAX 256
#define LINE_BYTES 96 /* of the database in one line of C */
#define ID_BYTES "abcdefghijklmnopqrstuvwxyz0123456789-"
#define HOST_BYTES ID_BYTES ".*"

struct book {
	const char *file;
	yaml_document_t yaml;
	struct arena arena;
	size_t errors;
	struct format formats[FORMATS_MAX];
	size_t lines[FORMATS_MAX]; /* where each pattern stands */
	size_t n;
};

static void complain(struct book *b, size_t line, const char *what, const char *why)
{
	fprintf(stderr, "%s:%zu: %s: %s\n", b->file, line, what, why);
	b->errors++;
}

static size_t line_of(const yaml_node_t *node)
{
	return node->start_mark.line + 1;
}

/* ---- values ---- */

/* Text with something in it, made of `bytes` only unless that is NULL; else an error and an empty slice. */
static struct slice read_text(struct book *b, const yaml_node_t *node, const char *what, const char *bytes)
{
	if (node->type != YAML_SCALAR_NODE || node->data.scalar.length == 0) {
		complain(b, line_of(node), what, "must be text");
		return SLICE_NONE;
	}
	const char *text = (const char *)node->data.scalar.value;
	if (bytes && strspn(text, bytes) != node->data.scalar.length) {
		complain(b, line_of(node), what, "has a character that does not belong there");
		return SLICE_NONE;
	}
	return slice_of(text, node->data.scalar.length);
}

/* The items of a list that is not empty; 0 with an error. */
static size_t read_list(struct book *b, const yaml_node_t *node, const char *what, const yaml_node_item_t **items)
{
	if (node->type != YAML_SEQUENCE_NODE || node->data.sequence.items.top == node->data.sequence.items.start) {
		complain(b, line_of(node), what, "must be a list with something in it");
		return 0;
	}
	*items = node->data.sequence.items.start;
	return (size_t)(node->data.sequence.items.top - *items);
}

static void read_id(struct book *b, const yaml_node_t *node, struct format *f)
{
	f->id = read_text(b, node, "id", ID_BYTES);
	for (const struct format *other = b->formats; other < f; other++)
		if (f->id.len > 0 && slice_eq(other->id, f->id))
			complain(b, line_of(node), "id", "is there twice");
}

static void read_name(struct book *b, const yaml_node_t *node, struct format *f)
{
	(void)f;
	(void)read_text(b, node, "name", NULL);
}

static void read_pattern(struct book *b, const yaml_node_t *node, struct format *f)
{
	f->pattern = pattern_expand(read_text(b, node, "pattern", NULL), &b->arena);
	b->lines[f - b->formats] = line_of(node);
}

static void read_filter(struct book *b, const yaml_node_t *node, struct format *f)
{
	f->filter = pattern_expand(read_text(b, node, "filter", NULL), &b->arena);
}

static void read_check(struct book *b, const yaml_node_t *node, struct format *f)
{
	struct slice word = read_text(b, node, "check", NULL);
	for (enum format_check c = CHECK_NONE + 1; c < CHECK_COUNT; c++)
		if (slice_eq(word, format_check_text(c)))
			f->check = c;
	if (f->check == CHECK_NONE)
		complain(b, line_of(node), "check", "must be jwt, crc32, luhn or base64");
}

static void read_entropy(struct book *b, const yaml_node_t *node, struct format *f)
{
	struct slice number = read_text(b, node, "entropy", "0123456789.");
	f->min_entropy = number.len > 0 ? strtod(number.ptr, NULL) : 0;
	if (f->min_entropy <= 0 || f->min_entropy >= 8)
		complain(b, line_of(node), "entropy", "must be a number of bits per byte, between 0 and 8");
}

/* Is it said? No, when it is not one of both words. */
static bool read_flag(struct book *b, const yaml_node_t *node, const char *what)
{
	struct slice word = read_text(b, node, what, NULL);
	bool is_true = slice_eq(word, SLICE("true"));
	if (!is_true && !slice_eq(word, SLICE("false")))
		complain(b, line_of(node), what, "must be true or false");
	return is_true;
}

/* Of those that need not be there, and say something only when they are. */
static bool read_mark(struct book *b, const yaml_node_t *node, const char *what)
{
	bool is_true = slice_eq(read_text(b, node, what, NULL), SLICE("true"));
	if (!is_true)
		complain(b, line_of(node), what, "must be true");
	return is_true;
}

static void read_caseless(struct book *b, const yaml_node_t *node, struct format *f)
{
	f->caseless = read_flag(b, node, "caseless");
}

static void read_generic(struct book *b, const yaml_node_t *node, struct format *f)
{
	f->generic = read_flag(b, node, "generic");
}

static void read_short(struct book *b, const yaml_node_t *node, struct format *f)
{
	f->worded = !read_mark(b, node, "short");
}

static void read_assigned(struct book *b, const yaml_node_t *node, struct format *f)
{
	f->assigned = read_mark(b, node, "assigned");
}

static void read_hosts(struct book *b, const yaml_node_t *node, struct format *f)
{
	const yaml_node_item_t *items;
	size_t n = read_list(b, node, "hosts", &items);
	struct slice *hosts = arena_array(&b->arena, n, sizeof(*hosts));
	if (!hosts || n > HOSTS_MAX) {
		complain(b, line_of(node), "hosts", "are too many");
		return;
	}
	for (size_t i = 0; i < n; i++)
		hosts[i] = read_text(b, yaml_document_get_node(&b->yaml, items[i]), "hosts", HOST_BYTES);
	f->hosts = hosts;
	f->n_hosts = n;
}

/* For the tests; here it only has to be there. */
static void read_examples(struct book *b, const yaml_node_t *node, struct format *f)
{
	const yaml_node_item_t *items;
	size_t n = read_list(b, node, "examples", &items);
	(void)f;
	for (size_t i = 0; i < n; i++)
		(void)read_text(b, yaml_document_get_node(&b->yaml, items[i]), "examples", NULL);
}

/* ---- maps ---- */

static const struct key {
	const char *name;
	void (*read)(struct book *b, const yaml_node_t *node, struct format *f);
	bool is_required;
} keys[] = {
	{"id", read_id, true},
	{"name", read_name, true},
	{"pattern", read_pattern, true},
	{"filter", read_filter, false},
	{"check", read_check, false},
	{"entropy", read_entropy, false},
	{"caseless", read_caseless, false},
	{"short", read_short, false},
	{"assigned", read_assigned, false},
	{"generic", read_generic, false},
	{"hosts", read_hosts, false},
	{"hits", read_examples, true},
	{"misses", read_examples, true},
};
#define N_KEYS (sizeof(keys) / sizeof(keys[0]))

static void read_pair(struct book *b, const yaml_node_pair_t *pair, struct format *f, bool *seen)
{
	const yaml_node_t *key = yaml_document_get_node(&b->yaml, pair->key);
	const yaml_node_t *value = yaml_document_get_node(&b->yaml, pair->value);
	struct slice name = read_text(b, key, "a key", NULL);
	for (size_t i = 0; i < N_KEYS; i++) {
		if (!slice_eq(name, slice_str(keys[i].name)))
			continue;
		if (seen[i])
			complain(b, line_of(key), keys[i].name, "is there twice");
		seen[i] = true;
		keys[i].read(b, value, f);
		return;
	}
	complain(b, line_of(key), name.len ? name.ptr : "?", "is not a key of a format");
}

static void read_format(struct book *b, const yaml_node_t *node)
{
	bool seen[N_KEYS] = {false};
	if (node->type != YAML_MAPPING_NODE || b->n == FORMATS_MAX) {
		complain(b, line_of(node), "formats", "must be maps, and not more than 1024");
		return;
	}
	b->formats[b->n].worded = true;
	for (const yaml_node_pair_t *p = node->data.mapping.pairs.start; p < node->data.mapping.pairs.top; p++)
		read_pair(b, p, &b->formats[b->n], seen);
	for (size_t i = 0; i < N_KEYS; i++)
		if (keys[i].is_required && !seen[i])
			complain(b, line_of(node), keys[i].name, "is missing");
	b->n++;
}

static void read_version(struct book *b, const yaml_node_t *node)
{
	if (!slice_eq(read_text(b, node, "version", NULL), SLICE("1")))
		complain(b, line_of(node), "version", "must be 1");
}

static void read_formats(struct book *b, const yaml_node_t *node)
{
	const yaml_node_item_t *items;
	size_t n = read_list(b, node, "formats", &items);
	for (size_t i = 0; i < n; i++)
		read_format(b, yaml_document_get_node(&b->yaml, items[i]));
}

static void read_book(struct book *b)
{
	const yaml_node_t *root = yaml_document_get_root_node(&b->yaml);
	bool has_version = false;
	if (!root || root->type != YAML_MAPPING_NODE) {
		complain(b, 1, "a catalogue", "must be a map");
		return;
	}
	for (const yaml_node_pair_t *p = root->data.mapping.pairs.start; p < root->data.mapping.pairs.top; p++) {
		const yaml_node_t *key = yaml_document_get_node(&b->yaml, p->key);
		const yaml_node_t *value = yaml_document_get_node(&b->yaml, p->value);
		struct slice name = read_text(b, key, "a key", NULL);
		if (slice_eq(name, SLICE("version"))) {
			has_version = true;
			read_version(b, value);
		} else if (slice_eq(name, SLICE("formats"))) {
			read_formats(b, value);
		} else {
			complain(b, line_of(key), name.len ? name.ptr : "?", "is not a key of a catalogue");
		}
	}
	if (!has_version || b->n == 0)
		complain(b, 1, "a catalogue", "has version: 1 and formats");
}

static void parse(struct book *b, FILE *in)
{
	yaml_parser_t parser;
	if (!yaml_parser_initialize(&parser)) {
		complain(b, 1, "libyaml", "no memory");
		return;
	}
	yaml_parser_set_input_file(&parser, in);
	if (yaml_parser_load(&parser, &b->yaml)) {
		read_book(b);
	} else {
		complain(b, parser.problem_mark.line + 1, "not YAML", parser.problem ? parser.problem : "no memory");
	}
	yaml_parser_delete(&parser);
}

/* ---- C ---- */

/* As the inside of a C string. */
static void put_bytes(FILE *out, struct slice s)
{
	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.ptr[i];
		if (c < 0x20 || c > 0x7e || c == '"' || c == '\\' || c == '?')
			fprintf(out, "\\%03o", c);
		else
			fputc(c, out);
	}
}

static void put_slice(FILE *out, struct slice s)
{
	fputs("{\"", out);
	put_bytes(out, s);
	fprintf(out, "\", %zu}", s.len);
}

static void put_hosts(FILE *out, const struct format *f, size_t i)
{
	if (f->n_hosts == 0)
		return;
	fprintf(out, "static const struct slice hosts_%zu[] = {", i);
	for (size_t h = 0; h < f->n_hosts; h++) {
		put_slice(out, f->hosts[h]);
		fputs(", ", out);
	}
	fputs("};\n", out);
}

static void put_format(FILE *out, const struct format *f, size_t i)
{
	fputs("\t{.id = ", out);
	put_slice(out, f->id);
	fputs(", .pattern = ", out);
	put_slice(out, f->pattern);
	fputs(", .filter = ", out);
	put_slice(out, f->filter);
	fprintf(out,
		", .max_len = %u, .caseless = %d, .worded = %d, .assigned = %d, .generic = %d, .min_entropy = %g, "
		".check = (enum format_check)%d",
		f->max_len, f->caseless, f->worded, f->assigned, f->generic, f->min_entropy, (int)f->check);
	if (f->n_hosts > 0)
		fprintf(out, ", .hosts = hosts_%zu, .n_hosts = %zu", i, f->n_hosts);
	fputs("},\n", out);
}

static void put_database(FILE *out, enum scan_pass pass, struct slice bytes)
{
	fprintf(out, "static const char database_%d[] =\n\t\"\"\n", (int)pass);
	for (struct slice rest = bytes; rest.len > 0; rest = slice_from(rest, LINE_BYTES)) {
		fputs("\t\"", out);
		put_bytes(out, slice_head(rest, LINE_BYTES));
		fputs("\"\n", out);
	}
	fputs(";\n", out);
}

static void put_databases(FILE *out, const struct scan_bytes *bytes)
{
	for (enum scan_pass p = 0; p < SCAN_PASSES; p++)
		put_database(out, p, bytes->of[p]);
	fputs("const struct scan_bytes catalogue_bytes = {{", out);
	for (enum scan_pass p = 0; p < SCAN_PASSES; p++)
		fprintf(out, "{database_%d, %zu}, ", (int)p, bytes->of[p].len);
	fputs("}};\n", out);
}

static bool write_c(const struct book *b, const struct scan_bytes *bytes, const char *path)
{
	FILE *out = fopen(path, "w");
	if (!out)
		return false;
	fputs("/* Made by mkcatalogue. */\n#include \"inspectors/scan/catalogue.h\"\n\n", out);
	for (size_t i = 0; i < b->n; i++)
		put_hosts(out, &b->formats[i], i);
	fputs("const struct format catalogue_formats[] = {\n", out);
	for (size_t i = 0; i < b->n; i++)
		put_format(out, &b->formats[i], i);
	fprintf(out, "};\nconst size_t catalogue_n = %zu;\n", b->n);
	put_databases(out, bytes);
	bool is_good = !ferror(out);
	return fclose(out) == 0 && is_good;
}

static void compile(struct book *b, const char *path)
{
	struct scan_bytes bytes;
	size_t at = 0;
	const char *why = "no memory";
	if (scan_set_compile(b->formats, b->n, &b->arena, &bytes, &at, &why) != CAGE_OK) {
		complain(b, b->lines[at], "pattern", why);
	} else if (!write_c(b, &bytes, path)) {
		perror(path);
		remove(path);
		b->errors++;
	}
}

int main(int argc, char **argv)
{
	static struct book b;
	FILE *in = argc == 3 ? fopen(argv[1], "rb") : NULL;
	if (!in) {
		fprintf(stderr, "usage: mkcatalogue CATALOGUE.yaml OUTPUT.c\n");
		return 2;
	}
	b.file = argv[1];
	arena_init(&b.arena, MIB(256));
	parse(&b, in);
	if (b.errors == 0)
		compile(&b, argv[2]);
	yaml_document_delete(&b.yaml);
	arena_free(&b.arena);
	fclose(in);
	return b.errors == 0 ? 0 : 1;
}
