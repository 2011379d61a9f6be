/* A packet of the room's network, cut anywhere. Promises: a port is found only behind a whole header, and where the
 * address and the port are is what the first bytes say. */
#include "proxy/watch.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct addr to;
	uint16_t port = 0;
	if (!watch_parse(slice_of(data, size), &to, &port))
		return 0;
	const size_t header = to.family == ADDR_V4 ? 4 * (size_t)(data[0] & 0xf) : 40;
	PROMISE(data[0] >> 4 == (int)to.family && size >= header + 4);
	PROMISE(port == (data[header + 2] << 8 | data[header + 3]));
	return 0;
}
