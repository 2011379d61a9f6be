/* Landlock only knows what is allowed, so that everything else of the container can't be opened. It does not hide names,
 * and does not hold sockets. */
#include "orchestrator/gate/files.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "orchestrator/below.h"
#include "orchestrator/gate/landlock.h"
#include "orchestrator/gate/machine.h"
#include "orchestrator/gate/plain.h"
#include "orchestrator/gate/say.h"

enum { ABI_REFER = 2, ABI_TRUNCATE = 3 };
#define MAY_TRUNCATE ((uint64_t)1 << 14) /* not yet in the headers of all systems */

#define TO_READ (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define TO_CHANGE                                                                                        \
	(LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR | \
	 LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |      \
	 LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM)
#define OF_A_FILE \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | MAY_TRUNCATE)

/* Those of a room. Agents make terminals for what they run, whose names nobody knows before; so those of other sessions of their
 * uid are open to them too. */
static const char *const devices[] = {"/dev/null",    "/dev/zero", "/dev/full", "/dev/random",
				      "/dev/urandom", "/dev/tty",  "/dev/ptmx", "/dev/pts"};
static const char *const temporary[] = {"/tmp", "/var/tmp", "/dev/shm"};

/* Rights that this kernel knows. */
static uint64_t known_rights(int abi)
{
	uint64_t rights = TO_READ | TO_CHANGE | LANDLOCK_ACCESS_FS_WRITE_FILE;
	if (abi >= ABI_REFER)
		rights |= LANDLOCK_ACCESS_FS_REFER;
	if (abi >= ABI_TRUNCATE)
		rights |= MAY_TRUNCATE;
	return rights;
}

bool files_are_writable(const struct room *room, const char *path)
{
	for (size_t i = 0; i < sizeof(temporary) / sizeof(temporary[0]); i++)
		if (path_is_at_or_below(path, temporary[i]))
			return true;
	for (size_t i = 0; i < room->n_fittings; i++)
		if (room->fittings[i].kind == FITTING_BIND && path_is_at_or_below(path, room->fittings[i].path))
			return true;
	return path_is_at_or_below(path, room_home(room));
}

/* What is not there, or can't be reached by the agent anyway, needs no rule. fd: is closed. */
static int allow_open(int ruleset, const char *path, int fd, uint64_t rights)
{
	struct stat st;
	struct landlock_path_beneath_attr rule = {.parent_fd = fd};
	if (fd < 0)
		return errno == ENOENT || errno == EACCES || errno == ENOTDIR ? 0 : say_errno(path);
	int result = fstat(rule.parent_fd, &st);
	rule.allowed_access = result == 0 && S_ISDIR(st.st_mode) ? rights : rights & OF_A_FILE;
	if (result == 0)
		result = (int)syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
	if (result < 0)
		say_errno(path);
	close(rule.parent_fd);
	return result;
}

static int allow(int ruleset, const char *path, uint64_t rights)
{
	return allow_open(ruleset, path, open(path, O_PATH | O_CLOEXEC), rights);
}

static int allow_fittings(int ruleset, const struct room *room, uint64_t all)
{
	for (size_t i = 0; i < room->n_fittings; i++) {
		const struct fitting *f = &room->fittings[i];
		if (f->kind != FITTING_BIND && f->kind != FITTING_BIND_RO)
			continue;
		int fd = plain_open(f->path);
		if (fd < 0 && errno == ELOOP)
			return plain_say(f->path);
		if (allow_open(ruleset, f->path, fd, f->kind == FITTING_BIND ? all : TO_READ) < 0)
			return -1;
	}
	return 0;
}

static int allow_devices(int ruleset, uint64_t all)
{
	const uint64_t rights = all & OF_A_FILE;
	for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++)
		if (allow(ruleset, devices[i], rights) < 0)
			return -1;
	return allow(ruleset, "/dev", LANDLOCK_ACCESS_FS_READ_DIR);
}

static int allow_all(int ruleset, const struct room *room, uint64_t all)
{
	for (size_t i = 0; machine_trees[i]; i++)
		if (allow(ruleset, machine_trees[i], TO_READ) < 0)
			return -1;
	/* programs write to their own part of it */
	if (allow(ruleset, "/proc", all & ~(uint64_t)TO_CHANGE) < 0 || allow_devices(ruleset, all) < 0)
		return -1;
	for (size_t i = 0; i < sizeof(temporary) / sizeof(temporary[0]); i++)
		if (allow(ruleset, temporary[i], all) < 0)
			return -1;
	if (allow(ruleset, "/sys/devices/system", TO_READ) < 0 || allow(ruleset, room_home(room), all) < 0)
		return -1;
	return allow_fittings(ruleset, room, all);
}

int files_restrict(const struct room *room, bool *restricted)
{
	const int abi = landlock_abi();
	struct landlock_ruleset_attr attr = {.handled_access_fs = known_rights(abi)};
	*restricted = abi > 0;
	if (abi == 0)
		return 0;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return say_errno("no_new_privs");
	int ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
	if (ruleset < 0)
		return say_errno("Landlock");
	int result = allow_all(ruleset, room, attr.handled_access_fs);
	if (result == 0 && syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
		result = say_errno("Landlock");
	close(ruleset);
	return result;
}
