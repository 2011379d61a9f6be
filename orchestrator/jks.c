/* The JKS format, which every Java reads: a header, an entry per certificate, and a digest over both and a password. All
 * numbers are big-endian; keytool would take seconds for the same. */
#include "orchestrator/jks.h"

#include <openssl/evp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/limits.h"
#include "core/base/slice.h"

#define JKS_MAGIC 0xfeedfeedu
#define JKS_VERSION 2
#define JKS_CERTIFICATE 2 /* the kind of an entry */
#define PATH_ROOM 4200

/* What is written is digested. */
struct jks {
	FILE *f;
	EVP_MD_CTX *digest;
	bool failed;
};

static void put(struct jks *j, const void *bytes, size_t n)
{
	if (fwrite(bytes, 1, n, j->f) != n || EVP_DigestUpdate(j->digest, bytes, n) != 1)
		j->failed = true;
}

static void put_number(struct jks *j, uint64_t number, size_t bytes)
{
	unsigned char out[8];
	for (size_t i = 0; i < bytes; i++)
		out[i] = (unsigned char)(number >> 8 * (bytes - 1 - i));
	put(j, out, bytes);
}

static void put_text(struct jks *j, const char *text)
{
	put_number(j, strlen(text), 2);
	put(j, text, strlen(text));
}

static void put_entry(struct jks *j, unsigned number, const unsigned char *der, size_t len)
{
	char alias[16];
	snprintf(alias, sizeof(alias), "cage%u", number);
	put_number(j, JKS_CERTIFICATE, 4);
	put_text(j, alias);
	put_number(j, 0, 8); /* when it was made */
	put_text(j, "X.509");
	put_number(j, len, 4);
	put(j, der, len);
}

/* ---- PEM ---- */

static const struct slice begin_mark = WORD("-----BEGIN CERTIFICATE-----");
static const struct slice end_mark = WORD("-----END CERTIFICATE-----");

/* What is behind the next mark, and *before what is before it; ptr NULL: there is none. */
static struct slice find_mark(struct slice text, struct slice mark, struct slice *before)
{
	const char *at = text.len > 0 ? memmem(text.ptr, text.len, mark.ptr, mark.len) : NULL;
	if (!at)
		return SLICE_NONE;
	*before = slice_head(text, (size_t)(at - text.ptr));
	return slice_from(text, (size_t)(at - text.ptr) + mark.len);
}

/* The base64 of the next certificate. */
static bool next_certificate(struct slice *rest, struct slice *base64)
{
	struct slice before;
	*rest = find_mark(*rest, begin_mark, &before);
	if (!rest->ptr)
		return false;
	*rest = find_mark(*rest, end_mark, base64);
	return rest->ptr != NULL;
}

static bool decode(struct slice base64, unsigned char der[LIMIT_CERTIFICATE], size_t *len)
{
	EVP_ENCODE_CTX *ctx = EVP_ENCODE_CTX_new();
	int n = 0, last = 0;
	bool ok = ctx && base64.len <= LIMIT_CERTIFICATE;
	if (ok) {
		EVP_DecodeInit(ctx);
		ok = EVP_DecodeUpdate(ctx, der, &n, (const unsigned char *)base64.ptr, (int)base64.len) >= 0 &&
		     EVP_DecodeFinal(ctx, der + n, &last) == 1;
	}
	EVP_ENCODE_CTX_free(ctx);
	*len = (size_t)n + (size_t)last;
	return ok;
}

/* ---- the file ---- */

static unsigned count_certificates(struct slice rest)
{
	struct slice base64;
	unsigned n = 0;
	while (next_certificate(&rest, &base64))
		n++;
	return n;
}

static void write_entries(struct jks *j, struct slice pem)
{
	unsigned char der[LIMIT_CERTIFICATE];
	struct slice rest = pem, base64;
	size_t len;
	put_number(j, JKS_MAGIC, 4);
	put_number(j, JKS_VERSION, 4);
	put_number(j, count_certificates(pem), 4);
	for (unsigned i = 0; next_certificate(&rest, &base64); i++) {
		if (decode(base64, der, &len))
			put_entry(j, i, der, len);
		else
			j->failed = true;
	}
}

/* The digest begins with the password in UTF-16 and these words. */
static bool begin_digest(struct jks *j)
{
	static const char words[] = "Mighty Aphrodite";
	bool ok = EVP_DigestInit_ex(j->digest, EVP_sha1(), NULL) == 1;
	for (const char *c = JKS_PASSWORD; *c && ok; c++) {
		const char wide[2] = {0, *c};
		ok = EVP_DigestUpdate(j->digest, wide, 2) == 1;
	}
	return ok && EVP_DigestUpdate(j->digest, words, sizeof(words) - 1) == 1;
}

static bool end_digest(struct jks *j)
{
	unsigned char sum[EVP_MAX_MD_SIZE];
	unsigned n = 0;
	return EVP_DigestFinal_ex(j->digest, sum, &n) == 1 && fwrite(sum, 1, n, j->f) == n;
}

bool jks_write(const char *dir, const char *name, const char *pem, size_t len)
{
	char path[PATH_ROOM];
	struct jks j = {.digest = EVP_MD_CTX_new()};
	if (snprintf(path, sizeof(path), "%s/%s", dir, name) < (int)sizeof(path))
		j.f = fopen(path, "we");
	bool ok = j.f && j.digest && begin_digest(&j);
	if (ok) {
		write_entries(&j, slice_of(pem, len));
		ok = end_digest(&j) && !j.failed && fchmod(fileno(j.f), 0644) == 0;
	}
	if (j.f)
		ok = fclose(j.f) == 0 && ok;
	EVP_MD_CTX_free(j.digest);
	return ok;
}
