/* certutil is run once for each CA; the few files of the database are copied then. */
#include "orchestrator/nss.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "orchestrator/tree_whole.h"
#include "orchestrator/tree.h"

#define PATH_ROOM 4200
#define CERTUTIL "/usr/bin/certutil"

static const char *const files[] = {"cert9.db", "key4.db", "pkcs11.txt"};

#define N_FILES (sizeof(files) / sizeof(files[0]))

bool nss_is_possible(void)
{
	return access(CERTUTIL, X_OK) == 0;
}

static bool run_certutil(const char *const argv[])
{
	char *const envp[] = {NULL};
	posix_spawn_file_actions_t quiet;
	pid_t pid;
	int status = -1;
	if (posix_spawn_file_actions_init(&quiet) != 0)
		return false;
	for (int fd = 0; fd < 3; fd++)
		posix_spawn_file_actions_addopen(&quiet, fd, "/dev/null", O_RDWR, 0);
	bool started = posix_spawn(&pid, CERTUTIL, &quiet, NULL, (char *const *)(const void *)argv, envp) == 0;
	posix_spawn_file_actions_destroy(&quiet);
	while (started && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return started && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool fill_database(const char *dir, const char *ca)
{
	char db[PATH_ROOM + 16];
	snprintf(db, sizeof(db), "sql:%s", dir);
	const char *const make[] = {CERTUTIL, "-N", "-d", db, "--empty-password", NULL};
	const char *const add[] = {CERTUTIL, "-A", "-d", db, "-n", "cage", "-t", "C,,", "-i", ca, NULL};
	return run_certutil(make) && run_certutil(add);
}

/* It has its name when it is complete: one that was interrupted is not taken for one without the CA. */
static bool make_database(const char *dir, const char *ca)
{
	char new[PATH_ROOM + 8];
	snprintf(new, sizeof(new), "%s.XXXXXX", dir);
	if (!mkdtemp(new))
		return false;
	if (fill_database(new, ca) && rename(new, dir) == 0)
		return true;
	tree_remove(new);
	return false;
}

/* Whoever is in the room may read it. */
static bool copy_file(const char *from_dir, const char *to_dir, const char *name)
{
	char to[PATH_ROOM];
	return snprintf(to, sizeof(to), "%s/%s", to_dir, name) < (int)sizeof(to) &&
	       entry_copy(from_dir, to_dir, name) && chmod(to, 0644) == 0;
}

/* The name of a kept database has in it when the CA was made: one that came after it has another. */
void nss_make(const char *kit, const char *ca_dir)
{
	char ca[PATH_ROOM], kept[PATH_ROOM], shown[PATH_ROOM];
	struct stat st;
	if (!nss_is_possible() || snprintf(ca, sizeof(ca), "%s/ca.pem", ca_dir) >= (int)sizeof(ca) ||
	    stat(ca, &st) != 0 ||
	    snprintf(kept, sizeof(kept), "%s/nss-%llx", ca_dir, (unsigned long long)st.st_mtime) >= (int)sizeof(kept) ||
	    snprintf(shown, sizeof(shown), "%s/nssdb", kit) >= (int)sizeof(shown))
		return;
	if (access(kept, X_OK) != 0 && !make_database(kept, ca))
		return;
	if ((mkdir(shown, 0755) != 0 && errno != EEXIST) || chmod(shown, 0755) != 0)
		return;
	for (size_t i = 0; i < N_FILES; i++)
		if (!copy_file(kept, shown, files[i]))
			return;
}
