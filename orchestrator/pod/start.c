/* Containers, from the podman command that makes one to its first process. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/say.h"
#include "core/base/wipe.h"
#include "orchestrator/env_kit.h"
#include "orchestrator/pod/pod.h"

#define FDS 5 /* that a container has at most */

/* ---- descriptors ---- */

/* A unix socket of this machine, which the proxy is given as it is: it needs no directory of ours. */
static int listen_at(const char *where)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	if (!where || strncmp(where, "unix:", 5) != 0 || strlen(where + 5) >= sizeof(un.sun_path)) {
		say("--socks and --tools: expected unix:PATH, of at most 107 bytes");
		return -1;
	}
	memcpy(un.sun_path, where + 5, strlen(where + 5) + 1);
	unlink(un.sun_path); /* of a room that was killed before this one took its place */
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mode_t before = umask(0177);
	bool ok = fd >= 0 && bind(fd, (const struct sockaddr *)&un, sizeof(un)) == 0 && listen(fd, SOMAXCONN) == 0;
	umask(before);
	if (ok)
		return fd;
	say("%s: %s", where, strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Those behind the first two. Of a helper, the last one is where it tells of reloads. */
static bool open_others(const struct pod *p, enum role role, int fds[FDS], size_t *n, int reloads)
{
	*n = role == ROLE_DNS ? 3 : role == ROLE_PROXY ? 5 : 4;
	if (role != ROLE_AGENT)
		fds[*n - 1] = reloads;
	if (role == ROLE_AGENT) {
		fds[2] = fcntl(0, F_DUPFD_CLOEXEC, 3);
		fds[3] = fcntl(1, F_DUPFD_CLOEXEC, 3);
	} else if (role == ROLE_PROXY) {
		fds[2] = listen_at(words_option(&p->options->run.proxy, "--socks"));
		fds[3] = listen_at(words_option(&p->options->run.proxy, "--tools"));
	}
	return fds[2] >= 0 && fds[*n - 1] >= 0 && (*n < 5 || fds[3] >= 0);
}

/* Our ends of its pipes. */
void start_listening(struct container *c, enum role role, int words, int said, int reloads)
{
	c->words = words;
	c->helper = (struct helper){.name = role == ROLE_PROXY ? "cage-proxy"
					    : role == ROLE_DNS ? "cage-dns"
							       : "cage-door",
				    .state = HELPER_STARTING,
				    .said = said,
				    .reloads = reloads};
}

bool start_container(struct pod *p, enum role role)
{
	struct container *c = &p->containers[role];
	struct words argv = {0};
	int words[2] = {-1, -1}, said[2] = {-1, -1}, reloads[2] = {-1, -1}, fds[FDS] = {-1, -1, -1, -1, -1};
	size_t n = 0;
	if (gvisor_runs(p->options, role))
		return gvisor_begin(p);
	bool ok = pipe2(words, O_CLOEXEC) == 0 && pipe2(said, O_CLOEXEC) == 0 &&
		  fcntl(said[0], F_SETFL, O_NONBLOCK) == 0 &&
		  (role == ROLE_AGENT || pipe2(reloads, O_CLOEXEC | O_NONBLOCK) == 0) &&
		  open_others(p, role, fds, &n, reloads[1]);
	fds[0] = words[0];
	fds[1] = said[1];
	ok = ok && lines_of(p, role, &argv, n) && call_begin(&c->call, p->options, &argv, fds, n);
	for (size_t i = 0; i < FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	words_free(&argv);
	start_listening(c, role, words[1], said[0], reloads[0]);
	if (ok)
		container_enter(c, CONTAINER_STARTING);
	return ok;
}

/* ---- the first process ---- */

static pid_t read_pid(const struct pod *p, enum role role)
{
	char path[POD_PATH], text[32] = "";
	pod_pidfile(p, role, path);
	FILE *f = fopen(path, "re");
	if (f && !fgets(text, sizeof(text), f))
		text[0] = '\0';
	if (f)
		fclose(f);
	return (pid_t)strtol(text, NULL, 10);
}

/* All of them, with the empty one that means go: their bytes, or 0 if they are more than a door takes. */
static size_t join_words(const struct words *env, char out[LIMIT_POD_WORDS])
{
	size_t n = 0;
	for (size_t i = 0; i < env->n; i++) {
		const size_t len = strlen(env->list[i]) + 1;
		if (len >= LIMIT_POD_WORDS - n)
			return 0;
		memcpy(out + n, env->list[i], len);
		n += len;
	}
	out[n] = '\0';
	return n + 1;
}

/* At once: its pipe has room for all that a door takes, so that nobody waits for one that does not read. */
static bool send_words(struct container *c, const struct words *env)
{
	char *bytes = malloc(LIMIT_POD_WORDS);
	const size_t n = bytes ? join_words(env, bytes) : 0;
	fcntl(c->words, F_SETPIPE_SZ, LIMIT_POD_WORDS); /* without it there is room for 64 KiB */
	const bool ok = n > 0 && fcntl(c->words, F_SETFL, O_NONBLOCK) == 0 &&
			(write(c->words, bytes, n) == (ssize_t)n || errno == EPIPE); /* an end is told of by itself */
	if (!ok)
		say("the container of %s could not be given its variables: %s", c->helper.name,
		    n > 0 ? strerror(errno) : "they are too long");
	wipe_free(bytes);
	close(c->words);
	c->words = -1;
	return ok;
}

/* id: of its container, in one line. */
bool start_found(struct pod *p, enum role role, char *id)
{
	struct container *c = &p->containers[role];
	pid_t pid = read_pid(p, role);
	c->pidfd = pid > 1 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
	if (c->pidfd < 0) {
		say("the container of the %s has ended at once", role_names[role]);
		return false;
	}
	id[strcspn(id, "\n")] = '\0';
	return annotations_are_good(p, pid, role_names[role]) &&
	       (role != ROLE_AGENT ||
		(usage_find(p, pid, id) && usage_bound(p) && routes_close(p, c->pidfd) && home_own(p, pid)));
}

bool start_running(struct pod *p, enum role role)
{
	struct container *c = &p->containers[role];
	if (c->pidfd < 0 && !start_found(p, role, c->call.printed))
		return false;
	container_enter(c, CONTAINER_RUNS);
	if (role == ROLE_AGENT)
		return true;
	return send_words(c, role == ROLE_PROXY ? &p->proxy_env : &p->dns_env) &&
	       (role != ROLE_PROXY || start_container(p, ROLE_DNS));
}

/* ---- the agent's command ---- */

static void add_agent_env(struct pod *p, const struct kit_way *way, struct words *env)
{
	const struct words *asked = &p->options->run.env;
	words_add(env, "HOME=" POD_HOME);
	words_add(env, "USER=agent");
	words_add(env, "LOGNAME=agent");
	kit_variables(p->dir.kit, way, env);
	for (size_t i = 0; i < asked->n; i++)
		if (strchr(asked->list[i], '='))
			words_add(env, "%s", asked->list[i]);
	for (size_t i = 0; i < p->agent_env.n; i++) /* placeholders come last, and so count */
		words_add(env, "%s", p->agent_env.list[i]);
}

/* All that it can reach is there now, and the bridge has its addresses, if it has any. */
bool start_agent(struct pod *p)
{
	char url[64], address[INET_ADDRSTRLEN];
	struct in_addr at = pod_address(p, ROLE_PROXY);
	struct words env = {0};
	inet_ntop(AF_INET, &at, address, sizeof(address));
	snprintf(url, sizeof(url), "http://%s:8080", address);
	const struct kit_way way = {.proxy = url, .direct = "localhost,127.0.0.1,::1"};
	if (!network_is_free(p->subnet)) {
		say("this machine has an address in the network of the agent, which could reach it there: the bridge "
		    "of "
		    "an internal network must have none, with CNI or netavark (podman info says which one there is)");
		return false;
	}
	if (!network_close_bridge(p))
		return false;
	if (!kit_fill(p->dir.kit, p->ca_dir, &way))
		return false;
	add_agent_env(p, &way, &env);
	bool ok = !env.failed && send_words(&p->containers[ROLE_AGENT], &env);
	words_wipe(&env);
	return ok;
}
