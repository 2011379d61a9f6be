/* What the group of an agent has in the topology `split`: a relay in the place of proxy and dns. It has no policy, no key and no secret. */
#include <stdio.h>
#include <string.h>

#include "orchestrator/aci/group.h"

#define RELAY "/usr/bin/cage-relay" /* in the gate's image, beside what is installed from there */

static void add(json_t *command, const char *option, const char *from, const char *value)
{
	char text[200];
	snprintf(text, sizeof(text), "%s%s", from, value);
	json_array_append_new(command, json_string(option));
	json_array_append_new(command, json_string(text));
}

/* The proxy of a gateway can't count for one sandbox alone: what it may send is counted here. */
static json_t *command(const struct aci *a)
{
	const struct aci_options *o = a->options;
	const char *out = words_option(&o->run.proxy, "--out");
	json_t *words = json_pack("[s]", RELAY);
	add(words, "--carry", "127.0.0.1:8080=", o->gateway);
	if (o->gateway_dns)
		add(words, "--carry", "127.0.0.1:53=", o->gateway_dns);
	if (out)
		add(words, "--out", "", out);
	return words;
}

json_t *group_relay(const struct aci *a)
{
	json_t *p = json_pack("{s:o, s:[], s:o}", "command", command(a), "environmentVariables", "resources",
			      group_resources(GROUP_HELPER_CPU, GROUP_HELPER_MEMORY));
	group_set_security(a->options, p, GROUP_HELPER_USER, json_array());
	return group_container("relay", a->options->gate_image, p);
}

bool group_is_credential(const struct aci *a, const char *variable)
{
	return a->split.token[0] && strstr(variable, a->split.token);
}
