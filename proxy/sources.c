/* Reading of variables and files. A file's value goes through one buffer here, which is cleansed right after; what is
 * remembered of it is only whether it was good, and how the file looked then. */
#include "proxy/sources.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/say.h"

#define ROOM (LIMIT_SECRET_VALUE + sizeof("\r\n")) /* the longest with its line break, and a byte that is too many */

/* How a file looked; all zero when there was none. */
struct stamp {
	dev_t device;
	ino_t inode;
	off_t size;
	struct timespec changed, modified;
};

enum source_state {
	SOURCE_NEW,
	SOURCE_GOOD,
	SOURCE_GONE,   /* there is no value now */
	SOURCE_WAITING /* there is another value, for which there is no room yet */
};

struct source {
	enum source_state state;
	struct stamp stamp;
};

struct sources {
	struct vault *vault;
	struct source files[VAULT_SLOTS]; /* by their place in the vault */
	uint64_t variables[VAULT_WORDS];  /* places of variables: they can't be read again */
	size_t len;                       /* bytes in buf */
	char buf[ROOM];
};

struct sources *sources_new(struct vault *v)
{
	struct sources *s = calloc(1, sizeof(*s));
	if (s)
		s->vault = v;
	return s;
}

void sources_done(struct sources *s)
{
	OPENSSL_cleanse(s->buf, s->len);
	s->len = 0;
}

void sources_free(struct sources **sp)
{
	if (!*sp)
		return;
	sources_done(*sp);
	free(*sp);
	*sp = NULL;
}

static void set_place(uint64_t places[VAULT_WORDS], unsigned slot)
{
	places[VAULT_PLACE(slot) / 64] |= (uint64_t)1 << VAULT_PLACE(slot) % 64;
}

/* ---- variables ---- */

extern char **environ;

/* Where /proc shows it too, and if it is there several times, each of them. name: with a NUL. */
static void wipe_variable(struct slice name)
{
	for (char **entry = environ; *entry; entry++)
		if (strncmp(*entry, name.ptr, name.len) == 0 && (*entry)[name.len] == '=')
			OPENSSL_cleanse(*entry + name.len + 1, strlen(*entry + name.len + 1));
	unsetenv(name.ptr);
}

static const char *put_fault(enum cage_status st)
{
	return st == CAGE_ESYS ? "can't be kept in locked memory: raise RLIMIT_MEMLOCK (ulimit -l)" : "is too long";
}

static struct slice read_variable(struct sources *s, const struct policy_secret *secret, const char **why)
{
	struct slice value;
	unsigned slot;
	*why = "finds no room in the vault";
	if (!vault_slot(s->vault, SECRET_ENV, secret->source, &slot))
		return SLICE_NONE;
	if (vault_get(s->vault, slot, &value))
		return value;
	const char *text = getenv(secret->source.ptr);
	*why = !text ? "is not set" : "is empty";
	if (!text || !*text)
		return SLICE_NONE;
	enum cage_status st = vault_put(s->vault, slot, slice_str(text), secret->keep_us, clock_mono_us());
	*why = put_fault(st);
	if (st != CAGE_OK)
		return SLICE_NONE;
	set_place(s->variables, slot); /* it can't be read again */
	wipe_variable(secret->source);
	return vault_get(s->vault, slot, &value) ? value : SLICE_NONE;
}

/* ---- files ---- */

static struct stamp stamp_of(const struct stat *st)
{
	return (struct stamp){st->st_dev, st->st_ino, st->st_size, st->st_ctim, st->st_mtim};
}

static bool same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static bool same_stamp(const struct stamp *a, const struct stamp *b)
{
	return a->device == b->device && a->inode == b->inode && a->size == b->size &&
	       same_time(a->changed, b->changed) && same_time(a->modified, b->modified);
}

/* Up to the first byte that is too many. */
static bool read_all(struct sources *s, int fd)
{
	while (s->len < sizeof(s->buf)) {
		ssize_t n = read(fd, s->buf + s->len, sizeof(s->buf) - s->len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n == 0;
		s->len += (size_t)n;
	}
	return true;
}

/* One line break at the end is an editor's, not the value's. */
static struct slice without_break(struct slice value)
{
	if (slice_ends(value, SLICE("\r\n")))
		return slice_head(value, value.len - 2);
	return slice_ends(value, SLICE("\n")) ? slice_head(value, value.len - 1) : value;
}

static struct slice read_open_file(struct sources *s, int fd, struct stamp *stamp, const char **why)
{
	struct stat st;
	*why = "can't be read";
	if (fstat(fd, &st) != 0)
		return SLICE_NONE;
	*stamp = stamp_of(&st);
	*why = "is not a regular file";
	if (!S_ISREG(st.st_mode))
		return SLICE_NONE;
	*why = "can't be read";
	if (!read_all(s, fd))
		return SLICE_NONE;
	return without_break(slice_of(s->buf, s->len));
}

static struct slice read_file(struct sources *s, const char *path, struct stamp *stamp, const char **why)
{
	sources_done(s);
	*stamp = (struct stamp){0};
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0) {
		*why = errno == ENOENT ? "is not there" : "can't be opened";
		return SLICE_NONE;
	}
	struct slice value = read_open_file(s, fd, stamp, why);
	close(fd);
	return value;
}

struct slice sources_value(void *arg, const struct policy_secret *secret, const char **why)
{
	struct sources *s = arg;
	struct stamp stamp;
	if (secret->from == SECRET_ENV)
		return read_variable(s, secret, why);
	return read_file(s, secret->source.ptr, &stamp, why);
}

/* ---- into the vault ---- */

bool sources_assign(struct sources *s, struct policy *p)
{
	for (size_t i = 0; i < p->n_secrets; i++)
		if (!vault_slot(s->vault, p->secrets[i].from, p->secrets[i].source, &p->secrets[i].slot))
			return false;
	return true;
}

/* Secrets that share a source, of whatever policy: the one that keeps longest decides, and a value must be good for all. */
static uint64_t keep_of(const struct policy_list *all, unsigned slot)
{
	uint64_t most = 0;
	for (size_t n = 0; n < all->n; n++)
		for (size_t i = 0; i < all->list[n]->n_secrets; i++) {
			const struct policy_secret *secret = &all->list[n]->secrets[i];
			if (secret->slot == slot && secret->keep_us > most)
				most = secret->keep_us;
		}
	return most;
}

static const char *fault_for(const struct policy *p, unsigned slot, struct slice value)
{
	const char *fault = NULL;
	for (size_t i = 0; i < p->n_secrets && !fault; i++)
		if (p->secrets[i].slot == slot)
			fault = policy_value_fault(p, &p->secrets[i], value);
	return fault;
}

static const char *fault_of(const struct policy_list *all, unsigned slot, struct slice value)
{
	const char *fault = NULL;
	for (size_t n = 0; n < all->n && !fault; n++)
		fault = fault_for(all->list[n], slot, value);
	return fault;
}

static void say_file(const struct policy_secret *secret, const char *what, const char *why)
{
	say("secret %.*s: the file %.*s %s%s", SLICE_FMT(secret->id), SLICE_FMT(secret->source), what, why);
}

static void lose_file(struct sources *s, const struct policy_list *all, const struct policy_secret *secret,
		      const char *why)
{
	struct source *file = &s->files[VAULT_PLACE(secret->slot)];
	vault_lose(s->vault, secret->slot, keep_of(all, secret->slot), clock_mono_us());
	if (file->state != SOURCE_GONE)
		say_file(secret, why, "; requests that need it are refused");
	file->state = SOURCE_GONE;
}

static enum cage_status put_file(struct sources *s, const struct policy_list *all, const struct policy_secret *secret,
				 struct slice value)
{
	struct source *file = &s->files[VAULT_PLACE(secret->slot)];
	uint64_t before = vault_version(s->vault);
	enum cage_status st = vault_put(s->vault, secret->slot, value, keep_of(all, secret->slot), clock_mono_us());
	if (st != CAGE_OK) {
		if (file->state != SOURCE_WAITING)
			say_file(secret, "has a value that can't be kept: ",
				 st == CAGE_ESYS ? "raise RLIMIT_MEMLOCK (ulimit -l)"
						 : "it waits until an old one is gone");
		file->state = SOURCE_WAITING;
		return st;
	}
	if (file->state == SOURCE_GONE)
		say_file(secret, "is back", "");
	else if (file->state != SOURCE_NEW && vault_version(s->vault) != before)
		say_file(secret, "has a new value", "");
	file->state = SOURCE_GOOD;
	return CAGE_OK;
}

static enum cage_status take_file(struct sources *s, const struct policy_list *all, const struct policy_secret *secret)
{
	struct source *file = &s->files[VAULT_PLACE(secret->slot)];
	const char *why = NULL;
	enum cage_status st = CAGE_OK;
	struct slice value = read_file(s, secret->source.ptr, &file->stamp, &why);
	if (value.ptr)
		why = fault_of(all, secret->slot, value);
	if (value.ptr && !why)
		st = put_file(s, all, secret, value);
	else
		lose_file(s, all, secret, why);
	sources_done(s);
	return st;
}

/* ---- vaults ---- */

bool sources_has(const struct sources *s, const struct policy_secret *secret)
{
	struct slice value;
	return vault_get(s->vault, secret->slot, &value);
}

const char *sources_put(struct sources *s, const struct policy *p, const struct policy_secret *secret,
			struct slice value, bool *is_new)
{
	const uint64_t before = vault_version(s->vault);
	const struct policy_list own = {&p, 1};
	const char *fault = fault_of(&own, secret->slot, value);
	if (fault)
		return fault;
	enum cage_status st = vault_put(s->vault, secret->slot, value, keep_of(&own, secret->slot), clock_mono_us());
	*is_new = vault_version(s->vault) != before;
	if (st == CAGE_ESYS)
		return "can't be kept: raise RLIMIT_MEMLOCK (ulimit -l)";
	return st == CAGE_OK ? NULL : "can't be kept until an old value is gone";
}

/* What was good for another policy may be none for this one. */
static void check_kept(struct sources *s, const struct policy_list *all, const struct policy_secret *secret)
{
	struct slice value;
	if (vault_get(s->vault, secret->slot, &value) && fault_of(all, secret->slot, value))
		vault_lose(s->vault, secret->slot, keep_of(all, secret->slot), clock_mono_us());
}

/* ---- all of them ---- */

bool sources_use(struct sources *s, const struct policy *p, const struct policy_list *all)
{
	for (size_t i = 0; i < p->n_secrets; i++) {
		if (p->secrets[i].from == SECRET_FILE && take_file(s, all, &p->secrets[i]) == CAGE_ESYS)
			return false;
		if (p->secrets[i].from == SECRET_KEYVAULT)
			check_kept(s, all, &p->secrets[i]);
	}
	return true;
}

static bool has_changed(const struct source *file, const char *path)
{
	struct stat st;
	struct stamp now = {0};
	if (stat(path, &st) == 0)
		now = stamp_of(&st);
	return file->state != SOURCE_GOOD || !same_stamp(&now, &file->stamp);
}

/* What can't be kept now may be later: it is tried again, and what it said is said no more. */
static void look_at(struct sources *s, const struct policy *p, const struct policy_list *all,
		    uint64_t named[VAULT_WORDS])
{
	for (size_t i = 0; i < p->n_secrets; i++) {
		const struct policy_secret *secret = &p->secrets[i];
		set_place(named, secret->slot);
		if (secret->from == SECRET_FILE &&
		    has_changed(&s->files[VAULT_PLACE(secret->slot)], secret->source.ptr))
			take_file(s, all, secret);
	}
}

void sources_look(struct sources *s, const struct policy_list *all)
{
	uint64_t named[VAULT_WORDS];
	memcpy(named, s->variables, sizeof(named));
	for (size_t n = 0; n < all->n; n++)
		look_at(s, all->list[n], all, named);
	vault_expire(s->vault, named, clock_mono_us());
	for (size_t i = 0; i < VAULT_SLOTS; i++)
		if (!(named[i / 64] >> i % 64 & 1))
			s->files[i] = (struct source){.state = SOURCE_NEW};
}
