/* Bytes that somebody else has written, on their way into JSON. A control byte becomes six there, so that a mebibyte of them would be
 * six: what is mostly such bytes, or has a NUL among them, is no text, and is told as base64. */
#ifndef CAGE_BASE_JSON_SUITS_H
#define CAGE_BASE_JSON_SUITS_H

#include "core/base/slice.h"

/* False: a NUL is in it, or it is long and would be more than twice as long as a string of JSON. Whether it is UTF-8 is not looked at. */
bool json_suits(struct slice bytes);

#endif
