/* Lookups against small servers on the same loop, which answer over UDP and TCP as the first label of the name says, and against
 * nobody at all. */
#include "dns/upstream.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/limits.h"
#include "core/net/vet.h"
#include "dns/octets.h"

#define PACKET 8192
#define PORTS 4096

struct server {
	struct addr_port at;
	int udp, tcp, conn, stranger; /* stranger: another socket, from which answers can be forged */
	struct event *on_udp, *on_tcp, *on_conn;
	int asked, asked_tcp;
	size_t n_ports; /* that it was asked from, each once */
	uint16_t ports[PORTS];
	uint16_t last_id;
	int same_ids;
	char last[256]; /* question as it was spelled */
};

struct world {
	struct loop *loop;
	struct server servers[2];
	struct dns_upstream *upstream;
	int waiting; /* callbacks until the loop stops */
};

struct outcome {
	struct world *world;
	struct dns_lookup *lookup;
	int calls;
	enum cage_status st;
	size_t len;
	char response[PACKET];
};

/* ---- the server ---- */

struct packet {
	char bytes[PACKET];
	size_t len;
};

static size_t question_end(const struct packet *p)
{
	size_t at = DNS_HEADER;
	while (p->bytes[at] != 0)
		at += 1 + (size_t)p->bytes[at];
	return at + 5;
}

static bool asks_for(const struct packet *p, const char *label)
{
	return slice_ieq(slice_of(p->bytes + DNS_HEADER + 1, (size_t)p->bytes[DNS_HEADER]), slice_str(label));
}

/* Turns the query into an answer with as many addresses. */
static void answer(struct packet *p, unsigned rcode, unsigned records)
{
	static const char record[] = "\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\1\1\1\1";
	p->len = question_end(p);
	octets_put16(p->bytes + 2, (uint16_t)(0x8180 | rcode));
	memset(p->bytes + 6, 0, 6);
	octets_put16(p->bytes + 6, (uint16_t)records);
	for (unsigned i = 0; i < records; i++) {
		memcpy(p->bytes + p->len, record, sizeof(record) - 1);
		p->len += sizeof(record) - 1;
	}
}

struct peer {
	struct sockaddr_storage at;
	socklen_t len;
};

static void reply(int fd, const struct packet *p, const struct peer *to)
{
	assert_int_equal(sendto(fd, p->bytes, p->len, 0, (const struct sockaddr *)&to->at, to->len), p->len);
}

static void respell(struct packet *p)
{
	for (size_t i = DNS_HEADER; i < question_end(p) - 5; i++)
		if (p->bytes[i] >= 'A')
			p->bytes[i] ^= 0x20;
}

/* What comes before the answer, from whom can send from anywhere. */
static void forge(struct server *s, const struct packet *query, const struct peer *to)
{
	struct packet p = *query;
	answer(&p, 0, 3);
	if (asks_for(query, "wrong-port"))
		reply(s->stranger, &p, to);
	if (asks_for(query, "wrong-id")) {
		p.bytes[0] ^= 1;
		reply(s->udp, &p, to);
	}
	if (asks_for(query, "wrong-name")) {
		p.bytes[DNS_HEADER + 2] = 'x';
		reply(s->udp, &p, to);
	}
	if (asks_for(query, "wrong-type")) {
		p.bytes[question_end(query) - 3] = 28;
		reply(s->udp, &p, to);
	}
	if (asks_for(query, "short")) {
		p.len = 7;
		reply(s->udp, &p, to);
	}
	if (asks_for(query, "wrong-case") || (asks_for(query, "wrong-case-once") && s->asked == 1)) {
		respell(&p);
		reply(s->udp, &p, to);
	}
	if (asks_for(query, "not-a-response")) {
		p.bytes[2] &= 0x7f;
		reply(s->udp, &p, to);
	}
}

static void note_port(struct server *s, const struct peer *from)
{
	struct addr a;
	uint16_t port;
	assert_true(addr_from_sockaddr((const struct sockaddr *)&from->at, &a, &port));
	for (size_t i = 0; i < s->n_ports; i++)
		if (s->ports[i] == port)
			return;
	assert_true(s->n_ports < PORTS);
	s->ports[s->n_ports++] = port;
}

static void note_query(struct server *s, const struct packet *p)
{
	size_t n = question_end(p) - DNS_HEADER;
	s->asked++;
	s->same_ids += s->last_id == octets_get16(p->bytes);
	s->last_id = octets_get16(p->bytes);
	memcpy(s->last, p->bytes + DNS_HEADER, n < sizeof(s->last) ? n : sizeof(s->last));
	if (asks_for(p, "old"))
		return;
	/* recursion desired, one question, one OPT of the right size, nothing behind */
	assert_int_equal(octets_get16(p->bytes + 2), 0x0100);
	assert_int_equal(octets_get16(p->bytes + 10), 1);
	assert_int_equal(p->len, question_end(p) + 11);
	assert_int_equal(octets_get16(p->bytes + question_end(p) + 3), LIMIT_DNS_UDP);
}

static void on_udp(evutil_socket_t fd, short what, void *arg)
{
	(void)what;
	struct server *s = arg;
	struct packet p;
	struct peer from = {.len = sizeof(from.at)};
	ssize_t n = recvfrom(fd, p.bytes, sizeof(p.bytes), 0, (struct sockaddr *)&from.at, &from.len);
	assert_true(n > DNS_HEADER);
	p.len = (size_t)n;
	note_query(s, &p);
	note_port(s, &from);
	if (asks_for(&p, "silent"))
		return;
	forge(s, &p, &from);
	if (asks_for(&p, "old") && octets_get16(p.bytes + 10) > 0)
		answer(&p, DNS_RCODE_FORMERR, 0);
	else if (asks_for(&p, "fails"))
		answer(&p, DNS_RCODE_SERVFAIL, 0);
	else if (asks_for(&p, "none"))
		answer(&p, DNS_RCODE_NXDOMAIN, 0);
	else
		answer(&p, 0, asks_for(&p, "huge") ? 100 : 1);
	if (asks_for(&p, "truncated"))
		p.bytes[2] |= 2;
	reply(fd, &p, &from);
}

/* A query over TCP comes in one piece on loopback. */
static void on_tcp_query(evutil_socket_t fd, short what, void *arg)
{
	(void)what;
	struct server *s = arg;
	struct packet p;
	char size[2];
	if (recv(fd, size, 2, MSG_WAITALL) != 2) {
		event_del(s->on_conn);
		return;
	}
	p.len = octets_get16(size);
	assert_true(p.len <= sizeof(p.bytes));
	assert_int_equal(recv(fd, p.bytes, p.len, MSG_WAITALL), p.len);
	s->asked_tcp++;
	answer(&p, 0, 100);
	octets_put16(size, (uint16_t)p.len);
	assert_int_equal(send(fd, size, 2, MSG_NOSIGNAL), 2);
	assert_int_equal(send(fd, p.bytes, p.len, MSG_NOSIGNAL), p.len);
}

static void on_tcp(evutil_socket_t fd, short what, void *arg)
{
	(void)what;
	struct server *s = arg;
	assert_int_equal(s->conn, -1);
	s->conn = accept(fd, NULL, NULL);
	assert_true(s->conn >= 0);
	s->on_conn = event_new(event_get_base(s->on_tcp), s->conn, EV_READ | EV_PERSIST, on_tcp_query, s);
	event_add(s->on_conn, NULL);
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

/* The TCP port must be the UDP port, and somebody else may have it: try some. */
static void server_open(struct server *s, struct loop *l)
{
	struct addr_port other = {.addr = {ADDR_V4, {127, 0, 0, 1}}};
	*s = (struct server){.udp = -1, .tcp = -1, .conn = -1, .stranger = open_socket(SOCK_DGRAM, &other)};
	for (int i = 0; i < 20 && s->tcp < 0; i++) {
		if (s->udp >= 0)
			close(s->udp);
		s->at = (struct addr_port){.addr = {ADDR_V4, {127, 0, 0, 1}}};
		s->udp = open_socket(SOCK_DGRAM, &s->at);
		s->tcp = open_socket(SOCK_STREAM, &s->at);
	}
	assert_true(s->tcp >= 0);
	assert_int_equal(listen(s->tcp, 8), 0);
	s->on_udp = event_new(loop_base(l), s->udp, EV_READ | EV_PERSIST, on_udp, s);
	s->on_tcp = event_new(loop_base(l), s->tcp, EV_READ | EV_PERSIST, on_tcp, s);
	event_add(s->on_udp, NULL);
	event_add(s->on_tcp, NULL);
}

static void server_close(struct server *s)
{
	if (s->conn >= 0) {
		event_free(s->on_conn);
		close(s->conn);
	}
	event_free(s->on_udp);
	event_free(s->on_tcp);
	close(s->udp);
	close(s->tcp);
	close(s->stranger);
}

/* ---- helpers of the tests ---- */

static struct dns_server_spec spec_of(const struct addr_port *at)
{
	return (struct dns_server_spec){.addr = at->addr, .port = at->port};
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct dns_server_spec specs[2];
	w->loop = loop_new();
	for (int i = 0; i < 2; i++) {
		server_open(&w->servers[i], w->loop);
		specs[i] = spec_of(&w->servers[i].at);
	}
	w->upstream = dns_upstream_new(w->loop, specs, 1, NULL);
	assert_non_null(w->upstream);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;
	dns_upstream_free(&w->upstream);
	for (int i = 0; i < 2; i++)
		server_close(&w->servers[i]);
	loop_free(&w->loop);
	free(w);
	return 0;
}

/* Asks these instead. */
static void use(struct world *w, const struct dns_server_spec *specs, size_t n)
{
	dns_upstream_free(&w->upstream);
	w->upstream = dns_upstream_new(w->loop, specs, n, NULL);
	assert_non_null(w->upstream);
}

static void on_lookup(void *arg, enum cage_status st, struct slice response)
{
	struct outcome *o = arg;
	o->calls++;
	o->st = st;
	o->lookup = NULL;
	assert_true(response.len <= sizeof(o->response));
	o->len = response.len;
	if (response.len > 0)
		memcpy(o->response, response.ptr, response.len);
	if (--o->world->waiting == 0)
		loop_stop(o->world->loop);
}

static bool start(struct world *w, struct outcome *o, const char *text)
{
	struct dns_name name;
	assert_true(dns_name_set(&name, slice_str(text)));
	o->world = w;
	o->calls = 0;
	o->lookup = dns_upstream_query(w->upstream, &name, DNS_TYPE_A, on_lookup, o);
	if (!o->lookup)
		return false;
	assert_int_equal(o->calls, 0);
	w->waiting++;
	return true;
}

static unsigned records(const struct outcome *o)
{
	return octets_get16(o->response + 6);
}

static void lookup(struct world *w, struct outcome *o, const char *text)
{
	assert_true(start(w, o, text));
	loop_run(w->loop);
	assert_int_equal(o->calls, 1);
}

static void assert_answered(struct world *w, const char *text, unsigned wanted)
{
	static struct outcome o;
	lookup(w, &o, text);
	assert_int_equal(o.st, CAGE_OK);
	assert_int_equal(records(&o), wanted);
	assert_int_equal(dns_upstream_count(w->upstream), 0);
}

static void assert_failed(struct world *w, const char *text, enum cage_status st)
{
	static struct outcome o;
	lookup(w, &o, text);
	assert_int_equal(o.st, st);
	assert_int_equal(o.len, 0);
}

/* ---- the tests ---- */

static void answers(void **state)
{
	struct world *w = *state;
	static struct outcome o;
	assert_answered(w, "good.test", 1);
	assert_answered(w, "none.test", 0);
	lookup(w, &o, "none.test");
	assert_int_equal(o.response[3] & 15, DNS_RCODE_NXDOMAIN);
	assert_int_equal(w->servers[0].asked, 3);
	assert_int_equal(w->servers[1].asked, 0);
}

static void forged_answers_are_not_heard(void **state)
{
	struct world *w = *state;
	static const char *const names[] = {"wrong-port.test", "wrong-id.test", "wrong-name.test", "wrong-type.test",
					    "short.test"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		w->servers[0].asked = 0;
		assert_answered(w, names[i], 1);
		assert_int_equal(w->servers[0].asked, 1);
	}
}

/* c-ares takes these for the answer, so they end the question; it is asked once more, spelled anew. */
static void answer_in_another_spelling(void **state)
{
	struct world *w = *state;
	assert_answered(w, "wrong-case-once.test", 1);
	assert_int_equal(w->servers[0].asked, 2);
	assert_failed(w, "wrong-case.test", CAGE_EPROTO);
	assert_int_equal(w->servers[0].asked, 2 + LIMIT_DNS_ASKS);
	assert_failed(w, "not-a-response.test", CAGE_EPROTO);
}

static void questions_are_hard_to_guess(void **state)
{
	struct world *w = *state;
	struct server *s = &w->servers[0];
	char before[32];
	int spelled_alike = 0;
	for (int i = 0; i < 64; i++) {
		memcpy(before, s->last, sizeof(before));
		assert_answered(w, "a-quite-long-name-of-letters.test", 1);
		spelled_alike += memcmp(before, s->last, sizeof(before)) == 0;
	}
	assert_true(spelled_alike < 4);
	assert_true(s->same_ids < 4);
	assert_true(s->n_ports > 32); /* one at a time: each from a socket of its own */
}

/* With something always under way, sockets are kept, but not for long. */
static void ports_change_under_load(void **state)
{
	enum { ROUNDS = 60, AT_ONCE = 64 };
	static struct outcome o[AT_ONCE], late;
	struct world *w = *state;
	struct server *s = &w->servers[0];
	for (int i = 0; i < ROUNDS; i++) {
		if (i % 10 == 0)
			assert_true(start(w, &late, "silent.test"));
		w->waiting = 0;
		for (int k = 0; k < AT_ONCE; k++)
			assert_true(start(w, &o[k], "good.test"));
		loop_run(w->loop);
		dns_lookup_cancel(&late.lookup);
	}
	assert_true(s->asked >= ROUNDS * AT_ONCE);
	assert_true(s->n_ports > ROUNDS * AT_ONCE / LIMIT_DNS_CHANNEL_USES);
}

static void long_answers_come_over_tcp(void **state)
{
	struct world *w = *state;
	assert_answered(w, "truncated.test", 100);
	assert_int_equal(w->servers[0].asked_tcp, 1);
	event_free(w->servers[0].on_conn);
	close(w->servers[0].conn);
	w->servers[0].conn = -1;
	assert_answered(w, "huge.test", 100); /* longer than was asked for, and not marked as cut */
	assert_int_equal(w->servers[0].asked_tcp, 2);
}

/* One that knows no EDNS is asked again without it, and the channel is not the worse for it once it is replaced. */
static void server_without_edns(void **state)
{
	struct world *w = *state;
	assert_answered(w, "old.test", 1);
	assert_int_equal(w->servers[0].asked, 2);
	for (int i = 0; i < LIMIT_DNS_CHANNELS_MIN * LIMIT_DNS_CHANNEL_USES * 2; i++)
		assert_answered(w, "good.test", 1);
	assert_answered(w, "old.test", 1);
}

static void next_server_when_one_fails(void **state)
{
	struct world *w = *state;
	struct dns_server_spec specs[] = {spec_of(&w->servers[0].at), spec_of(&w->servers[1].at)};
	struct addr_port nobody = {.addr = {ADDR_V4, {127, 0, 0, 1}}};
	use(w, specs, 2);
	assert_failed(w, "fails.test", CAGE_ESYS);
	assert_true(w->servers[0].asked > 0 && w->servers[1].asked > 0);

	close(open_socket(SOCK_DGRAM, &nobody));
	specs[0] = spec_of(&nobody);
	use(w, specs, 2);
	assert_answered(w, "good.test", 1);
	use(w, specs, 1);
	assert_failed(w, "good.test", CAGE_ESYS);
}

/* The first question waits for the silent one, those after it do not. */
static void silent_server_is_asked_last(void **state)
{
	struct world *w = *state;
	struct addr_port deaf = {.addr = {ADDR_V4, {127, 0, 0, 1}}};
	int fd = open_socket(SOCK_DGRAM, &deaf);
	struct dns_server_spec specs[] = {spec_of(&deaf), spec_of(&w->servers[1].at)};
	char byte;
	use(w, specs, 2);
	assert_answered(w, "good.test", 1);
	assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT | MSG_TRUNC) > 0, true);
	for (int i = 0; i < 20; i++)
		assert_answered(w, "good.test", 1);
	assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
	close(fd);
}

/* All but the last keep silent: the first question reaches it in its time, and those after it go there at once. */
static void silent_servers_are_asked_last(void **state)
{
	struct world *w = *state;
	struct dns_server_spec specs[LIMIT_DNS_SERVERS];
	int deaf[LIMIT_DNS_SERVERS - 1];
	char byte;
	for (size_t i = 0; i < LIMIT_DNS_SERVERS - 1; i++) {
		struct addr_port at = {.addr = {ADDR_V4, {127, 0, 0, 1}}};
		deaf[i] = open_socket(SOCK_DGRAM, &at);
		specs[i] = spec_of(&at);
	}
	specs[LIMIT_DNS_SERVERS - 1] = spec_of(&w->servers[1].at);
	use(w, specs, LIMIT_DNS_SERVERS);
	for (int i = 0; i < 20; i++)
		assert_answered(w, "good.test", 1);
	for (size_t i = 0; i < LIMIT_DNS_SERVERS - 1; i++) {
		assert_true(recv(deaf[i], &byte, 1, MSG_DONTWAIT | MSG_TRUNC) > 0);
		assert_int_equal(recv(deaf[i], &byte, 1, MSG_DONTWAIT), -1);
		close(deaf[i]);
	}
}

/* What nobody waits for takes no place from others, but there is an end to that, too. */
static void given_up_lookups_are_not_counted(void **state)
{
	static struct outcome o;
	struct world *w = *state;
	size_t n = 0;
	for (; n < 2 * LIMIT_DNS_HELD && start(w, &o, "silent.test"); n++)
		dns_lookup_cancel(&o.lookup);
	assert_int_equal(n, LIMIT_DNS_HELD);
	w->waiting = 0;
}

static void silence_has_an_end(void **state)
{
	struct world *w = *state;
	assert_failed(w, "silent.test", CAGE_ETIMEOUT);
	assert_int_equal(w->servers[0].asked, LIMIT_DNS_TRIES);
	assert_answered(w, "good.test", 1);
}

static void bounded(void **state)
{
	static struct outcome o[LIMIT_DNS_LOOKUPS], more;
	struct world *w = *state;
	for (size_t i = 0; i < LIMIT_DNS_LOOKUPS; i++)
		assert_true(start(w, &o[i], "good.test"));
	assert_false(start(w, &more, "good.test"));
	loop_run(w->loop);
	for (size_t i = 0; i < LIMIT_DNS_LOOKUPS; i++)
		assert_int_equal(o[i].calls, 1);
	assert_true(start(w, &more, "good.test"));
	loop_run(w->loop);
	assert_int_equal(more.st, CAGE_OK);
}

static void cancelled(void **state)
{
	static struct outcome o, other;
	struct world *w = *state;
	assert_true(start(w, &o, "good.test"));
	dns_lookup_cancel(&o.lookup);
	assert_null(o.lookup);
	dns_lookup_cancel(&o.lookup);
	w->waiting = 0;
	lookup(w, &other, "good.test");
	assert_int_equal(o.calls, 0);
}

static void freed_while_asking(void **state)
{
	static struct outcome o[3];
	struct world *w = *state;
	for (int i = 0; i < 3; i++)
		assert_true(start(w, &o[i], "silent.test"));
	dns_lookup_cancel(&o[1].lookup);
	dns_upstream_free(&w->upstream);
	assert_int_equal(o[0].st, CAGE_ESYS);
	assert_int_equal(o[0].calls, 1);
	assert_int_equal(o[1].calls, 0);
	assert_int_equal(o[2].calls, 1);
	dns_upstream_free(&w->upstream);
}

static void lists_of_servers(void **state)
{
	struct world *w = *state;
	struct dns_server_spec many[LIMIT_DNS_SERVERS + 1] = {spec_of(&w->servers[0].at)};
	for (size_t i = 1; i < LIMIT_DNS_SERVERS + 1; i++)
		many[i] = spec_of(&w->servers[1].at);
	use(w, many, LIMIT_DNS_SERVERS + 1);
	assert_answered(w, "good.test", 1);
	assert_int_equal(w->servers[0].asked, 1);
	struct dns_upstream *of_the_system = dns_upstream_new(w->loop, NULL, 0, NULL);
	assert_non_null(of_the_system);
	dns_upstream_free(&of_the_system);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(answers),
		TEST(forged_answers_are_not_heard),
		TEST(answer_in_another_spelling),
		TEST(questions_are_hard_to_guess),
		TEST(ports_change_under_load),
		TEST(long_answers_come_over_tcp),
		TEST(server_without_edns),
		TEST(next_server_when_one_fails),
		TEST(silent_server_is_asked_last),
		TEST(silent_servers_are_asked_last),
		TEST(given_up_lookups_are_not_counted),
		TEST(silence_has_an_end),
		TEST(bounded),
		TEST(cancelled),
		TEST(freed_while_asking),
		TEST(lists_of_servers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
