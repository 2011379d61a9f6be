/* The section `inspectors`: one mapping for each inspector, `action` and the keys that it has itself. */
#include "inspectors/chain.h"
#include "inspectors/chain_conf.h"
#include "inspectors/table.h"

static void read_action(struct loader *l, const struct node *value, struct inspector_conf *to)
{
	static const struct slice words[] = {
		[ACTION_OFF] = WORD("off"), [ACTION_FLAG] = WORD("flag"), [ACTION_BLOCK] = WORD("block")};
	size_t i;
	if (choice_read(l, value, words, 3, &i))
		to->action = (enum inspect_action)i;
}

static const struct inspector *find_inspector(struct slice name, size_t *index)
{
	for (*index = 0; *index < n_inspectors; ++*index)
		if (slice_eq(inspectors[*index]->name, name))
			return inspectors[*index];
	return NULL;
}

static void unknown_inspector(struct loader *l, const struct node *section)
{
	struct near near = {.text = section->key};
	for (size_t i = 0; i < n_inspectors; i++)
		near_try(&near, inspectors[i]->name);
	node_key_error(l->errs, section, "there is no such inspector%s", near_hint(&near).text);
}

/* Read already, into the entry. */
static void skip_action(struct loader *l, const struct node *value, void *conf)
{
	(void)l, (void)value, (void)conf;
}

/* `action` goes to the entry, every other key to the inspector's own conf. */
static void read_keys(struct loader *l, const struct node *section, const struct inspector *by,
		      struct inspector_conf *to, void *conf)
{
	const struct node *action = node_get(section, SLICE("action"));
	struct key *keys = load_scratch(l, by->n_keys + 1, sizeof(*keys));
	if (!keys)
		return;
	keys[0] = (struct key){WORD("action"), skip_action, KEY_OPTIONAL};
	for (size_t i = 0; i < by->n_keys; i++)
		keys[i + 1] = by->keys[i];
	if (action)
		read_action(l, action, to);
	section_read(l, section, keys, by->n_keys + 1, conf);
}

static void read_inspector(struct loader *l, const struct node *section, struct chain_conf *chain)
{
	size_t i;
	const struct inspector *by = find_inspector(section->key, &i);
	if (!by) {
		unknown_inspector(l, section);
		return;
	}
	if (section->kind != NODE_MAP) {
		node_error(l->errs, section, "expected a mapping such as {action: flag}, got %s",
			   node_describe(section).text);
		return;
	}
	struct inspector_conf *to = &chain->list[i];
	read_keys(l, section, by, to, to->conf);
	if (by->check)
		by->check(l, section, to->conf);
}

/* Every inspector as it is without a word about it. */
static bool set_defaults(struct loader *l, struct chain_conf *chain)
{
	chain->list = load_keep(l, n_inspectors, sizeof(*chain->list));
	if (!chain->list)
		return false;
	for (size_t i = 0; i < n_inspectors; i++) {
		const struct inspector *by = inspectors[i];
		void *conf = load_keep(l, 1, by->conf_size);
		if (!conf)
			return false;
		if (by->conf_default)
			memcpy(conf, by->conf_default, by->conf_size);
		chain->list[i] = (struct inspector_conf){.action = by->action, .conf = conf};
	}
	return true;
}

static const struct format *formats_of(const struct chain_conf *chain, size_t i, size_t *n)
{
	*n = 0;
	if (!inspectors[i]->formats || chain->list[i].action == ACTION_OFF)
		return NULL;
	return inspectors[i]->formats(chain->list[i].conf, n);
}

static bool gather_formats(struct loader *l, struct chain_conf *chain)
{
	size_t n, total = 0;
	for (size_t i = 0; i < n_inspectors; i++) {
		formats_of(chain, i, &n);
		total += n;
	}
	chain->formats = load_keep(l, total, sizeof(*chain->formats));
	chain->owners = load_keep(l, total, sizeof(*chain->owners));
	if (!chain->formats || !chain->owners)
		return false;
	for (size_t i = 0; i < n_inspectors; i++) {
		const struct format *list = formats_of(chain, i, &n);
		for (size_t j = 0; j < n; j++) {
			chain->owners[chain->n_formats] = i;
			chain->formats[chain->n_formats++] = list[j];
		}
	}
	return true;
}

/* Patterns were checked one by one where they stand; together they may still be too much. */
static bool compile_formats(struct loader *l, const struct node *section, struct chain_conf *chain)
{
	const char *why = "";
	size_t at = 0;
	if (chain->n_formats == 0)
		return true;
	enum cage_status st =
		scan_set_compile(chain->formats, chain->n_formats, l->arena, &chain->databases, &at, &why);
	if (st == CAGE_OK)
		return true;
	if (st == CAGE_ENOMEM)
		load_no_memory(l);
	else
		node_error(l->errs, section, "the pattern of %s can't be compiled: %s",
			   quote(chain->formats[at].id).text, why);
	return false;
}

const void *chain_read_policy(struct loader *l, const struct node *section)
{
	struct chain_conf *chain = load_keep(l, 1, sizeof(*chain));
	size_t errors = l->errs->n;
	if (!chain || !set_defaults(l, chain))
		return NULL;
	if (section && section->kind != NODE_MAP) {
		node_error(l->errs, section, "expected a mapping of inspectors, got %s", node_describe(section).text);
		return NULL;
	}
	for (const struct node *s = section ? section->first : NULL; s; s = s->next)
		read_inspector(l, s, chain);
	if (l->errs->n != errors || !gather_formats(l, chain) || !compile_formats(l, section, chain))
		return NULL;
	return chain;
}
