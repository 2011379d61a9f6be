/* What containers are shown of this machine: a directory for each purpose, below one that nobody else can enter. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/say.h"
#include "core/base/write_all.h"
#include "core/proc/key_file.h"
#include "orchestrator/env_kit.h"
#include "orchestrator/pod/pod.h"
#include "orchestrator/secrets.h"

static bool fail(const char *path)
{
	say("%s: %s", path, strerror(errno));
	return false;
}

/* ---- the policy ---- */

static bool copy(int from, int to)
{
	char bytes[8192];
	ssize_t n;
	while ((n = read(from, bytes, sizeof(bytes))) > 0)
		if (!write_all(to, bytes, (size_t)n))
			return false;
	return n == 0;
}

static bool copy_file(const char *path, const char *to, mode_t mode)
{
	int in = open(path, O_RDONLY | O_CLOEXEC);
	int out = in >= 0 ? open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode) : -1;
	bool ok = out >= 0 && fchmod(out, mode) == 0 && copy(in, out);
	if (in >= 0)
		close(in);
	if (out >= 0)
		ok = close(out) == 0 && ok;
	return ok || fail(path);
}

/* There as a whole or not at all: a helper may read it at any time. */
bool files_copy_policy(struct pod *p)
{
	char path[RUNDIR_PATH + 64], part[RUNDIR_PATH + 64];
	snprintf(path, sizeof(path), "%s/policy/policy.yaml", p->dir.hidden);
	snprintf(part, sizeof(part), "%s/policy/part", p->dir.hidden);
	return copy_file(p->options->run.policy, part, 0644) && (rename(part, path) == 0 || fail(path));
}

/* ---- programs ---- */

bool files_shown(const struct pod *p, size_t i, char copy_of[POD_PATH])
{
	struct stat st;
	const char *what = p->options->run.room.list[i];
	char path[POD_PATH];
	snprintf(path, sizeof(path), "%.*s", (int)strcspn(what, ":"), what);
	snprintf(copy_of, POD_PATH, "%s/shown%zu", p->dir.hidden, i);
	return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* cage-door, and the files that are shown by themselves: sandboxes that had the same one could watch and lock it, and so speak with
 * each other. */
static bool copy_programs(const struct pod *p)
{
	const struct words *room = &p->options->run.room;
	char path[POD_PATH], to[POD_PATH];
	if (!launch_path("cage-door", path, sizeof(path))) {
		say("cage-door: can't be found beside this program");
		return false;
	}
	snprintf(to, sizeof(to), "%s/door", p->dir.hidden);
	bool ok = copy_file(path, to, 0555);
	for (size_t i = 0; ok && i + 1 < room->n; i += 2) {
		if (strcmp(room->list[i], "--bind-ro") != 0 || !files_shown(p, i + 1, to))
			continue;
		snprintf(path, sizeof(path), "%.*s", (int)strcspn(room->list[i + 1], ":"), room->list[i + 1]);
		ok = copy_file(path, to, 0555);
	}
	return ok;
}

/* ---- directories ---- */

static bool make_dir(const struct pod *p, const char *name, mode_t mode)
{
	char path[RUNDIR_PATH + 64];
	snprintf(path, sizeof(path), "%s/%s", p->dir.hidden, name);
	return (mkdir(path, mode) == 0 && chmod(path, mode) == 0) || fail(path);
}

/* One that is shown in the place of the image's. */
static bool write_file(const struct pod *p, const char *name, const char *text)
{
	char path[RUNDIR_PATH + 64];
	snprintf(path, sizeof(path), "%s/%s", p->dir.hidden, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	bool ok = fd >= 0 && fchmod(fd, 0644) == 0 && write_all(fd, text, strlen(text));
	if (fd >= 0)
		close(fd);
	return ok || fail(path);
}

/* As a room of cage run has them. */
static bool write_users(const struct pod *p)
{
	char passwd[256], group[128];
	const unsigned uid = pod_uid(p, ROLE_AGENT);
	snprintf(passwd, sizeof(passwd),
		 "root:x:0:0:root:/:/bin/false\nagent:x:%u:%u:agent:" POD_HOME ":/bin/sh\n"
		 "nobody:x:65534:65534:nobody:/:/bin/false\n",
		 uid, uid);
	snprintf(group, sizeof(group), "root:x:0:\nagent:x:%u:\nnogroup:x:65534:\n", uid);
	return write_file(p, "passwd", passwd) && write_file(p, "group", group);
}

/* A file that a helper goes on writing, and that who reads it here can read. */
static bool make_log(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0)
		close(fd);
	return fd >= 0 || fail(path);
}

bool files_own(const struct pod *p)
{
	const uid_t uid = pod_uid(p, ROLE_PROXY);
	for (const char *log = p->log; log; log = log == p->log ? p->dns_log : NULL)
		if (lchown(log, uid, uid) != 0)
			return fail(log);
	return write_users(p);
}

static bool find_logs(struct pod *p)
{
	const struct run_options *o = &p->options->run;
	if (!o->log || !o->ca_dir || !o->policy || !o->control) {
		say("--log, --ca-dir, --policy and --control are required");
		return false;
	}
	if (snprintf(p->log, sizeof(p->log), "%s", o->log) >= POD_PATH ||
	    snprintf(p->dns_log, sizeof(p->dns_log), "%s.dns", o->log) >= POD_PATH ||
	    snprintf(p->ca_dir, sizeof(p->ca_dir), "%s", o->ca_dir) >= POD_PATH) {
		say("a name is too long");
		return false;
	}
	return make_log(p->log) && make_log(p->dns_log);
}

/* ---- options that the gate would take ---- */

static bool take_tmpfs(struct pod *p, const char *value)
{
	const char *size = strchr(value, ':');
	if (strncmp(value, "/workspace:", 11) == 0 && room_limits_size(size + 1, strlen(size + 1), &p->disk) == 0)
		return true;
	say("--tmpfs %s: only /workspace:SIZE can be had", value);
	return false;
}

static bool take_room(struct pod *p)
{
	const struct words *w = &p->options->run.room;
	p->disk = LIMIT_POD_SCRATCH;
	for (size_t i = 0; i + 1 < w->n; i += 2) {
		if (strcmp(w->list[i], "--limit") == 0 && room_limits_parse(&p->limits, w->list[i + 1]) < 0)
			return false;
		if (strcmp(w->list[i], "--tmpfs") == 0 && !take_tmpfs(p, w->list[i + 1]))
			return false;
		if (strcmp(w->list[i], "--bind") == 0) {
			say("--bind: nothing of this machine can be changed from a container");
			return false;
		}
	}
	return true;
}

/* ---- all of it ---- */

/* What programs that are made to be tested are told. */
static void copy_ours(struct words *to)
{
	static const char *const names[] = {"TZ", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (getenv(names[i]))
			words_add(to, "%s=%s", names[i], getenv(names[i]));
}

/* Which of the machine's identities the proxy is to Azure, for secrets of key vaults. Files and loopback are not the container's. */
static void copy_identity(struct words *to)
{
	if (getenv("AZURE_CLIENT_ID"))
		words_add(to, "AZURE_CLIENT_ID=%s", getenv("AZURE_CLIENT_ID"));
}

/* The CA is this sandbox's own: what leaks from one proxy is of no use against another. */
static bool share_secrets(struct pod *p)
{
	char seccomp[RUNDIR_PATH + 64];
	snprintf(seccomp, sizeof(seccomp), "%s/seccomp.json", p->dir.hidden);
	copy_ours(&p->proxy_env);
	copy_identity(&p->proxy_env);
	copy_ours(&p->dns_env);
	p->code = secrets_share(&p->options->run, p->options->run.policy, p->ca_dir, &p->proxy_env, &p->agent_env,
				&p->own);
	if (p->code != 0)
		return false;
	p->code = EXIT_FAILED;
	return !p->proxy_env.failed && !p->agent_env.failed && seccomp_write(seccomp, SECCOMP_OF_KERNEL);
}

bool files_make(struct pod *p)
{
	char text[RUNDIR_PATH + 8];
	if (!rundir_make(&p->dir))
		return false;
	snprintf(text, sizeof(text), "dir %s", p->dir.top);
	control_say(&p->control, text);
	return find_logs(p) && take_room(p) && make_dir(p, "policy", 0755) && make_dir(p, "bindings", 0700) &&
	       make_dir(p, "keys", 0700) && write_file(p, "hosts", "127.0.0.1 localhost cage\n") &&
	       key_dir_make(p->ca_dir) && kit_begin(p->dir.kit) && copy_programs(p) && share_secrets(p) &&
	       files_copy_policy(p);
}
