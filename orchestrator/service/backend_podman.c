/* Sandboxes of Podman's containers. Their keepers are those of the local backend, with cage-pod in the place of `cage run`; what
 * containers leave outside of a sandbox's directory is found by labels, and removed by cage-pod too. */
#include "orchestrator/service/backend_podman.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/say.h"
#include "core/base/slice.h"
#include "core/proc/sandbox_id.h"
#include "orchestrator/backend.h"
#include "orchestrator/launch.h"
#include "orchestrator/service/backend_local.h"

#define WORD_POD "pod="

static struct words options; /* of cage-pod, as configured */
static bool is_used;

void podman_use(void)
{
	is_used = true;
}

void podman_set(const char *option, const char *value)
{
	words_add(&options, "%s", option);
	words_add(&options, "%s", value);
}

void podman_forget(void)
{
	words_free(&options);
	is_used = false;
}

/* ---- words ---- */

/* Of all services of a machine, each has containers of its own. */
static void add_state(struct words *w, const char *prefix, const char *state)
{
	uint64_t hash = 0xcbf29ce484222325;
	for (const char *c = state; *c; c++)
		hash = (hash ^ (unsigned char)*c) * 0x100000001b3;
	words_add(w, "%s--state", prefix);
	words_add(w, "%s%016llx", prefix, (unsigned long long)hash);
}

static void add_configured(struct words *w, const char *prefix, const char *state)
{
	for (size_t i = 0; i < options.n; i++)
		words_add(w, "%s%s", prefix, options.list[i]);
	add_state(w, prefix, state);
}

/* As they were when it was started: the configuration may be another one since. */
static bool add_started(struct words *w, const char *dir)
{
	char path[BACKEND_PATH], *bytes = malloc(LIMIT_KEEPER_SPEC);
	snprintf(path, sizeof(path), "%s/spec", dir);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t n = bytes && fd >= 0 ? read(fd, bytes, LIMIT_KEEPER_SPEC) : -1;
	struct slice rest = slice_of(bytes, n > 0 ? (size_t)n : 0);
	const size_t before = w->n;
	if (fd >= 0)
		close(fd);
	while (rest.len > 0) {
		struct slice word = slice_cut(&rest, '\0');
		if (slice_starts(word, SLICE(WORD_POD)))
			words_add(w, "%.*s", SLICE_FMT(slice_from(word, strlen(WORD_POD))));
	}
	free(bytes);
	return w->n > before;
}

/* ---- cage-pod ---- */

/* In a process of its own, or before there is a loop: it has bounds of its own. */
static bool run_pod(struct words *argv)
{
	int status = -1; /* no exit code */
	struct launch l = {.name = "cage-pod", .argv = argv->list, .envp = environ};
	pid_t pid = argv->failed ? -1 : launch(&l);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	words_free(argv);
	errno = EBUSY;
	return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool podman_check(void)
{
	struct words argv = {0};
	words_add(&argv, "cage-pod");
	add_configured(&argv, "", "");
	words_add(&argv, "check");
	return run_pod(&argv);
}

static bool remove_containers(struct words *argv, const char *id)
{
	words_add(argv, "remove");
	words_add(argv, "%s", id);
	return run_pod(argv);
}

/* ---- what a backend does ---- */

static bool has_groups(void)
{
	return true; /* Podman makes them, or no container */
}

/* One that the operator has configured is not asked about; one that a create names is. */
static void add_image(struct words *w, const struct backend_start *s)
{
	const char *image = json_string_value(json_object_get(s->spec, "image"));
	if (!image)
		return;
	words_add(w, WORD_POD "--admit");
	words_add(w, WORD_POD "%s", image);
	if (!s->signatures || !s->signatures[0])
		return;
	words_add(w, WORD_POD "--signatures");
	words_add(w, WORD_POD "%s", s->signatures);
}

/* The CA is the sandbox's own, since its proxy is another user and no root. */
static struct words own_words(const struct backend_start *s)
{
	struct words more = {0};
	add_configured(&more, WORD_POD, s->state);
	add_image(&more, s);
	words_add(&more, "run=--ca-dir");
	words_add(&more, "run=%s/ca", s->dir);
	return more;
}

static bool begin(const struct backend_start *s)
{
	struct words more = own_words(s);
	bool ok = !more.failed && local_begin(s, &more);
	words_free(&more);
	return ok;
}

static pid_t start(const struct backend_start *s)
{
	struct words more = own_words(s);
	pid_t pid = more.failed ? -1 : local_start(s, &more);
	words_free(&more);
	return pid;
}

/* A directory is listed by the local backend already, whoever has started what is in it. */
static bool list(const char *state)
{
	(void)state;
	return true;
}

/* Does nobody look after it any more? */
static bool is_over(const char *state, struct slice id)
{
	char path[BACKEND_PATH];
	struct stat st;
	snprintf(path, sizeof(path), "%s/sandboxes/%.*s", state, SLICE_FMT(id));
	if (lstat(path, &st) != 0)
		return errno == ENOENT;
	snprintf(path, sizeof(path), "%s/sandboxes/%.*s/result", state, SLICE_FMT(id));
	return lstat(path, &st) == 0;
}

static void use_pipe(const void *arg)
{
	if (dup2(*(const int *)arg, 1) < 0)
		_exit(1);
}

/* Ids that containers or networks are labelled with; some of them twice. */
static size_t list_labels(const char *state, char *out, size_t room)
{
	struct words argv = {0};
	int ends[2];
	size_t n = 0;
	ssize_t got = 1;
	if (pipe2(ends, O_CLOEXEC) != 0)
		return 0;
	words_add(&argv, "cage-pod");
	add_configured(&argv, "", state);
	words_add(&argv, "list");
	struct launch l = {
		.name = "cage-pod", .argv = argv.list, .envp = environ, .in_child = use_pipe, .arg = &ends[1]};
	pid_t pid = argv.failed ? -1 : launch(&l);
	close(ends[1]);
	while (pid > 0 && got > 0 && n < room) {
		got = read(ends[0], out + n, room - n);
		n += got > 0 ? (size_t)got : 0;
	}
	close(ends[0]);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	words_free(&argv);
	return n;
}

/* What was left by a keeper and a cage-pod that were killed. */
static void tidy(const char *state)
{
	char *ids = is_used ? malloc(LIMIT_SERVE_SWEPT) : NULL, before[LIMIT_SANDBOX + 1] = "";
	struct slice rest = slice_of(ids, ids ? list_labels(state, ids, LIMIT_SERVE_SWEPT) : 0);
	while (rest.len > 0) {
		struct slice id = slice_cut(&rest, '\n');
		struct words argv = {0};
		if (!sandbox_id_is_good(id) || slice_eq(id, slice_str(before)) || !is_over(state, id))
			continue;
		snprintf(before, sizeof(before), "%.*s", SLICE_FMT(id));
		words_add(&argv, "cage-pod");
		add_configured(&argv, "", state);
		remove_containers(&argv, before);
	}
	free(ids);
}

static bool reap(const char *dir)
{
	struct words argv = {0};
	const char *slash = strrchr(dir, '/');
	words_add(&argv, "cage-pod");
	bool was_started = add_started(&argv, dir);
	const bool is_ended = local_reap(dir);
	if (!is_ended || !was_started || !slash) {
		words_free(&argv);
		return is_ended && !was_started;
	}
	return remove_containers(&argv, slash + 1);
}

static bool has_started(const char *dir)
{
	struct words found = {0};
	bool ok = add_started(&found, dir);
	words_free(&found);
	return ok;
}

static bool remove_all(const char *dir)
{
	return reap(dir) && backend_local.remove(dir);
}

const struct backend backend_podman = {.name = "podman",
				       .takes_images = true,
				       .has_groups = has_groups,
				       .start = start,
				       .begin = begin,
				       .list = list,
				       .has_started = has_started,
				       .tidy = tidy,
				       .reap = reap,
				       .remove = remove_all};
