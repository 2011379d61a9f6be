/* Tables of fixed size with open addressing, one for each sandbox, in memory that processes share. Any of those may be
 * killed between two instructions, so nothing is ever locked: each change is one compare-and-swap of a word, and whatever
 * was left half done is either finished by whoever comes next or means nothing.
 *
 *	owner: | tag of the key 32 | turn 3 | ready 1 | until 28 |
 *
 * Until that time (in units of about two seconds) the entry says something; then it is stale, and free for another key. To
 * count is to move `until` far enough first and then to change a word. Taking over changes the owner word as well: so
 * one of the two comes too late and looks again, and no count is lost while it matters. What a process does that slept
 * in between lands in the past of whoever owns the entry then.
 *
 * A key must not get two entries. So one is first claimed, then all places of the key are looked at again, and only
 * when no other is claimed or ready does it become ready. Of two claims the later in the row is given up. Anybody who
 * meets a claim goes on with it, since its maker may be dead. `turn` tells claims of the same place apart.
 *
 * Two keys of the same tag and places would share an entry: in a full table that happens to one of a
 * hundred million, and its limit is then only stricter. */
#include "inspectors/ledger_table.h"

#define UNTIL_SHIFT 21       /* microseconds to units of `until` */
#define UNTIL_MAX 0xfffffffu /* never stale */
#define READY (UINT64_C(1) << 28)
#define TURNS 7u

_Static_assert(sizeof(struct ledger_entry) == 64, "an entry is a cache line");
_Static_assert((LIMIT_LEDGER_ENTRIES & (LIMIT_LEDGER_ENTRIES - 1)) == 0, "places are masked");
_Static_assert((LIMIT_LEDGER_SANDBOXES & (LIMIT_LEDGER_SANDBOXES - 1)) == 0, "shares are masked");
_Static_assert(LIMIT_LEDGER_ENTRIES <= 1 << LEDGER_SHARE_SHIFT, "places lie below the share");
_Static_assert((uint64_t)LIMIT_LEDGER_SANDBOXES << LEDGER_SHARE_SHIFT <= UINT64_C(1) << 32, "the share below the tag");

/* In the order in which they come. A share that is taken stays taken, so whoever finds his own, or the first free one,
 * finds it again. */
size_t ledger_share(struct ledger *l, uint64_t sandbox)
{
	uint64_t id = sandbox | 1; /* never 0 */
	for (size_t i = 0; i < LIMIT_LEDGER_SANDBOXES; i++) {
		uint64_t owner = atomic_load(&l->sandboxes[i]);
		if (owner == 0 && atomic_compare_exchange_strong(&l->sandboxes[i], &owner, id))
			return i;
		if (owner == id)
			return i;
	}
	return sandbox >> 1 & (LIMIT_LEDGER_SANDBOXES - 1);
}

/* What the owner word says. All zero: nobody has been here. */
struct owner {
	uint32_t tag, turn;
	bool ready;
	uint32_t until; /* 0: free */
};

static struct owner owner_unpack(uint64_t word)
{
	return (struct owner){.tag = (uint32_t)(word >> 32),
			      .turn = (uint32_t)(word >> 29) & TURNS,
			      .ready = (word & READY) != 0,
			      .until = (uint32_t)word & UNTIL_MAX};
}

static uint64_t owner_pack(struct owner o)
{
	return (uint64_t)o.tag << 32 | (uint64_t)(o.turn & TURNS) << 29 | (o.ready ? READY : 0) | o.until;
}

static bool owner_change(struct ledger_place p, struct owner to)
{
	return atomic_compare_exchange_strong(&p.entry->owner, &p.owner, owner_pack(to));
}

static uint32_t key_tag(uint64_t key)
{
	return (uint32_t)(key >> 32);
}

/* At least one unit later than us: the clocks of two workers may differ by a little. */
static uint32_t until_of(uint64_t us)
{
	uint64_t units = (us >> UNTIL_SHIFT) + 2;
	return units < UNTIL_MAX ? (uint32_t)units : UNTIL_MAX;
}

static bool is_free(struct owner o, uint64_t now_us)
{
	return o.until == 0 || (o.until < UNTIL_MAX && now_us >> UNTIL_SHIFT >= o.until);
}

/* Empties a stale entry while it is still its owner's, to whom nothing means the same as what is in it; then claims it.
 * Somebody may come between at any point: the caller looks again in either case. */
static void entry_claim(struct ledger_place p, uint64_t key, uint64_t now_us)
{
	for (size_t i = 0; i < LEDGER_WORDS; i++) {
		uint64_t value = atomic_load(&p.entry->words[i]);
		if (atomic_load(&p.entry->owner) != p.owner)
			return;
		if (value && !atomic_compare_exchange_strong(&p.entry->words[i], &value, 0))
			return;
	}
	struct owner old = owner_unpack(p.owner);
	owner_change(p, (struct owner){.tag = key_tag(key), .turn = old.turn + 1, .until = until_of(now_us)});
}

static void claim_finish(struct ledger_place p)
{
	struct owner o = owner_unpack(p.owner);
	o.ready = true;
	owner_change(p, o);
}

static void claim_drop(struct ledger_place p)
{
	owner_change(p, (struct owner){.turn = owner_unpack(p.owner).turn});
}

/* What stands in the places of a key: its entry, claims to become that, and the first free place. */
struct search {
	struct ledger_place ready, claim, rival, room;
};

static void search_note(struct search *s, struct ledger_place p, uint64_t key, uint64_t now_us)
{
	struct owner o = owner_unpack(p.owner);
	if (o.until == 0 || o.tag != key_tag(key)) {
		if (!s->room.entry && is_free(o, now_us))
			s->room = p;
	} else if (o.ready) {
		s->ready = p;
	} else if (!s->claim.entry) {
		s->claim = p;
	} else {
		s->rival = p;
	}
}

static struct search search_places(struct ledger *l, uint64_t key, uint64_t now_us)
{
	struct search s = {0};
	struct ledger_entry *table = l->entries[key >> LEDGER_SHARE_SHIFT & (LIMIT_LEDGER_SANDBOXES - 1)];
	for (size_t i = 0; i < LIMIT_LEDGER_PROBES && !s.ready.entry; i++) {
		struct ledger_entry *e = &table[(key + i) & (LIMIT_LEDGER_ENTRIES - 1)];
		search_note(&s, (struct ledger_place){e, atomic_load(&e->owner)}, key, now_us);
	}
	return s;
}

struct ledger_place ledger_find(struct ledger *l, uint64_t key, uint64_t now_us)
{
	for (unsigned i = 0; i < LIMIT_LEDGER_TRIES; i++) {
		struct search s = search_places(l, key, now_us);
		if (s.ready.entry)
			return s.ready;
		if (s.rival.entry)
			claim_drop(s.rival);
		else if (s.claim.entry)
			claim_finish(s.claim);
		else if (s.room.entry)
			entry_claim(s.room, key, now_us);
		else
			break;
	}
	return (struct ledger_place){0};
}

bool ledger_keep(struct ledger_place p, uint64_t until_us)
{
	struct owner o = owner_unpack(p.owner);
	uint32_t until = until_of(until_us);
	if (o.until >= until)
		return true;
	o.until = until;
	return owner_change(p, o);
}
