/* The three messages of a SOCKS5 client. Each reader checks what is there in the order of the format, and takes the
 * message once it is whole. */
#include "core/http/socks5.h"

#include "core/base/text.h"

#define VERSION 5
#define VERSION_4 4
#define PASSWORD_VERSION 1
#define COMMAND_CONNECT 1

enum method { METHOD_NONE = 0, METHOD_PASSWORD = 2 };
enum address_type { TYPE_IPV4 = 1, TYPE_NAME = 3, TYPE_IPV6 = 4 };

#define REQUEST_HEAD 4 /* version, command, reserved, type of the address */

#define REPLY(code) SLICE("\x05" code "\0\x01\0\0\0\0\0\0")

static unsigned byte_at(struct slice s, size_t i)
{
	return (unsigned char)s.ptr[i];
}

static struct slice part_of(struct slice s, size_t from, size_t len)
{
	return slice_head(slice_from(s, from), len);
}

static enum socks5_event refuse(struct socks5_step *out, struct slice answer, enum reason reason, const char *what)
{
	out->answer = answer;
	out->reason = reason;
	out->what = what;
	return SOCKS5_REFUSE;
}

/* ---- greeting: version, number of methods, methods ---- */

static bool offers(struct slice methods, enum method m)
{
	return slice_find(methods, (char)m) < methods.len;
}

static enum socks5_event choose_method(struct socks5 *s, struct slice methods, struct socks5_step *out)
{
	bool has_password = offers(methods, METHOD_PASSWORD);
	if (s->needs_identity && !has_password)
		return refuse(out, SLICE("\x05\xff"), REASON_AUTH_REQUIRED, "A user and a password are required.");
	if (!s->needs_identity && offers(methods, METHOD_NONE)) {
		s->state = SOCKS5_REQUEST;
		out->answer = SLICE("\x05\0");
		return SOCKS5_ANSWER;
	}
	if (!has_password)
		return refuse(out, SLICE("\x05\xff"), REASON_PROTOCOL_UNKNOWN,
			      "None of the authentication methods on offer is spoken here.");
	s->state = SOCKS5_PASSWORD;
	out->answer = SLICE("\x05\x02");
	return SOCKS5_ANSWER;
}

static enum socks5_event read_greeting(struct socks5 *s, struct slice in, struct socks5_step *out)
{
	if (in.len > 0 && byte_at(in, 0) == VERSION_4)
		return refuse(out, SLICE_NONE, REASON_PROTOCOL_UNKNOWN, "This is SOCKS4; only SOCKS5 is spoken here.");
	if (in.len > 0 && byte_at(in, 0) != VERSION)
		return refuse(out, SLICE_NONE, REASON_PROTOCOL_UNKNOWN, "This is not SOCKS5.");
	if (in.len < 2 || in.len < 2 + byte_at(in, 1))
		return SOCKS5_MORE;
	out->used = 2 + byte_at(in, 1);
	return choose_method(s, part_of(in, 2, byte_at(in, 1)), out);
}

/* ---- user and password: version, and both with their length in front ---- */

static enum socks5_event read_password(struct socks5 *s, struct slice in, struct socks5_step *out)
{
	if (in.len > 0 && byte_at(in, 0) != PASSWORD_VERSION)
		return refuse(out, SLICE("\x01\x01"), REASON_PROTOCOL_UNKNOWN,
			      "The user and password are in a version that is not spoken here.");
	if (in.len < 2 || in.len < 3 + byte_at(in, 1))
		return SOCKS5_MORE;
	size_t user = byte_at(in, 1), password = byte_at(in, 2 + user);
	if (in.len < 3 + user + password)
		return SOCKS5_MORE;
	out->used = 3 + user + password;
	out->user = part_of(in, 2, user);
	out->password = part_of(in, 3 + user, password);
	s->state = SOCKS5_JUDGED;
	return SOCKS5_IDENTITY;
}

struct slice socks5_judge(struct socks5 *s, bool are_good)
{
	bool goes_on = are_good && s->state == SOCKS5_JUDGED;
	s->state = goes_on ? SOCKS5_REQUEST : SOCKS5_OVER;
	return goes_on ? SLICE("\x01\0") : SLICE("\x01\x01");
}

/* ---- request: head, address, port ---- */

static bool is_printable(struct slice name)
{
	for (size_t i = 0; i < name.len; i++)
		if (byte_at(name, i) < 0x21 || byte_at(name, i) > 0x7e)
			return false;
	return true;
}

static struct slice write_address(struct socks5 *s, enum addr_family family, struct slice bytes)
{
	struct addr a = {.family = family};
	char buf[ADDR_TEXT];
	struct text t = text_in(s->address, sizeof(s->address));
	memcpy(a.bytes, bytes.ptr, bytes.len);
	if (family == ADDR_V6)
		text_put_char(&t, '[');
	text_put(&t, addr_format(&a, buf));
	if (family == ADDR_V6)
		text_put_char(&t, ']');
	return text_slice(&t);
}

/* Is the head good so far? */
static bool check_request_head(struct slice in, struct socks5_step *out)
{
	if (in.len > 0 && byte_at(in, 0) != VERSION)
		refuse(out, socks5_reply(SOCKS5_REPLY_FAILED), REASON_PROTOCOL_UNKNOWN, "The request is not SOCKS5.");
	else if (in.len > 1 && byte_at(in, 1) != COMMAND_CONNECT)
		refuse(out, socks5_reply(SOCKS5_REPLY_COMMAND), REASON_PROTOCOL_UNKNOWN,
		       "Of the commands of SOCKS5 only CONNECT is served.");
	else if (in.len > 2 && byte_at(in, 2) != 0)
		refuse(out, socks5_reply(SOCKS5_REPLY_FAILED), REASON_PROTOCOL_UNKNOWN,
		       "The reserved byte of the request is not zero.");
	return out->reason == REASON_NONE;
}

/* Where the address begins and ends. False: it is refused, or that can't be told yet. */
static bool find_address(struct slice in, struct socks5_step *out, size_t *from, size_t *len)
{
	*from = REQUEST_HEAD;
	if (in.len < REQUEST_HEAD)
		return false;
	switch (byte_at(in, REQUEST_HEAD - 1)) {
	case TYPE_IPV4:
		*len = 4;
		return true;
	case TYPE_IPV6:
		*len = 16;
		return true;
	case TYPE_NAME:
		*from = REQUEST_HEAD + 1;
		*len = in.len > REQUEST_HEAD ? byte_at(in, REQUEST_HEAD) : 0;
		if (in.len > REQUEST_HEAD && *len == 0)
			refuse(out, socks5_reply(SOCKS5_REPLY_NOT_ALLOWED), REASON_TARGET_MALFORMED,
			       "The name in the request is empty.");
		return *len > 0;
	default:
		refuse(out, socks5_reply(SOCKS5_REPLY_ADDRESS), REASON_TARGET_MALFORMED,
		       "The address in the request is of an unknown type.");
		return false;
	}
}

static enum socks5_event take_request(struct socks5 *s, struct slice in, size_t from, size_t len,
				      struct socks5_step *out)
{
	struct slice address = part_of(in, from, len);
	size_t end = from + len;
	out->used = end + 2;
	out->port = (uint16_t)(byte_at(in, end) << 8 | byte_at(in, end + 1));
	if (out->port == 0)
		return refuse(out, socks5_reply(SOCKS5_REPLY_NOT_ALLOWED), REASON_TARGET_MALFORMED,
			      "The port is not a number from 1 to 65535.");
	if (byte_at(in, REQUEST_HEAD - 1) == TYPE_NAME)
		out->host = address;
	else
		out->host = write_address(s, len == 4 ? ADDR_V4 : ADDR_V6, address);
	out->host_is_printable = is_printable(out->host);
	s->state = SOCKS5_OVER;
	return SOCKS5_CONNECT;
}

static enum socks5_event read_request(struct socks5 *s, struct slice in, struct socks5_step *out)
{
	size_t from, len;
	if (check_request_head(in, out) && find_address(in, out, &from, &len) && in.len >= from + len + 2)
		return take_request(s, in, from, len, out);
	return out->reason == REASON_NONE ? SOCKS5_MORE : SOCKS5_REFUSE;
}

struct slice socks5_reply(enum socks5_code code)
{
	switch (code) {
	case SOCKS5_REPLY_OK:
		return REPLY("\0");
	case SOCKS5_REPLY_FAILED:
		return REPLY("\x01");
	case SOCKS5_REPLY_NOT_ALLOWED:
		return REPLY("\x02");
	case SOCKS5_REPLY_UNREACHABLE:
		return REPLY("\x04");
	case SOCKS5_REPLY_COMMAND:
		return REPLY("\x07");
	case SOCKS5_REPLY_ADDRESS:
		return REPLY("\x08");
	}
	return REPLY("\x01");
}

/* ---- all of them ---- */

static enum socks5_event read_message(struct socks5 *s, struct slice input, struct socks5_step *out)
{
	switch (s->state) {
	case SOCKS5_GREETING:
		return read_greeting(s, input, out);
	case SOCKS5_PASSWORD:
		return read_password(s, input, out);
	case SOCKS5_REQUEST:
		return read_request(s, input, out);
	case SOCKS5_JUDGED:
	case SOCKS5_OVER:
		break;
	}
	return SOCKS5_MORE;
}

enum socks5_event socks5_read(struct socks5 *s, struct slice input, struct socks5_step *out)
{
	*out = (struct socks5_step){.used = 0};
	enum socks5_event event = read_message(s, input, out);
	if (event == SOCKS5_REFUSE)
		s->state = SOCKS5_OVER;
	return event;
}
