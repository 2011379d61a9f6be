/* What the files of the HTTP/1 codec share with each other. */
#ifndef CAGE_HTTP_H1_PRIVATE_H
#define CAGE_HTTP_H1_PRIVATE_H

#include "core/http/h1.h"

static inline enum cage_status h1_refuse(struct h1_error *err, enum reason reason, const char *what)
{
	*err = (struct h1_error){reason, what};
	return CAGE_EPROTO;
}

/* Cuts the first line off *rest and returns it without its CRLF. */
struct slice h1_cut_line(struct slice *rest);

/* section: the lines of a head or of trailers, without the empty one. Slices of the fields point into it. */
enum cage_status h1_parse_fields(struct slice section, struct arena *arena, struct field **fields, size_t *n,
				 struct h1_error *err) MUST_CHECK;

/* True for fields that change what a message is, where it goes or who may do it. Nobody may take one away through
 * Connection, or add one behind the body. */
bool h1_is_protected(struct slice name);

/* Reads Connection: drops what it names and sets keep_alive and expect_continue. */
enum cage_status h1_apply_connection(struct message *m, bool is_request, struct h1_error *err) MUST_CHECK;

/* Set how the end of the body is known. */
enum cage_status h1_frame_request(struct message *m, struct h1_error *err) MUST_CHECK;
enum cage_status h1_frame_response(struct message *m, struct slice method, struct h1_error *err) MUST_CHECK;

/* The fields of one id in a message: how many, and the first. */
size_t h1_count_fields(const struct message *m, enum field_id id, const struct field **first);

#endif
