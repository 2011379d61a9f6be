/* The image that somebody asked for, right before there is anything of the sandbox: the policy and the signatures may be others than
 * when it was asked for. The storage is asked for the image's id, and is believed nothing: the bytes of the manifest that it keeps
 * have to be those of the digest, and to name that id. By the id it is run, never by a name. */
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

#define DRIVER 32 /* bytes of "overlay" and the like */

static bool refuse(const struct pod *p, const struct image_verdict *v)
{
	say("image %.*s refused: %s: %s", LIMIT_IMAGE_REFERENCE, p->options->admit, image_reason_code(v->reason),
	    v->why);
	return false;
}

/* ---- podman ---- */

/* What `podman WORDS... --format FORMAT [LAST]` prints, without the end of its last line. False: it failed. */
static bool ask(const struct pod_options *o, struct call *c, const char *const *words, const char *format,
		const char *last)
{
	struct words argv = {0};
	call_words(o, &argv);
	for (; *words; words++)
		words_add(&argv, "%s", *words);
	words_add(&argv, "--format");
	words_add(&argv, "%s", format);
	if (last)
		words_add(&argv, "%s", last);
	if (call_begin(c, o, &argv, NULL, 0))
		call_await(c);
	while (c->n_printed > 0 && c->printed[c->n_printed - 1] == '\n')
		c->printed[--c->n_printed] = '\0';
	return c->state == CALL_GOOD;
}

/* driver: of the storage that has it, which is part of a directory's name there. */
static bool find_image(struct pod *p, char driver[DRIVER])
{
	static struct call c;
	static const char *const words[] = {"image", "inspect", NULL};
	const char *image = p->options->admit;
	if (!ask(p->options, &c, words, "{{.Id}} {{.GraphDriver.Name}}", image)) {
		say("image %s is not in the local storage, and none is downloaded here: podman pull %s", image, image);
		return false;
	}
	struct slice name = slice_of(c.printed, c.n_printed), id = slice_cut(&name, ' ');
	bool ok = id.len == POD_IMAGE_ID - 1 && strspn(c.printed, "0123456789abcdef") == id.len && name.len > 0 &&
		  name.len < DRIVER;
	if (!ok) {
		say("podman image inspect: expected the id of one image, and the driver of its storage");
		return false;
	}
	snprintf(p->admitted, sizeof(p->admitted), "%.*s", SLICE_FMT(id));
	snprintf(driver, DRIVER, "%.*s", SLICE_FMT(name));
	return true;
}

/* Where the storage keeps the manifest: ROOT/DRIVER-images/ID/manifest. To ask for the root takes most of a second. */
static bool find_manifest(const struct pod *p, const char *driver, char path[POD_PATH])
{
	static struct call c;
	static const char *const words[] = {"info", NULL};
	const char *root = p->options->root;
	if (!root && !ask(p->options, &c, words, "{{.Store.GraphRoot}}", NULL)) {
		call_tell(&c, "info");
		return false;
	}
	return snprintf(path, POD_PATH, "%s/%s-images/%s/manifest", root ? root : c.printed, driver, p->admitted) <
	       POD_PATH;
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

static bool is_the_one(const struct pod *p, const char *driver)
{
	char path[POD_PATH];
	size_t n;
	struct image_verdict v;
	char *manifest = find_manifest(p, driver, path) ? read_whole(path, &n) : NULL;
	if (!manifest)
		return false;
	bool ok = image_check_local(slice_str(p->options->admit), slice_of(manifest, n), slice_str(p->admitted), &v);
	free(manifest);
	return ok || refuse(p, &v);
}

bool admit_image(struct pod *p)
{
	const struct pod_options *o = p->options;
	struct image_verdict v;
	char driver[DRIVER];
	if (!o->admit)
		return true;
	if (!image_admit_file(o->run.policy, slice_str(o->admit), o->signatures, &v))
		return refuse(p, &v);
	return find_image(p, driver) && is_the_one(p, driver);
}
