/* A trust store for Java. */
#ifndef CAGE_ORCHESTRATOR_JKS_H
#define CAGE_ORCHESTRATOR_JKS_H

#include <stdbool.h>
#include <stddef.h>

#define JKS_PASSWORD "changeit" /* protects nothing: there are only certificates in it, and it is Java's own default */

/* Writes DIR/NAME with all certificates of a PEM file. */
bool jks_write(const char *dir, const char *name, const char *pem, size_t len);

#endif
