/* Single values of a policy: sizes, times, rates, ports, methods and words. Each either is good or says what it should be. */
#include <stdio.h>

#include "core/base/units.h"
#include "core/policy/load.h"

bool number_read(struct loader *l, const struct node *node, uint64_t max, uint64_t *out)
{
	if (node->kind == NODE_TEXT && slice_to_u64(node->text, max, out))
		return true;
	node_error(l->errs, node, "expected a number up to %llu, got %s", (unsigned long long)max,
		   node_describe(node).text);
	return false;
}

bool size_read(struct loader *l, const struct node *node, uint64_t max, uint64_t *out)
{
	if (node->kind != NODE_TEXT || !units_size(node->text, out)) {
		node_error(l->errs, node, "expected a size such as 4096, 512KiB, 32MiB or 1GiB, got %s",
			   node_describe(node).text);
		return false;
	}
	if (*out > max)
		node_error(l->errs, node, "expected at most %llu bytes, got %s", (unsigned long long)max,
			   node_describe(node).text);
	return *out <= max;
}

/* In the largest unit that it is a number of. */
static void duration_format(uint64_t seconds, char *out, size_t room)
{
	static const struct {
		uint64_t seconds;
		char letter;
	} periods[] = {{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}};
	size_t i = 0;
	while (seconds % periods[i].seconds != 0)
		i++;
	snprintf(out, room, "%llu%c", (unsigned long long)(seconds / periods[i].seconds), periods[i].letter);
}

bool duration_read(struct loader *l, const struct node *node, uint64_t max_s, uint64_t *us)
{
	if (node->kind == NODE_TEXT && units_duration(node->text, max_s, us)) {
		*us *= 1000000;
		return true;
	}
	char most[24];
	duration_format(max_s, most, sizeof(most));
	node_error(l->errs, node, "expected a time such as 30s, 10m, 24h or 7d, at most %s, got %s", most,
		   node_describe(node).text);
	return false;
}

/* What stands before the slash, and the period behind it. */
static bool period_parse(struct slice text, struct slice *count, uint64_t *period_us)
{
	*count = slice_cut(&text, '/');
	*period_us = units_period(text) * 1000000;
	return *period_us > 0;
}

bool rate_read(struct loader *l, const struct node *node, struct policy_rate *out)
{
	struct slice count;
	struct policy_rate r;
	if (node->kind != NODE_TEXT || !period_parse(node->text, &count, &r.period_us) ||
	    !slice_to_u64(count, LIMIT_POLICY_RATE, &r.count) || r.count == 0) {
		node_error(l->errs, node, "expected a rate of 1 to %d such as 10/s, 5/m, 100/h or 1/d, got %s",
			   LIMIT_POLICY_RATE, node_describe(node).text);
		return false;
	}
	*out = r;
	return true;
}

bool burst_read(struct loader *l, const struct node *node, uint64_t *out)
{
	if (node->kind == NODE_TEXT && slice_to_u64(node->text, LIMIT_POLICY_RATE, out))
		return true;
	node_error(l->errs, node, "expected an integer from 0 to %d, got %s", LIMIT_POLICY_RATE,
		   node_describe(node).text);
	return false;
}

bool size_rate_read(struct loader *l, const struct node *node, uint64_t max, struct policy_rate *out)
{
	struct slice size;
	struct policy_rate r;
	if (node->kind != NODE_TEXT || !period_parse(node->text, &size, &r.period_us) || !units_size(size, &r.count) ||
	    r.count == 0) {
		node_error(l->errs, node, "expected a size in a period such as 500MiB/h or 1GiB/d, got %s",
			   node_describe(node).text);
		return false;
	}
	if (r.count > max) {
		node_error(l->errs, node, "expected at most %llu bytes, got %s", (unsigned long long)max,
			   node_describe(node).text);
		return false;
	}
	*out = r;
	return true;
}

bool flag_read(struct loader *l, const struct node *node, bool *out)
{
	static const struct slice words[] = {WORD("false"), WORD("true")};
	size_t i;
	if (!choice_read(l, node, words, 2, &i))
		return false;
	*out = i == 1;
	return true;
}

bool port_read(struct loader *l, const struct node *node, uint16_t *out)
{
	uint64_t port = 0;
	if (node->kind != NODE_TEXT || slice_starts(node->text, SLICE("0")) ||
	    !slice_to_u64(node->text, UINT16_MAX, &port)) {
		node_error(l->errs, node, "expected a port from 1 to 65535, got %s", node_describe(node).text);
		return false;
	}
	*out = (uint16_t)port;
	return true;
}

static bool is_letter(unsigned char c)
{
	return ascii_lower(c) >= 'a' && ascii_lower(c) <= 'z';
}

bool word_is_plain(struct slice s, size_t max)
{
	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.ptr[i];
		if (!is_letter(c) && !ascii_is_digit(c) && c != '.' && c != '_' && c != '-')
			return false;
	}
	return s.len > 0 && s.len <= max;
}

/* A token of RFC 9110 without lower-case letters. */
static bool is_method_byte(unsigned char c)
{
	if (is_letter(c))
		return c <= 'Z';
	return ascii_is_digit(c) || (c != 0 && strchr("!#$%&'*+-.^_`|~", c));
}

bool method_check(struct loader *l, const struct node *node, struct slice method)
{
	bool good = method.len > 0 && method.len <= LIMIT_METHOD;
	for (size_t i = 0; i < method.len && good; i++)
		good = is_method_byte((unsigned char)method.ptr[i]);
	if (!good)
		node_error(l->errs, node, "expected a method in upper case, such as GET, got %s",
			   node_describe(node).text);
	return good;
}
