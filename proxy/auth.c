/* Tokens in memory, compared in constant time: every line is looked at, whatever the client sent. */
#include "proxy/auth.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/limits.h"
#include "core/base/say.h"
#include "core/proc/sandbox_id.h"
#include "core/base/text.h"

#define AUTH_ENTRIES 1024
#define AUTH_LINE 512
#define AUTH_TOKEN_MIN 16

struct entry {
	char line[AUTH_LINE]; /* "sandbox:token" */
	size_t sandbox_len, len;
};

struct auth {
	size_t n;
	struct entry entries[AUTH_ENTRIES];
};

static const char *entry_parse(struct entry *e)
{
	size_t colon = slice_find(slice_of(e->line, e->len), ':');
	if (colon == e->len)
		return "expected sandbox:token";
	if (!sandbox_id_is_good(slice_of(e->line, colon)))
		return "the sandbox id must be " SANDBOX_ID;
	if (e->len - colon - 1 < AUTH_TOKEN_MIN)
		return "the token must have at least 16 characters";
	e->sandbox_len = colon;
	return NULL;
}

static bool auth_read(struct auth *a, FILE *f, const char *path)
{
	char line[AUTH_LINE];
	for (unsigned number = 1; fgets(line, sizeof(line), f); number++) {
		size_t len = strcspn(line, "\r\n");
		const char *why = NULL;
		if (len == 0 || line[0] == '#')
			continue;
		struct entry *e = &a->entries[a->n];
		if (a->n == AUTH_ENTRIES)
			why = "too many sandboxes";
		else if (len == sizeof(line) - 1)
			why = "the line is too long";
		else {
			memcpy(e->line, line, len);
			e->len = len;
			why = entry_parse(e);
		}
		OPENSSL_cleanse(line, sizeof(line));
		if (why) {
			fprintf(stderr, "%s:%u: %s\n", path, number, why);
			return false;
		}
		a->n++;
	}
	if (a->n == 0)
		fprintf(stderr, "%s: no sandbox in it\n", path);
	return a->n > 0;
}

struct auth *auth_load(const char *path)
{
	FILE *f = fopen(path, "re");
	if (!f) {
		say("--auth %s: %s", path, strerror(errno));
		return NULL;
	}
	setvbuf(f, NULL, _IONBF, 0); /* no copy of the tokens in a stdio buffer */
	struct auth *a = calloc(1, sizeof(*a));
	if (a && !auth_read(a, f, path))
		auth_free(&a);
	fclose(f);
	return a;
}

void auth_free(struct auth **a)
{
	if (!*a)
		return;
	OPENSSL_cleanse(*a, sizeof(**a));
	free(*a);
	*a = NULL;
}

/* The credentials of "Basic ..." decoded into out; 0 when they are not well-formed. */
static size_t decode_basic(struct slice value, char out[AUTH_LINE])
{
	struct slice rest = value;
	if (!slice_ieq(slice_cut(&rest, ' '), SLICE("basic")))
		return 0;
	rest = slice_trim(rest);
	if (rest.len == 0 || rest.len % 4 != 0 || rest.len / 4 * 3 > AUTH_LINE)
		return 0;
	int n = EVP_DecodeBlock((unsigned char *)out, (const unsigned char *)rest.ptr, (int)rest.len);
	if (n < 0)
		return 0;
	size_t padding = (size_t)(rest.ptr[rest.len - 1] == '=') + (size_t)(rest.ptr[rest.len - 2] == '=');
	return (size_t)n - padding;
}

/* given: "sandbox:token" */
static enum reason find_entry(const struct auth *a, struct slice given, struct slice *sandbox)
{
	const struct entry *found = NULL;
	for (size_t i = 0; i < a->n; i++)
		if (slice_eq_secret(slice_of(a->entries[i].line, a->entries[i].len), given))
			found = &a->entries[i];
	if (!found)
		return REASON_AUTH_FAILED;
	*sandbox = slice_of(found->line, found->sandbox_len);
	return REASON_NONE;
}

enum reason auth_check(const struct auth *a, const struct message *m, struct slice *sandbox)
{
	const struct field *f = message_field(m, SLICE("proxy-authorization"));
	char given[AUTH_LINE];
	if (!f)
		return REASON_AUTH_REQUIRED;
	size_t len = decode_basic(f->value, given);
	enum reason reason = find_entry(a, slice_of(given, len), sandbox);
	OPENSSL_cleanse(given, sizeof(given));
	return reason;
}

enum reason auth_check_pair(const struct auth *a, struct slice id, struct slice token, struct slice *sandbox)
{
	char room[AUTH_LINE];
	struct text given = text_in(room, sizeof(room));
	text_put(&given, id);
	text_put_char(&given, ':');
	text_put(&given, token);
	bool is_whole = text_ok(&given) && sandbox_id_is_good(id); /* so that the ':' is where it seems to be */
	enum reason reason = is_whole ? find_entry(a, text_slice(&given), sandbox) : REASON_AUTH_FAILED;
	OPENSSL_cleanse(room, sizeof(room));
	return reason;
}
