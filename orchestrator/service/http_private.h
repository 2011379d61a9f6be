/* What the files of HTTP share: connections, each with one request at a time. */
#ifndef CAGE_SERVICE_HTTP_PRIVATE_H
#define CAGE_SERVICE_HTTP_PRIVATE_H

#include <event2/bufferevent.h>
#include <event2/listener.h>

#include "core/http/h1.h"
#include "orchestrator/service/http.h"

struct http {
	struct service *service;
	struct {
		struct evconnlistener *listener;
		bool is_tcp;
	} listeners[LIMIT_SERVE_LISTENERS];
	size_t n_listeners;
	struct event *rest;   /* out of descriptors: they listen again */
	struct event *burial; /* frees what is dead */
	struct conn *conns, *dead;
	size_t n_conns, n_tcp; /* of all, and of those over TCP */
	struct request *requests;
	size_t n_requests;
	struct key *keys; /* of what is under way */
	size_t held;      /* bytes of bodies in memory */
};

enum conn_state {
	CONN_HEAD,    /* reads the head of a request */
	CONN_BODY,    /* its body */
	CONN_WORKING, /* it is being answered */
	CONN_LAST,    /* the answer goes out, then it is closed */
	CONN_DEAD     /* freed at the end of the pass */
};

/* Who is at the other end. */
enum conn_peer {
	PEER_OURS,
	PEER_STRANGER,
	PEER_TCP,  /* it has shown no token */
	PEER_TOKEN /* it has */
};

struct conn {
	struct conn *next;
	struct http *http;
	struct bufferevent *bev;
	struct event *head_clock; /* the bound of a head */
	enum conn_state state;
	enum conn_peer peer;
	struct h1_gate gate;
	struct h1_body body;
	struct request *request; /* NULL in CONN_HEAD */
	uint64_t discarded;      /* bytes of a body that was refused */
};

/* http.c: each listener takes connections as long as there is a place for them. */
void http_listen(struct http *h);

/* conn.c: takes a descriptor over. */
void conn_accept(struct http *h, int fd);
void conn_close(struct conn *c);
void conns_free(struct http *h);

/* Connections with bytes that their clients have not got. */
size_t conns_unsent(const struct http *h);

/* The event that frees what is dead. */
struct event *conn_burial(struct http *h);

/* The request was answered: the next one, or the end. */
void conn_answered(struct conn *c, bool keep);

/* request.c: NULL: there are too many, or no memory. */
struct request *request_new(struct conn *c);
void request_drop(struct request *r);

/* Its head is known. */
void request_begin(struct request *r);

/* More of its body, and its end. */
void request_take(struct request *r, struct slice data);
void request_handle(struct request *r);

/* access.c: 0, or the status that it earns. */
int access_check(struct request *r);
enum conn_peer access_peer(int fd);

#endif
