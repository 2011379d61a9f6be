/* What is configured goes on a command line; what was configured when a sandbox was started is in its spec. */
#include "orchestrator/service/maker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/say.h"
#include "core/base/slice.h"
#include "core/proc/sandbox_id.h"
#include "orchestrator/launch.h"
#include "orchestrator/service/backend_local.h"
#include "orchestrator/service/state_dir.h"

void maker_use(struct maker *m)
{
	m->is_used = true;
}

void maker_set(struct maker *m, const char *option, const char *value)
{
	words_add(&m->options, "%s", option);
	words_add(&m->options, "%s", value);
}

void maker_forget(struct maker *m)
{
	words_free(&m->options);
	m->is_used = false;
}

/* ---- words ---- */

static void add_options(const struct maker *m, struct words *w, const char *prefix)
{
	for (size_t i = 0; i < m->options.n; i++)
		words_add(w, "%s%s", prefix, m->options.list[i]);
}

/* Each service has containers of its own; without its word nothing is made, and nothing is removed. */
static void add_state(struct words *w, const char *prefix, const char *state)
{
	char id[STATE_DIR_ID];
	if (!state_dir_id(state, id)) {
		w->failed = true;
		return;
	}
	words_add(w, "%s--state", prefix);
	words_add(w, "%s%s", prefix, id);
}

/* As they were when it was started: the configuration may be another one since. */
static bool add_started(const struct maker *m, struct words *w, const char *dir)
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
		if (slice_starts(word, slice_str(m->word)))
			words_add(w, "%.*s", SLICE_FMT(slice_from(word, strlen(m->word))));
	}
	free(bytes);
	return w->n > before;
}

/* ---- the program ---- */

/* In a process of its own, or before there is a loop: it has bounds of its own. death_signal: what it gets when we die; 0: it goes on. */
static int run_it(const struct maker *m, struct words *argv, int death_signal)
{
	int status = W_EXITCODE(1, 0);
	struct launch l = {.name = m->program, .argv = argv->list, .envp = environ, .death_signal = death_signal};
	pid_t pid = argv->failed ? -1 : launch(&l);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	words_free(argv);
	errno = EBUSY;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

struct words maker_line(const struct maker *m, const char *state)
{
	struct words line = {0};
	words_add(&line, "%s", m->program);
	add_options(m, &line, "");
	add_state(&line, "", state);
	return line;
}

/* Whoever checks may be another user than the service: nothing is made for it. */
int maker_check(const struct maker *m, const char *state, const char *more)
{
	struct words argv = {0};
	words_add(&argv, "%s", m->program);
	add_options(m, &argv, "");
	if (state_dir_has_id(state))
		add_state(&argv, "", state);
	if (more)
		words_add(&argv, "%s", more);
	words_add(&argv, "check");
	return run_it(m, &argv, SIGKILL); /* nobody would hear what it finds */
}

int maker_become(struct maker *m, const char *state, char *const *words)
{
	struct words argv = maker_line(m, state);
	char path[BACKEND_PATH];
	for (; *words; words++)
		words_add(&argv, "%s", *words);
	if (!argv.failed && launch_path(m->program, path, sizeof(path)))
		execv(path, argv.list);
	say("%s: can't be started: %s", m->program, strerror(errno));
	words_free(&argv);
	return 1;
}

static bool remove_made(const struct maker *m, struct words *argv, const char *id)
{
	words_add(argv, "remove");
	words_add(argv, "%s", id);
	return run_it(m, argv, 0) == 0;
}

/* ---- what a backend does ---- */

/* One that the operator has configured is not asked about; one that a create names is. */
static void add_image(const struct maker *m, struct words *w, const struct backend_start *s)
{
	const char *image = json_string_value(json_object_get(s->spec, "image"));
	if (!image)
		return;
	words_add(w, "%s--admit", m->word);
	words_add(w, "%s%s", m->word, image);
	if (!s->signatures || !s->signatures[0])
		return;
	words_add(w, "%s--signatures", m->word);
	words_add(w, "%s%s", m->word, s->signatures);
}

/* The CA is the sandbox's own, since its proxy is another user and no root. */
struct words maker_words(const struct maker *m, const struct backend_start *s)
{
	struct words more = {0};
	add_options(m, &more, m->word);
	add_state(&more, m->word, s->state);
	add_image(m, &more, s);
	words_add(&more, "run=--ca-dir");
	words_add(&more, "run=%s/ca", s->dir);
	return more;
}

/* Podman and Azure make them, or no container. */
bool maker_has_groups(const struct backend *self)
{
	(void)self;
	return true;
}

bool maker_begin(const struct backend *self, const struct backend_start *s)
{
	struct words more = maker_words(self->maker, s);
	bool ok = !more.failed && local_begin(s, &more);
	words_free(&more);
	return ok;
}

/* A keeper has nothing of our environment but what is in it. Values of secrets stay as they are. */
static struct words env_of(const struct maker *m, const struct backend_start *s)
{
	struct words env = {0};
	for (size_t i = 0; i < s->env->n; i++)
		words_add(&env, "%s", s->env->list[i]);
	for (const char *const *name = m->env; name && *name; name++)
		if (getenv(*name))
			words_add(&env, "%s=%s", *name, getenv(*name));
	return env;
}

pid_t maker_start(const struct backend *self, const struct backend_start *s)
{
	struct backend_start own = *s;
	struct words more = maker_words(self->maker, s), env = env_of(self->maker, s);
	own.env = &env;
	pid_t pid = more.failed || env.failed ? -1 : local_start(&own, &more);
	words_free(&more);
	words_wipe(&env);
	return pid;
}

/* A directory is listed by the local backend already, whoever has started what is in it. */
bool maker_list(const struct backend *self, const char *state)
{
	(void)self, (void)state;
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

/* Ids that what was made is labelled with; some of them twice. */
static size_t list_labels(const struct maker *m, const char *state, char *out, size_t room)
{
	int ends[2];
	size_t n = 0;
	ssize_t got = 1;
	if (pipe2(ends, O_CLOEXEC) != 0)
		return 0;
	struct words argv = maker_line(m, state);
	words_add(&argv, "list");
	struct launch l = {
		.name = m->program, .argv = argv.list, .envp = environ, .in_child = use_pipe, .arg = &ends[1]};
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

/* What was left by a keeper and a program that were killed. */
void maker_tidy(const struct backend *self, const char *state)
{
	const struct maker *m = self->maker;
	char *ids = m->is_used ? malloc(LIMIT_SERVE_SWEPT) : NULL, before[LIMIT_SANDBOX + 1] = "";
	struct slice rest = slice_of(ids, ids ? list_labels(m, state, ids, LIMIT_SERVE_SWEPT) : 0);
	while (rest.len > 0) {
		struct slice id = slice_cut(&rest, '\n');
		if (!sandbox_id_is_good(id) || slice_eq(id, slice_str(before)) || !is_over(state, id))
			continue;
		snprintf(before, sizeof(before), "%.*s", SLICE_FMT(id));
		struct words argv = maker_line(m, state);
		remove_made(m, &argv, before);
	}
	free(ids);
}

bool maker_reap(const struct backend *self, const char *dir)
{
	const struct maker *m = self->maker;
	struct words argv = {0};
	const char *slash = strrchr(dir, '/');
	words_add(&argv, "%s", m->program);
	bool was_started = add_started(m, &argv, dir);
	const bool is_ended = local_reap(dir);
	if (!is_ended || !was_started || !slash) {
		words_free(&argv);
		return is_ended && !was_started;
	}
	return remove_made(m, &argv, slash + 1);
}

bool maker_has_started(const struct backend *self, const char *dir)
{
	struct words found = {0};
	bool ok = add_started(self->maker, &found, dir);
	words_free(&found);
	return ok;
}

bool maker_remove(const struct backend *self, const char *dir)
{
	return maker_reap(self, dir) && local_remove(dir);
}
