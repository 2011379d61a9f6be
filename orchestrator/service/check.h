/* Holding JSON to a shape. Each wrong value is told with its place as a JSON pointer, all of them at once. */
#ifndef CAGE_SERVICE_CHECK_H
#define CAGE_SERVICE_CHECK_H

#include <jansson.h>
#include <stdbool.h>

#include "core/base/slice.h"

/* A value's place: a chain on the stack, from the value up to the root. */
struct place {
	json_t *errors;         /* list of {pointer, detail} */
	const struct place *up; /* NULL: the root */
	const char *key;        /* in an object; NULL: in a list, ... */
	size_t index;           /* ... there */
};

void place_error(const struct place *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* pointer: the place; NULL: there is none. */
void errors_add(json_t *errors, const char *pointer, const char *detail);

typedef void checker(const struct place *p, const json_t *value);

struct member {
	const char *name;
	checker *check;
	bool required;
};

/* An object that has those fields and no other; false: it is none. */
bool check_object(const struct place *p, const json_t *value, const struct member *fields, size_t n);

/* Each value of an object with names that are good. what: for the error. */
void check_map(const struct place *p, const json_t *value, size_t most, bool (*name_is_good)(struct slice),
	       const char *what, checker *each);

/* Each value of a list. */
bool check_list(const struct place *p, const json_t *value, size_t least, size_t most, checker *each);

/* No string twice. */
void check_unique(const struct place *p, const json_t *list);

bool check_text(const struct place *p, const json_t *value, size_t least, size_t most);
bool check_number(const struct place *p, const json_t *value, json_int_t least, json_int_t most);
void check_any_text(const struct place *p, const json_t *value);
void check_flag(const struct place *p, const json_t *value);

/* Letters, digits, '.', '_' and '-', up to 64. */
void check_name(const struct place *p, const json_t *value);
bool name_is_plain(struct slice s);

#endif
