/* Identities at a gateway whose sandbox is none of this run: what was left, and all of them. */
#include <stdio.h>

#include "core/base/say.h"
#include "core/proc/sandbox_id.h"
#include "orchestrator/aci/aci.h"

bool split_remove(const struct aci_options *o, struct web *web, const char *id)
{
	const struct intake in = split_intake(o, web);
	struct intake_call c;
	char path[LIMIT_ARM_URL];
	split_path(o, id, path);
	intake_begin(&in, &c, "DELETE", path, NULL, LIMIT_GATEWAY_LEAVE_TRIES);
	intake_await(&in, &c);
	const bool ok = split_is_left(&c);
	if (!ok)
		say("sandbox %s can't be removed from the gateway: %s", id, c.why);
	intake_free(&in, &c);
	return ok;
}

/* NULL with a message. */
static json_t *ask_for_list(const struct aci_options *o, struct web *web)
{
	const struct intake in = split_intake(o, web);
	struct intake_call c;
	char path[LIMIT_ARM_URL];
	snprintf(path, sizeof(path), SPLIT_SANDBOXES "?owner=%s", o->state);
	intake_begin(&in, &c, "GET", path, NULL, LIMIT_GATEWAY_LEAVE_TRIES);
	intake_await(&in, &c);
	json_t *answer = intake_is_good(&c) ? intake_answer(&c) : NULL;
	if (!answer)
		say("%s: the sandboxes of the gateway can't be listed: %s", o->intake, c.why);
	intake_free(&in, &c);
	return answer;
}

bool split_check(const struct aci_options *o, struct web *web)
{
	json_t *answer = ask_for_list(o, web);
	json_decref(answer);
	return answer != NULL;
}

bool split_list(const struct aci_options *o, struct web *web)
{
	size_t i;
	json_t *one, *answer = ask_for_list(o, web);
	json_array_foreach(json_object_get(answer, "sandboxes"), i, one)
	{
		if (json_is_string(one) && sandbox_id_is_good(slice_str(json_string_value(one))))
			puts(json_string_value(one));
	}
	json_decref(answer);
	return answer != NULL && fflush(stdout) == 0;
}
