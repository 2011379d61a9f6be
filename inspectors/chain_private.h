/* What the files of the chain share: a run and the inspections that it consists of. */
#ifndef CAGE_INSPECTORS_CHAIN_PRIVATE_H
#define CAGE_INSPECTORS_CHAIN_PRIVATE_H

#include "core/http/grpc.h"
#include "inspectors/chain.h"
#include "inspectors/chain_conf.h"
#include "inspectors/harmless.h"
#include "inspectors/head.h"
#include "inspectors/joined.h"
#include "inspectors/search.h"
#include "inspectors/table.h"

enum inspection_state { INSPECTION_ON, INSPECTION_HOLDING, INSPECTION_DONE };

struct inspection {
	const struct inspector *by;
	const struct inspector_conf *conf;
	enum inspection_state state;
	struct chain_run *run;
	void *own;       /* its zeroed state */
	const char *why; /* what its findings say beside their reason; NULL: nothing */
};

struct chain {
	const struct policy *policy;
	const struct chain_conf *conf;
	struct ledger *ledger;
	unsigned char key[CHAIN_KEY];
	struct external *external;  /* NULL: none */
	struct scan_set *own;       /* NULL: the policy adds no formats */
	struct known_set *known;    /* NULL: nothing is */
	struct harmless *harmless;  /* NULL until the first name */
	struct chain_search *spare; /* all of them look for what is known now */
	size_t n_spare;
};

/* A search and its place in the list of those that nobody uses. */
struct chain_search {
	struct search *search;
	struct chain_search *next;
};

/* A change to the fields of a request. */
struct rewrite {
	struct slice name, value; /* a value without ptr: the field is taken out */
	struct rewrite *next;
};

/* What becomes of a finding that blocks. */
enum run_mode {
	RUN_ENFORCES, /* it stops the request */
	RUN_OBSERVES, /* it is written down; only the guard's stop it */
	RUN_LISTS     /* nothing: the run is only to tell where something is */
};

/* How far a run has come; it only goes on. */
enum run_state {
	RUN_HEAD,
	RUN_BODY,
	RUN_BLIND, /* something could not be looked at, which is only observed: nor can the rest */
	RUN_BLOCKED
};

/* How a head is searched: as a whole, since that is cheap. What is encoded there shows where its view begins, not in which
 * part it stands; so then each part is looked at by itself. */
enum head_look {
	LOOK_WHOLE,
	LOOK_WHOLE_ENCODED, /* there was an encoded hit */
	LOOK_PART,
	LOOK_ROUGH /* as a whole, and the place is what it seems */
};

struct chain_run {
	struct chain *chain;
	struct arena *arena;
	struct subject subject;
	enum run_mode mode;
	struct known_set *known; /* when it began; NULL: nothing */
	struct chain_owner owner;
	enum run_state state;
	struct inspection *list;
	struct finding findings[LIMIT_FINDINGS];
	size_t n_findings;
	struct finding block; /* the first that blocks; by is NULL while there is none */
	bool hides_names;     /* of fields: a secret, canary or placeholder may be one of them */
	unsigned hides;       /* one bit for each place where one was found */
	uint64_t placed;      /* in the body: behind where the last placeholder that will be replaced begins; 0: none */
	struct finding deep;  /* one deeper down that may be the same, or not; by is NULL while there is none */
	uint64_t retry_after_us;
	struct rewrite *rewrites; /* in the order in which they were asked for */
	uint64_t raw_bytes, body_bytes;
	struct decoder *decoder;            /* NULL: the body is as it came */
	struct grpc_inflate *grpc;          /* NULL: its text is no gRPC */
	struct chain_search *body, *joined; /* NULL: not begun */
	/* The body with so many codings, but one, still on; the last: compressed messages of gRPC as they came. */
	struct chain_search *coded[LIMIT_CODINGS + 1];
	struct joined join;
	uint64_t text_start;             /* where in the body the text begins that is searched: a message of gRPC */
	struct chain_stream *stream;     /* that the message is of; NULL: it is a request */
	struct chain_stream *own_stream; /* the same, of the messages in a body of gRPC */
	struct chain_search *spliced[2]; /* what came before the message, and its beginning: of its kind, and of all */
	size_t spliced_bytes;            /* of the message, in them */
	bool is_brief;                   /* only the last bytes before it are in them */
	uint64_t spliced_start[2];       /* where in the body they begin, if all of them is there */
	bool looks_back;                 /* one of them is searched now, ... */
	uint64_t back_start;             /* ... which begins there */
	const struct head_text *head;    /* what is searched: a head, or NULL for the body */
	enum head_look look;
	size_t part; /* with LOOK_PART: where it begins */
};

/* Is the run still looking: neither blocked nor blind? */
static inline bool chain_looks(const struct chain_run *r)
{
	return r->state == RUN_HEAD || r->state == RUN_BODY;
}

/* Is that inspector to be asked? */
static inline bool chain_asks(const struct inspection *i)
{
	return i->conf->action != ACTION_OFF && i->state != INSPECTION_DONE && chain_looks(i->run);
}

/* Offers something to each inspector that is on: OFFER(run, on_body, (to, piece)). */
#define OFFER(run, function, arguments)                                    \
	for (size_t n_ = 0; n_ < n_inspectors; n_++) {                     \
		struct inspection *to = &(run)->list[n_];                  \
		if (to->by->function && chain_asks(to))                    \
			chain_take_answer(to, to->by->function arguments); \
	}

/* findings.c: writes a finding down, and blocks if it does. */
void chain_add_finding(struct chain_run *r, const struct finding *f);

/* What the chain itself finds, when it could not look. */
void chain_fault(struct chain_run *r, enum reason reason);

void chain_take_answer(struct inspection *i, enum inspect_result result);

/* chain_stream.c: the next piece of a message; it is looked at together with what came before. */
void chain_stream_begin(struct chain_run *r);
void chain_stream_piece(struct chain_run *r, struct slice piece);
void chain_stream_end(struct chain_run *r);

/* What leaves before the next message and is no part of it. */
void chain_stream_prefix(struct chain_run *r, struct slice prefix);

/* What brief messages owe is searched now. */
void chain_stream_settle(struct chain_run *r);

/* Was this told of an earlier message, in which it was already? */
bool chain_stream_has_told(const struct chain_run *r, const struct scan_hit *hit);

/* chain_search.c: a search that reports to the run; NULL, with a fault, without memory. */
struct chain_search *chain_search_take(struct chain_run *r);
void chain_search_give_back(struct chain *c, struct chain_search **cs);
void chain_search_free_all(struct chain *c);

/* What a search has answered: a fault unless it is good. */
void chain_search_result(struct chain_run *r, enum cage_status st);

/* All of a head. */
void chain_search_head(struct chain_run *r, const struct head_text *text);

#endif
