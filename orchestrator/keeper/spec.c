/* Words to a struct. What is not known is refused: it would be something that the service believes to be so. */
#include "orchestrator/keeper/spec.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_DIR "/workspace"
#define DEFAULT_GRACE_MS 5000

/* Ports of the room that lead to cage itself. */
static bool is_of_cage(uint64_t port)
{
	return port == 53 || port == 80 || port == 443 || port == 8080;
}

/* ---- values ---- */

static bool add(struct words *to, struct slice value)
{
	words_add(to, "%.*s", SLICE_FMT(value));
	return !to->failed;
}

static bool set_flag(struct slice value, bool *out)
{
	*out = slice_eq(value, SLICE("1"));
	return *out || slice_eq(value, SLICE("0"));
}

static bool set_id(struct spec *s, struct slice value)
{
	if (value.len == 0 || value.len >= sizeof(s->id))
		return false;
	memset(s->id, 0, sizeof(s->id));
	memcpy(s->id, value.ptr, value.len);
	return true;
}

static bool set_dir(struct spec *s, struct slice value)
{
	free(s->dir);
	s->dir = value.len > 0 ? strndup(value.ptr, value.len) : NULL;
	return s->dir != NULL;
}

/* "127.0.0.1" or "[::1]". */
static bool read_address(struct slice text, uint16_t port, struct spec_port *out)
{
	char word[INET6_ADDRSTRLEN];
	bool is_v6 = slice_starts(text, SLICE("[")) && slice_ends(text, SLICE("]"));
	if (is_v6)
		text = slice_head(slice_from(text, 1), text.len - 2);
	if (text.len >= sizeof(word))
		return false;
	memcpy(word, text.ptr, text.len);
	word[text.len] = '\0';
	if (is_v6)
		out->at.v6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(port)};
	else
		out->at.v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
	return inet_pton(is_v6 ? AF_INET6 : AF_INET, word,
			 is_v6 ? (void *)&out->at.v6.sin6_addr : (void *)&out->at.v4.sin_addr) == 1;
}

/* What is behind the last colon, which is cut off. */
static bool cut_port(struct slice *text, uint64_t *out)
{
	size_t colon = slice_rfind(*text, ':');
	bool ok = colon < text->len && slice_to_u64(slice_from(*text, colon + 1), UINT16_MAX, out);
	*text = slice_head(*text, colon);
	return ok;
}

/* ADDRESS:HOSTPORT:PORT */
static bool add_port(struct spec *s, struct slice value)
{
	uint64_t port, host_port;
	if (s->n_ports == LIMIT_KEEPER_PUBLISHED || !cut_port(&value, &port) || !cut_port(&value, &host_port) ||
	    port == 0 || is_of_cage(port) || !read_address(value, (uint16_t)host_port, &s->ports[s->n_ports]))
		return false;
	s->ports[s->n_ports++].port = (uint16_t)port;
	return true;
}

/* BYTES:PATH */
static bool add_artifact(struct spec *s, struct slice value)
{
	uint64_t bytes;
	struct slice size = slice_cut(&value, ':');
	if (s->artifacts.n == LIMIT_WORKFLOW_ARTIFACTS || !slice_to_u64(size, LIMIT_WORKFLOW_BYTES, &bytes) ||
	    value.len == 0)
		return false;
	s->artifact_bytes[s->artifacts.n] = bytes;
	return add(&s->artifacts, value);
}

/* ---- words ---- */

static bool take(struct spec *s, struct slice name, struct slice value)
{
	if (slice_eq(name, SLICE("run")))
		return add(&s->run, value);
	if (slice_eq(name, SLICE("pod")))
		return add(&s->pod, value);
	if (slice_eq(name, SLICE("aci")))
		return add(&s->aci, value);
	if (slice_eq(name, SLICE("cmd")))
		return add(&s->cmd, value);
	if (slice_eq(name, SLICE("env")))
		return slice_find(value, '=') > 0 && slice_find(value, '=') < value.len && add(&s->env, value);
	if (slice_eq(name, SLICE("publish")))
		return add_port(s, value);
	if (slice_eq(name, SLICE("artifact")))
		return add_artifact(s, value);
	if (slice_eq(name, SLICE("id")))
		return set_id(s, value);
	if (slice_eq(name, SLICE("dir")))
		return set_dir(s, value);
	if (slice_eq(name, SLICE("keep")))
		return set_flag(value, &s->keep);
	if (slice_eq(name, SLICE("wall_ms")))
		return slice_to_u64(value, LIMIT_KEEPER_WALL_MS, &s->wall_ms);
	if (slice_eq(name, SLICE("stand_ms")))
		return slice_to_u64(value, LIMIT_KEEPER_WALL_MS, &s->stand_ms);
	if (slice_eq(name, SLICE("grace_ms")))
		return slice_to_u64(value, LIMIT_KEEPER_WALL_MS, &s->grace_ms);
	return slice_eq(name, SLICE("output")) && slice_to_u64(value, LIMIT_KEEPER_OUTPUT, &s->output);
}

/* A command is one message to cage-inside, with its directory. */
static bool fits(const struct spec *s)
{
	size_t bytes = strlen(s->dir) + 1;
	for (size_t i = 0; i < s->cmd.n; i++)
		bytes += strlen(s->cmd.list[i]) + 1;
	return bytes <= LIMIT_INSIDE_FRAME && s->cmd.n < LIMIT_INSIDE_WORDS - 2;
}

bool spec_parse(struct slice bytes, struct spec *out, const char **why)
{
	*out = (struct spec){.grace_ms = DEFAULT_GRACE_MS, .dir = strdup(DEFAULT_DIR)};
	*why = "a word is not known, or has a bad value";
	while (bytes.len > 0) {
		struct slice value = slice_cut(&bytes, '\0'), name = slice_cut(&value, '=');
		if (!take(out, name, value))
			return false;
	}
	*why = !out->dir || out->run.failed || out->cmd.failed || out->env.failed || out->pod.failed ||
			       out->aci.failed || out->artifacts.failed
		       ? "no memory"
	       : out->id[0] == '\0' ? "there is no id"
	       : !fits(out)         ? "the command is too long"
				    : NULL;
	return *why == NULL;
}

bool spec_read(struct spec *out, const char **why)
{
	char *bytes = malloc(LIMIT_KEEPER_SPEC + 1);
	int fd = open("spec", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t n = bytes && fd >= 0 ? read(fd, bytes, LIMIT_KEEPER_SPEC + 1) : -1;
	bool ok = false;
	if (fd >= 0)
		close(fd);
	*out = (struct spec){0};
	*why = "can't be read";
	if (n > (ssize_t)LIMIT_KEEPER_SPEC)
		*why = "is too long";
	else if (n >= 0)
		ok = spec_parse(slice_of(bytes, (size_t)n), out, why);
	free(bytes);
	return ok;
}

void spec_free(struct spec *s)
{
	words_free(&s->run);
	words_free(&s->cmd);
	words_free(&s->env);
	words_free(&s->pod);
	words_free(&s->aci);
	words_free(&s->artifacts);
	free(s->dir);
	*s = (struct spec){0};
}

const char *spec_option(const struct spec *s, const char *name)
{
	for (size_t i = s->run.n; i > 1; i--)
		if (strcmp(s->run.list[i - 2], name) == 0)
			return s->run.list[i - 1];
	return NULL;
}
