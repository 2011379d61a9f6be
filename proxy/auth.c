/* A proof is the SHA-256 of "sandbox:token", so that all have one length and are compared in constant time: every seat is
 * looked at, whatever the client sent. Tokens are random, so that a hash of one says nothing about it. */
#include "proxy/auth.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>

#include "core/base/say.h"
#include "core/base/text.h"
#include "core/proc/sandbox_id.h"

#define AUTH_PAIR (LIMIT_SANDBOX + 1 + LIMIT_SANDBOX_TOKEN)
#define AUTH_LINE (AUTH_PAIR + 3) /* with its line break, and a byte that is too many */

static bool prove(struct slice pair, unsigned char proof[SEAT_PROOF])
{
	unsigned len = 0;
	return EVP_Digest(pair.ptr, pair.len, proof, &len, EVP_sha256(), NULL) == 1 && len == SEAT_PROOF;
}

/* ---- who may come ---- */

static bool prove_pair(struct slice id, struct slice token, unsigned char proof[SEAT_PROOF])
{
	char room[AUTH_PAIR];
	struct text pair = text_in(room, sizeof(room));
	text_put(&pair, id);
	text_put_char(&pair, ':');
	text_put(&pair, token);
	bool ok = text_ok(&pair) && prove(text_slice(&pair), proof);
	OPENSSL_cleanse(room, sizeof(room));
	return ok;
}

const char *auth_seat(struct seat *out, struct slice id, struct slice token)
{
	*out = (struct seat){.id_len = id.len};
	if (!sandbox_id_is_good(id))
		return "the sandbox id must be " SANDBOX_ID;
	if (token.len < LIMIT_SANDBOX_TOKEN_MIN)
		return "the token must have at least 16 characters";
	if (token.len > LIMIT_SANDBOX_TOKEN)
		return "the token must have at most 256 characters";
	memcpy(out->id, id.ptr, id.len);
	return prove_pair(id, token, out->proof) ? NULL : "no memory";
}

static const char *read_line(struct slice line, struct seat *out)
{
	size_t colon = slice_find(line, ':');
	if (colon == line.len)
		return "expected sandbox:token";
	return auth_seat(out, slice_head(line, colon), slice_of(line.ptr + colon + 1, line.len - colon - 1));
}

/* How many seats it fills; 0 after saying what is wrong. */
static size_t read_lines(FILE *f, const char *path, struct seat *seats, size_t n)
{
	char line[AUTH_LINE];
	size_t used = 0;
	const char *why = NULL;
	unsigned number = 0;
	while (!why && fgets(line, sizeof(line), f)) {
		struct slice text = slice_of(line, strcspn(line, "\r\n"));
		number++;
		if (text.len == 0 || line[0] == '#')
			continue;
		if (used == n)
			why = "too many sandboxes";
		else if (text.len == sizeof(line) - 1)
			why = "the line is too long";
		else
			why = read_line(text, &seats[used++]);
	}
	OPENSSL_cleanse(line, sizeof(line));
	if (why)
		fprintf(stderr, "%s:%u: %s\n", path, number, why);
	else if (used == 0)
		fprintf(stderr, "%s: no sandbox in it\n", path);
	return why ? 0 : used;
}

bool auth_read_file(const char *path, struct seat *seats, size_t n)
{
	FILE *f = fopen(path, "re");
	if (!f) {
		say("--auth %s: %s", path, strerror(errno));
		return false;
	}
	setvbuf(f, NULL, _IONBF, 0); /* no copy of the tokens in a stdio buffer */
	bool ok = read_lines(f, path, seats + 1, n - 1) > 0;
	fclose(f);
	return ok;
}

/* ---- who comes ---- */

/* All of it, in words: CRYPTO_memcmp() goes byte by byte, which a thousand seats would feel. */
static bool is_same(const unsigned char a[SEAT_PROOF], const unsigned char b[SEAT_PROOF])
{
	uint64_t differ = 0;
	for (size_t i = 0; i < SEAT_PROOF; i += sizeof(uint64_t)) {
		uint64_t x, y;
		memcpy(&x, a + i, sizeof(x));
		memcpy(&y, b + i, sizeof(y));
		differ |= x ^ y;
	}
	return differ == 0;
}

static enum reason find_seat(const struct seat *seats, size_t n, const unsigned char proof[SEAT_PROOF], size_t *seat)
{
	size_t found = 0;
	for (size_t i = 1; i < n; i++)
		if (is_same(seats[i].proof, proof) && seats[i].id_len > 0)
			found = i;
	if (found == 0)
		return REASON_AUTH_FAILED;
	*seat = found;
	return REASON_NONE;
}

/* The credentials of "Basic ..." decoded into out; 0 when they are not well-formed. */
static size_t decode_basic(struct slice value, char out[AUTH_PAIR + 3])
{
	struct slice rest = value;
	if (!slice_ieq(slice_cut(&rest, ' '), SLICE("basic")))
		return 0;
	rest = slice_trim(rest);
	if (rest.len == 0 || rest.len % 4 != 0 || rest.len / 4 * 3 > AUTH_PAIR + 3)
		return 0;
	int n = EVP_DecodeBlock((unsigned char *)out, (const unsigned char *)rest.ptr, (int)rest.len);
	if (n < 0)
		return 0;
	size_t padding = (size_t)(rest.ptr[rest.len - 1] == '=') + (size_t)(rest.ptr[rest.len - 2] == '=');
	return (size_t)n - padding;
}

enum reason auth_check(const struct seat *seats, size_t n, const struct message *m, size_t *seat)
{
	const struct field *f = message_field(m, SLICE("proxy-authorization"));
	unsigned char proof[SEAT_PROOF];
	char given[AUTH_PAIR + 3];
	if (!f)
		return REASON_AUTH_REQUIRED;
	size_t len = decode_basic(f->value, given);
	bool ok = prove(slice_of(given, len), proof);
	OPENSSL_cleanse(given, sizeof(given));
	return ok ? find_seat(seats, n, proof, seat) : REASON_AUTH_FAILED;
}

enum reason auth_check_pair(const struct seat *seats, size_t n, struct slice id, struct slice token, size_t *seat)
{
	unsigned char proof[SEAT_PROOF];
	bool is_whole = sandbox_id_is_good(id) && /* so that the ':' is where it seems to be */
			prove_pair(id, token, proof);
	return is_whole ? find_seat(seats, n, proof, seat) : REASON_AUTH_FAILED;
}
