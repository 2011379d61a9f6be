/* Who may ask: over a unix socket the user of the service and root, over TCP who has the token. */
#include "orchestrator/service/access.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/say.h"
#include "core/base/text.h"
#include "orchestrator/service/http_private.h"

#define TOKEN_BYTES 32
#define HASH_TEXT (7 + 2 * SHA256_DIGEST_LENGTH) /* "sha256:" and hex */

static void hash_text(struct slice token, char out[HASH_TEXT])
{
	unsigned char digest[SHA256_DIGEST_LENGTH];
	struct text t = text_in(out, HASH_TEXT);
	SHA256((const unsigned char *)token.ptr, token.len, digest);
	text_put(&t, SLICE("sha256:"));
	text_put_hex(&t, digest, sizeof(digest));
}

static bool read_hash(const char *state, char out[HASH_TEXT])
{
	char path[BACKEND_PATH];
	snprintf(path, sizeof(path), "%s/token", state);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t n = fd >= 0 ? read(fd, out, HASH_TEXT) : -1;
	if (fd >= 0)
		close(fd);
	return n == HASH_TEXT && memcmp(out, "sha256:", 7) == 0;
}

bool access_has_token(const char *state)
{
	char hash[HASH_TEXT];
	return read_hash(state, hash);
}

static bool write_hash(const char *state, struct slice token)
{
	char path[BACKEND_PATH], part[BACKEND_PATH + 8], hash[HASH_TEXT + 1];
	snprintf(path, sizeof(path), "%s/token", state);
	snprintf(part, sizeof(part), "%s.part", path);
	hash_text(token, hash);
	hash[HASH_TEXT] = '\n';
	int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	bool ok = fd >= 0 && write(fd, hash, sizeof(hash)) == (ssize_t)sizeof(hash) && fsync(fd) == 0;
	if (fd >= 0)
		close(fd);
	if (ok && rename(part, path) == 0)
		return true;
	say("%s: %s", path, strerror(errno));
	return false;
}

bool access_new_token(const char *state)
{
	unsigned char bytes[TOKEN_BYTES];
	char token[2 * TOKEN_BYTES];
	struct text t = text_in(token, sizeof(token));
	if (RAND_bytes(bytes, sizeof(bytes)) != 1) {
		say("there are no random bytes");
		return false;
	}
	bool had_one = access_has_token(state);
	text_put_hex(&t, bytes, sizeof(bytes));
	bool ok = write_hash(state, text_slice(&t)) && printf("%.*s\n", (int)sizeof(token), token) > 0 &&
		  fflush(stdout) == 0;
	if (ok && had_one)
		say("the token before this one is good no longer");
	OPENSSL_cleanse(bytes, sizeof(bytes));
	OPENSSL_cleanse(token, sizeof(token));
	return ok;
}

/* ---- each connection and request ---- */

enum conn_peer access_peer(int fd)
{
	struct sockaddr_storage at = {.ss_family = AF_UNSPEC};
	struct ucred who;
	socklen_t len = sizeof(at), who_len = sizeof(who);
	if (getsockname(fd, (struct sockaddr *)&at, &len) != 0)
		return PEER_STRANGER;
	if (at.ss_family != AF_UNIX)
		return PEER_TCP;
	bool is_ours =
		getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &who_len) == 0 && (who.uid == geteuid() || who.uid == 0);
	return is_ours ? PEER_OURS : PEER_STRANGER;
}

static bool token_is_good(struct request *r)
{
	char known[HASH_TEXT], given[HASH_TEXT];
	const char *field = request_field(r, "authorization");
	if (!field || strncasecmp(field, "Bearer ", 7) != 0 || !read_hash(r->service->config.state, known))
		return false;
	hash_text(slice_str(field + 7), given);
	return slice_eq_secret(slice_of(known, HASH_TEXT), slice_of(given, HASH_TEXT));
}

/* These say nothing that is worth hiding. */
static bool is_open_to_all(const struct request *r)
{
	return slice_eq(r->head.target, SLICE("/healthz")) || slice_eq(r->head.target, SLICE("/openapi.yaml"));
}

int access_check(struct request *r)
{
	switch (r->conn->peer) {
	case PEER_OURS:
		return 0;
	case PEER_TCP:
	case PEER_TOKEN:
		if (token_is_good(r)) {
			r->conn->peer = PEER_TOKEN;
			return 0;
		}
		return is_open_to_all(r) ? 0 : 401;
	case PEER_STRANGER:
		break;
	}
	return 403;
}
