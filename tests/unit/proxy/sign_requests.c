/* Signs requests that a script writes to stdin, and writes them back as they would be sent. Each comes as lines of text: the value
 * of the secret, key id (may be empty), scheme, SHA-256 of the body in hex or "-", bytes of the head; then the head. The
 * answer is a line with the number of bytes that follow: the head, or "refused: " and a sentence. */
#include <stdio.h>
#include <stdlib.h>

#include "core/base/limits.h"
#include "core/http/h1.h"
#include "proxy/sign.h"

struct job {
	struct arena arena;
	struct policy_secret secret;
	struct slice value;
	struct sign_body body;
	struct slice head;
	struct message message;
	struct target target;
};

static struct slice read_line(struct arena *arena)
{
	char line[1024];
	if (!fgets(line, sizeof(line), stdin))
		exit(0);
	return arena_dup(arena, slice_of(line, strcspn(line, "\n")));
}

static void read_hash(struct job *j)
{
	struct slice hex = read_line(&j->arena);
	j->body.is_known = hex.len == 64;
	for (size_t i = 0; i < hex.len / 2; i++)
		j->body.sha256[i] = (unsigned char)(ascii_hex((unsigned char)hex.ptr[2 * i]) * 16 +
						    ascii_hex((unsigned char)hex.ptr[2 * i + 1]));
}

static bool read_job(struct job *j)
{
	uint64_t len;
	j->value = read_line(&j->arena);
	j->secret = (struct policy_secret){.use = SECRET_SIGV4, .key_id = read_line(&j->arena)};
	j->target.scheme = slice_eq(read_line(&j->arena), SLICE("https")) ? SCHEME_HTTPS : SCHEME_HTTP;
	read_hash(j);
	if (!slice_to_u64(read_line(&j->arena), LIMIT_HEAD, &len))
		return false;
	char *head = arena_alloc(&j->arena, (size_t)len);
	j->head = slice_of(head, (size_t)len);
	return head && fread(head, 1, (size_t)len, stdin) == (size_t)len;
}

static bool parse(struct job *j)
{
	struct h1_gate gate = {.kind = H1_GATE_REQUEST};
	struct h1_error err;
	size_t len;
	const char *why;
	uint16_t port = j->target.scheme == SCHEME_HTTPS ? 443 : 80;
	return h1_gate(&gate, j->head, &len) == CAGE_OK && len == j->head.len &&
	       h1_parse_request(j->head, &j->arena, &j->message, &err) == CAGE_OK &&
	       authority_parse(j->message.host, port, &j->arena, &j->target.host, &j->target.port, &why) == CAGE_OK &&
	       path_parse(j->message.target, &j->arena, &j->target, &why) == CAGE_OK;
}

static void answer(struct job *j)
{
	static char room[2 * LIMIT_HEAD];
	const char *detail = "";
	struct text t = text_in(room, sizeof(room));
	if (sign_sigv4(&j->secret, j->value, &j->body, &j->message, &j->target, &j->arena, &detail) != REASON_NONE) {
		printf("%zu\nrefused: %s", strlen(detail) + 9, detail);
		return;
	}
	struct h1_out out = {.target = target_send(&j->target, &j->arena),
			     .host = host_header(&j->target, &j->arena),
			     .framing = j->message.framing,
			     .content_length = j->message.content_length,
			     .declare_length = j->message.has_content_length};
	h1_write_request(&t, &j->message, &out);
	printf("%zu\n", t.len);
	fwrite(t.ptr, 1, t.len, stdout);
}

int main(void)
{
	for (;;) {
		struct job j = {.secret = {.use = SECRET_SIGV4}};
		arena_init(&j.arena, LIMIT_TXN_ARENA);
		if (!read_job(&j) || !parse(&j)) {
			fputs("sign_requests: not a request\n", stderr);
			return 1;
		}
		answer(&j);
		fflush(stdout);
		arena_free(&j.arena);
	}
}
