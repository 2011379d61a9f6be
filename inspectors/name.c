/* name: the host name itself can carry data, to whoever serves the domain's names and to whoever sees the ClientHello. So
 * it is looked at before it is resolved or shown: labels that are too long, too many or too random, and too many different
 * names under one domain (THREATS T16). Secret formats in it are the business of `secrets`.
 *
 * Only names that a wildcard allows are judged: a name that the policy spells out carries nothing that the policy does
 * not say itself. */
#include "core/base/clock.h"
#include "inspectors/ledger.h"
#include "inspectors/scan/checks.h"
#include "inspectors/table.h"

#define MINUTE_US 60000000u

/* A part of a label (between '-' and '_') is random when it is that long, goes back and forth between letters and digits
 * that often, and has that entropy: encoded data does, words with a number behind them don't. */
#define RANDOM_LENGTH 20
#define RANDOM_TURNS 4
#define RANDOM_ENTROPY 3.2

struct name_conf {
	uint64_t label_length; /* bytes of one label */
	uint64_t labels;       /* labels below the registrable domain */
	uint64_t names;        /* different names under one registrable domain in a minute */
};

static const struct name_conf defaults = {.label_length = 40, .labels = 6, .names = 60};

/* ---- policy ---- */

static void read_label_length(struct loader *l, const struct node *value, void *out)
{
	struct name_conf *conf = out;
	number_read(l, value, LIMIT_LABEL, &conf->label_length);
}

static void read_labels(struct loader *l, const struct node *value, void *out)
{
	struct name_conf *conf = out;
	number_read(l, value, LIMIT_HOST, &conf->labels);
}

static void read_names(struct loader *l, const struct node *value, void *out)
{
	struct name_conf *conf = out;
	number_read(l, value, LIMIT_NAMES, &conf->names);
}

static const struct key name_keys[] = {
	{WORD("label_length"), read_label_length, KEY_OPTIONAL},
	{WORD("labels"), read_labels, KEY_OPTIONAL},
	{WORD("names"), read_names, KEY_OPTIONAL},
};

/* ---- at work ---- */

static size_t count_turns(struct slice s)
{
	size_t turns = 0;
	for (size_t i = 1; i < s.len; i++)
		turns += ascii_is_digit((unsigned char)s.ptr[i]) != ascii_is_digit((unsigned char)s.ptr[i - 1]);
	return turns;
}

static bool is_random(struct slice part)
{
	return part.len >= RANDOM_LENGTH && count_turns(part) >= RANDOM_TURNS && value_entropy(part) >= RANDOM_ENTROPY;
}

static bool has_random_part(struct slice label)
{
	size_t from = 0;
	for (size_t i = 0; i <= label.len; i++) {
		if (i < label.len && label.ptr[i] != '-' && label.ptr[i] != '_')
			continue;
		if (is_random(slice_of(label.ptr + from, i - from)))
			return true;
		from = i + 1;
	}
	return false;
}

/* What stands before the registrable domain, without its dot. */
static struct slice subdomain_of(const struct host *host, struct slice domain)
{
	size_t n = host->text.len - domain.len;
	return slice_head(host->text, n > 0 ? n - 1 : 0);
}

static bool is_suspicious(struct slice subdomain, const struct name_conf *conf)
{
	size_t labels = 0;
	while (subdomain.len > 0) {
		struct slice label = slice_cut(&subdomain, '.');
		if (++labels > conf->labels || label.len > conf->label_length || has_random_part(label))
			return true;
	}
	return false;
}

/* Are there too many names under this domain, or is there no room to count them? */
static enum reason count_name(struct inspection *i, struct slice domain, const struct name_conf *conf)
{
	const struct subject *s = inspection_subject(i);
	struct ledger *l = inspection_ledger(i);
	uint64_t key = ledger_key(l, s->sandbox, LEDGER_NAMES, &domain, 1);
	unsigned count = 0;
	if (ledger_distinct(l, key, s->target->host.text, MINUTE_US, clock_mono_us(), &count) != CAGE_OK)
		return REASON_LIMIT_COUNTERS;
	return count > conf->names ? REASON_NAME_SUSPICIOUS : REASON_NONE;
}

static enum inspect_result on_name(struct inspection *i)
{
	const struct subject *s = inspection_subject(i);
	const struct name_conf *conf = inspection_conf(i);
	struct spot spot = {.place = PLACE_HOST};
	if (s->target->host.kind != HOST_NAME || subject_host_is_listed(s))
		return INSPECT_DONE;
	struct slice domain = subject_domain(s);
	enum reason reason = REASON_NAME_SUSPICIOUS;
	if (!is_suspicious(subdomain_of(&s->target->host, domain), conf))
		reason = count_name(i, domain, conf);
	if (reason != REASON_NONE)
		inspection_report(i, reason, &spot, SLICE_NONE, SLICE_NONE);
	return INSPECT_DONE;
}

const struct inspector name_inspector = {.name = WORD("name"),
					 .action = ACTION_BLOCK,
					 .conf_size = sizeof(struct name_conf),
					 .conf_default = &defaults,
					 .keys = name_keys,
					 .n_keys = sizeof(name_keys) / sizeof(name_keys[0]),
					 .on_name = on_name};
