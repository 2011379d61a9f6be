/* Policies. Promises: any text is a policy or has at least one error. An error is one line of printable text; where it
 * names a line of the file, the file has that line, or it is the one behind the last, where libyaml says that a file
 * ends. Errors come in the order of the file. A policy that loads gives verdicts whose parts fit together, and what it
 * allows as a request it does not refuse as a CONNECT, nor what it allows as a CONNECT as a question for the name.
 *
 * Input: the YAML. */
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/limits.h"
#include "core/policy/policy.h"
#include "tests/fuzz/fuzz.h"

#define NOW 1800000000 /* 2027-01-15 */

static struct policy_errors errs;

/* Puts the text where it can be read as a file, and writes the name of that into path. */
static void store(struct slice yaml, char *path, size_t room)
{
	static int fd = -1;
	if (fd < 0)
		fd = memfd_create("policy", MFD_CLOEXEC);
	PROMISE(fd >= 0 && ftruncate(fd, 0) == 0);
	PROMISE(pwrite(fd, yaml.ptr, yaml.len, 0) == (ssize_t)yaml.len);
	snprintf(path, room, "/proc/self/fd/%d", fd);
}

/* Lines as YAML 1.1 counts them. */
static size_t count_lines(struct slice yaml)
{
	static const struct slice breaks[] = {{"\r\n", 2},     {"\n", 1},           {"\r", 1},
					      {"\xc2\x85", 2}, {"\xe2\x80\xa8", 3}, {"\xe2\x80\xa9", 3}};
	size_t n = 0, len = 1;
	while (yaml.len > 0) {
		len = 0;
		for (size_t i = 0; i < sizeof(breaks) / sizeof(breaks[0]) && len == 0; i++)
			if (slice_starts(yaml, breaks[i]))
				len = breaks[i].len;
		n += len > 0;
		yaml = slice_from(yaml, len ? len : 1);
	}
	return len ? n : n + 1; /* the last line may have no break */
}

static void error_must_be_good(const struct policy_error *e, const char *path, size_t lines)
{
	PROMISE(e->text[0] && memchr(e->text, 0, sizeof(e->text)) && memchr(e->file, 0, sizeof(e->file)));
	for (const char *c = e->text; *c; c++)
		PROMISE(*c >= 0x20 && *c <= 0x7e);
	PROMISE((e->line == 0) == (e->column == 0));
	PROMISE(strcmp(e->file, path) != 0 || e->line <= lines + 1);
}

static void errors_must_be_good(const char *path, struct slice yaml)
{
	size_t lines = count_lines(yaml);
	PROMISE(errs.n > 0 && errs.n <= LIMIT_POLICY_ERRORS);
	for (size_t i = 0; i < errs.n; i++) {
		const struct policy_error *e = &errs.list[i], *before = &errs.list[i ? i - 1 : 0];
		error_must_be_good(e, path, lines);
		PROMISE(strcmp(before->file, e->file) != 0 || before->line <= e->line);
	}
}

static void verdict_must_fit(const struct policy_verdict *v)
{
	if (v->reason == REASON_NONE)
		PROMISE(v->rule && v->rule->action != RULE_DENY && v->applies == v->rule);
	else
		PROMISE(!v->rule || v->rule->action == RULE_DENY || v->reason == REASON_TUNNEL_ONLY);
	PROMISE(v->reason != REASON_RULE_DENIED || (v->rule && v->rule->action == RULE_DENY));
	PROMISE(!v->applies || v->applies->action != RULE_DENY);
}

static void ask_name(const struct policy *p, const struct host *host, const struct policy_verdict *connect)
{
	struct policy_verdict v = policy_match_name(p, host, NOW);
	verdict_must_fit(&v);
	PROMISE(host->kind == HOST_NAME || v.reason != REASON_NONE);
	PROMISE(connect->reason != REASON_NONE || host->kind != HOST_NAME || v.reason == REASON_NONE);
	PROMISE(v.reason != REASON_NONE || v.match.is_listed || v.match.wildcard.len > 0);
	PROMISE(v.match.wildcard.len < host->text.len && slice_ends(host->text, v.match.wildcard));
}

static void ask(const struct policy *p, const struct target *t)
{
	static const struct slice methods[] = {{"GET", 3}, {"POST", 4}, {"get", 3}, {"X", 1}};
	struct policy_verdict connect = policy_match_connect(p, &t->host, t->port, NOW);
	verdict_must_fit(&connect);
	ask_name(p, &t->host, &connect);
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		struct policy_verdict v = policy_match_request(p, t, methods[i], NOW);
		verdict_must_fit(&v);
		PROMISE(v.reason != REASON_NONE || v.rule->action == RULE_ALLOW);
		PROMISE(v.reason != REASON_NONE || connect.reason == REASON_NONE);
		PROMISE(v.reason != REASON_NONE || policy_lists_port(p, t->port));
	}
	const struct policy_pin *pin = policy_pin_for(p, &t->host);
	PROMISE(!pin || slice_eq(pin->host, t->host.text));
}

static void ask_url(const struct policy *p, const char *url, struct arena *arena)
{
	struct target t;
	const char *why;
	if (url_parse(slice_str(url), arena, &t, &why) == CAGE_OK)
		ask(p, &t);
}

/* The hosts and paths that a rule names, so that there is something to match. */
static void ask_about_rule(const struct policy *p, const struct policy_rule *rule, struct arena *arena)
{
	char url[LIMIT_HOST + LIMIT_PATH_PATTERN + 64];
	for (size_t i = 0; i < rule->n_hosts && i < 8; i++) {
		struct slice host = rule->hosts[i];
		struct slice path = i < rule->n_paths ? rule->paths[i] : SLICE("/a/b");
		bool is_wildcard = slice_starts(host, SLICE("*"));
		bool is_v6 = slice_find(host, ':') != host.len;
		snprintf(url, sizeof(url),
			 is_v6         ? "https://[%.*s]:%d%.*s"
			 : is_wildcard ? "https://a%.*s:%d%.*s"
				       : "https://%.*s:%d%.*s",
			 SLICE_FMT(slice_from(host, is_wildcard)), rule->n_ports ? rule->ports[0] : 443,
			 SLICE_FMT(path));
		ask_url(p, url, arena);
	}
}

static void ask_all(const struct policy *p, struct arena *arena)
{
	ask_url(p, "https://a.test/", arena);
	ask_url(p, "http://b.a.test:8080/x/..%2fy;z//?q", arena);
	ask_url(p, "https://127.0.0.1/a/b/c", arena);
	ask_url(p, "https://[::1]/", arena);
	for (size_t i = 0; i < p->n_rules && i < 16; i++)
		ask_about_rule(p, &p->rules[i], arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[64];
	struct arena arena;
	struct slice yaml = slice_of(data, size);
	store(yaml, path, sizeof(path));
	arena_init(&arena, LIMIT_POLICY_REGION);
	const struct policy *p = policy_load(path, &arena, NOW, NULL, &errs);
	if (p) {
		PROMISE(errs.n == 0 && errs.more == 0);
		ask_all(p, &arena);
	} else {
		errors_must_be_good(path, yaml);
	}
	arena_free(&arena);
	return 0;
}
