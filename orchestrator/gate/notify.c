/* The agent asks the kernel for a socket; the kernel asks us. We make one, tie it to loopback before the agent can touch
 * it, and put it into the agent's table. The agent's own call is never let through: what it meant is read from
 * registers that the kernel copied, and what it gets was made here. */
#include "orchestrator/gate/notify.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "orchestrator/gate/say.h"

enum { SYN_RETRIES = 2 }; /* a SYN to a foreign address dies on loopback: the agent hears of it after 7 s, not 127 */
enum { NOTICE_MAX = 1024 };

/* The kernel's structures may be longer than those of our headers. */
union notice {
	struct seccomp_notif ask;
	struct seccomp_notif_resp reply;
	char bytes[NOTICE_MAX];
};

#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, uint64_t)
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP ((uint64_t)1)
#endif

/* Files and sockets that are made now are the agent's. The kernel forgets on the way which signal we get when our parent
 * dies, so it is told again. */
static int act_as(uid_t agent)
{
	int signal = 0;
	pid_t parent = getppid();
	prctl(PR_GET_PDEATHSIG, &signal);
	setfsgid(agent);
	setfsuid(agent);
	if (setfsuid((uid_t)-1) != (int)agent) {
		say("sockets would belong to root");
		return -1;
	}
	prctl(PR_SET_PDEATHSIG, signal);
	if (signal == 0 || getppid() == parent)
		return 0;
	say("who started the gate is gone");
	return -1;
}

/* The flag only makes it faster, where the kernel has it. */
int notify_prepare(int notifier, uid_t agent)
{
	struct seccomp_notif_sizes sizes = {0};
	if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) < 0 || sizes.seccomp_notif > NOTICE_MAX ||
	    sizes.seccomp_notif_resp > NOTICE_MAX) {
		say("this kernel's notices are not known");
		return -1;
	}
	if (geteuid() == 0 && act_as(agent) < 0)
		return -1;
	ioctl(notifier, SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
	return 0;
}

void notify_end(void)
{
	setfsuid(geteuid());
	setfsgid(getegid());
}

static int tie_to_loopback(int fd)
{
	return setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "lo", sizeof("lo"));
}

static int tame_tcp(int fd)
{
	const int retries = SYN_RETRIES;
	if (tie_to_loopback(fd) < 0)
		return -1;
	return setsockopt(fd, IPPROTO_TCP, TCP_SYNCNT, &retries, sizeof(retries));
}

/* UDP loses its device when it is disconnected, so it must not be able to send at all: shut down for good, with a
 * filter that takes nothing. Programs that only ask such a socket for addresses are content. */
static int mute_udp(int fd)
{
	struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog program = {1, &nothing};
	const int yes = 1;
	if (tie_to_loopback(fd) < 0 || setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_LOCK_FILTER, &yes, sizeof(yes)) < 0)
		return -1;
	if (shutdown(fd, SHUT_RDWR) == 0 || errno == ENOTCONN)
		return 0; /* an unconnected one says so, and is shut all the same */
	return -1;
}

/* The two kinds of socket there are, and 0 or the error for everything else. */
static int vet(int type, int protocol)
{
	if (type & ~(0xf | SOCK_NONBLOCK | SOCK_CLOEXEC))
		return EINVAL;
	switch (type & 0xf) {
	case SOCK_STREAM:
		return protocol == 0 || protocol == IPPROTO_TCP ? 0 : EPROTONOSUPPORT;
	case SOCK_DGRAM:
		return protocol == 0 || protocol == IPPROTO_UDP ? 0 : EPROTONOSUPPORT;
	default:
		return ESOCKTNOSUPPORT;
	}
}

/* A socket as it may be had, or -1 with errno: never one that is not tied. */
static int make_socket(int type, int protocol)
{
	int error = vet(type, protocol);
	if (error) {
		errno = error;
		return -1;
	}
	int fd = socket(AF_INET, (type & (0xf | SOCK_NONBLOCK)) | SOCK_CLOEXEC, protocol);
	if (fd < 0)
		return -1;
	if (((type & 0xf) == SOCK_STREAM ? tame_tcp(fd) : mute_udp(fd)) < 0) {
		error = errno;
		close(fd);
		errno = error;
		return -1;
	}
	return fd;
}

/* Flags are always 0: a call is never continued. An agent that has died meanwhile is no error of ours. */
static void refuse(int notifier, uint64_t id, int error)
{
	union notice answer;
	memset(&answer, 0, sizeof(answer));
	answer.reply.id = id;
	answer.reply.error = -error;
	ioctl(notifier, SECCOMP_IOCTL_NOTIF_SEND, &answer.reply);
}

static int give(int notifier, uint64_t id, int fd, int type)
{
	struct seccomp_notif_addfd addition = {.id = id,
					       .flags = SECCOMP_ADDFD_FLAG_SEND,
					       .srcfd = (uint32_t)fd,
					       .newfd_flags = type & SOCK_CLOEXEC ? O_CLOEXEC : 0};
	return ioctl(notifier, SECCOMP_IOCTL_NOTIF_ADDFD, &addition) < 0 ? -1 : 0;
}

static void answer_socket(int notifier, const struct seccomp_notif *ask)
{
	const int type = (int)(uint32_t)ask->data.args[1], protocol = (int)(uint32_t)ask->data.args[2];
	int fd = make_socket(type, protocol);
	if (fd < 0 || give(notifier, ask->id, fd, type) < 0)
		refuse(notifier, ask->id, errno);
	if (fd >= 0)
		close(fd);
}

void notify_serve(int notifier)
{
	union notice notice;
	memset(&notice, 0, sizeof(notice));
	if (ioctl(notifier, SECCOMP_IOCTL_NOTIF_RECV, &notice.ask) < 0)
		return; /* the one who asked is gone */
	if (notice.ask.data.nr == SYS_socket && (uint32_t)notice.ask.data.args[0] == AF_INET)
		answer_socket(notifier, &notice.ask);
	else
		refuse(notifier, notice.ask.id, ENOSYS);
}
