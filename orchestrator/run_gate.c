/* What the gate is told of the room, and its start. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/say.h"
#include "orchestrator/env_kit.h"
#include "orchestrator/run_private.h"

/* ---- its arguments ---- */

static bool is_there(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static void add_workspace(const struct workspace *w, struct words *argv)
{
	bool is_overlay = w->files == FILES_OVERLAY;
	words_add(argv, is_overlay ? "--overlay" : "--bind");
	if (is_overlay)
		words_add(argv, "%s:%s", w->dir, w->state);
	else
		words_add(argv, "%s:%s", w->view, workspace_place(w));
}

/* What CMD sees of this machine beside what the gate shows by itself. */
static void add_binds(struct run *r, struct words *argv)
{
	words_add(argv, "--bind-ro");
	words_add(argv, "%s", r->dir.kit);
	for (const char *const *bundle = kit_system_bundles; *bundle; bundle++)
		if (is_there(*bundle)) {
			words_add(argv, "--replace");
			words_add(argv, "%s/bundle.pem:%s", r->dir.kit, *bundle);
		}
	for (const char *const *store = kit_java_stores; *store; store++)
		if (is_there(*store)) {
			words_add(argv, "--replace");
			words_add(argv, "%s/cacerts.jks:%s", r->dir.kit, *store);
		}
	if (kit_has_nss()) {
		words_add(argv, "--copy"); /* who can't write to it does not open it */
		words_add(argv, "%s/nssdb:%s/.pki/nssdb", r->dir.kit, words_value(&r->room_env, "HOME"));
	}
	if (r->workspace.dir[0])
		add_workspace(&r->workspace, argv);
}

/* Of SRC or SRC:DST. */
static bool is_directory(const char *bind)
{
	char source[RUN_PATH];
	struct stat st;
	snprintf(source, sizeof(source), "%.*s", (int)strcspn(bind, ":"), bind);
	return stat(source, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Where CMD begins, unless that was said: where it can work. */
static void add_workdir(const struct run *r, struct words *argv)
{
	const struct words *asked = &r->options->room;
	const char *dir = r->workspace.dir[0] ? workspace_place(&r->workspace) : NULL;
	for (size_t i = 0; i + 1 < asked->n; i += 2) {
		const char *colon = strrchr(asked->list[i + 1], ':');
		if (strcmp(asked->list[i], "--workdir") == 0)
			return;
		if (!dir && strcmp(asked->list[i], "--bind") == 0 && is_directory(asked->list[i + 1]))
			dir = colon ? colon + 1 : asked->list[i + 1];
		if (dir && dir[0] != '/')
			dir = NULL; /* the gate says what is wrong with that one */
	}
	if (!dir && r->dir.home[0])
		dir = r->dir.home;
	if (!dir)
		return;
	words_add(argv, "--workdir");
	words_add(argv, "%s", dir);
}

/* Of a name that is there twice, the last one counts: a placeholder stands behind what was asked for by --env. Values go in
 * the gate's environment, since every user of the machine can read its arguments. */
static void add_env(const struct words *env, struct words *argv, struct words *gate_env)
{
	char name[256];
	for (size_t i = 0; i < env->n; i++) {
		const char *entry = env->list[i];
		size_t len = strcspn(entry, "=");
		snprintf(name, sizeof(name), "%.*s", (int)len, entry);
		if (len < sizeof(name) && words_value(env, name) != entry + len + 1)
			continue;
		words_add(argv, "--env");
		words_add(argv, "%.*s", (int)len, entry);
		words_add(gate_env, "%s", entry);
	}
}

static void add_gate_arguments(struct run *r, struct words *argv, struct words *gate_env)
{
	const struct run_options *o = r->options;
	words_add(argv, "cage-gate");
	words_add(argv, "--handoff");
	words_add(argv, "%d", LAUNCH_FIRST_FD);
	words_add(argv, "--mode");
	words_add(argv, "%s", r->kind.mode);
	add_env(&r->room_env, argv, gate_env);
	add_binds(r, argv);
	add_workdir(r, argv);
	for (size_t i = 0; i < o->room.n; i++)
		words_add(argv, "%s", o->room.list[i]);
	for (size_t i = 0; i < r->own.room.n; i++) /* last, so that it lies over all of that */
		words_add(argv, "%s", r->own.room.list[i]);
	words_add(argv, "--");
	for (char **word = o->command; *word; word++)
		words_add(argv, "%s", *word);
}

/* ---- its start ---- */

static void enter_streams(const void *run)
{
	const struct run *r = run;
	tty_enter(&r->tty);
	streams_enter(&r->streams);
}

bool run_start_gate(struct run *r)
{
	struct words argv = {0}, env = {0};
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
		say("socketpair: %s", strerror(errno));
		return false;
	}
	add_gate_arguments(r, &argv, &env);
	struct launch gate = {.name = "cage-gate",
			      .argv = argv.list,
			      .envp = env.list,
			      .fds = &ends[1],
			      .n_fds = 1,
			      .in_child = enter_streams,
			      .arg = r,
			      .death_signal = SIGKILL}; /* CMD could ignore any other that is passed on */
	pid_t pid = argv.failed || env.failed ? -1 : launch(&gate);
	close(ends[1]);
	words_free(&argv);
	words_free(&env);
	r->handoff = ends[0];
	r->gate = pid > 0 ? pid : 0;
	if (pid <= 0)
		return false;
	streams_begin(&r->streams);
	tty_begin(&r->tty);
	return true;
}
