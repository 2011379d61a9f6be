/* Peers that are told, the table of what they were told, and the pool. */
#include "dns/bindings.h"

#include <stdlib.h>
#include <unistd.h>

#include "core/base/map.h"
#include "core/base/say.h"
#include "core/net/binding_table.h"
#include "core/net/listener.h"
#include "core/net/stream.h"

struct peer {
	struct dns_bindings *owner;
	struct stream *stream;
	struct peer *next, **link;
};

enum peers_state { PEERS_WELCOME, PEERS_FULL /* one was turned away, which was said */ };

struct dns_bindings {
	struct loop *loop;
	struct listener *listener;
	struct binding_table *table;
	uint64_t seed;
	struct peer *peers;
	size_t n_peers;
	enum peers_state state;
};

/* ---- peers ---- */

static void peer_close(struct peer *p)
{
	*p->link = p->next;
	if (p->next)
		p->next->link = p->link;
	p->owner->n_peers--;
	p->owner->state = PEERS_WELCOME;
	stream_close(&p->stream);
	free(p);
}

static void peer_nothing(struct stream *s, void *arg)
{
	(void)s, (void)arg;
}

/* Nobody has anything to say to us. */
static void peer_data(struct stream *s, void *arg)
{
	(void)s;
	peer_close(arg);
}

static void peer_ended(struct stream *s, enum cage_status why, void *arg)
{
	(void)s, (void)why;
	peer_close(arg);
}

static const struct stream_cb peer_cb = {
	.on_ready = peer_nothing, .on_data = peer_data, .on_drained = peer_nothing, .on_end = peer_ended};

static void peer_tell(void *arg, const struct binding *b)
{
	struct peer *p = arg;
	unsigned char frame[BINDING_FRAME];
	stream_write(p->stream, slice_of(frame, binding_write(b, frame)));
}

static struct peer *peer_new(struct dns_bindings *b, int fd)
{
	struct peer *p = calloc(1, sizeof(*p));
	if (!p) {
		close(fd);
		return NULL;
	}
	p->owner = b;
	p->stream = stream_new(b->loop, fd, &peer_cb, p);
	if (p->stream)
		return p;
	free(p);
	return NULL;
}

/* It tries again and again, so it is said once until there is room. */
static void turn_away(struct dns_bindings *b, int fd)
{
	close(fd);
	if (b->state != PEERS_FULL)
		say("--bindings: more than %d workers of proxies; the others are not told what was answered",
		    LIMIT_BINDING_PEERS);
	b->state = PEERS_FULL;
}

static void on_accept(void *arg, int fd)
{
	struct dns_bindings *b = arg;
	if (b->n_peers >= LIMIT_BINDING_PEERS) {
		turn_away(b, fd);
		return;
	}
	struct peer *p = peer_new(b, fd);
	if (!p)
		return;
	p->next = b->peers;
	p->link = &b->peers;
	if (p->next)
		p->next->link = &p->next;
	b->peers = p;
	b->n_peers++;
	stream_set_stall(p->stream, LIMIT_STALL_MS);
	stream_write(p->stream, BINDING_HELLO);
	binding_table_each(b->table, loop_now_us(b->loop), peer_tell, p);
	stream_flush(p->stream);
}

/* At once, as far as the sockets take it. A peer that does not read is cut off: it hears all of it when it comes again. */
static void tell_all(struct dns_bindings *b, const struct binding *what)
{
	unsigned char frame[BINDING_FRAME];
	size_t len = binding_write(what, frame);
	for (struct peer *p = b->peers, *next; p; p = next) {
		next = p->next;
		stream_write(p->stream, slice_of(frame, len));
		stream_flush(p->stream);
		if (stream_unsent(p->stream) > LIMIT_BINDING_QUEUE)
			peer_close(p);
	}
}

/* ---- answers ---- */

bool dns_bindings_tell(struct dns_bindings *b, struct slice name, const struct addr *addrs, size_t n, uint32_t life_s)
{
	struct binding what = {.kind = n > 0 && addrs[0].family == ADDR_V6 ? BINDING_V6 : BINDING_V4,
			       .name = name,
			       .life_s = life_s < LIMIT_BINDING_LIFE_S ? life_s : LIMIT_BINDING_LIFE_S,
			       .n = n < LIMIT_ANSWERS ? n : LIMIT_ANSWERS};
	if (n == 0)
		return true;
	memcpy(what.addrs, addrs, what.n * sizeof(*addrs));
	if (binding_table_put(b->table, &what, loop_now_us(b->loop)) != CAGE_OK)
		return false;
	tell_all(b, &what);
	return true;
}

/* ---- the pool ---- */

static struct addr pool_address(const struct addr_range *pool, uint64_t number)
{
	struct addr a = pool->base;
	uint32_t offset = (uint32_t)(number & (UINT32_MAX >> pool->prefix));
	for (unsigned i = 0; i < 4; i++)
		a.bytes[i] |= (unsigned char)(offset >> (24 - 8 * i));
	return a;
}

/* Addresses that end in 0 or 255 are a network's own to some. */
static bool is_free(const struct dns_bindings *b, const struct addr *a)
{
	return a->bytes[3] != 0 && a->bytes[3] != 255 && addr_classify(a) == ADDR_SPECIAL &&
	       binding_table_name(b->table, a, loop_now_us(b->loop)).len == 0;
}

static bool find_free(const struct dns_bindings *b, const struct addr_range *pool, struct slice name, struct addr *out)
{
	uint64_t number = slice_hash(name, b->seed);
	for (unsigned i = 0; i < LIMIT_BINDING_PROBES; i++) {
		*out = pool_address(pool, number + i);
		if (is_free(b, out))
			return true;
	}
	return false;
}

enum cage_status dns_bindings_give(struct dns_bindings *b, const struct addr_range *pool, struct slice name,
				   struct addr *out)
{
	struct binding what = {.kind = BINDING_GIVEN, .name = name, .life_s = LIMIT_BINDING_GIVEN_S, .n = 1};
	uint64_t now = loop_now_us(b->loop);
	uint32_t life_s = 0;
	bool has_one = binding_table_given(b->table, name, now, out, &life_s) && addr_range_contains(pool, out);
	if (has_one && life_s > LIMIT_BINDING_GIVEN_S / 2)
		return CAGE_OK;
	if (!has_one && !find_free(b, pool, name, out))
		return CAGE_ELIMIT;
	what.addrs[0] = *out;
	enum cage_status st = binding_table_put(b->table, &what, now);
	if (st == CAGE_OK)
		tell_all(b, &what);
	return st;
}

/* ---- life ---- */

struct dns_bindings *dns_bindings_new(struct loop *l, int listen_fd, uint64_t seed)
{
	struct dns_bindings *b = calloc(1, sizeof(*b));
	if (!b)
		return NULL;
	b->loop = l;
	b->seed = seed;
	b->table = binding_table_new(LIMIT_BINDINGS);
	b->listener = listener_new(l, listen_fd, on_accept, b);
	if (!b->table || !b->listener)
		dns_bindings_free(&b);
	return b;
}

void dns_bindings_free(struct dns_bindings **bp)
{
	struct dns_bindings *b = *bp;
	if (!b)
		return;
	*bp = NULL;
	for (struct peer *p = b->peers, *next; p; p = next) {
		next = p->next;
		peer_close(p);
	}
	listener_free(&b->listener);
	binding_table_free(&b->table);
	free(b);
}

size_t dns_bindings_peers(const struct dns_bindings *b)
{
	return b->n_peers;
}
