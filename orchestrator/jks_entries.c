/* The JKS format, which every Java reads: a header, an entry per certificate, and a digest over both and a password. All
 * numbers are big-endian; keytool would take seconds for the same. */
#include "orchestrator/jks_entries.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "core/base/base64.h"
#include "core/base/limits.h"

#define JKS_MAGIC 0xfeedfeedu
#define JKS_VERSION 2
#define JKS_CERTIFICATE 2 /* the kind of an entry */

struct store {
	jks_put *put;
	void *arg;
};

static void put_number(const struct store *s, uint64_t number, size_t bytes)
{
	unsigned char out[8];
	for (size_t i = 0; i < bytes; i++)
		out[i] = (unsigned char)(number >> 8 * (bytes - 1 - i));
	s->put(s->arg, out, bytes);
}

static void put_text(const struct store *s, const char *text)
{
	put_number(s, strlen(text), 2);
	s->put(s->arg, text, strlen(text));
}

static void put_entry(const struct store *s, unsigned number, const unsigned char *der, size_t len)
{
	char alias[16];
	snprintf(alias, sizeof(alias), "cage%u", number);
	put_number(s, JKS_CERTIFICATE, 4);
	put_text(s, alias);
	put_number(s, 0, 8); /* when it was made */
	put_text(s, "X.509");
	put_number(s, len, 4);
	s->put(s->arg, der, len);
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

/* Lines are of no meaning. */
static bool decode(struct slice base64, unsigned char der[LIMIT_CERTIFICATE], size_t *len)
{
	char plain[LIMIT_CERTIFICATE];
	size_t n = 0;
	for (size_t i = 0; i < base64.len && n < sizeof(plain); i++)
		if (!strchr(" \t\r\n", base64.ptr[i]))
			plain[n++] = base64.ptr[i];
	return n < sizeof(plain) && base64_read(slice_of(plain, n), der, LIMIT_CERTIFICATE, len);
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

bool jks_entries(struct slice pem, jks_put *put, void *arg)
{
	static unsigned char der[LIMIT_CERTIFICATE];
	const struct store s = {put, arg};
	struct slice rest = pem, base64;
	size_t len;
	put_number(&s, JKS_MAGIC, 4);
	put_number(&s, JKS_VERSION, 4);
	put_number(&s, count_certificates(pem), 4);
	for (unsigned i = 0; next_certificate(&rest, &base64); i++) {
		if (!decode(base64, der, &len))
			return false;
		put_entry(&s, i, der, len);
	}
	return true;
}
