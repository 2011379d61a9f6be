/* Money, without rounding on the way: prices are whole numbers of 10^-12 of a currency's unit, amounts of 10^-9. */
#ifndef CAGE_BASE_COST_H
#define CAGE_BASE_COST_H

#include "core/base/slice.h"

#define COST_CURRENCY 16

struct prices {
	uint64_t vcpu, gb; /* of a second of one vCPU, and of one GB; in 10^-12 */
	char currency[COST_CURRENCY];
	bool is_set; /* somebody has said what it costs */
};

/* "0.0000135": less than a million, with at most twelve digits behind the dot. */
bool price_parse(struct slice text, uint64_t *out);

/* What is expected of one that is none. */
const char *price_expected(struct slice text);

#define PRICE_TEXT 24

/* The other way. */
void price_format(uint64_t price, char out[PRICE_TEXT]);

/* In 10^-9, the half of one rounded up, for so many millionths of a vCPU-second and of a GB-second. More than can be told:
 * UINT64_MAX. */
uint64_t cost_nano(const struct prices *p, uint64_t vcpu_us, uint64_t gb_us);

#endif
