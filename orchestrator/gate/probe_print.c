/* What --probe prints: the modes, and what they are made of, to see what a platform refuses. */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "orchestrator/gate/landlock.h"
#include "orchestrator/gate/listening.h"
#include "orchestrator/gate/nested.h"
#include "orchestrator/gate/probe.h"
#include "orchestrator/gate/probe_notifier.h"
#include "orchestrator/gate/say.h"

enum { NAMESPACES = 4, LOOPBACK_MAX = 32, WHERE_ROOM = INET_ADDRSTRLEN + 8 };

struct findings {
	struct utsname kernel;
	bool namespaces[NAMESPACES]; /* in the order of namespace_rows */
	bool netns, seccomp;         /* the modes, rehearsed */
	enum gate_mode mode;         /* that is taken; MODE_AUTO: none */
	enum notifier_help notifier;
	int landlock;                                  /* its version, 0 for none */
	char loopback[LOOPBACK_MAX][INET6_ADDRSTRLEN]; /* its addresses */
	size_t n_loopback;
	struct listening listening;
};

static const struct {
	const char *name;
	unsigned flags;
} namespace_rows[NAMESPACES] = {
	{"user", CLONE_NEWUSER},
	{"net", CLONE_NEWUSER | CLONE_NEWNET},
	{"mount", CLONE_NEWUSER | CLONE_NEWNS},
	{"pid", CLONE_NEWUSER | CLONE_NEWPID},
};

/* ---- finding ---- */

static bool can_clone(unsigned flags)
{
	int status = 0;
	pid_t child = (pid_t)syscall(SYS_clone, flags | (unsigned)SIGCHLD, NULL, NULL, NULL, NULL);
	if (child == 0)
		_exit(0);
	return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static const void *address_of(const struct ifaddrs *at)
{
	if (!at->ifa_addr || !(at->ifa_flags & IFF_LOOPBACK))
		return NULL;
	if (at->ifa_addr->sa_family == AF_INET)
		return &((const struct sockaddr_in *)(const void *)at->ifa_addr)->sin_addr;
	if (at->ifa_addr->sa_family == AF_INET6)
		return &((const struct sockaddr_in6 *)(const void *)at->ifa_addr)->sin6_addr;
	return NULL;
}

static int find_loopback(struct findings *f)
{
	struct ifaddrs *all = NULL;
	if (getifaddrs(&all) < 0)
		return say_errno("addresses of loopback");
	for (const struct ifaddrs *at = all; at && f->n_loopback < LOOPBACK_MAX; at = at->ifa_next) {
		const void *address = address_of(at);
		if (address &&
		    inet_ntop(at->ifa_addr->sa_family, address, f->loopback[f->n_loopback], INET6_ADDRSTRLEN))
			f->n_loopback++;
	}
	freeifaddrs(all);
	return 0;
}

/* Without a mode of the options the first that holds. */
static enum gate_mode mode_taken(const struct findings *f, enum gate_mode asked)
{
	if (f->netns && asked != MODE_SECCOMP)
		return MODE_NETNS;
	return f->seccomp && asked != MODE_NETNS ? MODE_SECCOMP : MODE_AUTO;
}

static int find_all(struct findings *f, enum gate_mode asked)
{
	f->netns = probe_holds(MODE_NETNS);
	f->seccomp = probe_holds(MODE_SECCOMP);
	f->mode = mode_taken(f, asked);
	f->notifier = probe_notifier();
	f->landlock = landlock_abi();
	uname(&f->kernel);
	for (size_t i = 0; i < NAMESPACES; i++)
		f->namespaces[i] = can_clone(namespace_rows[i].flags);
	return find_loopback(f) < 0 ? -1 : listening_read(&f->listening);
}

/* ---- printing ---- */

static const char *name_of_mode(const struct findings *f)
{
	return f->mode == MODE_AUTO ? "none" : mode_name(f->mode);
}

static const char *where(const struct findings *f, size_t i, char out[WHERE_ROOM])
{
	char text[INET_ADDRSTRLEN] = "ipv6";
	const struct in_addr address = {htonl(f->listening.all[i].address)};
	if (f->listening.all[i].address != LISTENING_IPV6)
		inet_ntop(AF_INET, &address, text, sizeof(text));
	snprintf(out, WHERE_ROOM, "%s:%u", text, f->listening.all[i].port);
	return out;
}

static const char *json_bool(bool value)
{
	return value ? "true" : "false";
}

/* Nothing in it comes from outside but the kernel's own version text, which uname gives without quotes. */
static void print_json(const struct findings *f)
{
	char text[WHERE_ROOM];
	printf("{\"version\":\"" CAGE_VERSION "\",\"mode\":\"%s\",\"netns\":%s,\"seccomp\":%s,\"kernel\":\"%s\"",
	       name_of_mode(f), json_bool(f->netns), json_bool(f->seccomp), f->kernel.release);
	printf(",\"machine\":\"%s\",\"uid\":%u,\"landlock\":%d,\"notifier\":%s,\"addfd_send\":%s,\"namespaces\":{",
	       f->kernel.machine, geteuid(), f->landlock, json_bool(f->notifier != NOTIFIER_NONE),
	       json_bool(f->notifier == NOTIFIER_GIVES));
	for (size_t i = 0; i < NAMESPACES; i++)
		printf("%s\"%s\":%s", i ? "," : "", namespace_rows[i].name, json_bool(f->namespaces[i]));
	printf("},\"loopback\":[");
	for (size_t i = 0; i < f->n_loopback; i++)
		printf("%s\"%s\"", i ? "," : "", f->loopback[i]);
	printf("],\"listening\":[");
	for (size_t i = 0; i < f->listening.n; i++)
		printf("%s%u", i ? "," : "", f->listening.all[i].port);
	printf("],\"listeners\":[");
	for (size_t i = 0; i < f->listening.n; i++)
		printf("%s\"%s\"", i ? "," : "", where(f, i, text));
	printf("]}\n");
}

static const char *yes_no(bool value)
{
	return value ? "yes" : "no";
}

static void print_text(const struct findings *f)
{
	char text[WHERE_ROOM];
	printf("kernel              %s %s\n", f->kernel.release, f->kernel.machine);
	printf("uid                 %u\n", geteuid());
	for (size_t i = 0; i < NAMESPACES; i++)
		printf("namespace %-9s %s\n", namespace_rows[i].name, yes_no(f->namespaces[i]));
	printf("landlock            %d\n", f->landlock);
	printf("seccomp notifier    %s\n", yes_no(f->notifier != NOTIFIER_NONE));
	printf("seccomp ADDFD_SEND  %s\n", yes_no(f->notifier == NOTIFIER_GIVES));
	printf("mode netns          %s\n", yes_no(f->netns));
	printf("mode seccomp        %s\n", yes_no(f->seccomp));
	printf("loopback           ");
	for (size_t i = 0; i < f->n_loopback; i++)
		printf(" %s", f->loopback[i]);
	printf("%s\nlistening here     ", f->n_loopback ? "" : " no address");
	for (size_t i = 0; i < f->listening.n; i++)
		printf(" %s", where(f, i, text));
	printf("%s\nan agent is locked in with mode %s\n", f->listening.n ? "" : " nobody", name_of_mode(f));
}

int probe_print(const struct options *options)
{
	static struct findings f;
	if (find_all(&f, options->mode) < 0)
		return EXIT_UNLOCKED;
	(options->json ? print_json : print_text)(&f);
	if (fflush(stdout) != 0)
		return 1;
	if (f.mode != MODE_AUTO)
		return 0;
	nested_refuse(); /* which is why, if it is so */
	return EXIT_UNLOCKED;
}
