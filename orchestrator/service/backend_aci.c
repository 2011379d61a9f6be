/* Sandboxes as container groups of Azure, made by cage-aci (orchestrator/aci). */
#include "orchestrator/service/backend_aci.h"

#include "orchestrator/aci/settings.h"

/* Who we are to Azure, to the registry and to a gateway. */
static const char *const own_env[] = {"AZURE_TENANT_ID",
				      "AZURE_CLIENT_ID",
				      "AZURE_CLIENT_SECRET",
				      "AZURE_FEDERATED_TOKEN_FILE",
				      "AZURE_AUTHORITY_HOST",
				      "AZURE_POD_IDENTITY_AUTHORITY_HOST",
				      "AZURE_CONFIG_DIR",
				      "HOME",
				      REGISTRY_PASSWORD,
				      INTAKE_TOKEN,
				      NULL};

struct maker aci_maker = {.program = "cage-aci", .word = "aci=", .env = own_env};

const struct backend backend_aci = MAKER_BACKEND("aci", &aci_maker, LIMIT_ACI_FILES);
