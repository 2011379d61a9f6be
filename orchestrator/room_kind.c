/* cage-gate --choose, and its one line: the mode, and a word about files. */
#include "orchestrator/room_kind.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/say.h"
#include "orchestrator/launch.h"
#include "orchestrator/words.h"

#define EXIT_FAILED 1

static void use_as_output(const void *arg)
{
	const int *fd = arg;
	if (dup2(*fd, 1) < 0)
		_exit(EXIT_FAILED);
}

static pid_t start(const char *mode, const char *overlay, const int *output)
{
	struct words argv = {0};
	char *const no_env[] = {NULL};
	words_add(&argv, "cage-gate");
	words_add(&argv, "--choose");
	words_add(&argv, "--mode");
	words_add(&argv, "%s", mode);
	if (overlay) {
		words_add(&argv, "--overlay");
		words_add(&argv, "%s", overlay);
	}
	struct launch l = {
		.name = "cage-gate", .argv = argv.list, .envp = no_env, .in_child = use_as_output, .arg = output};
	pid_t pid = argv.failed ? -1 : launch(&l);
	words_free(&argv);
	return pid;
}

static bool read_line(int fd, char *out, size_t room)
{
	size_t len = 0;
	ssize_t n = 0;
	while (len < room - 1 && ((n = read(fd, out + len, room - 1 - len)) > 0 || (n < 0 && errno == EINTR)))
		len += n > 0 ? (size_t)n : 0;
	out[len] = '\0';
	return n == 0;
}

static bool understand(const char *line, struct room_kind *out)
{
	static const char *const words[] = {"overlay", "mounts", "shared"};
	char word[16];
	if (sscanf(line, "%15s %15s", out->mode, word) != 2)
		return false;
	for (int files = FILES_OVERLAY; files <= FILES_SHARED; files++)
		if (strcmp(word, words[files]) == 0) {
			out->files = (enum room_files)files;
			return true;
		}
	return false;
}

/* It has said itself what is wrong, unless it was killed. */
static int why_it_failed(int status)
{
	char how[64];
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	status_describe(status, how, sizeof(how));
	say("cage-gate %s", how);
	return EXIT_FAILED;
}

int room_kind_ask(const char *mode, const char *overlay, struct room_kind *out)
{
	int ends[2], status = 0;
	char line[64];
	if (pipe2(ends, O_CLOEXEC) != 0) {
		say("pipe: %s", strerror(errno));
		return EXIT_FAILED;
	}
	pid_t pid = start(mode, overlay, &ends[1]);
	close(ends[1]);
	bool ok = pid > 0 && read_line(ends[0], line, sizeof(line));
	close(ends[0]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (pid < 0)
		return EXIT_FAILED;
	if (status != 0)
		return why_it_failed(status);
	if (ok && understand(line, out))
		return 0;
	say("cage-gate can't be understood");
	return EXIT_FAILED;
}
