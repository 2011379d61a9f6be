/* What CNI keeps of a network: its host-local has a directory for each one that there ever was, and in it a file for each address that a
 * container has, named like the address, with the container's id in it. Who removes a container removes that too; a podman command
 * that was killed in between leaves it, and with it a network namespace, results and rules of the firewall, of which Podman does not
 * know any more. They are found by the addresses and ids in these files: no container of that sandbox is there any more. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/say.h"
#include "orchestrator/pod/pod.h"

#define NETWORKS "/var/lib/cni/networks"
#define RESULTS "/var/lib/cni/results"
#define NAMESPACES "/run/netns"
#define FIREWALL "/usr/sbin/iptables"

struct lease {
	struct in_addr address;
	char container[POD_IMAGE_ID]; /* its id; "": not said */
};

struct leases {
	struct lease list[POD_ADDRESSES];
	size_t n;
};

/* ---- files ---- */

/* Of all in dir. */
static void each(const char *dir, void (*act)(const char *dir, const char *name, void *arg), void *arg)
{
	DIR *all = opendir(dir);
	for (struct dirent *e = all ? readdir(all) : NULL; e; e = readdir(all))
		if (e->d_name[0] != '.')
			act(dir, e->d_name, arg);
	if (all)
		closedir(all);
}

static bool path_in(const char *dir, const char *name, char out[POD_PATH])
{
	return snprintf(out, POD_PATH, "%s/%s", dir, name) < POD_PATH;
}

/* "ID\r\neth0". */
static void read_container(const char *dir, const char *name, char out[POD_IMAGE_ID])
{
	char path[POD_PATH];
	FILE *f = path_in(dir, name, path) ? fopen(path, "re") : NULL;
	if (!f || !fgets(out, POD_IMAGE_ID, f) || strspn(out, "0123456789abcdef") != POD_IMAGE_ID - 1)
		out[0] = '\0';
	if (f)
		fclose(f);
}

static void take_lease(const char *dir, const char *name, void *arg)
{
	struct leases *l = arg;
	struct lease *next = &l->list[l->n];
	if (l->n == POD_ADDRESSES || inet_pton(AF_INET, name, &next->address) != 1)
		return;
	read_container(dir, name, next->container);
	l->n++;
}

static bool is_of(const struct leases *l, const char *container)
{
	bool found = false;
	for (size_t i = 0; i < l->n && !found; i++)
		found = l->list[i].container[0] && strcmp(l->list[i].container, container) == 0;
	return found;
}

static void remove_file(const char *dir, const char *name)
{
	char path[POD_PATH];
	if (path_in(dir, name, path))
		unlink(path);
}

/* NETWORK-ID-eth0 */
static void remove_result(const char *dir, const char *name, void *arg)
{
	const struct leases *l = arg;
	for (size_t i = 0; i < l->n; i++)
		if (l->list[i].container[0] && strstr(name, l->list[i].container))
			remove_file(dir, name);
}

/* ---- the firewall ---- */

/* Where there is no such rule it says so, to nobody. */
static void be_silent(const void *arg)
{
	(void)arg;
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || dup2(fd, STDERR_FILENO) < 0)
		_exit(1);
}

static void run(const char *const *words)
{
	struct launch l = {.name = FIREWALL,
			   .argv = (char **)words,
			   .envp = environ,
			   .in_child = be_silent,
			   .death_signal = SIGKILL};
	pid_t pid = access(FIREWALL, X_OK) == 0 ? launch(&l) : -1;
	if (pid > 0)
		call_wait_for(pid);
}

/* As CNI's plugin has written them. */
static void remove_rules(struct in_addr at)
{
	char host[INET_ADDRSTRLEN] = "", address[INET_ADDRSTRLEN + 4];
	inet_ntop(AF_INET, &at, host, sizeof(host));
	snprintf(address, sizeof(address), "%s/32", host);
	const char *const to[] = {"iptables", "-w", "5",         "-D",        "CNI-FORWARD",         "-d",
				  address,    "-m", "conntrack", "--ctstate", "RELATED,ESTABLISHED", "-j",
				  "ACCEPT",   NULL};
	const char *const from[] = {"iptables", "-w", "5", "-D", "CNI-FORWARD", "-s", address, "-j", "ACCEPT", NULL};
	run(to);
	run(from);
}

/* In the network that leads out, where others have theirs. */
static void remove_outer(const char *dir, const char *name, void *arg)
{
	char container[POD_IMAGE_ID];
	struct in_addr at;
	if (inet_pton(AF_INET, name, &at) != 1)
		return;
	read_container(dir, name, container);
	if (!is_of(arg, container))
		return;
	remove_rules(at);
	remove_file(dir, name);
}

/* ---- network namespaces ---- */

static bool has_address(const struct leases *l)
{
	struct ifaddrs *all = NULL;
	bool found = false;
	if (getifaddrs(&all) != 0)
		return false;
	for (const struct ifaddrs *a = all; a && !found; a = a->ifa_next) {
		const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)a->ifa_addr;
		for (size_t i = 0; v4 && v4->sin_family == AF_INET && i < l->n; i++)
			found = found || v4->sin_addr.s_addr == l->list[i].address.s_addr;
	}
	freeifaddrs(all);
	return found;
}

static bool is_in_use(const struct stat *ns)
{
	char path[64];
	struct stat st;
	bool found = false;
	DIR *all = opendir("/proc");
	for (struct dirent *e = all ? readdir(all) : NULL; e && !found; e = readdir(all)) {
		if (e->d_name[0] < '0' || e->d_name[0] > '9')
			continue;
		snprintf(path, sizeof(path), "/proc/%.16s/ns/net", e->d_name);
		found = stat(path, &st) == 0 && st.st_ino == ns->st_ino && st.st_dev == ns->st_dev;
	}
	if (all)
		closedir(all);
	return found || !all;
}

/* One with such an address, in which nobody is. */
static void remove_namespace(const char *dir, const char *name, void *arg)
{
	char path[POD_PATH];
	struct stat st;
	int own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	int fd = path_in(dir, name, path) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	const bool is_there = own >= 0 && fd >= 0 && setns(fd, CLONE_NEWNET) == 0,
		   is_ours = is_there && has_address(arg);
	if (is_there && setns(own, CLONE_NEWNET) != 0)
		abort(); /* as in network_within() */
	if (is_ours && fstat(fd, &st) == 0 && !is_in_use(&st)) {
		umount2(path, MNT_DETACH);
		unlink(path);
	}
	if (own >= 0)
		close(own);
	if (fd >= 0)
		close(fd);
}

/* ---- all of it ---- */

static void remove_left(const struct pod_options *o, const char *dir, struct leases *l)
{
	char path[POD_PATH], address[INET_ADDRSTRLEN];
	say("addresses are left of a podman command that was killed: they are given back");
	each(NAMESPACES, remove_namespace, l);
	each(RESULTS, remove_result, l);
	if (path_in(NETWORKS, o->network ? o->network : "podman", path))
		each(path, remove_outer, l);
	for (size_t i = 0; i < l->n; i++) {
		remove_rules(l->list[i].address);
		remove_file(dir, inet_ntop(AF_INET, &l->list[i].address, address, sizeof(address)));
	}
}

bool leases_remove(const struct pod_options *o, const char *id)
{
	static const char *const names[] = {"last_reserved_ip.0", "lock"};
	char dir[LIMIT_POD_NAME + 64];
	struct leases l = {.n = 0};
	snprintf(dir, sizeof(dir), NETWORKS "/cage-%s", id);
	each(dir, take_lease, &l);
	if (l.n > 0 && monitors_are_others(id))
		return true; /* they are theirs: CNI has one directory for all storages */
	if (l.n > 0)
		remove_left(o, dir, &l);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		remove_file(dir, names[i]);
	return rmdir(dir) == 0 || errno == ENOENT;
}
