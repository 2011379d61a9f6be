/* The stream over real sockets, plain and TLS: what arrives, what is pushed back, and how it ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/limits.h"
#include "core/net/stream.h"
#include "core/net/stream_internal.h"

#define MAX_PASSES 1000000 /* what waits for a deadline passes often on a fast machine */

/* One end of a connection, and what happened to it. */
struct end {
	struct stream *s;
	bool ready, ended, hold_input;
	enum cage_status how;
	unsigned drained;
	uint64_t got;

	bool in_order;
	unsigned data_calls;
};

static void on_ready(struct stream *s, void *arg)
{
	(void)s;
	((struct end *)arg)->ready = true;
}

/* Byte i of every test transfer is (i * 7) & 0xff. */
static void on_data(struct stream *s, void *arg)
{
	struct end *e = arg;
	e->data_calls++;
	if (e->hold_input)
		return;
	struct slice in = stream_input(s);
	for (size_t i = 0; i < in.len; i++)
		if ((unsigned char)in.ptr[i] != (unsigned char)((e->got + i) * 7))
			e->in_order = false;
	e->got += in.len;
	stream_consume(s, in.len);
}

static void on_drained(struct stream *s, void *arg)
{
	(void)s;
	((struct end *)arg)->drained++;
}

static void on_end(struct stream *s, enum cage_status why, void *arg)
{
	(void)s;
	struct end *e = arg;
	assert_true(!e->ended || (e->how == CAGE_EOF && why != CAGE_EOF));
	e->ended = true;
	e->how = why;
}

static const struct stream_cb cb = {on_ready, on_data, on_drained, on_end};

struct fixture {
	struct loop *loop;
	struct end a, b;
	struct event *keep_alive; /* so that a pass always ends */
};

static void on_keep_alive(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
}

static int setup(void **state)
{
	static struct fixture f;
	int fds[2];
	f = (struct fixture){.a.in_order = true, .b.in_order = true};
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
	f.loop = loop_new();
	f.keep_alive = event_new(loop_base(f.loop), -1, EV_PERSIST, on_keep_alive, NULL);
	struct timeval tick = {.tv_usec = 2000};
	event_add(f.keep_alive, &tick);
	f.a.s = stream_new(f.loop, fds[0], &cb, &f.a);
	f.b.s = stream_new(f.loop, fds[1], &cb, &f.b);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	stream_close(&f->a.s);
	stream_close(&f->b.s);
	loop_once(f->loop);
	assert_int_equal(stream_count(f->loop), 0);
	event_free(f->keep_alive);
	loop_free(&f->loop);
	return 0;
}

/* Runs passes until the condition holds; false when it never does. */
#define RUN_UNTIL(f, cond)                    \
	do {                                  \
		unsigned left = MAX_PASSES;   \
		while (!(cond) && left-- > 0) \
			loop_once((f)->loop); \
		assert_true(cond);            \
	} while (0)

static char *pattern(size_t n)
{
	char *p = malloc(n);
	assert_non_null(p);
	for (size_t i = 0; i < n; i++)
		p[i] = (char)(unsigned char)(i * 7);
	return p;
}

static void write_pattern(struct stream *s, size_t n)
{
	char *p = pattern(n);
	stream_write(s, slice_of(p, n));
	free(p);
}

static void moves_bytes_both_ways(void **state)
{
	struct fixture *f = *state;
	write_pattern(f->a.s, 100);
	write_pattern(f->b.s, 3000000);
	RUN_UNTIL(f, f->b.got == 100 && f->a.got == 3000000);
	assert_true(f->a.in_order && f->b.in_order);
}

static void small_writes_of_a_pass_leave_together(void **state)
{
	struct fixture *f = *state;
	for (unsigned i = 0; i < 10; i++) {
		char c = (char)(unsigned char)(i * 7);
		stream_write(f->a.s, slice_of(&c, 1));
	}
	RUN_UNTIL(f, f->b.got == 10);
	assert_int_equal(f->b.data_calls, 1);
	assert_true(f->b.in_order);
}

static void unread_input_stops_the_reading(void **state)
{
	struct fixture *f = *state;
	f->b.hold_input = true;
	write_pattern(f->a.s, 4000000);
	for (unsigned i = 0; i < 200; i++)
		loop_once(f->loop);
	assert_true(stream_input_is_full(f->b.s));
	assert_int_equal(stream_input(f->b.s).len, LIMIT_STREAM_IN);
	assert_true(stream_is_clogged(f->a.s));
	f->b.hold_input = false;
	on_data(f->b.s, &f->b);
	RUN_UNTIL(f, f->b.got == 4000000);
	assert_true(f->b.in_order);
	assert_false(stream_is_clogged(f->a.s));
	assert_int_equal(f->a.drained, 1);
}

static void half_close_lets_the_other_half_flow(void **state)
{
	struct fixture *f = *state;
	write_pattern(f->a.s, 10);
	stream_end(f->a.s);
	RUN_UNTIL(f, f->b.ended);
	assert_int_equal(f->b.how, CAGE_EOF);
	assert_int_equal(f->b.got, 10);
	write_pattern(f->b.s, 50000);
	RUN_UNTIL(f, f->a.got == 50000);
	assert_false(f->a.ended);
}

static void a_reset_is_not_a_clean_end(void **state)
{
	struct fixture *f = *state;
	/* Unread bytes make a close of a unix socket a reset. */
	f->b.hold_input = true;
	write_pattern(f->a.s, 500000);
	for (unsigned i = 0; i < 50; i++)
		loop_once(f->loop);
	stream_reset(&f->b.s);
	RUN_UNTIL(f, f->a.ended);
	assert_int_equal(f->a.how, CAGE_TRUNCATED);
}

static void what_a_peer_said_before_it_closed_is_read(void **state)
{
	struct fixture *f = *state;
	f->a.hold_input = true;
	stream_write(f->b.s, SLICE("413"));
	stream_finish(&f->b.s); /* answers, and drains only so much */
	write_pattern(f->a.s, LIMIT_LINGER_BYTES + MIB(8));
	RUN_UNTIL(f, f->a.ended && f->a.how != CAGE_EOF);
	assert_true(slice_eq(stream_input(f->a.s), SLICE("413")));
}

static void a_deadline_ends_it(void **state)
{
	struct fixture *f = *state;
	stream_set_deadline(f->a.s, 30);
	RUN_UNTIL(f, f->a.ended);
	assert_int_equal(f->a.how, CAGE_ETIMEOUT);
}

static void activity_moves_an_idle_deadline(void **state)
{
	struct fixture *f = *state;
	stream_set_idle(f->b.s, 200);
	for (unsigned i = 0; i < 20; i++) {
		char c = (char)(unsigned char)(i * 7);
		stream_write(f->a.s, slice_of(&c, 1));
		RUN_UNTIL(f, f->b.got == i + 1);
	}
	assert_false(f->b.ended);
	RUN_UNTIL(f, f->b.ended);
	assert_int_equal(f->b.how, CAGE_ETIMEOUT);
}

static void finish_sends_what_is_queued_and_drains(void **state)
{
	struct fixture *f = *state;
	write_pattern(f->a.s, 1000000);
	stream_finish(&f->a.s);
	write_pattern(f->b.s, 1000000); /* the peer still sends: it must not meet a reset before it has read all */
	RUN_UNTIL(f, f->b.ended);
	assert_int_equal(f->b.how, CAGE_EOF);
	assert_int_equal(f->b.got, 1000000);
	stream_close(&f->b.s);
	RUN_UNTIL(f, stream_count(f->loop) == 0);
}

static void finish_drains_only_so_much(void **state)
{
	struct fixture *f = *state;
	stream_finish(&f->a.s);
	write_pattern(f->b.s, LIMIT_LINGER_BYTES + MIB(4));
	RUN_UNTIL(f, f->b.ended && f->b.how != CAGE_EOF);
}

/* ---- peers that take too little ---- */

/* A pass in which the peer sends a byte, and we another one that it does not read. */
static void talk_both_ways(struct fixture *f)
{
	if (f->a.s)
		stream_write(f->a.s, SLICE("x"));
	stream_write(f->b.s, SLICE("x"));
	loop_once(f->loop);
}

static void a_peer_that_takes_nothing_can_not_gain_time(void **state)
{
	struct fixture *f = *state;
	f->b.hold_input = true;
	stream_set_stall(f->a.s, 50);
	write_pattern(f->a.s, 4000000);
	for (unsigned left = MAX_PASSES; !f->a.ended && left > 0; left--)
		talk_both_ways(f);
	assert_true(f->a.ended);
	assert_int_equal(f->a.how, CAGE_ETIMEOUT);
}

static void a_peer_that_reads_has_time(void **state)
{
	struct fixture *f = *state;
	stream_set_stall(f->a.s, 300);
	write_pattern(f->a.s, 3000000);
	assert_true(stream_is_clogged(f->a.s));
	RUN_UNTIL(f, f->b.got == 3000000);
	for (unsigned i = 0; i < 200; i++) /* longer than that, with nothing waiting for the peer */
		loop_once(f->loop);
	assert_false(f->a.ended);
	stream_set_stall(f->a.s, 0);
	f->b.hold_input = true;
	write_pattern(f->a.s, 3000000);
	for (unsigned i = 0; i < 200; i++)
		loop_once(f->loop);
	assert_false(f->a.ended);
}

static void a_peer_can_not_gain_time_while_we_finish(void **state)
{
	struct fixture *f = *state;
	f->b.hold_input = true;
	stream_set_stall(f->a.s, 50);
	write_pattern(f->a.s, 1000000);
	stream_finish(&f->a.s);
	for (unsigned left = MAX_PASSES; stream_count(f->loop) > 1 && left > 0; left--)
		talk_both_ways(f);
	assert_int_equal(stream_count(f->loop), 1);
	assert_int_equal(stream_sockets(f->loop), 1);
}

static void finishing_has_an_end_that_nothing_moves(void **state)
{
	struct fixture *f = *state;
	struct stream *a = f->a.s;
	stream_set_idle(a, 10);
	f->b.hold_input = true;
	write_pattern(a, 1000000);
	stream_finish(&f->a.s);
	uint64_t end = a->deadline_us;
	assert_true(end > loop_now_us(f->loop) + 10000);
	for (unsigned i = 0; i < 10; i++) {
		stream_consume(f->b.s, stream_input(f->b.s).len);
		talk_both_ways(f);
		assert_int_equal(a->state, STREAM_FINISHING);
		assert_int_equal(a->deadline_us, end);
	}
	stream_close(&f->b.s);
	RUN_UNTIL(f, stream_count(f->loop) == 0);
}

/* ---- TLS ---- */

static EVP_PKEY *key;
static X509 *cert;

static int make_cert(void **state)
{
	(void)state;
	key = EVP_EC_gen("P-256");
	cert = X509_new();
	X509_set_version(cert, X509_VERSION_3);
	X509_gmtime_adj(X509_getm_notBefore(cert), -100);
	X509_gmtime_adj(X509_getm_notAfter(cert), 10000);
	X509_set_pubkey(cert, key);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_ASC, (const unsigned char *)"t", -1, -1,
				   0);
	X509_set_issuer_name(cert, X509_get_subject_name(cert));
	return X509_sign(cert, key, EVP_sha256()) > 0 ? 0 : -1;
}

static int free_cert(void **state)
{
	(void)state;
	X509_free(cert);
	EVP_PKEY_free(key);
	return 0;
}

static int suspend_first; /* hello callbacks that ask for time */
static unsigned hellos;

static int on_hello(SSL *ssl, int *alert, void *arg)
{
	(void)alert, (void)arg;
	hellos++;
	if (suspend_first > 0) {
		suspend_first--;
		return SSL_CLIENT_HELLO_RETRY;
	}
	return SSL_use_cert_and_key(ssl, cert, key, NULL, 1) == 1 ? SSL_CLIENT_HELLO_SUCCESS : SSL_CLIENT_HELLO_ERROR;
}

/* a is the server, b the client. */
static void start_tls(struct fixture *f, bool verify)
{
	SSL_CTX *server = SSL_CTX_new(TLS_server_method()), *client = SSL_CTX_new(TLS_client_method());
	SSL_CTX_set_client_hello_cb(server, on_hello, NULL);
	if (verify)
		SSL_CTX_set_verify(client, SSL_VERIFY_PEER, NULL);
	hellos = 0;
	stream_start_tls(f->a.s, SSL_new(server), true);
	stream_start_tls(f->b.s, SSL_new(client), false);
	SSL_CTX_free(server);
	SSL_CTX_free(client);
}

static void tls_moves_bytes_and_ends_cleanly(void **state)
{
	struct fixture *f = *state;
	suspend_first = 0;
	start_tls(f, false);
	RUN_UNTIL(f, f->a.ready && f->b.ready);
	write_pattern(f->a.s, 2000000);
	write_pattern(f->b.s, 100);
	RUN_UNTIL(f, f->b.got == 2000000 && f->a.got == 100);
	assert_true(f->a.in_order && f->b.in_order);
	stream_end(f->a.s);
	RUN_UNTIL(f, f->b.ended);
	assert_int_equal(f->b.how, CAGE_EOF);
}

static void tls_without_close_notify_is_truncated(void **state)
{
	struct fixture *f = *state;
	suspend_first = 0;
	start_tls(f, false);
	RUN_UNTIL(f, f->a.ready && f->b.ready);
	stream_reset(&f->a.s);
	RUN_UNTIL(f, f->b.ended);
	assert_int_equal(f->b.how, CAGE_TRUNCATED);
}

static void tls_hello_can_be_suspended(void **state)
{
	struct fixture *f = *state;
	suspend_first = 1;
	start_tls(f, false);
	RUN_UNTIL(f, hellos == 1);
	for (unsigned i = 0; i < 20; i++)
		loop_once(f->loop);
	assert_int_equal(hellos, 1);
	assert_false(f->a.ready);
	stream_resume_handshake(f->a.s);
	RUN_UNTIL(f, f->a.ready && f->b.ready);
}

static void tls_unknown_issuer_is_a_failed_verification(void **state)
{
	struct fixture *f = *state;
	suspend_first = 0;
	start_tls(f, true);
	RUN_UNTIL(f, f->b.ended);
	assert_int_equal(f->b.how, CAGE_EVERIFY);
	assert_false(f->b.ready);
}

static void tls_takes_bytes_that_were_read_before(void **state)
{
	struct fixture *f = *state;
	SSL_CTX *client = SSL_CTX_new(TLS_client_method());
	suspend_first = 0;
	f->a.hold_input = true;
	stream_start_tls(f->b.s, SSL_new(client), false);
	SSL_CTX_free(client);
	RUN_UNTIL(f, stream_input(f->a.s).len > 100); /* the whole ClientHello, read as plain bytes */
	SSL_CTX *server = SSL_CTX_new(TLS_server_method());
	SSL_CTX_set_client_hello_cb(server, on_hello, NULL);
	stream_start_tls(f->a.s, SSL_new(server), true);
	SSL_CTX_free(server);
	RUN_UNTIL(f, f->a.ready && f->b.ready);
	f->a.hold_input = false;
	write_pattern(f->b.s, 500);
	RUN_UNTIL(f, f->a.got == 500);
}

static void tls_garbage_is_a_protocol_error(void **state)
{
	struct fixture *f = *state;
	SSL_CTX *server = SSL_CTX_new(TLS_server_method());
	stream_start_tls(f->a.s, SSL_new(server), true);
	SSL_CTX_free(server);
	stream_write(f->b.s, SLICE("SSH-2.0-client\r\n"));
	RUN_UNTIL(f, f->a.ended);
	assert_int_equal(f->a.how, CAGE_EPROTO);
}

/* However much there is to read, others have their turn in between. */
static void a_pass_tells_of_input_once(void **state)
{
	struct fixture *f = *state;
	size_t n = 3 * LIMIT_STREAM_IN / 2;
	char *bytes = pattern(n);
	stream_write(f->a.s, slice_of(bytes, n));
	(void)stream_flush(f->a.s);
	for (unsigned left = MAX_PASSES; f->b.got < n && left > 0; left--) {
		size_t before = (size_t)f->b.data_calls;
		loop_once(f->loop);
		assert_true((size_t)f->b.data_calls <= before + 1);
	}
	assert_int_equal(f->b.got, n);
	assert_true(f->b.data_calls > 1);
	free(bytes);
}

static void input_is_told_again_in_the_next_pass(void **state)
{
	struct fixture *f = *state;
	f->b.hold_input = true;
	stream_write(f->a.s, SLICE("x"));
	RUN_UNTIL(f, f->b.data_calls == 1);
	stream_tell_again(f->b.s);
	assert_int_equal(f->b.data_calls, 1);
	RUN_UNTIL(f, f->b.data_calls == 2);
	loop_once(f->loop);
	assert_int_equal(f->b.data_calls, 2);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(a_pass_tells_of_input_once),
		T(input_is_told_again_in_the_next_pass),
		T(moves_bytes_both_ways),
		T(small_writes_of_a_pass_leave_together),
		T(unread_input_stops_the_reading),
		T(half_close_lets_the_other_half_flow),
		T(a_reset_is_not_a_clean_end),
		T(what_a_peer_said_before_it_closed_is_read),
		T(a_deadline_ends_it),
		T(activity_moves_an_idle_deadline),
		T(finish_sends_what_is_queued_and_drains),
		T(finish_drains_only_so_much),
		T(a_peer_that_takes_nothing_can_not_gain_time),
		T(a_peer_that_reads_has_time),
		T(a_peer_can_not_gain_time_while_we_finish),
		T(finishing_has_an_end_that_nothing_moves),
		T(tls_moves_bytes_and_ends_cleanly),
		T(tls_without_close_notify_is_truncated),
		T(tls_hello_can_be_suspended),
		T(tls_unknown_issuer_is_a_failed_verification),
		T(tls_takes_bytes_that_were_read_before),
		T(tls_garbage_is_a_protocol_error),
	};
	return cmocka_run_group_tests(tests, make_cert, free_cert);
}
