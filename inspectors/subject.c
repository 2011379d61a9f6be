/* What can be said of a request's host by the rule that lets it go. */
#include "inspectors/inspector.h"
#include "inspectors/registrable.h"

bool subject_host_is_listed(const struct subject *s)
{
	if (s->match)
		return s->match->is_listed;
	for (size_t i = 0; s->rule && i < s->rule->n_hosts; i++)
		if (slice_eq(s->rule->hosts[i], s->target->host.text))
			return true;
	return false;
}

/* What the widest wildcard of the rule that fits stands before. */
static struct slice wildcard_of(const struct subject *s)
{
	struct slice host = s->target->host.text, widest = SLICE_NONE;
	if (s->match)
		return s->match->wildcard;
	for (size_t i = 0; s->rule && i < s->rule->n_hosts; i++) {
		struct slice pattern = s->rule->hosts[i];
		struct slice below = slice_from(pattern, 2);
		bool is_under = slice_starts(pattern, SLICE("*.")) && slice_ends(host, slice_from(pattern, 1));
		if (is_under && (widest.len == 0 || below.len < widest.len))
			widest = slice_from(host, host.len - below.len);
	}
	return widest;
}

struct slice subject_domain(const struct subject *s)
{
	struct slice wildcard = wildcard_of(s), domain = registrable_domain(&s->target->host);
	return wildcard.len > 0 && wildcard.len < domain.len ? wildcard : domain;
}
