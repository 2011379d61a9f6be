/* Sandboxes as container groups of Azure, made by cage-aci (orchestrator/aci). */
#include "orchestrator/service/backend_aci.h"

#include <stdlib.h>

#include "orchestrator/backend.h"
#include "orchestrator/service/backend_local.h"

struct maker aci_maker = {.program = "cage-aci", .word = "aci="};

/* Who we are to Azure comes from our environment, of which a keeper has nothing otherwise. Values of secrets stay as they are. */
static struct words own_env(const struct backend_start *s)
{
	static const char *const names[] = {"AZURE_TENANT_ID",      "AZURE_CLIENT_ID",
					    "AZURE_CLIENT_SECRET",  "AZURE_FEDERATED_TOKEN_FILE",
					    "AZURE_AUTHORITY_HOST", "AZURE_POD_IDENTITY_AUTHORITY_HOST",
					    "AZURE_CONFIG_DIR",     "HOME",
					    "CAGE_INTAKE_TOKEN"};
	struct words env = {0};
	for (size_t i = 0; i < s->env->n; i++)
		words_add(&env, "%s", s->env->list[i]);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (getenv(names[i]))
			words_add(&env, "%s=%s", names[i], getenv(names[i]));
	return env;
}

static bool has_groups(void)
{
	return true; /* a container of a group has its own */
}

static pid_t start(const struct backend_start *s)
{
	struct backend_start own = *s;
	struct words env = own_env(s);
	own.env = &env;
	pid_t pid = env.failed ? -1 : maker_start(&aci_maker, &own);
	words_wipe(&env);
	return pid;
}

static bool begin(const struct backend_start *s)
{
	return maker_begin(&aci_maker, s);
}

static void tidy(const char *state)
{
	maker_tidy(&aci_maker, state);
}

static bool has_started(const char *dir)
{
	return maker_has_started(&aci_maker, dir);
}

static bool reap(const char *dir)
{
	return maker_reap(&aci_maker, dir);
}

static bool remove_all(const char *dir)
{
	return maker_remove(&aci_maker, dir);
}

const struct backend backend_aci = {.name = "aci",
				    .takes_images = true,
				    .has_groups = has_groups,
				    .start = start,
				    .begin = begin,
				    .list = maker_list,
				    .has_started = has_started,
				    .tidy = tidy,
				    .reap = reap,
				    .remove = remove_all};
