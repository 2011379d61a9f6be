/* Without a library: a handful of requests is all that there is. */
#include "orchestrator/netlink.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

static int send_request(int fd, const struct nlmsghdr *request)
{
	struct {
		struct nlmsghdr header;
		struct nlmsgerr error;
		char rest[512];
	} answer = {0};
	if (send(fd, request, request->nlmsg_len, 0) != (ssize_t)request->nlmsg_len)
		return -1;
	ssize_t n = recv(fd, &answer, sizeof(answer), 0);
	if (n < (ssize_t)NLMSG_LENGTH(sizeof(struct nlmsgerr)) || answer.header.nlmsg_type != NLMSG_ERROR) {
		errno = EPROTO;
		return -1;
	}
	errno = -answer.error.error;
	return answer.error.error == 0 ? 0 : -1;
}

int netlink_ask(const struct nlmsghdr *request)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (fd < 0)
		return -1;
	int result = send_request(fd, request);
	close(fd);
	return result;
}
