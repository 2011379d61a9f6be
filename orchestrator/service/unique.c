/* Random names. */
#include "orchestrator/service/unique.h"

#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/say.h"

#define LETTERS 16

void unique_text(const char *prefix, char *out, size_t room)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz234567";
	unsigned char bytes[LETTERS];
	char text[LETTERS + 1] = "";
	if (RAND_bytes(bytes, sizeof(bytes)) != 1) {
		say("there are no random bytes");
		abort();
	}
	for (size_t i = 0; i < LETTERS; i++)
		text[i] = letters[bytes[i] & 31];
	snprintf(out, room, "%s%s", prefix, text);
}
