/* What libcurl is told, which is little: it follows nothing, looks up nothing by itself, and reads no files and variables. */
#include "orchestrator/fetch/transfer.h"

#include <curl/curl.h>
#include <stdio.h>

struct transfer {
	const struct ask *ask;
	struct reply *reply;
	CURL *curl;
	struct curl_slist *headers;
	char why[CURL_ERROR_SIZE];
};

/* ---- what comes ---- */

static size_t take_line(char *line, size_t size, size_t n, void *arg)
{
	struct transfer *t = arg;
	return reply_add_line(t->reply, line, size * n) ? size * n : 0;
}

/* Beyond the bound the transfer is broken off, and what there is counts. */
static size_t take_body(char *bytes, size_t size, size_t n, void *arg)
{
	struct transfer *t = arg;
	return reply_add_body(t->reply, bytes, size * n, t->ask->max_bytes) ? size * n : 0;
}

/* ---- what is asked for ---- */

static bool add_header(struct transfer *t, const char *text)
{
	struct curl_slist *more = curl_slist_append(t->headers, text);
	if (more)
		t->headers = more;
	return more != NULL;
}

/* "Name;" is how libcurl wants a field without a value; none is sent that nobody asked for. */
static bool add_headers(struct transfer *t)
{
	const char *name;
	json_t *value;
	bool ok = add_header(t, "Expect:");
	json_object_foreach(t->ask->headers, name, value)
	{
		char *line = NULL;
		const char *text = json_string_value(value);
		ok = ok && asprintf(&line, text[0] ? "%s: %s" : "%s;", name, text) >= 0 && add_header(t, line);
		free(line);
	}
	return ok;
}

static bool set_body(struct transfer *t)
{
	const struct ask *a = t->ask;
	return !a->body ||
	       (curl_easy_setopt(t->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)a->body_len) == CURLE_OK &&
		curl_easy_setopt(t->curl, CURLOPT_POSTFIELDS, a->body) == CURLE_OK);
}

static bool set_method(struct transfer *t)
{
	const char *method = t->ask->method;
	const bool is_head = strcmp(method, "HEAD") == 0;
	return (!is_head || curl_easy_setopt(t->curl, CURLOPT_NOBODY, 1L) == CURLE_OK) &&
	       curl_easy_setopt(t->curl, CURLOPT_CUSTOMREQUEST, method) == CURLE_OK;
}

/* Without a proxy that is said: those of the environment do not count. */
static bool set_way(struct transfer *t)
{
	const struct ask *a = t->ask;
	CURL *c = t->curl;
	return curl_easy_setopt(c, CURLOPT_URL, a->url) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_PROXY, a->proxy ? a->proxy : "") == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_NOPROXY, "") == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, 1L) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, 2L) == CURLE_OK &&
	       (!a->ca_file || (curl_easy_setopt(c, CURLOPT_CAINFO, a->ca_file) == CURLE_OK &&
				curl_easy_setopt(c, CURLOPT_CAPATH, NULL) == CURLE_OK)) &&
	       curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)a->timeout_ms) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L) == CURLE_OK;
}

static bool set_callbacks(struct transfer *t)
{
	CURL *c = t->curl;
	return curl_easy_setopt(c, CURLOPT_HTTPHEADER, t->headers) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, take_line) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_HEADERDATA, t) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take_body) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_WRITEDATA, t) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_ERRORBUFFER, t->why) == CURLE_OK;
}

/* ---- what went wrong ---- */

static const char *word_of(CURLcode code)
{
	switch ((int)code) {
	case CURLE_OPERATION_TIMEDOUT:
		return "timeout";
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_SSL_CACERT_BADFILE:
		return "tls";
	case CURLE_PROXY:
	case CURLE_COULDNT_RESOLVE_PROXY:
		return "proxy";
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_CONNECT:
		return "connect";
	default:
		return "protocol";
	}
}

static const char *perform(struct transfer *t, const char **message)
{
	static char why[CURL_ERROR_SIZE];
	CURLcode code = curl_easy_perform(t->curl);
	curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &t->reply->status);
	if (code == CURLE_OK || (code == CURLE_WRITE_ERROR && t->reply->is_truncated))
		return NULL;
	snprintf(why, sizeof(why), "%s", t->why[0] ? t->why : curl_easy_strerror(code));
	*message = why;
	return word_of(code);
}

const char *transfer_make(const struct ask *a, struct reply *r, const char **message)
{
	struct transfer t = {.ask = a, .reply = r};
	const char *word = "protocol";
	*message = "the request could not be made";
	*r = (struct reply){.headers = json_array()};
	t.curl = r->headers && curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? curl_easy_init() : NULL;
	if (t.curl && add_headers(&t) && set_way(&t) && set_body(&t) && set_method(&t) && set_callbacks(&t))
		word = perform(&t, message);
	curl_slist_free_all(t.headers);
	curl_easy_cleanup(t.curl);
	curl_global_cleanup();
	return word;
}
