/* Sandboxes: listed, shown, ended and deleted. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "orchestrator/service/api.h"
#include "orchestrator/service/create.h"
#include "orchestrator/service/sandbox.h"
#include "orchestrator/service/times.h"

/* ---- as JSON ---- */

static void put(json_t *out, const char *key, const json_t *value)
{
	if (value)
		json_object_set(out, key, (json_t *)value);
}

static json_t *row_json(const struct row *row)
{
	json_t *out =
		json_pack("{s:s, s:s, s:s}", "id", row->id, "state", state_name(row->state), "reason", row->reason);
	put_time(out, "created_at", row->created_us);
	put_time(out, "started_at", row->started_us);
	put_time(out, "ended_at", row->ended_us);
	if (row->has_exit)
		json_object_set_new(out, "exit_code", json_integer(row->exit_code));
	put(out, "profile", json_object_get(row->spec, "profile"));
	put(out, "labels", json_object_get(row->spec, "labels"));
	return out;
}

/* Lines "PORT ADDRESS:PORT" that its keeper has written. */
static json_t *published_json(const struct service *s, const char *id)
{
	char dir[BACKEND_PATH], path[BACKEND_PATH + 16], line[128];
	uint64_t port;
	json_t *list = json_array();
	service_dir(s, id, dir);
	snprintf(path, sizeof(path), "%s/published", dir);
	FILE *f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		struct slice address = slice_head(slice_str(line), strcspn(line, "\n")),
			     word = slice_cut(&address, ' ');
		if (slice_to_u64(word, UINT16_MAX, &port))
			json_array_append_new(list, json_pack("{s:I, s:s%}", "port", (json_int_t)port, "address",
							      address.ptr, address.len));
	}
	if (f)
		fclose(f);
	return list;
}

/* The last line that who makes it has said: what it waits for. */
static json_t *said_json(const struct service *s, const char *id)
{
	char dir[BACKEND_PATH], path[BACKEND_PATH + 16], bytes[LIMIT_KEEPER_MESSAGE];
	service_dir(s, id, dir);
	snprintf(path, sizeof(path), "%s/said", dir);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	const off_t size = fd >= 0 ? lseek(fd, 0, SEEK_END) : 0,
		    from = size > (off_t)sizeof(bytes) ? size - (off_t)sizeof(bytes) : 0;
	const ssize_t n = fd >= 0 ? pread(fd, bytes, sizeof(bytes), from) : 0;
	if (fd >= 0)
		close(fd);
	struct slice text = slice_of(bytes, n > 0 ? (size_t)n : 0);
	while (slice_ends(text, SLICE("\n")))
		text.len--;
	const size_t at = slice_rfind(text, '\n');
	if (at < text.len)
		text = slice_from(text, at + 1);
	return text.len > 0 ? json_stringn(text.ptr, text.len) : NULL;
}

static void put_message(const struct service *s, json_t *out, const struct row *row)
{
	json_t *text = row->message ? json_string(row->message) : row->state == CREATING ? said_json(s, row->id) : NULL;
	if (text)
		json_object_set_new(out, "message", text);
}

static void put_details(struct service *s, json_t *out, const struct row *row)
{
	static const char *const keys[] = {"backend", "command", "tools", "secrets", "limits", "limits_enforced_by",
					   "rootfs",  "image",   "keep"};
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		put(out, keys[i], json_object_get(row->spec, keys[i]));
	put_time(out, "deadline_at", row->deadline_us);
	put_message(s, out, row);
	if (row->policy_sha[0])
		json_object_set_new(out, "policy", json_pack("{s:s}", "sha256", row->policy_sha));
	if (json_array_size(json_object_get(row->spec, "publish")) > 0)
		json_object_set_new(out, "published", published_json(s, row->id));
	if (row->usage) {
		json_t *usage = json_copy(row->usage);
		json_object_del(usage, "gb_seconds");
		json_object_set_new(out, "usage", usage);
	}
	if (row->cleanup_tries > 0 && row->state != DELETED)
		json_object_set_new(out, "cleanup",
				    json_pack("{s:I, s:s}", "tries", (json_int_t)row->cleanup_tries, "error",
					      row->cleanup_error ? row->cleanup_error : ""));
}

json_t *sandbox_json(struct service *s, const struct row *row)
{
	json_t *out = row_json(row);
	const struct sandbox *b = sandbox_find(s, row->id);
	put_details(s, out, row);
	if (b && b->place.where == QUEUE_WAITING)
		json_object_set_new(out, "queued_before", json_integer((json_int_t)queue_before(&s->queue, &b->place)));
	json_t *history = store_history(s->store, row->id);
	if (history && json_object_set_new(out, "history", history) == 0)
		return out;
	json_decref(out);
	return NULL;
}

/* ---- one ---- */

static void answer_sandbox(struct request *r, int status)
{
	struct row row = {0};
	enum store_result result = store_get(r->service->store, r->sandbox, &row);
	json_t *answer = result == STORE_OK ? sandbox_json(r->service, &row) : NULL;
	if (answer)
		answer_json(r, status, answer);
	else
		answer_store(r, result == STORE_OK ? STORE_FAILED : result);
	row_free(&row);
}

void api_show(struct request *r)
{
	answer_sandbox(r, 200);
}

void api_stop(struct request *r)
{
	struct sandbox *b = sandbox_find(r->service, r->sandbox);
	enum store_result result = b ? sandbox_end(b, "asked") : STORE_OK;
	if (result == STORE_OK)
		answer_sandbox(r, 202);
	else
		answer_store(r, result);
}

void api_delete(struct request *r)
{
	struct service *s = r->service;
	struct sandbox *b = sandbox_find(s, r->sandbox);
	enum store_result result = store_set_deleting(s->store, r->sandbox);
	if (result != STORE_OK && result != STORE_FULL) {
		answer_store(r, result);
		return;
	}
	if (!b && result == STORE_FULL) /* what it left is what fills the disk */
		cleanup_now(s, r->sandbox);
	if (b) {
		b->row.deleting = true; /* if its end can't be stored, the next tick tries again */
		sandbox_end(b, "deleted");
	}
	answer_sandbox(r, 202);
	cleanup_look(s);
}

/* ---- many ---- */

static void add_row(void *arg, const struct row *row)
{
	json_t *items = arg;
	json_t *out = row_json(row);
	json_object_set_new(out, "seq", json_integer(row->seq));
	json_array_append_new(items, out);
}

static json_t *page_json(json_t *items, size_t limit)
{
	json_t *next = json_null();
	char cursor[32];
	if (json_array_size(items) > limit) {
		json_array_remove(items, limit);
		json_int_t seq = json_integer_value(json_object_get(json_array_get(items, limit - 1), "seq"));
		snprintf(cursor, sizeof(cursor), "%" JSON_INTEGER_FORMAT, seq);
		next = json_string(cursor);
	}
	for (size_t i = 0; i < json_array_size(items); i++)
		json_object_del(json_array_get(items, i), "seq");
	return json_pack("{s:o, s:o}", "items", items, "next", next);
}

void answer_page(struct request *r, enum store_result result, json_t *items, size_t limit)
{
	if (result == STORE_OK) {
		answer_json(r, 200, page_json(items, limit));
		return;
	}
	json_decref(items);
	answer_store(r, result);
}

static bool read_limit(struct request *r, int64_t *out)
{
	const char *text = query_value(r, "limit");
	uint64_t n = LIMIT_SERVE_PAGE_DEFAULT;
	if (text && (!slice_to_u64(slice_str(text), LIMIT_SERVE_PAGE, &n) || n == 0))
		return false;
	*out = (int64_t)n;
	return true;
}

static bool read_after(struct request *r, int64_t *out)
{
	const char *text = query_value(r, "after");
	uint64_t n = 0;
	if (text && (!slice_to_u64(slice_str(text), INT64_MAX, &n) || n == 0))
		return false;
	*out = (int64_t)n;
	return true;
}

static bool read_label(struct request *r, char label[PAGE_LABEL], struct store_filter *f)
{
	const char *text = query_value(r, "label");
	if (!text)
		return true;
	struct slice name, value;
	if (!label_parse(slice_str(text), &name, &value))
		return false;
	snprintf(label, PAGE_LABEL, "%.*s%c%.*s", SLICE_FMT(name), 0, SLICE_FMT(value));
	f->label = label;
	f->value = label + name.len + 1;
	return true;
}

const char *page_read(struct request *r, char label[PAGE_LABEL], struct store_filter *f)
{
	*f = (struct store_filter){.state = query_value(r, "state")};
	return !read_limit(r, &f->limit)    ? "limit: expected 1 to 1000"
	       : !read_after(r, &f->before) ? "after: expected `next` of a page"
	       : !read_label(r, label, f)   ? "label: expected NAME=VALUE"
					    : NULL;
}

void api_list(struct request *r)
{
	char label[PAGE_LABEL] = "";
	struct store_filter f;
	enum state state;
	const char *wrong = page_read(r, label, &f);
	if (!wrong && f.state && !state_parse(f.state, &state))
		wrong = "state: expected queued, creating, running, succeeded, failed, timed_out, killed or deleted";
	if (wrong) {
		answer_problem(r, 400, "%s", wrong);
		return;
	}
	size_t limit = (size_t)f.limit++;
	json_t *items = json_array();
	enum store_result result = store_list(r->service->store, &f, add_row, items);
	answer_page(r, result, items, limit);
}
