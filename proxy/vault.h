/* The one place where real values live: memory that all processes share, locked, and left out of core dumps. The master
 * fills it before it forks and whenever a source changes; workers read; the signer and the log writer let go of it.
 *
 * A slot is a source ("env NAME", "file PATH"): policies that name the same one share it. It has a current value, or none when its
 * source is gone, and old values that are still taken out of responses for a while. A value, once written, does not
 * change until it is cleansed; that happens no sooner than its time is up, so a worker may borrow it for a request. */
#ifndef CAGE_PROXY_VAULT_H
#define CAGE_PROXY_VAULT_H

#include "core/base/limits.h"
#include "core/policy/policy.h"

#define VAULT_SLOTS LIMIT_SECRETS_ALL
#define VAULT_WORDS (VAULT_SLOTS / 64) /* of a bit for each place */

/* A slot's number says also which of its sources is meant, so that a policy that is still in use after its slot was given to
 * another source finds nothing there, and never the other's value. Its place, for vault_expire(): */
#define VAULT_PLACE(slot) ((slot) % VAULT_SLOTS)

struct vault;

/* NULL with errno when the memory can't be had. */
struct vault *vault_new(void);

/* Unmaps it in this process. */
void vault_forget(struct vault **v);

/* From here on this process can only read it. false with errno. */
bool vault_read_only(struct vault *v) MUST_CHECK;

/* ---- for the master ---- */

/* The slot of a source, a new one if need be. false: all are taken. */
bool vault_slot(struct vault *v, enum secret_source from, struct slice source, unsigned *slot);

/* A value that is the current one already changes nothing; else it becomes the current one, and the one before is kept for
 * keep_us. CAGE_ELIMIT: too long, or so many old values are kept that there is no room until one of them has been kept
 * long enough. CAGE_ESYS with errno: the memory can't be locked. */
enum cage_status vault_put(struct vault *v, unsigned slot, struct slice value, uint64_t keep_us,
			   uint64_t now_us) MUST_CHECK;

/* The source is gone: there is no current value; the last one is kept for keep_us. */
void vault_lose(struct vault *v, unsigned slot, uint64_t keep_us, uint64_t now_us);

/* Cleanses what has been kept long enough. The source of a slot that is not in `named` is gone (a bit for each place: 0 to 63
 * in the first word); the slot is free once nothing of it is kept. */
void vault_expire(struct vault *v, const uint64_t named[VAULT_WORDS], uint64_t now_us);

/* ---- for workers ---- */

/* Changes with every value. */
uint64_t vault_version(const struct vault *v);

/* false: there is none now. Borrowed. */
bool vault_get(const struct vault *v, unsigned slot, struct slice *value);

/* The slot that is at that place, 0 to VAULT_SLOTS - 1, now. It may be nobody's. */
unsigned vault_slot_at(const struct vault *v, unsigned place);

/* All values of a slot that are to be taken out of responses, the current one first; at most LIMIT_SECRET_VERSIONS. */
size_t vault_known(const struct vault *v, unsigned slot, struct slice values[LIMIT_SECRET_VERSIONS]);

#endif
