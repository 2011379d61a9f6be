/* One run of `cage-aci pools`, and another one while it comes to nothing. */
#include "orchestrator/service/pools.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/say.h"
#include "core/net/loop.h"
#include "orchestrator/service/backend_aci.h"
#include "orchestrator/service/backends.h"
#include "orchestrator/service/create.h"

struct pools {
	struct event *clock;
};

/* ---- what is wanted ---- */

bool pools_has(const struct config *c, const char *profile)
{
	const char *name = json_string_value(json_object_get(json_object_get(c->profiles, profile), "backend"));
	return (name ? backend_find(name) : c->backends[0]) == &backend_aci;
}

bool pools_are_wanted(const struct config *c)
{
	const char *name;
	json_t *groups;
	json_object_foreach(c->warm, name, groups)
	{
		if (pools_has(c, name))
			return true;
	}
	return false;
}

/* The limits of a create that names the profile and says nothing else, as its run will have them. */
static void add_wish(const struct config *c, const char *profile, json_int_t groups, struct words *line)
{
	json_t *body = json_pack("{s:s}", "profile", profile), *errors = json_array();
	json_t *full = body && errors ? create_with_profile(c, body, errors) : NULL;
	json_t *spec = full ? create_spec(c, full, errors) : NULL;
	const json_t *limits = json_object_get(spec, "limits");
	if (limits)
		words_add(line, "%" PRId64 ":mem=%" PRId64 ",cpu=%.3f", (int64_t)groups,
			  (int64_t)json_integer_value(json_object_get(limits, "memory")),
			  json_number_value(json_object_get(limits, "cpu")));
	line->failed = line->failed || !limits;
	json_decref(spec);
	json_decref(full);
	json_decref(errors);
	json_decref(body);
}

#define USAGE_WRONG 2 /* exit code of cage-aci */

/* ---- making it so ---- */

/* What else it says is for people. */
static bool is_pool(struct slice line)
{
	static const char digits[] = "0123456789abcdef";
	bool ok = slice_starts(line, SLICE("cage-")) && line.len > strlen("cage-") && line.len < 64;
	for (size_t i = strlen("cage-"); i < line.len && ok; i++)
		ok = memchr(digits, line.ptr[i], strlen(digits));
	return ok;
}

/* Names of pools, and between them what went wrong. Who wants no pools may not be allowed to look, and has nothing of that. */
static void take_said(const struct config *c, struct slice said)
{
	while (said.len > 0) {
		char name[64];
		struct slice line = slice_cut(&said, '\n');
		snprintf(name, sizeof(name), "%.*s", is_pool(line) ? (int)line.len : 0, line.ptr);
		if (name[0] && !words_has(&aci_maker.options, name))
			maker_set(&aci_maker, "--standby", name);
		else if (!name[0] && pools_are_wanted(c))
			say("%.*s", SLICE_FMT(line));
	}
}

static void again(struct service *s)
{
	const struct timeval later = loop_ms(LIMIT_SERVE_POOLS_MS);
	evtimer_add(s->pools->clock, &later);
}

static void on_done(void *arg, int status, struct slice said)
{
	struct service *s = arg;
	take_said(&s->config, said);
	if (status == 0 || !pools_are_wanted(&s->config))
		return;
	if (WIFEXITED(status) && WEXITSTATUS(status) == USAGE_WRONG) {
		say("there are no standby pools in Azure: what is configured is wrong, and they are not tried again");
		return;
	}
	say("the standby pools in Azure are not as they should be; they are looked at again in %d s",
	    LIMIT_SERVE_POOLS_MS / 1000);
	again(s);
}

static bool run(struct service *s)
{
	const char *name;
	json_t *groups;
	struct words line = maker_line(&aci_maker, s->config.state);
	words_add(&line, "pools");
	json_object_foreach(s->config.warm, name, groups)
	{
		if (pools_has(&s->config, name))
			add_wish(&s->config, name, json_integer_value(groups), &line);
	}
	const struct child_spec spec = {.program = aci_maker.program,
					.argv = line.list,
					.envp = environ,
					.hears_errors = true,
					.most_ms = LIMIT_SERVE_POOLS_RUN_MS,
					.done = on_done,
					.arg = s};
	const bool ok = !line.failed && child_run(s->children, &spec);
	words_free(&line);
	return ok;
}

static void on_clock(evutil_socket_t fd, short what, void *arg)
{
	struct service *s = arg;
	(void)fd, (void)what;
	if (!s->stopping && !run(s))
		again(s);
}

/* ---- the beginning and the end ---- */

bool pools_start(struct service *s)
{
	const struct timeval at_once = loop_ms(0);
	if (!aci_maker.is_used)
		return true;
	s->pools = calloc(1, sizeof(*s->pools));
	if (!s->pools)
		return false;
	s->pools->clock = evtimer_new(s->base, on_clock, s);
	return s->pools->clock && evtimer_add(s->pools->clock, &at_once) == 0;
}

void pools_free(struct service *s)
{
	if (!s->pools)
		return;
	if (s->pools->clock)
		event_free(s->pools->clock);
	free(s->pools);
	s->pools = NULL;
}
