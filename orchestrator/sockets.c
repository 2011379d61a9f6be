/* Taking sockets over, and turning them off. */
#include "orchestrator/sockets.h"

#include <sys/socket.h>
#include <unistd.h>

#define DNS_HEADER 12
#define DNS_ANSWER 0x80  /* of the third byte */
#define DNS_OPCODE 0x78  /* ... */
#define DNS_REFUSED 0x05 /* of the fourth */

enum sockets_step sockets_take(struct room_sockets *s, int handoff)
{
	enum handoff_kind kind;
	int fd = -1;
	if (handoff_receive(handoff, &kind, &fd) != 0)
		return SOCKETS_BROKEN;
	if (kind == HANDOFF_END && fd < 0)
		return SOCKETS_ALL;
	if (kind == HANDOFF_END || fd < 0 || s->n == LIMIT_LAUNCH_FDS) {
		if (fd >= 0)
			close(fd);
		return SOCKETS_BROKEN;
	}
	s->all[s->n++] = (struct room_socket){kind, fd};
	return SOCKETS_MORE;
}

/* A socket that is shut down does not listen any more, in whatever process. It keeps its port, and nobody else can have
 * that too once it does not agree to it. */
void sockets_refuse(const struct room_sockets *s, enum handoff_kind kind)
{
	const int no = 0;
	for (size_t i = 0; i < s->n; i++)
		if (s->all[i].kind == kind) {
			setsockopt(s->all[i].fd, SOL_SOCKET, SO_REUSEADDR, &no, sizeof(no));
			shutdown(s->all[i].fd, SHUT_RDWR);
		}
}

void sockets_refuse_question(int fd)
{
	unsigned char packet[512];
	struct sockaddr_storage from;
	socklen_t len = sizeof(from);
	ssize_t n = recvfrom(fd, packet, sizeof(packet), MSG_DONTWAIT, (struct sockaddr *)&from, &len);
	if (n < DNS_HEADER || (packet[2] & DNS_ANSWER))
		return;
	packet[2] = (unsigned char)(DNS_ANSWER | (packet[2] & (DNS_OPCODE | 1)));
	packet[3] = DNS_REFUSED;
	sendto(fd, packet, (size_t)n, MSG_DONTWAIT, (struct sockaddr *)&from, len);
}

void sockets_close(struct room_sockets *s)
{
	for (size_t i = 0; i < s->n; i++)
		close(s->all[i].fd);
	s->n = 0;
}
