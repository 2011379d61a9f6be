/* Who we are to a proxy that asks, as the variable HTTP_PROXY says it: http://ID:TOKEN@HOST:PORT. */
#ifndef CAGE_ORCHESTRATOR_PROXY_CREDENTIAL_H
#define CAGE_ORCHESTRATOR_PROXY_CREDENTIAL_H

#include "core/base/limits.h"
#include "core/base/slice.h"

/* Room for the longest field, with its NUL. */
#define PROXY_CREDENTIAL (40 + (LIMIT_SANDBOX + 1 + LIMIT_SANDBOX_TOKEN + 2) / 3 * 4)

/* "Proxy-Authorization: Basic ...\r\n", or nothing where the variable has no credential, or one that is too long. */
void proxy_credential(char out[PROXY_CREDENTIAL]);

/* The host of the variable, without its port; empty: there is none. */
struct slice proxy_host(void);

#endif
