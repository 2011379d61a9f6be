/* The policy of the gateway: cage-proxy beside this program is asked what is wrong with it, with an empty environment, which is what the
 * gateway's container has. */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/write_all.h"
#include "orchestrator/client/shown.h"
#include "orchestrator/deploy/deploy.h"
#include "orchestrator/deploy/parameters.h"
#include "orchestrator/launch.h"

#define POLICY_PATH "/proc/self/fd/3" /* LAUNCH_FIRST_FD */
#define PROXY_SAYS_WRONG 2            /* exit code of cage-proxy --check */

struct asking {
	struct parameters *p;
	const char *name, *file; /* the parameter, and what its text was read from */
};

/* With the file in the place of the descriptor. */
static void on_line(void *arg, const char *line)
{
	struct asking *a = arg;
	char text[LIMIT_HELPER_LINE], whole[2 * LIMIT_HELPER_LINE];
	const size_t n = strlen(POLICY_PATH);
	const bool is_of_file = strncmp(line, POLICY_PATH, n) == 0;
	snprintf(whole, sizeof(whole), "%s%s", is_of_file ? a->file : "", is_of_file ? line + n : line);
	parameters_fault(a->p, a->name, shown(whole, text, sizeof(text)),
			 slice_ends(slice_str(line), SLICE(": it is not set")) ? ", nor in the gateway's container"
									       : "");
}

/* Until it has said all. False: stopped, or it takes too long. */
static bool listen_to(struct deploy *d, struct helper *h, struct asking *a)
{
	const uint64_t until = clock_mono_us() + LIMIT_GATEWAY_CHECK_MS * 1000ull;
	while (h->said >= 0) {
		struct pollfd ready = {.fd = h->said, .events = POLLIN};
		if (clock_mono_us() >= until || !session_wait(d, 0))
			return false;
		if (poll(&ready, 1, LIMIT_ARM_LOOK_MS) > 0)
			helper_listen(h, on_line, a);
	}
	return true;
}

/* Its exit code; -1: it has none. */
static int check(struct deploy *d, int fd, struct asking *a)
{
	char *argv[] = {"cage-proxy", "--policy", POLICY_PATH, "--check", NULL}, *envp[] = {NULL};
	const struct launch spec = {.name = argv[0], .argv = argv, .envp = envp, .fds = &fd, .n_fds = 1};
	struct helper h;
	int status = -1;
	if (!helper_start(&h, &spec, -1))
		return -1;
	if (listen_to(d, &h, a) && waitpid(h.pid, &status, 0) == h.pid)
		helper_ended(&h, status);
	helper_stop(&h);
	return WIFEXITED(h.status) ? WEXITSTATUS(h.status) : -1;
}

void policy_ask(struct deploy *d, struct parameters *p, const char *name)
{
	const char *text = parameters_text(p, name), *file = words_value(&d->options->set_file, name);
	const bool is_file = file && !words_value(&d->options->set_env, name); /* which counts more */
	struct asking a = {.p = p, .name = name, .file = is_file ? file : name};
	const unsigned before = p->faults;
	if (!text)
		return;
	const int fd = memfd_create("policy", MFD_CLOEXEC);
	const int code = fd >= 0 && write_all(fd, text, strlen(text)) ? check(d, fd, &a) : -1;
	if (d->is_stopped)
		p->faults++;
	else if (code != 0 && (code != PROXY_SAYS_WRONG || p->faults == before))
		parameters_fault(p, name, "it could not be checked: cage-proxy has to be beside this program", "");
	if (fd >= 0)
		close(fd);
}
