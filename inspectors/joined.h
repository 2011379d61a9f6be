/* The values of a form, joined: "a=1&b=2" as "12", so that what was split over parameters is whole again (THREATS T28).
 * Works on pieces cut anywhere. */
#ifndef CAGE_INSPECTORS_JOINED_H
#define CAGE_INSPECTORS_JOINED_H

#include "core/base/slice.h"

enum joined_state { JOINED_NAME, JOINED_VALUE };

struct joined {
	enum joined_state state; /* what the next byte belongs to */
};

/* Could a body that starts so be a form? By its first byte, since the declared type is only a claim: neither JSON nor
 * XML nor multipart begins like a name. */
bool joined_applies(struct slice start);

/* The next part of a value in *rest, which moves behind it; empty at the end of the piece. */
struct slice joined_next(struct joined *j, struct slice *rest);

#endif
