/* What is asked for is done, or given to the changes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/gateway/ask.h"
#include "orchestrator/gateway/boxes.h"
#include "orchestrator/gateway/intake.h"

/* ---- changes ---- */

static bool take_members(struct change *change, const struct ask *a)
{
	snprintf(change->owner, sizeof(change->owner), "%s", a->owner);
	if (a->kind == ASK_DELETE)
		return true;
	change->token = strdup(a->token);
	change->policy = a->policy ? strdup(a->policy) : NULL;
	return change->token && (change->policy || !a->policy);
}

static void make_change(struct conn *c, enum change_kind kind, const struct ask *a)
{
	struct change *change = change_new(conn_gateway(c), kind, slice_str(a->id));
	if (change && take_members(change, a)) {
		conn_await(c, change);
		return;
	}
	if (change)
		change_free(change);
	conn_problem(c, 503, "no memory");
}

/* ---- what is told ---- */

static void list(struct conn *c, const struct ask *a)
{
	json_t *all = boxes_list(conn_gateway(c), a->owner[0] ? a->owner : NULL);
	json_t *shut = all ? boxes_shut(conn_gateway(c), all) : NULL;
	if (!shut)
		conn_problem(c, 503, "the sandboxes can't be listed now");
	else if (json_object_size(shut) > 0)
		conn_answer_json(c, 200, "application/json", json_pack("{s:O, s:O}", "sandboxes", all, "shut", shut));
	else
		conn_answer_json(c, 200, "application/json", json_pack("{s:O}", "sandboxes", all));
	json_decref(shut);
	json_decref(all);
}

static void tell_lines(struct conn *c, const struct ask *a, struct text *lines)
{
	struct gateway_log *l = &conn_gateway(c)->log;
	char fields[128], next[LOG_CURSOR];
	/* a place of another instance is none of ours: all that is there is told, and what stood there behind it is lost */
	const bool is_ours = slice_eq(a->instance, slice_str(l->instance));
	uint64_t at = is_ours ? a->at : 0;
	const struct log_told told = log_lines(l, slice_str(a->id), &at, lines);
	log_cursor(l, at, next);
	snprintf(fields, sizeof(fields), "Cage-Log-Next: %s\r\n%s%s", next,
		 (told.is_lost || !is_ours) && a->instance.len > 0 ? "Cage-Log-Lost: yes\r\n" : "",
		 told.has_more ? "Cage-Log-More: yes\r\n" : "");
	conn_answer(c, 200, "application/x-ndjson", fields, text_slice(lines));
}

static void tell_log(struct conn *c, const struct ask *a)
{
	if (!box_is_there(conn_gateway(c), a->id)) {
		conn_problem(c, 404, "there is no such sandbox");
		return;
	}
	char *room = malloc(LIMIT_GATEWAY_LOG_ANSWER);
	struct text lines = text_in(room, LIMIT_GATEWAY_LOG_ANSWER);
	if (room)
		tell_lines(c, a, &lines);
	else
		conn_problem(c, 503, "no memory");
	free(room);
}

/* ---- all of it ---- */

static void obey(struct conn *c, const struct ask *a)
{
	switch (a->kind) {
	case ASK_HEALTH:
		conn_answer_json(c, 200, "application/json", json_pack("{s:s}", "status", "ok"));
		return;
	case ASK_LIST:
		list(c, a);
		return;
	case ASK_LOG:
		tell_log(c, a);
		return;
	case ASK_PUT:
		make_change(c, CHANGE_PUT, a);
		return;
	case ASK_DELETE:
		make_change(c, CHANGE_DELETE, a);
		return;
	}
}

void api_handle(struct conn *c)
{
	struct ask a;
	const struct ask_fault fault = ask_read(&c->request, c->state != CONN_STRANGER, &a);
	if (fault.status)
		conn_problem(c, fault.status, fault.why);
	else
		obey(c, &a);
	ask_free(&a);
}
