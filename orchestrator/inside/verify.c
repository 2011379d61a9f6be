/* cage-inside --verify: it is in every sandbox, whatever its image has, and only root could change it there. */
#include "orchestrator/inside/verify.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "orchestrator/probes.h"
#include "orchestrator/proxy_credential.h"

#define NO_BAIT "-none is laid for a sandbox that runs"

static const char *const baits[BAITS] = {NO_BAIT, NO_BAIT, NO_BAIT, NO_BAIT, NO_BAIT, NO_BAIT, NO_BAIT};

static bool is_room(void)
{
	if (prctl(PR_SET_DUMPABLE, 0) == 0 && probes_are_confined())
		return true;
	fputs("cage-inside: this is not a room: nothing is tried here\n", stderr);
	return false;
}

/* "http://10.213.0.2:8080" in a container; a room has its helpers on loopback. */
static void find_helpers(struct probes_room *r)
{
	struct in_addr at;
	const struct slice host = proxy_host();
	char address[PROBES_ADDRESS] = PROBES_LOOPBACK;
	if (host.len > 0)
		snprintf(address, sizeof(address), "%.*s", SLICE_FMT(host));
	if (inet_pton(AF_INET, address, &at) != 1)
		return;
	memcpy(r->helpers, address, sizeof(r->helpers));
	r->network = strcmp(address, PROBES_LOOPBACK) == 0 ? PROBES_OWN : PROBES_APART;
}

/* Whoever is at work in the sandbox can end this, but not speak in its place. */
int verify_sandbox(void)
{
	probes_room = (struct probes_room){
		.helpers = PROBES_LOOPBACK, .is_sandbox = true, .parent = getppid(), .baits = baits};
	find_helpers(&probes_room);
	return is_room() && probes_run() ? 0 : 1;
}

bool verify_group(void)
{
	probes_room = (struct probes_room){.network = PROBES_SHARED,
					   .helpers = PROBES_LOOPBACK,
					   .is_sandbox = true,
					   .is_entering = true,
					   .parent = getppid(),
					   .baits = baits};
	return is_room() && probes_run();
}
