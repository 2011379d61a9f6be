/* What a policy says of the inspectors: made by chain_policy.c when it is loaded, read by chain.c. In the policy's
 * arena. */
#ifndef CAGE_INSPECTORS_CHAIN_CONF_H
#define CAGE_INSPECTORS_CHAIN_CONF_H

#include "inspectors/inspector.h"

struct inspector_conf {
	enum inspect_action action;
	void *conf; /* the inspector's own; not changed once the policy is loaded */
};

struct chain_conf {
	struct inspector_conf *list; /* as in `inspectors` */
	struct format *formats;      /* of all inspectors, beside the catalogue */
	size_t *owners;              /* which inspector each of them belongs to */
	size_t n_formats;
	struct scan_bytes databases; /* the formats compiled; empty when there are none */
};

#endif
