/* A channel of c-ares has one UDP socket for each server, and closes it when nothing is under way. So that source ports change
 * also when there is always something, there are several channels: each message takes a random one of those that were used less
 * than LIMIT_DNS_CHANNEL_USES times; the others come to rest and are replaced. Only when all of them wait for slow answers they
 * are used on. */
#include "dns/plain.h"

#include <stdlib.h>

#include "core/base/limits.h"
#include "core/net/ares_events.h"
#include "core/net/system_servers.h"
#include "dns/random.h"

struct channel {
	struct ares_events events;
	struct dns_plain *owner;
	size_t under_way;
	unsigned used;     /* messages since it is there */
	bool is_answering; /* c-ares calls back */
	size_t first;      /* server that it asks first */
};

struct dns_plain {
	struct loop *loop;
	struct channel *channels[LIMIT_DNS_CHANNELS];
	size_t n_channels;
	size_t first; /* server to ask first */
	size_t n;
	struct addr_port servers[LIMIT_DNS_SERVERS];
};

/* Everything is set, so that c-ares reads no file and no environment. The address is replaced at once. */
static int channel_init(struct channel *c)
{
	size_t n = c->owner->n;
	unsigned tries = n > 2 ? 1 : LIMIT_DNS_TRIES; /* of each server; each round waits twice as long as the last */
	char from_servers[] = "b";
	struct in_addr nowhere = {0};
	struct ares_options o = {
		.flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES | ARES_FLAG_EDNS,
		.timeout = (int)dns_exchange_wait_ms(n * ((1u << tries) - 1), LIMIT_DNS_TRY_MS),
		.tries = (int)tries,
		.ndots = 1,
		.servers = &nowhere,
		.nservers = 1,
		.lookups = from_servers,
		.ednspsz = LIMIT_DNS_UDP,
	};
	int set = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_NDOTS | ARES_OPT_SERVERS |
		  ARES_OPT_DOMAINS | ARES_OPT_LOOKUPS | ARES_OPT_SORTLIST | ARES_OPT_EDNSPSZ |
		  ares_events_options(&c->events, &o);
	return ares_init_options(&c->events.channel, &o, set);
}

/* The servers in their order, from p->first on. */
static bool channel_set_servers(struct channel *c)
{
	const struct dns_plain *p = c->owner;
	struct addr_port turned[LIMIT_DNS_SERVERS];
	for (size_t i = 0; i < p->n; i++)
		turned[i] = p->servers[(p->first + i) % p->n];
	if (ares_set_addresses(c->events.channel, turned, p->n) != ARES_SUCCESS)
		return false;
	c->first = p->first;
	return true;
}

static struct channel *channel_new(struct dns_plain *p)
{
	struct channel *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->owner = p;
	c->events.loop = p->loop;
	if (channel_init(c) == ARES_SUCCESS) {
		if (channel_set_servers(c))
			return c;
		ares_destroy(c->events.channel);
	}
	free(c);
	return NULL;
}

static void channel_free(struct channel *c)
{
	ares_channel channel = c->events.channel;
	c->events.channel = NULL;
	ares_destroy(channel); /* answers every exchange */
	ares_events_clear(&c->events);
	free(c);
}

static bool is_at_rest(const struct channel *c)
{
	return c->under_way == 0 && !c->events.watches && !c->is_answering;
}

/* The channel in that place if it may be used, in its stead a new one if it was used up and is at rest. A change of the order of
 * the servers waits until then, too. */
static struct channel *channel_at(struct dns_plain *p, size_t i)
{
	struct channel *c = p->channels[i];
	if (c->used < LIMIT_DNS_CHANNEL_USES && (c->first == p->first || !is_at_rest(c)))
		return c;
	struct channel *successor = is_at_rest(c) ? channel_new(p) : NULL;
	if (!successor)
		return NULL;
	channel_free(c);
	p->channels[i] = successor;
	return successor;
}

static struct channel *channel_add(struct dns_plain *p)
{
	struct channel *c = channel_new(p);
	if (c)
		p->channels[p->n_channels++] = c;
	return c;
}

static struct channel *pick(struct dns_plain *p)
{
	if (p->n_channels < LIMIT_DNS_CHANNELS_MIN)
		return channel_add(p);
	size_t start = dns_random_u16() % p->n_channels;
	for (size_t i = 0; i < p->n_channels; i++) {
		struct channel *c = channel_at(p, (start + i) % p->n_channels);
		if (c)
			return c;
	}
	return p->n_channels < LIMIT_DNS_CHANNELS ? channel_add(p) : p->channels[start];
}

/* Those that kept silent, from the first on, are asked last from now on. */
static void note_silence(struct channel *c, size_t silent)
{
	struct dns_plain *p = c->owner;
	if (c->first == p->first && silent < p->n)
		p->first = (p->first + silent) % p->n;
}

static void on_answer(void *arg, int status, int timeouts, unsigned char *response, int len)
{
	struct dns_exchange *x = arg;
	struct channel *c = x->via;
	bool nested = c->is_answering;
	c->under_way--;
	c->is_answering = true;
	if (timeouts > 0)
		note_silence(c, (size_t)timeouts);
	if (!c->events.channel)
		x->done(x, CAGE_ESYS, SLICE_NONE);
	else if (status == ARES_SUCCESS)
		x->done(x, CAGE_OK, slice_of(response, (size_t)len));
	else
		x->done(x, ares_failure(status), SLICE_NONE);
	c->is_answering = nested;
}

void dns_plain_send(struct dns_plain *p, struct dns_exchange *x)
{
	struct channel *c = pick(p);
	if (!c) {
		x->done(x, CAGE_ELIMIT, SLICE_NONE);
		return;
	}
	c->used++;
	c->under_way++;
	x->via = c;
	ares_send(c->events.channel, (const unsigned char *)x->packet.ptr, (int)x->packet.len, on_answer, x);
}

/* Those that were added when all were used up; c-ares takes 75 KiB for each. */
static void drop_spare(struct dns_plain *p)
{
	while (p->n_channels > LIMIT_DNS_CHANNELS_MIN && is_at_rest(p->channels[p->n_channels - 1]))
		channel_free(p->channels[--p->n_channels]);
}

void dns_plain_tick(struct dns_plain *p)
{
	for (size_t i = 0; i < p->n_channels; i++)
		if (p->channels[i]->under_way > 0)
			ares_process_fd(p->channels[i]->events.channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	drop_spare(p);
}

static struct addr_port server_of(const struct ares_addr_port_node *node)
{
	bool v4 = node->family == AF_INET;
	struct addr_port server = {.addr = {.family = v4 ? ADDR_V4 : ADDR_V6}};
	memcpy(server.addr.bytes, &node->addr, v4 ? 4 : 16);
	server.port = node->udp_port ? (uint16_t)node->udp_port : 53;
	return server;
}

size_t dns_system_servers(struct addr_port out[LIMIT_DNS_SERVERS])
{
	ares_channel channel;
	struct ares_addr_port_node *nodes = NULL;
	size_t n = 0;
	if (system_server()) {
		out[0] = *system_server();
		return 1;
	}
	if (ares_init(&channel) != ARES_SUCCESS)
		return 0;
	if (ares_get_servers_ports(channel, &nodes) == ARES_SUCCESS)
		for (const struct ares_addr_port_node *node = nodes; node && n < LIMIT_DNS_SERVERS; node = node->next)
			out[n++] = server_of(node);
	ares_free_data(nodes);
	ares_destroy(channel);
	return n;
}

struct dns_plain *dns_plain_new(struct loop *l, const struct addr_port *servers, size_t n)
{
	if (ares_library_init(ARES_LIB_INIT_ALL) != ARES_SUCCESS)
		return NULL;
	struct dns_plain *p = calloc(1, sizeof(*p));
	if (!p) {
		ares_library_cleanup();
		return NULL;
	}
	p->loop = l;
	p->n = n < LIMIT_DNS_SERVERS ? n : LIMIT_DNS_SERVERS;
	for (size_t i = 0; i < p->n; i++)
		p->servers[i] = servers[i];
	if (n == 0)
		p->n = dns_system_servers(p->servers);
	if (p->n == 0)
		dns_plain_free(&p);
	return p;
}

void dns_plain_free(struct dns_plain **pp)
{
	struct dns_plain *p = *pp;
	if (!p)
		return;
	*pp = NULL;
	for (size_t i = 0; i < p->n_channels; i++)
		channel_free(p->channels[i]);
	free(p);
	ares_library_cleanup();
}
