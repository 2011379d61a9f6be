/* `sign` and `oauth2` of a secret: a value that is not sent itself, but signs requests or is given for a token. */
#include "core/policy/load.h"

#include "core/http/chars.h"

#define GOOGLE_TOKENS "https://oauth2.googleapis.com/token"

/* Printable ASCII, of at most LIMIT_SECRET_TEXT bytes. */
static void read_text(struct loader *l, const struct node *value, struct slice *out)
{
	bool good = value->kind == NODE_TEXT && value->text.len > 0 && value->text.len <= LIMIT_SECRET_TEXT;
	for (size_t i = 0; good && i < value->text.len; i++)
		good = value->text.ptr[i] >= 0x20 && value->text.ptr[i] <= 0x7e;
	if (good)
		*out = text_keep(l, value->text);
	else
		node_error(l->errs, value, "expected up to %d printable ASCII characters, got %s", LIMIT_SECRET_TEXT,
			   node_describe(value).text);
}

/* ---- sign: aws-sigv4 ---- */

static void read_key_id(struct loader *l, const struct node *value, void *out)
{
	struct policy_secret *s = out;
	if (value->kind != NODE_TEXT || !word_is_plain(value->text, LIMIT_SECRET_NAME))
		node_error(l->errs, value, "expected an access key id such as AKIAIOSFODNN7EXAMPLE, got %s",
			   node_describe(value).text);
	else
		s->key_id = text_keep(l, value->text);
}

static const struct key sigv4_keys[] = {{WORD("key_id"), read_key_id, KEY_REQUIRED}};

static void read_sigv4(struct loader *l, const struct node *value, void *out)
{
	struct policy_secret *s = out;
	s->use = SECRET_SIGV4;
	section_read(l, value, sigv4_keys, sizeof(sigv4_keys) / sizeof(sigv4_keys[0]), s);
}

/* ---- sign: hmac-sha256 ---- */

static void read_header(struct loader *l, const struct node *value, void *out)
{
	struct policy_hmac *h = out;
	if (text_check(l, value, "the name of a header field"))
		slot_field_read(l, value, value->text, &h->header);
}

static void read_prefix(struct loader *l, const struct node *value, void *out)
{
	struct policy_hmac *h = out;
	read_text(l, value, &h->prefix);
}

static void read_encoding(struct loader *l, const struct node *value, void *out)
{
	static const struct slice words[] = {WORD("hex"), WORD("base64")};
	struct policy_hmac *h = out;
	size_t i;
	if (choice_read(l, value, words, 2, &i))
		h->base64 = i == 1;
}

static void read_joiner(struct loader *l, const struct node *value, void *out)
{
	struct policy_hmac *h = out;
	if (value->kind == NODE_TEXT && value->text.len <= LIMIT_SECRET_TEXT && !node_is_nothing(value))
		h->joiner = text_keep(l, value->text);
	else
		node_error(l->errs, value, "expected text, \"\" for none, got %s", node_describe(value).text);
}

#define PARTS_MAX (sizeof(((struct policy_hmac *)0)->parts) / sizeof(((struct policy_hmac *)0)->parts[0]))

static void read_part(struct loader *l, const struct node *item, struct policy_hmac *h)
{
	static const struct slice words[] = {
		[HMAC_METHOD] = WORD("method"), [HMAC_PATH] = WORD("path"), [HMAC_QUERY] = WORD("query"),
		[HMAC_HOST] = WORD("host"),     [HMAC_BODY] = WORD("body"), [HMAC_HEADER] = WORD("header:NAME")};
	struct slice header = SLICE("header:");
	size_t what = HMAC_HEADER;
	bool is_header = item->kind == NODE_TEXT && slice_starts(item->text, header);
	if (is_header && !slot_field_read(l, item, slice_from(item->text, header.len), &h->parts[h->n_parts].name))
		return;
	if (!is_header && !choice_read(l, item, words, sizeof(words) / sizeof(words[0]), &what))
		return;
	if (!is_header && what == HMAC_HEADER) {
		node_error(l->errs, item, "expected the name of a header field behind header:");
		return;
	}
	h->parts[h->n_parts++].what = (enum hmac_part)what;
}

static void read_over(struct loader *l, const struct node *value, void *out)
{
	struct policy_hmac *h = out;
	if (!list_check(l, value, "parts such as method, path or body"))
		return;
	if (value->count > PARTS_MAX) {
		node_error(l->errs, value, "expected at most %zu parts, got %zu", PARTS_MAX, value->count);
		return;
	}
	for (const struct node *item = value->first; item; item = item->next)
		read_part(l, item, h);
}

static const struct key hmac_keys[] = {
	{WORD("header"), read_header, KEY_REQUIRED},     {WORD("over"), read_over, KEY_REQUIRED},
	{WORD("prefix"), read_prefix, KEY_OPTIONAL},     {WORD("joiner"), read_joiner, KEY_OPTIONAL},
	{WORD("encoding"), read_encoding, KEY_OPTIONAL},
};

static void read_hmac(struct loader *l, const struct node *value, void *out)
{
	struct policy_secret *s = out;
	struct policy_hmac *h = load_keep(l, 1, sizeof(*h));
	if (!h)
		return;
	s->use = SECRET_HMAC;
	s->hmac = h;
	h->joiner = text_keep(l, SLICE("\n"));
	section_read(l, value, hmac_keys, sizeof(hmac_keys) / sizeof(hmac_keys[0]), h);
}

static const struct key sign_keys[] = {
	{WORD("aws-sigv4"), read_sigv4, KEY_OPTIONAL},
	{WORD("hmac-sha256"), read_hmac, KEY_OPTIONAL},
};

void sign_read(struct loader *l, const struct node *value, void *out)
{
	struct policy_secret *s = out;
	if (value->kind == NODE_TEXT && slice_eq(value->text, SLICE("aws-sigv4"))) {
		s->use = SECRET_SIGV4;
		return;
	}
	if (value->kind != NODE_MAP || value->count != 1)
		node_error(l->errs, value,
			   "expected aws-sigv4, or a mapping with one of aws-sigv4 and hmac-sha256, got %s",
			   node_describe(value).text);
	else
		section_read(l, value, sign_keys, sizeof(sign_keys) / sizeof(sign_keys[0]), s);
}

/* ---- oauth2 ---- */

static void url_read(struct loader *l, const struct node *at, struct slice url, struct target *out)
{
	const char *why = "";
	enum cage_status st = url_parse(url, l->arena, out, &why);
	if (st == CAGE_ENOMEM)
		load_no_memory(l);
	else if (st != CAGE_OK)
		node_error(l->errs, at, "expected an https URL: %s, got %s", why, quote(url).text);
	else if (out->scheme != SCHEME_HTTPS)
		node_error(l->errs, at, "expected an https URL, got %s", quote(url).text);
}

static void read_token_url(struct loader *l, const struct node *value, void *out)
{
	struct policy_oauth2 *o = out;
	if (text_check(l, value, "an https URL"))
		url_read(l, value, value->text, &o->token_url);
}

static void read_client_id(struct loader *l, const struct node *value, void *out)
{
	struct policy_oauth2 *o = out;
	read_text(l, value, &o->client_id);
}

static void read_scope(struct loader *l, const struct node *value, void *out)
{
	struct policy_oauth2 *o = out;
	read_text(l, value, &o->scope);
}

static void read_audience(struct loader *l, const struct node *value, void *out)
{
	struct policy_oauth2 *o = out;
	read_text(l, value, &o->audience);
}

static void read_auth(struct loader *l, const struct node *value, void *out)
{
	static const struct slice words[] = {WORD("form"), WORD("basic")};
	struct policy_oauth2 *o = out;
	size_t i;
	if (choice_read(l, value, words, 2, &i))
		o->basic = i == 1;
}

static const struct key credentials_keys[] = {
	{WORD("token_url"), read_token_url, KEY_REQUIRED}, {WORD("client_id"), read_client_id, KEY_REQUIRED},
	{WORD("scope"), read_scope, KEY_OPTIONAL},         {WORD("audience"), read_audience, KEY_OPTIONAL},
	{WORD("auth"), read_auth, KEY_OPTIONAL},
};

static const struct key google_keys[] = {
	{WORD("token_url"), read_token_url, KEY_OPTIONAL},
	{WORD("scope"), read_scope, KEY_OPTIONAL},
	{WORD("audience"), read_audience, KEY_OPTIONAL},
};

static struct policy_oauth2 *oauth2_new(struct loader *l, struct policy_secret *s, enum secret_use use)
{
	struct policy_oauth2 *o = load_keep(l, 1, sizeof(*o));
	s->use = use;
	s->oauth = o;
	return o;
}

static void read_credentials(struct loader *l, const struct node *value, void *out)
{
	struct policy_oauth2 *o = oauth2_new(l, out, SECRET_CREDENTIALS);
	if (!o)
		return;
	o->basic = true;
	section_read(l, value, credentials_keys, sizeof(credentials_keys) / sizeof(credentials_keys[0]), o);
}

static void read_google(struct loader *l, const struct node *value, void *out)
{
	struct policy_oauth2 *o = oauth2_new(l, out, SECRET_GOOGLE_JWT);
	if (!o || !section_read(l, value, google_keys, sizeof(google_keys) / sizeof(google_keys[0]), o))
		return;
	if (!node_get(value, SLICE("token_url")))
		url_read(l, value, SLICE(GOOGLE_TOKENS), &o->token_url);
	if (!node_get(value, SLICE("scope")) && !node_get(value, SLICE("audience")))
		node_error(l->errs, value, "expected a scope or an audience");
}

static const struct key oauth2_keys[] = {
	{WORD("client-credentials"), read_credentials, KEY_OPTIONAL},
	{WORD("google-jwt"), read_google, KEY_OPTIONAL},
};

void oauth2_read(struct loader *l, const struct node *value, void *out)
{
	if (value->kind != NODE_MAP || value->count != 1)
		node_error(l->errs, value, "expected a mapping with one of client-credentials and google-jwt, got %s",
			   node_describe(value).text);
	else
		section_read(l, value, oauth2_keys, sizeof(oauth2_keys) / sizeof(oauth2_keys[0]), out);
}
