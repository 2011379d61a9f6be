/* Making, keeping and using the CA. Runs in the signer process only. */
#include "proxy/ca.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/say.h"
#include "core/net/trust.h"
#include "core/proc/key_file.h"

#define CA_DAYS 3650
#define LEAF_BACKDATE_S 3600        /* for clients whose clock is behind */
#define LEAF_LIFE_S (6 * 24 * 3600) /* with the backdate less than seven days */
#define PATH_ROOM 4096
#define SAN_ROOM 512

/* Adds an extension that OpenSSL's own configuration language describes. */
static bool add_ext(X509 *cert, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX ctx;
	X509V3_set_ctx_nodb(&ctx);
	X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
	X509_EXTENSION *ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	bool ok = ext && X509_add_ext(cert, ext, -1);
	X509_EXTENSION_free(ext);
	return ok;
}

static bool set_random_serial(X509 *cert)
{
	unsigned char bytes[16];
	if (RAND_bytes(bytes, sizeof(bytes)) != 1)
		return false;
	bytes[0] = (unsigned char)((bytes[0] & 0x7f) | 0x40); /* positive, and always of the same length */
	BIGNUM *bn = BN_bin2bn(bytes, sizeof(bytes), NULL);
	bool ok = bn && BN_to_ASN1_INTEGER(bn, X509_get_serialNumber(cert));
	BN_free(bn);
	return ok;
}

static X509 *ca_make_cert(EVP_PKEY *key)
{
	X509 *x = X509_new();
	if (!x)
		return NULL;
	X509_NAME *name = X509_get_subject_name(x);
	if (X509_set_version(x, X509_VERSION_3) && set_random_serial(x) &&
	    X509_gmtime_adj(X509_getm_notBefore(x), -LEAF_BACKDATE_S) &&
	    X509_time_adj_ex(X509_getm_notAfter(x), CA_DAYS, 0, NULL) &&
	    X509_NAME_add_entry_by_txt(name, "O", MBSTRING_ASC, (const unsigned char *)"cage", -1, -1, 0) &&
	    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"cage sandbox CA", -1, -1, 0) &&
	    X509_set_issuer_name(x, name) && X509_set_pubkey(x, key) &&
	    add_ext(x, x, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
	    add_ext(x, x, NID_key_usage, "critical,keyCertSign,cRLSign") &&
	    add_ext(x, x, NID_subject_key_identifier, "hash") && X509_sign(x, key, EVP_sha256()) > 0)
		return x;
	X509_free(x);
	return NULL;
}

/* Writes to a temporary file and renames: a reader sees the old or the new file, never half of one. */
static FILE *open_new(const char *dir, const char *name, mode_t mode, char tmp[PATH_ROOM])
{
	if (snprintf(tmp, PATH_ROOM, "%s/.%s.%d", dir, name, (int)getpid()) >= PATH_ROOM)
		return NULL;
	unlink(tmp);
	int fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
	return fd < 0 ? NULL : fdopen(fd, "w");
}

static bool close_new(FILE *f, bool ok, const char *dir, const char *name, const char *tmp)
{
	char path[PATH_ROOM];
	ok = ok && fflush(f) == 0 && fsync(fileno(f)) == 0;
	ok = fclose(f) == 0 && ok;
	ok = ok && snprintf(path, sizeof(path), "%s/%s", dir, name) < (int)sizeof(path) && rename(tmp, path) == 0;
	if (!ok)
		unlink(tmp);
	return ok;
}

static bool ca_make(struct ca *ca, const char *dir)
{
	char tmp[PATH_ROOM];
	ca->key = EVP_EC_gen("P-256");
	ca->cert = ca->key ? ca_make_cert(ca->key) : NULL;
	if (!ca->cert)
		return false;
	FILE *f = open_new(dir, "ca.key", 0600, tmp);
	if (!f ||
	    !close_new(f, PEM_write_PKCS8PrivateKey(f, ca->key, NULL, NULL, 0, NULL, NULL) == 1, dir, "ca.key", tmp))
		return false;
	f = open_new(dir, "ca.pem", 0644, tmp);
	return f && close_new(f, PEM_write_X509(f, ca->cert) == 1, dir, "ca.pem", tmp);
}

static FILE *open_in(const char *dir, const char *name)
{
	char path[PATH_ROOM];
	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path))
		return NULL;
	return fopen(path, "re");
}

/* Both files, or neither: a CA of which one half is missing is an error, not a reason to make a new one. */
static bool ca_load(struct ca *ca, const char *dir, bool *absent)
{
	FILE *cert = open_in(dir, "ca.pem");
	bool no_cert = !cert && errno == ENOENT;
	FILE *key = open_in(dir, "ca.key");
	bool no_key = !key && errno == ENOENT;
	*absent = no_cert && no_key;
	if (cert)
		ca->cert = PEM_read_X509(cert, NULL, NULL, NULL);
	if (key)
		ca->key = PEM_read_PrivateKey(key, NULL, NULL, NULL);
	if (cert)
		fclose(cert);
	if (key)
		fclose(key);
	return ca->cert && ca->key && X509_check_private_key(ca->cert, ca->key) == 1 && X509_check_ca(ca->cert) > 0;
}

/* The system's certificates and ours, in memory. */
static bool make_bundle(const struct ca *ca, char **text, size_t *len)
{
	*text = NULL;
	FILE *f = open_memstream(text, len);
	if (!f)
		return false;
	bool ok = trust_copy_system(f) && PEM_write_X509(f, ca->cert) == 1;
	return fclose(f) == 0 && ok;
}

static bool is_same(const char *dir, const char *name, const char *text, size_t len)
{
	char buf[16384];
	size_t n, at = 0;
	bool same = true;
	FILE *f = open_in(dir, name);
	if (!f)
		return false;
	while (same && (n = fread(buf, 1, sizeof(buf), f)) > 0) {
		same = n <= len - at && memcmp(buf, text + at, n) == 0;
		at += n;
	}
	same = same && !ferror(f) && at == len;
	fclose(f);
	return same;
}

/* Left as it is where nothing has changed: bringing it to the disk is what takes longest of all that the signer does. */
static bool write_bundle(const struct ca *ca, const char *dir)
{
	char tmp[PATH_ROOM], *text = NULL;
	size_t len = 0;
	bool ok = make_bundle(ca, &text, &len);
	if (ok && !is_same(dir, "bundle.pem", text, len)) {
		FILE *f = open_new(dir, "bundle.pem", 0644, tmp);
		ok = f && close_new(f, fwrite(text, 1, len, f) == len, dir, "bundle.pem", tmp);
	}
	free(text);
	return ok;
}

/* Which half is the trouble. A new CA is made only where there is none at all: clients may trust the old one. */
static void say_broken(const struct ca *ca, const char *dir)
{
	if (!ca->cert)
		say("%s/ca.pem is missing, can't be read or is no certificate", dir);
	if (!ca->key)
		say("%s/ca.key is missing, can't be read by this user or is no private key", dir);
	if (ca->cert && ca->key)
		say("%s: ca.key does not belong to ca.pem, or ca.pem is not a CA", dir);
	say("bring both files back, or give another --ca-dir; a new CA is made where neither is");
}

bool ca_open(struct ca *ca, const char *dir)
{
	bool absent = false;
	*ca = (struct ca){0};
	if (!key_dir_make(dir)) {
		say("--ca-dir %s: %s", dir, strerror(errno));
		return false;
	}
	if (!ca_load(ca, dir, &absent) && !absent) {
		say_broken(ca, dir);
		ca_close(ca);
		return false;
	}
	if ((absent && !ca_make(ca, dir)) || !write_bundle(ca, dir)) {
		say("--ca-dir %s: can't write ca.key, ca.pem and bundle.pem: %s", dir, strerror(errno));
		ca_close(ca);
		return false;
	}
	return true;
}

void ca_close(struct ca *ca)
{
	X509_free(ca->cert);
	EVP_PKEY_free(ca->key);
	*ca = (struct ca){0};
}

static bool add_san(X509 *cert, X509 *issuer, const struct host *host)
{
	char value[SAN_ROOM];
	int n = snprintf(value, sizeof(value), "critical,%s:%.*s", host->kind == HOST_ADDRESS ? "IP" : "DNS",
			 SLICE_FMT(host->text));
	return n > 0 && (size_t)n < sizeof(value) && add_ext(cert, issuer, NID_subject_alt_name, value);
}

/* The public key as raw bytes: OpenSSL's own way goes through its encoders and costs more than all the rest of a leaf. */
static bool set_leaf_key(X509 *cert, EVP_PKEY *key)
{
	unsigned char *point = NULL;
	size_t len = EVP_PKEY_get1_encoded_public_key(key, &point);
	ASN1_OBJECT *curve = OBJ_nid2obj(NID_X9_62_prime256v1);
	if (len > 0 && X509_PUBKEY_set0_param(X509_get_X509_PUBKEY(cert), OBJ_nid2obj(EVP_PKEY_EC), V_ASN1_OBJECT,
					      curve, point, (int)len) == 1)
		return true; /* the certificate owns the bytes now */
	OPENSSL_free(point);
	return false;
}

X509 *ca_mint(const struct ca *ca, const struct host *host, EVP_PKEY *leaf_key)
{
	X509 *x = X509_new();
	if (!x)
		return NULL;
	if (X509_set_version(x, X509_VERSION_3) && set_random_serial(x) &&
	    X509_gmtime_adj(X509_getm_notBefore(x), -LEAF_BACKDATE_S) &&
	    X509_gmtime_adj(X509_getm_notAfter(x), LEAF_LIFE_S) &&
	    X509_set_issuer_name(x, X509_get_subject_name(ca->cert)) && set_leaf_key(x, leaf_key) &&
	    add_ext(x, ca->cert, NID_basic_constraints, "critical,CA:FALSE") &&
	    add_ext(x, ca->cert, NID_key_usage, "critical,digitalSignature") &&
	    add_ext(x, ca->cert, NID_ext_key_usage, "serverAuth") && add_san(x, ca->cert, host) &&
	    add_ext(x, ca->cert, NID_subject_key_identifier, "hash") &&
	    add_ext(x, ca->cert, NID_authority_key_identifier, "keyid") && X509_sign(x, ca->key, EVP_sha256()) > 0)
		return x;
	X509_free(x);
	return NULL;
}
