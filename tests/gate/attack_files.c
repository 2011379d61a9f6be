/* Files that change the user or group of who runs them: in a directory that is bound they would do so outside too. */
#include "tests/gate/attack.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CALL_FCHMODAT2 = 452 };
#define UPPER_BITS ((long)1 << 32)
#define SET_IDS (S_ISUID | S_ISGID)

static char path[64];

static const char *new_name(void)
{
	static int serial;
	snprintf(path, sizeof(path), "/tmp/cage-attack.%d.%d", (int)getpid(), serial++);
	return path;
}

/* It is looked at, whatever the call has said. */
static enum verdict judge(int fd)
{
	struct stat st = {0};
	bool is_set =
		(fd >= 0 ? fstat(fd, &st) : lstat(path, &st)) == 0 && S_ISREG(st.st_mode) && (st.st_mode & SET_IDS);
	unlink(path);
	return is_set ? OPEN : SHUT;
}

static int plain_file(void)
{
	return open(new_name(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
}

/* A mode that is changed, with each bit, and with bits above those that count. */
static enum verdict change(const struct target *t)
{
	static const long modes[] = {04755, 02755, 06755, UPPER_BITS | 04755, 0x10000 | 02755, S_IFREG | 04755};
	(void)t;
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		int fd = plain_file();
		if (fd < 0)
			return OPEN; /* nothing could be tried */
#ifdef SYS_chmod
		syscall(SYS_chmod, path, modes[i]);
#endif
		syscall(SYS_fchmod, fd, modes[i]);
		syscall(SYS_fchmodat, AT_FDCWD, path, modes[i]);
		syscall(CALL_FCHMODAT2, AT_FDCWD, path, modes[i], 0);
		syscall(CALL_FCHMODAT2, fd, "", modes[i], AT_EMPTY_PATH);
		if (judge(fd) == OPEN)
			return OPEN;
		close(fd);
	}
	return SHUT;
}

static enum verdict create(const struct target *t)
{
	(void)t;
	syscall(SYS_openat, AT_FDCWD, new_name(), O_WRONLY | O_CREAT, UPPER_BITS | 04755);
	if (judge(-1) == OPEN)
		return OPEN;
#ifdef SYS_open
	syscall(SYS_open, new_name(), UPPER_BITS | O_WRONLY | O_CREAT, 02755);
	if (judge(-1) == OPEN)
		return OPEN;
	syscall(SYS_creat, new_name(), 04755);
	if (judge(-1) == OPEN)
		return OPEN;
	syscall(SYS_mknod, new_name(), S_IFREG | 04755, 0);
	if (judge(-1) == OPEN)
		return OPEN;
#endif
	syscall(SYS_mknodat, AT_FDCWD, new_name(), S_IFREG | 02755, 0);
	return judge(-1);
}

/* One without a name could get one later. */
static enum verdict create_without_a_name(const struct target *t)
{
	(void)t;
	new_name();
	int fd = (int)syscall(SYS_openat, AT_FDCWD, "/tmp", O_TMPFILE | O_RDWR, 04755);
	return fd < 0 ? SHUT : judge(fd);
}

static enum verdict create_behind_a_pointer(const struct target *t)
{
	struct open_how how = {.flags = O_WRONLY | O_CREAT, .mode = 04755};
	(void)t;
	syscall(SYS_openat2, AT_FDCWD, new_name(), &how, sizeof(how));
	return judge(-1);
}

/* Where the kernel would keep the bits of a directory, files in it would get its group. */
static enum verdict make_directory(const struct target *t)
{
	struct stat st;
	(void)t;
	syscall(SYS_mkdirat, AT_FDCWD, new_name(), 06755);
	bool is_set = stat(path, &st) == 0 && (st.st_mode & SET_IDS);
	rmdir(path);
	return is_set ? OPEN : SHUT;
}

/* Else no program could set a mode, or make a file. */
static enum verdict no_plain_modes(const struct target *t)
{
	struct stat st;
	(void)t;
	int fd = plain_file();
	bool works = fd >= 0 && fchmod(fd, 01640) == 0 && chmod(path, 0750) == 0 && fstat(fd, &st) == 0 &&
		     (st.st_mode & 07777) == 0750;
	unlink(path);
	return works && syscall(SYS_openat, AT_FDCWD, "/tmp", O_RDONLY, 06777) >= 0 ? SHUT : OPEN;
}

const struct attack file_attacks[] = {
	{"set_id_change", change},
	{"set_id_create", create},
	{"set_id_without_a_name", create_without_a_name},
	{"set_id_behind_a_pointer", create_behind_a_pointer},
	{"set_id_directory", make_directory},
	{"no_plain_modes", no_plain_modes},
	{NULL, NULL},
};
