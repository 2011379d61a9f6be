/* The certificates of a trust store for Java, without what depends on a password. */
#ifndef CAGE_ORCHESTRATOR_JKS_ENTRIES_H
#define CAGE_ORCHESTRATOR_JKS_ENTRIES_H

#include <stdbool.h>

#include "core/base/slice.h"

#define JKS_DIGEST 20 /* bytes behind them, which a Java that is told no password does not look at */

typedef void jks_put(void *arg, const void *bytes, size_t n);

/* The header, and an entry for each certificate of a PEM file. False: one of them is none. */
bool jks_entries(struct slice pem, jks_put *put, void *arg);

#endif
