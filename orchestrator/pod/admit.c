/* The image that somebody asked for, right before there is anything of the sandbox: the policy and the signatures may be others than
 * when it was asked for. The storage is asked for the image's id, and is believed nothing: the bytes of the manifest that it keeps
 * have to be those of the digest, and to name that id. By the id it is run, never by a name. The loop goes on meanwhile: the keeper and
 * signals can end it at any time. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/say.h"
#include "core/base/slice.h"
#include "orchestrator/image/admit.h"
#include "orchestrator/pod/pod.h"

static bool refuse(const struct pod *p, const struct image_verdict *v)
{
	say("image %.*s refused: %s: %s", LIMIT_IMAGE_REFERENCE, p->options->admit, image_reason_code(v->reason),
	    v->why);
	return false;
}

/* ---- podman ---- */

/* `podman WORDS... --format FORMAT [LAST]` begins. */
static bool ask(struct pod *p, const char *const *words, const char *format, const char *last)
{
	struct words argv = {0};
	call_words(p->options, &argv);
	for (; *words; words++)
		words_add(&argv, "%s", *words);
	words_add(&argv, "--format");
	words_add(&argv, "%s", format);
	if (last)
		words_add(&argv, "%s", last);
	return call_begin(&p->admission, p->options, &argv, NULL, 0);
}

/* What it has printed, without the end of its last line. */
static struct slice answer(struct call *c)
{
	while (c->n_printed > 0 && c->printed[c->n_printed - 1] == '\n')
		c->printed[--c->n_printed] = '\0';
	return slice_of(c->printed, c->n_printed);
}

static bool ask_for_image(struct pod *p)
{
	static const char *const words[] = {"image", "inspect", NULL};
	return ask(p, words, "{{.Id}} {{.GraphDriver.Name}}{{range .RepoDigests}} {{.}}{{end}}", p->options->admit);
}

/* To ask for it takes most of a second. */
static bool ask_for_root(struct pod *p)
{
	static const char *const words[] = {"info", NULL};
	return ask(p, words, "{{.Store.GraphRoot}}", NULL);
}

/* Podman finds an image by its digest alone, whatever repository was asked for with it; the policy lets in repositories. */
static bool has_name(const struct pod *p, struct slice names)
{
	struct image_verdict v = {
		.reason = IMAGE_MISMATCH,
		.why = "the local image of that digest is not from that repository: podman pull it from there"};
	while (names.len > 0)
		if (slice_eq(slice_cut(&names, ' '), slice_str(p->options->admit)))
			return true;
	return refuse(p, &v);
}

/* Its id, and the driver of the storage that has it, which is part of a directory's name there; then its names with their digests. */
static bool take_image(struct pod *p)
{
	const char *image = p->options->admit;
	struct slice names = answer(&p->admission), id = slice_cut(&names, ' '), name = slice_cut(&names, ' ');
	if (p->admission.state != CALL_GOOD) {
		say("image %s is not in the local storage, and none is downloaded here: podman pull %s", image, image);
		return false;
	}
	bool ok = id.len == POD_IMAGE_ID - 1 && strspn(id.ptr, "0123456789abcdef") == id.len && name.len > 0 &&
		  name.len < POD_DRIVER;
	if (!ok) {
		say("podman image inspect: expected the id of one image, and the driver of its storage");
		return false;
	}
	snprintf(p->admitted, sizeof(p->admitted), "%.*s", SLICE_FMT(id));
	snprintf(p->driver, sizeof(p->driver), "%.*s", SLICE_FMT(name));
	return has_name(p, names);
}

/* ---- the local image ---- */

static char *read_whole(const char *path, size_t *n)
{
	char *bytes = malloc(LIMIT_IMAGE_MANIFEST + 1);
	int fd = bytes ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
	ssize_t got = fd >= 0 ? 1 : -1;
	*n = 0;
	while (got > 0 && *n <= LIMIT_IMAGE_MANIFEST) {
		got = read(fd, bytes + *n, LIMIT_IMAGE_MANIFEST + 1 - *n);
		*n += got > 0 ? (size_t)got : 0;
	}
	if (fd >= 0)
		close(fd);
	if (got >= 0)
		return bytes; /* one that is too long has not the digest: image_check_local() */
	say("%s: %s", path, strerror(errno));
	free(bytes);
	return NULL;
}

/* Where the storage keeps the manifest: ROOT/DRIVER-images/ID/manifest. */
static bool is_the_one(const struct pod *p, const char *root)
{
	char path[POD_PATH];
	size_t n;
	struct image_verdict v;
	const bool fits = snprintf(path, POD_PATH, "%s/%s-images/%s/manifest", root, p->driver, p->admitted) < POD_PATH;
	char *manifest = fits ? read_whole(path, &n) : NULL;
	if (!manifest)
		return false;
	bool ok = image_check_local(slice_str(p->options->admit), slice_of(manifest, n), slice_str(p->admitted), &v);
	free(manifest);
	return ok || refuse(p, &v);
}

/* ---- one after the other ---- */

static bool go_to_network(struct pod *p)
{
	pod_enter(p, POD_NETWORK);
	return network_begin(p);
}

bool admit_begin(struct pod *p)
{
	const struct pod_options *o = p->options;
	struct image_verdict v;
	if (!o->admit)
		return go_to_network(p);
	if (!image_admit_file(o->run.policy, slice_str(o->admit), o->signatures, &v))
		return refuse(p, &v);
	return ask_for_image(p);
}

bool admit_go_on(struct pod *p)
{
	const char *root = p->options->root;
	if (!p->admitted[0]) {
		if (!take_image(p))
			return false;
		if (!root)
			return ask_for_root(p);
	} else if (p->admission.state != CALL_GOOD) {
		call_tell(&p->admission, "info");
		return false;
	} else {
		root = answer(&p->admission).ptr;
	}
	return is_the_one(p, root) && go_to_network(p);
}
