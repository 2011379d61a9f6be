/* Loading a policy: file and includes to bytes, to trees, to rules, to tables; checked on the way, tested at the end.
 * Every stage runs only on what the one before left without an error, and reports all that it finds. */
#include "core/policy/load.h"

#include <openssl/evp.h>

#include "core/base/text.h"

/* A file of the policy as it was read. */
struct source {
	const char *path;
	struct slice bytes;
	struct file_id id;
	const struct node *root;
};

struct sources {
	struct source list[1 + LIMIT_POLICY_INCLUDES]; /* the policy first */
	size_t n;
};

void load_no_memory(struct loader *l)
{
	error_at(l->errs, (struct where){l->path, 0, 0}, "the policy is too big for the memory it may use");
}

static void *checked(struct loader *l, void *p)
{
	if (!p)
		load_no_memory(l);
	return p;
}

void *load_keep(struct loader *l, size_t n, size_t size)
{
	return checked(l, arena_array(l->arena, n, size));
}

void *load_scratch(struct loader *l, size_t n, size_t size)
{
	return checked(l, arena_array(&l->scratch, n, size));
}

static void read_version(struct loader *l, const struct node *value, void *out)
{
	(void)out;
	if (value->kind != NODE_TEXT || !slice_eq(value->text, SLICE("1")))
		node_error(l->errs, value, "expected 1, got %s", node_describe(value).text);
}

static bool has_upper(struct slice s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.ptr[i] >= 'A' && s.ptr[i] <= 'Z')
			return true;
	return false;
}

static void read_name(struct loader *l, const struct node *value, void *out)
{
	(void)out;
	if (value->kind != NODE_TEXT || !word_is_plain(value->text, LIMIT_POLICY_NAME) || has_upper(value->text)) {
		node_error(l->errs, value, "expected 1 to %d of a-z, 0-9, '.', '_' or '-', got %s", LIMIT_POLICY_NAME,
			   node_describe(value).text);
		return;
	}
	l->policy->name = arena_dup(l->arena, value->text);
	if (!l->policy->name.ptr)
		load_no_memory(l);
}

static void read_mode(struct loader *l, const struct node *value, void *out)
{
	(void)out;
	mode_read(l, value, &l->policy->mode);
}

/* Sections that need the whole map to be known: the mode, the secrets, and how many rules there are. */
static void read_later(struct loader *l, const struct node *value, void *out)
{
	(void)l, (void)value, (void)out;
}

static const struct key policy_keys[] = {
	{WORD("version"), read_version, KEY_REQUIRED},  {WORD("name"), read_name, KEY_REQUIRED},
	{WORD("mode"), read_mode, KEY_OPTIONAL},        {WORD("include"), read_later, KEY_OPTIONAL},
	{WORD("rules"), read_later, KEY_OPTIONAL},      {WORD("upstream"), read_later, KEY_OPTIONAL},
	{WORD("tests"), read_later, KEY_OPTIONAL},      {WORD("secrets"), read_later, KEY_OPTIONAL},
	{WORD("inspectors"), read_later, KEY_OPTIONAL}, {WORD("dns"), read_later, KEY_OPTIONAL},
	{WORD("images"), read_later, KEY_OPTIONAL},
};

static void refuse_in_include(struct loader *l, const struct node *value, void *out)
{
	(void)out;
	node_key_error(l->errs, value, "an included file may have only version and rules");
}

static const struct key include_keys[] = {
	{WORD("version"), read_version, KEY_OPTIONAL},         {WORD("rules"), read_later, KEY_REQUIRED},
	{WORD("name"), refuse_in_include, KEY_OPTIONAL},       {WORD("mode"), refuse_in_include, KEY_OPTIONAL},
	{WORD("include"), refuse_in_include, KEY_OPTIONAL},    {WORD("upstream"), refuse_in_include, KEY_OPTIONAL},
	{WORD("tests"), refuse_in_include, KEY_OPTIONAL},      {WORD("secrets"), refuse_in_include, KEY_OPTIONAL},
	{WORD("inspectors"), refuse_in_include, KEY_OPTIONAL}, {WORD("dns"), refuse_in_include, KEY_OPTIONAL},
	{WORD("images"), refuse_in_include, KEY_OPTIONAL},
};

static bool is_known(const struct sources *s, const struct file_id *id)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->list[i].id.device == id->device && s->list[i].id.inode == id->inode)
			return true;
	return false;
}

static void include_one(struct loader *l, const struct node *item, struct sources *sources)
{
	struct source s = {0};
	const char *why = NULL;
	if (!text_check(l, item, "a file name"))
		return;
	s.path = file_beside_policy(l, item->text);
	if (!s.path)
		return;
	s.bytes = file_read(l, s.path, LIMIT_POLICY_FILE, &s.id, &why);
	if (!why && is_known(sources, &s.id))
		why = "it is the policy itself or included already";
	if (why) {
		node_error(l->errs, item, "can't include %s: %s", quote(item->text).text, why);
		return;
	}
	s.root = node_read_yaml(s.bytes, s.path, &l->room, l->errs);
	if (s.root && section_read(l, s.root, include_keys, sizeof(include_keys) / sizeof(include_keys[0]), NULL))
		sources->list[sources->n++] = s;
}

static void read_includes(struct loader *l, const struct node *list, struct sources *sources)
{
	if (!list_check(l, list, "file names"))
		return;
	if (list->count > LIMIT_POLICY_INCLUDES) {
		node_error(l->errs, list, "expected at most %d files, got %zu", LIMIT_POLICY_INCLUDES, list->count);
		return;
	}
	for (const struct node *item = list->first; item; item = item->next)
		include_one(l, item, sources);
}

static bool read_policy_file(struct loader *l, struct sources *sources)
{
	struct source *s = &sources->list[0];
	const char *why = NULL;
	s->path = l->path;
	s->bytes = file_read(l, s->path, LIMIT_POLICY_FILE, &s->id, &why);
	if (why) {
		error_at(l->errs, (struct where){l->path, 0, 0}, "can't read the policy: %s", why);
		return false;
	}
	sources->n = 1;
	s->root = node_read_yaml(s->bytes, s->path, &l->room, l->errs);
	return s->root && section_read(l, s->root, policy_keys, sizeof(policy_keys) / sizeof(policy_keys[0]), NULL);
}

/* Over the bytes of all files one after the other, as `cat` would give them to `sha256sum`. */
static void set_sha(struct loader *l, const struct sources *sources)
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned len = 0;
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	bool good = ctx && EVP_DigestInit_ex(ctx, EVP_sha256(), NULL);
	for (size_t i = 0; i < sources->n && good; i++)
		good = EVP_DigestUpdate(ctx, sources->list[i].bytes.ptr, sources->list[i].bytes.len);
	good = good && EVP_DigestFinal_ex(ctx, digest, &len);
	EVP_MD_CTX_free(ctx);
	struct text t = text_in(l->policy->sha, sizeof(l->policy->sha) - 1);
	text_put_hex(&t, digest, len);
	if (!good || !text_ok(&t))
		error_at(l->errs, (struct where){l->path, 0, 0}, "can't compute the SHA-256 of the policy");
}

static size_t count_rules(const struct sources *sources)
{
	size_t n = 0;
	for (size_t i = 0; i < sources->n; i++) {
		const struct node *rules = node_get(sources->list[i].root, SLICE("rules"));
		n += rules ? rules->count : 0;
	}
	return n;
}

static void read_all_rules(struct loader *l, const struct sources *sources)
{
	size_t n = count_rules(sources);
	if (n > LIMIT_POLICY_RULES) {
		error_at(l->errs, (struct where){l->path, 0, 0}, "expected at most %d rules, got %zu",
			 LIMIT_POLICY_RULES, n);
		return;
	}
	l->policy->rules = load_keep(l, n, sizeof(*l->policy->rules));
	l->rule_nodes = load_scratch(l, n, sizeof(*l->rule_nodes));
	if (!l->policy->rules || !l->rule_nodes)
		return;
	if (map_init(&l->ids, &l->scratch, n) != CAGE_OK) {
		load_no_memory(l);
		return;
	}
	for (size_t i = 0; i < sources->n; i++) {
		const struct node *rules = node_get(sources->list[i].root, SLICE("rules"));
		if (rules)
			rules_read(l, rules);
	}
}

static void read_sections(struct loader *l, struct sources *sources)
{
	const struct node *root = sources->list[0].root;
	const struct node *include = node_get(root, SLICE("include"));
	const struct node *upstream = node_get(root, SLICE("upstream"));
	const struct node *tests = node_get(root, SLICE("tests"));
	const struct node *secrets = node_get(root, SLICE("secrets"));
	const struct node *dns = node_get(root, SLICE("dns"));
	const struct node *images = node_get(root, SLICE("images"));
	if (include)
		read_includes(l, include, sources);
	if (secrets)
		secrets_read(l, secrets);
	read_all_rules(l, sources);
	secrets_check(l);
	if (upstream)
		upstream_read(l, upstream);
	if (dns)
		dns_read(l, dns);
	if (images)
		images_read(l, images);
	if (upstream)
		resolvers_check(l, upstream);
	keyvaults_check(l);
	if (tests)
		tests_read(l, tests);
	if (l->readers.inspectors)
		l->policy->inspectors = l->readers.inspectors(l, node_get(root, SLICE("inspectors")));
	set_sha(l, sources);
}

static void load(struct loader *l)
{
	struct sources sources = {.n = 0};
	if (!read_policy_file(l, &sources))
		return;
	read_sections(l, &sources);
	if (l->errs->n > 0 || !policy_compile(l))
		return;
	conflicts_check(l);
	token_urls_check(l);
	if (l->errs->n == 0)
		tests_run(l);
}

struct policy *policy_load(const char *path, struct arena *arena, int64_t now, const struct policy_readers *readers,
			   struct policy_errors *errs)
{
	struct loader l = {.errs = errs, .arena = arena, .path = path, .now = now};
	if (readers)
		l.readers = *readers;
	errs->n = errs->more = 0;
	arena_init(&l.scratch, LIMIT_POLICY_SCRATCH);
	l.room = (struct node_room){&l.scratch, LIMIT_POLICY_NODES};
	l.policy = load_keep(&l, 1, sizeof(*l.policy));
	if (l.policy) {
		l.policy->system_resolvers = true;
		l.policy->trust.system = true;
		dns_defaults(&l.policy->dns);
		load(&l);
	}
	arena_free(&l.scratch);
	errors_sort(errs);
	return errs->n == 0 ? l.policy : NULL;
}
