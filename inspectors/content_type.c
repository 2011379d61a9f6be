/* content_type: is the body what its Content-Type says (THREATS T27)?
 *
 * The first bytes are held against the declared type. Executables and archives that are declared as text or as an image
 * are blocked, everything else that does not fit is flagged. With `action: flag` all of it is only flagged. A type that
 * says nothing about the bytes (application/octet-stream, or one that we don't know) can't be wrong; without any type
 * only executables are flagged. */
#include "inspectors/sniff.h"
#include "inspectors/table.h"

/* What is claimed. */
enum claim {
	CLAIM_NONE,  /* there is no Content-Type, or none that can be read */
	CLAIM_OTHER, /* anything may be in it */
	CLAIM_TEXT,
	CLAIM_DATA, /* text that no script can be: JSON, XML, forms */
	CLAIM_IMAGE,
	CLAIM_MEDIA,
	CLAIM_FONT,
	CLAIM_PDF,
	CLAIM_ARCHIVE,
	CLAIM_MULTIPART
};

struct content_type_state {
	bool is_judged;
	size_t n_start;
	char start[SNIFF_BYTES];
};

/* Patterns of types, in lower case: "*x" ends so, "x*" begins so. The first that fits counts. */
static const struct {
	struct slice pattern;
	enum claim claim;
} claims[] = {
	{WORD("*+json"), CLAIM_DATA},
	{WORD("*+xml"), CLAIM_DATA},
	{WORD("text/json"), CLAIM_DATA},
	{WORD("text/xml"), CLAIM_DATA},
	{WORD("text/*"), CLAIM_TEXT},
	{WORD("application/json*"), CLAIM_DATA},
	{WORD("application/x-ndjson"), CLAIM_DATA},
	{WORD("application/ndjson"), CLAIM_DATA},
	{WORD("application/jsonl"), CLAIM_DATA},
	{WORD("application/xml*"), CLAIM_DATA},
	{WORD("application/graphql"), CLAIM_DATA},
	{WORD("application/x-www-form-urlencoded"), CLAIM_DATA},
	{WORD("application/javascript"), CLAIM_TEXT},
	{WORD("application/x-javascript"), CLAIM_TEXT},
	{WORD("application/ecmascript"), CLAIM_TEXT},
	{WORD("application/typescript"), CLAIM_TEXT},
	{WORD("application/x-sh"), CLAIM_TEXT},
	{WORD("application/x-shellscript"), CLAIM_TEXT},
	{WORD("application/yaml"), CLAIM_TEXT},
	{WORD("application/x-yaml"), CLAIM_TEXT},
	{WORD("application/toml"), CLAIM_TEXT},
	{WORD("application/sql"), CLAIM_TEXT},
	{WORD("application/x-pem-file"), CLAIM_TEXT},
	{WORD("application/grpc-web-text*"), CLAIM_TEXT},
	{WORD("application/pdf"), CLAIM_PDF},
	{WORD("application/zip"), CLAIM_ARCHIVE},
	{WORD("application/gzip"), CLAIM_ARCHIVE},
	{WORD("application/x-gzip"), CLAIM_ARCHIVE},
	{WORD("application/zstd"), CLAIM_ARCHIVE},
	{WORD("application/x-tar"), CLAIM_ARCHIVE},
	{WORD("application/x-xz"), CLAIM_ARCHIVE},
	{WORD("application/x-bzip2"), CLAIM_ARCHIVE},
	{WORD("application/x-7z-compressed"), CLAIM_ARCHIVE},
	{WORD("audio/*mpegurl"), CLAIM_TEXT},
	{WORD("image/*"), CLAIM_IMAGE},
	{WORD("audio/*"), CLAIM_MEDIA},
	{WORD("video/*"), CLAIM_MEDIA},
	{WORD("font/*"), CLAIM_FONT},
	{WORD("multipart/*"), CLAIM_MULTIPART},
};

/* ---- reading the field ---- */

static bool is_token(struct slice s)
{
	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.ptr[i];
		bool is_letter = ascii_lower(c) >= 'a' && ascii_lower(c) <= 'z';
		if (!is_letter && !ascii_is_digit(c) && (c == 0 || !strchr("!#$%&'*+-.^_`|~", c)))
			return false;
	}
	return s.len > 0;
}

/* "type/subtype" in front of the parameters; empty when it is not well-formed. */
static struct slice essence(struct slice value)
{
	struct slice whole = slice_trim(slice_cut(&value, ';'));
	struct slice subtype = whole;
	struct slice type = slice_cut(&subtype, '/');
	return is_token(type) && is_token(subtype) ? whole : SLICE_NONE;
}

/* The next Content-Type field from *k on, or NULL. */
static const struct field *next_type(const struct inspection *i, size_t *k)
{
	const struct message *head = inspection_subject(i)->head;
	while (*k < head->n_fields) {
		const struct field *f = &head->fields[(*k)++];
		if (slice_ieq(f->name, SLICE("content-type")))
			return f;
	}
	return NULL;
}

static bool fits(struct slice pattern, struct slice type)
{
	size_t star = slice_find(pattern, '*');
	if (star == pattern.len)
		return slice_ieq(pattern, type);
	struct slice tail = slice_from(pattern, star + 1);
	return type.len >= star + tail.len && slice_ieq(slice_head(pattern, star), slice_head(type, star)) &&
	       slice_ieq(tail, slice_from(type, type.len - tail.len));
}

static enum claim claim_of(struct slice value)
{
	struct slice type = essence(value);
	if (type.len == 0)
		return CLAIM_NONE;
	for (size_t i = 0; i < sizeof(claims) / sizeof(claims[0]); i++)
		if (fits(claims[i].pattern, type))
			return claims[i].claim;
	return CLAIM_OTHER;
}

/* The value of the boundary parameter, without quotes. */
static struct slice boundary_of(struct slice value)
{
	slice_cut(&value, ';');
	while (value.len > 0) {
		struct slice content = slice_trim(slice_cut(&value, ';'));
		struct slice name = slice_cut(&content, '=');
		if (!slice_ieq(name, SLICE("boundary")))
			continue;
		bool is_quoted =
			content.len >= 2 && slice_starts(content, SLICE("\"")) && slice_ends(content, SLICE("\""));
		return is_quoted ? slice_of(content.ptr + 1, content.len - 2) : content;
	}
	return SLICE_NONE;
}

/* ---- judging ---- */

/* Does it start with its boundary? An empty line before it is what some clients send. */
static bool has_boundary(struct slice start, struct slice boundary)
{
	if (slice_starts(start, SLICE("\r\n")))
		start = slice_from(start, 2);
	return boundary.len > 0 && slice_starts(start, SLICE("--")) && slice_starts(slice_from(start, 2), boundary);
}

static bool is_text(enum content_kind kind)
{
	return kind == CONTENT_TEXT || kind == CONTENT_JSON || kind == CONTENT_XML;
}

/* Not to be seen under a type that is shown or read. */
static bool is_cargo(enum content_kind kind)
{
	return kind == CONTENT_EXECUTABLE || kind == CONTENT_ARCHIVE;
}

static enum inspect_action when(bool is_wrong, enum inspect_action action)
{
	return is_wrong ? action : ACTION_OFF;
}

/* A script is text, and an executable only where there can't be a script. */
static enum inspect_action judge_text(enum claim claim, enum content_kind kind, bool is_script)
{
	if (is_script)
		return when(claim == CLAIM_DATA, ACTION_FLAG);
	return is_cargo(kind) ? ACTION_BLOCK : when(!is_text(kind), ACTION_FLAG);
}

/* Formats that sniff() does not know are not wrong. */
static enum inspect_action judge_shown(enum content_kind kind, enum content_kind wanted, enum inspect_action cargo)
{
	if (kind == wanted || kind == CONTENT_BINARY)
		return ACTION_OFF;
	return is_cargo(kind) ? cargo : ACTION_FLAG;
}

static enum inspect_action judge(struct slice value, struct slice start, enum content_kind kind)
{
	enum claim claim = claim_of(value);
	if (kind == CONTENT_EMPTY)
		return ACTION_OFF;
	switch (claim) {
	case CLAIM_NONE:
	case CLAIM_ARCHIVE:
		return when(kind == CONTENT_EXECUTABLE, ACTION_FLAG);
	case CLAIM_OTHER:
		return ACTION_OFF;
	case CLAIM_TEXT:
	case CLAIM_DATA:
		return judge_text(claim, kind, slice_starts(start, SLICE("#!")));
	case CLAIM_IMAGE:
		return judge_shown(kind, CONTENT_IMAGE, ACTION_BLOCK);
	case CLAIM_MEDIA:
		return judge_shown(kind, CONTENT_MEDIA, ACTION_FLAG);
	case CLAIM_FONT:
		return judge_shown(kind, CONTENT_FONT, ACTION_FLAG);
	case CLAIM_PDF:
		return judge_shown(kind, CONTENT_PDF, ACTION_FLAG);
	case CLAIM_MULTIPART:
		return when(!has_boundary(start, boundary_of(value)), ACTION_FLAG);
	}
	return ACTION_BLOCK;
}

/* With several types, by the one that it fits least. */
static enum inspect_action judge_all(const struct inspection *i, struct slice start)
{
	size_t k = 0;
	enum content_kind kind = sniff(start);
	const struct field *f = next_type(i, &k);
	enum inspect_action worst = judge(f ? f->value : SLICE_NONE, start, kind);
	while ((f = next_type(i, &k))) {
		enum inspect_action action = judge(f->value, start, kind);
		if (action > worst)
			worst = action;
	}
	return worst;
}

static enum inspect_result decide(struct inspection *i, struct content_type_state *st)
{
	struct spot spot = {.place = PLACE_BODY};
	st->is_judged = true;
	switch (judge_all(i, slice_of(st->start, st->n_start))) {
	case ACTION_OFF:
		break;
	case ACTION_FLAG:
		inspection_report_as(i, ACTION_FLAG, REASON_TYPE_MISMATCH, &spot, SLICE_NONE, SLICE_NONE);
		break;
	case ACTION_BLOCK:
		inspection_report(i, REASON_TYPE_MISMATCH, &spot, SLICE_NONE, SLICE_NONE);
		break;
	}
	return INSPECT_DONE;
}

/* Several types, or one that can't be read, leave it to the reader which counts. */
static enum inspect_result on_head(struct inspection *i)
{
	size_t k = 0;
	struct spot spot = {.place = PLACE_HEADER, .name = SLICE("content-type")};
	const struct field *f = next_type(i, &k);
	if (f && (essence(f->value).len == 0 || next_type(i, &k)))
		inspection_report_as(i, ACTION_FLAG, REASON_TYPE_MISMATCH, &spot, SLICE_NONE, SLICE_NONE);
	return INSPECT_PASS;
}

static enum inspect_result on_body(struct inspection *i, struct slice piece)
{
	struct content_type_state *st = inspection_state(i);
	struct slice head = slice_head(piece, SNIFF_BYTES - st->n_start);
	if (head.len > 0)
		memcpy(st->start + st->n_start, head.ptr, head.len);
	st->n_start += head.len;
	return st->n_start == SNIFF_BYTES && !st->is_judged ? decide(i, st) : INSPECT_PASS;
}

static enum inspect_result on_end(struct inspection *i)
{
	struct content_type_state *st = inspection_state(i);
	return st->is_judged ? INSPECT_DONE : decide(i, st);
}

const struct inspector content_type_inspector = {
	.name = WORD("content_type"),
	.action = ACTION_BLOCK,
	.state_size = sizeof(struct content_type_state),
	.on_head = on_head,
	.on_body = on_body,
	.on_pause = on_end,
	.on_end = on_end,
};
