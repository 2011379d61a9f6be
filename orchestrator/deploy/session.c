/* Calls, one after the other, that a signal can cut short; and the paths that they go to. */
#include <signal.h>
#include <string.h>
#include <strings.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/say.h"
#include "orchestrator/azure/pages.h"
#include "orchestrator/deploy/deploy.h"

/* ---- beginning and end ---- */

static int open_signals(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	return sigprocmask(SIG_BLOCK, &set, NULL) == 0 ? signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK) : -1;
}

bool session_open(struct deploy *d, const struct deploy_options *o)
{
	d->options = o;
	d->signals = open_signals();
	progress_open(&d->progress, o->json ? stderr : stdout);
	return d->signals >= 0 && arm_open(&d->arm, &o->azure);
}

void session_close(struct deploy *d)
{
	arm_close(&d->arm);
	close(d->signals);
	secure_free(&d->secure);
	progress_close(&d->progress);
	json_decref(d->template);
	json_decref(d->values);
}

int session_stopped(const struct deploy *d, const char *what)
{
	const struct azure_options *a = &d->options->azure;
	if (what)
		say("stopped: %s", what);
	if (d->options->verb != DEPLOY_UP)
		return EXIT_STOPPED;
	say("to look: cage azure up once more, with the same options, or");
	say("  az deployment group show --subscription %s --resource-group %s --name %s", a->subscription, a->group,
	    d->options->name);
	say("to cancel: az deployment group cancel --subscription %s --resource-group %s --name %s", a->subscription,
	    a->group, d->options->name);
	return EXIT_STOPPED;
}

/* ---- waiting ---- */

bool session_wait(struct deploy *d, int ms)
{
	struct signalfd_siginfo info;
	struct pollfd p = {.fd = d->signals, .events = POLLIN};
	if (d->is_stopped)
		return false;
	web_wait(&d->arm.web, &p, 1, ms);
	d->is_stopped = read(d->signals, &info, sizeof(info)) > 0;
	progress_draw(&d->progress);
	return !d->is_stopped;
}

bool session_rest(struct deploy *d, int ms)
{
	const uint64_t until = clock_mono_us() + (uint64_t)ms * 1000;
	while (!d->is_stopped && clock_mono_us() < until)
		session_wait(d, attempt_ms_until(until, LIMIT_ARM_LOOK_MS));
	return !d->is_stopped;
}

/* What can't be looked through is not shown. */
static bool clean(const struct deploy *d, struct arm_call *c)
{
	arm_clean(&d->arm, c);
	if (secure_scrub(&d->secure, c->answer))
		return true;
	json_decref(c->answer);
	c->answer = NULL;
	snprintf(c->message, sizeof(c->message), "no memory");
	return false;
}

bool session_ask(struct deploy *d, struct arm_call *c, const char *method, const char *where, json_t *body,
		 enum arm_repeat repeat)
{
	d->has_asked |= strcmp(method, "GET") != 0;
	arm_begin(&d->arm, c, method, where, body, repeat);
	while (c->state != ARM_DONE && session_wait(d, arm_pause(c, LIMIT_ARM_LOOK_MS)))
		arm_look(&d->arm, c);
	return clean(d, c) && arm_is_good(c);
}

bool session_get(struct deploy *d, struct arm_call *c, const char *where)
{
	return session_ask(d, c, "GET", where, NULL, ARM_REPEATS);
}

static void keep_item(void *arg, const json_t *item)
{
	json_array_append(arg, (json_t *)item);
}

/* False: it was said why, or it was stopped. */
static bool list_page(struct deploy *d, struct pages *p, json_t *all)
{
	static const char about[] = "what is there can't be listed";
	static struct arm_call call;
	const bool got = session_get(d, &call, p->next),
		   is_gone = !got && strcmp(call.code, "ResourceGroupNotFound") == 0;
	const char *why = got ? pages_take(p, call.answer, keep_item, all) : NULL;
	const bool ok = got || is_gone;
	if (is_gone) /* by somebody else, since it was looked at: there is nothing in it any more */
		p->next[0] = '\0';
	if (why)
		say("%s: %s", about, why);
	else if (!ok && !d->is_stopped)
		errors_say_call(about, &call);
	arm_free(&d->arm, &call);
	return ok && !why;
}

json_t *session_list(struct deploy *d, const char *where)
{
	static struct pages pages;
	json_t *all = json_array();
	bool ok = all != NULL;
	for (pages_begin(&pages, where); ok && pages.next[0];)
		ok = list_page(d, &pages, all);
	if (ok && json_array_size(all) == pages.items)
		return all;
	if (ok)
		say("what is there can't be listed: no memory");
	json_decref(all);
	return NULL;
}

bool session_operate(struct deploy *d, struct operation *o, const char *method, const char *where, json_t *body)
{
	d->has_asked = true;
	operation_begin(&d->arm, o, method, where, body, ARM_REPEATS);
	while (o->state != OPERATION_DONE && session_wait(d, operation_pause(o, LIMIT_ARM_LOOK_MS)))
		operation_look(&d->arm, o);
	return clean(d, &o->call) && o->state == OPERATION_DONE && o->end == OPERATION_GOOD;
}

/* ---- where ---- */

void path_subscription(const struct deploy *d, const char *more, const char *version, char out[LIMIT_ARM_URL])
{
	snprintf(out, LIMIT_ARM_URL, "/subscriptions/%s%s?api-version=%s", d->options->azure.subscription, more,
		 version);
}

void path_group(const struct deploy *d, const char *more, char out[LIMIT_ARM_URL])
{
	char path[LIMIT_ARM_URL / 2];
	snprintf(path, sizeof(path), "/resourceGroups/%s%s", d->options->azure.group, more);
	path_subscription(d, path, DEPLOY_VERSION, out);
}

void path_deployment(const struct deploy *d, const char *name, const char *more, char out[LIMIT_ARM_URL])
{
	char path[LIMIT_ARM_URL / 4];
	const int n = snprintf(path, sizeof(path), "/providers/Microsoft.Resources/deployments%s%s%s",
			       name[0] ? "/" : "", name, more);
	if (n < (int)sizeof(path) && !strchr(name, '/') && path_is_plain(path))
		path_group(d, path, out);
	else /* a name comes from an answer: what is none leads nowhere, as arm_begin() refuses this */
		snprintf(out, LIMIT_ARM_URL, "no deployment");
}

bool path_is_plain(const char *path)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.()/";
	return path[0] == '/' && path[1] != '/' && strspn(path, letters) == strlen(path) && !strstr(path, "/.") &&
	       strlen(path) < LIMIT_ARM_URL / 2;
}

bool id_is_within(const struct deploy *d, const char *id)
{
	char start[LIMIT_ARM_URL / 2];
	const int n = snprintf(start, sizeof(start), "/subscriptions/%s/resourceGroups/%s/providers/",
			       d->options->azure.subscription, d->options->azure.group);
	return strncasecmp(id, start, (size_t)n) == 0 && path_is_plain(id);
}
