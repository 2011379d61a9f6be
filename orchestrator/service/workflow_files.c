/* Moving, copying and hashing, each in a process of its own. What is to be done is told as JSON. */
#include "orchestrator/service/workflow_files.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/text.h"
#include "core/base/write_all.h"
#include "orchestrator/inside/beneath.h"
#include "orchestrator/tree_whole.h"

#define HEX 65

void workflow_dir(const struct service *s, const char *id, char out[BACKEND_PATH])
{
	snprintf(out, BACKEND_PATH, "%s/workflows/%s", s->config.state, id);
}

void workflow_file(const struct service *s, const char *id, size_t step, size_t n, char out[BACKEND_PATH])
{
	snprintf(out, BACKEND_PATH, "%s/workflows/%s/%zu/%zu", s->config.state, id, step, n);
}

/* ---- in a process of its own ---- */

static int outcome(bool ok)
{
	const int why = errno & 0x7f;
	return ok ? 0 : why ? why : EIO;
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	return text ? text : "";
}

static int open_regular(const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		return fd;
	if (fd >= 0) {
		close(fd);
		errno = EBADMSG;
	}
	return -1;
}

/* All of it, to another if there is one (-1: none). False with errno. */
static bool hash(int from, int to, uint64_t *size, char hex[HEX])
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	char bytes[LIMIT_SERVE_PIECE];
	unsigned len = 0;
	ssize_t n = 0;
	EVP_MD_CTX *md = EVP_MD_CTX_new();
	bool ok = md && EVP_DigestInit_ex(md, EVP_sha256(), NULL) == 1;
	*size = 0;
	while (ok && (n = read(from, bytes, sizeof(bytes))) > 0) {
		*size += (uint64_t)n;
		ok = EVP_DigestUpdate(md, bytes, (size_t)n) == 1 && (to < 0 || write_all(to, bytes, (size_t)n));
	}
	const int why = errno;
	ok = ok && n == 0 && EVP_DigestFinal_ex(md, digest, &len) == 1;
	EVP_MD_CTX_free(md);
	struct text t = text_in(hex, HEX - 1);
	text_put_hex(&t, digest, ok ? len : 0);
	hex[t.len] = '\0';
	errno = why;
	return ok;
}

/* ---- stored ---- */

static bool sync_dir(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool ok = fd >= 0 && fsync(fd) == 0;
	if (fd >= 0)
		close(fd);
	return ok;
}

static bool make_dir(const char *path)
{
	return mkdir(path, 0700) == 0 || errno == EEXIST;
}

/* One that is there no more was moved before, by who did not come to say so. */
static bool store_one(const char *from, const char *to)
{
	uint64_t size;
	char hex[HEX];
	if (rename(from, to) != 0 && errno != ENOENT)
		return false;
	int fd = open_regular(to);
	bool ok = fd >= 0 && hash(fd, -1, &size, hex) && fsync(fd) == 0;
	if (fd >= 0)
		close(fd);
	return ok && printf("%llu %s\n", (unsigned long long)size, hex) > 0;
}

static int store_all(const char *text, const void *with)
{
	json_t *told = json_loads(text, 0, NULL);
	const char *dir = text_of(told, "dir"), *to = text_of(told, "to");
	const size_t n = (size_t)json_integer_value(json_object_get(told, "n"));
	char from[BACKEND_PATH + 32], into[BACKEND_PATH + 32];
	(void)with;
	bool ok = make_dir(dir) && make_dir(to);
	for (size_t i = 0; i < n && ok; i++) {
		snprintf(from, sizeof(from), "%s/artifacts/%zu", text_of(told, "from"), i);
		snprintf(into, sizeof(into), "%s/%zu", to, i);
		ok = store_one(from, into);
	}
	const int code = outcome(ok && sync_dir(to) && sync_dir(dir) && fflush(stdout) == 0);
	json_decref(told);
	return code;
}

static bool run(struct service *s, int (*function)(const char *, const void *), json_t *told, child_done *done,
		void *arg)
{
	char *text = told ? json_dumps(told, JSON_COMPACT) : NULL;
	const struct child_spec spec = {.function = function, .text = text, .done = done, .arg = arg};
	bool ok = text && child_run(s->children, &spec);
	free(text);
	json_decref(told);
	return ok;
}

bool workflow_files_store(struct service *s, const char *id, size_t step, const char *sandbox, size_t n,
			  child_done *done, void *arg)
{
	char dir[BACKEND_PATH], to[BACKEND_PATH + 32], from[BACKEND_PATH];
	workflow_dir(s, id, dir);
	snprintf(to, sizeof(to), "%s/%zu", dir, step);
	service_dir(s, sandbox, from);
	return run(s, store_all,
		   json_pack("{s:s, s:s, s:s, s:I}", "dir", dir, "to", to, "from", from, "n", (json_int_t)n), done,
		   arg);
}

json_t *workflow_files_stored(int status, struct slice said, size_t n, const char **why)
{
	const int code = WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
	json_t *list = json_array();
	uint64_t size;
	while (code == 0 && said.len > 0) {
		struct slice sha = slice_cut(&said, '\n'), number = slice_cut(&sha, ' ');
		if (sha.len == HEX - 1 && slice_to_u64(number, INT64_MAX, &size))
			json_array_append_new(
				list, json_pack("{s:I, s:s%}", "size", (json_int_t)size, "sha256", sha.ptr, sha.len));
	}
	if (code == 0 && json_array_size(list) == n)
		return list;
	*why = code == ENOSPC || code == EDQUOT ? "disk.full" : "artifact.failed";
	json_decref(list);
	return NULL;
}

/* ---- handed on ---- */

static bool hand_one(int root, const json_t *input)
{
	struct beneath_file f;
	uint64_t size;
	char hex[HEX];
	int from = open_regular(text_of(input, "from"));
	if (from < 0 || beneath_create(root, text_of(input, "to"), &f) != 0) {
		const int why = from < 0 ? EBADMSG : errno;
		if (from >= 0)
			close(from);
		errno = why;
		return false;
	}
	bool ok = hash(from, f.fd, &size, hex);
	close(from);
	if (ok && strcmp(hex, text_of(input, "sha256")) != 0) {
		ok = false;
		errno = EBADMSG;
	}
	if (ok)
		return beneath_keep(&f) == 0;
	beneath_drop(&f);
	return false;
}

static int hand_all(const char *text, const void *with)
{
	json_t *told = json_loads(text, 0, NULL), *input;
	size_t i;
	int root = open(text_of(told, "files"), O_PATH | O_DIRECTORY | O_CLOEXEC);
	bool ok = root >= 0;
	(void)with;
	json_array_foreach(json_object_get(told, "inputs"), i, input)
	{
		ok = ok && hand_one(root, input);
	}
	const int code = outcome(ok);
	if (root >= 0)
		close(root);
	json_decref(told);
	return code;
}

bool workflow_files_hand(struct service *s, const char *dir, const json_t *inputs, child_done *done, void *arg)
{
	char files[BACKEND_PATH + 16];
	snprintf(files, sizeof(files), "%s/files", dir);
	return run(s, hand_all, json_pack("{s:s, s:O}", "files", files, "inputs", inputs), done, arg);
}

struct verdict workflow_files_verdict(int status, struct slice said)
{
	const int code = WIFEXITED(status) ? WEXITSTATUS(status) : EAGAIN;
	(void)said;
	switch (code) {
	case 0:
		return (struct verdict){0, NULL};
	case EBADMSG:
		return (struct verdict){409, "an artifact that it is handed is not what was stored"};
	case ENOSPC:
	case EDQUOT:
		return (struct verdict){507, "the disk of the service is full"};
	case EEXIST:
	case ENOTDIR:
	case EISDIR:
		return (struct verdict){422, "inputs: one of the files lies below another"};
	default:
		return (struct verdict){503, "artifacts could not be handed on"};
	}
}

/* ---- removed ---- */

static int remove_all(const char *dir, const void *with)
{
	struct stat st;
	(void)with;
	tree_remove(dir);
	bool is_gone = lstat(dir, &st) != 0 && errno == ENOENT;
	if (!is_gone)
		errno = ENOTEMPTY;
	return outcome(is_gone);
}

bool workflow_files_remove(struct service *s, const char *id, child_done *done, void *arg)
{
	char dir[BACKEND_PATH];
	workflow_dir(s, id, dir);
	const struct child_spec spec = {.function = remove_all, .text = dir, .done = done, .arg = arg};
	return child_run(s->children, &spec);
}
