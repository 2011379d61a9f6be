/* Reading a directory of signatures. All that it names of its own files is a digest in hex, so no path leads out of it. */
#include "orchestrator/image/signatures.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/policy/image_name.h"
#include "orchestrator/image/admit.h"

#define HEX 7         /* where it begins in a digest */
#define NAME_ROOM 128 /* of a file in the directory */
#define ANNOTATION "dev.cosignproject.cosign/signature"
#define REF_NAME "org.opencontainers.image.ref.name"

/* What is gone through. */
struct search {
	int dir;
	struct slice digest;
	signature_taker *take;
	void *arg;
	size_t left;       /* that may still be looked at */
	bool is_enough;    /* one was */
	const char *fault; /* the first */
};

/* ---- files ---- */

struct bytes {
	char *ptr; /* freed by who reads them; NULL: it is not there, or can't be read */
	size_t len;
	const char *fault; /* NULL: it is not there */
};

/* Up to room bytes; one more is one too many. */
static struct bytes read_fd(int fd, size_t room)
{
	struct bytes b = {.ptr = malloc(room + 1), .fault = "a file of it can't be read"};
	ssize_t n = 1;
	while (b.ptr && b.len <= room && n != 0) {
		n = read(fd, b.ptr + b.len, room + 1 - b.len);
		if (n < 0 && errno != EINTR)
			break;
		b.len += n > 0 ? (size_t)n : 0;
	}
	if (b.ptr && n == 0 && b.len <= room)
		return (struct bytes){.ptr = b.ptr, .len = b.len};
	if (b.len > room)
		b.fault = "a file of it is too big";
	free(b.ptr);
	b.ptr = NULL;
	return b;
}

static struct bytes read_file(int dir, const char *name, size_t room)
{
	struct stat st;
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return (struct bytes){.fault = errno == ENOENT ? NULL : "a file of it can't be opened"};
	struct bytes b = {.fault = "a file of it is no regular file"};
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		b = read_fd(fd, room);
	close(fd);
	return b;
}

static void note(struct search *s, const char *fault)
{
	if (fault && !s->fault)
		s->fault = fault;
}

static void offer(struct search *s, struct slice payload, struct slice signature)
{
	if (s->left == 0) {
		note(s, "it has too many signatures of this image");
		return;
	}
	s->left--;
	s->is_enough = s->is_enough || s->take(s->arg, payload, signature);
}

/* ---- a payload and a signature beside each other ---- */

static void look_at_pair(struct search *s)
{
	char name[NAME_ROOM];
	struct slice hex = slice_from(s->digest, HEX);
	snprintf(name, sizeof(name), "sha256-%.*s.json", SLICE_FMT(hex));
	struct bytes payload = read_file(s->dir, name, LIMIT_IMAGE_PAYLOAD);
	snprintf(name, sizeof(name), "sha256-%.*s.sig", SLICE_FMT(hex));
	struct bytes signature = read_file(s->dir, name, LIMIT_IMAGE_SIGNATURE);
	note(s, payload.fault);
	note(s, signature.fault);
	if (payload.ptr && signature.ptr)
		offer(s, slice_of(payload.ptr, payload.len), slice_of(signature.ptr, signature.len));
	else if (payload.ptr || signature.ptr)
		note(s, "a payload without a signature is there, or a signature without a payload");
	free(payload.ptr);
	free(signature.ptr);
}

/* ---- an OCI layout ---- */

/* A blob by the descriptor that names it, if it is what that says. */
static struct bytes read_blob(int dir, const json_t *descriptor, size_t room)
{
	char name[NAME_ROOM], digest[IMAGE_DIGEST_ROOM];
	const char *text = json_string_value(json_object_get(descriptor, "digest"));
	struct bytes none = {.fault = "it names a blob that is not there, or is another"};
	if (!text || image_digest_fault(slice_str(text)))
		return none;
	snprintf(name, sizeof(name), "blobs/sha256/%s", text + HEX);
	struct bytes b = read_file(dir, name, room);
	if (!b.ptr)
		return b.fault ? b : none;
	if (image_digest_of(slice_of(b.ptr, b.len), digest) && strcmp(digest, text) == 0)
		return b;
	free(b.ptr);
	return none;
}

static const char *annotation(const json_t *descriptor, const char *name)
{
	return json_string_value(json_object_get(json_object_get(descriptor, "annotations"), name));
}

static void look_at_layer(struct search *s, const json_t *layer)
{
	const char *signature = annotation(layer, ANNOTATION);
	if (!signature)
		return;
	struct bytes payload = read_blob(s->dir, layer, LIMIT_IMAGE_PAYLOAD);
	note(s, payload.fault);
	if (payload.ptr)
		offer(s, slice_of(payload.ptr, payload.len), slice_str(signature));
	free(payload.ptr);
}

static json_t *parse(struct search *s, struct bytes b)
{
	json_t *json = b.ptr ? json_loadb(b.ptr, b.len, JSON_REJECT_DUPLICATES, NULL) : NULL;
	note(s, b.ptr && !json ? "an index or a manifest of it is no JSON" : b.fault);
	free(b.ptr);
	return json;
}

static void look_at_manifest(struct search *s, const json_t *descriptor)
{
	json_t *manifest = parse(s, read_blob(s->dir, descriptor, LIMIT_IMAGE_INDEX));
	const json_t *layers = json_object_get(manifest, "layers");
	for (size_t i = 0; i < json_array_size(layers) && !s->is_enough && s->left > 0; i++)
		look_at_layer(s, json_array_get(layers, i));
	if (json_array_size(layers) > LIMIT_IMAGE_SIGNATURES)
		note(s, "it has too many signatures of this image");
	json_decref(manifest);
}

/* "sha256-HEX.sig", also behind the name of a repository. */
static bool names_signatures(const json_t *descriptor, struct slice digest)
{
	const char *name = annotation(descriptor, REF_NAME);
	char wanted[NAME_ROOM];
	if (!name)
		return false;
	snprintf(wanted, sizeof(wanted), "sha256-%.*s.sig", SLICE_FMT(slice_from(digest, HEX)));
	const char *colon = strrchr(name, ':');
	return strcmp(colon ? colon + 1 : name, wanted) == 0;
}

static void look_at_layout(struct search *s)
{
	json_t *index = parse(s, read_file(s->dir, "index.json", LIMIT_IMAGE_INDEX));
	const json_t *manifests = json_object_get(index, "manifests");
	for (size_t i = 0; i < json_array_size(manifests) && !s->is_enough && s->left > 0; i++)
		if (names_signatures(json_array_get(manifests, i), s->digest))
			look_at_manifest(s, json_array_get(manifests, i));
	json_decref(index);
}

const char *signatures_each(const char *dir, struct slice digest, signature_taker *take, void *arg)
{
	struct search s = {.dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
			   .digest = digest,
			   .take = take,
			   .arg = arg,
			   .left = LIMIT_IMAGE_SIGNATURES};
	if (s.dir < 0)
		return "there is no such directory, or it can't be opened";
	look_at_pair(&s);
	if (!s.is_enough)
		look_at_layout(&s);
	close(s.dir);
	return s.fault;
}
