/* The name in a ClientHello. Promises: any bytes at all can be given to a server-side handshake. When we find a name
 * in the hello and host_parse() accepts it, OpenSSL finds the same bytes or fails; when we find none, nor does
 * OpenSSL. So there is no second reading of what the leaf is made for.
 *
 * Input: one byte that says what follows: the body of a server_name extension that is put into a good hello, the body
 * of a ClientHello, or whole records. The first also goes to tls_sni_parse() as it is. */
#include <openssl/err.h>

#include "core/base/limits.h"
#include "core/base/text.h"
#include "proxy/tls.h"
#include "tests/fuzz/fuzz.h"

enum input_kind { INPUT_EXTENSION, INPUT_HELLO, INPUT_RECORDS, INPUT_KINDS };

#define RECORD_MAX 16384

/* What the hello callback saw. */
struct seen {
	bool was_called;
	enum cage_status found;
	struct slice name; /* a copy, with found CAGE_OK */
	bool is_host;
};

static void note_name(struct seen *seen, struct slice name)
{
	char room[1024] = {0};
	struct arena arena;
	struct host host;
	const char *why;
	arena_init_region(&arena, room, sizeof(room));
	seen->is_host = host_parse(name, &arena, &host, &why) == CAGE_OK;
	PROMISE(!seen->is_host || host.text.len <= LIMIT_HOST);
	fuzz_free(&seen->name);
	seen->name = fuzz_copy(name);
}

static int on_hello(SSL *ssl, int *alert, void *arg)
{
	(void)alert, (void)arg;
	struct seen *seen = SSL_get_app_data(ssl);
	struct slice name;
	seen->was_called = true;
	seen->found = tls_hello_name(ssl, &name);
	PROMISE(seen->found == CAGE_OK || seen->found == CAGE_EOF || seen->found == CAGE_EPROTO);
	if (seen->found == CAGE_OK)
		note_name(seen, name);
	return SSL_CLIENT_HELLO_SUCCESS;
}

static void readings_must_agree(SSL *ssl, const struct seen *seen)
{
	const char *theirs = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
	if (!seen->was_called || seen->found != CAGE_OK) {
		PROMISE(!theirs);
		return;
	}
	PROMISE(!theirs || !seen->is_host || slice_eq(slice_str(theirs), seen->name));
}

static SSL_CTX *server_ctx(void)
{
	static SSL_CTX *ctx;
	static const unsigned char keys[TLS_TICKET_KEYS];
	if (!ctx)
		ctx = tls_server_ctx_new(keys, on_hello, NULL);
	PROMISE(ctx);
	return ctx;
}

/* Gives the records to a server in two parts. */
static void handshake(struct slice records, size_t first)
{
	struct seen seen = {0};
	SSL *ssl = SSL_new(server_ctx());
	BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
	PROMISE(ssl && in && out);
	BIO_set_mem_eof_return(in, -1);
	SSL_set_bio(ssl, in, out);
	SSL_set_app_data(ssl, &seen);
	SSL_set_accept_state(ssl);
	for (int part = 0; part < 2; part++) {
		struct slice bytes = part == 0 ? slice_head(records, first) : slice_from(records, first);
		BIO_write(in, bytes.ptr, (int)bytes.len);
		PROMISE(SSL_do_handshake(ssl) != 1); /* nobody sends a Finished */
	}
	readings_must_agree(ssl, &seen);
	fuzz_free(&seen.name);
	SSL_free(ssl);
	ERR_clear_error();
}

static void put_u16(struct text *t, size_t v)
{
	text_put_char(t, (char)(v >> 8));
	text_put_char(t, (char)v);
}

/* Records and a handshake header around the body of a hello. */
static void put_hello(struct text *t, struct slice body)
{
	char header[4] = {1, 0, (char)(body.len >> 8), (char)body.len};
	text_put(t, SLICE("\x16\x03\x01"));
	put_u16(t, body.len + sizeof(header));
	text_put(t, slice_of(header, sizeof(header)));
	text_put(t, body);
}

/* A hello for TLS 1.2 with that server_name extension. */
static void put_hello_body(struct text *t, struct slice ext)
{
	static const char random[32];
	text_put(t, SLICE("\x03\x03"));
	text_put(t, slice_of(random, sizeof(random)));
	text_put(t, SLICE("\0"             /* no session */
			  "\0\x02\xc0\x2f" /* one cipher suite */
			  "\x01\0"));      /* no compression */
	put_u16(t, ext.len + 4);
	text_put(t, SLICE("\0\0"));
	put_u16(t, ext.len);
	text_put(t, ext);
}

/* RFC 6066: a list of its length, and in it one entry of type 0 with a name of its length. */
static void try_extension(struct slice ext)
{
	struct slice name = SLICE_NONE, rest = ext;
	enum cage_status st = tls_sni_parse(ext, &name);
	PROMISE(st == CAGE_OK || st == CAGE_EPROTO);
	if (st != CAGE_OK)
		return;
	PROMISE(fuzz_number(&rest, 2) == ext.len - 2 && fuzz_number(&rest, 1) == 0);
	PROMISE(fuzz_number(&rest, 2) == name.len && name.len > 0);
	PROMISE(name.ptr == rest.ptr && name.len == rest.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char body_room[RECORD_MAX], record_room[RECORD_MAX];
	struct slice input = slice_of(data, size);
	struct text body = text_in(body_room, sizeof(body_room)), record = text_in(record_room, sizeof(record_room));
	uint64_t choice = fuzz_number(&input, 1);
	enum input_kind kind = (enum input_kind)(choice % INPUT_KINDS);
	if (kind == INPUT_EXTENSION) {
		try_extension(input);
		put_hello_body(&body, input);
	} else {
		text_put(&body, input);
	}
	if (kind == INPUT_RECORDS)
		text_put(&record, input);
	else
		put_hello(&record, text_slice(&body));
	if (text_ok(&body) && text_ok(&record))
		handshake(text_slice(&record), choice);
	return 0;
}
