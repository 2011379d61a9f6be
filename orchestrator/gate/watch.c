/* Refused attempts leave no trace at a listener, so they are seen on the wire of loopback. The filter is the kernel's
 * classic BPF, over packets that begin with the IP header. Fragments and extension headers are not followed: this
 * socket only tells, and nothing that it misses gets anywhere. */
#include "orchestrator/gate/watch.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "orchestrator/gate/netns.h"

enum { AT_IPV4 = 6, AT_IPV6 = 15, AT_REST = 26, AT_PROTOCOL = 28, AT_UDP = 37, AT_TAKE = 41, AT_DROP = 42 };
enum { WATCH_BYTES = 128, WATCH_BUFFER = 65536 };

#define AUX(what) ((unsigned)(SKF_AD_OFF + (what)))
/* Jumps of the instruction at `at` to where they go; NEXT goes on. */
#define JUMP(at, how, value, yes, no) \
	BPF_JUMP(BPF_JMP | (how) | BPF_K, (value), (unsigned char)((yes) - (at)-1), (unsigned char)((no) - (at)-1))

/* clang-format off */
static struct sock_filter attempts[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, AUX(SKF_AD_PKTTYPE)),
	JUMP(1, BPF_JEQ, PACKET_OUTGOING, AT_DROP, 2), /* lo shows each packet twice */
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, AUX(SKF_AD_PROTOCOL)),
	JUMP(3, BPF_JEQ, ETH_P_IP, AT_IPV4, 4),
	JUMP(4, BPF_JEQ, ETH_P_IPV6, AT_IPV6, 5),
	BPF_STMT(BPF_RET | BPF_K, 0),
	/* AT_IPV4: the destination, which is not the room itself; the fragment offset, the length of the header */
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 16),
	JUMP(7, BPF_JEQ, NETNS_OWN_IPV4, AT_DROP, 8),
	BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 24),
	JUMP(9, BPF_JEQ, 127, AT_DROP, 10),
	BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 6),
	JUMP(11, BPF_JSET, 0x1fff, AT_DROP, 12),
	BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0),
	BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 9),
	BPF_STMT(BPF_JMP | BPF_JA, AT_PROTOCOL - 15),
	/* AT_IPV6: the destination, which is neither ::1 nor the room's own; both have zeros in between */
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 28),
	JUMP(16, BPF_JEQ, 0, 17, AT_REST),
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 32),
	JUMP(18, BPF_JEQ, 0, 19, AT_REST),
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 24),
	JUMP(20, BPF_JEQ, 0, 24, 21),
	JUMP(21, BPF_JEQ, NETNS_OWN_IPV6_FIRST, 22, AT_REST),
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 36),
	JUMP(23, BPF_JEQ, NETNS_OWN_IPV6_LAST, AT_DROP, AT_REST),
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 36),
	JUMP(25, BPF_JEQ, 1, AT_DROP, AT_REST),
	BPF_STMT(BPF_LDX | BPF_W | BPF_IMM, 40), /* AT_REST */
	BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 6),
	/* AT_PROTOCOL: TCP with SYN and without ACK, to ports that nobody captures */
	JUMP(28, BPF_JEQ, IPPROTO_TCP, 30, 29),
	JUMP(29, BPF_JEQ, IPPROTO_UDP, AT_UDP, AT_DROP),
	BPF_STMT(BPF_LD | BPF_B | BPF_IND, 13),
	BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0x12),
	JUMP(32, BPF_JEQ, 0x02, 33, AT_DROP),
	BPF_STMT(BPF_LD | BPF_H | BPF_IND, 2),
	JUMP(34, BPF_JEQ, 80, AT_DROP, 35),
	JUMP(35, BPF_JEQ, 443, AT_DROP, 36),
	JUMP(36, BPF_JEQ, 53, AT_DROP, AT_TAKE),
	/* AT_UDP: neither a question for a name nor its answer; only cage-dns has that port */
	BPF_STMT(BPF_LD | BPF_H | BPF_IND, 0),
	JUMP(38, BPF_JEQ, 53, AT_DROP, 39),
	BPF_STMT(BPF_LD | BPF_H | BPF_IND, 2),
	JUMP(40, BPF_JEQ, 53, AT_DROP, AT_TAKE),
	BPF_STMT(BPF_RET | BPF_K, WATCH_BYTES), /* AT_TAKE */
	BPF_STMT(BPF_RET | BPF_K, 0), /* AT_DROP */
};
/* clang-format on */
_Static_assert(sizeof(attempts) / sizeof(attempts[0]) == AT_DROP + 1, "jumps are counted by hand");

/* The filter is in place before the socket is bound to what it may see: protocol 0 sees nothing. */
int watch_socket(void)
{
	struct sock_fprog filter = {sizeof(attempts) / sizeof(attempts[0]), attempts};
	struct sockaddr_ll loopback = {
		.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = (int)if_nametoindex("lo")};
	const int size = WATCH_BUFFER;
	int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)) < 0 ||
	    bind(fd, (struct sockaddr *)&loopback, sizeof(loopback)) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}
