/* The chain: all inspectors on one request, in order, before anything of it leaves.
 *
 *	chain_begin -> chain_name -> chain_head -> chain_body ... -> chain_end -> chain_finish       a request
 *	chain_begin -> chain_message -> chain_body ... -> chain_end -> chain_finish                  a message behind it
 *
 * Each step answers whether the request may go on. Nothing of it may be sent while the answer is CHAIN_HOLD, or ever
 * once it was CHAIN_BLOCK. What can't be looked at (a broken content coding, no memory, an inspector that fails) is a
 * block. In observe mode findings are written down and nothing is stopped. */
#ifndef CAGE_INSPECTORS_CHAIN_H
#define CAGE_INSPECTORS_CHAIN_H

#include "core/base/text.h"
#include "inspectors/inspector.h"
#include "inspectors/known/known.h"

#define CHAIN_KEY 32 /* bytes of the key for fingerprints */

/* ---- policy ---- */

/* Reads `inspectors` of a policy, for policy_load(): checks every key, fills in the defaults, compiles formats. section
 * is NULL when the policy has none. NULL only with an error. */
const void *chain_read_policy(struct loader *l, const struct node *section);

/* ---- a worker's chain under one policy ---- */

struct chain;

/* The policy was loaded with chain_read_policy and outlives the chain. NULL: no memory. */
struct chain *chain_new(const struct policy *p, struct ledger *ledger, const unsigned char key[CHAIN_KEY]);
void chain_free(struct chain **c);

/* Whom the external inspector talks to; it outlives the chain's runs. */
struct external;
void chain_set_external(struct chain *c, struct external *e);

/* Values and placeholders that are known (known/known.h), from now on: runs that have begun go on with what was known
 * then. The chain takes its own reference; NULL: nothing is. What is found of them is a block that no policy turns off, in observe
 * mode too: REASON_SECRET_LEAKED for a value, REASON_SECRET_MISPLACED for a placeholder. */
void chain_set_known(struct chain *c, struct known_set *known);

/* ---- one request ---- */

enum chain_verdict { CHAIN_PASS, CHAIN_HOLD, CHAIN_BLOCK };

struct chain_run;

/* Whom to tell when a run that was on hold goes on: chain_verdict() then says how. */
struct chain_owner {
	void (*resume)(void *arg);
	void *arg;
};

/* subject is copied; what it points to outlives the run, as does the arena. observe: nothing is stopped. NULL: no memory.
 */
struct chain_run *chain_begin(struct chain *c, struct arena *arena, const struct subject *subject, bool observe,
			      const struct chain_owner *owner);

/* The host, before it is resolved or a leaf is made for it. */
enum chain_verdict chain_name(struct chain_run *r);

/* The whole head. */
enum chain_verdict chain_head(struct chain_run *r);

/* The next bytes of the body as they came. */
enum chain_verdict chain_body(struct chain_run *r, struct slice piece);

/* How much of the body may leave though it is not complete, while the answer is CHAIN_PASS: up to the end of its last whole
 * message. 0 for one that has no messages which can be told apart where they stand. */
uint64_t chain_whole(const struct chain_run *r);

/* The body is complete; its trailers. */
enum chain_verdict chain_end(struct chain_run *r, const struct field *trailers, size_t n);

/* ---- messages of a stream ---- */

/* What one direction of a stream has had, so that what is split over messages is found (THREATS T28). */
struct chain_stream;

struct chain_stream *chain_stream_new(void); /* NULL: no memory */
void chain_stream_free(struct chain_stream **s);

/* A message behind a request has a run of its own, in place of chain_name() and chain_head(); subject->message says what
 * it is, and the head is that of the request. chain_body() and chain_end() follow. The stream outlives the run. Once more
 * of it was shown, it can't be taken back: a message that is blocked ends the stream. */
enum chain_verdict chain_message(struct chain_run *r, struct chain_stream *s);

/* From now on messages may be small and many. chain_end() looks at a small one with the last LIMIT_MESSAGE_BRIEF bytes
 * before it only, and none leaves before chain_settle() was asked, in this run or another: it looks at all of them with all
 * that is before them. */
void chain_stream_defer(struct chain_stream *s);
bool chain_stream_owes(const struct chain_stream *s); /* is there something to ask for? */
enum chain_verdict chain_settle(struct chain_run *r, struct chain_stream *s);

/* Where it stands now. */
enum chain_verdict chain_verdict(const struct chain_run *r);

/* Why it was blocked: the first finding that blocks, or NULL while there is none. In observe mode the one that would
 * have. */
const struct finding *chain_block(const struct chain_run *r);

/* Makes the changes to the head that inspectors asked for, once it may be sent. CAGE_ENOMEM: it must not be sent. */
enum cage_status chain_rewrite(const struct chain_run *r, struct message *head) MUST_CHECK;

/* Was a secret or canary found in that place, so that nobody must show it? */
bool chain_hides(const struct chain_run *r, enum place place);

/* The same of a request that was refused before anybody looked at it: one bit for each place. All of them when it can't be
 * told. subject->head is not looked at. */
unsigned chain_places_to_hide(struct chain *c, struct arena *arena, const struct subject *subject);

/* Is it plain at once that nothing is to be hidden in that name? False: chain_places_to_hide() tells. */
bool chain_name_is_harmless(struct chain *c, struct slice name);

/* May the name of a field be such a secret? */
bool chain_hides_names(const struct chain_run *r);

/* How long to wait before another try may pass; 0: no use. */
uint64_t chain_retry_after_us(const struct chain_run *r);

/* What was found so far, at most LIMIT_FINDINGS; what blocks is always among them. */
const struct finding *chain_findings(const struct chain_run *r, size_t *n);

#define CHAIN_VIEW 32 /* room for the text of any view */

/* How a finding was encoded: "json+base64", the outermost first. */
void chain_put_view(struct text *out, const struct view *v);

/* The same thing in the same place? */
bool chain_is_same_finding(const struct finding *a, const struct finding *b);

void chain_finish(struct chain_run **r);

#endif
