/* body_size: no body is larger than its rule allows (limits.body). Decided by Content-Length at once, and by counting in
 * any case. */
#include "inspectors/table.h"

static uint64_t limit_of(const struct inspection *i)
{
	const struct policy_rule *rule = inspection_subject(i)->rule;
	return rule ? rule->limit_body : LIMIT_BODY_DEFAULT;
}

static enum inspect_result report(struct inspection *i, uint64_t offset)
{
	struct spot spot = {.place = PLACE_BODY, .offset = offset};
	inspection_report(i, REASON_BODY_TOO_LARGE, &spot, SLICE_NONE, SLICE_NONE);
	return INSPECT_DONE;
}

static enum inspect_result on_head(struct inspection *i)
{
	const struct message *head = inspection_subject(i)->head;
	if (head->framing == BODY_LENGTH && head->content_length > limit_of(i))
		return report(i, limit_of(i));
	return INSPECT_PASS;
}

static enum inspect_result on_raw(struct inspection *i, struct slice piece)
{
	if (inspection_raw_bytes(i) + piece.len > limit_of(i))
		return report(i, limit_of(i));
	return INSPECT_PASS;
}

const struct inspector body_size_inspector = {
	.name = WORD("body_size"), .action = ACTION_BLOCK, .on_head = on_head, .on_raw = on_raw};
