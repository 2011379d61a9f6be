/* Three ways to a token that are one request: the identity of this machine, and the authority, which is shown a secret or what somebody else
 * has signed. */
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "orchestrator/azure/hidden.h"
#include "orchestrator/azure/token_private.h"

#define CODE_LONGEST 80 /* letters of the code of an error that are shown */

/* ---- text ---- */

/* Into a form or a query: all but what is never special. */
static bool put_encoded(char *out, size_t room, size_t *len, struct slice text)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
	for (size_t i = 0; i < text.len; i++) {
		const unsigned char c = (unsigned char)text.ptr[i];
		if (*len + 4 > room)
			return false;
		if (c && strchr(plain, c))
			out[(*len)++] = (char)c;
		else
			*len += (size_t)snprintf(out + *len, 4, "%%%02X", c);
	}
	out[*len] = '\0';
	return true;
}

static bool put_field(char *out, size_t room, size_t *len, const char *name, struct slice value)
{
	const size_t n = strlen(name);
	if (*len + n + 3 > room)
		return false;
	if (*len > 0)
		out[(*len)++] = '&';
	memcpy(out + *len, name, n);
	*len += n;
	out[(*len)++] = '=';
	out[*len] = '\0';
	return put_encoded(out, room, len, value);
}

/* ---- asking ---- */

void token_ask_identity(struct token *t, struct web *w)
{
	char url[LIMIT_ARM_URL];
	struct words headers = {0};
	const char *base = token_env("AZURE_POD_IDENTITY_AUTHORITY_HOST"), *client = token_env("AZURE_CLIENT_ID");
	size_t len = (size_t)snprintf(url, sizeof(url), "%s/metadata/identity/oauth2/token?api-version=2018-02-01",
				      base ? base : AZURE_IDENTITY);
	if (len >= sizeof(url) || !put_field(url, sizeof(url), &len, "resource", slice_str(t->resource)) ||
	    (client && !put_field(url, sizeof(url), &len, "client_id", slice_str(client)))) {
		token_refuse(t, "the address of the identity service is too long");
		return;
	}
	words_add(&headers, "Metadata: true");
	t->state = TOKEN_ASKED;
	if (!exchange_begin(w, &t->exchange, &(struct web_request){.method = "GET", .url = url, .headers = &headers}))
		token_look(t, w);
	words_free(&headers);
}

static bool read_assertion(char *out, size_t room, struct slice *text)
{
	const char *path = token_env("AZURE_FEDERATED_TOKEN_FILE");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	ssize_t n = fd >= 0 ? read(fd, out, room) : -1;
	if (fd >= 0)
		close(fd);
	*text = slice_of(out, n > 0 ? (size_t)n : 0);
	while (text->len > 0 && text->ptr[text->len - 1] <= ' ')
		text->len--;
	return text->len > 0 && text->len < room;
}

/* The form of OAuth 2 for a client that shows who it is by a secret, or by what somebody else has signed. */
static bool make_form(const struct token *t, bool by_secret, char *out, size_t room, size_t *len)
{
	static char assertion[LIMIT_ARM_TOKEN];
	char scope[300];
	struct slice shown;
	const char *secret = token_env("AZURE_CLIENT_SECRET");
	snprintf(scope, sizeof(scope), "%s/.default", t->resource);
	if (by_secret)
		shown = secret ? slice_str(secret) : SLICE_NONE;
	else if (!read_assertion(assertion, sizeof(assertion), &shown))
		return false;
	bool ok = shown.len > 0 && put_field(out, room, len, "grant_type", SLICE("client_credentials")) &&
		  put_field(out, room, len, "client_id", slice_str(token_env("AZURE_CLIENT_ID"))) &&
		  put_field(out, room, len, "scope", slice_str(scope)) &&
		  (by_secret || put_field(out, room, len, "client_assertion_type",
					  SLICE("urn:ietf:params:oauth:client-assertion-type:jwt-bearer"))) &&
		  put_field(out, room, len, by_secret ? "client_secret" : "client_assertion", shown);
	explicit_bzero(assertion, sizeof(assertion));
	return ok;
}

void token_ask_authority(struct token *t, struct web *w, bool by_secret)
{
	static char form[4 * LIMIT_ARM_TOKEN];
	char url[LIMIT_ARM_URL];
	size_t len = 0;
	struct words headers = {0};
	const char *base = token_env("AZURE_AUTHORITY_HOST"), *tenant = token_env("AZURE_TENANT_ID");
	if (!tenant || !token_env("AZURE_CLIENT_ID")) {
		token_refuse(t, "AZURE_TENANT_ID and AZURE_CLIENT_ID have to be set");
		return;
	}
	if (!make_form(t, by_secret, form, sizeof(form), &len)) {
		token_refuse(t, by_secret ? "AZURE_CLIENT_SECRET has to be set"
					  : "the file that AZURE_FEDERATED_TOKEN_FILE names can't be read");
		return;
	}
	const size_t n = base ? strlen(base) : 0;
	snprintf(url, sizeof(url), "%.*s/%s/oauth2/v2.0/token", (int)(n > 0 && base[n - 1] == '/' ? n - 1 : n),
		 base ? base : "", tenant);
	if (!base)
		snprintf(url, sizeof(url), AZURE_AUTHORITY "/%s/oauth2/v2.0/token", tenant);
	words_add(&headers, "Content-Type: application/x-www-form-urlencoded");
	t->state = TOKEN_ASKED;
	if (!exchange_begin(w, &t->exchange,
			    &(struct web_request){
				    .method = "POST", .url = url, .headers = &headers, .body = slice_of(form, len)}))
		token_look(t, w);
	explicit_bzero(form, sizeof(form));
	words_free(&headers);
}

/* ---- what comes ---- */

/* A word such as invalid_client, and nothing that it was sent. */
static bool is_code(const char *text)
{
	struct hidden sent = {0};
	const char *secret = token_env("AZURE_CLIENT_SECRET");
	const size_t n = text ? strspn(text, "abcdefghijklmnopqrstuvwxyz_") : 0;
	if (secret)
		hidden_add(&sent, slice_str(secret));
	const bool is_good = n > 0 && n <= CODE_LONGEST && text[n] == '\0' && !hidden_is_in(&sent, text);
	hidden_wipe(&sent);
	return is_good;
}

/* What a service says of a refusal, as far as it is safe to be shown: a code. */
static void tell(struct token *t)
{
	char why[256];
	const struct exchange *x = &t->exchange;
	json_t *answer = x->body ? json_loadb(x->body, x->len, 0, NULL) : NULL;
	const char *code = json_string_value(json_object_get(answer, "error"));
	if (!is_code(code))
		code = NULL;
	if (x->status == 0)
		snprintf(why, sizeof(why), "%s", x->why);
	else
		snprintf(why, sizeof(why), "status %ld%s%s", x->status, code ? ", " : "", code ? code : "");
	json_decref(answer);
	if (x->status == 400 || x->status == 401 || x->status == 403)
		token_refuse(t, why);
	else
		token_fail(t, why);
}

void token_look(struct token *t, struct web *w)
{
	if (t->state != TOKEN_ASKED || t->exchange.state != EXCHANGE_ENDED)
		return;
	if (t->exchange.status != 200)
		tell(t);
	else if (!token_take(t, slice_of(t->exchange.body, t->exchange.len), "access_token", 0))
		token_fail(t, "the answer has none");
	exchange_free(w, &t->exchange);
}
