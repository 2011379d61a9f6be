/* Names of what there is in Azure, and of its states. */
#include <stdio.h>
#include <strings.h>

#include "orchestrator/aci/aci.h"

const char *const aci_containers[ACI_CONTAINERS] = {"agent", "proxy", "dns"};

/* below: "/containers/agent/logs", or "". */
void aci_group_path(const struct arm *a, const char *id, const char *below, char out[LIMIT_ARM_URL])
{
	char resource[512];
	snprintf(resource, sizeof(resource), ACI_TYPE "/cage-%s%s", id, below);
	arm_path(a, resource, ACI_VERSION, out);
}

bool aci_group_has_failed(const json_t *group)
{
	const char *state =
		json_string_value(json_object_get(json_object_get(group, "properties"), "provisioningState"));
	return state && strcasecmp(state, "Failed") == 0;
}
