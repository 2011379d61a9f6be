/* Networks and users of sandboxes, as text. */
#include "orchestrator/pod/pool.h"

#include <arpa/inet.h>
#include <string.h>

#include "core/base/slice.h"

bool pod_pool_parse(const char *text, struct in_addr *first, unsigned *bits)
{
	char address[INET_ADDRSTRLEN];
	struct slice rest = slice_str(text), begin = slice_cut(&rest, '/');
	uint64_t n = 0;
	if (begin.len >= sizeof(address) || !slice_to_u64(rest, 27, &n) || n < 8)
		return false;
	memcpy(address, begin.ptr, begin.len);
	address[begin.len] = '\0';
	*bits = (unsigned)n;
	return inet_pton(AF_INET, address, first) == 1 && (ntohl(first->s_addr) & (~0u >> n)) == 0;
}

bool pod_uids_parse(const char *text, uint32_t *first)
{
	uint64_t n = 0;
	if (!slice_to_u64(slice_str(text), 2000000000, &n) || n < 1000)
		return false;
	*first = (uint32_t)n;
	return true;
}
