/* The digest of a trust store (jks_entries.h), and its file. */
#include "orchestrator/jks.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/slice.h"
#include "orchestrator/jks_entries.h"

#define PATH_ROOM 4200

/* What is written is digested. */
struct jks {
	FILE *f;
	EVP_MD_CTX *digest;
	bool failed;
};

static void put(void *arg, const void *bytes, size_t n)
{
	struct jks *j = arg;
	if (fwrite(bytes, 1, n, j->f) != n || EVP_DigestUpdate(j->digest, bytes, n) != 1)
		j->failed = true;
}

/* The digest begins with the password in UTF-16 and these words. */
static bool begin_digest(struct jks *j)
{
	static const char words[] = "Mighty Aphrodite";
	bool ok = EVP_DigestInit_ex(j->digest, EVP_sha1(), NULL) == 1;
	for (const char *c = JKS_PASSWORD; *c && ok; c++) {
		const char wide[2] = {0, *c};
		ok = EVP_DigestUpdate(j->digest, wide, 2) == 1;
	}
	return ok && EVP_DigestUpdate(j->digest, words, sizeof(words) - 1) == 1;
}

static bool end_digest(struct jks *j)
{
	unsigned char sum[EVP_MAX_MD_SIZE];
	unsigned n = 0;
	return EVP_DigestFinal_ex(j->digest, sum, &n) == 1 && fwrite(sum, 1, n, j->f) == n;
}

bool jks_write(const char *dir, const char *name, const char *pem, size_t len)
{
	char path[PATH_ROOM];
	struct jks j = {.digest = EVP_MD_CTX_new()};
	if (snprintf(path, sizeof(path), "%s/%s", dir, name) < (int)sizeof(path))
		j.f = fopen(path, "we");
	bool ok = j.f && j.digest && begin_digest(&j);
	if (ok) {
		ok = jks_entries(slice_of(pem, len), put, &j) && end_digest(&j) && !j.failed &&
		     fchmod(fileno(j.f), 0644) == 0;
	}
	if (j.f)
		ok = fclose(j.f) == 0 && ok;
	EVP_MD_CTX_free(j.digest);
	return ok;
}
