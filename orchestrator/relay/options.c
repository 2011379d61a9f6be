/* The command line of cage-relay. Addresses are literals: there is nobody here to ask for names. */
#include <getopt.h>

#include "core/base/option_table.h"
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
	"  --version          print the version and exit\n"
	"  -h, --help         print this and exit\n"
	"\n"
	"Exit codes: 0 good (SIGTERM), 1 failed, 2 wrong usage.\n";

static const char *take_carry(void *place, const char *value)
{
	struct relay *r = place;
	struct slice to = slice_str(value), from = slice_cut(&to, '=');
	struct carry c = {.listener = -1};
	if (r->n_carries == LIMIT_RELAY_CARRIES)
		return "there are too many";
	if (!addr_parse_with_port(from, &c.from, &c.from_port) || !addr_is_loopback(&c.from))
		return "expected FROM=TO, where FROM is an address of loopback with a port";
	if (!addr_parse_with_port(to, &c.to, &c.to_port) || c.to_port == 0)
		return "expected FROM=TO, where TO is an address with a port, and no name";
	r->carries[r->n_carries++] = c;
	return NULL;
}

static const char *take_out(void *place, const char *value)
{
	struct relay *r = place;
	r->has_budget = slice_to_u64(slice_str(value), UINT64_MAX, &r->out_left);
	return r->has_budget ? NULL : "expected a number of bytes";
}

static const struct option_row rows[] = {{"carry", OPTION_TAKEN, 0, take_carry}, {"out", OPTION_TAKEN, 0, take_out}};

static const struct option_table table = {.program = "cage-relay",
					  .help = help_text,
					  .more = "--help lists all options",
					  .rows = rows,
					  .n_rows = sizeof(rows) / sizeof(rows[0])};

int relay_options(int argc, char **argv, struct relay *out)
{
	const int code = option_table_read(&table, argc, argv, out);
	if (code != OPTIONS_GO_ON)
		return code;
	if (optind < argc)
		return option_table_wrong(&table, argv[optind], "there is no such argument");
	return out->n_carries > 0 ? OPTIONS_GO_ON : option_table_wrong(&table, "--carry", "at least one is needed");
}
