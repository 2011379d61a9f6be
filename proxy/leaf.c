/* The cache of leaves and the list of those who wait for one. */
#include "proxy/leaf.h"

#include <errno.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/limits.h"
#include "core/base/lru.h"
#include "proxy/ca.h"
#include "proxy/leaf_key.h"
#include "proxy/signer.h"

struct kept {
	X509 *cert;
	uint64_t at_us;
};

struct leaves {
	struct loop *loop;
	struct lru *kept;
	EVP_PKEY *key;        /* of all leaves; borrowed */
	struct event *signer; /* NULL: there is none just now */
	struct leaf_waiter *waiters;
	size_t n_waiters;
	struct metrics *metrics;
};

static void kept_free(void *p)
{
	struct kept *k = p;
	X509_free(k->cert);
	free(k);
}

static void on_reply(evutil_socket_t fd, short what, void *arg);

static void drop_signer(struct leaves *l)
{
	if (!l->signer)
		return;
	int fd = event_get_fd(l->signer);
	event_free(l->signer);
	close(fd);
	l->signer = NULL;
}

static bool ask(struct leaves *l, struct slice name)
{
	if (!l->signer)
		return false;
	metric_add(&l->metrics->leaves_minted, 1);
	return send(event_get_fd(l->signer), name.ptr, name.len, MSG_NOSIGNAL) == (ssize_t)name.len;
}

/* Takes those who wait for name (or all, when name is empty) off the list and calls them. */
static void wake(struct leaves *l, struct slice name, enum reason why)
{
	struct leaf_waiter *ready = NULL, **link = &l->waiters;
	while (*link) {
		struct leaf_waiter *w = *link;
		if (name.len > 0 && !slice_eq(w->name, name)) {
			link = &w->next;
			continue;
		}
		*link = w->next;
		w->next = ready;
		ready = w;
		l->n_waiters--;
	}
	while (ready) {
		struct leaf_waiter *w = ready;
		ready = w->next;
		w->waiting = false;
		w->done(w, why);
	}
}

static bool keep(struct leaves *l, const struct signer_reply *r)
{
	struct kept *k = malloc(sizeof(*k));
	X509 *x = k ? leaf_parse(slice_of(r->leaf, r->leaf_len), l->key) : NULL;
	if (!x) {
		free(k);
		return false;
	}
	*k = (struct kept){.cert = x, .at_us = clock_mono_us()};
	bool ok = lru_put(l->kept, slice_of(r->name, r->name_len), k) == CAGE_OK;
	metric_set(&l->metrics->leaves_cached, lru_count(l->kept));
	return ok;
}

static enum reason take_reply(struct leaves *l, const struct signer_reply *r)
{
	switch ((enum signer_answer)r->answer) {
	case SIGNER_OK:
		return keep(l, r) ? REASON_NONE : REASON_SIGNER_UNAVAILABLE;
	case SIGNER_RATE_LIMITED:
		return REASON_LIMIT_RATE;
	case SIGNER_REFUSED:
		return REASON_SIGNER_UNAVAILABLE;
	}
	return REASON_SIGNER_UNAVAILABLE;
}

static void on_reply(evutil_socket_t fd, short what, void *arg)
{
	(void)what;
	struct leaves *l = arg;
	struct signer_reply r;
	ssize_t n = recv(fd, &r, sizeof(r), 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < (ssize_t)offsetof(struct signer_reply, leaf) || r.name_len == 0 || r.name_len > LIMIT_HOST ||
	    r.leaf_len > (size_t)n - offsetof(struct signer_reply, leaf)) {
		drop_signer(l);
		wake(l, SLICE_NONE, REASON_SIGNER_UNAVAILABLE);
		return;
	}
	wake(l, slice_of(r.name, r.name_len), take_reply(l, &r));
}

void leaves_set_signer(struct leaves *l, int fd)
{
	drop_signer(l);
	l->signer = event_new(loop_base(l->loop), fd, EV_READ | EV_PERSIST, on_reply, l);
	if (l->signer)
		event_add(l->signer, NULL);
	else
		close(fd);
	wake(l, SLICE_NONE, REASON_SIGNER_UNAVAILABLE);
}

struct leaves *leaves_new(struct loop *loop, int signer_fd, EVP_PKEY *key, struct metrics *m)
{
	struct leaves *l = calloc(1, sizeof(*l));
	if (!l)
		return NULL;
	l->loop = loop;
	l->key = key;
	l->metrics = m;
	l->kept = lru_new(LIMIT_LEAVES, kept_free);
	if (!l->kept) {
		free(l);
		return NULL;
	}
	leaves_set_signer(l, signer_fd);
	return l;
}

void leaves_free(struct leaves **lp)
{
	if (!*lp)
		return;
	drop_signer(*lp);
	lru_free(&(*lp)->kept);
	free(*lp);
	*lp = NULL;
}

X509 *leaf_get(struct leaves *l, struct slice name)
{
	struct kept *k = lru_get(l->kept, name);
	return k && clock_mono_us() - k->at_us < CA_LEAF_MAX_AGE_US ? k->cert : NULL;
}

static bool is_asked(const struct leaves *l, struct slice name)
{
	for (const struct leaf_waiter *w = l->waiters; w; w = w->next)
		if (slice_eq(w->name, name))
			return true;
	return false;
}

enum reason leaf_wait(struct leaves *l, struct leaf_waiter *w)
{
	if (l->n_waiters >= LIMIT_MINT_WAITING)
		return REASON_LIMIT_RATE;
	if (!is_asked(l, w->name) && !ask(l, w->name))
		return REASON_SIGNER_UNAVAILABLE;
	w->next = l->waiters;
	l->waiters = w;
	l->n_waiters++;
	w->waiting = true;
	return REASON_NONE;
}

void leaf_cancel(struct leaves *l, struct leaf_waiter *w)
{
	if (!w->waiting)
		return;
	struct leaf_waiter **link = &l->waiters;
	while (*link && *link != w)
		link = &(*link)->next;
	if (*link) {
		*link = w->next;
		l->n_waiters--;
	}
	w->waiting = false;
}
