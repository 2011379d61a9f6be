/* What a program was told on its command line, for all of its life. */
#include "core/net/system_servers.h"

#include <stddef.h>

static struct addr_port told;

void system_server_set(const struct addr_port *server)
{
	told = *server;
}

const struct addr_port *system_server(void)
{
	return told.port != 0 ? &told : NULL;
}
