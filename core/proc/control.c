/* Sending and receiving of control messages, with descriptors by SCM_RIGHTS. */
#include "core/proc/control.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

bool control_pair(int ends[2])
{
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0;
}

/* Room for one descriptor beside a message. */
union fd_room {
	char bytes[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

enum cage_status control_send(int sock, const struct control *msg, int fd)
{
	union fd_room room = {{0}};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)msg, .iov_len = sizeof(*msg)};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};
	if (fd >= 0) {
		mh.msg_control = room.bytes;
		mh.msg_controllen = sizeof(room.bytes);
		struct cmsghdr *c = CMSG_FIRSTHDR(&mh);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(int));
	}
	if (sendmsg(sock, &mh, MSG_NOSIGNAL) == (ssize_t)sizeof(*msg))
		return CAGE_OK;
	return errno == EAGAIN ? CAGE_AGAIN : CAGE_ESYS;
}

enum cage_status control_receive(int sock, struct control *msg, int *fd)
{
	union fd_room room = {{0}};
	struct iovec iov = {.iov_base = msg, .iov_len = sizeof(*msg)};
	struct msghdr mh = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = room.bytes, .msg_controllen = sizeof(room.bytes)};
	*fd = -1;
	ssize_t n = recvmsg(sock, &mh, MSG_CMSG_CLOEXEC);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? CAGE_AGAIN : CAGE_ESYS;
	struct cmsghdr *c = CMSG_FIRSTHDR(&mh);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(fd, CMSG_DATA(c), sizeof(int));
	if (n == (ssize_t)sizeof(*msg))
		return CAGE_OK;
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	return n == 0 ? CAGE_EOF : CAGE_EPROTO;
}

bool control_from_master(int sock, struct control *msg, int *fd)
{
	enum cage_status st = control_receive(sock, msg, fd);
	if (st != CAGE_OK && st != CAGE_AGAIN)
		exit(1);
	return st == CAGE_OK;
}
