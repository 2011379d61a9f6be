/* The start of a run: its directory and environments, then the programs with their arguments. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/say.h"
#include "core/proc/key_file.h"
#include "orchestrator/asked.h"
#include "orchestrator/below.h"
#include "orchestrator/env_kit.h"
#include "orchestrator/presets.h"
#include "orchestrator/run_private.h"
#include "orchestrator/secrets.h"

#define ROOM_UID 1000 /* whom the gate makes of root */
#define ROOM_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* The loopback is the room's own, so that the proxy, which is outside, could not reach what CMD serves there. */
static const struct kit_way way_out = {.proxy = RUN_PROXY_URL, .direct = "localhost,127.0.0.1,::1"};

/* ---- places ---- */

static bool find_policy(struct run *r)
{
	const struct run_options *o = r->options;
	if (!o->policy)
		return preset_find(o->agent ? o->agent : "default", r->policy, sizeof(r->policy));
	if (snprintf(r->policy, sizeof(r->policy), "%s", o->policy) < (int)sizeof(r->policy))
		return true;
	say("--policy: the name is too long");
	return false;
}

static uint64_t size_of(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

static bool find_logs(struct run *r)
{
	int n;
	if (r->options->log)
		n = snprintf(r->log, sizeof(r->log), "%s", r->options->log);
	else
		n = snprintf(r->log, sizeof(r->log), "%s/log.jsonl", r->dir.hidden);
	if (n >= (int)sizeof(r->log) ||
	    snprintf(r->dns_log, sizeof(r->dns_log), "%s.dns", r->log) >= (int)sizeof(r->dns_log)) {
		say("--log: the name is too long");
		return false;
	}
	r->log_from = size_of(r->log);
	r->dns_log_from = size_of(r->dns_log);
	return true;
}

/* Two first runs at the same time must not make two CAs. */
static bool lock_ca(struct run *r)
{
	char path[RUN_PATH + 8];
	snprintf(path, sizeof(path), "%s/.lock", r->ca_dir);
	if (!key_dir_make(r->ca_dir))
		return false;
	r->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	return r->lock >= 0 && flock(r->lock, LOCK_EX) == 0;
}

/* The gate is told about it, and has another working directory. */
static bool use_real_name(char *path, size_t room)
{
	char *real = realpath(path, NULL);
	bool ok = real && snprintf(path, room, "%s", real) < (int)room;
	free(real);
	return ok;
}

/* Who has them can speak for the CA, or know a placeholder. */
static void warn_of_open_keys(const char *dir)
{
	static const char *const names[] = {"ca.key", "fingerprint.key", "placeholder.key"};
	char path[RUN_PATH + 32];
	struct stat st;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		if (lstat(path, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 077)) {
			say("warning: %s is a key, and open to others: chmod 600 it", path);
			return;
		}
	}
}

static bool open_ca_dir(struct run *r)
{
	if (!key_dir_path(r->options->ca_dir, r->ca_dir, sizeof(r->ca_dir))) {
		say("no place for the CA: give --ca-dir");
		return false;
	}
	if (lock_ca(r) && use_real_name(r->ca_dir, sizeof(r->ca_dir))) {
		warn_of_open_keys(r->ca_dir);
		return true;
	}
	say("%s: %s", r->ca_dir, strerror(errno));
	return false;
}

/* ---- environments ---- */

/* What the helpers may have of ours besides the secrets. */
static void copy_ours(struct words *to)
{
	static const char *const names[] = {
		"PATH", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (getenv(names[i]))
			words_add(to, "%s=%s", names[i], getenv(names[i]));
}

/* Who the proxy is to Azure, for secrets of key vaults. */
static void copy_identity(struct words *to)
{
	static const char *const names[] = {"AZURE_CLIENT_ID", "AZURE_TENANT_ID", "AZURE_AUTHORITY_HOST",
					    "AZURE_FEDERATED_TOKEN_FILE", "AZURE_POD_IDENTITY_AUTHORITY_HOST"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (getenv(names[i]))
			words_add(to, "%s=%s", names[i], getenv(names[i]));
}

/* Does --secret ID=env:NAME take a value from there? Then CMD has a placeholder, under the name that the policy says. */
static bool is_of_secret(const struct run_options *o, const char *name)
{
	for (size_t i = 0; i < o->secrets.n; i++)
		if (strcmp(strstr(o->secrets.list[i], "=env:") + strlen("=env:"), name) == 0)
			return true;
	return false;
}

/* CMD's own, then what was asked for, which comes last and so counts. */
static bool build_room_env(struct run *r)
{
	struct words *env = &r->room_env;
	const struct words *asked = &r->options->env;
	words_add(env, "PATH=" ROOM_PATH);
	words_add(env, "HOME=%s", r->dir.home[0] ? r->dir.home : ROOM_HOME);
	words_add(env, "USER=agent");
	words_add(env, "LOGNAME=agent");
	words_add(env, "SHELL=/bin/sh");
	words_add(env, "LANG=%s", getenv("LANG") ? getenv("LANG") : "C.UTF-8");
	if (r->tty.master >= 0)
		words_add(env, "TERM=%s", getenv("TERM") ? getenv("TERM") : "dumb");
	kit_variables(r->dir.kit, &way_out, env);
	if (r->options->agent)
		for (const char *const *extra = preset_env(r->options->agent); *extra; extra++)
			words_add(env, "%s", *extra);
	for (size_t i = 0; i < asked->n; i++) {
		const char *text = asked->list[i];
		if (strchr(text, '='))
			words_add(env, "%s", text);
		else if (getenv(text) && !is_of_secret(r->options, text))
			words_add(env, "%s=%s", text, getenv(text));
	}
	return !env->failed && !asked->failed;
}

/* ---- the kind of room ---- */

static const struct owner room_user = {ROOM_UID, ROOM_UID};

/* Where nothing can be mounted CMD shares the files of the container, and would share ours too if it were our user. */
static bool check_kind(struct run *r)
{
	if (r->kind.files != FILES_SHARED)
		return true;
	if (geteuid() != 0) {
		say("without mounts CMD can only be kept from the files of cage as another user: this has to be run by "
		    "root");
		r->code = EXIT_UNLOCKED;
		return false;
	}
	if (rundir_make_home(&r->dir, ROOM_UID))
		return true;
	say("%s: %s", r->dir.home, strerror(errno));
	return false;
}

/* Of what is bound to be changed CMD would change the original, and of that view of it nothing would be seen. */
static bool is_bound_too(const struct workspace *w, const struct words *asked)
{
	for (size_t i = 0; i + 1 < asked->n; i += 2) {
		const char *value = asked->list[i + 1];
		char source[RUN_PATH];
		snprintf(source, sizeof(source), "%.*s", (int)strcspn(value, ":"), value);
		if (strcmp(asked->list[i], "--bind") != 0 ||
		    (!path_is_at_or_below(source, w->dir) && !path_is_at_or_below(w->dir, source)))
			continue;
		say("--bind %s: it is changed at once, and --workspace %s is a view of the same: leave one of them "
		    "out, or use "
		    "--bind-ro",
		    source, w->dir);
		return true;
	}
	return false;
}

static bool choose_room(struct run *r)
{
	const struct run_options *o = r->options;
	struct workspace *w = &r->workspace;
	char overlay[2 * LIMIT_WORKSPACE_PATH + 2];
	if (o->workspace && (!workspace_find(w, o->workspace, r->dir.top) || is_bound_too(w, &o->room))) {
		r->code = EXIT_WRONG;
		return false;
	}
	if (o->workspace && !workspace_begin(w, r->dir.view, geteuid() == 0 ? &room_user : NULL))
		return false;
	bool try_overlay = o->workspace && workspace_overlay(w, overlay, sizeof(overlay));
	int code = room_kind_ask(o->mode, try_overlay ? overlay : NULL, &r->kind);
	if (code != 0) {
		r->code = code;
		return false;
	}
	return check_kind(r);
}

/* ---- what the room may not show ---- */

/* Who can change them is asked by the next run what it lets out. */
static bool add_programs(struct own_files *own)
{
	static const char *const names[] = {"cage", "cage-gate", "cage-proxy", "cage-dns"};
	struct words places = {0};
	char path[RUN_PATH];
	bool ok = true;
	for (size_t i = 0; ok && i < sizeof(names) / sizeof(names[0]); i++) {
		ok = launch_path(names[i], path, sizeof(path));
		if (ok)
			own_files_add(own, OWN_PROGRAM, path);
		else
			say("%s: can't be found beside this program", names[i]);
	}
	preset_places(&places);
	for (size_t i = 0; i < places.n; i++)
		own_files_add(own, OWN_PROGRAM, places.list[i]);
	ok = ok && !places.failed;
	words_free(&places);
	return ok;
}

/* The keys of other runs are where they are by default, or will be: also those of a run without our XDG_STATE_HOME. */
static void add_keys(struct run *r)
{
	char keys[RUN_PATH];
	const char *home = getenv("HOME");
	own_files_add(&r->own, OWN_KEYS, r->ca_dir);
	if (key_dir_path(NULL, keys, sizeof(keys)))
		own_files_add(&r->own, OWN_KEYS, keys);
	if (geteuid() != 0 && home && home[0] == '/' &&
	    snprintf(keys, sizeof(keys), "%s/.local/state/cage", home) < (int)sizeof(keys))
		own_files_add(&r->own, OWN_KEYS, keys);
}

static bool check_own_files(struct run *r)
{
	own_files_add(&r->own, OWN_RUN, r->dir.top);
	add_keys(r);
	own_files_add(&r->own, OWN_LOG, r->log);
	own_files_add(&r->own, OWN_LOG, r->dns_log);
	return add_programs(&r->own) && own_files_check(&r->own, &r->options->room, &r->workspace, r->kind.files);
}

/* ---- all of it ---- */

static bool share_secrets(struct run *r)
{
	copy_ours(&r->proxy_env);
	copy_identity(&r->proxy_env);
	copy_ours(&r->dns_env);
	int code = secrets_share(r->options, r->policy, r->ca_dir, &r->proxy_env, &r->room_env, &r->own);
	if (code != 0)
		r->code = code;
	return code == 0 && !r->proxy_env.failed && !r->dns_env.failed && !r->room_env.failed;
}

/* Who has started us removes it if we are killed. */
static bool tell_dir(struct run *r)
{
	char text[RUNDIR_PATH + 8];
	snprintf(text, sizeof(text), "dir %s", r->dir.top);
	control_say(&r->control, text);
	return true;
}

bool run_prepare(struct run *r)
{
	if (!find_policy(r)) {
		r->code = EXIT_WRONG;
		return false;
	}
	if (!rundir_make(&r->dir) || !tell_dir(r) || !find_logs(r) || !open_ca_dir(r) || !kit_begin(r->dir.kit) ||
	    !tty_open(&r->tty) || !streams_open(&r->streams) || !choose_room(r) || !build_room_env(r) ||
	    !share_secrets(r))
		return false;
	r->code = EXIT_WRONG;
	if (!check_own_files(r))
		return false;
	r->code = EXIT_FAILED;
	if (!r->options->workspace || workspace_open(&r->workspace, r->kind.files))
		return true;
	if (is_asked_to_end())
		r->code = 128 + asked_by();
	return false;
}

bool run_let_go(struct run *r)
{
	const char go = HANDOFF_GO;
	if (!kit_fill(r->dir.kit, r->ca_dir, &way_out))
		return false;
	close(r->lock);
	r->lock = -1;
	if (send(r->handoff, &go, 1, MSG_NOSIGNAL) != 1)
		return true; /* the gate has ended: its exit code says why */
	run_mark(r, WORK_DONE);
	control_say(&r->control, "began");
	return true;
}
