/* Views: what a text could be once it is decoded, found and decoded while it streams by (THREATS T29).
 *
 * The text itself is the first view. Inside it every run that could be an encoding is decoded and becomes a text of its
 * own, in which runs are looked for again, LIMIT_VIEW_DEPTH deep: base64 and base64url (with '=' or without, at each of the
 * four alignments, since what stands before a run may look like a part of it; in pieces too, as lines with indentation, as
 * strings of a list, or added up by a program), hex (also with separators, in groups of any size: "41:42", "4142 4344",
 * "\x41\x42", "0x41, 0x42", lists of strings), percent and JSON escapes (the escape and what is around it, since half of a
 * secret may be plain), UTF-16 of both orders. Only such runs are decoded, never the whole text once more, and the work
 * for all of them together is bounded by what the text itself is long.
 *
 * Pieces may be one value or several. So where they are not all alike a text ends before the gap with a line end, and
 * goes on with what it has had last and what comes behind the gap.
 *
 * Words, paths, ids and digests look like base64 or hex too. So runs shorter than 128 characters, and those of short
 * pieces, are only decoded when there is text in them: in hex eight bytes of ASCII, UTF-8 or UTF-16 in a row, in base64
 * eleven, where UTF-8 beyond ASCII is missed if its base64 happens to have no digit, or letters of one case only; over
 * gaps with quotes, and in groups of hex that are not at one distance, twelve. The first piece of base64 has 20
 * characters, others have 16, but for the last one; groups of hex stand so close that in any eight bytes of 31 two digits
 * are side by side.
 *
 * Pieces may be cut anywhere: what is found does not depend on it. */
#ifndef CAGE_INSPECTORS_VIEWS_H
#define CAGE_INSPECTORS_VIEWS_H

#include "core/base/limits.h"
#include "core/base/slice.h"
#include "core/base/status.h"

enum view_kind { VIEW_BASE64, VIEW_HEX, VIEW_PERCENT, VIEW_JSON, VIEW_UTF16, VIEW_KINDS };

/* How a text came about: what was decoded, outermost first. Depth 0: the text itself. */
struct view {
	unsigned depth;
	enum view_kind kinds[LIMIT_VIEW_DEPTH];
};

/* "base64", "hex" and so on. */
struct slice view_kind_text(enum view_kind kind);

#define RUN_START 64 /* encoded bytes that are reported of the beginning of a run */

/* Who reads the texts, the outermost one too. begin, read and end are called for one text after another and for several
 * side by side; they belong together by what begin has returned. */
struct view_reader {
	/* A text begins at that offset of the outermost one. NULL: no memory. */
	void *(*begin)(void *arg, const struct view *view, uint64_t offset);
	/* Its next bytes. CAGE_OK, or a status that ends everything. */
	enum cage_status (*read)(void *text, struct slice bytes);
	/* It is over; text is not used again. */
	enum cage_status (*end)(void *text);
	/* A run of base64 or hex of the outermost text was decoded and has ended: length is that of its characters
	 * or digits, without what stands between them. The strings of a list are several. */
	void (*run)(void *arg, enum view_kind kind, uint64_t offset, uint64_t length, struct slice start);
};

struct views;

/* NULL: no memory. */
struct views *views_new(const struct view_reader *reader, void *arg);

/* CAGE_OK, CAGE_ENOMEM, CAGE_ELIMIT (more nested encodings than the work allowed for, or one so thin that what is in it
 * would be found late), or what the reader said. After anything but CAGE_OK only views_reset and views_free may be
 * called. */
enum cage_status views_feed(struct views *v, struct slice piece) MUST_CHECK;

/* Is there something in this text, of at most VIEWS_LOOK bytes, that would be decoded? It is not read; the bytes behind it
 * that VIEWS_ROOM is for are overwritten. Only between texts. */
#define VIEWS_LOOK 2048
#define VIEWS_ROOM(n) (((n) + 63) / 64 * 64)
bool views_may_decode(struct views *v, char *text, size_t n);

/* The text is over: every run in it is too. */
enum cage_status views_end(struct views *v) MUST_CHECK;

/* Ready for another text, with memory kept. Open texts are ended without being read further. */
void views_reset(struct views *v);

void views_free(struct views **v);

#endif
