/* The resolver against a small DNS server on the same loop, on loopback. The server answers by name from a table, over
 * UDP and TCP, and notes which names it was asked for. */
#include "core/net/resolver.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/clock.h"
#include "core/base/limits.h"

#define PACKET 4096
#define TYPE_A 1
#define TYPE_CNAME 5
#define TYPE_AAAA 28
#define QUESTION_AT 12

enum zone_kind {
	ZONE_ANSWER,
	ZONE_FAILS,     /* with the rcode */
	ZONE_SILENT,    /* never answers */
	ZONE_TRUNCATED, /* over UDP; whole over TCP */
	ZONE_LOOP       /* a compression pointer to itself */
};

struct zone {
	const char *name;
	enum zone_kind kind;
	int rcode;
	const char *v4, *v6; /* separated by spaces */
	const char *cname;
};

static struct zone zones[] = {
	{.name = "both.test", .v4 = "192.0.2.1 192.0.2.2 192.0.2.3", .v6 = "2001:db8::1"},
	{.name = "four.test", .v4 = "192.0.2.4"},
	{.name = "six.test", .v6 = "2001:db8::6"},
	{.name = "alias.test", .cname = "real.test", .v4 = "192.0.2.9"},
	{.name = "twice.test", .v4 = "192.0.2.1 192.0.2.1 192.0.2.2 192.0.2.1", .v6 = "2001:db8::1 2001:db8::1"},
	{.name = "empty.test"},
	{.name = "mixed.test", .v4 = "1.1.1.1 10.0.0.1 8.8.8.8", .v6 = "::1"},
	{.name = "truncated.test", .kind = ZONE_TRUNCATED, .v4 = "192.0.2.7"},
	{.name = "silent.test", .kind = ZONE_SILENT},
	{.name = "loop.test", .kind = ZONE_LOOP},
	{.name = "servfail.test", .kind = ZONE_FAILS, .rcode = 2},
	{.name = "refused.test", .kind = ZONE_FAILS, .rcode = 5},
	{.name = "many.test"}, /* addresses are made up by the server */
	{.name = "nx", .kind = ZONE_FAILS, .rcode = 3},
};

struct server {
	int udp, tcp, conn; /* conn: the one TCP connection, or -1 */
	struct event *on_udp, *on_tcp, *on_conn;
	struct addr_port at;
	int asked;         /* questions */
	char strange[256]; /* a name outside of the table, the last one */
};

struct world {
	struct loop *loop;
	struct server server;
	struct resolver *resolver;
	int waiting; /* callbacks until the loop stops */
};

struct outcome {
	struct world *world;
	struct resolve *query;
	struct outcome *cancels; /* its callback cancels this one */
	bool frees;              /* its callback frees the resolver */
	int calls;
	enum cage_status st;
	struct addr addrs[LIMIT_ANSWERS];
	size_t n;
};

/* ---- the server ---- */

struct packet {
	unsigned char bytes[PACKET];
	size_t len;
};

static void put(struct packet *p, const void *bytes, size_t n)
{
	assert_true(p->len + n <= sizeof(p->bytes));
	memcpy(p->bytes + p->len, bytes, n);
	p->len += n;
}

static void put16(struct packet *p, unsigned v)
{
	unsigned char b[2] = {(unsigned char)(v >> 8), (unsigned char)v};
	put(p, b, sizeof(b));
}

static void put_name(struct packet *p, const char *name)
{
	struct slice rest = slice_str(name);
	while (rest.len > 0) {
		struct slice label = slice_cut(&rest, '.');
		unsigned char n = (unsigned char)label.len;
		put(p, &n, 1);
		put(p, label.ptr, label.len);
	}
	put(p, "", 1);
}

/* name is an offset into the packet. */
static void put_record(struct packet *p, size_t name, unsigned type, const void *data, size_t n)
{
	put16(p, (unsigned)(0xc000 | name));
	put16(p, type);
	put16(p, 1);
	put16(p, 0);
	put16(p, 60);
	put16(p, (unsigned)n);
	put(p, data, n);
	p->bytes[7]++;
}

static void put_many(struct packet *p, unsigned type)
{
	struct addr v4 = {ADDR_V4, {192, 0, 2, 0}}, v6 = {ADDR_V6, {0x20, 0x01, 0x0d, 0xb8}};
	for (unsigned char i = 1; i <= 60; i++) {
		v4.bytes[3] = v6.bytes[15] = i;
		if (type == TYPE_A)
			put_record(p, QUESTION_AT, type, v4.bytes, 4);
		else
			put_record(p, QUESTION_AT, type, v6.bytes, 16);
	}
}

static void put_addresses(struct packet *p, size_t name, unsigned type, const char *texts)
{
	struct slice rest = slice_str(texts ? texts : "");
	while (rest.len > 0) {
		struct addr a;
		assert_true(addr_parse(slice_cut(&rest, ' '), &a));
		put_record(p, name, type, a.bytes, a.family == ADDR_V4 ? 4 : 16);
	}
}

static void put_answer(struct packet *p, const struct zone *z, unsigned type, bool over_udp)
{
	size_t name = QUESTION_AT;
	if (strcmp(z->name, "many.test") == 0)
		put_many(p, type);
	if (z->kind == ZONE_LOOP) {
		put_record(p, p->len, TYPE_A, "\1\1\1\1", 4);
		return;
	}
	if (z->kind == ZONE_TRUNCATED && over_udp) {
		p->bytes[2] |= 2;
		return;
	}
	if (z->cname) {
		struct packet target = {.len = 0};
		put_name(&target, z->cname);
		put_record(p, name, TYPE_CNAME, target.bytes, target.len);
		name = p->len - target.len;
	}
	put_addresses(p, name, type, type == TYPE_A ? z->v4 : z->v6);
}

/* Reads the question, turns p into the reply. False: silence. */
static bool serve(struct server *s, struct packet *p, bool over_udp)
{
	char name[256] = "";
	size_t at = QUESTION_AT, n = 0;
	while (p->bytes[at] != 0) {
		if (n > 0)
			name[n++] = '.';
		memcpy(name + n, p->bytes + at + 1, p->bytes[at]);
		n += p->bytes[at];
		at += 1u + p->bytes[at];
	}
	name[n] = '\0';
	unsigned type = p->bytes[at + 2];
	s->asked++;
	const struct zone *z = zones;
	while (z < zones + sizeof(zones) / sizeof(zones[0]) - 1 && strcmp(z->name, name) != 0)
		z++;
	if (strcmp(z->name, name) != 0)
		strcpy(s->strange, name);
	if (z->kind == ZONE_SILENT)
		return false;
	p->len = at + 5;
	p->bytes[2] = 0x81; /* a response, recursion desired */
	p->bytes[3] = (unsigned char)(0x80 | z->rcode);
	memset(p->bytes + 6, 0, 6); /* no records yet */
	put_answer(p, z, type, over_udp);
	return true;
}

static void server_hang_up(struct server *s)
{
	if (s->conn < 0)
		return;
	event_free(s->on_conn);
	close(s->conn);
	s->conn = -1;
}

static void on_udp(evutil_socket_t fd, short what, void *arg)
{
	(void)what;
	struct packet p = {.len = 0};
	struct sockaddr_storage from;
	socklen_t len = sizeof(from);
	ssize_t n = recvfrom(fd, p.bytes, sizeof(p.bytes), 0, (struct sockaddr *)&from, &len);
	if (n <= QUESTION_AT)
		return;
	p.len = (size_t)n;
	if (serve(arg, &p, true))
		assert_int_equal(sendto(fd, p.bytes, p.len, 0, (struct sockaddr *)&from, len), p.len);
}

/* A query over TCP comes in one piece on loopback: c-ares writes it at once. */
static void on_tcp_query(evutil_socket_t fd, short what, void *arg)
{
	(void)what;
	struct server *s = arg;
	struct packet p = {.len = 0};
	unsigned char size[2];
	if (recv(fd, size, 2, MSG_WAITALL) != 2) {
		server_hang_up(s);
		return;
	}
	p.len = (size_t)(size[0] << 8 | size[1]);
	assert_true(p.len <= sizeof(p.bytes));
	assert_int_equal(recv(fd, p.bytes, p.len, MSG_WAITALL), p.len);
	assert_true(serve(s, &p, false));
	size[0] = (unsigned char)(p.len >> 8);
	size[1] = (unsigned char)p.len;
	assert_int_equal(send(fd, size, 2, MSG_NOSIGNAL), 2);
	assert_int_equal(send(fd, p.bytes, p.len, MSG_NOSIGNAL), p.len);
}

static void on_tcp(evutil_socket_t fd, short what, void *arg)
{
	(void)what;
	struct server *s = arg;
	server_hang_up(s);
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
	if (fd < 0 || bind(fd, (struct sockaddr *)&ss, len) != 0) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	len = sizeof(ss);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&ss, &len), 0);
	assert_true(addr_from_sockaddr((struct sockaddr *)&ss, &at->addr, &at->port));
	return fd;
}

/* The TCP port must be the UDP port, and somebody else may have it: try some. */
static bool server_open(struct server *s, struct loop *l, const char *address)
{
	*s = (struct server){.udp = -1, .tcp = -1, .conn = -1};
	for (int i = 0; i < 20 && s->tcp < 0; i++) {
		if (s->udp >= 0)
			close(s->udp);
		assert_true(addr_parse(slice_str(address), &s->at.addr));
		s->at.port = 0;
		s->udp = open_socket(SOCK_DGRAM, &s->at);
		if (s->udp < 0)
			return false;
		s->tcp = open_socket(SOCK_STREAM, &s->at);
	}
	assert_true(s->tcp >= 0);
	assert_int_equal(listen(s->tcp, 8), 0);
	s->on_udp = event_new(loop_base(l), s->udp, EV_READ | EV_PERSIST, on_udp, s);
	s->on_tcp = event_new(loop_base(l), s->tcp, EV_READ | EV_PERSIST, on_tcp, s);
	event_add(s->on_udp, NULL);
	event_add(s->on_tcp, NULL);
	return true;
}

static void server_close(struct server *s)
{
	server_hang_up(s);
	event_free(s->on_udp);
	event_free(s->on_tcp);
	close(s->udp);
	close(s->tcp);
}

/* ---- helpers of the tests ---- */

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	w->loop = loop_new();
	assert_true(server_open(&w->server, w->loop, "127.0.0.1"));
	w->resolver = resolver_new(w->loop, &w->server.at, 1);
	assert_non_null(w->resolver);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;
	resolver_free(&w->resolver);
	server_close(&w->server);
	loop_free(&w->loop);
	free(w);
	return 0;
}

static void on_resolved(void *arg, enum cage_status st, struct addr *addrs, size_t n)
{
	struct outcome *o = arg;
	o->calls++;
	o->st = st;
	o->n = n;
	for (size_t i = 0; i < n; i++)
		o->addrs[i] = addrs[i];
	resolve_cancel(&o->query); /* of no effect in its own callback */
	if (o->cancels)
		resolve_cancel(&o->cancels->query);
	if (o->frees)
		resolver_free(&o->world->resolver);
	if (--o->world->waiting == 0)
		loop_stop(o->world->loop);
}

static void ask(struct world *w, struct outcome *o, struct slice name)
{
	o->world = w;
	o->calls = 0;
	w->waiting++;
	o->query = resolver_query(w->resolver, name, on_resolved, o);
	assert_non_null(o->query);
	assert_int_equal(o->calls, 0);
}

static struct outcome resolve_now(struct world *w, const char *name)
{
	struct outcome o = {0};
	ask(w, &o, slice_str(name));
	loop_run(w->loop);
	assert_int_equal(o.calls, 1);
	return o;
}

static void check(struct world *w, const char *name, const char *want)
{
	struct outcome o = resolve_now(w, name);
	char text[ADDR_TEXT];
	struct slice rest = slice_str(want);
	assert_int_equal(o.st, CAGE_OK);
	for (size_t i = 0; i < o.n; i++) {
		struct slice next = slice_cut(&rest, ' ');
		struct slice got = addr_format(&o.addrs[i], text);
		if (!slice_eq(got, next))
			fail_msg("%s: address %zu is %s", name, i, text);
	}
	assert_int_equal(rest.len, 0);
}

static void check_fails(struct world *w, const char *name)
{
	struct outcome o = resolve_now(w, name);
	if (o.st != CAGE_ESYS || o.n != 0)
		fail_msg("%s: status %d", name, (int)o.st);
}

/* ---- tests ---- */

static void families_are_interleaved(void **state)
{
	check(*state, "both.test", "2001:db8::1 192.0.2.1 192.0.2.2 192.0.2.3");
	check(*state, "four.test", "192.0.2.4");
	check(*state, "six.test", "2001:db8::6");
	check(*state, "twice.test", "2001:db8::1 192.0.2.1 192.0.2.2");
}

static void t17_alias_truncation_and_many_records(void **state)
{
	check(*state, "alias.test", "192.0.2.9");
	check(*state, "truncated.test", "192.0.2.7");
	check(*state, "many.test",
	      "2001:db8::1 192.0.2.1 2001:db8::2 192.0.2.2 2001:db8::3 192.0.2.3 2001:db8::4 192.0.2.4 "
	      "2001:db8::5 192.0.2.5 2001:db8::6 192.0.2.6 2001:db8::7 192.0.2.7 2001:db8::8 192.0.2.8");
}

static void failures(void **state)
{
	check_fails(*state, "missing.test");
	check_fails(*state, "empty.test");
	check_fails(*state, "servfail.test");
	check_fails(*state, "refused.test");
	check_fails(*state, "loop.test");
}

/* Our own lack is not the name's fault. */
static void without_descriptors(void **state)
{
	struct world *w = *state;
	struct rlimit was, none;
	check(w, "four.test", "192.0.2.4");
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = was;
	int lowest_free = dup(STDERR_FILENO);
	assert_true(lowest_free >= 0 && close(lowest_free) == 0);
	none.rlim_cur = (rlim_t)lowest_free;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	struct outcome o = resolve_now(w, "four.test");
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_int_equal(o.st, CAGE_ELIMIT);
	check(w, "four.test", "192.0.2.4");
}

static void impossible_names_are_not_asked_for(void **state)
{
	struct world *w = *state;
	char name[LIMIT_HOST + 1];
	struct outcome o[3] = {0};
	memset(name, 'a', sizeof(name));
	ask(w, &o[0], slice_of(name, sizeof(name)));
	ask(w, &o[1], SLICE("four.test\0.evil.test"));
	ask(w, &o[2], SLICE_NONE);
	loop_run(w->loop);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(o[i].st, CAGE_ESYS);
	assert_int_equal(w->server.asked, 0);
}

/* c-ares answers a literal inside the call; the caller still hears of it later. */
static void answer_within_the_call_is_put_off(void **state)
{
	check(*state, "127.0.0.1", "127.0.0.1");
	check(*state, "127.0.0.1", "127.0.0.1");
}

/* Only the name itself is ever asked for: the query is a message to whoever runs the other name's server. */
static void t14_no_search_domain_and_no_alias(void **state)
{
	struct world *w = *state;
	char path[] = "/tmp/cage-test-XXXXXX";
	int fd = mkstemp(path);
	assert_int_equal(write(fd, "single four.test\n", 17), 17);
	close(fd);
	setenv("LOCALDOMAIN", "evil.test", 1);
	setenv("HOSTALIASES", path, 1);
	resolver_free(&w->resolver);
	w->resolver = resolver_new(w->loop, &w->server.at, 1);
	unsetenv("LOCALDOMAIN");
	check_fails(w, "missing.test");
	assert_string_equal(w->server.strange, "missing.test");
	check_fails(w, "single");
	assert_string_equal(w->server.strange, "single");
	unsetenv("HOSTALIASES");
	unlink(path);
}

static void t18_each_answer_is_new_and_vetted(void **state)
{
	struct world *w = *state;
	struct vet v = {0};
	enum reason why;
	struct outcome o = resolve_now(w, "mixed.test");
	assert_int_equal(o.n, 4);
	assert_int_equal(vet_addresses(&v, 443, o.addrs, o.n, &why), 2);

	struct zone *four = &zones[1];
	four->v4 = "8.8.8.8";
	o = resolve_now(w, "four.test");
	assert_int_equal(vet_addresses(&v, 443, o.addrs, o.n, &why), 1);
	four->v4 = "127.0.0.1";
	o = resolve_now(w, "four.test");
	assert_int_equal(vet_addresses(&v, 443, o.addrs, o.n, &why), 0);
	assert_int_equal(why, REASON_ADDRESS_PRIVATE);
	four->v4 = "192.0.2.4";
}

static void given_servers_only(void **state)
{
	struct world *w = *state;
	check_fails(w, "localhost"); /* the hosts file would know it */
	assert_int_equal(w->server.asked, 0);
	resolver_free(&w->resolver);
	w->resolver = resolver_new(w->loop, NULL, 0);
	struct outcome o = resolve_now(w, "localhost");
	struct vet v = {0};
	enum reason why;
	assert_int_equal(o.st, CAGE_OK);
	assert_int_equal(vet_addresses(&v, 443, o.addrs, o.n, &why), 0);
}

static void second_server_answers_for_a_dead_first(void **state)
{
	struct world *w = *state;
	struct addr_port servers[2] = {{w->server.at.addr, 0}, w->server.at};
	close(open_socket(SOCK_DGRAM, &servers[0])); /* a port where nobody is */
	resolver_free(&w->resolver);
	w->resolver = resolver_new(w->loop, servers, 2);
	check(w, "four.test", "192.0.2.4");
}

static void server_over_ipv6(void **state)
{
	struct world *w = *state;
	struct server six;
	if (!server_open(&six, w->loop, "::1")) {
		print_message("SKIPPED: this machine has no IPv6 loopback\n");
		skip();
	}
	resolver_free(&w->resolver);
	w->resolver = resolver_new(w->loop, &six.at, 1);
	check(w, "both.test", "2001:db8::1 192.0.2.1 192.0.2.2 192.0.2.3");
	assert_int_equal(w->server.asked, 0);
	server_close(&six);
}

static void many_at_once(void **state)
{
	struct world *w = *state;
	struct outcome o[100] = {0};
	for (size_t i = 0; i < 100; i++)
		ask(w, &o[i], i % 2 ? SLICE("both.test") : SLICE("missing.test"));
	loop_run(w->loop);
	for (size_t i = 0; i < 100; i++) {
		assert_int_equal(o[i].calls, 1);
		assert_int_equal(o[i].st, i % 2 ? CAGE_OK : CAGE_ESYS);
	}
}

static void cancel(void **state)
{
	struct world *w = *state;
	struct outcome gone[3] = {0}, stays = {0};
	ask(w, &gone[0], SLICE("silent.test"));
	ask(w, &gone[1], SLICE("four.test"));
	ask(w, &gone[2], SLICE("127.0.0.1")); /* answered already, not yet reported */
	ask(w, &stays, SLICE("both.test"));
	for (size_t i = 0; i < 3; i++)
		resolve_cancel(&gone[i].query);
	resolve_cancel(&gone[0].query); /* twice does no harm */
	w->waiting -= 3;
	loop_run(w->loop);
	assert_int_equal(stays.calls, 1);
	for (size_t i = 0; i < 3; i++) {
		assert_null(gone[i].query);
		assert_int_equal(gone[i].calls, 0);
	}
}

static void cancel_from_the_callback_of_another(void **state)
{
	struct world *w = *state;
	struct outcome first = {0}, silent = {0}, literals[2] = {0};
	ask(w, &silent, SLICE("silent.test"));
	first.cancels = &silent;
	ask(w, &first, SLICE("four.test"));
	w->waiting--;
	loop_run(w->loop);
	assert_int_equal(first.calls, 1);
	assert_int_equal(silent.calls, 0);

	/* Both are answered; the first to be told takes the answer from the other. */
	literals[0].cancels = &literals[1];
	ask(w, &literals[0], SLICE("127.0.0.1"));
	ask(w, &literals[1], SLICE("127.0.0.2"));
	w->waiting--;
	loop_run(w->loop);
	assert_int_equal(literals[0].calls, 1);
	assert_int_equal(literals[1].calls, 0);
}

static void free_ends_what_is_under_way(void **state)
{
	struct world *w = *state;
	struct outcome silent = {0}, fresh = {0}, answered = {0}, cancelled = {0};
	ask(w, &silent, SLICE("silent.test"));
	ask(w, &fresh, SLICE("both.test"));
	ask(w, &answered, SLICE("127.0.0.1"));
	ask(w, &cancelled, SLICE("silent.test"));
	resolve_cancel(&cancelled.query);
	w->waiting--;
	resolver_free(&w->resolver);
	assert_null(w->resolver);
	assert_int_equal(silent.calls + fresh.calls + answered.calls, 3);
	assert_int_equal(silent.st, CAGE_ESYS);
	assert_int_equal(fresh.st, CAGE_ESYS);
	assert_int_equal(answered.st, CAGE_ESYS);
	assert_int_equal(cancelled.calls, 0);
	resolver_free(&w->resolver);
}

static void free_from_a_callback(void **state)
{
	struct world *w = *state;
	struct outcome first = {.frees = true}, others[3] = {0};
	ask(w, &first, SLICE("127.0.0.1"));
	ask(w, &others[0], SLICE("silent.test"));
	ask(w, &others[1], SLICE("127.0.0.2"));
	ask(w, &others[2], SLICE("four.test"));
	others[2].cancels = &others[0]; /* while the resolver is being freed */
	w->waiting--;
	loop_run(w->loop);
	assert_int_equal(first.st, CAGE_OK);
	assert_int_equal(others[0].calls, 0);
	assert_int_equal(others[1].st, CAGE_ESYS);
	assert_int_equal(others[2].st, CAGE_ESYS);
}

static void times_out_and_goes_on(void **state)
{
	struct world *w = *state;
	uint64_t before = clock_mono_us();
	struct outcome o = resolve_now(w, "silent.test");
	uint64_t took_ms = (clock_mono_us() - before) / 1000;
	assert_int_equal(o.st, CAGE_ETIMEOUT);
	assert_true(w->server.asked >= 4); /* both families were asked for again */
	assert_true(took_ms >= LIMIT_RESOLVE_MS - 50 && took_ms < LIMIT_RESOLVE_MS + 1500);
	check(w, "four.test", "192.0.2.4");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(families_are_interleaved),
		TEST(t17_alias_truncation_and_many_records),
		TEST(failures),
		TEST(without_descriptors),
		TEST(impossible_names_are_not_asked_for),
		TEST(answer_within_the_call_is_put_off),
		TEST(t14_no_search_domain_and_no_alias),
		TEST(t18_each_answer_is_new_and_vetted),
		TEST(given_servers_only),
		TEST(second_server_answers_for_a_dead_first),
		TEST(server_over_ipv6),
		TEST(many_at_once),
		TEST(cancel),
		TEST(cancel_from_the_callback_of_another),
		TEST(free_ends_what_is_under_way),
		TEST(free_from_a_callback),
		TEST(times_out_and_goes_on),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
