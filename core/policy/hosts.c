/* Host patterns of a policy: a name, "*." before a name, or an address, brought to the one form that requests are
 * brought to as well. */
#include "core/policy/load.h"

static bool is_ascii(struct slice s)
{
	for (size_t i = 0; i < s.len; i++)
		if ((unsigned char)s.ptr[i] > 0x7f)
			return false;
	return true;
}

/* An address literal must be written as we write it: one spelling for policy, log and match. */
static bool ipv6_read(struct loader *l, const struct node *node, const struct addr *addr, struct slice *out)
{
	char buf[ADDR_TEXT];
	struct slice text = addr_format(addr, buf);
	if (!slice_eq(text, node->text)) {
		node_error(l->errs, node, "expected the address in its canonical form, \"%.*s\"", SLICE_FMT(text));
		return false;
	}
	*out = arena_dup(l->arena, text);
	if (!out->ptr)
		load_no_memory(l);
	return out->ptr;
}

static bool host_read(struct loader *l, const struct node *node, struct slice text, struct host *out)
{
	const char *why = "";
	if (!is_ascii(text)) {
		node_error(l->errs, node, "write the name in its ASCII form (xn--...), got %s", quote(text).text);
		return false;
	}
	if (slice_find(text, ':') != text.len || slice_find(text, '/') != text.len ||
	    slice_find(text, '[') != text.len) {
		node_error(l->errs, node, "expected a host without scheme, port, path or brackets, got %s",
			   quote(text).text);
		return false;
	}
	enum cage_status st = host_parse(text, l->arena, out, &why);
	if (st == CAGE_ENOMEM)
		load_no_memory(l);
	else if (st != CAGE_OK)
		node_error(l->errs, node, "%s, got %s", why, quote(text).text);
	return st == CAGE_OK;
}

static bool wildcard_read(struct loader *l, const struct node *node, struct slice *out)
{
	struct slice name = slice_from(node->text, 2);
	struct host host;
	if (slice_eq(node->text, SLICE("*"))) {
		node_error(l->errs, node, "\"*\" alone is not allowed: name the domains, such as \"*.example.com\"");
		return false;
	}
	if (!slice_starts(node->text, SLICE("*.")) || slice_find(name, '*') != name.len) {
		node_error(l->errs, node, "a star may only be the whole first label, \"*.example.com\", got %s",
			   quote(node->text).text);
		return false;
	}
	if (!host_read(l, node, name, &host))
		return false;
	if (host.kind != HOST_NAME) {
		node_error(l->errs, node, "an address has no subdomains, got %s", quote(node->text).text);
		return false;
	}
	char *text = load_keep(l, 2 + host.text.len, 1);
	if (!text)
		return false;
	memcpy(text, "*.", 2);
	memcpy(text + 2, host.text.ptr, host.text.len);
	*out = slice_of(text, 2 + host.text.len);
	return true;
}

bool host_pattern_read(struct loader *l, const struct node *node, struct slice *out)
{
	struct addr addr;
	struct host host;
	if (!text_check(l, node, "a host"))
		return false;
	if (slice_find(node->text, '*') != node->text.len)
		return wildcard_read(l, node, out);
	if (addr_parse(node->text, &addr) && addr.family == ADDR_V6)
		return ipv6_read(l, node, &addr, out);
	if (!host_read(l, node, node->text, &host))
		return false;
	*out = host.text;
	return true;
}
