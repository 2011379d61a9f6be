/* The opening handshake (RFC 6455, 4): what a request must have to be one, and what a response must have to agree. */
#include "core/http/ws.h"

/* How many fields have that name, and the value of the first. */
static size_t find_fields(const struct message *m, struct slice name, struct slice *value)
{
	size_t n = 0;
	*value = SLICE_NONE;
	for (size_t i = 0; i < m->n_fields; i++)
		if (slice_ieq(m->fields[i].name, name) && n++ == 0)
			*value = m->fields[i].value;
	return n;
}

/* Is this among the elements of the lists in all fields of that name? */
static bool lists_have(const struct message *m, struct slice name, struct slice wanted,
		       bool (*same)(struct slice, struct slice))
{
	for (size_t i = 0; i < m->n_fields; i++) {
		struct slice list = m->fields[i].value;
		if (!slice_ieq(m->fields[i].name, name))
			continue;
		while (list.len > 0)
			if (same(slice_trim(slice_cut(&list, ',')), wanted))
				return true;
	}
	return false;
}

static bool connection_has_upgrade(const struct message *m)
{
	return lists_have(m, SLICE("connection"), SLICE("upgrade"), slice_ieq);
}

/* Base64 of 16 bytes: 22 digits of the standard alphabet, the last with four bits to spare that are 0, and "==". */
static bool is_nonce(struct slice s)
{
	if (s.len != WS_NONCE_LEN || !slice_ends(s, SLICE("==")))
		return false;
	for (size_t i = 0; i < s.len - 2; i++)
		if (ascii_base64((unsigned char)s.ptr[i]) < 0 || s.ptr[i] == '-' || s.ptr[i] == '_')
			return false;
	return (ascii_base64((unsigned char)s.ptr[s.len - 3]) & 0x0f) == 0;
}

/* What is wrong with a request that asks for websocket, or NULL. */
static const char *request_fault(const struct message *m, struct slice *nonce)
{
	struct slice version;
	if (!slice_eq(m->method, SLICE("GET")) || m->version != HTTP_11)
		return "a websocket handshake must be a GET of HTTP/1.1";
	if (m->framing == BODY_CHUNKED || m->content_length > 0)
		return "a websocket handshake has a body";
	if (!connection_has_upgrade(m))
		return "Connection does not name the Upgrade to websocket";
	if (find_fields(m, SLICE("sec-websocket-version"), &version) != 1 || !slice_eq(version, SLICE("13")))
		return "Sec-WebSocket-Version is not 13, once";
	if (find_fields(m, SLICE("sec-websocket-key"), nonce) != 1 || !is_nonce(*nonce))
		return "Sec-WebSocket-Key is not base64 of 16 bytes, once";
	return NULL;
}

enum ws_upgrade ws_check_request(const struct message *request, struct slice *nonce, const char **what)
{
	*nonce = SLICE_NONE;
	*what = NULL;
	if (!lists_have(request, SLICE("upgrade"), SLICE("websocket"), slice_ieq))
		return WS_UPGRADE_NONE;
	*what = request_fault(request, nonce);
	return *what ? WS_UPGRADE_BROKEN : WS_UPGRADE_GOOD;
}

static bool is_accept(struct slice value, struct slice nonce)
{
	char wanted[WS_ACCEPT_LEN];
	return ws_make_accept(nonce, wanted) && slice_eq(value, slice_of(wanted, sizeof(wanted)));
}

/* Subprotocols differ when their case does. */
static bool is_subprotocol_offered(const struct message *response, const struct message *request)
{
	struct slice chosen;
	size_t n = find_fields(response, SLICE("sec-websocket-protocol"), &chosen);
	if (n == 0)
		return true;
	return n == 1 && chosen.len > 0 && lists_have(request, SLICE("sec-websocket-protocol"), chosen, slice_eq);
}

/* What is wrong with a response, or NULL. */
static const char *response_fault(const struct message *m, struct slice nonce, const struct message *request)
{
	struct slice value;
	if (m->status != 101 || m->version != HTTP_11)
		return "the response is not a 101 of HTTP/1.1";
	if (find_fields(m, SLICE("upgrade"), &value) != 1 || !slice_ieq(value, SLICE("websocket")))
		return "the Upgrade of the response is not websocket";
	if (!connection_has_upgrade(m))
		return "the Connection of the response does not name the Upgrade";
	if (find_fields(m, SLICE("sec-websocket-accept"), &value) != 1 || !is_accept(value, nonce))
		return "Sec-WebSocket-Accept is not what the key asks for";
	if (find_fields(m, SLICE("sec-websocket-extensions"), &value) != 0)
		return "the response has an extension that was not offered";
	if (!is_subprotocol_offered(m, request))
		return "the response has a subprotocol that was not offered";
	return NULL;
}

bool ws_check_response(const struct message *response, struct slice nonce, const struct message *request,
		       const char **what)
{
	*what = response_fault(response, nonce, request);
	return *what == NULL;
}
