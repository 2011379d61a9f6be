/* Values that several keys of the configuration have. */
#include <stdio.h>

#include "orchestrator/service/config_private.h"

void config_text(struct loader *l, const struct node *value, char *out, size_t room)
{
	if (!text_check(l, value, "text"))
		return;
	if (value->text.len >= room || memchr(value->text.ptr, 0, value->text.len)) {
		node_error(l->errs, value, "expected at most %zu bytes", room - 1);
		return;
	}
	memcpy(out, value->text.ptr, value->text.len);
	out[value->text.len] = '\0';
}

void config_path(struct loader *l, const struct node *value, char *out)
{
	config_text(l, value, out, CONFIG_PATH);
	if (value->kind == NODE_TEXT && value->text.len > 0 && value->text.ptr[0] != '/')
		node_error(l->errs, value, "expected an absolute path, got %s", node_describe(value).text);
}

void config_count(struct loader *l, const struct node *value, uint64_t max, uint64_t *out)
{
	uint64_t n;
	if (!number_read(l, value, max, &n))
		return;
	if (n == 0)
		node_error(l->errs, value, "expected at least 1");
	*out = n;
}

/* A number with up to nine digits behind a dot, which may be 0. */
bool config_decimal(struct loader *l, const struct node *value, double *out)
{
	uint64_t whole = 0, part = 0;
	struct slice rest = value->kind == NODE_TEXT ? value->text : SLICE_NONE;
	bool has_dot = slice_find(rest, '.') != rest.len;
	struct slice digits = slice_cut(&rest, '.');
	if (!slice_to_u64(digits, 1000000000, &whole) ||
	    (has_dot && (rest.len == 0 || rest.len > 15 || !slice_to_u64(rest, UINT64_MAX, &part)))) {
		node_error(l->errs, value, "expected a number such as 2 or 0.5, got %s", node_describe(value).text);
		return false;
	}
	double fraction = (double)part;
	for (size_t i = 0; has_dot && i < rest.len; i++)
		fraction /= 10;
	*out = (double)whole + fraction;
	return true;
}
