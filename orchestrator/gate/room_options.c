/* The options of a room. Each says itself what is wrong with it. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "orchestrator/below.h"
#include "orchestrator/gate/room.h"
#include "orchestrator/gate/say.h"

static int wrong(const char *name, const char *expected)
{
	say("--%s: expected %s", name, expected);
	return -1;
}

/* Absolute, and nothing in it that leads back. */
static bool is_plain_path(const char *path, size_t len)
{
	if (len == 0 || path[0] != '/')
		return false;
	for (size_t at = 0; at < len;) {
		const char *part = path + at + 1;
		const char *slash = memchr(part, '/', len - at - 1);
		const size_t n = slash ? (size_t)(slash - part) : len - at - 1;
		if ((n == 2 && part[0] == '.' && part[1] == '.') || (n == 1 && part[0] == '.'))
			return false;
		at += n + 1;
	}
	return true;
}

static int set_uid(struct room *room, const char *value)
{
	uint64_t n = 0;
	if (room_limits_number(value, strlen(value), &n) < 0 || n == 0 || n > 65533)
		return wrong("uid", "a number from 1 to 65533");
	room->uid = (uid_t)n;
	return 0;
}

/* NAME=VALUE of our own environment, which unlike our arguments nobody else can read; NULL for none. */
static const char *own_variable(const char *name)
{
	const size_t len = strlen(name);
	for (char **at = environ; *at; at++)
		if (len > 0 && strncmp(*at, name, len) == 0 && (*at)[len] == '=')
			return *at;
	return NULL;
}

static int add_env(struct room *room, const char *text)
{
	const char *value = strchr(text, '=') ? text : own_variable(text);
	if (!value || value[0] == '=' || room->n_env == ROOM_ENV) {
		say("--env: expected NAME=VALUE, or NAME of a variable that is set, at most %d times", ROOM_ENV);
		return -1;
	}
	if (strncmp(value, "HOME=", 5) == 0 && (!is_plain_path(value + 5, strlen(value + 5)) || !value[6]))
		return wrong("env", "an absolute path other than / as HOME");
	room->env[room->n_env++] = value;
	return 0;
}

static struct fitting *new_fitting(struct room *room, enum fitting_kind kind)
{
	if (room->n_fittings == LIMIT_ROOM_FITTINGS) {
		say("more than %d of --bind, --bind-ro, --replace, --copy, --overlay, --tmpfs and --hide",
		    LIMIT_ROOM_FITTINGS);
		return NULL;
	}
	struct fitting *f = &room->fittings[room->n_fittings++];
	*f = (struct fitting){.kind = kind, .size = LIMIT_ROOM_TMP};
	return f;
}

const char *room_fitting_name(enum fitting_kind kind)
{
	switch (kind) {
	case FITTING_BIND:
		return "--bind";
	case FITTING_BIND_RO:
		return "--bind-ro";
	case FITTING_REPLACE:
		return "--replace";
	case FITTING_COPY:
		return "--copy";
	case FITTING_OVERLAY:
		return "--overlay";
	case FITTING_TMPFS:
		return "--tmpfs";
	case FITTING_HIDE:
		return "--hide";
	}
	return "?";
}

/* Without these nothing could be locked in, or run. */
static int check_place(const struct fitting *f)
{
	const bool is_hidden = f->kind == FITTING_HIDE;
	const char *proc = path_is_at_or_below(f->path, "/proc") ? f->path + strlen("/proc") : NULL;
	const char *dev = path_is_at_or_below(f->path, "/dev") ? f->path + strlen("/dev") : NULL;
	const bool is_proc = proc && (!is_hidden || proc[strspn(proc, "/")] == '\0');
	const bool is_dev = dev && !is_hidden && dev[strspn(dev, "/")] == '\0';
	if (!is_proc && !is_dev)
		return 0;
	say("%s: %s is the room's own", room_fitting_name(f->kind), f->path);
	return -1;
}

static enum fitting_kind kind_of_bind(const char *name)
{
	if (strcmp(name, "bind") == 0)
		return FITTING_BIND;
	if (strcmp(name, "copy") == 0)
		return FITTING_COPY;
	return strcmp(name, "replace") == 0 ? FITTING_REPLACE : FITTING_BIND_RO;
}

static int add_bind(struct room *room, const char *name, const char *value)
{
	const size_t len = strcspn(value, ":");
	const char *path = value[len] ? value + len + 1 : value;
	if (!is_plain_path(value, len) || !is_plain_path(path, strlen(path)) || !path[1])
		return wrong(name, "SRC or SRC:DST, absolute paths without \"..\", DST not /");
	struct fitting *f = new_fitting(room, kind_of_bind(name));
	if (!f)
		return -1;
	f->source = strndup(value, len);
	f->path = strdup(path);
	return f->source && f->path ? check_place(f) : say_errno(name);
}

/* The room shows it under the name that it has outside. */
static int add_overlay(struct room *room, const char *value)
{
	const size_t len = strcspn(value, ":");
	const char *state = value[len] ? value + len + 1 : "";
	if (!is_plain_path(value, len) || len < 2 || !is_plain_path(state, strlen(state)))
		return wrong("overlay", "DIR:STATE, absolute paths without \"..\", DIR not /");
	struct fitting *f = new_fitting(room, FITTING_OVERLAY);
	if (!f)
		return -1;
	f->source = strndup(value, len);
	f->path = strndup(value, len);
	f->state = strdup(state);
	return f->source && f->path && f->state ? check_place(f) : say_errno("--overlay");
}

static int add_tmpfs(struct room *room, const char *value)
{
	const size_t len = strcspn(value, ":");
	uint64_t size = LIMIT_ROOM_TMP;
	if (!is_plain_path(value, len) || len < 2 ||
	    (value[len] && (room_limits_size(value + len + 1, strlen(value + len + 1), &size) < 0 || size == 0)))
		return wrong("tmpfs", "DST or DST:SIZE, an absolute path and a size such as 64M");
	struct fitting *f = new_fitting(room, FITTING_TMPFS);
	if (!f)
		return -1;
	f->size = (size_t)size;
	f->path = strndup(value, len);
	return f->path ? check_place(f) : say_errno("--tmpfs");
}

static int add_hidden(struct room *room, const char *value)
{
	if (!is_plain_path(value, strlen(value)) || !value[1])
		return wrong("hide", "an absolute path");
	struct fitting *f = new_fitting(room, FITTING_HIDE);
	if (!f)
		return -1;
	f->path = strdup(value);
	return f->path ? check_place(f) : say_errno("--hide");
}

static int set_path(const char **out, const char *name, const char *value)
{
	if (!is_plain_path(value, strlen(value)))
		return wrong(name, "an absolute path without \"..\"");
	*out = value;
	return 0;
}

/* It is written into files, so it may be nothing but a name. */
static int set_hostname(struct room *room, const char *value)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
	const size_t len = strlen(value);
	if (len == 0 || len > LIMIT_LABEL || strspn(value, allowed) != len || value[0] == '-')
		return wrong("hostname", "small letters, digits and -");
	room->hostname = value;
	return 0;
}

int room_option(struct room *room, const char *name, const char *value)
{
	if (strcmp(name, "uid") == 0)
		return set_uid(room, value);
	if (strcmp(name, "env") == 0)
		return add_env(room, value);
	if (strcmp(name, "bind") == 0 || strcmp(name, "bind-ro") == 0 || strcmp(name, "replace") == 0 ||
	    strcmp(name, "copy") == 0)
		return add_bind(room, name, value);
	if (strcmp(name, "overlay") == 0)
		return add_overlay(room, value);
	if (strcmp(name, "tmpfs") == 0)
		return add_tmpfs(room, value);
	if (strcmp(name, "hide") == 0)
		return add_hidden(room, value);
	if (strcmp(name, "limit") == 0)
		return room_limits_parse(&room->limits, value);
	if (strcmp(name, "root") == 0)
		return set_path(&room->root, name, value);
	if (strcmp(name, "workdir") == 0)
		return set_path(&room->workdir, name, value);
	return set_hostname(room, value);
}
