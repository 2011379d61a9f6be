/* In the locked room, as the agent's user: waits for the proxy, proves that nothing else can be reached, puts the CA where the variables
 * say that it is, and becomes the command. What can't be shown counts as open: the command is not run. */
#include "orchestrator/inside/enter.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/limits.h"
#include "core/base/slice.h"
#include "core/base/write_all.h"
#include "orchestrator/inside/unpack.h"
#include "orchestrator/inside/verify.h"
#include "orchestrator/jks_entries.h"
#include "orchestrator/proxy_credential.h"

#define ASK "GET http://cage.internal/ca.pem HTTP/1.1\r\nHost: cage.internal\r\n%sConnection: close\r\n\r\n"
#define SYSTEM_BUNDLE "/etc/ssl/certs/ca-certificates.crt"

static int refuse(const char *what, const char *why)
{
	fprintf(stderr, "cage-inside: %s%s%s: the agent is not run\n", what, why ? ": " : "", why ? why : "");
	return ENTER_REFUSED;
}

/* ---- the proxy ---- */

static bool read_place(const char *text, struct sockaddr_in *out)
{
	char address[INET_ADDRSTRLEN];
	uint64_t port;
	struct slice rest = slice_str(text), host = slice_cut(&rest, ':');
	if (host.len >= sizeof(address) || !slice_to_u64(rest, UINT16_MAX, &port) || port == 0)
		return false;
	memcpy(address, host.ptr, host.len);
	address[host.len] = '\0';
	*out = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	return inet_pton(AF_INET, address, &out->sin_addr) == 1;
}

static int dial(const struct sockaddr_in *at)
{
	const struct timeval patience = {.tv_sec = LIMIT_ENTER_ASK_S};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) == 0 &&
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) == 0 &&
	    connect(fd, (const struct sockaddr *)at, sizeof(*at)) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* A proxy of many sandboxes tells nothing to who does not say which one it is. */
static bool ask(int fd)
{
	char credential[PROXY_CREDENTIAL], text[sizeof(ASK) + PROXY_CREDENTIAL];
	proxy_credential(credential);
	const int n = snprintf(text, sizeof(text), ASK, credential);
	const bool ok = write_all(fd, text, (size_t)n);
	explicit_bzero(credential, sizeof(credential));
	explicit_bzero(text, sizeof(text));
	return ok;
}

/* Its CA; empty: there is none yet. */
static struct slice ask_for_ca(const struct sockaddr_in *at, char *room, size_t size)
{
	size_t n = 0;
	ssize_t got = 1;
	int fd = dial(at);
	if (fd >= 0 && ask(fd))
		while (n < size && (got = read(fd, room + n, size - n)) > 0)
			n += (size_t)got;
	if (fd >= 0)
		close(fd);
	struct slice answer = slice_of(room, n);
	const char *body = memmem(room, n, "\r\n\r\n", 4);
	if (fd < 0 || got != 0 || !slice_starts(answer, SLICE("HTTP/1.1 200 ")) || !body)
		return SLICE_NONE;
	struct slice pem = slice_from(answer, (size_t)(body + 4 - room));
	return slice_starts(pem, SLICE("-----BEGIN CERTIFICATE-----")) ? pem : SLICE_NONE;
}

static struct slice await_ca(const struct sockaddr_in *at, char *room, size_t size)
{
	const struct timespec moment = {.tv_nsec = LIMIT_ENTER_AGAIN_MS * 1000000L};
	const time_t until = time(NULL) + LIMIT_ENTER_S;
	struct slice pem = ask_for_ca(at, room, size);
	while (pem.len == 0 && time(NULL) < until) {
		nanosleep(&moment, NULL);
		pem = ask_for_ca(at, room, size);
	}
	return pem;
}

/* ---- files ---- */

static bool append_file(int to, const char *path)
{
	char bytes[8192];
	ssize_t n = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool ok = fd >= 0 || errno == ENOENT; /* an image may have none */
	while (fd >= 0 && ok && (n = read(fd, bytes, sizeof(bytes))) > 0)
		ok = write_all(to, bytes, (size_t)n);
	if (fd >= 0)
		close(fd);
	return ok && n == 0;
}

static bool write_file(const char *path, const char *before, struct slice text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
	bool ok = fd >= 0 && (!before || append_file(fd, before)) && write_all(fd, text.ptr, text.len);
	if (fd >= 0)
		ok = close(fd) == 0 && ok;
	return ok;
}

static void put_bytes(void *arg, const void *bytes, size_t n)
{
	int *fd = arg;
	if (*fd >= 0 && !write_all(*fd, bytes, n)) {
		close(*fd);
		*fd = -1;
	}
}

/* What is in the bundle, for Java, which is told no password: nobody looks at the digest behind it. */
static bool write_store(void)
{
	static char bundle[LIMIT_TRUST_FILE];
	static const char digest[JKS_DIGEST];
	size_t len = 0;
	ssize_t n = 1;
	int from = open(ENTER_KIT "/bundle.pem", O_RDONLY | O_CLOEXEC);
	int to = open(ENTER_KIT "/cacerts.jks", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
	while (from >= 0 && n > 0 && len < sizeof(bundle)) {
		n = read(from, bundle + len, sizeof(bundle) - len);
		len += n > 0 ? (size_t)n : 0;
	}
	bool ok = n == 0 && jks_entries(slice_of(bundle, len), put_bytes, &to);
	put_bytes(&to, digest, sizeof(digest));
	if (from >= 0)
		close(from);
	return to >= 0 && close(to) == 0 && ok;
}

static bool write_kit(struct slice pem)
{
	static const char wgetrc[] = "ca_certificate=" ENTER_KIT "/bundle.pem\n";
	return (mkdir(ENTER_KIT, 0755) == 0 || errno == EEXIST) && write_file(ENTER_KIT "/ca.pem", NULL, pem) &&
	       write_file(ENTER_KIT "/bundle.pem", SYSTEM_BUNDLE, pem) &&
	       write_file(ENTER_KIT "/wgetrc", NULL, slice_of(wgetrc, sizeof(wgetrc) - 1));
}

/* ---- all of it ---- */

/* From CMD on; NULL: the words are wrong. */
static char **command_of(int argc, char **argv, const char **files)
{
	int at = 1;
	*files = NULL;
	if (argc > 3 && strcmp(argv[1], "--files") == 0) {
		*files = argv[2];
		at = 3;
	}
	return at + 1 < argc && strcmp(argv[at], "--") == 0 ? argv + at + 1 : NULL;
}

int enter(int argc, char **argv)
{
	static char room[LIMIT_ENTER_CA];
	const char *files;
	struct sockaddr_in at;
	char **command = command_of(argc, argv, &files);
	if (!command || !read_place(argv[0], &at)) {
		fputs("usage: cage-inside --enter ADDRESS:PORT [--files FILE] -- CMD [ARGS]\n", stderr);
		return 2;
	}
	struct slice pem = await_ca(&at, room, sizeof(room));
	if (pem.len == 0)
		return refuse("the proxy has not answered in time", argv[0]);
	if (!verify_group())
		return refuse("something other than the proxy can be reached", NULL);
	if (!write_kit(pem))
		return refuse(ENTER_KIT, strerror(errno));
	if (!write_store())
		fputs("cage-inside: Java finds no trust store: none can be made of the certificates here\n", stderr);
	if (files && !unpack(files))
		return refuse("the files that it begins with can't be put into the workspace", strerror(errno));
	execvp(command[0], command);
	fprintf(stderr, "cage-inside: %s: %s\n", command[0], strerror(errno));
	return errno == ENOENT ? 127 : 126;
}
