/* The texts of a head: what is looked at of a request line and its fields, as one buffer that knows what stands where. */
#ifndef CAGE_INSPECTORS_HEAD_H
#define CAGE_INSPECTORS_HEAD_H

#include "inspectors/inspector.h"

struct head_part {
	size_t start; /* in the text */
	enum place place;
	struct slice name; /* of the field */
	bool is_joined;    /* values of several fields, without their names */
};

struct head_text {
	struct slice text;
	struct head_part *parts; /* in the order of the text; the first starts at 0 */
	size_t n_parts;
};

/* The method unless it is a usual one, path, query and every field that is sent on, each on a line of its own; then the same joined, so that what was split
 * over segments, parameters, fields or cookies is whole again (THREATS T28). Of the search_head and search_target, if the subject
 * has them. Lives in the arena. */
enum cage_status head_text_make(const struct subject *s, struct arena *arena, struct head_text *out) MUST_CHECK;

/* A name as it is and without its dots, each on a line, and both once more in upper case: a name has no case, so what has to
 * be in upper case elsewhere, such as an id of an access key, can stand there in lower case and lose nothing. Returns how
 * much of the room that is. */
#define HEAD_NAME_TEXT(n) (4 * (n) + 4)
size_t head_name_text(struct slice name, char *out);

/* That of the host. */
enum cage_status head_text_make_name(const struct subject *s, struct arena *arena, struct head_text *out) MUST_CHECK;

/* The same of trailers. */
enum cage_status head_text_make_trailers(const struct field *fields, size_t n, struct arena *arena,
					 struct head_text *out) MUST_CHECK;

/* Where the byte at that offset stands. */
struct spot head_text_spot(const struct head_text *h, uint64_t offset);

#endif
