/* What libcurl is told, and what it has to tell. */
#include "orchestrator/azure/web.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/say.h"
#include "core/base/wipe.h"
#include "orchestrator/azure/azure.h"

#define MOST_FDS 32

/* ---- what comes ---- */

static bool take_field(struct slice line, struct slice name, char *out, size_t room)
{
	if (line.len <= name.len || !slice_ieq(slice_head(line, name.len), name))
		return false;
	struct slice value = slice_trim(slice_from(line, name.len));
	while (value.len > 0 && (value.ptr[value.len - 1] == '\n' || value.ptr[value.len - 1] == '\r'))
		value.len--;
	if (value.len < room) {
		memcpy(out, value.ptr, value.len);
		out[value.len] = '\0';
	}
	return true;
}

static size_t on_line(char *bytes, size_t size, size_t n, void *arg)
{
	struct exchange *x = arg;
	struct slice line = slice_of(bytes, size * n);
	if (!take_field(line, SLICE("retry-after:"), x->retry_after, sizeof(x->retry_after)) &&
	    !take_field(line, SLICE("azure-asyncoperation:"), x->operation, sizeof(x->operation)) &&
	    !take_field(line, SLICE("cage-log-next:"), x->log_next, sizeof(x->log_next)) &&
	    !take_field(line, SLICE("cage-log-lost:"), x->log_lost, sizeof(x->log_lost)) &&
	    !take_field(line, SLICE("cage-log-more:"), x->log_more, sizeof(x->log_more)))
		take_field(line, SLICE("location:"), x->location, sizeof(x->location));
	return size * n;
}

/* realloc() would leave what may be a token where it was. */
static bool make_room(struct exchange *x, size_t more)
{
	if (x->len + more < x->room)
		return true;
	const size_t room = 2 * (x->len + more) + 4096;
	char *bigger = malloc(room);
	if (!bigger)
		return false;
	if (x->len > 0)
		memcpy(bigger, x->body, x->len);
	wipe_free(x->body);
	x->body = bigger;
	x->room = room;
	return true;
}

static size_t on_body(char *bytes, size_t size, size_t n, void *arg)
{
	struct exchange *x = arg;
	const size_t more = size * n;
	if (more > LIMIT_ARM_BODY - x->len)
		return 0;
	if (!make_room(x, more))
		return 0;
	memcpy(x->body + x->len, bytes, more);
	x->len += more;
	x->body[x->len] = '\0';
	return more;
}

/* ---- what is asked for ---- */

static bool add_header(struct exchange *x, const char *text)
{
	struct curl_slist *more = curl_slist_append(x->headers, text);
	if (more)
		x->headers = more;
	return more != NULL;
}

static bool set_headers(struct exchange *x, const struct web_request *r)
{
	bool ok = add_header(x, "Expect:") && add_header(x, "Accept: application/json");
	for (size_t i = 0; r->headers && i < r->headers->n; i++)
		ok = ok && add_header(x, r->headers->list[i]);
	return ok && curl_easy_setopt(x->curl, CURLOPT_HTTPHEADER, x->headers) == CURLE_OK;
}

static bool set_body(struct exchange *x, const struct web_request *r)
{
	if (!r->body.ptr && strcmp(r->method, "POST") != 0)
		return true;
	x->sent = malloc(r->body.len + 1);
	if (!x->sent)
		return false;
	if (r->body.ptr && r->body.len > 0)
		memcpy(x->sent, r->body.ptr, r->body.len);
	x->n_sent = r->body.len;
	return curl_easy_setopt(x->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)x->n_sent) == CURLE_OK &&
	       curl_easy_setopt(x->curl, CURLOPT_POSTFIELDS, x->sent) == CURLE_OK;
}

/* On a connection that was used before, libcurl would send a request again whose answer was lost: whoever counts on "once" must not
 * have that. */
static bool set_once(struct exchange *x, const struct web_request *r)
{
	return strcmp(r->method, "GET") == 0 || curl_easy_setopt(x->curl, CURLOPT_FRESH_CONNECT, 1L) == CURLE_OK;
}

static bool set_way(const struct web *w, struct exchange *x, const struct web_request *r)
{
	CURL *c = x->curl;
	const char *own = r->ca_file && r->ca_file[0] ? r->ca_file : NULL, *ca_file = r->ca_file ? own : w->ca_file;
	return curl_easy_setopt(c, CURLOPT_URL, r->url) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, r->method) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_PROXY, "") == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, 1L) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, 2L) == CURLE_OK &&
	       (!ca_file || curl_easy_setopt(c, CURLOPT_CAINFO, ca_file) == CURLE_OK) &&
	       curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, (long)LIMIT_ARM_CONNECT_MS) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, r->most_ms ? (long)r->most_ms : (long)LIMIT_ARM_CALL_MS) ==
		       CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L) == CURLE_OK;
}

static bool set_callbacks(struct exchange *x)
{
	CURL *c = x->curl;
	return curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_line) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_HEADERDATA, x) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_WRITEDATA, x) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_PRIVATE, x) == CURLE_OK;
}

bool exchange_begin(struct web *w, struct exchange *x, const struct web_request *r)
{
	*x = (struct exchange){.state = EXCHANGE_ENDED};
	if (!web_url_is_safe(r->url)) {
		snprintf(x->why, sizeof(x->why), "the address is neither https nor of this machine");
		return false;
	}
	x->curl = curl_easy_init();
	if (!x->curl || !set_headers(x, r) || !set_way(w, x, r) || !set_once(x, r) || !set_body(x, r) ||
	    !set_callbacks(x) || curl_multi_add_handle(w->multi, x->curl) != CURLM_OK) {
		snprintf(x->why, sizeof(x->why), "the request could not be made");
		return false;
	}
	x->state = EXCHANGE_RUNS;
	return true;
}

/* ---- ends ---- */

static void wipe_headers(struct curl_slist *list)
{
	for (struct curl_slist *h = list; h; h = h->next)
		explicit_bzero(h->data, strlen(h->data));
	curl_slist_free_all(list);
}

void exchange_free(struct web *w, struct exchange *x)
{
	if (x->curl && x->state == EXCHANGE_RUNS)
		curl_multi_remove_handle(w->multi, x->curl);
	if (x->curl)
		curl_easy_cleanup(x->curl);
	wipe_headers(x->headers);
	wipe_free(x->sent);
	wipe_free(x->body);
	*x = (struct exchange){.state = EXCHANGE_NONE};
}

/* Who was asked, without what for: an address may have names that are nobody's business. */
static struct slice host_of(const char *url)
{
	const char *start = url ? strstr(url, "://") : NULL;
	struct slice rest = slice_str(start ? start + 3 : "");
	return slice_head(rest, slice_find(rest, '/'));
}

static void say_why(struct exchange *x, CURL *curl, CURLcode code)
{
	const char *url = NULL, *text = curl_easy_strerror(code);
	curl_easy_getinfo(curl, CURLINFO_EFFECTIVE_URL, &url);
	const struct slice whole = host_of(url), host = slice_head(whole, whole.len < 100 ? whole.len : 100);
	x->is_disbelieved = code == CURLE_PEER_FAILED_VERIFICATION;
	if (x->is_disbelieved)
		snprintf(x->why, sizeof(x->why), "the certificate of %.*s is not believed: %s", SLICE_FMT(host), text);
	else if (code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST)
		snprintf(x->why, sizeof(x->why), "%.*s can't be reached: %s", SLICE_FMT(host), text);
	else
		snprintf(x->why, sizeof(x->why), "%.*s: %s", SLICE_FMT(host), text);
}

static void end(struct web *w, CURL *curl, CURLcode code)
{
	struct exchange *x = NULL;
	curl_easy_getinfo(curl, CURLINFO_PRIVATE, (char **)&x);
	curl_multi_remove_handle(w->multi, curl);
	x->state = EXCHANGE_ENDED;
	if (code == CURLE_OK)
		curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &x->status);
	else
		say_why(x, curl, code);
}

/* ---- all of them ---- */

bool web_open(struct web *w, const char *ca_file)
{
	*w = (struct web){.ca_file = ca_file};
	if (curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK)
		w->multi = curl_multi_init();
	if (!w->multi)
		say("libcurl can't be used");
	return w->multi != NULL;
}

void web_close(struct web *w)
{
	if (w->multi)
		curl_multi_cleanup(w->multi);
	curl_global_cleanup();
	w->multi = NULL;
}

static void wait_for(struct web *w, struct pollfd *fds, size_t n_fds, int ms)
{
	struct curl_waitfd extra[MOST_FDS];
	unsigned n = 0;
	for (size_t i = 0; i < n_fds && n < MOST_FDS; i++)
		if (fds[i].fd >= 0)
			extra[n++] = (struct curl_waitfd){.fd = fds[i].fd, .events = fds[i].events};
	curl_multi_poll(w->multi, extra, n, ms, NULL);
	poll(fds, n_fds, 0); /* what libcurl leaves out: ends and faults */
}

void web_wait(struct web *w, struct pollfd *fds, size_t n_fds, int ms)
{
	int running = 0, left = 0;
	curl_multi_perform(w->multi, &running);
	CURLMsg *m = curl_multi_info_read(w->multi, &left);
	if (!m) {
		wait_for(w, fds, n_fds, ms);
		curl_multi_perform(w->multi, &running);
		m = curl_multi_info_read(w->multi, &left);
	} else {
		poll(fds, n_fds, 0);
	}
	for (; m; m = curl_multi_info_read(w->multi, &left))
		if (m->msg == CURLMSG_DONE)
			end(w, m->easy_handle, m->data.result);
}
