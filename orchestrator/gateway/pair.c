/* OpenSSL is asked, so that it is said here what it would refuse later. */
#include "orchestrator/gateway/pair.h"

#include <openssl/err.h>

/* Nobody is there to type one in. */
static int no_password(char *out, int room, int is_new, void *arg)
{
	(void)out, (void)room, (void)is_new, (void)arg;
	return -1;
}

enum pair_fault pair_use(SSL_CTX *ctx, const char *cert, const char *key)
{
	SSL_CTX_set_default_passwd_cb(ctx, no_password);
	if (SSL_CTX_use_certificate_chain_file(ctx, cert) != 1)
		return PAIR_NO_CERTIFICATE;
	ERR_clear_error();
	if (SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) == 1 && SSL_CTX_check_private_key(ctx) == 1)
		return PAIR_GOOD;
	return ERR_GET_LIB(ERR_peek_last_error()) == ERR_LIB_X509 ? PAIR_OTHER_KEY : PAIR_NO_KEY;
}
