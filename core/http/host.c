/* One spelling for each host. Whatever another reader could take for a different host is refused here, so that the
 * name that was matched is the name that is resolved, dialled, verified, sent and logged. */
#include "core/http/url.h"

#include "core/base/limits.h"

static enum cage_status refuse(const char **why, const char *sentence)
{
	*why = sentence;
	return CAGE_EPROTO;
}

static enum cage_status no_memory(const char **why)
{
	*why = "there is no memory for the host";
	return CAGE_ENOMEM;
}

/* Writes the one text of an address into the arena. */
static enum cage_status host_set_address(struct host *out, struct arena *arena, const char **why)
{
	char buf[ADDR_TEXT];
	out->kind = HOST_ADDRESS;
	out->text = arena_dup(arena, addr_format(&out->addr, buf));
	return out->text.ptr ? CAGE_OK : no_memory(why);
}

static enum cage_status host_parse_bracketed(struct slice text, struct arena *arena, struct host *out, const char **why)
{
	if (text.len < 2 || text.ptr[text.len - 1] != ']')
		return refuse(why, "an address in brackets has no closing bracket");
	struct slice inside = slice_of(text.ptr + 1, text.len - 2);
	if (!addr_parse(inside, &out->addr) || out->addr.family != ADDR_V6)
		return refuse(why, "what stands in brackets is not an IPv6 address");
	return host_set_address(out, arena, why);
}

static bool is_label_byte(unsigned char c)
{
	c = ascii_lower(c);
	return (c >= 'a' && c <= 'z') || ascii_is_digit(c) || c == '-' || c == '_';
}

/* NULL when the label is good, else what is wrong with it. */
static const char *label_fault(struct slice label)
{
	if (label.len == 0)
		return "the host has an empty label";
	if (label.len > LIMIT_LABEL)
		return "a label of the host is longer than 63 bytes";
	for (size_t i = 0; i < label.len; i++)
		if (!is_label_byte((unsigned char)label.ptr[i]))
			return "the host has a byte that no host name has";
	if (label.ptr[0] == '-' || label.ptr[label.len - 1] == '-')
		return "a label of the host starts or ends with a hyphen";
	return NULL;
}

static const char *name_fault(struct slice name)
{
	if (name.len > LIMIT_HOST)
		return "the host is longer than 253 bytes";
	for (struct slice rest = name; rest.len > 0;) {
		const char *fault = label_fault(slice_cut(&rest, '.'));
		if (fault)
			return fault;
	}
	return name.ptr[name.len - 1] == '.' ? "the host has an empty label" : NULL;
}

/* Readers of URLs take a name whose last label looks like a number for an IPv4 address in some spelling. */
static bool ends_in_number(struct slice name)
{
	size_t dot = slice_rfind(name, '.');
	struct slice last = dot == name.len ? name : slice_from(name, dot + 1);
	bool is_hex = last.len >= 2 && last.ptr[0] == '0' && ascii_lower((unsigned char)last.ptr[1]) == 'x';
	for (size_t i = is_hex ? 2 : 0; i < last.len; i++) {
		unsigned char c = (unsigned char)last.ptr[i];
		if (is_hex ? ascii_hex(c) < 0 : !ascii_is_digit(c))
			return false;
	}
	return true;
}

static enum cage_status host_set_name(struct slice name, struct arena *arena, struct host *out, const char **why)
{
	char *lower = arena_alloc(arena, name.len);
	if (!lower)
		return no_memory(why);
	for (size_t i = 0; i < name.len; i++)
		lower[i] = (char)ascii_lower((unsigned char)name.ptr[i]);
	out->kind = HOST_NAME;
	out->text = slice_of(lower, name.len);
	return CAGE_OK;
}

enum cage_status host_parse(struct slice text, struct arena *arena, struct host *out, const char **why)
{
	*out = (struct host){0};
	if (text.len > 0 && text.ptr[0] == '[')
		return host_parse_bracketed(text, arena, out, why);
	if (text.len > 0 && text.ptr[text.len - 1] == '.')
		text.len--;
	if (text.len == 0)
		return refuse(why, "the host is empty");
	const char *fault = name_fault(text);
	if (fault)
		return refuse(why, fault);
	if (!ends_in_number(text))
		return host_set_name(text, arena, out, why);
	if (!addr_parse(text, &out->addr) || out->addr.family != ADDR_V4)
		return refuse(why, "the host is a number that is not a plain dotted IPv4 address");
	return host_set_address(out, arena, why);
}

/* text: what follows the host, empty or with its ':'. */
static enum cage_status port_parse(struct slice text, uint16_t default_port, uint16_t *port, const char **why)
{
	struct slice digits = slice_from(text, 1);
	if (text.len > 0 && text.ptr[0] != ':')
		return refuse(why, "something other than a port follows the host");
	if (digits.len == 0) {
		*port = default_port;
		return default_port ? CAGE_OK : refuse(why, "the port is missing");
	}
	uint64_t value;
	if (digits.ptr[0] == '0' || !slice_to_u64(digits, UINT16_MAX, &value))
		return refuse(why, "the port is not a number from 1 to 65535");
	*port = (uint16_t)value;
	return CAGE_OK;
}

enum cage_status authority_parse(struct slice text, uint16_t default_port, struct arena *arena, struct host *host,
				 uint16_t *port, const char **why)
{
	bool bracketed = text.len > 0 && text.ptr[0] == '[';
	size_t host_len = bracketed ? slice_find(text, ']') + 1 : slice_find(text, ':');
	enum cage_status st = host_parse(slice_head(text, host_len), arena, host, why);
	if (st != CAGE_OK)
		return st;
	return port_parse(slice_from(text, host_len), default_port, port, why);
}

bool host_eq(const struct host *a, const struct host *b)
{
	return a->kind == b->kind && slice_eq(a->text, b->text);
}
