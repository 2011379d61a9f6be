/* The listeners of the API. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/say.h"
#include "core/net/loop.h"
#include "orchestrator/service/access.h"
#include "orchestrator/service/http_private.h"
#include "orchestrator/service/state_dir.h"

static void on_accept(struct evconnlistener *l, evutil_socket_t fd, struct sockaddr *from, int len, void *arg)
{
	(void)l, (void)from, (void)len;
	conn_accept(arg, fd);
}

static void listen_again(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	http_listen(arg);
}

void http_listen(struct http *h)
{
	const bool has_place = !h->service->stopping && h->n_conns < LIMIT_SERVE_CONNS;
	const bool has_tcp_place = has_place && h->n_tcp < LIMIT_SERVE_CONNS - LIMIT_SERVE_CONNS_OWN;
	for (size_t i = 0; i < h->n_listeners; i++)
		if (h->listeners[i].is_tcp ? has_tcp_place : has_place)
			evconnlistener_enable(h->listeners[i].listener);
		else
			evconnlistener_disable(h->listeners[i].listener);
}

/* Out of descriptors: without a rest we would be asked again at once. */
static void on_no_room(struct evconnlistener *l, void *arg)
{
	struct http *h = arg;
	const struct timeval rest = loop_ms(LIMIT_SERVE_REST_MS);
	evconnlistener_disable(l);
	evtimer_add(h->rest, &rest);
}

static bool add_listener(struct http *h, const struct listen_spec *spec)
{
	char name[256];
	listen_spec_format(spec, name, sizeof(name));
	mode_t before = umask(0177);
	int fd = listen_open(spec, false);
	umask(before);
	if (fd >= 0 && spec->kind == LISTEN_UNIX && chmod(spec->path, 0600) != 0) {
		close(fd);
		fd = -1;
	}
	struct evconnlistener *l = fd < 0 ? NULL
					  : evconnlistener_new(h->service->base, on_accept, h,
							       LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd);
	if (!l) {
		say("can't listen on %s: %s", name, strerror(errno));
		return false;
	}
	evconnlistener_set_error_cb(l, on_no_room);
	h->listeners[h->n_listeners].listener = l;
	h->listeners[h->n_listeners++].is_tcp = spec->kind == LISTEN_TCP;
	struct addr_port at;
	if (spec->kind == LISTEN_TCP && listen_address(fd, &at)) {
		struct listen_spec bound = *spec;
		bound.at = at;
		listen_spec_format(&bound, name, sizeof(name));
	}
	say("listening on %s", name);
	return true;
}

static bool may_listen(const struct service *s, const struct listen_spec *spec)
{
	if (spec->kind != LISTEN_TCP || access_has_token(s->config.state))
		return true;
	say("TCP needs a token: cage serve --new-token");
	return false;
}

static bool open_listeners(struct http *h)
{
	const struct config *c = &h->service->config;
	struct listen_spec usual = {.kind = LISTEN_UNIX};
	if (c->n_listen == 0) {
		int n = snprintf(usual.path, sizeof(usual.path), "%s/%s", c->state, STATE_DIR_SOCKET);
		if (n >= (int)sizeof(usual.path)) {
			say("%s: the path is too long for a socket in it", c->state);
			return false;
		}
		return add_listener(h, &usual);
	}
	for (size_t i = 0; i < c->n_listen; i++)
		if (!may_listen(h->service, &c->listen[i]) || !add_listener(h, &c->listen[i]))
			return false;
	return true;
}

bool http_start(struct service *s)
{
	struct http *h = calloc(1, sizeof(*h));
	if (!h)
		return false;
	s->http = h;
	h->service = s;
	h->rest = evtimer_new(s->base, listen_again, h);
	h->burial = conn_burial(h);
	return h->rest && h->burial && open_listeners(h);
}

void http_stop(struct service *s)
{
	http_listen(s->http);
}

size_t http_busy(const struct service *s)
{
	return s->http->n_requests + conns_unsent(s->http);
}

size_t http_unsent(const struct http *h)
{
	size_t n = 0;
	for (const struct conn *c = h->conns; c; c = c->next)
		n += evbuffer_get_length(bufferevent_get_output(c->bev));
	return n;
}

void http_free(struct service *s)
{
	struct http *h = s->http;
	if (!h)
		return;
	for (size_t i = 0; i < h->n_listeners; i++)
		evconnlistener_free(h->listeners[i].listener);
	h->n_listeners = 0;
	if (h->burial)
		conns_free(h);
	if (h->rest)
		event_free(h->rest);
	if (h->burial)
		event_free(h->burial);
	free(h);
	s->http = NULL;
}
