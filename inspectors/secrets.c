/* secrets: credentials must not leave, but for the service that issued them.
 *
 * Looks for the formats of the built-in catalogue and for those that the policy adds (`extra`), in every part of a
 * request and in every view of it. A format passes where it belongs: at the hosts that the catalogue lists for it, at the rules that
 * `allow` lists for it; `off` turns one off everywhere. */
#include <hs/hs.h>
#include <stdlib.h>

#include "inspectors/table.h"

struct allowance {
	struct slice format;
	const struct policy_rule *rule;
};

struct secrets_conf {
	struct format *extra;
	size_t n_extra;
	struct allowance *allowed;
	size_t n_allowed;
	struct slice *off;
	size_t n_off;
};

/* ---- policy ---- */

static void read_id(struct loader *l, const struct node *value, void *out)
{
	struct format *f = out;
	if (value->kind != NODE_TEXT || !word_is_plain(value->text, LIMIT_RULE_ID)) {
		node_error(l->errs, value, "expected 1 to %d letters, digits, '.', '_' or '-', got %s", LIMIT_RULE_ID,
			   node_describe(value).text);
		return;
	}
	f->id = arena_dup(l->arena, value->text);
	if (!f->id.ptr)
		load_no_memory(l);
}

/* What is found everywhere blocks everything. */
static void check_least(struct loader *l, const struct node *value)
{
	hs_expr_info_t *info = NULL;
	hs_compile_error_t *error = NULL;
	char *pattern = load_scratch(l, value->text.len + 1, 1);
	if (!pattern)
		return;
	memcpy(pattern, value->text.ptr, value->text.len);
	if (hs_expression_info(pattern, HS_FLAG_DOTALL, &info, &error) != HS_SUCCESS)
		node_error(l->errs, value, "the pattern can't be used: %s", error->message);
	else if (info->min_width < LIMIT_SECRET_MIN)
		node_error(l->errs, value, "expected a pattern whose matches have at least %d bytes, got one of %u",
			   LIMIT_SECRET_MIN, info->min_width);
	hs_free_compile_error(error);
	free(info);
}

/* Compiled once by itself, so that an error is told where the pattern stands. */
static void read_pattern(struct loader *l, const struct node *value, void *out)
{
	struct format *f = out;
	struct scan_bytes bytes;
	const char *why = "";
	size_t at;
	if (!text_check(l, value, "a pattern"))
		return;
	f->pattern = arena_dup(l->arena, value->text);
	if (!f->pattern.ptr) {
		load_no_memory(l);
		return;
	}
	enum cage_status st = scan_set_compile(f, 1, &l->scratch, &bytes, &at, &why);
	if (st == CAGE_ENOMEM)
		load_no_memory(l);
	else if (st != CAGE_OK)
		node_error(l->errs, value, "the pattern can't be used: %s", why);
	else
		check_least(l, value);
}

static void read_nothing(struct loader *l, const struct node *value, void *out)
{
	(void)l, (void)value, (void)out; /* read once all formats are known */
}

static const struct key extra_keys[] = {
	{WORD("id"), read_id, KEY_REQUIRED},
	{WORD("pattern"), read_pattern, KEY_REQUIRED},
	{WORD("allow"), read_nothing, KEY_OPTIONAL},
};

static void read_extra(struct loader *l, const struct node *value, void *out)
{
	struct secrets_conf *conf = out;
	if (!list_check(l, value, "formats such as {id: corp-key, pattern: 'CORP-[0-9A-F]{32}'}"))
		return;
	conf->extra = load_keep(l, value->count, sizeof(*conf->extra));
	if (!conf->extra)
		return;
	for (const struct node *item = value->first; item; item = item->next)
		section_read(l, item, extra_keys, sizeof(extra_keys) / sizeof(extra_keys[0]),
			     &conf->extra[conf->n_extra++]);
}

static const struct key secrets_keys[] = {
	{WORD("extra"), read_extra, KEY_OPTIONAL},
	{WORD("allow"), read_nothing, KEY_OPTIONAL},
	{WORD("off"), read_nothing, KEY_OPTIONAL},
};

static bool is_in(const struct format *list, size_t n, struct slice id)
{
	for (size_t i = 0; i < n; i++)
		if (slice_eq(list[i].id, id))
			return true;
	return false;
}

/* The id of a format that there is, or an error with the one that was probably meant. */
static bool format_check(struct loader *l, const struct node *item, const struct secrets_conf *conf)
{
	size_t n;
	const struct format *catalogue = scan_catalogue_formats(&n);
	struct near near = {.text = item->text};
	if (item->kind == NODE_TEXT &&
	    (is_in(catalogue, n, item->text) || is_in(conf->extra, conf->n_extra, item->text)))
		return true;
	for (size_t i = 0; i < n; i++)
		near_try(&near, catalogue[i].id);
	for (size_t i = 0; i < conf->n_extra; i++)
		near_try(&near, conf->extra[i].id);
	node_error(l->errs, item, "expected the id of a secret format, got %s%s", node_describe(item).text,
		   near_hint(&near).text);
	return false;
}

/* node_error or node_key_error. */
typedef void tell_error(struct policy_errors *errs, const struct node *at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* A rule under which secrets are looked for, or NULL with an error. */
static const struct policy_rule *rule_find(struct loader *l, const struct node *at, struct slice id, tell_error *tell)
{
	const struct policy_rule *rule = map_get(&l->ids, id);
	if (!rule) {
		tell(l->errs, at, "there is no rule %s", quote(id).text);
		return NULL;
	}
	switch (rule->action) {
	case RULE_ALLOW:
		return rule;
	case RULE_DENY:
		tell(l->errs, at, "%s is a deny rule: nothing can be allowed there", quote(id).text);
		return NULL;
	case RULE_TUNNEL:
		tell(l->errs, at, "%s is a tunnel: nobody looks into it, and there is nothing to allow",
		     quote(id).text);
		return NULL;
	}
	return NULL;
}

static void add_allowance(struct secrets_conf *conf, struct slice format, const struct policy_rule *rule)
{
	if (rule)
		conf->allowed[conf->n_allowed++] = (struct allowance){format, rule};
}

/* extra[].allow: rules where that format may go. */
static void allow_extra(struct loader *l, const struct node *extra, struct secrets_conf *conf)
{
	const struct format *f = conf->extra;
	for (const struct node *item = extra->first; item; item = item->next, f++) {
		const struct node *rules = node_get(item, SLICE("allow"));
		if (!rules || !list_check(l, rules, "rule ids"))
			continue;
		for (const struct node *r = rules->first; r; r = r->next)
			add_allowance(conf, f->id, rule_find(l, r, r->text, node_error));
	}
}

/* allow: {rule: [format, ...]} */
static void allow_formats(struct loader *l, const struct node *allow, struct secrets_conf *conf)
{
	if (allow->kind != NODE_MAP) {
		node_error(l->errs, allow, "expected a mapping from rules to lists of formats, got %s",
			   node_describe(allow).text);
		return;
	}
	for (const struct node *list = allow->first; list; list = list->next) {
		const struct policy_rule *rule = rule_find(l, list, list->key, node_key_error);
		if (!list_check(l, list, "formats"))
			continue;
		for (const struct node *item = list->first; item; item = item->next) {
			struct slice id = arena_dup(l->arena, item->text);
			if (!id.ptr)
				load_no_memory(l);
			else if (format_check(l, item, conf))
				add_allowance(conf, id, rule);
		}
	}
}

static size_t count_allowances(const struct node *allow, const struct node *extra)
{
	size_t n = 0;
	for (const struct node *list = allow ? allow->first : NULL; list; list = list->next)
		n += list->count;
	for (const struct node *item = extra ? extra->first : NULL; item; item = item->next) {
		const struct node *rules = node_get(item, SLICE("allow"));
		n += rules ? rules->count : 0;
	}
	return n;
}

static void turn_off(struct loader *l, const struct node *off, struct secrets_conf *conf)
{
	if (!list_check(l, off, "formats"))
		return;
	conf->off = load_keep(l, off->count, sizeof(*conf->off));
	for (const struct node *item = off->first; item && conf->off; item = item->next) {
		if (!format_check(l, item, conf))
			continue;
		conf->off[conf->n_off] = arena_dup(l->arena, item->text);
		if (!conf->off[conf->n_off++].ptr)
			load_no_memory(l);
	}
}

static void check_ids(struct loader *l, const struct node *extra, const struct secrets_conf *conf)
{
	size_t n, at = 0;
	const struct format *catalogue = scan_catalogue_formats(&n);
	for (const struct node *item = extra->first; item; item = item->next, at++)
		if (conf->extra[at].id.len > 0 &&
		    (is_in(catalogue, n, conf->extra[at].id) || is_in(conf->extra, at, conf->extra[at].id)))
			node_error(l->errs, item, "the id %s is taken by another format",
				   quote(conf->extra[at].id).text);
}

static void check(struct loader *l, const struct node *section, void *out)
{
	struct secrets_conf *conf = out;
	const struct node *extra = node_get(section, SLICE("extra"));
	const struct node *allow = node_get(section, SLICE("allow"));
	const struct node *off = node_get(section, SLICE("off"));
	conf->allowed = load_keep(l, count_allowances(allow, extra), sizeof(*conf->allowed));
	if (!conf->allowed)
		return;
	if (extra && conf->n_extra > 0) {
		check_ids(l, extra, conf);
		allow_extra(l, extra, conf);
	}
	if (allow)
		allow_formats(l, allow, conf);
	if (off)
		turn_off(l, off, conf);
}

static const struct format *formats(const void *conf, size_t *n)
{
	const struct secrets_conf *c = conf;
	*n = c->n_extra;
	return c->extra;
}

/* ---- at work ---- */

static bool host_matches(struct slice pattern, struct slice host)
{
	if (!slice_starts(pattern, SLICE("*.")))
		return slice_eq(pattern, host);
	struct slice tail = slice_from(pattern, 1); /* ".x": subdomains, never the apex */
	return host.len > tail.len && slice_ends(host, tail);
}

static bool belongs_here(const struct secrets_conf *conf, const struct format *f, const struct subject *s)
{
	/* To its own provider over TLS only: in plain, everybody on the way would read it. */
	for (size_t i = 0; i < f->n_hosts && s->target->scheme == SCHEME_HTTPS; i++)
		if (host_matches(f->hosts[i], s->target->host.text))
			return true;
	for (size_t i = 0; i < conf->n_allowed; i++)
		if (conf->allowed[i].rule == s->rule && slice_eq(conf->allowed[i].format, f->id))
			return true;
	return false;
}

static bool is_off(const struct secrets_conf *conf, const struct format *f)
{
	for (size_t i = 0; i < conf->n_off; i++)
		if (slice_eq(conf->off[i], f->id))
			return true;
	return false;
}

static enum inspect_result on_hit(struct inspection *i, const struct scan_hit *hit, const struct spot *spot)
{
	const struct secrets_conf *conf = inspection_conf(i);
	if (hit->format->generic && spot->place != PLACE_BODY)
		return INSPECT_PASS; /* where a service takes its own keys */
	if (is_off(conf, hit->format) || belongs_here(conf, hit->format, inspection_subject(i)))
		return INSPECT_PASS;
	inspection_report(i, REASON_SECRET_DETECTED, spot, hit->format->id, hit->value);
	return INSPECT_PASS;
}

static const struct secrets_conf no_conf;

const struct inspector secrets_inspector = {.name = WORD("secrets"),
					    .action = ACTION_BLOCK,
					    .conf_size = sizeof(struct secrets_conf),
					    .conf_default = &no_conf,
					    .keys = secrets_keys,
					    .n_keys = sizeof(secrets_keys) / sizeof(secrets_keys[0]),
					    .check = check,
					    .formats = formats,
					    .on_hit = on_hit};
