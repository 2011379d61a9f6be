/* What is said of Azure, judged value by value and together, all of it at once: by the service, which knows where in its file each stands
 * (service/config_aci.c), and by cage-aci, to which they are options. Nothing of it needs a network. */
#ifndef CAGE_ACI_SETTINGS_H
#define CAGE_ACI_SETTINGS_H

#include "core/base/slice.h"

#define INTAKE_TOKEN "CAGE_INTAKE_TOKEN"           /* the variable that has the token of the intake */
#define REGISTRY_PASSWORD "CAGE_REGISTRY_PASSWORD" /* that of --registry-username */

/* Names are those of options, "gateway-dns". */
struct aci_settings {
	/* The value of that name, and of one that is repeated number i of them; no pointer: there is none, or it was told why not. */
	struct slice (*value)(const void *from, const char *name, size_t i);
	void (*tell)(void *from, const char *name, size_t i, const char *why);
	void *from;
	struct slice token; /* of the intake; no pointer: none */
	bool has_password;  /* there is a REGISTRY_PASSWORD */
};

/* False: something was told. */
bool aci_settings_check(const struct aci_settings *s);

/* What was made by other settings, or an earlier cage, has to be found and removed all the same: no more than that needs. */
bool aci_settings_check_few(const struct aci_settings *s);

#endif
