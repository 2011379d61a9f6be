/*	{"schema":"cage.log/1","ts":"...","seq":N, BODY ,"prev":"...","hash":"..."}
 *
 * The hash covers the line as it would be without its last member. */
#include "core/audit/chain.h"

#include <openssl/evp.h>

#define HEX 64

static const char head[] = "{\"schema\":\"cage.log/1\",\"ts\":\"";
static const char prev_key[] = ",\"prev\":\"";
static const char hash_key[] = ",\"hash\":\"";

#define HEAD_LEN (sizeof(head) - 1)
#define KEY_LEN (sizeof(hash_key) - 1) /* prev_key has the same */

_Static_assert(sizeof(prev_key) == sizeof(hash_key), "the end of a line has a fixed length");

bool audit_hasher_init(struct audit_hasher *h)
{
	h->ctx = EVP_MD_CTX_new();
	h->md = EVP_MD_fetch(NULL, "SHA256", NULL);
	return h->ctx && h->md && EVP_DigestInit_ex(h->ctx, h->md, NULL);
}

void audit_hasher_free(struct audit_hasher *h)
{
	EVP_MD_CTX_free(h->ctx);
	EVP_MD_free(h->md);
	*h = (struct audit_hasher){0};
}

/* The hash of a and b together, as text. */
static bool hash_hex(struct audit_hasher *h, struct slice a, struct slice b, char out[HEX])
{
	unsigned char sum[EVP_MAX_MD_SIZE];
	unsigned len = 0;
	if (!EVP_DigestInit_ex(h->ctx, NULL, NULL) || /* the same digest again: nothing is looked up or freed */
	    !EVP_DigestUpdate(h->ctx, a.ptr, a.len) || !EVP_DigestUpdate(h->ctx, b.ptr, b.len) ||
	    !EVP_DigestFinal_ex(h->ctx, sum, &len) || len != HEX / 2)
		return false;
	struct text t = text_in(out, HEX);
	text_put_hex(&t, sum, len);
	return true;
}

struct audit_chain audit_chain_start(void)
{
	struct audit_chain c = {.next_seq = 1};
	memset(c.prev, '0', HEX);
	return c;
}

bool audit_chain_eq(const struct audit_chain *a, const struct audit_chain *b)
{
	return a->next_seq == b->next_seq && memcmp(a->prev, b->prev, HEX) == 0;
}

bool audit_chain_add(struct audit_chain *c, struct audit_hasher *h, struct text *out, uint64_t ts_us,
		     struct slice *body)
{
	char ts[CLOCK_TEXT];
	size_t from = out->len;
	clock_format(ts_us, ts);
	text_put(out, slice_of(head, HEAD_LEN));
	text_put(out, slice_of(ts, sizeof(ts)));
	text_put(out, SLICE("\",\"seq\":"));
	text_put_u64(out, c->next_seq);
	text_put_char(out, ',');
	text_put(out, *body);
	*body = slice_of(out->ptr + out->len - body->len, body->len);
	text_put(out, slice_of(prev_key, KEY_LEN));
	text_put(out, slice_of(c->prev, HEX));
	text_put_char(out, '"');
	if (!text_ok(out) || !hash_hex(h, slice_from(text_slice(out), from), SLICE("}"), c->prev))
		return false;
	c->next_seq++;
	text_put(out, slice_of(hash_key, KEY_LEN));
	text_put(out, slice_of(c->prev, HEX));
	text_put(out, SLICE("\"}\n"));
	return text_ok(out);
}

static bool is_hex(struct slice s)
{
	for (size_t i = 0; i < s.len; i++)
		if (ascii_hex((unsigned char)s.ptr[i]) < 0)
			return false;
	return true;
}

/* The hash at the end of the line; *covered gets what is before its key. */
static bool read_end(struct slice line, struct slice *covered, struct slice *hash)
{
	size_t end = KEY_LEN + HEX + 2;
	if (line.len < end || !slice_ends(line, SLICE("\"}")))
		return false;
	*covered = slice_head(line, line.len - end);
	*hash = slice_head(slice_from(line, covered->len + KEY_LEN), HEX);
	return slice_starts(slice_from(line, covered->len), slice_of(hash_key, KEY_LEN)) && is_hex(*hash);
}

static bool read_seq(struct slice line, uint64_t *seq)
{
	struct slice rest = slice_from(line, HEAD_LEN + CLOCK_TEXT);
	struct slice key = SLICE("\",\"seq\":");
	if (!slice_starts(line, slice_of(head, HEAD_LEN)) || !slice_starts(rest, key))
		return false;
	rest = slice_from(rest, key.len);
	return slice_to_u64(slice_head(rest, slice_find(rest, ',')), UINT64_MAX - 1, seq);
}

bool audit_chain_read(struct audit_hasher *h, struct slice line, struct audit_chain *after)
{
	struct slice covered, hash;
	char made[HEX];
	uint64_t seq;
	if (!read_seq(line, &seq) || !read_end(line, &covered, &hash))
		return false;
	if (!hash_hex(h, covered, SLICE("}"), made) || !slice_eq(slice_of(made, HEX), hash))
		return false;
	after->next_seq = seq + 1;
	memcpy(after->prev, made, HEX);
	return true;
}

bool audit_chain_is_torn_line(struct slice part)
{
	return slice_eq(slice_head(part, HEAD_LEN), slice_head(slice_of(head, HEAD_LEN), part.len));
}
