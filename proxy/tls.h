/* TLS settings of both sides, and the name that a ClientHello carries. */
#ifndef CAGE_PROXY_TLS_H
#define CAGE_PROXY_TLS_H

#include <openssl/ssl.h>

#include "core/http/url.h"
#include "core/net/tls_client.h"
#include "core/policy/policy.h"

#define TLS_TICKET_KEYS 80 /* as SSL_CTX_set_tlsext_ticket_keys wants them */

/* Towards clients: one context for all names, the leaf is set for each connection in hello_cb. */
SSL_CTX *tls_server_ctx_new(const unsigned char ticket_keys[TLS_TICKET_KEYS], SSL_client_hello_cb_fn hello_cb,
			    void *arg);

/* Towards servers: verified against the policy's trust. session_cb gets each new session. */
SSL_CTX *tls_client_ctx_new(const struct policy_trust *trust, int (*session_cb)(SSL *, SSL_SESSION *));

/* An SSL that will accept that host only. */
SSL *tls_client_new(SSL_CTX *ctx, const struct host *host);

/* Offers HTTP/2 beside HTTP/1.1, which alone is offered otherwise; false without memory. */
bool tls_offer_h2(SSL *ssl);

/* Once the handshake is over: is it HTTP/2 that is spoken? */
bool tls_chose_h2(const SSL *ssl);

/* The body of a server_name extension. CAGE_OK: *name is the one host name in it. CAGE_EPROTO: malformed, or more than
 * one. */
enum cage_status tls_sni_parse(struct slice ext, struct slice *name) MUST_CHECK;

/* The name in the ClientHello that a hello callback looks at: CAGE_OK, CAGE_EOF (there is none) or CAGE_EPROTO. */
enum cage_status tls_hello_name(SSL *ssl, struct slice *name) MUST_CHECK;

/* Binds sessions to a name, so that a ticket for one host is worth nothing at another. */
bool tls_bind_sessions(SSL *ssl, struct slice name);

#endif
