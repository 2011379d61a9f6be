/* Secrets in requests. Promises: a request without a placeholder in a slot is left where it is; one with it is masked so
 * that no placeholder is left in a slot; outside of slots nothing changes, in the mask or when values are in; a target stays
 * one. A body is changed the same however it is cut, and as plain text has no placeholder any more.
 *
 * Input: two bytes for the kind of body and the size of its pieces, then the parts, parted by newlines: path and query, the
 * values of two fields that are slots and one that is not, and the body. */
#include "core/base/arena.h"
#include "core/base/limits.h"
#include "proxy/inject.h"
#include "tests/fuzz/fuzz.h"

#define N_SECRETS 3
#define N_FIELDS 3
#define VALUE "v/\"\\%&=+ ;?"

static struct slice headers[] = {WORD("authorization"), WORD("x-api-key")};
static struct slice queries[] = {WORD("key")};
static const struct policy_secret policy_secrets[N_SECRETS] = {
	{.headers = headers, .n_headers = 2, .queries = queries, .n_queries = 1, .in_body = true},
	{.headers = headers, .n_headers = 1, .in_path = true, .in_body = true},
	{.headers = headers, .n_headers = 2, .in_path = true, .in_body = true},
};
static const struct inject_secret secrets[N_SECRETS] = {
	{&policy_secrets[0], WORD("{{KEY_A}}")},
	{&policy_secrets[1], WORD("{{KEY_A}}/b")},
	{&policy_secrets[2], WORD("{{/+B%41}}")},
};
static const struct slice values[N_SECRETS] = {WORD(VALUE), WORD(VALUE), WORD(VALUE)};

/* ---- heads ---- */

static void other_fields_must_stay(const struct message *before, const struct message *after)
{
	PROMISE(after->n_fields == before->n_fields);
	PROMISE(after->fields[N_FIELDS - 1].value.ptr == before->fields[N_FIELDS - 1].value.ptr);
	for (size_t i = 0; i < before->n_fields; i++)
		PROMISE(slice_eq(after->fields[i].name, before->fields[i].name));
}

static void mask_must_be_whole(const struct inject_plan *plan, struct arena *arena)
{
	struct inject_plan again;
	const char *detail = NULL;
	PROMISE(inject_plan(secrets, N_SECRETS, plan->head, plan->target, arena, &again, &detail) == REASON_NONE);
	PROMISE(again.used == 0 && again.head == plan->head && again.target == plan->target);
}

static void target_must_be_good(const struct target *t, const struct target *before, struct arena *arena)
{
	struct target again = {0};
	const char *why;
	if (t->path.ptr == before->path.ptr)
		PROMISE(slice_eq(t->loose, before->loose));
	else
		PROMISE(t->loose.len == 0);
	if (target_send(t, arena).len > LIMIT_TARGET)
		return;
	/* A value may have a byte that our own reading of paths refuses; never one that makes another path of it. */
	if (path_parse(target_send(t, arena), arena, &again, &why) == CAGE_OK)
		PROMISE(slice_eq(t->path, again.path) && slice_eq(t->query, again.query));
}

static void try_head(const struct message *head, const struct target *target, struct arena *arena)
{
	struct inject_plan plan;
	const char *detail = NULL;
	struct message filled = *head;
	struct target filled_target = *target;
	PROMISE(inject_plan(secrets, N_SECRETS, head, target, arena, &plan, &detail) == REASON_NONE);
	PROMISE((plan.used == 0) == (plan.head == head) && (plan.used == 0) == (plan.target == target));
	other_fields_must_stay(head, plan.head);
	mask_must_be_whole(&plan, arena);
	target_must_be_good(plan.target, target, arena);
	PROMISE(inject_head(&plan, values, &filled, &filled_target, arena) == CAGE_OK);
	PROMISE(plan.used != 0 || filled.fields == head->fields);
	other_fields_must_stay(head, &filled);
	target_must_be_good(&filled_target, target, arena);
}

/* ---- bodies ---- */

struct output {
	char *bytes;
	size_t len, room;
	uint64_t used;
};

static void sink(void *arg, struct slice bytes)
{
	struct output *o = arg;
	PROMISE(bytes.len > 0 && bytes.len <= o->room - o->len);
	memcpy(o->bytes + o->len, bytes.ptr, bytes.len);
	o->len += bytes.len;
}

static void change_body(struct slice body, enum inject_escape how, size_t piece, struct output *out)
{
	struct inject_plan plan = {.secrets = secrets, .n_secrets = N_SECRETS};
	out->room = body.len * sizeof(VALUE) * 3 + 1;
	out->len = 0;
	out->bytes = malloc(out->room);
	PROMISE(out->bytes);
	struct body_injector *b = body_injector_new(&plan, values, how, sink, out);
	PROMISE(b);
	while (body.len > 0) {
		struct slice copy = fuzz_copy(fuzz_take(&body, piece));
		PROMISE(body_injector_feed(b, copy) == CAGE_OK);
		fuzz_free(&copy);
	}
	PROMISE(body_injector_end(b) == CAGE_OK);
	out->used = body_injector_used(b);
	body_injector_free(&b);
}

static bool has_placeholder(struct slice s)
{
	for (size_t i = 0; i < N_SECRETS; i++)
		if (s.len > 0 && memmem(s.ptr, s.len, secrets[i].placeholder.ptr, secrets[i].placeholder.len))
			return true;
	return false;
}

static void try_body(struct slice body, enum inject_escape how, size_t piece)
{
	struct output whole, cut;
	change_body(body, how, body.len, &whole);
	change_body(body, how, piece, &cut);
	struct slice changed = slice_of(whole.bytes, whole.len);
	PROMISE(whole.used == cut.used && slice_eq(changed, slice_of(cut.bytes, cut.len)));
	PROMISE(whole.used != 0 || slice_eq(body, changed));
	if (how == INJECT_RAW)
		PROMISE(has_placeholder(body) == (whole.used != 0) && !has_placeholder(changed));
	free(whole.bytes);
	free(cut.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice input = slice_of(data, size);
	enum inject_escape how = (enum inject_escape)(fuzz_number(&input, 1) % 3);
	size_t piece = fuzz_number(&input, 1) + 1;
	struct slice path = slice_cut(&input, '\n');
	struct field fields[N_FIELDS] = {{.name = WORD("Authorization"), .id = FIELD_AUTHORIZATION},
					 {.name = WORD("X-API-Key")},
					 {.name = WORD("x-other")}};
	struct message head = {.fields = fields, .n_fields = N_FIELDS};
	struct target target = {0};
	struct arena arena;
	const char *why;
	arena_init(&arena, MIB(64));
	for (size_t i = 0; i < N_FIELDS; i++)
		fields[i].value = slice_cut(&input, '\n');
	if (path_parse(path, &arena, &target, &why) == CAGE_OK)
		try_head(&head, &target, &arena);
	try_body(input, how, piece);
	arena_free(&arena);
	return 0;
}
