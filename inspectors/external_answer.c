/* Answers of the external inspector: one object of JSON each, with the keys that the protocol has and no other. What it
 * may change of a request are fields that mean nothing to us: framing, routing and what the policy has judged stay. */
#include "inspectors/external_private.h"

static struct slice text_of(const json_t *string)
{
	return slice_of(json_string_value(string), json_string_length(string));
}

/* ---- fields that it may set or remove ---- */

/* Beside those that field_identify() knows. The last five ask an origin for another method or path than was judged. */
static const struct slice kept_fields[] = {
	WORD("content-encoding"),  WORD("http2-settings"), WORD("x-http-method-override"), WORD("x-http-method"),
	WORD("x-method-override"), WORD("x-original-url"), WORD("x-rewrite-url")};

static bool is_token_byte(unsigned char c)
{
	return ascii_is_digit(c) || (ascii_lower(c) >= 'a' && ascii_lower(c) <= 'z') ||
	       (c != 0 && strchr("!#$%&'*+-.^_`|~", c));
}

/* Origins that make variables of fields take '_' for '-'. */
static bool is_kept(struct slice name, struct slice kept)
{
	size_t i = 0;
	if (name.len != kept.len)
		return false;
	while (i < name.len &&
	       (name.ptr[i] == '_' ? '-' : ascii_lower((unsigned char)name.ptr[i])) == (unsigned char)kept.ptr[i])
		i++;
	return i == name.len;
}

static bool may_change(struct slice name)
{
	enum field_id id = field_identify(name);
	if (name.len == 0 || (id != FIELD_OTHER && id != FIELD_AUTHORIZATION))
		return false;
	for (size_t i = 0; i < name.len; i++)
		if (!is_token_byte((unsigned char)name.ptr[i]))
			return false;
	for (size_t i = 0; i < sizeof(kept_fields) / sizeof(kept_fields[0]); i++)
		if (is_kept(name, kept_fields[i]))
			return false;
	return !slice_ieq(slice_head(name, 7), SLICE("x-cage-"));
}

/* The next character, which must be a byte that a value may have: the opposite of what external_line.c does. -1: it is not. */
static int next_byte(struct slice *rest)
{
	unsigned char c = (unsigned char)rest->ptr[0];
	size_t n = c < 0x80 ? 1 : 2;
	unsigned char low = n == 2 && rest->len > 1 ? (unsigned char)rest->ptr[1] : 0;
	if ((n == 2 && (c & 0xfc) != 0xc0) || (c < 0x20 && c != '\t') || c == 0x7f)
		return -1;
	*rest = slice_from(*rest, n);
	return n == 1 ? c : (c & 3) << 6 | (low & 0x3f);
}

static bool is_value(struct slice text)
{
	if (slice_trim(text).len != text.len)
		return false;
	while (text.len > 0)
		if (next_byte(&text) < 0)
			return false;
	return true;
}

static bool is_set(json_t *set)
{
	const char *name;
	json_t *value;
	if (!json_is_object(set))
		return false;
	json_object_foreach(set, name, value)
	{
		if (!may_change(slice_str(name)) || !json_is_string(value) || !is_value(text_of(value)))
			return false;
	}
	return true;
}

static bool is_remove(json_t *remove)
{
	size_t i;
	json_t *name;
	if (!json_is_array(remove))
		return false;
	json_array_foreach(remove, i, name)
	{
		if (!json_is_string(name) || !may_change(text_of(name)))
			return false;
	}
	return true;
}

/* ---- the answer ---- */

static bool read_verdict(const json_t *value, enum external_verdict *out)
{
	static const struct slice words[] = {[EXTERNAL_PASS] = WORD("pass"),
					     [EXTERNAL_FLAG] = WORD("flag"),
					     [EXTERNAL_BLOCK] = WORD("block"),
					     [EXTERNAL_DONE] = WORD("done")};
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (!slice_eq(text_of(value), words[i]))
			continue;
		*out = (enum external_verdict)i;
		return true;
	}
	return false;
}

/* NULL, or what is wrong with it. */
static const char *read_member(struct external_answer *a, struct slice key, json_t *value)
{
	bool is_text = json_is_string(value);
	if (slice_eq(key, SLICE("id"))) {
		a->id = text_of(value);
		return is_text ? NULL : WRONG("an id that is no text");
	}
	if (slice_eq(key, SLICE("note"))) {
		a->note = text_of(value);
		return is_text ? NULL : WRONG("a note that is no text");
	}
	if (slice_eq(key, SLICE("verdict")))
		return is_text && read_verdict(value, &a->verdict) ? NULL : WRONG("unknown verdict");
	if (slice_eq(key, SLICE("set")))
		return is_set(a->set = value) ? NULL
					      : WRONG("set has a field that may not be changed, or a wrong value");
	if (slice_eq(key, SLICE("remove")))
		return is_remove(a->remove = value) ? NULL : WRONG("remove has a field that may not be changed");
	return WRONG("unknown key");
}

static const char *read_members(struct external_answer *a)
{
	const char *key, *fault = NULL;
	json_t *value;
	json_object_foreach(a->document, key, value)
	{
		if (!fault)
			fault = read_member(a, slice_str(key), value);
	}
	return fault;
}

static const char *find_fault(struct external_answer *a, const json_error_t *error)
{
	if (!a->document)
		return json_error_code(error) == json_error_duplicate_key ? WRONG("a key twice") : WRONG("not JSON");
	if (!json_is_object(a->document))
		return WRONG("not an object of JSON");
	if (!json_object_get(a->document, "id"))
		return WRONG("no id");
	return json_object_get(a->document, "verdict") ? read_members(a) : WRONG("no verdict");
}

enum cage_status external_answer_parse(struct slice line, struct external_answer *a)
{
	json_error_t error;
	*a = (struct external_answer){.document = json_loadb(line.ptr, line.len, JSON_REJECT_DUPLICATES, &error)};
	const char *fault = find_fault(a, &error);
	if (!fault)
		return CAGE_OK;
	external_answer_free(a);
	a->fault = fault;
	return CAGE_EPROTO;
}

void external_answer_free(struct external_answer *a)
{
	json_decref(a->document);
	*a = (struct external_answer){0};
}

/* ---- what it changes ---- */

static bool set_field(struct inspection *i, struct slice name, struct slice text)
{
	static char room[LIMIT_EXTERNAL_LINE]; /* of one answer at a time: a value is no longer than its line */
	struct text value = text_in(room, sizeof(room));
	while (text.len > 0)
		text_put_char(&value, (char)next_byte(&text));
	return text_ok(&value) && inspection_rewrite(i, name, text_slice(&value));
}

bool external_answer_apply(const struct external_answer *a, struct inspection *i)
{
	const char *key;
	json_t *value;
	size_t n;
	bool done = true;
	json_array_foreach(a->remove, n, value)
	{
		done = done && inspection_rewrite(i, text_of(value), SLICE_NONE);
	}
	json_object_foreach(a->set, key, value)
	{
		done = done && set_field(i, slice_str(key), text_of(value));
	}
	return done;
}
