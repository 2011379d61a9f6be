/* The command line of cage-relay. Addresses are literals: there is nobody here to ask for names. */
#include <stdio.h>

#include "core/base/say.h"
#include "core/base/usage.h"
#include "orchestrator/relay/relay.h"

static const char help_text[] =
	"usage: cage-relay --carry FROM=TO [options]\n"
	"\n"
	"Carries TCP from loopback to one other address, for an agent that is left nothing but loopback\n"
	"(docs/azure.md).\n"
	"\n"
	"  --carry FROM=TO    127.0.0.1:8080=10.60.0.4:8080: what connects to FROM, a port on loopback, is\n"
	"                     carried to TO; both are addresses with ports, never names; up to 4 times\n"
	"  --out BYTES        all that may be carried out of here; then connections are ended\n"
	"  -h, --help         print this and exit\n"
	"\n"
	"Exit codes: 0 good (SIGTERM), 1 failed, 2 wrong usage.\n";

enum { CARRY = 256, OUT }; /* above all letters */

static const struct option long_options[] = {{"carry", required_argument, NULL, CARRY},
					     {"out", required_argument, NULL, OUT},
					     {"help", no_argument, NULL, 'h'},
					     {NULL, 0, NULL, 0}};

static int wrong(const char *option, const char *why)
{
	say("%s: %s", option, why);
	return 2;
}

static int take_carry(struct relay *r, const char *value)
{
	struct slice to = slice_str(value), from = slice_cut(&to, '=');
	struct carry c = {.listener = -1};
	if (r->n_carries == LIMIT_RELAY_CARRIES)
		return wrong("--carry", "there are too many");
	if (!addr_parse_with_port(from, &c.from, &c.from_port) || !addr_is_loopback(&c.from))
		return wrong("--carry", "expected FROM=TO, where FROM is an address of loopback with a port");
	if (!addr_parse_with_port(to, &c.to, &c.to_port) || c.to_port == 0)
		return wrong("--carry", "expected FROM=TO, where TO is an address with a port, and no name");
	r->carries[r->n_carries++] = c;
	return -1;
}

static int take_out(struct relay *r, const char *value)
{
	r->has_budget = slice_to_u64(slice_str(value), UINT64_MAX, &r->out_left);
	return r->has_budget ? -1 : wrong("--out", "expected a number of bytes");
}

static int take(struct relay *r, int opt, const char *value)
{
	switch (opt) {
	case CARRY:
		return take_carry(r, value);
	case OUT:
		return take_out(r, value);
	case 'h':
		fputs(help_text, stdout);
		return usage_printed();
	default:
		return wrong("cage-relay", "an option that nobody takes");
	}
}

int relay_options(int argc, char **argv, struct relay *out)
{
	char word[USAGE_WORD];
	int opt, code = -1;
	while (code < 0 && (opt = usage_next(argc, argv, ":h", long_options, NULL)) != -1) {
		if (opt == '?' || opt == ':') {
			const char *why = usage_fault(opt, argv, long_options, word);
			return wrong(word, why);
		}
		code = take(out, opt, optarg);
	}
	if (code >= 0)
		return code;
	if (optind < argc)
		return wrong(argv[optind], "there is no such argument");
	return out->n_carries > 0 ? -1 : wrong("--carry", "at least one is needed");
}
