/* The request as AWS sees it, and its hash. What is hashed is what is sent: the canonical path, our Host, and of the client's
 * list of fields those that go on. */
#include <openssl/evp.h>

#include "core/base/escape.h"
#include "core/base/text.h"
#include "proxy/sign_private.h"

#define LENGTH_TEXT 20 /* digits of the longest content length */

bool sign_is_s3(const struct sign_claim *c)
{
	return slice_eq(c->service, SLICE("s3")) || slice_eq(c->service, SLICE("s3-outposts")) ||
	       slice_eq(c->service, SLICE("s3-object-lambda"));
}

/* ---- hashing ---- */

struct digest {
	EVP_MD_CTX *md;
	bool ok;
};

static struct digest digest_new(void)
{
	struct digest d = {.md = EVP_MD_CTX_new()};
	d.ok = d.md && EVP_DigestInit_ex(d.md, EVP_sha256(), NULL) == 1;
	return d;
}

static void digest_put(struct digest *d, struct slice s)
{
	d->ok = d->ok && (s.len == 0 || EVP_DigestUpdate(d->md, s.ptr, s.len) == 1);
}

static void digest_line(struct digest *d, struct slice s)
{
	digest_put(d, s);
	digest_put(d, SLICE("\n"));
}

static bool digest_end(struct digest *d, unsigned char out[SIGN_SHA256])
{
	bool ok = d->ok && EVP_DigestFinal_ex(d->md, out, NULL) == 1;
	EVP_MD_CTX_free(d->md);
	return ok;
}

/* ---- fields ---- */

/* A field that goes on as it is. Those that mean something to a hop are written by us, or dropped: nobody signs them. */
static bool goes_on(const struct field *f, struct slice name)
{
	return f->id == FIELD_OTHER && slice_ieq(f->name, name) && !slice_ieq(slice_head(f->name, 7), SLICE("x-cage-"));
}

static bool is_sent(const struct signing *s, struct slice name)
{
	if (slice_eq(name, SLICE("host")))
		return true;
	if (slice_eq(name, SLICE("content-length")))
		return s->length.len > 0;
	for (size_t i = 0; i < s->head->n_fields; i++)
		if (goes_on(&s->head->fields[i], name))
			return true;
	return false;
}

/* Leaves out of the client's list what is not sent. */
static bool list_names(struct signing *s)
{
	struct sign_claim *c = &s->claim;
	size_t n = 0, room = 0;
	for (size_t i = 0; i < c->n_names; i++) {
		if (!is_sent(s, c->names[i]))
			continue;
		room += c->names[i].len + 1;
		c->names[n++] = c->names[i];
	}
	c->n_names = n;
	char *out = arena_alloc(s->arena, room);
	if (!out)
		return false;
	struct text t = text_in(out, room);
	for (size_t i = 0; i < n; i++) {
		if (i > 0)
			text_put_char(&t, ';');
		text_put(&t, c->names[i]);
	}
	s->names = text_slice(&t);
	return true;
}

static bool know_own_fields(struct signing *s)
{
	const struct message *m = s->head;
	char *length = arena_alloc(s->arena, LENGTH_TEXT);
	s->host = host_header(s->target, s->arena);
	if (!length || !s->host.ptr)
		return false;
	struct text t = text_in(length, LENGTH_TEXT);
	if (m->framing == BODY_LENGTH || (m->framing == BODY_NONE && m->has_content_length))
		text_put_u64(&t, m->content_length);
	s->length = text_slice(&t);
	return true;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* Without blanks at the ends, and with one where there are several. */
static void digest_value(struct digest *d, struct slice value)
{
	struct slice rest = slice_trim(value);
	while (rest.len > 0) {
		size_t word = 0, blanks;
		while (word < rest.len && !is_blank(rest.ptr[word]))
			word++;
		for (blanks = 0; word + blanks < rest.len && is_blank(rest.ptr[word + blanks]); blanks++)
			;
		digest_put(d, slice_head(rest, word));
		digest_put(d, blanks > 0 ? SLICE(" ") : SLICE_NONE);
		rest = slice_from(rest, word + blanks);
	}
}

/* All fields of a name are one, in the order in which they are sent. */
static void digest_fields(const struct signing *s, struct digest *d, struct slice name)
{
	bool is_first = true;
	for (size_t i = 0; i < s->head->n_fields; i++) {
		const struct field *f = &s->head->fields[i];
		if (!goes_on(f, name))
			continue;
		digest_put(d, is_first ? SLICE_NONE : SLICE(","));
		digest_value(d, f->value);
		is_first = false;
	}
}

static void digest_names(const struct signing *s, struct digest *d)
{
	for (size_t i = 0; i < s->claim.n_names; i++) {
		struct slice name = s->claim.names[i];
		digest_put(d, name);
		digest_put(d, SLICE(":"));
		if (slice_eq(name, SLICE("host")))
			digest_put(d, s->host);
		else if (slice_eq(name, SLICE("content-length")))
			digest_put(d, s->length);
		else
			digest_fields(s, d, name);
		digest_put(d, SLICE("\n"));
	}
}

/* ---- the path ---- */

/* Encoded once for S3, where an escape stays what it is; twice for all others, where "//" is "/" too. */
static struct slice canonical_path(const struct signing *s)
{
	struct slice path = s->target->path;
	bool as_is = sign_is_s3(&s->claim);
	char *out = arena_alloc(s->arena, ESCAPE_PERCENT * path.len);
	size_t n = 0;
	for (size_t i = 0; out && i < path.len; i++) {
		unsigned char c = (unsigned char)path.ptr[i];
		if (c == '/' && !as_is && n > 0 && out[n - 1] == '/')
			continue;
		if (c == '/' || (c == '%' && as_is))
			out[n++] = (char)c;
		else
			n += escape_percent(c, out + n);
	}
	return slice_of(out, n);
}

/* ---- all of it ---- */

bool sign_prepare(struct signing *s)
{
	return know_own_fields(s) && list_names(s);
}

bool sign_hash_request(const struct signing *s, unsigned char out[SIGN_SHA256])
{
	struct slice path = canonical_path(s);
	struct slice query = sign_query_canonical(&s->query, SLICE("X-Amz-Signature"), s->arena);
	if (!path.ptr || !query.ptr)
		return false;
	struct digest d = digest_new();
	digest_line(&d, s->head->method);
	digest_line(&d, path);
	digest_line(&d, query);
	digest_names(s, &d);
	digest_line(&d, SLICE_NONE);
	digest_line(&d, s->names);
	digest_put(&d, s->body_hash);
	return digest_end(&d, out);
}
