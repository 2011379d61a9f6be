/* The section `secrets`: what a policy may say about them, what is made of it, and values that are no good. */
#include "tests/unit/policy/fixture.h"

#define RULES "rules: [{id: r, hosts: [x.test], secrets: [k]}]\n"
#define SECRET(more) HEAD RULES "secrets:\n  - {id: k, from: {env: K}" more "}\n" /* in line 5; `more` from column 27 */
#define AT(column, key) "policy.yaml:5:" column ": secrets[0]" key ": "

struct mistake {
	const char *yaml, *error;
};

#define EXPECT_ERRORS(list)                                           \
	for (size_t i = 0; i < sizeof(list) / sizeof((list)[0]); i++) \
	expect_error((list)[i].yaml, (list)[i].error)

static void expect_slice(struct slice s, const char *text)
{
	assert_true(slice_eq(s, slice_str(text)));
}

static void defaults(void **state)
{
	(void)state;
	struct fixture f = fixture_good(SECRET(""));
	const struct policy_secret *s = &f.policy->secrets[0];
	assert_int_equal(f.policy->n_secrets, 1);
	expect_slice(s->id, "k");
	assert_int_equal(s->from, SECRET_ENV);
	assert_string_equal(s->source.ptr, "K");
	assert_int_equal(s->placeholder.len, 0);
	assert_int_equal(s->n_headers, 11);
	expect_slice(s->headers[0], "authorization");
	expect_slice(s->headers[1], "x-api-key");
	assert_false(s->in_path || s->in_body || s->require || s->n_queries > 0);
	assert_int_equal(s->use, SECRET_AS_IS);
	assert_int_equal(s->keep_us, 600000000);
	assert_int_equal(f.policy->rules[0].n_secrets, 1);
	assert_ptr_equal(f.policy->rules[0].secrets[0], s);
	assert_false(f.policy->rules[0].plaintext);
	fixture_free(&f);
}

static void all_keys(void **state)
{
	(void)state;
	struct fixture f = fixture_good(
		HEAD "rules: [{id: r, hosts: [x.test], ports: [80], secrets: [k], plaintext: true}]\n"
		     "secrets:\n  - {id: k, from: {file: keys/k}, placeholder: '{{KEY-1}}', require: true, keep: 2h,\n"
		     "     in: ['header:X-Key', 'query:api[key]', path]}\n");
	const struct policy_secret *s = &f.policy->secrets[0];
	char path[128];
	fixture_path(&f, "keys/k", path);
	assert_int_equal(s->from, SECRET_FILE);
	assert_string_equal(s->source.ptr, path);
	expect_slice(s->placeholder, "{{KEY-1}}");
	assert_int_equal(s->n_headers, 1);
	expect_slice(s->headers[0], "x-key");
	assert_int_equal(s->n_queries, 1);
	expect_slice(s->queries[0], "api[key]");
	assert_true(s->in_path && !s->in_body && s->require);
	assert_int_equal(s->keep_us, 7200000000);
	assert_true(f.policy->rules[0].plaintext);
	fixture_free(&f);
}

static void signing(void **state)
{
	(void)state;
	struct fixture f = fixture_good(SECRET(", sign: aws-sigv4"));
	assert_int_equal(f.policy->secrets[0].use, SECRET_SIGV4);
	assert_int_equal(f.policy->secrets[0].n_headers, 0);
	assert_int_equal(f.policy->secrets[0].key_id.len, 0);
	fixture_free(&f);

	f = fixture_good(SECRET(", sign: {aws-sigv4: {key_id: AKIAEXAMPLE}}"));
	expect_slice(f.policy->secrets[0].key_id, "AKIAEXAMPLE");
	fixture_free(&f);

	f = fixture_good(SECRET(", sign: {hmac-sha256: {header: X-Sig, prefix: sha256=, encoding: base64, "
				"over: [method, path, query, host, body, 'header:Date'], joiner: '|'}}"));
	const struct policy_hmac *h = f.policy->secrets[0].hmac;
	assert_int_equal(f.policy->secrets[0].use, SECRET_HMAC);
	expect_slice(h->header, "x-sig");
	expect_slice(h->prefix, "sha256=");
	expect_slice(h->joiner, "|");
	assert_true(h->base64);
	assert_int_equal(h->n_parts, 6);
	assert_int_equal(h->parts[4].what, HMAC_BODY);
	assert_int_equal(h->parts[5].what, HMAC_HEADER);
	expect_slice(h->parts[5].name, "date");
	fixture_free(&f);

	f = fixture_good(SECRET(", sign: {hmac-sha256: {header: x-sig, over: [body]}}"));
	assert_false(f.policy->secrets[0].hmac->base64);
	expect_slice(f.policy->secrets[0].hmac->joiner, "\n");
	fixture_free(&f);
}

static void tokens(void **state)
{
	(void)state;
	struct fixture f = fixture_good(SECRET(", oauth2: {client-credentials: {token_url: 'https://x.test/t', "
					       "client_id: me, scope: a b, audience: y, auth: form}}"));
	const struct policy_oauth2 *o = f.policy->secrets[0].oauth;
	assert_int_equal(f.policy->secrets[0].use, SECRET_CREDENTIALS);
	assert_int_equal(f.policy->secrets[0].n_headers, 11);
	expect_slice(o->token_url.host.text, "x.test");
	expect_slice(o->token_url.path, "/t");
	expect_slice(o->client_id, "me");
	expect_slice(o->scope, "a b");
	expect_slice(o->audience, "y");
	assert_false(o->basic);
	fixture_free(&f);
}

static void google(void **state)
{
	(void)state;
	struct fixture f = fixture_good(
		HEAD "rules:\n  - {id: r, hosts: [x.test], secrets: [g]}\n  - {id: t, hosts: [oauth2.googleapis.com]}\n"
		     "secrets: [{id: g, from: {file: g.json}, oauth2: {google-jwt: {scope: s}}}]\n");
	const struct policy_oauth2 *o = f.policy->secrets[0].oauth;
	assert_int_equal(f.policy->secrets[0].use, SECRET_GOOGLE_JWT);
	expect_slice(o->token_url.host.text, "oauth2.googleapis.com");
	fixture_free(&f);
}

static void wrong_secrets(void **state)
{
	(void)state;
	static const struct mistake list[] = {
		{SECRET(", form: x"), AT("29", ".form") "unknown key; did you mean \"from\"?"},
		{SECRET("}\n  - {id: k, from: {env: L}"),
		 "policy.yaml:6:10: secrets[1].id: the id \"k\" is taken by another secret"},
		{SECRET("}\n  - {id: l, from: {env: L}"), "policy.yaml:6:5: secrets[1]: no rule has it"},
		{HEAD RULES "secrets: [{id: k}]\n", "policy.yaml:4:11: secrets[0]: missing key \"from\""},
		{HEAD RULES "secrets: [{id: k, from: {env: K, file: k}}]\n",
		 "policy.yaml:4:25: secrets[0].from: expected one source, such as {env: NAME} or {file: PATH}, got 2"},
		{HEAD RULES "secrets: [{id: k, from: {env: 1K}}]\n",
		 "policy.yaml:4:31: secrets[0].from.env: expected the name of an environment variable, got \"1K\""},
		{HEAD RULES "secrets: [{id: k, from: {env: LD_PRELOAD}}]\n",
		 "policy.yaml:4:31: secrets[0].from.env: \"LD_PRELOAD\" is a variable that programs obey: a secret "
		 "needs one of its "
		 "own"},
		{HEAD RULES "secrets: [{id: k, from: {env: TZ}}]\n",
		 "policy.yaml:4:31: secrets[0].from.env: \"TZ\" is a variable that programs obey: a secret needs one "
		 "of its own"},
		{HEAD RULES "secrets: [{id: k, from: {env: A=B}}]\n",
		 "policy.yaml:4:31: secrets[0].from.env: expected the name of an environment variable, got \"A=B\""},
		{SECRET(", require: yes"), AT("38", ".require") "expected false or true, got \"yes\""},
		{SECRET(", require: true, in: [body]"),
		 AT("44", ".in") "a body can't be required to hold a placeholder: leave out `require`, or `body`"},
		{SECRET(", keep: 0s"),
		 AT("35", ".keep") "expected a time such as 30s, 10m, 24h or 7d, at most 30d, got \"0s\""},
		{SECRET(", keep: 31d"),
		 AT("35", ".keep") "expected a time such as 30s, 10m, 24h or 7d, at most 30d, got \"31d\""},
		{SECRET(", keep: 10"),
		 AT("35", ".keep") "expected a time such as 30s, 10m, 24h or 7d, at most 30d, got \"10\""},
	};
	EXPECT_ERRORS(list);
}

/* ---- key vaults ---- */

#define V32 "0123456789abcdef0123456789ABCDEF"
#define VAULT_SECRET(url) HEAD RULES "secrets: [{id: k, from: {keyvault: '" url "'}}]\n"
#define PINNED(url) VAULT_SECRET(url) "upstream: {resolve: {own.test: 127.0.0.1}}\n"

static void expect_vault(const char *yaml, const char *source, const char *host, const char *path)
{
	struct fixture f = fixture_good(yaml);
	const struct policy_secret *s = &f.policy->secrets[0];
	assert_int_equal(s->from, SECRET_KEYVAULT);
	assert_string_equal(s->source.ptr, source);
	expect_slice(s->vault->host.text, host);
	expect_slice(s->vault->path, path);
	assert_int_equal(s->vault->port, 443);
	fixture_free(&f);
}

static void key_vaults(void **state)
{
	(void)state;
	expect_vault(VAULT_SECRET("https://v.vault.azure.net/secrets/n"), "https://v.vault.azure.net/secrets/n",
		     "v.vault.azure.net", "/secrets/n");
	expect_vault(VAULT_SECRET("HTTPS://My-V1.Vault.Azure.NET.:443/secrets/a-Name-1/" V32),
		     "https://my-v1.vault.azure.net/secrets/a-Name-1/" V32, "my-v1.vault.azure.net",
		     "/secrets/a-Name-1/" V32);
	expect_vault(VAULT_SECRET("https://v.vault.azure.cn/secrets/n"), "https://v.vault.azure.cn/secrets/n",
		     "v.vault.azure.cn", "/secrets/n");
	expect_vault(VAULT_SECRET("https://v.vault.usgovcloudapi.net/secrets/n"),
		     "https://v.vault.usgovcloudapi.net/secrets/n", "v.vault.usgovcloudapi.net", "/secrets/n");
	expect_vault(VAULT_SECRET("https://v.vault.microsoftazure.de/secrets/n"),
		     "https://v.vault.microsoftazure.de/secrets/n", "v.vault.microsoftazure.de", "/secrets/n");
	expect_vault(PINNED("https://own.test/secrets/n"), "https://own.test/secrets/n", "own.test", "/secrets/n");
}

#define AT_VAULT "policy.yaml:4:36: secrets[0].from.keyvault: "
#define VAULT_RULE AT_VAULT "expected an address such as https://VAULT.vault.azure.net/secrets/NAME"
#define VAULT_PATH VAULT_RULE ": the path is not /secrets/NAME or /secrets/NAME/VERSION, got "
#define WRONG_PATH(path)                                                                                           \
	{                                                                                                          \
		VAULT_SECRET("https://v.vault.azure.net" path), VAULT_PATH "\"https://v.vault.azure.net" path "\"" \
	}
#define WRONG_LONG(path, shown)                                                                                        \
	{                                                                                                              \
		VAULT_SECRET("https://v.vault.azure.net" path), VAULT_PATH "\"https://v.vault.azure.net" shown "...\"" \
	}
#define WRONG_HOST(host)                                                                                              \
	{                                                                                                             \
		VAULT_SECRET("https://" host "/secrets/n"), AT_VAULT                                                  \
			"\"" host "\" is not a vault of Azure (NAME.vault.azure.net, or that of another cloud), and " \
			"upstream.resolve does not pin it"                                                            \
	}

static void wrong_key_vaults(void **state)
{
	(void)state;
	static const struct mistake list[] = {
		{HEAD RULES "secrets: [{id: k, from: {keyvault: [v]}}]\n", VAULT_RULE ", got a list"},
		{VAULT_SECRET("v"), VAULT_RULE ": the scheme is neither http nor https, got \"v\""},
		{VAULT_SECRET("http://v.vault.azure.net/secrets/n"),
		 VAULT_RULE ": the scheme is not https, got \"http://v.vault.azure.net/secrets/n\""},
		{VAULT_SECRET("https://u@v.vault.azure.net/secrets/n"),
		 VAULT_RULE ": the URL has a user name, got \"https://u@v.vault.azure.net/secrets/n\""},
		{VAULT_SECRET("https://10.0.0.1/secrets/n"),
		 VAULT_RULE ": the host is an address, got \"https://10.0.0.1/secrets/n\""},
		{VAULT_SECRET("https://v.vault.azure.net:8443/secrets/n"),
		 VAULT_RULE ": the port is not 443, got \"https://v.vault.azure.net:8443/secrets/n\""},
		{VAULT_SECRET("https://v.vault.azure.net/secrets/n?"),
		 VAULT_RULE ": it has a query, got \"https://v.vault.azure.net/secrets/n?\""},
		{VAULT_SECRET("https://v.vault.azure.net/secrets/%6e"),
		 VAULT_RULE ": it is not in its plain form, got \"https://v.vault.azure.net/secrets/%6e\""},
		{VAULT_SECRET("https://v.vault.azure.net/x/../secrets/n"),
		 VAULT_RULE ": it is not in its plain form, got \"https://v.vault.azure.net/x/../secrets/n\""},
		WRONG_PATH(""),
		WRONG_PATH("/secrets"),
		WRONG_PATH("/secrets/"),
		WRONG_PATH("/Secrets/n"),
		WRONG_PATH("/keys/n"),
		WRONG_PATH("//secrets/n"),
		WRONG_LONG("/secrets//" V32, "/secrets//0123456789abcdef0123456789ABC"),
		WRONG_PATH("/secrets/n/"),
		WRONG_PATH("/secrets/n/1234"),
		WRONG_LONG("/secrets/n/" V32 "/", "/secrets/n/0123456789abcdef0123456789AB"),
		WRONG_LONG("/secrets/n/" V32 "0", "/secrets/n/0123456789abcdef0123456789AB"),
		WRONG_PATH("/secrets/n_m"),
		WRONG_PATH("/secrets/n.m"),
		WRONG_HOST("vault.azure.net"),
		WRONG_HOST("a.b.vault.azure.net"),
		WRONG_HOST("xvault.azure.net"),
		WRONG_HOST("v.vault.azure.net.evil.test"),
		WRONG_HOST("v-vault.azure.net"),
		WRONG_HOST("own.test"),
		{PINNED("https://other.test/secrets/n"), AT_VAULT
		 "\"other.test\" is not a vault of Azure (NAME.vault.azure.net, or that of another cloud), and "
		 "upstream.resolve does not pin it"},
		{VAULT_SECRET("https://v.vault.azure.net/secrets/n") "upstream: {bound: true}\n",
		 AT_VAULT "with upstream.bound the host of the vault needs a pin in upstream.resolve"},
		{HEAD RULES "secrets: [{id: k, from: {keyvault: 'https://v.vault.azure.net/secrets/n', file: k}}]\n",
		 "policy.yaml:4:25: secrets[0].from: expected one source, such as {env: NAME} or {file: PATH}, got 2"},
		{HEAD RULES "secrets: [{id: k, from: {env: AZURE_CLIENT_ID}}]\n",
		 "policy.yaml:4:31: secrets[0].from.env: \"AZURE_CLIENT_ID\" is a variable that programs obey: a "
		 "secret "
		 "needs one of its own"},
	};
	EXPECT_ERRORS(list);
}

#define PLACEHOLDER_RULE "expected 8 to 128 printable ASCII characters without blanks, quotes and '\\', got "

static void placeholders(void **state)
{
	(void)state;
	static const struct mistake list[] = {
		{SECRET(", placeholder: '{{KEY}}'"), AT("42", ".placeholder") PLACEHOLDER_RULE "\"{{KEY}}\""},
		{SECRET(", placeholder: 'a b c d e'"), AT("42", ".placeholder") PLACEHOLDER_RULE "\"a b c d e\""},
		{SECRET(", placeholder: 'abcdef\"gh'"), AT("42", ".placeholder") PLACEHOLDER_RULE "\"abcdef\\\"gh\""},
		{SECRET(", placeholder: 'abcdef\\gh'"), AT("42", ".placeholder") PLACEHOLDER_RULE "\"abcdef\\\\gh\""},
		{SECRET(", placeholder: my-cage-ph-1"),
		 AT("42", ".placeholder") "\"cage-ph-\" is what random placeholders begin with"},
	};
	EXPECT_ERRORS(list);
}

static void placeholders_that_clash(void **state)
{
	(void)state;
#define TWO(a, b)                                                             \
	HEAD "rules: [{id: r, hosts: [x.test], secrets: [k, l]}]\nsecrets:\n" \
	     "  - {id: k, from: {env: K}, placeholder: " a "}\n  - {id: l, from: {env: L}, placeholder: " b "}\n"
	static const struct mistake list[] = {
		{TWO("ABCDEFGH", "ABCDEFGH"),
		 "policy.yaml:6:42: secrets[1].placeholder: secret \"k\" has the same placeholder"},
		{TWO("ABCDEFGH", "xABCDEFGHx"),
		 "policy.yaml:6:42: secrets[1].placeholder: the placeholder of secret \"k\" is a part of it"},
		{TWO("xABCDEFGHx", "ABCDEFGH"),
		 "policy.yaml:6:42: secrets[1].placeholder: it is a part of the placeholder of secret \"k\""},
	};
	EXPECT_ERRORS(list);
	expect_good(TWO("ABCDEFGH", "ABCDEFGI"));
}

#define PLACE "expected header:NAME, query:NAME, path or body, got "

static void wrong_places(void **state)
{
	(void)state;
	static const struct mistake list[] = {
		{SECRET(", in: []"),
		 AT("33", ".in") "expected a list of places such as header:x-api-key, got an empty list"},
		{SECRET(", in: [header]"), AT("34", ".in[0]") PLACE "\"header\""},
		{SECRET(", in: ['path:x']"), AT("34", ".in[0]") PLACE "\"path:x\""},
		{SECRET(", in: [[path]]"), AT("34", ".in[0]") PLACE "a list"},
		{SECRET(", in: [cookies]"), AT("34", ".in[0]") PLACE "\"cookies\""},
		{SECRET(", in: ['header:a b']"),
		 AT("34", ".in[0]") "expected the name of a header field of at most 128 bytes, got \"a b\""},
		{SECRET(", in: ['header:Host']"), AT("34", ".in[0]") "the field \"Host\" can't carry a secret"},
		{SECRET(", in: ['header:connection']"),
		 AT("34", ".in[0]") "the field \"connection\" can't carry a secret"},
		{SECRET(", in: ['header:Content-Length']"),
		 AT("34", ".in[0]") "the field \"Content-Length\" can't carry a secret"},
		{SECRET(", in: ['header:transfer-encoding']"),
		 AT("34", ".in[0]") "the field \"transfer-encoding\" can't carry a secret"},
		{SECRET(", in: ['header:proxy-x']"), AT("34", ".in[0]") "the field \"proxy-x\" can't carry a secret"},
		{SECRET(", in: ['query:a&b']"),
		 AT("34", ".in[0]") "expected the name of a query parameter as it is written, got \"a&b\""},
		{SECRET(", in: ['query:']"),
		 AT("34", ".in[0]") "expected the name of a query parameter as it is written, got \"\""},
		{SECRET(", in: [body, body]"), AT("40", ".in[1]") "\"body\" is listed twice"},
		{SECRET(", in: ['header:a', 'header:A']"), AT("46", ".in[1]") "\"header:A\" is listed twice"},
	};
	EXPECT_ERRORS(list);
}

static void wrong_transforms(void **state)
{
	(void)state;
	static const struct mistake list[] = {
		{SECRET(", sign: aws"),
		 AT("35",
		    ".sign") "expected aws-sigv4, or a mapping with one of aws-sigv4 and hmac-sha256, got \"aws\""},
		{SECRET(", sign: {aws-sigv3: {}}"),
		 AT("36", ".sign.aws-sigv3") "unknown key; did you mean \"aws-sigv4\"?"},
		{SECRET(", sign: aws-sigv4, in: [body]"), AT("46", ".in") "a secret that signs is put in nowhere"},
		{SECRET(", sign: {hmac-sha256: {header: x}}"), AT("49", ".sign.hmac-sha256") "missing key \"over\""},
		{SECRET(", sign: {hmac-sha256: {header: host, over: [body]}}"),
		 AT("58", ".sign.hmac-sha256.header") "the field \"host\" can't carry a secret"},
		{SECRET(", sign: {hmac-sha256: {header: x, over: [boby]}}"),
		 AT("68", ".sign.hmac-sha256.over[0]") "expected method, path, query, host, body or header:NAME, got "
						       "\"boby\"; did you mean \"body\"?"},
		{SECRET(", sign: {hmac-sha256: {header: x, over: [body, body, body, body, body, body, body, body, "
			"body]}}"),
		 AT("67", ".sign.hmac-sha256.over") "expected at most 8 parts, got 9"},
		{SECRET(", oauth2: {client-credentials: {token_url: 'http://x.test/', client_id: a}}"),
		 AT("70", ".oauth2.client-credentials.token_url") "expected an https URL, got \"http://x.test/\""},
		{SECRET(", oauth2: {client-credentials: {token_url: 'https://y.test/t', client_id: a}}"),
		 AT("70", ".oauth2.client-credentials.token_url") "no rule allows POST to the place that tokens come "
								  "from, https://y.test:443/t"},
		{SECRET(", oauth2: {google-jwt: {token_url: 'https://x.test/'}}"),
		 AT("50", ".oauth2.google-jwt") "expected a scope or an audience"},
		{SECRET(", oauth2: google-jwt"),
		 AT("37",
		    ".oauth2") "expected a mapping with one of client-credentials and google-jwt, got \"google-jwt\""},
	};
	EXPECT_ERRORS(list);
}

static void wrong_rules(void **state)
{
	(void)state;
#define RULE(more)                                                                                                    \
	HEAD "secrets: [{id: gh-token, from: {env: K}}]\nrules:\n  - {id: r, hosts: [x.test], secrets: [gh-token]}\n" \
	     "  - {id: q, hosts: [y.test], " more "}\n"
	static const struct mistake list[] = {
		{RULE("secrets: [gh-tokn]"),
		 "policy.yaml:6:40: rules[1].secrets[0]: no secret has the id \"gh-tokn\"; did you mean \"gh-token\"?"},
		{RULE("secrets: []"),
		 "policy.yaml:6:39: rules[1].secrets: expected a list of ids of secrets, got an empty list"},
		{RULE("secrets: [gh-token, gh-token]"),
		 "policy.yaml:6:50: rules[1].secrets[1]: \"gh-token\" is listed twice"},
		{RULE("plaintext: true"),
		 "policy.yaml:6:30: rules[1].plaintext: it is about secrets, and the rule has none"},
		{RULE("action: deny, secrets: [gh-token]"),
		 "policy.yaml:6:44: rules[1].secrets: a deny rule can't have secrets"},
		{RULE("action: tunnel, secrets: [gh-token]"),
		 "policy.yaml:6:46: rules[1].secrets: nobody looks into a tunnel: it can't have secrets"},
		{RULE("action: tunnel, plaintext: true"),
		 "policy.yaml:6:46: rules[1].plaintext: nobody looks into a tunnel: it can't have secrets"},
	};
	EXPECT_ERRORS(list);
}

static void included_rules_name_secrets(void **state)
{
	(void)state;
	struct fixture f = fixture_new();
	fixture_write(&f, "more.yaml", SLICE("rules: [{id: r, hosts: [x.test], secrets: [k]}]\n"));
	assert_non_null(fixture_load(&f, HEAD "include: [more.yaml]\nsecrets: [{id: k, from: {env: K}}]\n"));
	fixture_write(&f, "more.yaml", SLICE("secrets: [{id: k, from: {env: K}}]\n" RULES));
	assert_null(fixture_load(&f, HEAD "include: [more.yaml]\nsecrets: [{id: k, from: {env: K}}]\n"));
	fixture_free(&f);
}

static void too_many(void **state)
{
	(void)state;
	char yaml[8192] = HEAD "secrets:\n";
	for (unsigned i = 0; i <= LIMIT_SECRETS; i++)
		snprintf(yaml + strlen(yaml), sizeof(yaml) - strlen(yaml), "  - {id: s%u, from: {env: S%u}}\n", i, i);
	expect_error(yaml, "policy.yaml:4:3: secrets: expected at most 64 secrets, got 65");
}

/* ---- values ---- */

static struct slice given; /* what the reader below finds */

static struct slice read_given(void *arg, const struct policy_secret *s, const char **why)
{
	(void)arg;
	assert_true(slice_eq(s->source, SLICE("K")) || s->from == SECRET_FILE);
	if (!given.ptr)
		*why = "is not set";
	return given;
}

/* error: NULL for a good value. */
static void expect_given(const char *yaml, struct slice value, const char *error)
{
	struct fixture f = fixture_new();
	f.values = read_given;
	given = value;
	struct policy *p = fixture_load(&f, yaml);
	if (error)
		fixture_expect_error(&f, error);
	else if (!p)
		policy_errors_print(f.errs, STDERR_FILENO);
	assert_true(!error == (p != NULL));
	fixture_free(&f);
}

static void values(void **state)
{
	(void)state;
	static const char *yaml = SECRET(", placeholder: '{{KEY-1}}'");
	static char big[LIMIT_SECRET_VALUE + 1];
	memset(big, 'a', sizeof(big));
#define BAD(why) "policy.yaml:5:19: secrets[0].from: the variable \"K\" can't be used: it " why
	expect_given(yaml, SLICE_NONE, BAD("is not set"));
	expect_given(yaml, SLICE(""), BAD("is empty"));
	expect_given(yaml, SLICE("1234567"), BAD("is shorter than 8 bytes"));
	expect_given(yaml, SLICE("12345678"), NULL);
	expect_given(yaml, slice_of(big, LIMIT_SECRET_VALUE), NULL);
	expect_given(yaml, slice_of(big, sizeof(big)), BAD("is too long"));
	expect_given(yaml, SLICE("1234\r5678"), BAD("holds a line break"));
	expect_given(yaml, SLICE("1234\n5678"), BAD("holds a line break"));
	expect_given(yaml, SLICE("1234\0005678"), BAD("holds a NUL byte"));
	expect_given(yaml, SLICE("x{{KEY-1}}x"), BAD("contains a placeholder"));
	expect_given(yaml, SLICE("12cage-ph-34"), BAD("contains \"cage-ph-\", with which placeholders begin"));
}

static void a_key_file_has_lines(void **state)
{
	(void)state;
	static const char *yaml = SECRET(", oauth2: {google-jwt: {scope: s, token_url: 'https://x.test/'}}");
	expect_given(yaml, SLICE("{\r\n \"a\": 1\n}"), NULL);
	expect_given(yaml, SLICE("{\n\0 \"a\": 1\n}"), BAD("holds a NUL byte"));
}

static void all_at_once(void **state)
{
	(void)state;
	struct fixture f = fixture_new();
	f.values = read_given;
	given = SLICE("short");
	assert_null(fixture_load(&f, SECRET(", placeholder: x, in: [bodi]")));
	assert_int_equal(f.errs->n, 3);
	assert_string_equal(fixture_error(&f, 0), BAD("is shorter than 8 bytes"));
	fixture_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults),
		cmocka_unit_test(all_keys),
		cmocka_unit_test(signing),
		cmocka_unit_test(tokens),
		cmocka_unit_test(google),
		cmocka_unit_test(wrong_secrets),
		cmocka_unit_test(key_vaults),
		cmocka_unit_test(wrong_key_vaults),
		cmocka_unit_test(placeholders),
		cmocka_unit_test(placeholders_that_clash),
		cmocka_unit_test(wrong_places),
		cmocka_unit_test(wrong_transforms),
		cmocka_unit_test(wrong_rules),
		cmocka_unit_test(included_rules_name_secrets),
		cmocka_unit_test(too_many),
		cmocka_unit_test(values),
		cmocka_unit_test(a_key_file_has_lines),
		cmocka_unit_test(all_at_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
