/* The names, and the method by which a store asks for certificates of a name. */
#include "core/net/trust_index.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 256
#define VERSION_TAG 0xa0 /* of the field that certificates of version 1 don't have */

struct entry {
	X509_NAME *subject;
	unsigned char *der;
	long len;
};

struct trust_index {
	struct entry *list;
	size_t n, room;
};

/* ---- reading ---- */

/* Past the head of an element with that tag. */
static bool enter(const unsigned char **p, const unsigned char *end, int tag, long *len)
{
	int found, class;
	int how = ASN1_get_object(p, len, &found, &class, end - *p);
	return !(how & 0x81) && class == V_ASN1_UNIVERSAL && found == tag; /* neither broken nor of unknown length */
}

static bool skip(const unsigned char **p, const unsigned char *end, int tag)
{
	long len;
	if (!enter(p, end, tag, &len))
		return false;
	*p += len;
	return true;
}

static bool skip_version(const unsigned char **p, const unsigned char *end)
{
	long len;
	int tag, class;
	if (*p == end || **p != VERSION_TAG)
		return true;
	if (ASN1_get_object(p, &len, &tag, &class, end - *p) & 0x81)
		return false;
	*p += len;
	return true;
}

/* Certificate ::= { tbs { [version], serial, algorithm, issuer, validity, subject, ... */
static X509_NAME *subject_of(const unsigned char *p, long len)
{
	const unsigned char *end = p + len;
	if (!enter(&p, end, V_ASN1_SEQUENCE, &len) || !enter(&p, end, V_ASN1_SEQUENCE, &len))
		return NULL;
	if (!skip_version(&p, end) || !skip(&p, end, V_ASN1_INTEGER) || !skip(&p, end, V_ASN1_SEQUENCE) ||
	    !skip(&p, end, V_ASN1_SEQUENCE) || !skip(&p, end, V_ASN1_SEQUENCE))
		return NULL;
	return d2i_X509_NAME(NULL, &p, end - p);
}

static bool has_room(struct trust_index *index)
{
	if (index->n < index->room)
		return true;
	size_t room = index->room ? 2 * index->room : FIRST_ROOM;
	struct entry *list = reallocarray(index->list, room, sizeof(*list));
	if (!list)
		return false;
	index->list = list;
	index->room = room;
	return true;
}

/* Takes the bytes over, or frees them. */
static bool add(struct trust_index *index, unsigned char *der, long len)
{
	X509_NAME *subject = subject_of(der, len);
	bool ok = has_room(index);
	if (ok && subject) {
		index->list[index->n++] = (struct entry){subject, der, len};
		return true;
	}
	X509_NAME_free(subject);
	OPENSSL_free(der);
	return ok;
}

struct trust_index *trust_index_read(FILE *pem)
{
	struct trust_index *index = calloc(1, sizeof(*index));
	char *name, *header;
	unsigned char *der;
	long len;
	bool ok = index != NULL;
	while (ok && PEM_read(pem, &name, &header, &der, &len) == 1) {
		if (strcmp(name, PEM_STRING_X509) == 0)
			ok = add(index, der, len);
		else
			OPENSSL_free(der);
		OPENSSL_free(name);
		OPENSSL_free(header);
	}
	ERR_clear_error();
	if (!ok)
		trust_index_free(&index);
	return index;
}

size_t trust_index_count(const struct trust_index *index)
{
	return index->n;
}

void trust_index_free(struct trust_index **index)
{
	if (!*index)
		return;
	for (size_t i = 0; i < (*index)->n; i++) {
		X509_NAME_free((*index)->list[i].subject);
		OPENSSL_free((*index)->list[i].der);
	}
	free((*index)->list);
	free(*index);
	*index = NULL;
}

/* ---- asking ---- */

static void add_to_store(X509_STORE *store, const struct entry *e)
{
	const unsigned char *p = e->der;
	X509 *x = d2i_X509(NULL, &p, e->len);
	if (!x || X509_STORE_add_cert(store, x) != 1)
		ERR_clear_error(); /* one that can't be read is not trusted */
	X509_free(x);
}

/* A store asks when it has no certificate of that name, and from then on it has all of them. Who asks takes a reference of
 * its own to what is put into out and expects the store to keep it: the one that set1 took is given back. */
static int find(X509_LOOKUP *lookup, X509_LOOKUP_TYPE type, const X509_NAME *name, X509_OBJECT *out)
{
	const struct trust_index *index = X509_LOOKUP_get_method_data(lookup);
	X509_STORE *store = X509_LOOKUP_get_store(lookup);
	if (type != X509_LU_X509)
		return 0;
	for (size_t i = 0; i < index->n; i++)
		if (X509_NAME_cmp(index->list[i].subject, name) == 0)
			add_to_store(store, &index->list[i]);
	X509_OBJECT *kept = X509_OBJECT_retrieve_by_subject(X509_STORE_get0_objects(store), type, name);
	X509 *x = kept ? X509_OBJECT_get0_X509(kept) : NULL;
	if (!x || X509_OBJECT_set1_X509(out, x) != 1)
		return 0;
	X509_free(x);
	return 1;
}

bool trust_index_offer(const struct trust_index *index, X509_STORE *store)
{
	static X509_LOOKUP_METHOD *method;
	if (!method) {
		method = X509_LOOKUP_meth_new("certificates by name");
		if (!method || X509_LOOKUP_meth_set_get_by_subject(method, find) != 1)
			return false;
	}
	X509_LOOKUP *lookup = X509_STORE_add_lookup(store, method);
	return lookup && X509_LOOKUP_set_method_data(lookup, (void *)(uintptr_t)index) == 1;
}
