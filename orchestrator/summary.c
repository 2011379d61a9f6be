/* Counting the lines of decision logs. An exchange has two lines, the decision and the result: the last word counts, so
 * what a request was allowed counts only when its result does not say otherwise. */
#include "orchestrator/summary.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/say.h"

#define PORT_TEXT 8

static const char *text_of(const json_t *line, const char *key)
{
	const char *text = json_string_value(json_object_get(line, key));
	return text ? text : "";
}

static bool has_event(const json_t *line, const char *event)
{
	return strcmp(text_of(line, "event"), event) == 0;
}

/* It would have been blocked, and was let through. */
static bool is_observed(const json_t *line)
{
	return strcmp(text_of(line, "decision"), "block") == 0 && json_is_false(json_object_get(line, "enforced"));
}

/* Those who sent it chose some of these bytes: nothing of them is for the terminal to obey. */
static void make_plain(char *text)
{
	for (char *c = text; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
}

/* ":22" of what went past the proxy, where the port is all that says what it was. */
static const char *port_of(const json_t *line, char out[PORT_TEXT])
{
	const json_t *port = json_object_get(line, "port");
	out[0] = '\0';
	if (strcmp(text_of(line, "reason"), "connect.captured") == 0 && json_is_integer(port))
		snprintf(out, PORT_TEXT, ":%" PRIu16, (uint16_t)json_integer_value(port));
	return out;
}

/* "reason METHOD host/path": the last two words as far as they are known. A path that is too long is cut. */
static void describe(const json_t *line, char what[LIMIT_SUMMARY_TEXT])
{
	const bool is_dns = has_event(line, "dns");
	const char *host = text_of(line, "host"), *path = text_of(line, "path"), *method = text_of(line, "method");
	const char *where = host[0] ? host : text_of(line, "address");
	char port[PORT_TEXT];
	if (is_dns || strcmp(method, "CONNECT") == 0)
		method = ""; /* a type of query, or no request yet */
	snprintf(what, LIMIT_SUMMARY_TEXT, "%s%s%.*s%s%.*s%s%.*s%s%s%s", text_of(line, "reason"), method[0] ? " " : "",
		 LIMIT_METHOD, method, where[0] ? " " : "", LIMIT_HOST, where, port_of(line, port), LIMIT_SUMMARY_PATH,
		 path, strlen(path) > LIMIT_SUMMARY_PATH ? "..." : "", is_dns ? " (dns)" : "",
		 is_observed(line) ? ", only observed" : "");
	make_plain(what);
}

static void count_row(struct summary *s, const json_t *line)
{
	char what[LIMIT_SUMMARY_TEXT];
	describe(line, what);
	for (size_t i = 0; i < s->n_rows; i++)
		if (strcmp(s->rows[i].what, what) == 0) {
			s->rows[i].n++;
			return;
		}
	if (s->n_rows == LIMIT_SUMMARY_ROWS) {
		s->others++;
		return;
	}
	struct summary_row *row = &s->rows[s->n_rows++];
	memcpy(row->what, what, sizeof(what));
	row->n = 1;
}

static enum verdict verdict_of(const json_t *line)
{
	const char *decision = text_of(line, "decision");
	if (strcmp(decision, "error") == 0)
		return VERDICT_FAILED;
	return strcmp(decision, "block") == 0 && !is_observed(line) ? VERDICT_BLOCKED : VERDICT_ALLOWED;
}

static void count_decision(struct summary *s, const json_t *line)
{
	enum verdict v = verdict_of(line);
	uint64_t *counts = has_event(line, "dns") ? s->names : s->exchanges;
	if (has_event(line, "response")) {
		if (v == VERDICT_ALLOWED)
			return; /* as its request was counted */
		if (counts[VERDICT_ALLOWED] > 0)
			counts[VERDICT_ALLOWED]--;
	}
	counts[v]++;
	s->observed += is_observed(line);
	if (v != VERDICT_ALLOWED || is_observed(line))
		count_row(s, line);
}

/* Of traffic; start, policy and stop are about us. */
static bool is_traffic(const json_t *line)
{
	static const char *const events[] = {"connect", "request", "response", "message", "dns"};
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		if (has_event(line, events[i]))
			return text_of(line, "decision")[0] != '\0';
	return false;
}

static void count_line(struct summary *s, const char *text, size_t len)
{
	json_t *line = json_loadb(text, len, JSON_ALLOW_NUL, NULL);
	if (!line)
		s->exchanges[VERDICT_FAILED]++;
	else if (is_traffic(line))
		count_decision(s, line);
	json_decref(line);
}

/* What earlier runs have written is still there. */
static bool go_to(FILE *f, uint64_t from)
{
	return fseeko(f, 0, SEEK_END) == 0 && ftello(f) >= (off_t)from && fseeko(f, (off_t)from, SEEK_SET) == 0;
}

bool summary_read(struct summary *s, const char *path, uint64_t from)
{
	char *text = NULL;
	size_t room = 0;
	ssize_t n;
	FILE *f = fopen(path, "re");
	bool ok = f && go_to(f, from);
	if (!ok)
		say("the log %s is gone or was cut short: what was decided is not known", path);
	while (ok && (n = getline(&text, &room, f)) > 0)
		count_line(s, text, (size_t)n);
	free(text);
	if (f)
		fclose(f);
	return ok;
}

void summary_print(const struct summary *s, const char *log)
{
	const uint64_t *n = s->exchanges, *names = s->names;
	const uint64_t asked = names[VERDICT_ALLOWED] + names[VERDICT_BLOCKED] + names[VERDICT_FAILED];
	char of_names[96] = "";
	if (asked > 0)
		snprintf(of_names, sizeof(of_names), "; %" PRIu64 " of %" PRIu64 " questions for names refused",
			 names[VERDICT_BLOCKED], asked);
	say("%" PRIu64 " allowed, %" PRIu64 " blocked, %" PRIu64 " failed%s", n[VERDICT_ALLOWED], n[VERDICT_BLOCKED],
	    n[VERDICT_FAILED], of_names);
	if (s->observed > 0)
		say("the policy only observes %" PRIu64 " of them, which it would have blocked", s->observed);
	for (size_t i = 0; i < s->n_rows; i++)
		say("  %" PRIu64 " x %s", s->rows[i].n, s->rows[i].what);
	if (s->others > 0)
		say("  %" PRIu64 " others; --log FILE keeps all", s->others);
	if (log)
		say("the log is %s", log);
}
