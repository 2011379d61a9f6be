/* canary: strings that the operator has planted, in files or variables that an agent has no business with. Any
 * appearance in any view is a block, also in other case, reversed, or with characters between that nobody sees. */
#include "core/base/text.h"
#include "inspectors/table.h"

struct canary_conf {
	struct format *formats; /* two for each string: as it is, and reversed */
	size_t n_formats;
};

/* A byte as a pattern that means just this byte. */
static void put_literal(struct text *t, char byte)
{
	text_put(t, SLICE("\\x"));
	text_put_hex(t, &byte, 1);
}

/* Characters that nobody sees: soft hyphen, zero width space and its kin, word joiner, byte order mark. */
#define UNSEEN "(?:\\xc2\\xad|\\xe2\\x80[\\x8b-\\x8f]|\\xe2\\x81[\\xa0-\\xa4]|\\xef\\xbb\\xbf){0,3}"

static struct slice literal_pattern(struct loader *l, struct slice s, bool reversed)
{
	size_t room = (4 + sizeof(UNSEEN)) * s.len;
	char *buf = load_keep(l, room, 1);
	struct text t = text_in(buf, buf ? room : 0);
	for (size_t i = 0; i < s.len; i++) {
		if (i > 0)
			text_put(&t, SLICE(UNSEEN));
		put_literal(&t, s.ptr[reversed ? s.len - 1 - i : i]);
	}
	return text_slice(&t);
}

/* The log names a canary by its place in the list: its text is not for the log. */
static struct slice canary_id(struct loader *l, size_t number)
{
	char *buf = load_keep(l, 32, 1);
	struct text t = text_in(buf, buf ? 32 : 0);
	text_put(&t, SLICE("canary-"));
	text_put_u64(&t, number);
	return text_slice(&t);
}

static void read_string(struct loader *l, const struct node *item, struct canary_conf *conf)
{
	if (!text_check(l, item, "a string"))
		return;
	if (item->text.len < LIMIT_CANARY_MIN || item->text.len > LIMIT_CANARY_MAX) {
		node_error(l->errs, item, "expected %d to %d bytes, got %zu", LIMIT_CANARY_MIN, LIMIT_CANARY_MAX,
			   item->text.len);
		return;
	}
	struct slice id = canary_id(l, item->index + 1);
	for (size_t i = 0; i < 2; i++)
		conf->formats[conf->n_formats++] =
			(struct format){.id = id, .pattern = literal_pattern(l, item->text, i == 1), .caseless = true};
}

static void read_strings(struct loader *l, const struct node *value, void *out)
{
	struct canary_conf *conf = out;
	if (!list_check(l, value, "strings"))
		return;
	conf->formats = load_keep(l, 2 * value->count, sizeof(*conf->formats));
	for (const struct node *item = value->first; item && conf->formats; item = item->next)
		read_string(l, item, conf);
}

/* Without strings it would promise something that it does not do. */
static void check(struct loader *l, const struct node *section, void *out)
{
	(void)out;
	const struct node *action = node_get(section, SLICE("action"));
	bool is_off = action && slice_eq(action->text, SLICE("off"));
	if (!node_get(section, SLICE("strings")) && !is_off)
		node_error(l->errs, section, "missing key \"strings\"");
}

static const struct format *formats(const void *conf, size_t *n)
{
	const struct canary_conf *c = conf;
	*n = c->n_formats;
	return c->formats;
}

static enum inspect_result on_hit(struct inspection *i, const struct scan_hit *hit, const struct spot *spot)
{
	inspection_report(i, REASON_CANARY_DETECTED, spot, hit->format->id, hit->value);
	return INSPECT_PASS;
}

static const struct key canary_keys[] = {{WORD("strings"), read_strings, KEY_OPTIONAL}};

static const struct canary_conf no_conf;

const struct inspector canary_inspector = {.name = WORD("canary"),
					   .action = ACTION_BLOCK,
					   .conf_size = sizeof(struct canary_conf),
					   .conf_default = &no_conf,
					   .keys = canary_keys,
					   .n_keys = 1,
					   .check = check,
					   .formats = formats,
					   .on_hit = on_hit};
