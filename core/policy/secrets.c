/* The section `secrets`: what is known of each secret but its value: where that comes from, what stands for it inside a
 * sandbox, and where it may be put in. */
#include "core/policy/load.h"

#include "core/http/chars.h"
#include "core/http/message.h"

/* Where credentials usually are. */
static const struct slice usual_headers[] = {
	WORD("authorization"),  WORD("x-api-key"),      WORD("api-key"),         WORD("x-auth-token"),
	WORD("x-access-token"), WORD("x-goog-api-key"), WORD("private-token"),   WORD("job-token"),
	WORD("x-gitlab-token"), WORD("dd-api-key"),     WORD("cf-access-token"),
};

#define N_USUAL (sizeof(usual_headers) / sizeof(usual_headers[0]))

struct slice text_keep(struct loader *l, struct slice text)
{
	char *copy = load_keep(l, text.len + 1, 1);
	if (copy && text.len > 0)
		memcpy(copy, text.ptr, text.len);
	return slice_of(copy, copy ? text.len : 0);
}

static const struct policy_secret *find_id(const struct policy *p, struct slice id)
{
	for (size_t i = 0; i < p->n_secrets; i++)
		if (slice_eq(p->secrets[i].id, id))
			return &p->secrets[i];
	return NULL;
}

static void read_id(struct loader *l, const struct node *value, void *out)
{
	struct policy_secret *s = out;
	if (value->kind != NODE_TEXT || !word_is_plain(value->text, LIMIT_RULE_ID))
		node_error(l->errs, value, "expected 1 to %d letters, digits, '.', '_' or '-', got %s", LIMIT_RULE_ID,
			   node_describe(value).text);
	else if (find_id(l->policy, value->text))
		node_error(l->errs, value, "the id %s is taken by another secret", quote(value->text).text);
	else
		s->id = text_keep(l, value->text);
}

/* ---- from ---- */

static bool is_variable(struct slice name)
{
	for (size_t i = 0; i < name.len; i++) {
		unsigned char c = (unsigned char)name.ptr[i], low = ascii_lower(c);
		if (c != '_' && !(low >= 'a' && low <= 'z') && !(ascii_is_digit(c) && i > 0))
			return false;
	}
	return name.len > 0 && name.len <= LIMIT_SECRET_NAME;
}

/* Variables that the programs of cage, or their libraries, obey themselves: a value that stands there is told in their errors. */
static bool is_obeyed(struct slice name)
{
	static const struct slice beginnings[] = {WORD("LD_"),    WORD("GLIBC_"), WORD("MALLOC_"), WORD("OPENSSL_"),
						  WORD("SSL_"),   WORD("ASAN_"),  WORD("UBSAN_"),  WORD("LSAN_"),
						  WORD("MSAN_"),  WORD("TSAN_"),  WORD("LC_"),     WORD("XDG_"),
						  WORD("EVENT_"), WORD("RES_")};
	static const struct slice names[] = {WORD("PATH"),
					     WORD("HOME"),
					     WORD("TZ"),
					     WORD("TZDIR"),
					     WORD("LANG"),
					     WORD("LANGUAGE"),
					     WORD("GCONV_PATH"),
					     WORD("HOSTALIASES"),
					     WORD("LOCALDOMAIN"),
					     WORD("NLSPATH"),
					     WORD("TMPDIR"),
					     WORD("CARES_HOSTS"),
					     WORD("AZURE_CLIENT_ID"),
					     WORD("AZURE_TENANT_ID"),
					     WORD("AZURE_AUTHORITY_HOST"),
					     WORD("AZURE_FEDERATED_TOKEN_FILE"),
					     WORD("AZURE_POD_IDENTITY_AUTHORITY_HOST")};
	for (size_t i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]); i++)
		if (slice_starts(name, beginnings[i]))
			return true;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (slice_eq(name, names[i]))
			return true;
	return false;
}

static void read_env(struct loader *l, const struct node *value, void *out)
{
	struct policy_secret *s = out;
	if (value->kind != NODE_TEXT || !is_variable(value->text)) {
		node_error(l->errs, value, "expected the name of an environment variable, got %s",
			   node_describe(value).text);
		return;
	}
	if (is_obeyed(value->text)) {
		node_error(l->errs, value, "%s is a variable that programs obey: a secret needs one of its own",
			   node_describe(value).text);
		return;
	}
	s->from = SECRET_ENV;
	s->source = text_keep(l, value->text);
}

static void read_file(struct loader *l, const struct node *value, void *out)
{
	struct policy_secret *s = out;
	if (!text_check(l, value, "a file name"))
		return;
	const char *path = file_beside_policy(l, value->text);
	if (!path)
		return;
	s->from = SECRET_FILE;
	s->source = text_keep(l, slice_str(path));
}

static const struct key from_keys[] = {
	{WORD("env"), read_env, KEY_OPTIONAL},
	{WORD("file"), read_file, KEY_OPTIONAL},
	{WORD("keyvault"), keyvault_read, KEY_OPTIONAL},
};

static void read_from(struct loader *l, const struct node *value, void *out)
{
	if (section_read(l, value, from_keys, sizeof(from_keys) / sizeof(from_keys[0]), out) && value->count != 1)
		node_error(l->errs, value, "expected one source, such as {env: NAME} or {file: PATH}, got %zu",
			   value->count);
}

/* ---- placeholder ---- */

static bool is_placeholder(struct slice text)
{
	for (size_t i = 0; i < text.len; i++)
		if (text.ptr[i] <= 0x20 || text.ptr[i] > 0x7e || strchr("\"'`\\", text.ptr[i]))
			return false;
	return text.len >= LIMIT_PLACEHOLDER_MIN && text.len <= LIMIT_PLACEHOLDER;
}

bool text_contains(struct slice text, struct slice part)
{
	return memmem(text.ptr, text.len, part.ptr, part.len) != NULL;
}

static void read_placeholder(struct loader *l, const struct node *value, void *out)
{
	struct policy_secret *s = out;
	if (value->kind != NODE_TEXT || !is_placeholder(value->text)) {
		node_error(l->errs, value,
			   "expected %d to %d printable ASCII characters without blanks, quotes and '\\', got %s",
			   LIMIT_PLACEHOLDER_MIN, LIMIT_PLACEHOLDER, node_describe(value).text);
		return;
	}
	if (text_contains(value->text, SLICE(PLACEHOLDER_PREFIX))) {
		node_error(l->errs, value, "\"" PLACEHOLDER_PREFIX "\" is what random placeholders begin with");
		return;
	}
	s->placeholder = text_keep(l, value->text);
}

/* Of two placeholders, one inside the other: which of them is meant could not be told. */
static void check_placeholder(struct loader *l, const struct node *node, const struct policy_secret *s)
{
	const struct node *at = node_get(node, SLICE("placeholder"));
	for (size_t i = 0; i < l->policy->n_secrets && s->placeholder.len > 0; i++) {
		const struct policy_secret *other = &l->policy->secrets[i];
		if (other->placeholder.len == 0)
			continue;
		if (slice_eq(s->placeholder, other->placeholder))
			node_error(l->errs, at, "secret %s has the same placeholder", quote(other->id).text);
		else if (text_contains(s->placeholder, other->placeholder))
			node_error(l->errs, at, "the placeholder of secret %s is a part of it", quote(other->id).text);
		else if (text_contains(other->placeholder, s->placeholder))
			node_error(l->errs, at, "it is a part of the placeholder of secret %s", quote(other->id).text);
	}
}

/* ---- in ---- */

/* Fields that are ours to write, or that end here. */
static bool is_reserved(struct slice name)
{
	enum field_id id = field_identify(name);
	return field_is_hop_by_hop(id) || id == FIELD_HOST || id == FIELD_CONTENT_LENGTH || id == FIELD_EXPECT ||
	       id == FIELD_TRAILER;
}

bool slot_field_read(struct loader *l, const struct node *node, struct slice name, struct slice *out)
{
	char lower[LIMIT_SECRET_NAME];
	if (name.len == 0 || name.len > sizeof(lower) || char_span(name, CHAR_TOKEN) != name.len) {
		node_error(l->errs, node, "expected the name of a header field of at most %d bytes, got %s",
			   LIMIT_SECRET_NAME, quote(name).text);
		return false;
	}
	if (is_reserved(name)) {
		node_error(l->errs, node, "the field %s can't carry a secret", quote(name).text);
		return false;
	}
	for (size_t i = 0; i < name.len; i++)
		lower[i] = (char)ascii_lower((unsigned char)name.ptr[i]);
	*out = text_keep(l, slice_of(lower, name.len));
	return out->ptr != NULL;
}

static bool query_name_read(struct loader *l, const struct node *node, struct slice name, struct slice *out)
{
	bool good = name.len > 0 && name.len <= LIMIT_SECRET_NAME && char_span(name, CHAR_TARGET) == name.len;
	for (size_t i = 0; i < name.len && good; i++)
		good = !strchr("&;=#%+?", name.ptr[i]);
	if (!good) {
		node_error(l->errs, node, "expected the name of a query parameter as it is written, got %s",
			   quote(name).text);
		return false;
	}
	*out = text_keep(l, name);
	return out->ptr != NULL;
}

static bool is_listed(const struct slice *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (slice_eq(list[i], list[n]))
			return true;
	return false;
}

/* False: it stood there already. */
static bool set_once(bool *flag)
{
	bool was = *flag;
	*flag = true;
	return !was;
}

static void read_slot(struct loader *l, const struct node *item, struct policy_secret *s)
{
	struct slice name = item->kind == NODE_TEXT ? item->text : SLICE_NONE;
	struct slice kind = slice_cut(&name, ':');
	bool has_name = kind.len < item->text.len;
	bool is_new = true;
	if (slice_eq(kind, SLICE("header")) && has_name) {
		if (!slot_field_read(l, item, name, &s->headers[s->n_headers]))
			return;
		is_new = !is_listed(s->headers, s->n_headers);
		s->n_headers += is_new;
	} else if (slice_eq(kind, SLICE("query")) && has_name) {
		if (!query_name_read(l, item, name, &s->queries[s->n_queries]))
			return;
		is_new = !is_listed(s->queries, s->n_queries);
		s->n_queries += is_new;
	} else if (slice_eq(kind, SLICE("path")) && !has_name) {
		is_new = set_once(&s->in_path);
	} else if (slice_eq(kind, SLICE("body")) && !has_name) {
		is_new = set_once(&s->in_body);
	} else {
		node_error(l->errs, item, "expected header:NAME, query:NAME, path or body, got %s",
			   node_describe(item).text);
	}
	if (!is_new)
		node_error(l->errs, item, "%s is listed twice", quote(item->text).text);
}

static void read_in(struct loader *l, const struct node *value, void *out)
{
	struct policy_secret *s = out;
	if (!list_check(l, value, "places such as header:x-api-key"))
		return;
	s->headers = load_keep(l, value->count, sizeof(*s->headers));
	s->queries = load_keep(l, value->count, sizeof(*s->queries));
	if (!s->headers || !s->queries)
		return;
	for (const struct node *item = value->first; item; item = item->next)
		read_slot(l, item, s);
}

static void default_in(struct loader *l, struct policy_secret *s)
{
	s->headers = load_keep(l, N_USUAL, sizeof(*s->headers));
	for (size_t i = 0; i < N_USUAL && s->headers; i++)
		s->headers[s->n_headers++] = text_keep(l, usual_headers[i]);
}

/* ---- all of it ---- */

static void read_require(struct loader *l, const struct node *value, void *out)
{
	struct policy_secret *s = out;
	flag_read(l, value, &s->require);
}

static void read_keep(struct loader *l, const struct node *value, void *out)
{
	struct policy_secret *s = out;
	duration_read(l, value, LIMIT_SECRET_KEEP_S, &s->keep_us);
}

static const struct key secret_keys[] = {
	{WORD("id"), read_id, KEY_REQUIRED},
	{WORD("from"), read_from, KEY_REQUIRED},
	{WORD("placeholder"), read_placeholder, KEY_OPTIONAL},
	{WORD("in"), read_in, KEY_OPTIONAL},
	{WORD("require"), read_require, KEY_OPTIONAL},
	{WORD("keep"), read_keep, KEY_OPTIONAL},
	{WORD("sign"), sign_read, KEY_OPTIONAL},
	{WORD("oauth2"), oauth2_read, KEY_OPTIONAL},
};

static void secret_read(struct loader *l, const struct node *node, struct policy_secret *s)
{
	s->keep_us = LIMIT_SECRET_KEEP_DEFAULT_S * 1000000ull;
	if (!section_read(l, node, secret_keys, sizeof(secret_keys) / sizeof(secret_keys[0]), s))
		return;
	const struct node *in = node_get(node, SLICE("in")), *sign = node_get(node, SLICE("sign"));
	const struct node *oauth2 = node_get(node, SLICE("oauth2"));
	if (sign && in)
		node_key_error(l->errs, in, "a secret that signs is put in nowhere");
	if (sign && oauth2)
		node_key_error(l->errs, oauth2, "a secret that signs can't get tokens too");
	if (s->require && s->in_body)
		node_key_error(l->errs, in,
			       "a body can't be required to hold a placeholder: leave out `require`, or `body`");
	if (!sign && !in)
		default_in(l, s);
	check_placeholder(l, node, s);
}

void secrets_read(struct loader *l, const struct node *list)
{
	struct policy *p = l->policy;
	if (!list_check(l, list, "secrets"))
		return;
	if (list->count > LIMIT_SECRETS) {
		node_error(l->errs, list, "expected at most %d secrets, got %zu", LIMIT_SECRETS, list->count);
		return;
	}
	p->secrets = load_keep(l, list->count, sizeof(*p->secrets));
	l->secret_nodes = load_scratch(l, list->count, sizeof(*l->secret_nodes));
	if (!p->secrets || !l->secret_nodes)
		return;
	for (const struct node *node = list->first; node; node = node->next) {
		secret_read(l, node, &p->secrets[p->n_secrets]);
		l->secret_nodes[p->n_secrets++] = node;
	}
}

const struct policy_secret *secret_named(struct loader *l, const struct node *id)
{
	const struct policy *p = l->policy;
	if (!text_check(l, id, "the id of a secret"))
		return NULL;
	const struct policy_secret *s = find_id(p, id->text);
	if (s) {
		l->named |= (uint64_t)1 << (s - p->secrets);
		return s;
	}
	struct near near = {.text = id->text};
	for (size_t i = 0; i < p->n_secrets; i++)
		near_try(&near, p->secrets[i].id);
	node_error(l->errs, id, "no secret has the id %s%s", quote(id->text).text, near_hint(&near).text);
	return NULL;
}
