/* What is sent to a token service: a form, and with it the client's credentials or an assertion. */
#include <openssl/evp.h>

#include "core/base/text.h"
#include "proxy/oauth2_private.h"
#include "proxy/percent.h"

static const char no_memory[] = "there is no memory for the request to the token service";

/* A form in the making. */
struct form {
	struct text text;
	struct arena *arena;
	bool ok;
};

#define FORM_PARTS 8 /* names and values */

/* sizes: of all values together. */
static struct form form_new(size_t sizes, struct arena *arena)
{
	size_t room = 3 * sizes + FORM_PARTS * sizeof("&client_secret=");
	char *out = arena_alloc(arena, room);
	return (struct form){text_in(out, out ? room : 0), arena, out != NULL};
}

/* An empty value is left out. */
static void form_put(struct form *f, struct slice name, struct slice value)
{
	if (value.len == 0)
		return;
	struct slice coded = percent_encode(value, f->arena);
	f->ok = f->ok && coded.ptr;
	if (f->text.len > 0)
		text_put_char(&f->text, '&');
	text_put(&f->text, name);
	text_put_char(&f->text, '=');
	text_put(&f->text, coded);
}

static const char *form_end(const struct form *f, struct slice *out)
{
	*out = text_slice(&f->text);
	return f->ok && text_ok(&f->text) ? NULL : no_memory;
}

/* RFC 6749, 2.3.1: both are encoded as in a form before they become a user name and a password. */
static struct slice basic(struct slice id, struct slice secret, struct arena *arena)
{
	struct slice user = percent_encode(id, arena), password = percent_encode(secret, arena);
	size_t n = user.len + 1 + password.len;
	char *plain = arena_alloc(arena, n);
	size_t room = sizeof("Basic ") + (n + 2) / 3 * 4;
	char *out = arena_alloc(arena, room);
	if (!user.ptr || !password.ptr || !plain || !out)
		return SLICE_NONE;
	struct text pair = text_in(plain, n), t = text_in(out, room);
	text_put(&pair, user);
	text_put_char(&pair, ':');
	text_put(&pair, password);
	text_put(&t, SLICE("Basic "));
	int coded = EVP_EncodeBlock((unsigned char *)out + t.len, (const unsigned char *)plain, (int)n);
	return slice_of(out, t.len + (size_t)coded);
}

static const char *client_credentials(const struct policy_oauth2 *conf, struct slice value, struct arena *arena,
				      struct token_request *out)
{
	if (conf->basic) {
		out->authorization = basic(conf->client_id, value, arena);
		if (!out->authorization.ptr)
			return no_memory;
	}
	struct form f = form_new(64 + conf->client_id.len + value.len + conf->scope.len + conf->audience.len, arena);
	form_put(&f, SLICE("grant_type"), SLICE("client_credentials"));
	form_put(&f, SLICE("client_id"), conf->basic ? SLICE_NONE : conf->client_id);
	form_put(&f, SLICE("client_secret"), conf->basic ? SLICE_NONE : value);
	form_put(&f, SLICE("scope"), conf->scope);
	form_put(&f, SLICE("audience"), conf->audience);
	return form_end(&f, &out->form);
}

static const char *google(const struct policy_oauth2 *conf, struct slice value, int64_t now_s, struct arena *arena,
			  struct token_request *out)
{
	struct slice assertion;
	const char *fault = google_assertion(conf, value, now_s, arena, &assertion);
	if (fault)
		return fault;
	struct form f = form_new(64 + assertion.len, arena);
	form_put(&f, SLICE("grant_type"), SLICE("urn:ietf:params:oauth:grant-type:jwt-bearer"));
	form_put(&f, SLICE("assertion"), assertion);
	return form_end(&f, &out->form);
}

const char *token_request_make(const struct policy_secret *s, struct slice value, int64_t now_s, struct arena *arena,
			       struct token_request *out)
{
	*out = (struct token_request){0};
	switch (s->use) {
	case SECRET_CREDENTIALS:
		return client_credentials(s->oauth, value, arena, out);
	case SECRET_GOOGLE_JWT:
		return google(s->oauth, value, now_s, arena, out);
	case SECRET_AS_IS:
	case SECRET_SIGV4:
	case SECRET_HMAC:
		break;
	}
	return "no token is got for this kind of secret";
}
