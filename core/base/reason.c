/* The text of each reason code. */
#include "core/base/reason.h"

static const struct slice codes[REASON_COUNT] = {
#define X(name, text) {text, sizeof(text) - 1},
	CAGE_REASONS(X)
#undef X
};

struct slice reason_code(enum reason r)
{
	return r < REASON_COUNT ? codes[r] : codes[REASON_INTERNAL];
}
