/* A reader of patterns that goes down into groups. Each part of a pattern is a struct shape; joining two of them, choosing
 * between them and repeating one gives another. Where the length of what comes first is open, what follows can be any
 * byte. Assertions such as \b are taken as fulfilled. */
#include "inspectors/scan/shape.h"

#define MANY 0xffffu /* no bound, or none that matters */
#define DEPTH 16     /* groups in each other */

struct pattern {
	const char *at, *end;
	const struct byte_set *alphabet;
	bool caseless, is_bad;
	unsigned depth;
};

static const struct shape nothing = {.is_possible = true};

/* ---- shapes ---- */

static struct byte_set either_set(const struct byte_set *a, const struct byte_set *b)
{
	struct byte_set out;
	for (unsigned i = 0; i < 4; i++)
		out.bits[i] = a->bits[i] | b->bits[i];
	return out;
}

static unsigned add(unsigned a, unsigned b)
{
	return a + b < MANY ? a + b : MANY;
}

/* One byte of the set. */
static struct shape byte_of(const struct pattern *p, const struct byte_set *set)
{
	struct shape s = {.least = 1, .most = 1};
	for (unsigned i = 0; i < 4; i++) {
		s.first[0].bits[i] = set->bits[i] & p->alphabet->bits[i];
		s.is_possible |= s.first[0].bits[i] != 0;
	}
	s.all = s.first[0];
	return s;
}

static struct shape join(const struct pattern *p, const struct shape *a, const struct shape *b)
{
	struct shape s = {.is_possible = a->is_possible && b->is_possible,
			  .least = add(a->least, b->least),
			  .most = add(a->most, b->most),
			  .all = either_set(&a->all, &b->all)};
	for (unsigned i = 0; i < SHAPE_FIRST; i++) {
		if (i < a->least)
			s.first[i] = a->first[i];
		else
			s.first[i] = a->least == a->most ? b->first[i - a->least] : *p->alphabet;
	}
	return s;
}

static struct shape choose(const struct shape *a, const struct shape *b)
{
	if (!a->is_possible || !b->is_possible)
		return a->is_possible ? *a : *b;
	struct shape s = {.is_possible = true,
			  .least = a->least < b->least ? a->least : b->least,
			  .most = a->most > b->most ? a->most : b->most,
			  .all = either_set(&a->all, &b->all)};
	for (unsigned i = 0; i < SHAPE_FIRST; i++)
		s.first[i] = either_set(&a->first[i], &b->first[i]);
	return s;
}

static struct shape repeat(const struct pattern *p, const struct shape *one, unsigned least, unsigned most)
{
	struct shape s = nothing;
	if (!one->is_possible)
		return least == 0 ? nothing : *one;
	for (unsigned i = 0; i < least && i < SHAPE_FIRST; i++)
		s = join(p, &s, one);
	for (unsigned i = least; i < most && i < SHAPE_FIRST; i++) {
		struct shape longer = join(p, &s, one);
		s = choose(&s, &longer);
	}
	s.least = one->least * least < MANY ? one->least * least : MANY;
	s.most = one->most * most < MANY ? one->most * most : MANY;
	return s;
}

/* ---- bytes ---- */

static bool take(struct pattern *p, struct slice word)
{
	if (!slice_starts(slice_of(p->at, (size_t)(p->end - p->at)), word))
		return false;
	p->at += word.len;
	return true;
}

static void add_range(struct byte_set *set, unsigned from, unsigned to)
{
	for (unsigned c = from; c <= to; c++)
		byte_set_add(set, (unsigned char)c);
}

static void add_words(struct byte_set *set)
{
	add_range(set, '0', '9');
	add_range(set, 'A', 'Z');
	add_range(set, 'a', 'z');
	byte_set_add(set, '_');
}

static void add_blanks(struct byte_set *set)
{
	add_range(set, '\t', '\r');
	byte_set_add(set, ' ');
}

static unsigned char take_hex(struct pattern *p)
{
	int high = p->end - p->at < 2 ? -1 : ascii_hex((unsigned char)p->at[0]);
	int low = p->end - p->at < 2 ? -1 : ascii_hex((unsigned char)p->at[1]);
	if (high < 0 || low < 0) {
		p->is_bad = true;
		return 0;
	}
	p->at += 2;
	return (unsigned char)(high * 16 + low);
}

static bool is_word(char c)
{
	return ascii_is_digit((unsigned char)c) ||
	       (ascii_lower((unsigned char)c) >= 'a' && ascii_lower((unsigned char)c) <= 'z');
}

/* Behind a backslash: adds what it stands for. True: a single byte, *byte. */
static bool take_escape(struct pattern *p, struct byte_set *set, unsigned char *byte)
{
	char c = p->at < p->end ? *p->at++ : 'Q';
	switch (c) {
	case 'n':
		*byte = '\n';
		break;
	case 'r':
		*byte = '\r';
		break;
	case 't':
		*byte = '\t';
		break;
	case 'x':
		*byte = take_hex(p);
		break;
	case 'd':
		add_range(set, '0', '9');
		return false;
	case 'w':
		add_words(set);
		return false;
	case 's':
		add_blanks(set);
		return false;
	default:
		*byte = (unsigned char)c;
		p->is_bad |= is_word(c) || *byte >= 0x80;
		break;
	}
	byte_set_add(set, *byte);
	return true;
}

static void add_other_case(struct byte_set *set)
{
	for (unsigned c = 'a'; c <= 'z'; c++) {
		unsigned upper = c - 'a' + 'A';
		if (byte_set_has(set, (unsigned char)c) || byte_set_has(set, (unsigned char)upper)) {
			byte_set_add(set, (unsigned char)c);
			byte_set_add(set, (unsigned char)upper);
		}
	}
}

/* One member of a class, or the beginning of a range. True: a single byte. */
static bool take_member(struct pattern *p, struct byte_set *set, unsigned char *byte)
{
	char c = *p->at++;
	if (c == '\\')
		return take_escape(p, set, byte);
	p->is_bad |= c == '['; /* may be a class of POSIX */
	*byte = (unsigned char)c;
	byte_set_add(set, *byte);
	return true;
}

static void take_range(struct pattern *p, struct byte_set *set, unsigned char from)
{
	unsigned char to = 0;
	p->at++;
	if (!take_member(p, set, &to) || to < from)
		p->is_bad = true;
	else
		add_range(set, from, to);
}

/* Behind the opening bracket. */
static struct byte_set take_class(struct pattern *p)
{
	struct byte_set set = {{0}};
	bool is_negated = take(p, SLICE("^"));
	p->is_bad |= p->at < p->end && *p->at == ']';
	while (!p->is_bad && p->at < p->end && *p->at != ']') {
		unsigned char byte = 0;
		bool is_single = take_member(p, &set, &byte);
		if (p->end - p->at >= 2 && p->at[0] == '-' && p->at[1] != ']') {
			p->is_bad |= !is_single;
			take_range(p, &set, byte);
		}
	}
	p->is_bad |= !take(p, SLICE("]"));
	if (p->caseless)
		add_other_case(&set);
	for (unsigned i = 0; i < 4 && is_negated; i++)
		set.bits[i] = ~set.bits[i];
	return set;
}

/* ---- the pattern ---- */

static unsigned take_number(struct pattern *p)
{
	unsigned n = 0;
	p->is_bad |= p->at == p->end || !ascii_is_digit((unsigned char)*p->at);
	while (p->at < p->end && ascii_is_digit((unsigned char)*p->at) && n < MANY)
		n = n * 10 + (unsigned)(*p->at++ - '0');
	p->is_bad |= n >= MANY;
	return n;
}

/* "{n}", "{n,}" or "{n,m}", behind the brace. */
static struct shape take_counts(struct pattern *p, const struct shape *one)
{
	unsigned least = take_number(p), most = least;
	if (take(p, SLICE(",")))
		most = p->at < p->end && *p->at == '}' ? MANY : take_number(p);
	p->is_bad |= !take(p, SLICE("}")) || most < least;
	return repeat(p, one, least, most);
}

static struct shape take_repeat(struct pattern *p, const struct shape *one)
{
	struct shape s = *one;
	if (take(p, SLICE("?")))
		s = repeat(p, one, 0, 1);
	else if (take(p, SLICE("*")))
		s = repeat(p, one, 0, MANY);
	else if (take(p, SLICE("+")))
		s = repeat(p, one, 1, MANY);
	else if (take(p, SLICE("{")))
		s = take_counts(p, one);
	else
		return s;
	(void)(take(p, SLICE("?")) || take(p, SLICE("+"))); /* how hard it tries */
	p->is_bad |= p->at < p->end && (*p->at == '{' || *p->at == '*');
	return s;
}

static struct shape take_choices(struct pattern *p);

/* Behind the opening parenthesis. */
static struct shape take_group(struct pattern *p)
{
	bool was_caseless = p->caseless;
	if (take(p, SLICE("?i:")))
		p->caseless = true;
	else if (!take(p, SLICE("?:")) && p->at < p->end && (*p->at == '?' || *p->at == '*'))
		p->is_bad = true;
	p->is_bad |= ++p->depth > DEPTH;
	struct shape s = take_choices(p);
	p->depth--;
	p->is_bad |= !take(p, SLICE(")"));
	p->caseless = was_caseless;
	return s;
}

static struct shape take_literal(struct pattern *p)
{
	struct byte_set set = {{0}};
	unsigned char byte;
	if (!take(p, SLICE("\\")))
		byte_set_add(&set, (unsigned char)*p->at++);
	else
		(void)take_escape(p, &set, &byte);
	if (p->caseless)
		add_other_case(&set);
	return byte_of(p, &set);
}

static struct shape take_atom(struct pattern *p)
{
	static const struct byte_set all = {{UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}};
	if (take(p, SLICE("\\b")) || take(p, SLICE("^")) || take(p, SLICE("$")))
		return nothing;
	if (take(p, SLICE("(")))
		return take_group(p);
	if (take(p, SLICE(".")))
		return byte_of(p, &all);
	if (take(p, SLICE("["))) {
		struct byte_set set = take_class(p);
		return byte_of(p, &set);
	}
	p->is_bad |= memchr("?*+{}", *p->at, 5) != NULL;
	return take_literal(p);
}

static struct shape take_sequence(struct pattern *p)
{
	struct shape s = nothing;
	while (!p->is_bad && p->at < p->end && *p->at != '|' && *p->at != ')') {
		struct shape one = take_atom(p);
		one = take_repeat(p, &one);
		s = join(p, &s, &one);
	}
	return s;
}

static struct shape take_choices(struct pattern *p)
{
	struct shape s = take_sequence(p);
	while (!p->is_bad && take(p, SLICE("|"))) {
		struct shape other = take_sequence(p);
		s = choose(&s, &other);
	}
	return s;
}

bool shape_of(const struct format *f, const struct byte_set *alphabet, struct shape *out)
{
	struct pattern p = {.at = f->pattern.ptr,
			    .end = f->pattern.ptr + f->pattern.len,
			    .alphabet = alphabet,
			    .caseless = f->caseless};
	*out = take_choices(&p);
	return !p.is_bad && p.at == p.end;
}
