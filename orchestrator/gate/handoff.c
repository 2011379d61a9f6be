/* Descriptors over a unix socket. */
#include "orchestrator/gate/handoff.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Room for one descriptor, aligned as a control message must be. */
union control {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(sizeof(int))];
};

static void attach_fd(struct msghdr *message, union control *control, int fd)
{
	memset(control, 0, sizeof(*control));
	message->msg_control = control->bytes;
	message->msg_controllen = sizeof(control->bytes);
	struct cmsghdr *c = CMSG_FIRSTHDR(message);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(int));
}

int handoff_send(int socket, enum handoff_kind kind, int fd)
{
	struct handoff_header header = {HANDOFF_MAGIC, HANDOFF_VERSION, (uint16_t)kind};
	struct iovec piece = {&header, sizeof(header)};
	struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
	union control control;
	if (fd >= 0)
		attach_fd(&message, &control, fd);
	ssize_t n;
	do
		n = sendmsg(socket, &message, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof(header) ? 0 : -1;
}

/* Whoever does not listen any more is told nothing. */
void handoff_send_usage(int socket, const struct handoff_usage *usage)
{
	struct handoff_header header = {HANDOFF_MAGIC, HANDOFF_VERSION, HANDOFF_USAGE};
	char message[sizeof(header) + sizeof(*usage)];
	memcpy(message, &header, sizeof(header));
	memcpy(message + sizeof(header), usage, sizeof(*usage));
	send(socket, message, sizeof(message), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static int attached_fd(struct msghdr *message)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(message);
	int fd = -1;
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&fd, CMSG_DATA(c), sizeof(int));
	return fd;
}

static bool is_good(const struct handoff_header *header, size_t len, bool has_usage)
{
	const size_t whole = sizeof(*header) + (header->kind == HANDOFF_USAGE ? sizeof(struct handoff_usage) : 0);
	return header->magic == HANDOFF_MAGIC && header->version == HANDOFF_VERSION && len == whole &&
	       header->kind <= (has_usage ? HANDOFF_USAGE : HANDOFF_STOPPED);
}

static int receive(int socket, enum handoff_kind *kind, int *fd, struct handoff_usage *usage, int flags)
{
	struct handoff_header header = {0};
	struct iovec pieces[] = {{&header, sizeof(header)}, {usage, usage ? sizeof(*usage) : 0}};
	union control control = {0};
	struct msghdr message = {.msg_iov = pieces,
				 .msg_iovlen = 2,
				 .msg_control = control.bytes,
				 .msg_controllen = sizeof(control.bytes)};
	ssize_t n;
	do
		n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | flags);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return -1;
	*fd = attached_fd(&message);
	*kind = (enum handoff_kind)header.kind;
	if (is_good(&header, (size_t)n, usage != NULL) && !(message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return 0;
	if (*fd >= 0)
		close(*fd);
	return -1;
}

int handoff_receive(int socket, enum handoff_kind *kind, int *fd)
{
	return receive(socket, kind, fd, NULL, 0);
}

int handoff_receive_news(int socket, enum handoff_kind *kind, int *fd, struct handoff_usage *usage)
{
	return receive(socket, kind, fd, usage, MSG_DONTWAIT);
}

int handoff_await_go(int socket)
{
	char byte = 0;
	ssize_t n;
	do
		n = recv(socket, &byte, 1, 0);
	while (n < 0 && errno == EINTR);
	if (n == 1 && byte == HANDOFF_GO)
		return 0;
	errno = n == 1 && byte == HANDOFF_NO_GO ? ECANCELED : EPIPE;
	return -1;
}
