/* A file of CHAIN_KEY random bytes. */
#include "proxy/fingerprint_key.h"

#include "proxy/key_file.h"

bool fingerprint_key_open(const char *dir, unsigned char key[CHAIN_KEY])
{
	return key_file_open(dir, "fingerprint.key", key, CHAIN_KEY);
}
