/* Pieces that containers of any topology are made of. */
#ifndef CAGE_ACI_GROUP_H
#define CAGE_ACI_GROUP_H

#include "orchestrator/aci/aci.h"

#define GROUP_HELPER_CPU 0.25
#define GROUP_HELPER_MEMORY 0.25 /* GB */
#define GROUP_HELPER_USER 65532

json_t *group_strings(const char *const *words); /* up to NULL */
json_t *group_resources(double cpu, double memory);

/* Sets what a confidential group has of it. capabilities, all that it keeps, is taken over. */
void group_set_security(const struct aci_options *o, json_t *properties, int uid, json_t *capabilities);

/* properties is taken over. */
json_t *group_container(const char *name, const char *image, json_t *properties);

/* group_split.c: what carries to the gateway, beside the agent. */
json_t *group_relay(const struct aci *a);

/* Is it a variable with the credential of the gateway's sandbox? */
bool group_is_credential(const struct aci *a, const char *variable);

#endif
