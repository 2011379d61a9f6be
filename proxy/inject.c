/* The plan and what comes of it are one way through the request, taken twice: first with "-" for every placeholder that stands
 * where it may, then with the values. So values go where the inspectors have seen a "-", and nowhere else. */
#include "proxy/inject_private.h"

#include "core/base/text.h"

#define DETAIL_ROOM (LIMIT_FINDING_NAME + 64)

void rewrite_saw(struct rewrite *r, enum slot_kind kind, struct slice name, uint64_t which, uint64_t found)
{
	r->found |= found;
	r->present |= which;
	for (uint64_t left = which & ~found; left > 0 && !r->foreign.ptr;) {
		if (!r->secrets[take_bit(&left)].secret->require)
			continue;
		r->foreign = name;
		r->foreign_kind = kind;
	}
}

/* The target as it came must not say more, or less, than its parts do. */
static enum cage_status write_target_again(const struct target *before, const struct target *target,
					   struct arena *arena, struct message *head)
{
	if (before->path.ptr == target->path.ptr && before->query.ptr == target->query.ptr)
		return CAGE_OK;
	head->target = target_send(target, arena);
	head->form = TARGET_ORIGIN;
	return head->target.ptr ? CAGE_OK : CAGE_ENOMEM;
}

static enum cage_status rewrite(struct rewrite *r, struct message *head, struct target *target)
{
	struct target before = *target;
	enum cage_status st = rewrite_fields(r, head);
	if (st == CAGE_OK)
		st = rewrite_target(r, target);
	return st == CAGE_OK ? write_target_again(&before, target, r->arena, head) : st;
}

/* ---- plan ---- */

bool secret_is_put_in(const struct policy_secret *s)
{
	switch (s->use) {
	case SECRET_AS_IS:
	case SECRET_CREDENTIALS:
	case SECRET_GOOGLE_JWT:
		return true;
	case SECRET_SIGV4:
	case SECRET_HMAC:
		return false;
	}
	return false;
}

/* NULL without memory. */
static const char *foreign_detail(const struct rewrite *r, struct arena *arena)
{
	char *room = arena_alloc(arena, DETAIL_ROOM);
	if (!room)
		return NULL;
	struct text t = text_in(room, DETAIL_ROOM - 1); /* zeroed: it ends with a NUL */
	text_put(&t, r->foreign_kind == SLOT_HEADER ? SLICE("the field ") : SLICE("the parameter "));
	text_put(&t, slice_head(r->foreign, LIMIT_FINDING_NAME));
	text_put(&t, SLICE(" has to hold a placeholder"));
	return room;
}

/* Does a secret that is required have no slot at all in this request? None of them has bodies for one. */
static bool is_absent(const struct rewrite *r)
{
	for (uint64_t left = r->active & ~r->present; left > 0;)
		if (r->secrets[take_bit(&left)].secret->require)
			return true;
	return false;
}

static enum reason check_required(const struct rewrite *r, struct arena *arena, const char **detail)
{
	if (r->foreign.ptr) {
		*detail = foreign_detail(r, arena);
		return *detail ? REASON_SECRET_SLOT : REASON_INTERNAL;
	}
	if (!is_absent(r))
		return REASON_NONE;
	*detail = "the placeholder of a secret is required, and nothing that may hold it is there";
	return REASON_SECRET_SLOT;
}

static void rewrite_init_masks(struct rewrite *r, const struct inject_secret *secrets, size_t n, struct arena *arena)
{
	*r = (struct rewrite){.secrets = secrets, .arena = arena};
	for (size_t i = 0; i < n; i++) {
		if (!secret_is_put_in(secrets[i].secret))
			continue;
		r->active |= bit_of(i);
		r->raw[i] = r->coded[i] = SLICE("-");
	}
}

static bool keep_masked(struct inject_plan *plan, const struct message *head, const struct target *target,
			struct arena *arena)
{
	struct message *masked = arena_alloc(arena, sizeof(*masked));
	struct target *masked_target = arena_alloc(arena, sizeof(*masked_target));
	if (!masked || !masked_target)
		return false;
	*masked = *head;
	*masked_target = *target;
	plan->head = masked;
	plan->target = masked_target;
	return true;
}

enum reason inject_plan(const struct inject_secret *secrets, size_t n, const struct message *head,
			const struct target *target, struct arena *arena, struct inject_plan *plan, const char **detail)
{
	struct rewrite r;
	struct message masked = *head;
	struct target masked_target = *target;
	*plan = (struct inject_plan){.secrets = secrets, .n_secrets = n, .head = head, .target = target};
	if (n > LIMIT_SECRETS)
		return REASON_INTERNAL;
	rewrite_init_masks(&r, secrets, n, arena);
	if (r.active == 0)
		return REASON_NONE;
	if (rewrite(&r, &masked, &masked_target) != CAGE_OK)
		return REASON_INTERNAL;
	if (r.found != 0 && !keep_masked(plan, &masked, &masked_target, arena))
		return REASON_INTERNAL;
	plan->used = r.found;
	return check_required(&r, arena, detail);
}

/* ---- values ---- */

/* The loader has seen to all of this, and to nothing of a token. */
static bool is_fit(struct slice value)
{
	return value.len >= LIMIT_SECRET_VALUE_MIN && value_is_one_line(value);
}

static bool goes_into_target(const struct policy_secret *s)
{
	return s->in_path || s->n_queries > 0;
}

static enum cage_status set_coded(struct rewrite *r, size_t i, struct slice value)
{
	struct made made = {0};
	if (!goes_into_target(r->secrets[i].secret))
		return CAGE_OK;
	made_put_escaped(&made, value, WORD_PERCENT);
	made = (struct made){.ptr = arena_alloc(r->arena, made.len)};
	if (!made.ptr)
		return CAGE_ENOMEM;
	made_put_escaped(&made, value, WORD_PERCENT);
	r->coded[i] = slice_of(made.ptr, made.len);
	return CAGE_OK;
}

static enum cage_status rewrite_init_values(struct rewrite *r, const struct inject_plan *plan,
					    const struct slice *values, struct arena *secret)
{
	*r = (struct rewrite){.secrets = plan->secrets, .active = plan->used, .arena = secret};
	enum cage_status st = CAGE_OK;
	for (uint64_t left = plan->used; left > 0 && st == CAGE_OK;) {
		unsigned i = take_bit(&left);
		if (!is_fit(values[i]))
			return CAGE_EPROTO;
		r->raw[i] = values[i];
		st = set_coded(r, i, values[i]);
	}
	return st;
}

enum cage_status inject_head(const struct inject_plan *plan, const struct slice *values, struct message *head,
			     struct target *target, struct arena *secret)
{
	struct rewrite r;
	struct message filled = *head;
	struct target filled_target = *target;
	if (plan->used == 0)
		return CAGE_OK;
	enum cage_status st = rewrite_init_values(&r, plan, values, secret);
	if (st == CAGE_OK)
		st = rewrite(&r, &filled, &filled_target);
	if (st != CAGE_OK)
		return st;
	*head = filled;
	*target = filled_target;
	return CAGE_OK;
}
