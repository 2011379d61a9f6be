/* The shared part is a table and room for values: LIMIT_SECRET_VERSIONS cells for each slot, of which only pages that were
 * ever used are backed by memory; those stay locked. The master alone writes, workers read at any time without a lock, so everything they follow is
 * published in order: bytes, then length, then which cell is current, then the version. What only the master needs stands in its own
 * memory. */
#include "proxy/vault.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define NO_CELL LIMIT_SECRET_VERSIONS

struct shared_slot {
	_Atomic uint32_t use;                        /* counts the sources that have had it */
	_Atomic uint32_t current;                    /* a cell, or NO_CELL */
	_Atomic uint32_t len[LIMIT_SECRET_VERSIONS]; /* 0: nothing in that cell */
};

struct shared {
	_Atomic uint64_t version;
	struct shared_slot slots[VAULT_SLOTS];
	_Alignas(4096) char cells[VAULT_SLOTS][LIMIT_SECRET_VERSIONS][LIMIT_SECRET_VALUE];
};

/* What the master knows of a slot. */
struct own_slot {
	enum secret_source from;
	char *source; /* NULL: the slot is free */
	size_t source_len;
	uint64_t keep_us;                      /* of the current value, should it go */
	uint64_t until[LIMIT_SECRET_VERSIONS]; /* when an old value's time is up */
};

struct vault {
	struct shared *shared;
	int read_fd; /* for those who only read */
	struct own_slot own[VAULT_SLOTS];
};

/* ---- as a whole ---- */

static struct shared *map_shared(int fd)
{
	void *p = MAP_FAILED;
	if (ftruncate(fd, sizeof(struct shared)) == 0)
		p = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return NULL;
	if (madvise(p, sizeof(struct shared), MADV_DONTDUMP) == 0)
		return p;
	munmap(p, sizeof(struct shared));
	return NULL;
}

/* The same file for reading only. A process that can't be looked into can't look into itself either, unless it is root's;
 * nothing is in the vault yet. */
static int open_to_read(int fd)
{
	char path[64];
	int was = prctl(PR_GET_DUMPABLE);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	prctl(PR_SET_DUMPABLE, 1);
	int read_fd = open(path, O_RDONLY | O_CLOEXEC);
	prctl(PR_SET_DUMPABLE, was);
	return read_fd;
}

struct vault *vault_new(void)
{
	struct vault *v = calloc(1, sizeof(*v));
	if (!v)
		return NULL;
	int fd = memfd_create("cage-vault", MFD_CLOEXEC);
	v->shared = fd >= 0 ? map_shared(fd) : NULL;
	v->read_fd = v->shared ? open_to_read(fd) : -1;
	if (fd >= 0)
		close(fd);
	if (v->read_fd < 0) {
		vault_forget(&v);
		return NULL;
	}
	for (size_t i = 0; i < VAULT_SLOTS; i++)
		atomic_init(&v->shared->slots[i].current, NO_CELL);
	return v;
}

void vault_forget(struct vault **vp)
{
	struct vault *v = *vp;
	if (!v)
		return;
	*vp = NULL;
	if (v->shared)
		munmap(v->shared, sizeof(*v->shared));
	if (v->read_fd >= 0)
		close(v->read_fd);
	for (size_t i = 0; i < VAULT_SLOTS; i++)
		free(v->own[i].source);
	free(v);
}

/* Through a descriptor that can only be read: no mprotect() makes that mapping writable again. */
bool vault_read_only(struct vault *v)
{
	size_t size = sizeof(*v->shared);
	bool ok = mmap(v->shared, size, PROT_READ, MAP_SHARED | MAP_FIXED, v->read_fd, 0) != MAP_FAILED &&
		  madvise(v->shared, size, MADV_DONTDUMP) == 0;
	close(v->read_fd);
	v->read_fd = -1;
	return ok;
}

/* ---- the master's side ---- */

static void changed(struct vault *v)
{
	atomic_fetch_add_explicit(&v->shared->version, 1, memory_order_release);
}

static uint32_t cell_len(const struct shared_slot *s, uint32_t cell)
{
	return atomic_load_explicit(&s->len[cell], memory_order_acquire);
}

static uint32_t current_cell(const struct shared_slot *s)
{
	return atomic_load_explicit(&s->current, memory_order_acquire);
}

/* The number of the slot in this place. */
static unsigned number_of(const struct vault *v, unsigned place)
{
	return atomic_load(&v->shared->slots[place].use) * VAULT_SLOTS + place;
}

/* The master's slots are never stale. */
static unsigned place_of(const struct vault *v, unsigned slot)
{
	if (slot != number_of(v, VAULT_PLACE(slot)))
		abort();
	return VAULT_PLACE(slot);
}

static bool is_of(const struct own_slot *own, enum secret_source from, struct slice source)
{
	return own->source && own->from == from && slice_eq(slice_of(own->source, own->source_len), source);
}

static bool take_place(struct vault *v, unsigned place, enum secret_source from, struct slice source)
{
	char *copy = malloc(source.len + 1);
	if (!copy)
		return false;
	memcpy(copy, source.ptr, source.len);
	v->own[place] = (struct own_slot){.from = from, .source = copy, .source_len = source.len};
	return true;
}

bool vault_slot(struct vault *v, enum secret_source from, struct slice source, unsigned *slot)
{
	unsigned place = VAULT_SLOTS;
	for (unsigned i = 0; i < VAULT_SLOTS; i++) {
		if (is_of(&v->own[i], from, source)) {
			*slot = number_of(v, i);
			return true;
		}
		if (place == VAULT_SLOTS && !v->own[i].source)
			place = i;
	}
	if (place == VAULT_SLOTS || !take_place(v, place, from, source))
		return false;
	*slot = number_of(v, place);
	return true;
}

/* Whoever still holds on to a value whose time was up sees bytes that are found in no text. */
static void cleanse_cell(struct vault *v, unsigned place, uint32_t cell)
{
	struct shared_slot *s = &v->shared->slots[place];
	char *bytes = v->shared->cells[place][cell];
	uint32_t len = cell_len(s, cell);
	atomic_store_explicit(&s->len[cell], 0, memory_order_release);
	changed(v);
	OPENSSL_cleanse(bytes, len);
	(void)RAND_bytes((unsigned char *)bytes, (int)len);
}

static void expire_cells(struct vault *v, unsigned place, uint64_t now_us)
{
	const struct shared_slot *s = &v->shared->slots[place];
	for (uint32_t i = 0; i < LIMIT_SECRET_VERSIONS; i++)
		if (cell_len(s, i) > 0 && i != current_cell(s) && v->own[place].until[i] <= now_us)
			cleanse_cell(v, place, i);
}

/* The current value becomes an old one. */
static void retire(struct vault *v, unsigned place, uint64_t keep_us, uint64_t now_us)
{
	uint32_t cell = current_cell(&v->shared->slots[place]);
	if (cell != NO_CELL)
		v->own[place].until[cell] = now_us + keep_us;
}

static void set_current(struct vault *v, unsigned place, uint32_t cell)
{
	atomic_store_explicit(&v->shared->slots[place].current, cell, memory_order_release);
	changed(v);
}

/* The cell that has this value, or else a free one, or NO_CELL. */
static uint32_t cell_for(const struct vault *v, unsigned place, struct slice value)
{
	const struct shared_slot *s = &v->shared->slots[place];
	uint32_t cell = NO_CELL;
	for (uint32_t i = 0; i < LIMIT_SECRET_VERSIONS; i++) {
		uint32_t len = cell_len(s, i);
		if (len == value.len && slice_eq_secret(slice_of(v->shared->cells[place][i], len), value))
			return i;
		if (len == 0 && cell == NO_CELL)
			cell = i;
	}
	return cell;
}

static enum cage_status fill_cell(struct vault *v, unsigned place, uint32_t cell, struct slice value)
{
	char *bytes = v->shared->cells[place][cell];
	if (mlock(bytes, value.len) != 0)
		return CAGE_ESYS;
	memcpy(bytes, value.ptr, value.len);
	atomic_store_explicit(&v->shared->slots[place].len[cell], (uint32_t)value.len, memory_order_release);
	return CAGE_OK;
}

enum cage_status vault_put(struct vault *v, unsigned slot, struct slice value, uint64_t keep_us, uint64_t now_us)
{
	unsigned place = place_of(v, slot);
	const struct shared_slot *s = &v->shared->slots[place];
	if (value.len == 0 || value.len > LIMIT_SECRET_VALUE)
		return CAGE_ELIMIT;
	v->own[place].keep_us = keep_us;
	expire_cells(v, place, now_us);
	uint32_t cell = cell_for(v, place, value);
	if (cell == NO_CELL)
		return CAGE_ELIMIT;
	if (cell == current_cell(s))
		return CAGE_OK;
	if (cell_len(s, cell) == 0) {
		enum cage_status st = fill_cell(v, place, cell, value);
		if (st != CAGE_OK)
			return st;
	}
	retire(v, place, keep_us, now_us);
	set_current(v, place, cell);
	return CAGE_OK;
}

void vault_lose(struct vault *v, unsigned slot, uint64_t keep_us, uint64_t now_us)
{
	unsigned place = place_of(v, slot);
	if (current_cell(&v->shared->slots[place]) == NO_CELL)
		return;
	retire(v, place, keep_us, now_us);
	set_current(v, place, NO_CELL);
}

static bool is_empty(const struct shared_slot *s)
{
	for (uint32_t i = 0; i < LIMIT_SECRET_VERSIONS; i++)
		if (cell_len(s, i) > 0)
			return false;
	return true;
}

/* First of all nobody finds it any more. */
static void give_up_place(struct vault *v, unsigned place)
{
	atomic_fetch_add(&v->shared->slots[place].use, 1);
	free(v->own[place].source);
	v->own[place] = (struct own_slot){.source = NULL};
}

void vault_expire(struct vault *v, const uint64_t named[VAULT_WORDS], uint64_t now_us)
{
	for (unsigned i = 0; i < VAULT_SLOTS; i++) {
		bool is_named = named[i / 64] >> i % 64 & 1;
		if (!v->own[i].source)
			continue;
		if (!is_named)
			vault_lose(v, number_of(v, i), v->own[i].keep_us, now_us);
		expire_cells(v, i, now_us);
		if (!is_named && is_empty(&v->shared->slots[i]))
			give_up_place(v, i);
	}
}

/* ---- the workers' side ---- */

uint64_t vault_version(const struct vault *v)
{
	return atomic_load_explicit(&v->shared->version, memory_order_acquire);
}

/* Asked last: by then what was read before is of this source, or this says no. */
static bool is_still(const struct vault *v, unsigned slot)
{
	return slot == number_of(v, VAULT_PLACE(slot));
}

bool vault_get(const struct vault *v, unsigned slot, struct slice *value)
{
	const struct shared_slot *s = &v->shared->slots[VAULT_PLACE(slot)];
	uint32_t cell = current_cell(s);
	if (cell >= NO_CELL)
		return false;
	*value = slice_of(v->shared->cells[VAULT_PLACE(slot)][cell], cell_len(s, cell));
	return value->len > 0 && is_still(v, slot);
}

unsigned vault_slot_at(const struct vault *v, unsigned place)
{
	return number_of(v, place);
}

size_t vault_known(const struct vault *v, unsigned slot, struct slice values[LIMIT_SECRET_VERSIONS])
{
	const struct shared_slot *s = &v->shared->slots[VAULT_PLACE(slot)];
	uint32_t current = current_cell(s);
	size_t n = 0;
	for (uint32_t i = 0; i < LIMIT_SECRET_VERSIONS; i++) {
		uint32_t cell = current < NO_CELL ? (current + i) % LIMIT_SECRET_VERSIONS : i;
		uint32_t len = cell_len(s, cell);
		if (len > 0)
			values[n++] = slice_of(v->shared->cells[VAULT_PLACE(slot)][cell], len);
	}
	return is_still(v, slot) ? n : 0;
}
