/* cage-fetch: one HTTP request for the tools of a sandbox, or a message to a webhook. */
#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/limits.h"
#include "core/base/option_table.h"
#include "core/base/say.h"
#include "orchestrator/fetch/transfer.h"

static const char help_text[] =
	"usage: cage-fetch [--proxy URL] [--ca-file FILE]\n"
	"\n"
	"Makes one HTTP request. Reads a JSON object on stdin and writes one on stdout:\n"
	"\n"
	"  {\"method\", \"url\", \"headers\": {}, \"body\" or \"body_base64\", \"timeout_ms\",\n"
	"   \"max_bytes\", \"proxy\", \"ca_file\"}\n"
	"  {\"status\", \"headers\": [[name, value]], \"body\" or \"body_base64\", \"truncated\"}, or\n"
	"  {\"error\": bad_request, timeout, connect, proxy, tls or protocol, \"message\"}\n"
	"\n"
	"Redirects are not followed, certificates are verified, variables and files such as\n"
	".netrc do not count. With --proxy or --ca-file the object may have neither of the two.\n"
	"It is not for people. Exit codes: 0 an object was written, 1 not, 2 wrong usage.\n";

struct options {
	const char *proxy, *ca_file;
};

static const struct option_row rows[] = {
	{"proxy", OPTION_TEXT, offsetof(struct options, proxy), NULL},
	{"ca-file", OPTION_TEXT, offsetof(struct options, ca_file), NULL},
};

static const struct option_table table = {.program = "cage-fetch",
					  .help = help_text,
					  .more = "cage-fetch --help lists all options",
					  .rows = rows,
					  .n_rows = sizeof(rows) / sizeof(rows[0])};

static int read_options(int argc, char **argv, struct options *out)
{
	const int code = option_table_read(&table, argc, argv, out);
	return code == OPTIONS_GO_ON && optind < argc ? option_table_wrong(&table, argv[optind], "is not an option")
						      : code;
}

/* All of stdin; more than the bound is told from less by one byte. */
static size_t read_all(char *to, size_t room)
{
	size_t len = 0;
	ssize_t n = 1;
	while (len < room && (n > 0 || (n < 0 && errno == EINTR))) {
		n = read(0, to + len, room - len);
		len += n > 0 ? (size_t)n : 0;
	}
	return len;
}

static bool answer(struct slice text, const struct options *o)
{
	struct ask a = {0};
	struct reply r = {0};
	const char *why = "it is too long", *word = "bad_request";
	bool is_good = text.len <= LIMIT_FETCH_INPUT && ask_parse(text, &a, &why);
	if (is_good && (o->proxy || o->ca_file) && (a.proxy || a.ca_file)) {
		why = "proxy and ca_file are not for it to say";
		is_good = false;
	}
	if (is_good) {
		a.proxy = o->proxy ? o->proxy : a.proxy;
		a.ca_file = o->ca_file ? o->ca_file : a.ca_file;
		word = transfer_make(&a, &r, &why);
	}
	bool ok = word ? reply_print_error(word, why) : reply_print(&r);
	reply_free(&r);
	ask_free(&a);
	return ok;
}

int main(int argc, char **argv)
{
	struct options options = {0};
	say_as("cage-fetch");
	int code = read_options(argc, argv, &options);
	if (code != OPTIONS_GO_ON)
		return code;
	char *text = malloc(LIMIT_FETCH_INPUT + 1);
	bool ok = text && answer(slice_of(text, read_all(text, LIMIT_FETCH_INPUT + 1)), &options);
	free(text);
	return ok ? 0 : 1;
}
