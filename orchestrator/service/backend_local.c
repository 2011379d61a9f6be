/* Sandboxes on this machine: the locked room of `cage run`, with a keeper for each. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/say.h"
#include "core/base/slice.h"
#include "core/proc/sandbox_id.h"
#include "orchestrator/backend.h"
#include "orchestrator/launch.h"
#include "orchestrator/service/backend_local.h"
#include "orchestrator/tree_whole.h"

/* ---- spec ---- */

static uint64_t number(const json_t *limits, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(limits, name));
}

static void add_run(struct words *w, const char *option, const char *value)
{
	words_add(w, "run=%s", option);
	words_add(w, "run=%s", value);
}

static void add_places(struct words *w, const struct backend_start *s)
{
	static const struct {
		const char *option, *name;
	} rows[] = {{"--policy", "policy.yaml"}, {"--log", "log.jsonl"}};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		words_add(w, "run=%s", rows[i].option);
		words_add(w, "run=%s/%s", s->dir, rows[i].name);
	}
	words_add(w, "run=--ca-dir");
	words_add(w, "run=%s/ca", s->state);
	words_add(w, "run=--log-max");
	words_add(w, "run=%" PRIu64, s->log_max);
	add_run(w, "--sandbox", s->id);
	add_run(w, "--mode", s->mode);
}

static void add_limits(struct words *w, const struct backend_start *s)
{
	const json_t *limits = json_object_get(s->spec, "limits");
	words_add(w, "run=--limit");
	words_add(w, "run=mem=%" PRIu64 ",cpu=%.3f,pids=%" PRIu64 ",time=%" PRIu64, number(limits, "memory"),
		  json_number_value(json_object_get(limits, "cpu")), number(limits, "pids"),
		  s->life_s + LIMIT_SERVE_BACKSTOP_S);
	words_add(w, "run=--tmpfs");
	words_add(w, "run=/workspace:%" PRIu64, number(limits, "disk"));
	words_add(w, "run=--out");
	words_add(w, "run=%" PRIu64, number(limits, "egress_bytes"));
	if (json_object_get(s->spec, "command")) /* without one it idles until its lifetime is over */
		words_add(w, "wall_ms=%" PRIu64, number(limits, "wall_seconds") * 1000);
	words_add(w, "output=%" PRIu64, number(limits, "output_bytes"));
}

static void add_env(struct words *w, const json_t *env)
{
	const char *name;
	json_t *value;
	json_object_foreach((json_t *)env, name, value) words_add(w, "env=%s=%s", name, json_string_value(value));
}

static void add_list(struct words *w, const char *name, const json_t *list)
{
	size_t i;
	json_t *item;
	json_array_foreach(list, i, item) words_add(w, "%s=%s", name, json_string_value(item));
}

static void add_secrets(struct words *w, const json_t *list)
{
	size_t i;
	json_t *id;
	json_array_foreach(list, i, id)
	{
		words_add(w, "run=--secret");
		words_add(w, "run=%s=env:CAGE_SECRET_%zu", json_string_value(id), i);
	}
}

static void add_published(struct words *w, const json_t *list)
{
	size_t i;
	json_t *item;
	json_array_foreach(list, i, item)
	{
		const char *address = json_string_value(json_object_get(item, "address"));
		words_add(w, "publish=%s:%" PRIu64 ":%" PRIu64, address ? address : "127.0.0.1",
			  number(item, "host_port"), number(item, "port"));
	}
}

/* Files that a step of a workflow hands on. */
static void add_artifacts(struct words *w, const json_t *list)
{
	size_t i;
	json_t *item;
	json_array_foreach(list, i, item)
	{
		words_add(w, "artifact=%" PRIu64 ":%s", number(item, "max_bytes"),
			  json_string_value(json_object_get(item, "path")));
	}
}

static void make_spec(struct words *w, const struct backend_start *s)
{
	words_add(w, "id=%s", s->id);
	add_places(w, s);
	add_limits(w, s);
	if (s->rootfs)
		add_run(w, "--root", s->rootfs);
	add_secrets(w, json_object_get(s->spec, "secrets"));
	if (s->stand_ms) {
		words_add(w, "stand_ms=%" PRIu64, s->stand_ms);
	} else {
		add_env(w, json_object_get(s->spec, "env"));
		add_list(w, "cmd", json_object_get(s->spec, "command"));
	}
	add_published(w, json_object_get(s->spec, "publish"));
	add_artifacts(w, json_object_get(s->spec, "artifacts"));
	words_add(w, "keep=%d", json_is_true(json_object_get(s->spec, "keep")));
	words_add(w, "grace_ms=%d", LIMIT_SERVE_GRACE_MS);
}

/* There as a whole or not at all: a keeper that was started before may read it. */
bool local_begin(const struct backend_start *s, const struct words *more)
{
	char path[BACKEND_PATH], part[BACKEND_PATH + 8];
	struct words w = {0};
	make_spec(&w, s);
	for (size_t i = 0; more && i < more->n; i++)
		words_add(&w, "%s", more->list[i]);
	snprintf(path, sizeof(path), "%s/spec", s->dir);
	snprintf(part, sizeof(part), "%s.part", path);
	FILE *f = w.failed ? NULL : fopen(part, "we");
	bool ok = f;
	for (size_t i = 0; i < w.n && ok; i++)
		ok = fwrite(w.list[i], 1, strlen(w.list[i]) + 1, f) == strlen(w.list[i]) + 1;
	if (f)
		ok = fclose(f) == 0 && ok;
	words_free(&w);
	return ok && rename(part, path) == 0;
}

/* ---- starting ---- */

static void use_files(const void *arg)
{
	const int *said = arg;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (chdir("/") != 0 || null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(*said, 2) < 0)
		_exit(1);
	umask(077);
}

static pid_t start_keeper(const struct backend_start *s, int said)
{
	struct words env = {0};
	const char *path = getenv("PATH");
	words_add(&env, "PATH=%s", path ? path : "/usr/local/bin:/usr/bin:/bin");
	for (size_t i = 0; i < s->env->n; i++)
		words_add(&env, "%s", s->env->list[i]);
	char *argv[] = {"cage-keeper", (char *)s->dir, NULL};
	struct launch l = {.name = "cage-keeper", .argv = argv, .envp = env.list, .in_child = use_files, .arg = &said};
	pid_t pid = env.failed ? -1 : launch(&l);
	words_wipe(&env);
	return pid;
}

pid_t local_start(const struct backend_start *s, const struct words *more)
{
	char path[BACKEND_PATH];
	snprintf(path, sizeof(path), "%s/keeper.said", s->dir);
	if (!local_begin(s, more)) {
		say("%s/spec: %s", s->dir, strerror(errno));
		return -1;
	}
	int said = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (said < 0) {
		say("%s: %s", path, strerror(errno));
		return -1;
	}
	pid_t pid = start_keeper(s, said);
	close(said);
	return pid;
}

static pid_t start(const struct backend *self, const struct backend_start *s)
{
	(void)self;
	return local_start(s, NULL);
}

static bool begin(const struct backend *self, const struct backend_start *s)
{
	(void)self;
	return local_begin(s, NULL);
}

/* ---- what there is ---- */

static bool list(const struct backend *self, const char *state)
{
	(void)self;
	char path[BACKEND_PATH];
	snprintf(path, sizeof(path), "%s/sandboxes", state);
	DIR *dir = opendir(path);
	if (!dir)
		return false;
	for (struct dirent *e = readdir(dir); e; e = readdir(dir))
		if (e->d_name[0] != '.' && sandbox_id_is_good(slice_str(e->d_name)))
			puts(e->d_name);
	closedir(dir);
	return fflush(stdout) == 0;
}

bool local_remove(const char *dir)
{
	struct stat st;
	if (!local_reap(dir))
		return false;
	tree_remove(dir);
	if (lstat(dir, &st) != 0 && errno == ENOENT)
		return true;
	errno = ENOTEMPTY;
	return false;
}

static bool has_groups(const struct backend *self)
{
	(void)self;
	return local_has_groups();
}

static void tidy(const struct backend *self, const char *state)
{
	(void)self;
	local_tidy(state);
}

static bool reap(const struct backend *self, const char *dir)
{
	(void)self;
	return local_reap(dir);
}

static bool remove_all(const struct backend *self, const char *dir)
{
	(void)self;
	return local_remove(dir);
}

const struct backend backend_local = {.name = "local",
				      .has_groups = has_groups,
				      .start = start,
				      .begin = begin,
				      .list = list,
				      .tidy = tidy,
				      .reap = reap,
				      .remove = remove_all};
