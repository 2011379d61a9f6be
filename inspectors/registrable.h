/* The registrable domain of a host name: what somebody can buy ("a.b.example.co.uk" -> "example.co.uk"), by the public
 * suffix list. Limits count by it, so that rotating subdomains does not help. */
#ifndef CAGE_INSPECTORS_REGISTRABLE_H
#define CAGE_INSPECTORS_REGISTRABLE_H

#include "core/http/url.h"

/* Borrowed from the host's text. A public suffix itself, an address, or a name without a dot: all of it. */
struct slice registrable_domain(const struct host *host);

#endif
