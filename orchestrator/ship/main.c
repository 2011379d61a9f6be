/* cage-ship: the copy of a decision log that goes to Azure. ship.h says how it goes. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/option_table.h"
#include "core/base/say.h"
#include "core/proc/key_file.h"
#include "core/proc/process.h"
#include "orchestrator/ship/ship.h"

#define EXIT_FAILED 1

static bool open_signals(struct ship *s)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGUSR1);
	s->signals = sigprocmask(SIG_BLOCK, &set, NULL) == 0 ? signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK) : -1;
	return s->signals >= 0;
}

/* ---- the state directory ---- */

static bool name_dir(const char *given, char *out, size_t room)
{
	char above[PATH_MAX];
	if (given)
		return snprintf(out, room, "%s", given) < (int)room;
	return key_dir_path(NULL, above, sizeof(above)) && snprintf(out, room, "%s/ship", above) < (int)room;
}

/* Held to our end: two of us would ship everything twice. */
static bool take_lock(const char *dir)
{
	char path[SHIP_PATH + 8];
	snprintf(path, sizeof(path), "%s/lock", dir);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
		return true;
	say(errno == EWOULDBLOCK ? "%s: another cage-ship has it" : "%s: can't be locked", path);
	return false;
}

static bool open_state(struct ship *s)
{
	char path[SHIP_PATH + 8];
	if (!name_dir(s->options->state, s->dir, sizeof(s->dir))) {
		say("--state: there is no home to keep it in; name a directory");
		return false;
	}
	snprintf(path, sizeof(path), "%s/places", s->dir);
	if (!key_dir_make(s->dir) || (mkdir(path, 0700) != 0 && errno != EEXIST)) {
		say("%s: can't be made: %s", path, strerror(errno));
		return false;
	}
	if (!take_lock(s->dir))
		return false;
	s->places = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (s->places < 0)
		say("%s: %s", path, strerror(errno));
	return s->places >= 0;
}

/* ---- all of it ---- */

static bool prepare(struct ship *s)
{
	const struct ship_options *o = s->options;
	snprintf(s->where, sizeof(s->where), "/dataCollectionRules/%s/streams/%s?api-version=" SHIP_VERSION, o->rule,
		 o->stream);
	s->piece = malloc(LIMIT_SHIP_PIECE);
	if (!s->piece || !batch_open(&s->batch) || !audit_hasher_init(&s->hasher)) {
		say("no memory");
		return false;
	}
	if (o->azure.ca_file && access(o->azure.ca_file, R_OK) != 0) {
		say("--ca-file: %s: %s", o->azure.ca_file, strerror(errno));
		return false;
	}
	if (!open_signals(s) || !open_state(s) || !arm_open(&s->arm, &o->azure))
		return false;
	s->arm.is_quiet = true; /* send.c tells */
	return true;
}

static void end(struct ship *s)
{
	arm_free(&s->arm, &s->call);
	if (s->arm.web.multi)
		arm_close(&s->arm);
	while (s->n > 0)
		source_free(s, &s->list[--s->n]);
	batch_free(&s->batch);
	audit_hasher_free(&s->hasher);
	free(s->piece);
}

static int run(const struct ship_options *o)
{
	static struct ship s;
	s = (struct ship){.options = o, .state = SHIP_FILLS, .signals = -1, .places = -1, .code = EXIT_FAILED};
	if (prepare(&s)) {
		say("ready");
		ship_loop(&s);
	}
	end(&s);
	return s.code;
}

int main(int argc, char **argv)
{
	static struct ship_options options;
	say_as("cage-ship");
	process_harden();
	umask(027);
	const int code = ship_options_parse(argc, argv, &options);
	return code == OPTIONS_GO_ON ? run(&options) : code;
}
