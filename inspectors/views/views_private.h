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

#define SHORT_RUN 128     /* runs with fewer characters or digits are only read when there is text in them */
#define HEX_GAP 8         /* bytes that may stand between two digits */
#define ESCAPE_NEAR 256   /* bytes before an escape that are read with it */
#define ESCAPE_AFTER 1024 /* and behind it: a token that begins there is whole */
#define LAYER_HISTORY 256 /* bytes before a block that are known: as many as a decoder looks back */
#define LAYER_BUFFER 1024 /* decoded bytes that are handed on at once */

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

enum base64_state { BASE64_NONE, BASE64_CHARS, BASE64_BREAK, BASE64_BACKSLASH };

struct base64 {
	enum base64_state state;
	uint64_t start, length;         /* offset of the run; its characters so far */
	uint64_t line;                  /* characters since the last line end */
	unsigned breaks;                /* line ends in a row */
	uint64_t n;                     /* characters since the start or the last '=' */
	uint32_t bits;                  /* the last of them, six bits each */
	unsigned turn;                  /* which child has the alignment that begins with the first of them */
	unsigned pads;                  /* '=' in a row */
	unsigned char begin[SHORT_RUN]; /* its first characters, until it is known whether to read it */
};

enum hex_state { HEX_NONE, HEX_DIGITS };

struct hex {
	enum hex_state state;
	uint64_t start, length;         /* offset of the run; its digits so far */
	unsigned gap;                   /* bytes since the last digit */
	unsigned char last;             /* byte */
	bool zero_held;                 /* a '0' that may be the one of "0x" */
	unsigned char nibble;           /* the last digit */
	unsigned char begin[SHORT_RUN]; /* its first digits, until it is known whether to read it */
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
	uint64_t at;          /* offset of the next block */
	bool is_busy;         /* some decoder is in the middle of something */
	uint64_t last[KINDS]; /* masks of the block before */
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

/* ---- text.c ---- */

bool has_text(const unsigned char *bytes, size_t n);

/* ---- decoders: each looks at one block after another, from one in which it may start until it is idle ---- */

/* Are runs in this block, or over the border to it, worth looking at? Most are words and paths. */
bool base64_is_likely(const struct layer *t, const struct block *b);
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
