/* entropy: what looks random is encrypted, packed or otherwise not to be read by anybody on the way.
 *
 * Bodies are measured in windows (windows.h). What is random by nature, such as images, archives, packs and gRPC, is
 * left alone, by content and not by the declared type; each part of a multipart body is judged by itself. In the head,
 * values of the query, path segments and words of fields are measured in overlapping windows, so that padding does not
 * dilute them. docs/inspectors.md says how the thresholds were found. */
#include "inspectors/table.h"
#include "inspectors/shannon.h"
#include "inspectors/windows.h"

#define PART_HEAD_MOST 4096 /* bytes of a part head that are skipped */
#define VALUE_WINDOW 64
#define VALUE_STEP 16

struct entropy_conf {
	double threshold;
	double value_threshold;
	uint64_t value_length;
};

static const struct entropy_conf conf_default = {
	.threshold = 7.5, .value_threshold = 5.0, .value_length = VALUE_WINDOW};

enum body_shape {
	BODY_BEGINS, /* the first bytes are being collected */
	BODY_WHOLE,
	BODY_PART_HEAD,
	BODY_PART,
	BODY_OVER /* enough is known */
};

struct entropy_state {
	enum body_shape shape;
	uint64_t body_bytes;
	size_t n_start;
	char start[SNIFF_BYTES];
	struct windows windows;
	/* multipart */
	size_t n_boundary, matched;
	char boundary[1 + SNIFF_BOUNDARY]; /* LF and the line, as it stands between two parts */
	size_t head_bytes, line_bytes;     /* of the part head so far, and of its current line */
};

/* ---- bodies ---- */

static double threshold_of(const struct inspection *i)
{
	const struct entropy_conf *conf = inspection_conf(i);
	return conf->threshold;
}

/* The finding is about the window that has just ended. */
static void report_body(struct inspection *i, struct entropy_state *st)
{
	struct spot spot = {.place = PLACE_BODY, .offset = windows_last(&st->windows)};
	inspection_report(i, REASON_ENTROPY_HIGH, &spot, SLICE_NONE, SLICE_NONE);
	st->shape = BODY_OVER;
}

/* How many bytes belong to this part: all, or up to and with the boundary behind it. */
static size_t part_length(struct entropy_state *st, struct slice piece)
{
	size_t i = 0;
	while (i < piece.len && st->matched < st->n_boundary) {
		if (st->matched == 0) {
			i += slice_find(slice_from(piece, i), '\n');
			st->matched = i < piece.len;
			i += st->matched;
			continue;
		}
		if (piece.ptr[i] == st->boundary[st->matched]) {
			st->matched++;
			i++;
		} else {
			st->matched = 0;
		}
	}
	return i;
}

static size_t feed_part(struct inspection *i, struct entropy_state *st, struct slice piece)
{
	size_t n = part_length(st, piece);
	bool found = windows_feed(&st->windows, slice_head(piece, n), threshold_of(i));
	if (!found && st->matched == st->n_boundary) {
		found = windows_end(&st->windows, threshold_of(i));
		st->shape = BODY_PART_HEAD;
		st->head_bytes = 0;
		st->line_bytes = 1; /* the rest of the boundary's own line is not an empty one */
	}
	if (found)
		report_body(i, st);
	return n;
}

/* Skips a part head, which ends with an empty line. One without an end is not skipped for long. */
static size_t skip_part_head(struct entropy_state *st, struct slice piece)
{
	for (size_t i = 0; i < piece.len; i++) {
		bool is_end = piece.ptr[i] == '\n' && st->line_bytes == 0;
		if (is_end || ++st->head_bytes > PART_HEAD_MOST) {
			st->shape = BODY_PART;
			st->matched = is_end; /* its LF may be that of the next boundary */
			windows_begin(&st->windows, st->body_bytes + i + 1);
			return i + 1;
		}
		if (piece.ptr[i] == '\n')
			st->line_bytes = 0;
		else if (piece.ptr[i] != '\r')
			st->line_bytes++;
	}
	return piece.len;
}

static void feed(struct inspection *i, struct entropy_state *st, struct slice piece)
{
	while (piece.len > 0 && st->shape != BODY_OVER) {
		size_t n = piece.len;
		if (st->shape == BODY_PART_HEAD)
			n = skip_part_head(st, piece);
		else if (st->shape == BODY_PART)
			n = feed_part(i, st, piece);
		else if (windows_feed(&st->windows, piece, threshold_of(i)))
			report_body(i, st);
		st->body_bytes += n;
		piece = slice_from(piece, n);
	}
}

/* The first line of a multipart body is what stands between its parts. */
static void begin_parts(struct entropy_state *st, struct slice start)
{
	while (*start.ptr != '-') /* blanks */
		start = slice_from(start, 1);
	struct slice line = slice_head(start, slice_find(start, '\n'));
	if (slice_ends(line, SLICE("\r")))
		line.len--;
	st->boundary[0] = '\n';
	memcpy(st->boundary + 1, line.ptr, line.len);
	st->n_boundary = 1 + line.len;
	st->line_bytes = 1;
	st->shape = BODY_PART_HEAD;
}

/* The first bytes are there: what kind of body is it? */
static void begin(struct inspection *i, struct entropy_state *st)
{
	struct slice start = slice_of(st->start, st->n_start);
	st->shape = BODY_WHOLE;
	st->windows.kind = sniff(start);
	st->windows.is_kind_known = true;
	if (st->windows.kind == CONTENT_MULTIPART)
		begin_parts(st, start);
	feed(i, st, start);
}

static enum inspect_result on_body(struct inspection *i, struct slice piece)
{
	struct entropy_state *st = inspection_state(i);
	if (st->shape == BODY_BEGINS) {
		struct slice head = slice_head(piece, SNIFF_BYTES - st->n_start);
		if (head.len > 0)
			memcpy(st->start + st->n_start, head.ptr, head.len);
		st->n_start += head.len;
		piece = slice_from(piece, head.len);
		if (st->n_start == SNIFF_BYTES)
			begin(i, st);
	}
	feed(i, st, piece);
	return INSPECT_PASS;
}

/* As if it ended here, but what follows is one body with it all the same. */
static enum inspect_result on_pause(struct inspection *i)
{
	struct entropy_state *st = inspection_state(i);
	bool begins = st->shape == BODY_BEGINS;
	if (begins) /* it is less than a window */
		(void)windows_feed(&st->windows, slice_of(st->start, st->n_start), threshold_of(i));
	if (st->shape != BODY_OVER && st->shape != BODY_PART_HEAD && windows_end(&st->windows, threshold_of(i)))
		report_body(i, st);
	else if (begins)
		windows_begin(&st->windows, 0);
	return INSPECT_PASS;
}

static enum inspect_result on_end(struct inspection *i)
{
	struct entropy_state *st = inspection_state(i);
	if (st->shape == BODY_BEGINS && st->n_start > 0)
		begin(i, st);
	if ((st->shape == BODY_WHOLE || st->shape == BODY_PART) && windows_end(&st->windows, threshold_of(i)))
		report_body(i, st);
	return INSPECT_DONE;
}

/* ---- heads ---- */

/* Fields whose value is random by nature, and how long one may be to be left alone. Credentials are not limited: they
 * are the business of the secrets inspector. */
static const struct {
	struct slice name; /* with a '*': all that begin so */
	size_t most;
} opaque_fields[] = {
	{WORD("authorization"), LIMIT_HEAD},
	{WORD("proxy-authorization"), LIMIT_HEAD},
	{WORD("cookie"), LIMIT_HEAD},
	{WORD("x-api-key"), LIMIT_HEAD},
	{WORD("api-key"), LIMIT_HEAD},
	{WORD("x-goog-api-key"), LIMIT_HEAD},
	{WORD("x-auth-token"), LIMIT_HEAD},
	{WORD("x-csrf-token"), 256},
	{WORD("x-xsrf-token"), 256},
	{WORD("dpop"), 2048},
	{WORD("if-match"), 256},
	{WORD("if-none-match"), 256},
	{WORD("etag"), 256},
	{WORD("traceparent"), 64},
	{WORD("tracestate"), 512},
	{WORD("sentry-trace"), 128},
	{WORD("baggage"), 1024},
	{WORD("x-request-id"), 128},
	{WORD("x-correlation-id"), 128},
	{WORD("idempotency-key"), 256},
	{WORD("sec-websocket-key"), 64},
	{WORD("content-md5"), 64},
	{WORD("digest"), 256},
	{WORD("content-digest"), 256},
	{WORD("repr-digest"), 256},
	{WORD("signature"), 1024},
	{WORD("signature-input"), 1024},
	{WORD("x-hub-signature*"), 256},
	{WORD("x-amz-*"), 2048},
	{WORD("x-goog-*"), 2048},
};

static bool name_matches(struct slice pattern, struct slice name)
{
	if (!slice_ends(pattern, SLICE("*")))
		return slice_ieq(pattern, name);
	pattern.len--;
	return slice_ieq(pattern, slice_head(name, pattern.len));
}

static bool is_opaque(const struct field *f)
{
	for (size_t i = 0; i < sizeof(opaque_fields) / sizeof(opaque_fields[0]); i++)
		if (name_matches(opaque_fields[i].name, f->name))
			return f->value.len <= opaque_fields[i].most;
	return false;
}

/* The byte at the front of s with its percent escape undone. */
static char take_byte(struct slice *s)
{
	bool is_escape = s->len >= 3 && s->ptr[0] == '%';
	int high = is_escape ? ascii_hex((unsigned char)s->ptr[1]) : -1;
	int low = is_escape ? ascii_hex((unsigned char)s->ptr[2]) : -1;
	char c = s->ptr[0];
	is_escape = high >= 0 && low >= 0;
	*s = slice_from(*s, is_escape ? 3 : 1);
	if (is_escape)
		c = (char)(high * 16 + low);
	return c;
}

/* Slides over the value; one finding is enough. */
static void look_at_value(struct inspection *i, struct slice value, const struct spot *spot)
{
	const struct entropy_conf *conf = inspection_conf(i);
	char window[VALUE_WINDOW];
	size_t filled = 0;
	if (value.len < conf->value_length)
		return;
	while (value.len > 0) {
		window[filled++] = take_byte(&value);
		if (filled < VALUE_WINDOW)
			continue;
		if (shannon(slice_of(window, VALUE_WINDOW)) >= conf->value_threshold) {
			inspection_report(i, REASON_ENTROPY_HIGH, spot, SLICE_NONE, SLICE_NONE);
			return;
		}
		filled -= VALUE_STEP;
		memmove(window, window + VALUE_STEP, filled);
	}
}

/* Looks at each piece of the text between separators. */
static void look_at_pieces(struct inspection *i, struct slice text, const char *separators, struct spot spot)
{
	size_t from = 0;
	for (size_t at = 0; at <= text.len; at++) {
		if (at < text.len && (text.ptr[at] == '\0' || !strchr(separators, text.ptr[at])))
			continue;
		struct spot here = spot;
		here.offset += from;
		look_at_value(i, slice_of(text.ptr + from, at - from), &here);
		from = at + 1;
	}
}

static void look_at_fields(struct inspection *i, enum place place, const struct field *fields, size_t n)
{
	for (size_t k = 0; k < n; k++) {
		struct spot spot = {.place = place, .name = fields[k].name};
		if (!is_opaque(&fields[k]))
			look_at_pieces(i, fields[k].value, " ", spot);
	}
}

static enum inspect_result on_head(struct inspection *i)
{
	const struct subject *subject = inspection_subject(i);
	struct spot path = {.place = PLACE_PATH}, query = {.place = PLACE_QUERY};
	look_at_pieces(i, subject->target->path, "/", path);
	if (subject->target->query.len > 0)
		look_at_pieces(i, subject->target->query, "?&=", query);
	look_at_fields(i, PLACE_HEADER, subject->head->fields, subject->head->n_fields);
	return INSPECT_PASS;
}

static enum inspect_result on_trailers(struct inspection *i, const struct field *fields, size_t n)
{
	look_at_fields(i, PLACE_TRAILER, fields, n);
	return INSPECT_PASS;
}

/* ---- policy ---- */

/* "7", "7.5": bits per byte. */
static bool bits_parse(struct slice text, double *out)
{
	struct slice rest = text;
	struct slice whole = slice_cut(&rest, '.');
	bool has_point = whole.len < text.len;
	uint64_t n, tenths = 0;
	if (!slice_to_u64(whole, 8, &n) || (has_point && (rest.len > 3 || !slice_to_u64(rest, 999, &tenths))))
		return false;
	double scale = 1;
	for (size_t i = 0; i < rest.len; i++)
		scale *= 10;
	*out = (double)n + (double)tenths / scale;
	return *out > 0 && *out <= 8;
}

static void bits_read(struct loader *l, const struct node *value, double *out)
{
	if (value->kind != NODE_TEXT || !bits_parse(value->text, out))
		node_error(l->errs, value, "expected bits per byte, above 0 and up to 8, such as 7.5, got %s",
			   node_describe(value).text);
}

static void read_threshold(struct loader *l, const struct node *value, void *out)
{
	struct entropy_conf *conf = out;
	bits_read(l, value, &conf->threshold);
}

static void read_value_threshold(struct loader *l, const struct node *value, void *out)
{
	struct entropy_conf *conf = out;
	bits_read(l, value, &conf->value_threshold);
}

static void read_value_length(struct loader *l, const struct node *value, void *out)
{
	struct entropy_conf *conf = out;
	if (size_read(l, value, LIMIT_HEAD, &conf->value_length) && conf->value_length < VALUE_WINDOW)
		node_error(l->errs, value, "expected at least %d bytes, which is what is measured at once",
			   VALUE_WINDOW);
}

static const struct key keys[] = {
	{WORD("threshold"), read_threshold, KEY_OPTIONAL},
	{WORD("value_threshold"), read_value_threshold, KEY_OPTIONAL},
	{WORD("value_length"), read_value_length, KEY_OPTIONAL},
};

const struct inspector entropy_inspector = {
	.name = WORD("entropy"),
	.action = ACTION_FLAG,
	.conf_size = sizeof(struct entropy_conf),
	.conf_default = &conf_default,
	.keys = keys,
	.n_keys = sizeof(keys) / sizeof(keys[0]),
	.state_size = sizeof(struct entropy_state),
	.on_head = on_head,
	.on_body = on_body,
	.on_trailers = on_trailers,
	.on_pause = on_pause,
	.on_end = on_end,
};
