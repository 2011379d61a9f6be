/* The backend of container groups of Azure (docs/azure.md): what the configuration says of it. */
#ifndef CAGE_SERVICE_BACKEND_ACI_H
#define CAGE_SERVICE_BACKEND_ACI_H

#include "orchestrator/service/maker.h"

extern struct maker aci_maker;

#endif
