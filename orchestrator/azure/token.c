/* Four ways to a token. Three of them are one request; the fourth is a program of Microsoft's. */
#include "orchestrator/azure/token.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/wipe.h"
#include "orchestrator/launch.h"

/* ---- text ---- */

static const char *env(const char *name)
{
	const char *value = getenv(name);
	return value && value[0] ? value : NULL;
}

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

/* ---- states ---- */

static enum azure_credentials choose(const struct token *t)
{
	if (t->options->credentials != CREDENTIALS_AUTO)
		return t->options->credentials;
	if (env("AZURE_CLIENT_SECRET"))
		return CREDENTIALS_SECRET;
	return env("AZURE_FEDERATED_TOKEN_FILE") ? CREDENTIALS_WORKLOAD : CREDENTIALS_IDENTITY;
}

static void end(struct token *t, enum token_state how, const char *why)
{
	static const char *const asked[] = {[CREDENTIALS_AUTO] = "the machine's identity",
					    [CREDENTIALS_SECRET] = "a client's secret",
					    [CREDENTIALS_WORKLOAD] = "a workload's identity",
					    [CREDENTIALS_IDENTITY] = "the machine's identity",
					    [CREDENTIALS_AZ] = "az"};
	const bool is_auto = t->options->credentials == CREDENTIALS_AUTO;
	t->state = how;
	snprintf(t->why, sizeof(t->why), "no token for %s by %s%s: %s", t->resource, asked[choose(t)],
		 is_auto ? " (credentials auto)" : "", why);
}

static void fail(struct token *t, const char *why)
{
	end(t, TOKEN_FAILED, why);
}

static void refuse(struct token *t, const char *why)
{
	end(t, TOKEN_REFUSED, why);
}

/* Whoever writes it, seconds are an integer, or one in a string. */
static uint64_t seconds_of(const json_t *value)
{
	uint64_t n = 0;
	if (json_is_integer(value))
		return json_integer_value(value) > 0 ? (uint64_t)json_integer_value(value) : 0;
	if (json_is_string(value) && slice_to_u64(slice_str(json_string_value(value)), UINT32_MAX, &n))
		return n;
	return 0;
}

/* az tells an end and no duration: it is asked again after a while, and then has another if it is time. */
static bool take(struct token *t, struct slice bytes, const char *key, uint64_t seconds)
{
	json_t *answer = json_loadb(bytes.ptr, bytes.len, 0, NULL);
	const json_t *token = json_object_get(answer, key), *life = json_object_get(answer, "expires_in");
	const size_t len = json_string_length(token);
	bool is_good = len > 0 && len < LIMIT_ARM_TOKEN &&
		       strspn(json_string_value(token),
			      "!#$%&'()*+,-./"
			      "0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[]^_`abcdefghijklmnopqrstuvwxyz{|}~") == len;
	if (is_good) {
		t->text = malloc(len + 1);
		is_good = t->text != NULL;
	}
	if (is_good) {
		memcpy(t->text, json_string_value(token), len + 1);
		explicit_bzero((char *)json_string_value(token), len);
		if (life)
			seconds = seconds_of(life);
		t->until_us =
			clock_mono_us() +
			(seconds > 2 * LIMIT_ARM_TOKEN_EARLY_S ? seconds - LIMIT_ARM_TOKEN_EARLY_S : seconds / 2) *
				1000000ull;
		t->state = TOKEN_HELD;
	}
	json_decref(answer);
	return is_good;
}

/* ---- by a request ---- */

static void ask_identity(struct token *t, struct web *w)
{
	char url[LIMIT_ARM_URL];
	struct words headers = {0};
	const char *base = env("AZURE_POD_IDENTITY_AUTHORITY_HOST"), *client = env("AZURE_CLIENT_ID");
	size_t len = (size_t)snprintf(url, sizeof(url), "%s/metadata/identity/oauth2/token?api-version=2018-02-01",
				      base ? base : AZURE_IDENTITY);
	if (len >= sizeof(url) || !put_field(url, sizeof(url), &len, "resource", slice_str(t->resource)) ||
	    (client && !put_field(url, sizeof(url), &len, "client_id", slice_str(client)))) {
		refuse(t, "the address of the identity service is too long");
		return;
	}
	words_add(&headers, "Metadata: true");
	t->state = TOKEN_ASKED;
	if (!exchange_begin(w, &t->exchange, &(struct web_request){"GET", url, &headers, SLICE_NONE, NULL}))
		token_look(t, w);
	words_free(&headers);
}

static bool read_assertion(char *out, size_t room, struct slice *text)
{
	const char *path = env("AZURE_FEDERATED_TOKEN_FILE");
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
	const char *secret = env("AZURE_CLIENT_SECRET");
	snprintf(scope, sizeof(scope), "%s/.default", t->resource);
	if (by_secret)
		shown = secret ? slice_str(secret) : SLICE_NONE;
	else if (!read_assertion(assertion, sizeof(assertion), &shown))
		return false;
	bool ok = shown.len > 0 && put_field(out, room, len, "grant_type", SLICE("client_credentials")) &&
		  put_field(out, room, len, "client_id", slice_str(env("AZURE_CLIENT_ID"))) &&
		  put_field(out, room, len, "scope", slice_str(scope)) &&
		  (by_secret || put_field(out, room, len, "client_assertion_type",
					  SLICE("urn:ietf:params:oauth:client-assertion-type:jwt-bearer"))) &&
		  put_field(out, room, len, by_secret ? "client_secret" : "client_assertion", shown);
	explicit_bzero(assertion, sizeof(assertion));
	return ok;
}

static void ask_authority(struct token *t, struct web *w, bool by_secret)
{
	static char form[4 * LIMIT_ARM_TOKEN];
	char url[LIMIT_ARM_URL];
	size_t len = 0;
	struct words headers = {0};
	const char *base = env("AZURE_AUTHORITY_HOST"), *tenant = env("AZURE_TENANT_ID");
	if (!tenant || !env("AZURE_CLIENT_ID")) {
		refuse(t, "AZURE_TENANT_ID and AZURE_CLIENT_ID have to be set");
		return;
	}
	if (!make_form(t, by_secret, form, sizeof(form), &len)) {
		refuse(t, by_secret ? "AZURE_CLIENT_SECRET has to be set"
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
	if (!exchange_begin(w, &t->exchange, &(struct web_request){"POST", url, &headers, slice_of(form, len), NULL}))
		token_look(t, w);
	explicit_bzero(form, sizeof(form));
	words_free(&headers);
}

/* What a service says of a refusal, as far as it is safe to be shown: a code. */
static void tell(struct token *t)
{
	char why[256];
	const struct exchange *x = &t->exchange;
	json_t *answer = x->body ? json_loadb(x->body, x->len, 0, NULL) : NULL;
	const char *code = json_string_value(json_object_get(answer, "error"));
	if (x->status == 0)
		snprintf(why, sizeof(why), "%s", x->why);
	else
		snprintf(why, sizeof(why), "status %ld%s%.80s", x->status, code ? ", " : "", code ? code : "");
	json_decref(answer);
	if (x->status == 400 || x->status == 401 || x->status == 403)
		refuse(t, why);
	else
		fail(t, why);
}

void token_look(struct token *t, struct web *w)
{
	if (t->state != TOKEN_ASKED || t->exchange.state != EXCHANGE_ENDED)
		return;
	if (t->exchange.status != 200)
		tell(t);
	else if (!take(t, slice_of(t->exchange.body, t->exchange.len), "access_token", 0))
		fail(t, "the answer has none");
	exchange_free(w, &t->exchange);
}

/* ---- by a program ---- */

static void use_pipe(const void *arg)
{
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0 || dup2(null, 0) < 0 || dup2(*(const int *)arg, 1) < 0 || dup2(null, 2) < 0)
		_exit(127);
}

/* All that it prints, within a time. */
static size_t read_all(int fd, char *out, size_t room)
{
	const uint64_t until_us = clock_mono_us() + LIMIT_ARM_AZ_MS * 1000ull;
	size_t n = 0;
	for (ssize_t got = 1; got > 0 && n < room;) {
		const uint64_t now = clock_mono_us();
		struct pollfd at = {.fd = fd, .events = POLLIN};
		if (now >= until_us || poll(&at, 1, (int)((until_us - now) / 1000) + 1) <= 0)
			return 0;
		got = read(fd, out + n, room - n);
		n += got > 0 ? (size_t)got : 0;
	}
	return n;
}

/* Found in PATH; nobody waits for anything else meanwhile, as it is for a person at a desk. */
static void ask_az(struct token *t)
{
	static char printed[LIMIT_ARM_TOKEN * 2];
	int ends[2], status = 0;
	char *argv[] = {"az",   "account", "get-access-token", "--resource", (char *)t->resource, "--output",
			"json", NULL};
	char *line[] = {"/usr/bin/env", argv[0], argv[1], argv[2], argv[3], argv[4], argv[5], argv[6], NULL};
	if (pipe2(ends, O_CLOEXEC) != 0) {
		fail(t, strerror(errno));
		return;
	}
	struct launch l = {.name = "/usr/bin/env",
			   .argv = line,
			   .envp = environ,
			   .in_child = use_pipe,
			   .arg = &ends[1],
			   .death_signal = SIGKILL};
	pid_t pid = launch(&l);
	close(ends[1]);
	size_t n = pid > 0 ? read_all(ends[0], printed, sizeof(printed)) : 0;
	close(ends[0]);
	if (pid > 0 && n == 0)
		kill(pid, SIGKILL);
	if (pid > 0)
		waitpid(pid, &status, 0);
	if (n == 0 || !take(t, slice_of(printed, n), "accessToken", LIMIT_ARM_AZ_LIFE_S))
		refuse(t, "az account get-access-token has given none: is az installed, and logged in (az login)?");
	explicit_bzero(printed, sizeof(printed));
}

/* ---- from outside ---- */

static void ask(struct token *t, struct web *w)
{
	switch (choose(t)) {
	case CREDENTIALS_SECRET:
		ask_authority(t, w, true);
		return;
	case CREDENTIALS_WORKLOAD:
		ask_authority(t, w, false);
		return;
	case CREDENTIALS_AZ:
		ask_az(t);
		return;
	case CREDENTIALS_AUTO:
	case CREDENTIALS_IDENTITY:
		ask_identity(t, w);
		return;
	}
}

void token_want(struct token *t, struct web *w)
{
	if (t->state == TOKEN_HELD && clock_mono_us() >= t->until_us)
		token_drop(t);
	if (t->state == TOKEN_NONE || t->state == TOKEN_FAILED || t->state == TOKEN_REFUSED)
		ask(t, w);
}

void token_drop(struct token *t)
{
	if (t->text) {
		wipe_free(t->last);
		t->last = t->text;
	}
	t->text = NULL;
	if (t->state == TOKEN_HELD)
		t->state = TOKEN_NONE;
}

void token_free(struct token *t, struct web *w)
{
	token_drop(t);
	wipe_free(t->last);
	t->last = NULL;
	exchange_free(w, &t->exchange);
	t->state = TOKEN_NONE;
}
