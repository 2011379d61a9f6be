/* The certificate database of Chromium and others that use NSS, made by certutil where that is at hand. */
#ifndef CAGE_ORCHESTRATOR_NSS_H
#define CAGE_ORCHESTRATOR_NSS_H

#include <stdbool.h>

/* Is certutil at hand? */
bool nss_is_possible(void);

/* Makes KIT/nssdb; nothing happens where there is no certutil. It takes long, so what was made once for this CA is kept
 * in ca_dir. */
void nss_make(const char *kit, const char *ca_dir);

#endif
