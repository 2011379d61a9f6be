/* The neutral message: what every codec makes and everything above the codecs reads. No wire text in here.
 *
 * Glossary: a *head* is start line and fields; a *field* is one header or trailer; *framing* is how a body's end
 * is known; *hop-by-hop* fields belong to one connection and are never sent on. */
#ifndef CAGE_HTTP_MESSAGE_H
#define CAGE_HTTP_MESSAGE_H

#include "core/base/arena.h"
#include "core/base/slice.h"
#include "core/base/status.h"

enum http_version { HTTP_10, HTTP_11 };

/* Fields that some code of ours looks at. Everything else is FIELD_OTHER. */
enum field_id {
	FIELD_OTHER,
	FIELD_CONNECTION,
	FIELD_CONTENT_LENGTH,
	FIELD_EXPECT,
	FIELD_HOST,
	FIELD_KEEP_ALIVE,
	FIELD_PROXY_AUTHENTICATE,
	FIELD_PROXY_AUTHORIZATION,
	FIELD_PROXY_CONNECTION,
	FIELD_TE,
	FIELD_TRAILER,
	FIELD_TRANSFER_ENCODING,
	FIELD_UPGRADE,
	FIELD_AUTHORIZATION,
	FIELD_WWW_AUTHENTICATE,
	FIELD_DROPPED /* hop-by-hop, since Connection names it or it is some other Proxy-* field: not sent on */
};

struct field {
	struct slice name;  /* as the sender spelled it: a token */
	struct slice value; /* without surrounding blanks; no CR, LF, NUL */
	enum field_id id;
};

enum body_framing {
	BODY_NONE,   /* no body at all */
	BODY_LENGTH, /* content_length bytes */
	BODY_CHUNKED,
	BODY_CLOSE /* responses only: until the connection ends */
};

/* How the target of a request was written. */
enum target_form {
	TARGET_ORIGIN,    /* /path?query */
	TARGET_ABSOLUTE,  /* http://host/path?query */
	TARGET_AUTHORITY, /* host:port, only with CONNECT */
	TARGET_ASTERISK   /* *, only with OPTIONS */
};

struct message {
	enum http_version version;
	/* request */
	struct slice method;
	struct slice target; /* as received, checked byte by byte */
	enum target_form form;
	struct slice host; /* value of the one Host field; empty when absent (HTTP/1.0) */
	bool has_host;
	/* response */
	int status;
	struct slice phrase;

	struct field *fields;
	size_t n_fields;

	enum body_framing framing;
	uint64_t content_length; /* with BODY_LENGTH; in a response to HEAD or a 304: what was declared */
	bool has_content_length;
	bool keep_alive;      /* the sender allows another message on this connection */
	bool expect_continue; /* Expect: 100-continue */
};

/* The id of a field name, ASCII case ignored. */
enum field_id field_identify(struct slice name);

/* The first field with that name (ASCII case ignored), or NULL. */
const struct field *message_field(const struct message *m, struct slice name);

/* About the bytes that they take when they are sent. */
uint64_t fields_wire_size(const struct field *fields, size_t n);

/* True when the field belongs to one hop and must not be sent on. */
bool field_is_hop_by_hop(enum field_id id);

#endif
