/* The two values of the opening handshake: the client's nonce, and what the server makes of it to show that it speaks
 * WebSocket. SHA-1 keeps nothing secret here. */
#include "core/http/ws.h"

#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#define NONCE_BYTES 16
#define GUID "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

/* room: a multiple of four, all of which is filled. */
static void put_base64(char *out, size_t room, const unsigned char *bytes, int n)
{
	unsigned char text[WS_ACCEPT_LEN + 1]; /* EVP_EncodeBlock adds a NUL */
	EVP_EncodeBlock(text, bytes, n);
	memcpy(out, text, room);
}

bool ws_make_nonce(char out[WS_NONCE_LEN])
{
	unsigned char bytes[NONCE_BYTES];
	if (RAND_bytes(bytes, sizeof(bytes)) != 1)
		return false;
	put_base64(out, WS_NONCE_LEN, bytes, sizeof(bytes));
	return true;
}

bool ws_make_accept(struct slice nonce, char out[WS_ACCEPT_LEN])
{
	char joined[WS_NONCE_LEN + sizeof(GUID) - 1];
	unsigned char sum[SHA_DIGEST_LENGTH];
	if (nonce.len != WS_NONCE_LEN)
		return false;
	memcpy(joined, nonce.ptr, WS_NONCE_LEN);
	memcpy(joined + WS_NONCE_LEN, GUID, sizeof(GUID) - 1);
	if (EVP_Digest(joined, sizeof(joined), sum, NULL, EVP_sha1(), NULL) != 1)
		return false;
	put_base64(out, WS_ACCEPT_LEN, sum, sizeof(sum));
	return true;
}
