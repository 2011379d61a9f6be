/* Frames that nghttp2 passes over without a word: those of types that it does not know, and those of streams that are
 * over. They cost a peer next to nothing, so they have to be paid like all that carry nothing (THREATS T24). What came is
 * counted here, and so is what nghttp2 has told of: the rest was passed over. */
#ifndef CAGE_PROXY_H2_FRAMES_H
#define CAGE_PROXY_H2_FRAMES_H

#include <nghttp2/nghttp2.h>
#include <stdbool.h>

#include "core/base/slice.h"

#define H2_FRAME_HEAD 9

struct h2_frames {
	unsigned char head[H2_FRAME_HEAD];
	size_t have; /* bytes of a head */
	size_t skip; /* bytes of a payload that are still to come, or of the client's preface */
	size_t come; /* since the last look, less those that were told of */
};

/* has_preface: it is a client whose frames are counted. */
void h2_frames_init(struct h2_frames *f, bool has_preface);

/* Bytes that nghttp2 is about to get. */
void h2_frames_come(struct h2_frames *f, struct slice input);

/* nghttp2 has told of one. */
void h2_frames_told(struct h2_frames *f, const nghttp2_frame_hd *hd);

/* After nghttp2 has had all that came: how many it has passed over since this was asked last. DATA with bytes in them do
 * not count: an upload may be under way when its stream is reset. */
size_t h2_frames_passed_over(struct h2_frames *f);

#endif
