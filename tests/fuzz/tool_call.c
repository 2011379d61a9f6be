/* What is said of a tool call. Promises: what is taken has the parts that it was made of, none of which hides another. */
#include "proxy/tools.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tool_call call;
	struct slice message = slice_of(data, size);
	if (!tool_call_parse(message, &call))
		return 0;
	struct slice reason = reason_code(call.reason);
	struct slice decision = audit_decision_text(call.decision);
	PROMISE(call.decision == DECISION_ALLOW || call.decision == DECISION_BLOCK);
	PROMISE((call.decision == DECISION_ALLOW) == (call.reason == REASON_NONE));
	PROMISE(decision.len + reason.len + call.tool.len + call.detail.len + 3 == size);
	PROMISE(call.tool.len > 0 && !memchr(call.tool.ptr, 0, call.tool.len));
	PROMISE(call.detail.len == 0 || !memchr(call.detail.ptr, 0, call.detail.len));
	PROMISE(slice_starts(message, decision));
	return 0;
}
