/* Read from /proc/net, which shows the network of the process that reads it. */
#include "orchestrator/gate/listening.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/gate/say.h"

enum { STATE_LISTEN = 10 };

static int add(struct listening *l, uint32_t address, unsigned port)
{
	if (l->n == LISTENING_MAX) {
		say("more than %d listeners here", LISTENING_MAX);
		return -1;
	}
	l->all[l->n].address = address;
	l->all[l->n++].port = port;
	return 0;
}

/* Lines such as "  0: 0100007F:1F90 00000000:0000 0A ...": slot, local address (as it is in memory) and port, peer and
 * its port, state. */
static int take_line(struct listening *l, char *line, bool is_ipv6)
{
	char *rest = NULL;
	strtok_r(line, ":", &rest);
	const char *address = strtok_r(NULL, ":", &rest);
	const char *port = strtok_r(NULL, " ", &rest);
	strtok_r(NULL, " ", &rest);
	const char *state = strtok_r(NULL, " ", &rest);
	if (!address || !port || !state || strtoul(state, NULL, 16) != STATE_LISTEN)
		return 0;
	return add(l, is_ipv6 ? LISTENING_IPV6 : ntohl((uint32_t)strtoul(address, NULL, 16)),
		   (unsigned)strtoul(port, NULL, 16));
}

static int read_table(struct listening *l, FILE *table, bool is_ipv6)
{
	char line[512];
	int result = 0;
	while (result == 0 && fgets(line, sizeof(line), table))
		result = take_line(l, line, is_ipv6);
	return result;
}

int listening_read(struct listening *out)
{
	static const char *const tables[] = {"/proc/net/tcp", "/proc/net/tcp6"};
	out->n = 0;
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		FILE *table = fopen(tables[i], "re");
		if (!table && i > 0 && errno == ENOENT)
			continue; /* a kernel without IPv6 */
		if (!table)
			return say_errno(tables[i]);
		int result = read_table(out, table, i > 0);
		fclose(table);
		if (result < 0)
			return -1;
	}
	return 0;
}

/* Their names begin with @, and names are all that a line of this table has behind its numbers. */
bool listening_abstract(void)
{
	char line[512];
	bool found = false;
	FILE *table = fopen("/proc/net/unix", "re");
	if (!table)
		return true;
	while (!found && fgets(line, sizeof(line), table))
		found = strstr(line, " @") != NULL;
	fclose(table);
	return found;
}
