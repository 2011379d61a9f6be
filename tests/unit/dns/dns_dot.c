/* Lookups over TLS against small servers on the same loop, which answer as the first label of the name says. On each of their
 * ports a UDP socket listens too, which must never hear anything. */
#include "dns/upstream.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/limits.h"
#include "core/net/stream.h"
#include "core/net/vet.h"
#include "dns/octets.h"

#define PACKET 2048
#define CONNS 16

/* ---- certificates ---- */

struct identity {
	EVP_PKEY *key;
	X509 *cert;
	struct slice pem;
};

static struct identity good, stranger; /* both for dns.test; the first is trusted */

static void identity_make(struct identity *id)
{
	X509V3_CTX ctx;
	id->key = EVP_EC_gen("P-256");
	id->cert = X509_new();
	X509_set_version(id->cert, X509_VERSION_3);
	ASN1_INTEGER_set(X509_get_serialNumber(id->cert), 7);
	X509_gmtime_adj(X509_getm_notBefore(id->cert), -100);
	X509_gmtime_adj(X509_getm_notAfter(id->cert), 10000);
	X509_set_pubkey(id->cert, id->key);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(id->cert), "CN", MBSTRING_ASC, (const unsigned char *)"dns",
				   -1, -1, 0);
	X509_set_issuer_name(id->cert, X509_get_subject_name(id->cert));
	X509V3_set_ctx(&ctx, id->cert, id->cert, NULL, NULL, 0);
	X509_EXTENSION *san = X509V3_EXT_conf_nid(NULL, &ctx, NID_subject_alt_name, "DNS:dns.test,IP:127.0.0.1");
	X509_EXTENSION *ca = X509V3_EXT_conf_nid(NULL, &ctx, NID_basic_constraints, "critical,CA:FALSE");
	assert_true(X509_add_ext(id->cert, san, -1) == 1 && X509_add_ext(id->cert, ca, -1) == 1);
	X509_EXTENSION_free(san);
	X509_EXTENSION_free(ca);
	assert_true(X509_sign(id->cert, id->key, EVP_sha256()) > 0);
	BIO *bio = BIO_new(BIO_s_mem());
	char *pem;
	assert_int_equal(PEM_write_bio_X509(bio, id->cert), 1);
	size_t len = (size_t)BIO_get_mem_data(bio, &pem);
	id->pem = slice_of(memcpy(malloc(len), pem, len), len);
	BIO_free(bio);
}

static void identity_free(struct identity *id)
{
	EVP_PKEY_free(id->key);
	X509_free(id->cert);
	free((void *)id->pem.ptr);
}

/* ---- the server ---- */

struct server {
	struct loop *loop;
	struct addr_port at;
	int tcp, udp;
	struct event *on_accept;
	SSL_CTX *ctx;
	struct stream *conns[CONNS];
	int accepted, asked;
	char held[PACKET]; /* a message that waits for the next one */
	size_t held_len;
	bool is_deaf; /* reads and says nothing */
};

static void say(struct stream *s, struct slice message)
{
	char size[2];
	octets_put16(size, (uint16_t)message.len);
	stream_write(s, slice_of(size, 2));
	stream_write(s, message);
}

static size_t question_end(const char *p)
{
	size_t at = DNS_HEADER;
	while (p[at] != 0)
		at += 1 + (size_t)p[at];
	return at + 5;
}

static bool asks_for(struct slice m, const char *label)
{
	return slice_ieq(slice_of(m.ptr + DNS_HEADER + 1, (size_t)m.ptr[DNS_HEADER]), slice_str(label));
}

/* Turns the query into an answer; how long it is. */
static size_t answer(char *p, struct slice query)
{
	static const char record[] = "\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\1\1\1\1";
	size_t len = question_end(query.ptr);
	memcpy(p, query.ptr, len);
	octets_put16(p + 2, 0x8180);
	memset(p + 6, 0, 6);
	octets_put16(p + 6, 1);
	memcpy(p + len, record, sizeof(record) - 1);
	return len + sizeof(record) - 1;
}

/* RFC 8467: 128 bytes, whatever is asked. */
static void check_padding(struct slice query)
{
	const char *opt = query.ptr + question_end(query.ptr);
	assert_int_equal(query.len % 128, 0);
	assert_int_equal(octets_get16(opt + 1), DNS_TYPE_OPT);
	assert_int_equal(octets_get16(opt + 9), query.len - question_end(query.ptr) - 11);
	assert_int_equal(octets_get16(opt + 11), 12);
	assert_int_equal(octets_get16(opt + 13), octets_get16(opt + 9) - 4);
}

static void server_drop(struct server *s, struct stream *conn)
{
	for (size_t i = 0; i < CONNS; i++)
		if (s->conns[i] == conn)
			stream_close(&s->conns[i]);
}

static void serve(struct server *s, struct stream *conn, struct slice query)
{
	char p[PACKET];
	s->asked++;
	check_padding(query);
	size_t len = answer(p, query);
	if (asks_for(query, "silent"))
		return;
	if (asks_for(query, "hang-up") || (asks_for(query, "hang-up-once") && s->asked == 1)) {
		server_drop(s, conn);
		return;
	}
	if (asks_for(query, "garbage")) {
		say(conn, SLICE("abc"));
		return;
	}
	if (asks_for(query, "wrong-question"))
		p[DNS_HEADER + 1] ^= 0x20;
	if (asks_for(query, "wrong-id")) {
		p[1] ^= 1;
		say(conn, slice_of(p, len));
		p[1] ^= 1;
	}
	if (asks_for(query, "held")) { /* this one after the next one */
		memcpy(s->held, p, len);
		s->held_len = len;
		return;
	}
	say(conn, slice_of(p, len));
	if (s->held_len > 0)
		say(conn, slice_of(s->held, s->held_len));
	s->held_len = 0;
}

static bool is_open(const struct server *s, const struct stream *conn)
{
	for (size_t i = 0; i < CONNS; i++)
		if (s->conns[i] == conn)
			return true;
	return false;
}

static void on_data(struct stream *conn, void *arg)
{
	struct server *s = arg;
	char query[PACKET];
	while (!s->is_deaf && is_open(s, conn)) {
		struct slice in = stream_input(conn);
		if (in.len < 2 || in.len < 2u + octets_get16(in.ptr))
			return;
		size_t len = octets_get16(in.ptr);
		assert_true(len <= sizeof(query));
		memcpy(query, in.ptr + 2, len);
		stream_consume(conn, 2 + len);
		serve(s, conn, slice_of(query, len));
	}
}

static void on_end(struct stream *conn, enum cage_status why, void *arg)
{
	(void)why;
	server_drop(arg, conn);
}

static void on_nothing(struct stream *conn, void *arg)
{
	(void)conn, (void)arg;
}

static const struct stream_cb callbacks = {
	.on_ready = on_nothing, .on_data = on_data, .on_drained = on_nothing, .on_end = on_end};

static void on_accept(evutil_socket_t fd, short what, void *arg)
{
	(void)what;
	struct server *s = arg;
	int conn = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	assert_true(conn >= 0);
	s->accepted++;
	for (size_t i = 0; i < CONNS; i++) {
		if (s->conns[i])
			continue;
		s->conns[i] = stream_new(s->loop, conn, &callbacks, s);
		stream_start_tls(s->conns[i], SSL_new(s->ctx), true);
		return;
	}
	fail();
}

static int open_socket(int type, struct addr_port *at)
{
	struct sockaddr_storage ss;
	socklen_t len = addr_to_sockaddr(&at->addr, at->port, &ss);
	int fd = socket(ss.ss_family, type | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	if (bind(fd, (struct sockaddr *)&ss, len) != 0) {
		close(fd);
		return -1;
	}
	len = sizeof(ss);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&ss, &len), 0);
	assert_true(addr_from_sockaddr((struct sockaddr *)&ss, &at->addr, &at->port));
	return fd;
}

static void server_open(struct server *s, struct loop *l, const struct identity *id)
{
	*s = (struct server){.loop = l, .tcp = -1, .udp = -1};
	for (int i = 0; i < 20 && s->udp < 0; i++) {
		if (s->tcp >= 0)
			close(s->tcp);
		s->at = (struct addr_port){.addr = {ADDR_V4, {127, 0, 0, 1}}};
		s->tcp = open_socket(SOCK_STREAM, &s->at);
		s->udp = open_socket(SOCK_DGRAM, &s->at);
	}
	assert_true(s->udp >= 0);
	assert_int_equal(listen(s->tcp, 8), 0);
	s->ctx = SSL_CTX_new(TLS_server_method());
	assert_int_equal(SSL_CTX_use_cert_and_key(s->ctx, id->cert, id->key, NULL, 1), 1);
	s->on_accept = event_new(loop_base(l), s->tcp, EV_READ | EV_PERSIST, on_accept, s);
	event_add(s->on_accept, NULL);
}

static void server_stop(struct server *s)
{
	for (size_t i = 0; i < CONNS; i++)
		if (s->conns[i])
			stream_close(&s->conns[i]);
	if (s->on_accept)
		event_free(s->on_accept);
	s->on_accept = NULL;
	if (s->tcp >= 0)
		close(s->tcp);
	s->tcp = -1;
}

static void server_close(struct server *s)
{
	char byte;
	assert_int_equal(recv(s->udp, &byte, 1, MSG_DONTWAIT), -1); /* nothing in plain text */
	server_stop(s);
	close(s->udp);
	SSL_CTX_free(s->ctx);
}

/* ---- helpers of the tests ---- */

struct world {
	struct loop *loop;
	struct server servers[2];
	struct server strange; /* with a certificate that nobody trusts */
	struct dns_upstream *upstream;
	int waiting;
};

struct outcome {
	struct world *world;
	struct dns_lookup *lookup;
	int calls, place; /* place: how many were told before */
	enum cage_status st;
	size_t len;
};

static struct dns_server_spec spec_of(const struct server *s)
{
	return (struct dns_server_spec){.addr = s->at.addr, .port = s->at.port, .tls_name = SLICE("dns.test")};
}

static void use(struct world *w, const struct dns_server_spec *specs, size_t n)
{
	struct trust trust = {.pems = &good.pem, .n_pems = 1};
	dns_upstream_free(&w->upstream);
	w->upstream = dns_upstream_new(w->loop, specs, n, &trust);
	assert_non_null(w->upstream);
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	w->loop = loop_new();
	for (int i = 0; i < 2; i++)
		server_open(&w->servers[i], w->loop, &good);
	server_open(&w->strange, w->loop, &stranger);
	struct dns_server_spec spec = spec_of(&w->servers[0]);
	use(w, &spec, 1);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;
	dns_upstream_free(&w->upstream);
	for (int i = 0; i < 2; i++)
		server_close(&w->servers[i]);
	server_close(&w->strange);
	while (stream_count(w->loop) > 0)
		loop_once(w->loop);
	loop_free(&w->loop);
	free(w);
	return 0;
}

static int told;

static void on_lookup(void *arg, enum cage_status st, struct slice response)
{
	struct outcome *o = arg;
	o->calls++;
	o->st = st;
	o->len = response.len;
	o->lookup = NULL;
	o->place = told++;
	if (--o->world->waiting == 0)
		loop_stop(o->world->loop);
}

static void start(struct world *w, struct outcome *o, const char *text)
{
	struct dns_name name;
	assert_true(dns_name_set(&name, slice_str(text)));
	*o = (struct outcome){.world = w};
	w->waiting++;
	o->lookup = dns_upstream_query(w->upstream, &name, DNS_TYPE_A, on_lookup, o);
	assert_non_null(o->lookup);
	assert_int_equal(o->calls, 0);
}

static void assert_outcome(struct world *w, const char *text, enum cage_status st)
{
	struct outcome o;
	start(w, &o, text);
	loop_run(w->loop);
	assert_int_equal(o.calls, 1);
	assert_int_equal(o.st, st);
	assert_true(st == CAGE_OK ? o.len > 0 : o.len == 0);
	assert_int_equal(dns_upstream_count(w->upstream), 0);
}

/* ---- the tests ---- */

static void one_kept_connection(void **state)
{
	enum { AT_ONCE = 200 };
	static struct outcome o[AT_ONCE];
	struct world *w = *state;
	assert_outcome(w, "good.test", CAGE_OK);
	assert_outcome(w,
		       "a-name-that-is-rather-long-and-has-many-letters.and-a-second-label-that-is-also-long-enough."
		       "and-a-third.test",
		       CAGE_OK);
	for (int i = 0; i < AT_ONCE; i++)
		start(w, &o[i], "good.test");
	loop_run(w->loop);
	for (int i = 0; i < AT_ONCE; i++)
		assert_int_equal(o[i].st, CAGE_OK);
	assert_int_equal(w->servers[0].accepted, 1);
	assert_int_equal(w->servers[0].asked, AT_ONCE + 2);
}

static void answers_in_any_order(void **state)
{
	struct outcome first, second;
	struct world *w = *state;
	assert_outcome(w, "good.test", CAGE_OK);
	start(w, &first, "held.test");
	start(w, &second, "good.test");
	loop_run(w->loop);
	assert_int_equal(first.st, CAGE_OK);
	assert_int_equal(second.st, CAGE_OK);
	assert_true(second.place < first.place);
}

static void wrong_answers(void **state)
{
	struct world *w = *state;
	assert_outcome(w, "wrong-id.test", CAGE_OK);
	assert_int_equal(w->servers[0].asked, 1);
	assert_outcome(w, "wrong-question.test", CAGE_EPROTO);
	assert_outcome(w, "garbage.test", CAGE_EPROTO);
	assert_outcome(w, "good.test", CAGE_OK);
}

static void certificate_must_be_good(void **state)
{
	struct world *w = *state;
	struct dns_server_spec spec = spec_of(&w->strange);
	use(w, &spec, 1);
	assert_outcome(w, "good.test", CAGE_EVERIFY);
	assert_int_equal(w->strange.asked, 0);
	spec = spec_of(&w->servers[0]);
	spec.tls_name = SLICE("other.test");
	use(w, &spec, 1);
	assert_outcome(w, "good.test", CAGE_EVERIFY);
	assert_int_equal(w->servers[0].asked, 0);
	spec.tls_name = SLICE("127.0.0.1"); /* an address will do, when the certificate has it */
	use(w, &spec, 1);
	assert_outcome(w, "good.test", CAGE_OK);
	spec.tls_name = SLICE("127.0.0.2");
	use(w, &spec, 1);
	assert_outcome(w, "good.test", CAGE_EVERIFY);
}

static void next_server_when_one_fails(void **state)
{
	struct world *w = *state;
	struct dns_server_spec specs[] = {spec_of(&w->strange), spec_of(&w->servers[0]), spec_of(&w->servers[1])};
	use(w, specs, 3);
	assert_outcome(w, "good.test", CAGE_OK);
	assert_int_equal(w->strange.asked, 0);
	assert_int_equal(w->servers[0].asked, 1);
	server_stop(&w->servers[0]); /* its connection breaks, and there is no other */
	assert_outcome(w, "good.test", CAGE_OK);
	assert_int_equal(w->servers[1].asked, 1);
	server_stop(&w->servers[1]);
	server_stop(&w->strange);
	assert_outcome(w, "good.test", CAGE_ESYS);
}

/* One that would be asked in plain text stands before it, and would hear that. */
static void never_in_plain_text(void **state)
{
	struct world *w = *state;
	struct dns_server_spec specs[] = {spec_of(&w->servers[1]), spec_of(&w->servers[0])};
	specs[0].tls_name = SLICE_NONE;
	use(w, specs, 2);
	assert_outcome(w, "good.test", CAGE_OK);
	server_stop(&w->servers[0]);
	assert_outcome(w, "good.test", CAGE_ESYS);
	assert_int_equal(w->servers[1].accepted, 0);
}

static void connections_that_servers_close(void **state)
{
	struct world *w = *state;
	struct server *s = &w->servers[0];
	assert_outcome(w, "good.test", CAGE_OK);
	for (size_t i = 0; i < CONNS; i++)
		if (s->conns[i])
			stream_close(&s->conns[i]);
	assert_outcome(w, "good.test", CAGE_OK);
	assert_int_equal(s->accepted, 2);
	s->asked = 0;
	assert_outcome(w, "hang-up-once.test", CAGE_OK);
	assert_int_equal(s->accepted, 3);
	assert_outcome(w, "hang-up.test", CAGE_ESYS);
	assert_outcome(w, "good.test", CAGE_OK);
}

static void silence_has_an_end(void **state)
{
	struct world *w = *state;
	struct dns_server_spec specs[] = {spec_of(&w->servers[0]), spec_of(&w->servers[1])};
	use(w, specs, 2);
	w->servers[0].is_deaf = true;
	assert_outcome(w, "good.test", CAGE_OK);
	assert_int_equal(w->servers[1].asked, 1);
	use(w, specs, 1);
	w->servers[0].is_deaf = false;
	assert_outcome(w, "silent.test", CAGE_ETIMEOUT);
}

/* Each of many gets its turn within the time of a lookup, and none of it is left behind. */
static void many_silent_servers(void **state)
{
	struct world *w = *state;
	struct dns_server_spec specs[LIMIT_DNS_SERVERS];
	for (size_t i = 0; i < LIMIT_DNS_SERVERS; i++)
		specs[i] = spec_of(&w->servers[0]);
	w->servers[0].is_deaf = true;
	use(w, specs, LIMIT_DNS_SERVERS);
	assert_outcome(w, "good.test", CAGE_ETIMEOUT);
	specs[LIMIT_DNS_SERVERS - 1] = spec_of(&w->servers[1]);
	use(w, specs, LIMIT_DNS_SERVERS);
	assert_outcome(w, "good.test", CAGE_OK);
}

/* A server that talks keeps its connection, though it owes an answer. */
static void one_slow_answer_among_others(void **state)
{
	struct outcome slow, o;
	struct world *w = *state;
	struct dns_server_spec specs[] = {spec_of(&w->servers[0]), spec_of(&w->servers[1])};
	use(w, specs, 2);
	assert_outcome(w, "good.test", CAGE_OK);
	start(w, &slow, "silent.test");
	while (slow.calls == 0) {
		start(w, &o, "good.test");
		while (o.calls == 0)
			loop_once(w->loop);
		assert_int_equal(o.st, CAGE_OK);
	}
	assert_int_equal(slow.st, CAGE_ETIMEOUT);
	assert_int_equal(w->servers[0].accepted, 1);
}

static void cancelled_and_freed(void **state)
{
	static struct outcome o[3];
	struct world *w = *state;
	for (int i = 0; i < 3; i++)
		start(w, &o[i], "silent.test");
	dns_lookup_cancel(&o[1].lookup);
	dns_upstream_free(&w->upstream);
	assert_int_equal(o[0].calls, 1);
	assert_int_equal(o[0].st, CAGE_ESYS);
	assert_int_equal(o[1].calls, 0);
	assert_int_equal(o[2].calls, 1);
}

static int make_identities(void **state)
{
	(void)state;
	identity_make(&good);
	identity_make(&stranger);
	return 0;
}

static int free_identities(void **state)
{
	(void)state;
	identity_free(&good);
	identity_free(&stranger);
	return 0;
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(one_kept_connection),
		TEST(answers_in_any_order),
		TEST(wrong_answers),
		TEST(certificate_must_be_good),
		TEST(next_server_when_one_fails),
		TEST(never_in_plain_text),
		TEST(connections_that_servers_close),
		TEST(silence_has_an_end),
		TEST(many_silent_servers),
		TEST(one_slow_answer_among_others),
		TEST(cancelled_and_freed),
	};
	return cmocka_run_group_tests(tests, make_identities, free_identities);
}
