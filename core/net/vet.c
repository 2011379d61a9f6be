/* The gate between resolving and dialling. One answer with a metadata address or one of our own listeners in it is an
 * attack or a broken zone: nothing of it is used, not even its good addresses. */
#include "core/net/vet.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

static bool is_unspecified(const struct addr *a)
{
	static const unsigned char zero[sizeof(a->bytes)];
	return memcmp(a->bytes, zero, sizeof(zero)) == 0;
}

static bool is_loopback(const struct addr *a)
{
	static const struct addr one = {ADDR_V6, {[15] = 1}};
	return a->family == ADDR_V4 ? a->bytes[0] == 127 : addr_eq(a, &one);
}

/* The kernel connects an IPv4-mapped address over IPv4. */
static struct addr as_dialled(const struct addr *a)
{
	static const struct addr_range mapped = {{ADDR_V6, {[10] = 0xff, 0xff}}, 96};
	struct addr v4 = {ADDR_V4, {0}};
	if (!addr_range_contains(&mapped, a))
		return *a;
	memcpy(v4.bytes, a->bytes + 12, 4);
	return v4;
}

/* The kernel knows best what is local, whatever interfaces, routes and containers there are: only a local address can
 * be bound. Unsure means yes. */
static bool can_bind(const struct addr *a)
{
	struct sockaddr_storage ss;
	socklen_t len = addr_to_sockaddr(a, 0, &ss);
	int fd = socket(ss.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return errno != EAFNOSUPPORT;
	bool local = bind(fd, (struct sockaddr *)&ss, len) == 0 || errno != EADDRNOTAVAIL;
	close(fd);
	return local;
}

static bool is_this_machine(const struct addr *a)
{
	return is_loopback(a) || can_bind(a);
}

/* An unspecified target is connected to ourselves by the kernel, so it is taken for any listener on that port. */
static bool is_self(const struct vet *v, uint16_t port, const struct addr *target)
{
	struct addr a = as_dialled(target);
	for (size_t i = 0; i < v->n_self; i++) {
		if (v->self[i].port != port)
			continue;
		struct addr own = as_dialled(&v->self[i].addr);
		if (is_unspecified(&a) || addr_eq(&a, &own) || (is_unspecified(&own) && is_this_machine(&a)))
			return true;
	}
	return false;
}

/* What no rule can permit; REASON_NONE when there is nothing of the kind. */
static enum reason forbidden_always(const struct vet *v, uint16_t port, const struct addr *a)
{
	if (addr_classify(a) == ADDR_METADATA)
		return REASON_ADDRESS_PRIVATE;
	return is_self(v, port, a) ? REASON_ADDRESS_SELF : REASON_NONE;
}

static bool is_in_ranges(const struct vet *v, const struct addr *a)
{
	for (size_t i = 0; i < v->n_ranges; i++)
		if (addr_range_contains(&v->ranges[i], a))
			return true;
	return false;
}

size_t vet_addresses(const struct vet *v, uint16_t port, struct addr *addrs, size_t n, enum reason *why)
{
	size_t kept = 0;
	for (size_t i = 0; i < n; i++) {
		*why = forbidden_always(v, port, &addrs[i]);
		if (*why != REASON_NONE)
			return 0;
	}
	for (size_t i = 0; i < n; i++) {
		if (v->n_ranges > 0 && !is_in_ranges(v, &addrs[i])) {
			*why = REASON_ADDRESS_OUTSIDE;
			return 0;
		}
		if (v->n_ranges > 0 || addr_classify(&addrs[i]) == ADDR_PUBLIC)
			addrs[kept++] = addrs[i];
	}
	*why = kept > 0 ? REASON_NONE : REASON_ADDRESS_PRIVATE;
	return kept;
}

size_t vet_pin(const struct vet *v, uint16_t port, const struct addr *addr, enum reason *why)
{
	*why = forbidden_always(v, port, addr);
	return *why == REASON_NONE ? 1 : 0;
}
