/* From a packet to a decision, with a server that only listens and an upstream that answers when it is told to: what is asked,
 * what is answered, and what stands in the log. */
#include "dns/query.h"

#include <sys/socket.h>
#include <sys/un.h>

#include "core/base/clock.h"
#include "core/net/listener.h"
#include "tests/unit/policy/fixture.h"

#define RULES                                                      \
	HEAD "rules:\n"                                            \
	     "  - {id: site, hosts: [site.test, '*.site.test']}\n" \
	     "  - {id: no, action: deny, hosts: [no.site.test]}\n"

#define CANARY "canary-word-7.site.test"
#define HIDDEN "\"host\":\"[redacted]\""

#define WITH_CANARY(action) \
	RULES "inspectors: {canary: {strings: [canary-word-7], action: " action "}, name: {action: off}}\n"

#define MANY 100

static struct {
	char answer[LIMIT_DNS_TCP];
	size_t len, n_replies, n_dropped;
	struct {
		dns_lookup_cb cb;
		void *arg;
	} asked[MANY];
	size_t n_asked;
	bool is_full;
} seen;

/* ---- in place of server.c and upstream.c ---- */

void dns_reply(const struct dns_client *c, struct slice answer)
{
	(void)c;
	assert_true(answer.len <= sizeof(seen.answer));
	memcpy(seen.answer, answer.ptr, answer.len);
	seen.len = answer.len;
	seen.n_replies++;
}

void dns_drop(const struct dns_client *c)
{
	(void)c;
	seen.n_dropped++;
}

struct dns_lookup *dns_upstream_query(struct dns_upstream *u, const struct dns_name *name, uint16_t type,
				      dns_lookup_cb cb, void *arg)
{
	(void)u, (void)name, (void)type;
	if (seen.is_full)
		return NULL;
	assert_true(seen.n_asked < MANY);
	seen.asked[seen.n_asked].cb = cb;
	seen.asked[seen.n_asked++].arg = arg;
	return (struct dns_lookup *)(void *)&seen; /* nobody looks inside */
}

bool dns_upstream_has_room(const struct dns_upstream *u)
{
	(void)u;
	return !seen.is_full;
}

/* ---- a worker without processes ---- */

struct rig {
	struct fixture f;
	struct worker_config config;
	struct worker *worker;
	struct dns_metrics *metrics;
	uint64_t at;             /* in the ring */
	struct listen_spec spec; /* of the bindings, when there are some */
	int listen_fd;
};

static struct rig rig_new(const char *yaml)
{
	static const unsigned char key[CHAIN_KEY] = {1};
	struct rig r = {.f = fixture_inspected(yaml, chain_read_policy)};
	memset(&seen, 0, sizeof(seen));
	r.metrics = calloc(1, sizeof(*r.metrics));
	r.worker = calloc(1, sizeof(*r.worker));
	r.config =
		(struct worker_config){.wake = -1,
				       .ring = audit_ring_init(aligned_alloc(64, (audit_ring_size() + 63) / 64 * 64)),
				       .sandbox = SLICE("box"),
				       .ledger = ledger_init(calloc(1, ledger_size())),
				       .fingerprint_key = key};
	memset(r.config.ring, 0, audit_ring_size());
	audit_ring_set_available(r.config.ring, true);
	struct worker *w = r.worker;
	w->metrics = r.metrics;
	w->next_id = 1;
	w->policy = r.f.policy;
	w->again_last = &w->again;
	w->loop = loop_new();
	w->cache = dns_cache_new(10, KIB(10));
	w->waiting = dns_waiting_new(10, 2);
	w->tunnel = dns_tunnel_new(w->policy, r.config.ledger, key);
	arena_init(&w->arena, KIB(8));
	assert_true(w->loop && w->cache && w->waiting && w->tunnel);
	return r;
}

/* The same with a socket on which proxies are told. */
static struct rig rig_with_bindings(const char *yaml)
{
	struct rig r = rig_new(yaml);
	r.spec.kind = LISTEN_UNIX;
	snprintf(r.spec.path, sizeof(r.spec.path), "%s/s", r.f.dir);
	r.listen_fd = listen_open(&r.spec, false);
	assert_true(r.listen_fd >= 0);
	r.worker->bindings = dns_bindings_new(r.worker->loop, r.listen_fd, 7);
	assert_non_null(r.worker->bindings);
	return r;
}

static void rig_free(struct rig *r)
{
	struct worker *w = r->worker;
	if (w->bindings)
		close(r->listen_fd);
	dns_bindings_free(&w->bindings);
	dns_tunnel_free(&w->tunnel);
	dns_waiting_free(&w->waiting);
	dns_cache_free(&w->cache);
	arena_free(&w->arena);
	loop_free(&w->loop);
	free(w);
	free(r->metrics);
	free(r->config.ledger);
	free(r->config.ring);
	fixture_free(&r->f);
}

/* A question for that name; its length. */
static size_t question(char *out, const char *name, uint16_t type)
{
	static const char head[DNS_HEADER] = {0x12, 0x34, 1, 0, 0, 1};
	struct dns_name n;
	assert_true(dns_name_set(&n, slice_str(name)));
	memcpy(out, head, sizeof(head));
	size_t len = sizeof(head) + dns_name_write(&n, out + sizeof(head), DNS_NAME_WIRE);
	out[len++] = (char)(type >> 8);
	out[len++] = (char)type;
	out[len++] = 0;
	out[len++] = DNS_CLASS_IN;
	return len;
}

static void ask(struct rig *r, const char *name, uint16_t type)
{
	static const struct dns_client client = {.is_udp = true, .is_verified = true};
	char packet[512];
	r->worker->config = &r->config; /* the rig may have been copied */
	query_arrived(r->worker, &client, slice_of(packet, question(packet, name, type)));
}

/* The upstream says that name has this address. */
static void answer(size_t i, const char *name, const char addr[4])
{
	char packet[512];
	static const char record[] = {(char)0xc0, DNS_HEADER, 0, DNS_TYPE_A, 0, DNS_CLASS_IN, 0, 0, 1, 0, 0, 4};
	size_t len = question(packet, name, DNS_TYPE_A);
	packet[2] = (char)0x81;
	packet[7] = 1;
	memcpy(packet + len, record, sizeof(record));
	memcpy(packet + len + sizeof(record), addr, 4);
	seen.asked[i].cb(seen.asked[i].arg, CAGE_OK, slice_of(packet, len + sizeof(record) + 4));
}

static enum dns_rcode rcode(void)
{
	return seen.answer[3] & 15;
}

static unsigned n_records(void)
{
	return (unsigned char)seen.answer[7];
}

static struct slice next_line(struct rig *r)
{
	struct audit_record rec;
	bool broken = false;
	assert_true(audit_ring_next(r->config.ring, &r->at, &rec, &broken) && !broken);
	return rec.body;
}

/* The next line has these words, in this order. */
static void expect_line(struct rig *r, const char *first, const char *second)
{
	struct slice line = next_line(r);
	const char *found = memmem(line.ptr, line.len, first, strlen(first));
	if (!found || !memmem(found, (size_t)(line.ptr + line.len - found), second, strlen(second)))
		fail_msg("%s ... %s in %.*s", first, second, SLICE_FMT(line));
}

static void expect_no_line(struct rig *r)
{
	struct audit_record rec;
	bool broken = false;
	assert_false(audit_ring_next(r->config.ring, &r->at, &rec, &broken));
}

/* ---- tests ---- */

static void t14_what_is_denied_stays_here(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES);
	ask(&r, "evil.test", DNS_TYPE_A);
	assert_int_equal(rcode(), DNS_RCODE_NOERROR);
	assert_memory_equal(seen.answer + seen.len - 4, "\300\0\2\1", 4); /* 192.0.2.1 */
	expect_line(&r, "\"reason\":\"host.not_allowed\"", "\"host\":\"evil.test\",\"address\":\"192.0.2.1\"");
	ask(&r, "no.site.test", DNS_TYPE_AAAA);
	expect_line(&r, "\"reason\":\"rule.denied\"", "\"rule\":\"no\",\"method\":\"AAAA\"");
	ask(&r, "evil.test", DNS_TYPE_HTTPS);
	assert_int_equal(n_records(), 0);
	expect_line(&r, "\"reason\":\"host.not_allowed\"", "\"method\":\"HTTPS\"");
	expect_no_line(&r);
	assert_int_equal(seen.n_asked, 0);
	assert_int_equal(seen.n_replies, 3);
	rig_free(&r);
}

static void t19_types_that_are_not_served(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES);
	static const uint16_t types[] = {DNS_TYPE_TXT, DNS_TYPE_ANY, DNS_TYPE_NULL, DNS_TYPE_AXFR, DNS_TYPE_IXFR};
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		ask(&r, "site.test", types[i]);
		assert_int_equal(rcode(), DNS_RCODE_REFUSED);
		expect_line(&r, "\"decision\":\"block\"", "\"reason\":\"query.type\"");
	}
	assert_int_equal(seen.n_asked, 0);
	rig_free(&r);
}

static void logged_before_it_leaves(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES);
	ask(&r, "api.site.test", DNS_TYPE_A);
	assert_int_equal(seen.n_asked, 1);
	assert_int_equal(seen.n_replies, 0);
	expect_line(&r, "\"txn\":\"0000000000000001\",\"decision\":\"allow\"", "\"host\":\"api.site.test\"");
	answer(0, "api.site.test", "\24\0\0\7");
	assert_int_equal(n_records(), 1);
	ask(&r, "api.site.test", DNS_TYPE_A); /* from the cache */
	assert_int_equal(seen.n_asked, 1);
	assert_int_equal(seen.n_replies, 2);
	expect_line(&r, "\"decision\":\"allow\"", "\"address\":\"20.0.0.7\"");
	expect_no_line(&r);
	rig_free(&r);
}

static void t18_a_private_answer_is_refused(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES);
	ask(&r, "api.site.test", DNS_TYPE_A);
	answer(0, "api.site.test", "\12\0\0\1");
	assert_memory_equal(seen.answer + seen.len - 4, "\300\0\2\1", 4);
	expect_line(&r, "\"decision\":\"allow\"", "");
	expect_line(&r, "\"txn\":\"0000000000000001\",\"decision\":\"block\"", "\"reason\":\"address.private\"");
	rig_free(&r);
}

/* A question that leaves each time that it is asked would be a way out, one bit each. */
static void t16_what_failed_does_not_leave_again(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES);
	ask(&r, "site.test", DNS_TYPE_A);
	answer(0, "site.test", "\12\0\0\1");
	ask(&r, "site.test", DNS_TYPE_AAAA);
	seen.asked[1].cb(seen.asked[1].arg, CAGE_ESYS, SLICE_NONE);
	for (int i = 0; i < 4; i++)
		(void)next_line(&r);
	for (int i = 0; i < 20; i++) {
		ask(&r, "site.test", DNS_TYPE_A);
		assert_memory_equal(seen.answer + seen.len - 4, "\300\0\2\1", 4);
		expect_line(&r, "\"decision\":\"block\"", "\"reason\":\"address.private\"");
		ask(&r, "site.test", DNS_TYPE_AAAA);
		assert_int_equal(rcode(), DNS_RCODE_SERVFAIL);
		expect_line(&r, "\"decision\":\"error\"", "\"reason\":\"upstream.unreachable\"");
	}
	assert_int_equal(seen.n_asked, 2);
	expect_no_line(&r);
	rig_free(&r);
}

static void clients_wait_together_up_to_a_bound(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES);
	for (size_t i = 0; i < 3; i++) /* the third is one too many */
		ask(&r, "api.site.test", DNS_TYPE_A);
	assert_int_equal(seen.n_asked, 1);
	assert_int_equal(seen.n_replies, 1);
	assert_int_equal(rcode(), DNS_RCODE_SERVFAIL);
	answer(0, "api.site.test", "\24\0\0\7");
	assert_int_equal(seen.n_replies, 3);
	assert_int_equal(rcode(), DNS_RCODE_NOERROR);
	for (size_t i = 0; i < 2; i++)
		expect_line(&r, "\"decision\":\"allow\"", "");
	expect_line(&r, "\"decision\":\"error\"", "\"reason\":\"limit.connections\"");
	expect_no_line(&r);
	rig_free(&r);
}

/* Nor is what finds no room: only what leaves is seen outside. */
static void t16_who_waits_for_the_same_is_not_counted(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES "dns: {tunnel: {rate: 2/d}}\n");
	for (size_t i = 0; i < 4; i++) /* two of them wait */
		ask(&r, "api.site.test", DNS_TYPE_A);
	for (size_t i = 0; i < 2; i++)
		expect_line(&r, "\"decision\":\"allow\"", "");
	for (size_t i = 0; i < 2; i++)
		expect_line(&r, "\"decision\":\"error\"", "\"reason\":\"limit.connections\"");
	seen.is_full = true;
	ask(&r, "b.site.test", DNS_TYPE_A);
	expect_line(&r, "\"decision\":\"error\"", "\"reason\":\"limit.connections\"");
	seen.is_full = false;
	ask(&r, "b.site.test", DNS_TYPE_A);
	expect_line(&r, "\"decision\":\"allow\"", "\"host\":\"b.site.test\"");
	ask(&r, "c.site.test", DNS_TYPE_A);
	expect_line(&r, "\"decision\":\"block\"", "\"reason\":\"limit.rate\"");
	expect_no_line(&r);
	assert_int_equal(seen.n_asked, 2);
	answer(0, "api.site.test", "\24\0\0\7");
	answer(1, "b.site.test", "\24\0\0\7");
	rig_free(&r);
}

/* The inspectors look at every one, also at what does not leave. */
static void t33_who_waits_for_the_same_is_looked_at(void **state)
{
	(void)state;
	struct rig r = rig_new(WITH_CANARY("flag"));
	for (size_t i = 0; i < 2; i++) {
		ask(&r, CANARY, DNS_TYPE_A);
		expect_line(&r, "\"decision\":\"flag\"", HIDDEN);
	}
	ask(&r, CANARY, DNS_TYPE_A);
	expect_line(&r, "\"reason\":\"limit.connections\"", HIDDEN);
	expect_no_line(&r);
	answer(0, CANARY, "\24\0\0\7");
	rig_free(&r);
}

static void an_upstream_that_fails(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES);
	seen.is_full = true;
	ask(&r, "api.site.test", DNS_TYPE_A);
	assert_int_equal(rcode(), DNS_RCODE_SERVFAIL);
	expect_line(&r, "\"decision\":\"error\"", "\"reason\":\"limit.connections\"");
	seen.is_full = false;
	static const struct {
		enum cage_status st;
		const char *reason;
	} ends[] = {{CAGE_ETIMEOUT, "\"upstream.timeout\""},
		    {CAGE_EVERIFY, "\"upstream.unverified\""},
		    {CAGE_EPROTO, "\"upstream.malformed\""},
		    {CAGE_ESYS, "\"upstream.unreachable\""}};
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		static const char *const names[] = {"a.site.test", "b.site.test", "c.site.test", "d.site.test"};
		ask(&r, names[i], DNS_TYPE_A);
		seen.asked[i].cb(seen.asked[i].arg, ends[i].st, SLICE_NONE);
		assert_int_equal(rcode(), DNS_RCODE_SERVFAIL);
		expect_line(&r, "\"decision\":\"allow\"", "");
		expect_line(&r, "\"decision\":\"error\"", ends[i].reason);
	}
	rig_free(&r);
}

static void no_log_no_question(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES);
	audit_ring_set_available(r.config.ring, false);
	ask(&r, "api.site.test", DNS_TYPE_A);
	assert_int_equal(rcode(), DNS_RCODE_SERVFAIL);
	ask(&r, "evil.test", DNS_TYPE_A);
	assert_int_equal(rcode(), DNS_RCODE_SERVFAIL);
	assert_int_equal(seen.n_asked, 0);
	expect_no_line(&r);
	rig_free(&r);
}

/* What comes over TCP leaves half of the log's room to others; where nothing can be written it is told so. */
static void tcp_leaves_room_in_the_log(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES);
	ask(&r, "evil.test", DNS_TYPE_A);
	for (size_t i = 0; i < LIMIT_LOG_RING / 100 && query_has_room(r.worker); i++)
		ask(&r, "evil.test", DNS_TYPE_A);
	assert_false(query_has_room(r.worker));
	assert_in_range(audit_ring_pending(r.config.ring), LIMIT_LOG_RING / 2, LIMIT_LOG_RING / 2 + KIB(4));
	assert_true(audit_is_available(r.config.ring));
	audit_ring_set_available(r.config.ring, false);
	assert_true(query_has_room(r.worker));
	rig_free(&r);
}

static void a_new_policy_decides_anew(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES);
	ask(&r, "api.site.test", DNS_TYPE_A);
	ask(&r, "api.site.test", DNS_TYPE_A);
	expect_line(&r, "\"decision\":\"allow\"", "");
	expect_line(&r, "\"decision\":\"allow\"", "");
	r.worker->state = WORKER_CHANGING; /* the old upstream ends what is under way */
	seen.asked[0].cb(seen.asked[0].arg, CAGE_ESYS, SLICE_NONE);
	assert_int_equal(seen.n_replies, 0);
	expect_no_line(&r);
	r.worker->state = WORKER_SERVING;
	query_ask_again(r.worker);
	assert_int_equal(seen.n_asked, 2); /* both wait for it */
	expect_line(&r, "\"decision\":\"allow\"", "");
	expect_line(&r, "\"decision\":\"allow\"", "");
	answer(1, "api.site.test", "\24\0\0\7");
	assert_int_equal(seen.n_replies, 2);
	rig_free(&r);
}

static void broken_packets(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES);
	static const struct dns_client client = {.is_udp = true};
	char packet[512];
	size_t len = question(packet, "site.test", DNS_TYPE_A);
	ask(&r, "evil.test", DNS_TYPE_A);
	expect_line(&r, "\"decision\":\"block\"", "");
	query_arrived(r.worker, &client, slice_of(packet, len - 1));
	assert_int_equal(rcode(), DNS_RCODE_FORMERR);
	assert_true(seen.len <= len);
	expect_line(&r, "\"decision\":\"block\"", "\"reason\":\"query.malformed\"");
	packet[2] = (char)0x81; /* an answer */
	query_arrived(r.worker, &client, slice_of(packet, len));
	assert_int_equal(seen.n_dropped, 1);
	expect_no_line(&r);
	rig_free(&r);
}

/* ---- names with a secret in them are not shown */

static void t34_a_service_is_looked_at_as_an_address_is(void **state)
{
	(void)state;
	struct rig r = rig_new(WITH_CANARY("block"));
	static const uint16_t types[] = {DNS_TYPE_A, DNS_TYPE_HTTPS, DNS_TYPE_SVCB};
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		ask(&r, CANARY, types[i]);
		expect_line(&r, "\"reason\":\"canary.detected\"", HIDDEN);
	}
	ask(&r, "www.site.test", DNS_TYPE_HTTPS);
	expect_line(&r, "\"decision\":\"allow\"", "\"host\":\"www.site.test\"");
	assert_int_equal(rcode(), DNS_RCODE_NOERROR);
	assert_int_equal(n_records(), 0);
	expect_no_line(&r);
	assert_int_equal(seen.n_asked, 0);
	rig_free(&r);
}

static void t16_a_service_is_looked_at_once(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES "dns: {tunnel: {rate: 2/d}}\n");
	for (int i = 0; i < 10; i++) {
		ask(&r, "www.site.test", i % 2 ? DNS_TYPE_HTTPS : DNS_TYPE_SVCB);
		expect_line(&r, "\"decision\":\"allow\"", "");
	}
	ask(&r, "other.site.test", DNS_TYPE_HTTPS);
	expect_line(&r, "\"decision\":\"allow\"", "");
	ask(&r, "third.site.test", DNS_TYPE_HTTPS);
	expect_line(&r, "\"decision\":\"block\"", "\"reason\":\"limit.rate\"");
	rig_free(&r);
}

static void t34_an_answer_that_is_kept(void **state)
{
	(void)state;
	struct rig r = rig_new(WITH_CANARY("flag"));
	ask(&r, CANARY, DNS_TYPE_A);
	expect_line(&r, "\"decision\":\"flag\"", HIDDEN);
	answer(0, CANARY, "\24\0\0\7");
	ask(&r, CANARY, DNS_TYPE_A);
	expect_line(&r, HIDDEN, "\"address\":\"20.0.0.7\"");
	ask(&r, CANARY, DNS_TYPE_HTTPS);
	expect_line(&r, "\"decision\":\"flag\"", HIDDEN);
	ask(&r, CANARY, DNS_TYPE_HTTPS);
	expect_line(&r, "\"decision\":\"allow\"", HIDDEN);
	assert_int_equal(seen.n_asked, 1);
	rig_free(&r);
}

static void t34_an_address_that_was_given(void **state)
{
	(void)state;
	struct rig r = rig_with_bindings(WITH_CANARY("flag") "dns: {mode: synthetic}\n");
	ask(&r, CANARY, DNS_TYPE_A);
	expect_line(&r, "\"decision\":\"flag\"", HIDDEN);
	assert_int_equal(n_records(), 1);
	ask(&r, CANARY, DNS_TYPE_A);
	expect_line(&r, "\"decision\":\"allow\"", HIDDEN);
	ask(&r, CANARY, DNS_TYPE_AAAA);
	expect_line(&r, "\"decision\":\"allow\"", HIDDEN);
	rig_free(&r);
}

/* Of a version that nobody knows: the question is good. */
static void t34_a_query_that_is_broken(void **state)
{
	(void)state;
	struct rig r = rig_new(WITH_CANARY("block"));
	static const struct dns_client client = {.is_udp = true};
	static const char opt[] = {0, 0, DNS_TYPE_OPT, 4, (char)0xd0, 0, 1, 0, 0, 0, 0};
	static const char *const names[] = {CANARY, "canary-word-7.evil.test"};
	for (size_t i = 0; i < 2; i++) {
		char packet[512];
		size_t len = question(packet, names[i], DNS_TYPE_A);
		packet[11] = 1;
		memcpy(packet + len, opt, sizeof(opt));
		r.worker->config = &r.config;
		query_arrived(r.worker, &client, slice_of(packet, len + sizeof(opt)));
		expect_line(&r, "\"reason\":\"query.malformed\"", HIDDEN);
	}
	rig_free(&r);
}

/* ---- nothing outlives the policy and the rule that it was judged by */

static void a_given_address_is_looked_at_under_each_policy(void **state)
{
	(void)state;
	struct rig r = rig_with_bindings(RULES "dns: {mode: synthetic}\n");
	struct rig tight = rig_new(WITH_CANARY("block") "dns: {mode: synthetic}\n");
	struct dns_tunnel *before = r.worker->tunnel;
	ask(&r, CANARY, DNS_TYPE_A);
	expect_line(&r, "\"decision\":\"allow\"", "\"address\":\"100.");
	tight.f.policy->gen = r.f.policy->gen + 1;
	r.worker->policy = tight.f.policy;
	r.worker->tunnel = tight.worker->tunnel;
	dns_cache_set_generation(r.worker->cache, tight.f.policy->gen);
	ask(&r, CANARY, DNS_TYPE_A);
	expect_line(&r, "\"reason\":\"canary.detected\"", HIDDEN);
	r.worker->tunnel = before;
	rig_free(&r);
	rig_free(&tight);
}

/* The life that proxies are told, of the first binding. */
static uint32_t told_life(struct rig *r, int proxy)
{
	char buf[1024];
	struct binding b;
	size_t len = 0, hello = BINDING_HELLO.len;
	for (int i = 0; i < 100 && len <= hello; i++) {
		ssize_t n = recv(proxy, buf + len, sizeof(buf) - len, MSG_DONTWAIT);
		len += n > 0 ? (size_t)n : 0;
		struct timeval soon = loop_ms(5);
		event_base_loopexit(loop_base(r->worker->loop), &soon);
		loop_once(r->worker->loop);
	}
	assert_true(len > hello);
	struct slice input = slice_from(slice_of(buf, len), hello);
	assert_int_equal(binding_read(&input, &b), CAGE_OK);
	return b.life_s;
}

static int connect_proxy(struct rig *r)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	snprintf(at.sun_path, sizeof(at.sun_path), "%s", r->spec.path);
	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

static uint32_t answered_ttl(void)
{
	const unsigned char *p = (const unsigned char *)seen.answer + seen.len - 10; /* before the length and 4 bytes */
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* The rule that permits a private address ends before the answer would; a wider one without addresses goes on. */
static void t18_an_answer_ends_with_its_rule(void **state)
{
	(void)state;
	char yaml[512], until[CLOCK_TEXT + 1] = "";
	clock_format(clock_wall_us() + 100 * 1000000ull, until);
	snprintf(yaml, sizeof(yaml),
		 HEAD "rules:\n"
		      "  - {id: wide, hosts: ['*.site.test']}\n"
		      "  - {id: inside, hosts: [in.site.test], addresses: [10.0.0.0/8], expires: '%.19sZ'}\n"
		      "dns: {ttl: {min: 30m, max: 1h}}\n",
		 until);
	struct rig r = rig_with_bindings(yaml);
	int proxy = connect_proxy(&r);
	ask(&r, "in.site.test", DNS_TYPE_A);
	expect_line(&r, "\"decision\":\"allow\"", "\"rule\":\"inside\"");
	answer(0, "in.site.test", "\12\0\0\1");
	assert_in_range(answered_ttl(), 1, 100);
	ask(&r, "in.site.test", DNS_TYPE_A); /* from the cache */
	assert_int_equal(seen.n_asked, 1);
	assert_in_range(answered_ttl(), 1, 100);
	assert_in_range(told_life(&r, proxy), 1, 100);
	ask(&r, "other.site.test", DNS_TYPE_A);
	answer(1, "other.site.test", "\24\0\0\7");
	assert_int_equal(answered_ttl(), 1800);
	close(proxy);
	rig_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t14_what_is_denied_stays_here),
		cmocka_unit_test(t19_types_that_are_not_served),
		cmocka_unit_test(logged_before_it_leaves),
		cmocka_unit_test(t18_a_private_answer_is_refused),
		cmocka_unit_test(t16_what_failed_does_not_leave_again),
		cmocka_unit_test(clients_wait_together_up_to_a_bound),
		cmocka_unit_test(t16_who_waits_for_the_same_is_not_counted),
		cmocka_unit_test(t33_who_waits_for_the_same_is_looked_at),
		cmocka_unit_test(an_upstream_that_fails),
		cmocka_unit_test(no_log_no_question),
		cmocka_unit_test(tcp_leaves_room_in_the_log),
		cmocka_unit_test(a_new_policy_decides_anew),
		cmocka_unit_test(broken_packets),
		cmocka_unit_test(t34_a_service_is_looked_at_as_an_address_is),
		cmocka_unit_test(t16_a_service_is_looked_at_once),
		cmocka_unit_test(t34_an_answer_that_is_kept),
		cmocka_unit_test(t34_an_address_that_was_given),
		cmocka_unit_test(t34_a_query_that_is_broken),
		cmocka_unit_test(t18_an_answer_ends_with_its_rule),
		cmocka_unit_test(a_given_address_is_looked_at_under_each_policy),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
