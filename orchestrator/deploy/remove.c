/* Removing resources, several at the same time. */
#include <string.h>

#include "core/base/say.h"
#include "orchestrator/client/api.h"
#include "orchestrator/deploy/deploy.h"

struct removal {
	json_t *item; /* of the list; NULL: none runs here */
	struct operation operation;
};

void remove_add(json_t *list, const char *id, const char *version)
{
	json_array_append_new(list, json_pack("{s:s,s:s}", "id", id, "version", version));
}

static const char *name_of(const json_t *item)
{
	const char *at = strstr(json_text(item, "id"), "/providers/");
	return at ? at + strlen("/providers/") : json_text(item, "id");
}

static void begin(struct deploy *d, struct removal *r, json_t *item)
{
	char path[LIMIT_ARM_URL];
	if (!id_is_within(d, json_text(item, "id")))
		return; /* never what is somewhere else */
	r->item = item;
	snprintf(path, sizeof(path), "%s?api-version=%s", json_text(item, "id"), json_text(item, "version"));
	progress_set(&d->progress, name_of(item), "Deleting");
	operation_begin(&d->arm, &r->operation, "DELETE", path, NULL, ARM_REPEATS);
}

static void end(struct deploy *d, struct removal *r, bool say_why)
{
	const bool is_gone = r->operation.state == OPERATION_DONE && r->operation.end == OPERATION_GOOD;
	if (is_gone)
		json_object_set_new(r->item, "gone", json_true());
	if (!d->is_stopped)
		progress_set(&d->progress, name_of(r->item), is_gone ? "Deleted" : "Failed");
	if (!is_gone && say_why && !d->is_stopped) {
		progress_below(&d->progress);
		errors_say_operation(name_of(r->item), &r->operation);
	}
	operation_free(&d->arm, &r->operation);
	r->item = NULL;
}

/* How many run. */
static size_t look(struct deploy *d, struct removal *all, bool say_why)
{
	size_t n = 0;
	for (size_t i = 0; i < LIMIT_DEPLOY_REMOVALS; i++) {
		if (!all[i].item)
			continue;
		operation_look(&d->arm, &all[i].operation);
		if (d->is_stopped || all[i].operation.state == OPERATION_DONE)
			end(d, &all[i], say_why);
		else
			n++;
	}
	return n;
}

static int pause_of(const struct removal *all)
{
	int ms = LIMIT_ARM_LOOK_MS;
	for (size_t i = 0; i < LIMIT_DEPLOY_REMOVALS; i++)
		if (all[i].item)
			ms = operation_pause(&all[i].operation, ms);
	return ms;
}

void remove_drop_gone(json_t *list)
{
	for (size_t i = json_array_size(list); i-- > 0;)
		if (json_object_get(json_array_get(list, i), "gone"))
			json_array_remove(list, i);
}

void remove_all(struct deploy *d, json_t *list, bool say_why)
{
	static struct removal all[LIMIT_DEPLOY_REMOVALS];
	size_t next = 0, n_runs = 0;
	do {
		for (size_t i = 0; i < LIMIT_DEPLOY_REMOVALS && !d->is_stopped; i++)
			if (!all[i].item && next < json_array_size(list))
				begin(d, &all[i], json_array_get(list, next++));
		session_wait(d, pause_of(all));
		n_runs = look(d, all, say_why);
	} while (!d->is_stopped && (n_runs > 0 || next < json_array_size(list)));
	look(d, all, say_why);
	progress_end(&d->progress);
	remove_drop_gone(list);
}
