/* The signer's loop: names in, certificates out. It checks names itself, since a worker may have been taken over, and
 * it keeps what it has signed, so that all workers serve the same leaf. New names are rate-limited: the agent chooses
 * them. */
#include "proxy/signer.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/lru.h"
#include "core/base/say.h"
#include "core/http/url.h"
#include "core/net/loop.h"
#include "core/proc/control.h"
#include "proxy/ca.h"

struct minted {
	uint64_t at_us;
	uint32_t len;
	unsigned char der[];
};

struct signer {
	const struct signer_config *config;
	struct loop *loop;
	struct ca ca;
	struct lru *minted;
	double tokens; /* of the rate limit */
	uint64_t filled_us;
	struct event *clients[LIMIT_WORKERS];
};

static bool take_token(struct signer *s)
{
	uint64_t now = clock_mono_us();
	s->tokens += (double)(now - s->filled_us) / 1e6 * LIMIT_MINT_RATE;
	s->filled_us = now;
	if (s->tokens > LIMIT_MINT_BURST)
		s->tokens = LIMIT_MINT_BURST;
	if (s->tokens < 1)
		return false;
	s->tokens -= 1;
	return true;
}

/* A worker sends canonical text only: a name, or an address without brackets. */
static bool read_name(struct slice name, struct arena *arena, struct host *host)
{
	char text[ADDR_TEXT];
	const char *why;
	*host = (struct host){.kind = HOST_ADDRESS, .text = name};
	if (addr_parse(name, &host->addr))
		return slice_eq(addr_format(&host->addr, text), name);
	return host_parse(name, arena, host, &why) == CAGE_OK && slice_eq(host->text, name);
}

static struct minted *mint(struct signer *s, struct slice name)
{
	struct arena arena;
	struct host host;
	struct minted *m = NULL;
	X509 *x = NULL;
	arena_init(&arena, KIB(8));
	if (read_name(name, &arena, &host))
		x = ca_mint(&s->ca, &host, s->config->leaf_key);
	int len = x ? i2d_X509(x, NULL) : -1;
	if (len > 0 && len <= SIGNER_LEAF_ROOM)
		m = malloc(sizeof(*m) + (size_t)len);
	if (m) {
		unsigned char *p = m->der;
		m->at_us = clock_mono_us();
		m->len = (uint32_t)i2d_X509(x, &p);
	}
	X509_free(x);
	arena_free(&arena);
	return m;
}

/* The leaf for name, kept or new; NULL with *answer saying why. */
static struct minted *leaf_for(struct signer *s, struct slice name, enum signer_answer *answer)
{
	struct minted *m = lru_get(s->minted, name);
	*answer = SIGNER_OK;
	if (m && clock_mono_us() - m->at_us < CA_LEAF_MAX_AGE_US)
		return m;
	*answer = SIGNER_RATE_LIMITED;
	if (!take_token(s))
		return NULL;
	*answer = SIGNER_REFUSED;
	m = mint(s, name);
	if (!m || lru_put(s->minted, name, m) != CAGE_OK)
		return NULL;
	*answer = SIGNER_OK;
	return m;
}

static void on_request(evutil_socket_t fd, short what, void *arg);

static void set_client(struct signer *s, size_t i, int fd)
{
	if (s->clients[i]) {
		int old = event_get_fd(s->clients[i]);
		event_free(s->clients[i]);
		close(old);
		s->clients[i] = NULL;
	}
	if (fd < 0)
		return;
	s->clients[i] = event_new(loop_base(s->loop), fd, EV_READ | EV_PERSIST, on_request, s);
	if (s->clients[i])
		event_add(s->clients[i], NULL);
}

static void drop_client(struct signer *s, int fd)
{
	for (size_t i = 0; i < LIMIT_WORKERS; i++)
		if (s->clients[i] && event_get_fd(s->clients[i]) == fd)
			set_client(s, i, -1);
}

static void on_request(evutil_socket_t fd, short what, void *arg)
{
	(void)what;
	struct signer *s = arg;
	struct signer_reply reply = {0};
	ssize_t n = recv(fd, reply.name, sizeof(reply.name), 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0 || n > LIMIT_HOST) {
		drop_client(s, fd); /* the master sends the descriptor of the worker's successor */
		return;
	}
	enum signer_answer answer;
	struct minted *m = leaf_for(s, slice_of(reply.name, (size_t)n), &answer);
	reply.answer = answer;
	reply.name_len = (uint32_t)n;
	if (m) {
		reply.leaf_len = m->len;
		memcpy(reply.leaf, m->der, m->len);
	}
	/* A worker that does not read its replies gets none: its clients' handshakes time out. */
	size_t len = offsetof(struct signer_reply, leaf) + reply.leaf_len;
	if (send(fd, &reply, len, MSG_NOSIGNAL) < 0 && errno != EAGAIN && errno != EPIPE)
		say("signer: reply: %s", strerror(errno));
}

static void on_control(evutil_socket_t sock, short what, void *arg)
{
	(void)what;
	struct signer *s = arg;
	struct control msg;
	int fd;
	enum cage_status st = control_receive(sock, &msg, &fd);
	if (st == CAGE_AGAIN)
		return;
	if (st != CAGE_OK || msg.type == CONTROL_STOP)
		loop_stop(s->loop);
	else if (msg.type == CONTROL_CLIENT && msg.index < LIMIT_WORKERS)
		set_client(s, msg.index, fd);
}

static void signer_close(struct signer *s)
{
	for (size_t i = 0; i < LIMIT_WORKERS; i++)
		set_client(s, i, -1);
	lru_free(&s->minted);
	ca_close(&s->ca);
	loop_free(&s->loop);
}

_Noreturn void signer_run(const struct signer_config *config)
{
	struct signer s = {.config = config, .tokens = LIMIT_MINT_BURST, .filled_us = clock_mono_us()};
	if (!ca_open(&s.ca, config->ca_dir))
		exit(1);
	s.loop = loop_new();
	s.minted = lru_new(LIMIT_LEAVES, free);
	struct event *control =
		s.loop ? event_new(loop_base(s.loop), config->control, EV_READ | EV_PERSIST, on_control, &s) : NULL;
	struct control ready = {.type = CONTROL_READY};
	if (!s.minted || !control || event_add(control, NULL) != 0 ||
	    control_send(config->control, &ready, -1) != CAGE_OK)
		exit(1);
	for (size_t i = 0; i < config->n_clients; i++)
		set_client(&s, i, config->clients[i]);
	loop_run(s.loop);
	event_free(control);
	signer_close(&s);
	exit(0);
}
