/* How views work inside.
 *
 * A *layer* is one text of the tree: the outermost one, or one that a decoder makes of its parent. Each cuts what it is
 * fed into blocks of 64 bytes by their offset in the text, keeping what does not fill one; so all that is found depends
 * on the text alone, not on how it was cut. classify.h says what a block is made of. A block in which no encoding can
 * begin is done with; others go to the decoders, which put what they make into the layer's children.
 *
 * The first error stays in struct views, stops all work, and is returned by the call that ran into it. */
#ifndef CAGE_INSPECTORS_VIEWS_PRIVATE_H
#define CAGE_INSPECTORS_VIEWS_PRIVATE_H

#include "inspectors/views/classify.h"
#include "inspectors/views/views.h"

#define SHORT_RUN 128      /* runs with fewer characters or digits are only read when there is text in them */
#define RUN_GAP 24         /* bytes that may stand between two digits, or between two pieces of base64 */
#define VIEW_PACE 64       /* bytes of each open text that come with LIMIT_VIEW_LATE of the outermost one */
#define ESCAPE_NEAR 256    /* bytes before an escape that are read with it */
#define PERCENT_AFTER 4096 /* and behind it: a token that begins there is whole, ... */
#define JSON_AFTER 1024    /* ... but for the longest ones: escapes are in much of all JSON */
#define LAYER_HISTORY 256  /* bytes before a block that are known: as many as a decoder looks back */
#define LAYER_BUFFER 1024  /* decoded bytes that are handed on at once */

#define PADDING 0xff /* a byte of no kind: fills up a block */

/* The next bytes of a layer. */
struct block {
	const unsigned char *bytes;
	size_t len;    /* less than BLOCK only at the end of the text; masks have no bits for what is not there */
	size_t before; /* bytes of the text that stand in memory before them; older ones are in the history */
	uint64_t at;   /* offset in the text */
	const struct masks *masks;
	size_t index; /* in these masks */
};

/* Which bytes of a block, and of the one before it, are of that kind. */
static inline uint64_t block_now(const struct block *b, enum byte_kind kind)
{
	return b->masks->of[kind][b->index + 1];
}

static inline uint64_t block_last(const struct block *b, enum byte_kind kind)
{
	return b->masks->of[kind][b->index];
}

/* Where digits stand close together. */
static inline uint64_t block_stretches(const struct block *b)
{
	return b->masks->stretches[b->index];
}

/* Kept: not known yet whether it is worth reading. Open: it is decoded into children. */
enum run_state { RUN_NONE, RUN_KEPT, RUN_OPEN };

/* A run of base64 or hex: pieces of characters with gaps between them. */
struct run {
	enum run_state state;
	uint64_t start;  /* offset of the run */
	uint64_t length; /* its characters so far */
	uint64_t judged; /* as many of them have no text in them */
	uint64_t began;  /* how far the outermost text was read when the kept ones began */
	/* The part without loose gaps, which is what is reported; and what is at hand of its beginning. */
	uint64_t stretch_at, stretch;
	unsigned char first[RUN_START];
	/* The piece that goes on, and the gap behind it; and those before them. */
	uint64_t at; /* offset of what is being taken */
	uint64_t piece, last_piece;
	unsigned gap, quotes, commas, breaks;
	uint32_t gap_sum, last_gap_sum;
	bool gap_is_loose;
	unsigned char last; /* byte of the gap */
	/* The last characters, at their place in the run modulo the size. */
	unsigned char kept[SHORT_RUN];
};

/* Where the fours of base64 are. */
struct quads {
	uint64_t n;    /* characters since the start or the last '=' */
	uint32_t bits; /* the last of them, six bits each */
	unsigned turn; /* which child has the alignment that begins with the first of them */
	unsigned pads; /* '=' in a row */
};

/* Decoded bytes of the four alignments, from as many characters as a short run has. */
struct quad_bytes {
	unsigned char bytes[4][SHORT_RUN + 8];
	size_t n[4];
};

struct base64 {
	struct run run;
	struct quads quads;
	unsigned held; /* characters at the end of the last block that may not belong to the run */
};

struct hex {
	struct run run;
	bool is_loose;        /* found by its gaps: read where there is text, and not reported */
	bool zero_held;       /* a '0' that may be the one of "0x" */
	uint64_t n_put;       /* digits decoded since the start or the last repeat */
	unsigned char nibble; /* the last of them */
};

/* Of percent and of JSON escapes alike. */
struct escapes {
	size_t quiet; /* bytes since the last block with an escape in it */
	unsigned char raw[6];
	unsigned n_raw; /* bytes of an escape that has begun */
	unsigned code;  /* its digits so far */
	unsigned high;  /* first half of a surrogate pair, or 0 */
};

struct utf16 {
	unsigned run; /* bytes that alternate with NUL, counted up to UTF16_RUN */
	bool zero;    /* was the last one of them NUL? */
	uint64_t start;
	unsigned char first[UTF16_RUN / 2];
	unsigned n_first;
};

/* Children by what they are decoded from. Base64 has one for each alignment, hex one for each half of a byte that it
 * could begin with. */
enum child {
	CHILD_BASE64,
	CHILD_HEX = CHILD_BASE64 + 4,
	CHILD_PERCENT = CHILD_HEX + 2,
	CHILD_JSON,
	CHILD_UTF16,
	CHILDREN
};

struct layer {
	struct views *views;
	struct layer *next_free;
	struct view view;
	uint64_t origin;      /* where it begins in the outermost text */
	void *text;           /* the reader's, once there was something to read */
	uint64_t n_read;      /* bytes of it that were read, ... */
	uint64_t paced;       /* ... as many of them when ... */
	uint64_t paced_at;    /* ... so much of the outermost text had been */
	uint64_t at;          /* offset of the next block */
	bool is_busy;         /* some decoder is in the middle of something */
	uint64_t last[KINDS]; /* masks of the block before */
	bool is_odd;          /* if it is backslashes only: is their number odd, with those before it? */
	struct layer *children[CHILDREN];
	struct base64 base64;
	struct hex hex;
	struct escapes percent, json;
	struct utf16 utf16;
	size_t n_history, n_pending, n_buffer;
	unsigned char history[LAYER_HISTORY]; /* before the pending bytes; it ends where the array does */
	unsigned char pending[BLOCK];         /* not a block yet */
	unsigned char buffer[LAYER_BUFFER];   /* decoded, not handed on yet */
};

struct views {
	const struct view_reader *reader;
	void *arg;
	const struct classifier *classify;
	enum cage_status status;
	uint64_t n_fed, n_decoded; /* bytes */
	unsigned n_open;           /* decoded texts */
	struct layer *free;
	struct layer *root;
	struct masks masks[LIMIT_VIEW_DEPTH]; /* by depth: one layer of each is at work at a time */
};

/* ---- the tree: views.c ---- */

/* Opens a child that begins at that offset of its parent. Without room nothing is opened, and views->status says so. */
void layer_open(struct layer *parent, enum child child, uint64_t at);

/* Does nothing when the child is not open. */
void layer_put(struct layer *parent, enum child child, const void *bytes, size_t n);
void layer_close(struct layer *parent, enum child child);

/* Reports a run, if it is one of the outermost text. */
void layer_report(const struct layer *t, enum view_kind kind, uint64_t at, uint64_t length, struct slice start);

/* ---- blocks: layer.c ---- */

void layer_feed(struct layer *t, struct slice bytes);
void layer_end(struct layer *t);

/* Copies up to n bytes that stand directly before the block; returns how many there are. */
size_t block_before(const struct layer *t, const struct block *b, unsigned char *out, size_t n);

/* Is the number of backslashes directly before the block odd? */
bool block_is_behind_odd(const struct layer *t, const struct block *b);

/* ---- text.c ---- */

#define TEXT_SHORT 8 /* bytes of text in a row that count in one piece, ... */
#define TEXT_LONG 12 /* ... and in any that are joined */

/* least: one of these two. */
bool has_text(const unsigned char *bytes, size_t n, unsigned least);

/* ---- runs: run.c ---- */

void run_start(struct run *r, uint64_t at, uint64_t now);

/* Takes characters: counts them, and keeps the last ones, which those who need them seldom may do later. */
void run_take(struct run *r, const unsigned char *chars, size_t n);
void run_count(struct run *r, const unsigned char *chars, size_t n);
void run_keep(struct run *r, const unsigned char *chars, size_t n);

/* How many of n characters to take before it is judged whether a kept run is worth reading, and: is it time to? */
size_t run_until_due(const struct run *r, size_t n);
bool run_is_due(const struct run *r);

/* Is so much before the last loose gap that text of TEXT_LONG can be over it when behind it is less than TEXT_SHORT? */
bool run_is_joined(const struct run *r, unsigned per_byte);

/* Copies the last characters, up to n and SHORT_RUN of them; returns how many there are. */
size_t run_last(const struct run *r, size_t n, unsigned char out[SHORT_RUN]);

/* One more byte of a gap; false: it is too long. */
bool run_take_gap(struct run *r, unsigned char c);

/* Characters come behind a gap. True: these pieces and gaps are all alike, so they are one text. Otherwise they may as
 * well be two, and a text is to end before the gap and to go on behind it as well. */
bool run_cross_gap(struct run *r);

/* What is reported begins anew. */
void run_start_stretch(struct run *r);
void run_report(const struct layer *t, const struct run *r, enum view_kind kind);

/* ---- base64 at its four alignments: quads.c ---- */

void quads_put(struct quads *q, struct quad_bytes *d, const unsigned char *chars, size_t n);

/* At '=' or the end: two or three characters that wait for the rest of their four are one byte or two. */
void quads_end(const struct quads *q, struct quad_bytes *d);

/* ---- where hex starts: hex_find.c ---- */

#define HEX_LOOK_BACK 64 /* bytes: with more before, a run would have been seen to start earlier */

/* The first byte from `from` on with which a run may be seen to start, or BLOCK: plainly, or also by its gaps. */
unsigned hex_find_plain(const struct block *b, unsigned from);
unsigned hex_find(const struct layer *t, const struct block *b, unsigned from, bool *is_loose);

/* How many of the bytes before a digit, up to HEX_LOOK_BACK, belong to its run. *hex: which of these are digits. */
size_t hex_look_back(const unsigned char *bytes, size_t n, uint64_t *hex);

/* May it stand between digits? */
bool hex_is_gap(unsigned char c, unsigned char last);

/* ---- decoders: each looks at one block after another, from one in which it may start until it is idle ---- */

/* Are base64 characters in this block, or over the border to it, worth looking at? Most are words and paths. */
bool base64_is_likely(const struct layer *t, const struct block *b);

/* The same of digits that stand close together, most of which are ids and numbers. */
bool hex_is_likely(const struct layer *t, const struct block *b);
/* layer.c: is there something to decode in a text that is all there, padded to whole blocks? */
bool layer_may_open(struct layer *t, const unsigned char *bytes, size_t len);

void base64_block(struct layer *t, const struct block *b);
void base64_end(struct layer *t);
void hex_block(struct layer *t, const struct block *b);
void hex_end(struct layer *t);
void percent_block(struct layer *t, const struct block *b);
void percent_end(struct layer *t);
void json_block(struct layer *t, const struct block *b);
void json_end(struct layer *t);
void utf16_block(struct layer *t, const struct block *b);
void utf16_end(struct layer *t);

#endif
