/* Whether a policy that was compiled before need not be compiled again: patterns take seconds, a hash does not. */
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/text.h"
#include "core/policy/policy.h"

#define PIECE KIB(16)

/* Nothing but its own file was read for it, and values that can't change while we run. */
static bool is_whole_in_its_file(const struct policy *p)
{
	for (size_t i = 0; i < p->n_secrets; i++)
		if (p->secrets[i].from != SECRET_ENV)
			return false;
	return p->files && !p->files->next;
}

static bool add_all(EVP_MD_CTX *ctx, int fd)
{
	char piece[PIECE];
	size_t all = 0;
	while (all <= LIMIT_POLICY_FILE) {
		const ssize_t n = read(fd, piece, sizeof(piece));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n == 0;
		if (!EVP_DigestUpdate(ctx, piece, (size_t)n))
			return false;
		all += (size_t)n;
	}
	return false;
}

static bool hash_file(int fd, char out[65])
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned len = 0;
	struct stat st;
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	const bool ok = ctx && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
			EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) && add_all(ctx, fd) &&
			EVP_DigestFinal_ex(ctx, digest, &len);
	EVP_MD_CTX_free(ctx);
	struct text t = text_in(out, 64);
	text_put_hex(&t, digest, len);
	out[t.len] = '\0';
	return ok && text_ok(&t);
}

bool policy_is_as_in(const struct policy *p, const char *path)
{
	char sha[65] = "";
	if (!is_whole_in_its_file(p))
		return false;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return false;
	const bool ok = hash_file(fd, sha);
	close(fd);
	return ok && strcmp(sha, p->sha) == 0;
}
