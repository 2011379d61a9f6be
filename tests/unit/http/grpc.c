/* gRPC bodies: the same messages and the same refusals wherever the body is cut; what header fields say of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "core/base/limits.h"
#include "core/http/grpc.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- what header fields say ---- */

static void content_types(void **state)
{
	(void)state;
	static const char *const are[] = {"application/grpc",
					  "application/grpc+proto",
					  "application/grpc+json",
					  "application/grpc+",
					  "Application/GRPC+Proto",
					  " application/grpc\t",
					  "application/grpc;charset=utf-8",
					  "application/grpc+proto ; a=b"};
	static const char *const are_not[] = {"",
					      "application",
					      "application/grp",
					      "application/grpcx",
					      "application/grpc proto",
					      "application/grpc/proto",
					      "application/json; application/grpc",
					      "x application/grpc"};
	for (size_t i = 0; i < COUNT(are); i++)
		assert_int_equal(grpc_kind_of(slice_str(are[i])), GRPC_NATIVE);
	for (size_t i = 0; i < COUNT(are_not); i++)
		assert_int_equal(grpc_kind_of(slice_str(are_not[i])), GRPC_NONE);
	assert_int_equal(grpc_kind_of(SLICE("application/grpc\0")), GRPC_NONE);
}

static void kin(void **state)
{
	(void)state;
	const struct {
		const char *type;
		enum grpc_kind kind;
	} types[] = {{"application/grpc-web", GRPC_WEB},
		     {"application/gRPC-Web+proto; a=b", GRPC_WEB},
		     {"application/grpc-web-text", GRPC_TEXT},
		     {"application/grpc-web-text+proto", GRPC_TEXT},
		     {"application/grpc-webx", GRPC_NONE},
		     {"application/connect+json", GRPC_CONNECT},
		     {"Application/Connect+proto;a=b", GRPC_CONNECT},
		     {"application/connect", GRPC_NONE},
		     {"application/connect ;+", GRPC_NONE}};
	for (size_t i = 0; i < COUNT(types); i++)
		assert_int_equal(grpc_kind_of(slice_str(types[i].type)), types[i].kind);
	assert_true(slice_eq(grpc_encoding_field(GRPC_WEB), SLICE("grpc-encoding")));
	assert_true(slice_eq(grpc_encoding_field(GRPC_CONNECT), SLICE("connect-content-encoding")));
}

/* Each kind has its own flag beside "compressed". */
static void flags_of_kinds(void **state)
{
	(void)state;
	const unsigned also[] = {
		[GRPC_NONE] = 0, [GRPC_NATIVE] = 0, [GRPC_WEB] = 0x80, [GRPC_TEXT] = 0, [GRPC_CONNECT] = 2};
	for (size_t kind = 0; kind < COUNT(also); kind++) {
		for (unsigned flag = 0; flag < 256; flag++) {
			char body[GRPC_PREFIX] = {(char)flag};
			struct slice rest = slice_of(body, sizeof(body));
			struct grpc_reader r = {.kind = (enum grpc_kind)kind};
			struct grpc_part part;
			bool is_good = (flag & ~also[kind]) < 2;
			assert_int_equal(grpc_next(&r, &rest, &part), is_good ? CAGE_OK : CAGE_EPROTO);
			if (is_good)
				assert_int_equal(part.is_compressed, flag & 1);
		}
	}
}

static void any_length(void **state)
{
	(void)state;
	struct slice body = SLICE("\0\xff\xff\xff\xff");
	struct grpc_reader r = {.any_length = true};
	struct grpc_part part;
	assert_int_equal(grpc_next(&r, &body, &part), CAGE_OK);
	assert_int_equal(part.len, UINT32_MAX);
}

static void encodings(void **state)
{
	(void)state;
	const struct {
		struct slice value, coding;
	} good[] = {{SLICE(""), SLICE("")},
		    {SLICE("identity"), SLICE("")},
		    {SLICE("Identity"), SLICE("")},
		    {SLICE("gzip"), SLICE("gzip")},
		    {SLICE(" GZip\t"), SLICE("gzip")},
		    {SLICE(" "), SLICE("")},
		    {SLICE("deflate"), SLICE("deflate")}};
	const struct slice bad[] = {SLICE("snappy"), SLICE("br"),        SLICE("zstd"),          SLICE("x-gzip"),
				    SLICE("gzi"),    SLICE("gzip,gzip"), SLICE("gzip,identity"), SLICE("identity,"),
				    SLICE(","),      SLICE("gzip;q=1"),  SLICE("gzip\0"),        SLICE("gzip br")};
	struct slice coding;
	for (size_t i = 0; i < COUNT(good); i++) {
		assert_int_equal(grpc_encoding_parse(good[i].value, &coding), CAGE_OK);
		assert_true(slice_eq(coding, good[i].coding));
	}
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_int_equal(grpc_encoding_parse(bad[i], &coding), CAGE_EPROTO);
}

/* ---- messages ---- */

/* Parts as text: "0:5<hello>" for each message. */
struct story {
	enum cage_status status;
	char text[512];
	size_t len;
};

static void tell(struct story *s, struct slice words)
{
	assert_true(s->len + words.len <= sizeof(s->text));
	memcpy(s->text + s->len, words.ptr, words.len);
	s->len += words.len;
}

static void tell_part(struct story *s, const struct grpc_part *part)
{
	char room[32];
	switch (part->kind) {
	case GRPC_BEGIN:
		assert_int_equal(part->data.len, GRPC_PREFIX);
		assert_int_equal((unsigned char)part->data.ptr[GRPC_PREFIX - 1], part->len & 255);
		tell(s, slice_of(room, (size_t)snprintf(room, sizeof(room), "%d:%u<", part->is_compressed, part->len)));
		break;
	case GRPC_DATA:
		assert_true(part->data.len > 0);
		tell(s, part->data);
		break;
	case GRPC_END:
		tell(s, SLICE(">"));
		break;
	}
}

static enum cage_status read_piece(struct story *s, struct grpc_reader *r, struct slice piece)
{
	enum cage_status st;
	struct grpc_part part;
	while ((st = grpc_next(r, &piece, &part)) == CAGE_OK)
		tell_part(s, &part);
	if (st == CAGE_AGAIN)
		assert_int_equal(piece.len, 0);
	return st;
}

/* The body comes in a first piece of `first` bytes, and then in pieces of `size`. */
static struct story read_all(struct slice body, size_t first, size_t size)
{
	struct story s = {.status = CAGE_AGAIN};
	struct grpc_reader r = {.n_prefix = 0};
	s.status = read_piece(&s, &r, slice_head(body, first));
	body = slice_from(body, first);
	while (s.status == CAGE_AGAIN && body.len > 0) {
		s.status = read_piece(&s, &r, slice_head(body, size));
		body = slice_from(body, size);
	}
	if (s.status == CAGE_AGAIN)
		s.status = grpc_end_of_input(&r);
	else
		assert_int_equal(grpc_end_of_input(&r), CAGE_EPROTO);
	return s;
}

static void assert_story(const struct story *s, enum cage_status status, struct slice wanted)
{
	assert_int_equal(s->status, status);
	assert_int_equal(s->len, wanted.len);
	assert_memory_equal(s->text, wanted.ptr, wanted.len);
}

/* Cut at every place, and one byte at a time. */
static void assert_reads(struct slice body, enum cage_status status, struct slice wanted)
{
	for (size_t cut = 0; cut <= body.len; cut++) {
		struct story s = read_all(body, cut, SIZE_MAX);
		assert_story(&s, status, wanted);
	}
	struct story s = read_all(body, 0, 1);
	assert_story(&s, status, wanted);
}

static void messages(void **state)
{
	(void)state;
	assert_reads(SLICE(""), CAGE_OK, SLICE(""));
	assert_reads(SLICE("\0\0\0\0\0"), CAGE_OK, SLICE("0:0<>"));
	assert_reads(SLICE("\1\0\0\0\0"), CAGE_OK, SLICE("1:0<>"));
	assert_reads(SLICE("\0\0\0\0\5hello"), CAGE_OK, SLICE("0:5<hello>"));
	assert_reads(SLICE("\1\0\0\0\1a\0\0\0\0\0\0\0\0\0\2bc"), CAGE_OK, SLICE("1:1<a>0:0<>0:2<bc>"));
	assert_reads(SLICE("\0\0\0\0\6\0\0\0\0\1x\0\0\0\0\0"), CAGE_OK, SLICE("0:6<\0\0\0\0\1x>0:0<>"));
}

static void truncated(void **state)
{
	(void)state;
	const struct slice body = SLICE("\0\0\0\0\5hello");
	const struct slice begin = SLICE("0:5<hello");
	for (size_t n = 1; n < body.len; n++)
		assert_reads(slice_head(body, n), CAGE_TRUNCATED, n < 5 ? SLICE("") : slice_head(begin, n - 1));
	assert_reads(SLICE("\0\0\0\0\1x\0"), CAGE_TRUNCATED, SLICE("0:1<x>"));
	assert_reads(SLICE("\0\xff\xff\xff"), CAGE_TRUNCATED, SLICE(""));
}

static void flags(void **state)
{
	(void)state;
	for (unsigned flag = 2; flag < 256; flag++) {
		char body[] = "\0\0\0\0\1x?\0\0\0\0";
		body[6] = (char)flag;
		assert_reads(slice_of(body, 7), CAGE_EPROTO, SLICE("0:1<x>"));
		assert_reads(slice_of(body, sizeof(body) - 1), CAGE_EPROTO, SLICE("0:1<x>"));
	}
}

static void lengths(void **state)
{
	(void)state;
	assert_reads(SLICE("\0\0\1\0\0x"), CAGE_TRUNCATED, SLICE("0:65536<x"));
	assert_reads(SLICE("\0\1\0\0\0x"), CAGE_TRUNCATED, SLICE("0:16777216<x"));
	assert_reads(SLICE("\0\1\0\0\1x"), CAGE_ELIMIT, SLICE(""));
	assert_reads(SLICE("\1\xff\xff\xff\xff"), CAGE_ELIMIT, SLICE(""));
	assert_reads(SLICE("\0\x80\0\0\0"), CAGE_ELIMIT, SLICE(""));
}

static void nothing_behind_an_error(void **state)
{
	(void)state;
	struct grpc_reader r = {.n_prefix = 0};
	struct grpc_part part;
	struct slice bad = SLICE("\2"), good = SLICE("\0\0\0\0\0");
	assert_int_equal(grpc_next(&r, &bad, &part), CAGE_EPROTO);
	assert_int_equal(grpc_next(&r, &good, &part), CAGE_EPROTO);
	assert_int_equal(good.len, 5);
	assert_int_equal(grpc_end_of_input(&r), CAGE_EPROTO);
}

static void a_message_of_the_most(void **state)
{
	(void)state;
	char *body = calloc(1, GRPC_PREFIX + LIMIT_GRPC_MESSAGE);
	assert_non_null(body);
	struct slice rest = slice_of(body, GRPC_PREFIX + LIMIT_GRPC_MESSAGE);
	struct grpc_reader r = {.n_prefix = 0};
	struct grpc_part part;
	body[1] = 1;
	assert_int_equal(grpc_next(&r, &rest, &part), CAGE_OK);
	assert_int_equal(part.kind, GRPC_BEGIN);
	assert_int_equal(grpc_next(&r, &rest, &part), CAGE_OK);
	assert_int_equal(part.data.len, LIMIT_GRPC_MESSAGE);
	assert_int_equal(grpc_next(&r, &rest, &part), CAGE_OK);
	assert_int_equal(part.kind, GRPC_END);
	assert_int_equal(grpc_end_of_input(&r), CAGE_OK);
	free(body);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(content_types),
		cmocka_unit_test(kin),
		cmocka_unit_test(flags_of_kinds),
		cmocka_unit_test(any_length),
		cmocka_unit_test(encodings),
		cmocka_unit_test(messages),
		cmocka_unit_test(truncated),
		cmocka_unit_test(flags),
		cmocka_unit_test(lengths),
		cmocka_unit_test(nothing_behind_an_error),
		cmocka_unit_test(a_message_of_the_most),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
