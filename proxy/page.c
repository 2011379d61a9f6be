/* The page and its two files. They are read when they are asked for: the CA may be younger than this process. */
#include "proxy/page.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "proxy/txn.h"

static const struct slice host_name = WORD(POLICY_PAGE_HOST);

static const char explanation[] =
	"You are in a cage: a sandbox whose only way out is a proxy that lets out what a policy allows.\n"
	"\n"
	"What is not allowed is refused, with status 403 and a JSON body that says why and what would allow it.\n"
	"Real credentials are not in here: placeholders stand for them, and are replaced on their way to the\n"
	"hosts that they belong to. Everything that leaves is inspected and logged.\n"
	"\n"
	"Programs reach the proxy by HTTP_PROXY and HTTPS_PROXY, or without them on ports 80 and 443, and must\n"
	"trust its CA. Most of them do already. For others:\n"
	"\n"
	"  http://cage.internal/ca.pem   the CA\n"
	"  http://cage.internal/env.sh   the variables that point to the proxy and the CA, for a shell\n";

struct page_answer {
	int status;
	const char *phrase, *type;
	struct slice body;
};

bool page_is_host(const struct host *host)
{
	return host->kind == HOST_NAME && slice_eq(host->text, host_name);
}

/* Over plain HTTP only: who could ask over TLS has the CA already. */
enum reason page_decide(struct txn *t)
{
	bool is_plain = t->req.form == TARGET_AUTHORITY || t->target.scheme == SCHEME_HTTP;
	t->verdict.reason = is_plain && t->target.port == 80 ? REASON_NONE : REASON_PORT_NOT_ALLOWED;
	return t->verdict.reason;
}

static struct slice read_file(struct txn *t, const char *dir, const char *name)
{
	char path[4200];
	char *room = arena_alloc(&t->arena, LIMIT_PAGE_FILE);
	int fd = -1;
	if (dir && room && snprintf(path, sizeof(path), "%s/%s", dir, name) < (int)sizeof(path))
		fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, room, LIMIT_PAGE_FILE) : 0;
	if (fd >= 0)
		close(fd);
	return slice_of(room, n > 0 ? (size_t)n : 0);
}

static struct page_answer answer_file(struct txn *t, const char *dir, const char *name, const char *type)
{
	struct page_answer a = {200, "OK", type, read_file(t, dir, name)};
	if (a.body.len > 0)
		return a;
	return (struct page_answer){404, "Not Found", "text/plain", SLICE("not here\n")};
}

static struct page_answer answer_for(struct txn *t)
{
	struct slice path = t->target.path;
	const char *kit = t->worker->config->kit, *ca_dir = t->worker->config->ca_dir;
	if (!slice_eq(t->req.method, SLICE("GET")) && !slice_eq(t->req.method, SLICE("HEAD")))
		return (struct page_answer){405, "Method Not Allowed", "text/plain", SLICE("only GET\n")};
	if (slice_eq(path, SLICE("/")))
		return (struct page_answer){200, "OK", "text/plain", SLICE(explanation)};
	if (slice_eq(path, SLICE("/ca.pem")))
		return answer_file(t, kit ? kit : ca_dir, "ca.pem", "application/x-pem-file");
	if (slice_eq(path, SLICE("/env.sh")))
		return answer_file(t, kit, "env.sh", "text/plain");
	return (struct page_answer){404, "Not Found", "text/plain", SLICE("/ /ca.pem /env.sh\n")};
}

static void write_answer(struct conn *c, const struct page_answer *a, bool head_only)
{
	char room[512];
	struct text t = text_in(room, sizeof(room));
	text_put(&t, SLICE("HTTP/1.1 "));
	text_put_u64(&t, (uint64_t)a->status);
	text_put_char(&t, ' ');
	text_put(&t, slice_str(a->phrase));
	text_put(&t, SLICE("\r\nContent-Type: "));
	text_put(&t, slice_str(a->type));
	text_put(&t, SLICE("\r\nCache-Control: no-store\r\nContent-Length: "));
	text_put_u64(&t, a->body.len);
	text_put(&t, SLICE("\r\nConnection: close\r\n\r\n"));
	stream_write(c->down, text_slice(&t));
	if (!head_only)
		stream_write(c->down, a->body);
}

void page_serve(struct txn *t)
{
	struct conn *c = t->conn;
	struct page_answer a = answer_for(t);
	if (!txn_log_intent(t, REASON_NONE))
		return;
	txn_log_end(t, REASON_NONE, STAGE_RESPONSE, a.status);
	txn_enter(t, TXN_DONE);
	write_answer(c, &a, slice_eq(t->req.method, SLICE("HEAD")));
	txn_free(t);
	conn_finish(c);
}
