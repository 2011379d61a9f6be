/* The signer: a process of its own that alone holds the CA key. Workers send it names and get leaves back. */
#ifndef CAGE_PROXY_SIGNER_H
#define CAGE_PROXY_SIGNER_H

#include <openssl/evp.h>

#include "core/base/limits.h"

#define SIGNER_LEAF_ROOM 4096

enum signer_answer { SIGNER_OK = 1, SIGNER_RATE_LIMITED, SIGNER_REFUSED };

/* One packet each way: a request is the canonical name alone, a reply is this. */
struct signer_reply {
	uint32_t answer; /* enum signer_answer */
	uint32_t name_len, leaf_len;
	char name[LIMIT_HOST + 1];
	unsigned char leaf[SIGNER_LEAF_ROOM]; /* DER */
};

struct signer_config {
	const char *ca_dir;
	EVP_PKEY *leaf_key;
	int control;        /* to the master */
	const int *clients; /* to the workers; -1: none */
	size_t n_clients;
};

/* Never returns. */
_Noreturn void signer_run(const struct signer_config *config);

#endif
