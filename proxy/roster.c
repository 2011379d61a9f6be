/* The seats are compared with the directory: who is gone leaves, then everybody who is there gets what is new. */
#include "proxy/roster.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/say.h"
#include "proxy/auth.h"

#define PATH_ROOM 4096

/* ---- the directory ---- */

/* A sandbox as it is there. */
struct entry {
	struct seat who;
	const char *fault; /* of its token; NULL: none */
	bool is_there;     /* it has a token */
};

static bool path_of(const char *dir, const char *id, const char *name, char *out, size_t room)
{
	int n = snprintf(out, room, "%s/%s/%s", dir, id, name);
	return n > 0 && (size_t)n < room;
}

/* One line break at its end is an editor's. */
static struct slice without_break(struct slice text)
{
	if (slice_ends(text, SLICE("\r\n")))
		return slice_head(text, text.len - 2);
	return slice_ends(text, SLICE("\n")) ? slice_head(text, text.len - 1) : text;
}

static void read_token(struct entry *e, const char *id, int fd)
{
	char text[LIMIT_SANDBOX_TOKEN + 3];
	ssize_t n = read(fd, text, sizeof(text));
	e->is_there = true;
	if (n < 0)
		e->fault = strerror(errno);
	else
		e->fault = auth_seat(&e->who, slice_str(id), without_break(slice_of(text, (size_t)n)));
	OPENSSL_cleanse(text, sizeof(text));
}

static void entry_read(struct entry *e, const char *dir, const char *id)
{
	char path[PATH_ROOM];
	*e = (struct entry){.is_there = true, .fault = "its path is too long"};
	if (!path_of(dir, id, "token", path, sizeof(path)))
		return;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0) {
		e->is_there = errno != ENOENT && errno != ENOTDIR;
		e->fault = strerror(errno);
		return;
	}
	read_token(e, id, fd);
	close(fd);
}

bool roster_policy_path(const char *dir, const char *id, char *out, size_t room)
{
	return path_of(dir, id, "policy.yaml", out, room) && (access(out, F_OK) == 0 || errno != ENOENT);
}

static int is_shown(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

/* Names in their order; -1 after saying why. */
static int list_names(const char *dir, struct dirent ***names)
{
	int n = scandir(dir, names, is_shown, alphasort);
	if (n < 0)
		say("--sandboxes %s: %s", dir, strerror(errno));
	return n;
}

static void free_names(struct dirent **names, int n)
{
	for (int i = 0; i < n; i++)
		free(names[i]);
	free(names);
}

/* ---- seats ---- */

static struct slice id_at(const struct master *m, size_t i)
{
	return seat_id(&m->children.seats[i]);
}

/* 0: there is none. An empty id: the first free one. */
static size_t find_seat(const struct master *m, struct slice id)
{
	for (size_t i = 1; i < m->n_seats; i++)
		if (slice_eq(id_at(m, i), id))
			return i;
	return 0;
}

size_t roster_count(const struct master *m)
{
	size_t n = 0;
	for (size_t i = 1; i < m->n_seats; i++)
		n += id_at(m, i).len > 0;
	return n;
}

static void leave(struct master *m, size_t i)
{
	const struct seat nobody = {.id_len = 0};
	say("sandbox %.*s is gone; its connections are ended", SLICE_FMT(id_at(m, i)));
	master_set_seat(m, i, &nobody, false);
}

static void drop_missing(struct master *m, const char *dir)
{
	for (size_t i = 1; i < m->n_seats; i++) {
		char id[LIMIT_SANDBOX + 1] = "";
		struct entry e;
		if (id_at(m, i).len == 0)
			continue;
		memcpy(id, id_at(m, i).ptr, id_at(m, i).len);
		entry_read(&e, dir, id);
		if (!e.is_there)
			leave(m, i);
		else if (e.fault)
			master_refuse(m, id_at(m, i)); /* it may be gone, which can't be seen */
	}
}

static bool same_proof(const struct seat *a, const struct seat *b)
{
	return a->id_len == b->id_len && CRYPTO_memcmp(a->proof, b->proof, SEAT_PROOF) == 0;
}

/* What is said of it, where it was not so before. */
static void say_policy(struct master *m, size_t i, const char *path)
{
	say("sandbox %.*s: policy %s loaded, generation %llu", SLICE_FMT(id_at(m, i)), path,
	    (unsigned long long)m->children.seats[i].policy_gen);
	if (m->children.phase == CHILDREN_RUNNING)
		master_log_policy(m, i, true);
}

static void say_rejected(struct master *m, size_t i, const char *id, const char *path)
{
	bool is_new = id_at(m, i).len == 0;
	say("sandbox %s: policy %s rejected; %s", id, path, is_new ? "it stays out" : "what it had stays in force");
	if (!is_new && m->children.phase == CHILDREN_RUNNING)
		master_log_policy(m, i, false);
}

/* The seat is as the entry says, with the policy in path; NULL: with none of its own. */
static bool settle(struct master *m, size_t i, const struct entry *e, const char *id, const char *path)
{
	const struct seat *seat = &m->children.seats[i];
	bool is_new = seat->id_len == 0;
	enum master_load done = path ? master_load_policy(m, i, &e->who, path) : MASTER_KEPT;
	if (done == MASTER_LOADED)
		say_policy(m, i, path);
	if (done == MASTER_REJECTED)
		say_rejected(m, i, id, path);
	if (done == MASTER_REJECTED && is_new)
		return false;
	bool drops = !path && seat->policy;
	if (drops || !same_proof(seat, &e->who))
		master_set_seat(m, i, &e->who, !drops);
	return done != MASTER_REJECTED;
}

static bool update(struct master *m, const char *dir, const char *id)
{
	char path[PATH_ROOM];
	struct entry e;
	size_t i = find_seat(m, slice_str(id));
	entry_read(&e, dir, id);
	if (e.fault) {
		say("sandbox %s: token: %s; %s", id, e.fault, i > 0 ? "what it had stays in force" : "it stays out");
		return false;
	}
	if (i == 0)
		i = find_seat(m, SLICE_NONE);
	if (i == 0) {
		say("sandbox %s: there are %d already; it stays out", id, LIMIT_SANDBOXES);
		return false;
	}
	return settle(m, i, &e, id, roster_policy_path(dir, id, path, sizeof(path)) ? path : NULL);
}

bool roster_read(struct master *m, const char *dir)
{
	struct dirent **names = NULL;
	int n = list_names(dir, &names);
	bool ok = n >= 0;
	m->has_roster = true;
	if (n >= 0)
		drop_missing(m, dir);
	else
		master_refuse(m, SLICE_NONE);
	for (int i = 0; i < n; i++)
		if (!update(m, dir, names[i]->d_name)) {
			master_refuse(m, slice_str(names[i]->d_name));
			ok = false;
		}
	free_names(names, n);
	return ok;
}

/* ---- --check ---- */

static bool check_one(const char *dir, const char *id, bool (*check)(void *arg, const char *policy), void *arg)
{
	char path[PATH_ROOM];
	struct entry e;
	entry_read(&e, dir, id);
	if (e.fault)
		say("sandbox %s: token: %s", id, e.fault);
	bool is_good = !roster_policy_path(dir, id, path, sizeof(path)) || check(arg, path);
	return is_good && !e.fault;
}

bool roster_check(const char *dir, bool (*check)(void *arg, const char *policy), void *arg)
{
	struct dirent **names = NULL;
	int n = list_names(dir, &names);
	bool ok = n >= 0;
	for (int i = 0; i < n; i++)
		ok = check_one(dir, names[i]->d_name, check, arg) && ok;
	if (n > LIMIT_SANDBOXES)
		say("--sandboxes %s: %d sandboxes, of %d that there can be", dir, n, LIMIT_SANDBOXES);
	free_names(names, n);
	return ok && n <= LIMIT_SANDBOXES;
}
