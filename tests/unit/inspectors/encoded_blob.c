/* Which runs and host labels encoded_blob reports. */
#include "tests/unit/inspectors/corpus.h"
#include "inspectors/table.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* The base64 of bytes, without padding: what a run of it begins with. */
static struct slice encode(struct slice bytes, char *out)
{
	size_t n = 0;
	unsigned held = 0, bits = 0;
	for (size_t k = 0; k < bytes.len; k++) {
		held = held << 8 | (unsigned char)bytes.ptr[k];
		for (bits += 8; bits >= 6; bits -= 6)
			out[n++] = digits[held >> (bits - 6) & 63];
	}
	return slice_of(out, n < RUN_START ? n : RUN_START);
}

static size_t found(enum view_kind kind, uint64_t length, struct slice start)
{
	struct inspection i;
	struct spot spot = {.place = PLACE_BODY, .offset = 17};
	stub_begin(&i, &encoded_blob_inspector);
	assert_int_equal(i.by->on_run(&i, kind, length, &spot, start), INSPECT_PASS);
	if (i.n_findings > 0) {
		assert_int_equal(i.findings[0].reason, REASON_ENCODED_BLOB);
		assert_int_equal(i.findings[0].action, ACTION_FLAG);
		assert_int_equal(i.findings[0].spot.offset, 17);
	}
	stub_finish(&i);
	return i.n_findings;
}

static size_t found_base64_of(struct slice bytes)
{
	char out[256];
	return found(VIEW_BASE64, 100000, encode(bytes, out));
}

static void test_lengths(void **state)
{
	(void)state;
	struct slice start = SLICE("q83vEjRWeJq83vASNFZ4mkLzKpTtXwYhQbNcUdGaRfSeoi7J5V21gPMHlu0D6CO9");
	assert_int_equal(found(VIEW_BASE64, 88, start), 0);
	assert_int_equal(found(VIEW_BASE64, 4096, start), 0);
	assert_int_equal(found(VIEW_BASE64, 4097, start), 1);
	assert_int_equal(found(VIEW_HEX, 2048, SLICE("00ff12ab")), 0);
	assert_int_equal(found(VIEW_HEX, 2049, SLICE("00ff12ab")), 1);
	assert_int_equal(found(VIEW_HEX, 2049, SLICE("0x41, 0x4B")), 1);
}

static void test_contents(void **state)
{
	(void)state;
	char bytes[48];
	fill_random(bytes, sizeof(bytes), 3);
	assert_int_equal(found_base64_of(slice_of(bytes, sizeof(bytes))), 1);
	assert_int_equal(found_base64_of(SLICE("PK\3\4\x14\0\0\0\x08\0\x7a\x61\x62\x63\x64\x65\x66\x67\x68")), 1);
	assert_int_equal(found_base64_of(SLICE("{\"keys\": [\"this is text, and was encoded by somebody\"]}")), 1);
	assert_int_equal(found_base64_of(SLICE("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\1\0\0\0\1\0\x08\6\0\0\0")), 0);
	assert_int_equal(found_base64_of(SLICE("\xff\xd8\xff\xe0\0\x10JFIF\0\1\1\0\0\1\0\1\0\0\xff\xdb")), 0);
	assert_int_equal(found_base64_of(SLICE("%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<</Type/Catalog>>")), 0);
	assert_int_equal(found_base64_of(SLICE("RIFF\x24\xe2\x04\0WAVEfmt \x10\0\0\0\1\0\1\0")), 0);
}

static void test_vectors(void **state)
{
	(void)state;
	float vector[12];
	for (size_t k = 0; k < 12; k++)
		vector[k] = (k % 2 ? -1.0f : 1.0f) / (float)(3 * k + 20);
	assert_int_equal(found_base64_of(slice_of(vector, sizeof(vector))), 0);
	vector[7] = 1e20f;
	assert_int_equal(found_base64_of(slice_of(vector, sizeof(vector))), 1);
}

/* What only has the alphabet: lists of words, paths, numbers. */
static void test_lookalikes(void **state)
{
	(void)state;
	assert_int_equal(found(VIEW_BASE64, 9999, SLICE("apple\nbanana\ncherry\ndates\nelderberry\nfig\ngrape\n")), 0);
	assert_int_equal(found(VIEW_BASE64, 9999, SLICE("usr/share/doc/a-program/2/usr/lib/another_one/3/")), 0);
	assert_int_equal(found(VIEW_HEX, 9999, SLICE("1234567890123456789012345678901234567890")), 0);
	assert_int_equal(found(VIEW_HEX, 9999, SLICE("12 34 56 78 90 12 34 56 78 90")), 0);
	assert_int_equal(found(VIEW_BASE64, 9999, SLICE_NONE), 0);
}

static size_t found_in_name(const char *name)
{
	struct inspection i;
	stub_begin(&i, &encoded_blob_inspector);
	i.target.host = (struct host){.kind = HOST_NAME, .text = slice_str(name)};
	assert_int_equal(i.by->on_name(&i), INSPECT_PASS);
	if (i.n_findings > 0)
		assert_int_equal(i.findings[0].spot.place, PLACE_HOST);
	stub_finish(&i);
	return i.n_findings;
}

static void test_names(void **state)
{
	(void)state;
	assert_int_equal(found_in_name("api.example.test"), 0);
	assert_int_equal(found_in_name("my-very-long-project-name-for-staging-in-cluster-eu-west-12.example.test"), 0);
	assert_int_equal(found_in_name("averylongnamewithoutanydashesbutmadeofplainwordsonly.example.test"), 0);
	assert_int_equal(found_in_name("a1b2c3d4e5f60718293a4b5c6d7e8f90-1234567890.region.elb.example.test"), 0);
	assert_int_equal(found_in_name("ip-10-20-30-40.ec2.internal.example.test"), 0);
	assert_int_equal(found_in_name("5d41402abc4b2a76b9719d911017c592ae2f1b04c8d3e6f7.example.test"), 1);
	assert_int_equal(found_in_name("x.mfrggzdfmztwq2lknnwg23tpobyxe43uov3ho6dzpiydcmrt.example.test"), 1);
	assert_int_equal(found_in_name("5d41402abc4b2a76b971-9d911017c592ae2f1b04c8d3e6f7.x.test"), 1);
	assert_int_equal(found_in_name(""), 0);
}

static void test_addresses(void **state)
{
	(void)state;
	struct inspection i;
	stub_begin(&i, &encoded_blob_inspector);
	i.target.host = (struct host){.kind = HOST_ADDRESS, .text = SLICE("2001:db8::1")};
	assert_int_equal(i.by->on_name(&i), INSPECT_PASS);
	assert_int_equal(i.n_findings, 0);
	stub_finish(&i);
}

static void test_keys(void **state)
{
	(void)state;
	static struct policy_errors errs;
	uint64_t conf[2] = {0, 0};
	assert_int_equal(encoded_blob_inspector.conf_size, sizeof(conf));
	struct node node = {.kind = NODE_TEXT, .text = SLICE("8KiB"), .at = {.file = "t"}};
	struct loader l = {.errs = &errs};
	for (size_t k = 0; k < encoded_blob_inspector.n_keys; k++)
		encoded_blob_inspector.keys[k].read(&l, &node, conf);
	assert_int_equal(errs.n, 0);
	assert_int_equal(conf[0], 8192);
	assert_int_equal(conf[1], 8192);
	node.text = SLICE("many");
	encoded_blob_inspector.keys[0].read(&l, &node, conf);
	assert_int_equal(errs.n, 1);
}

/* Every run of the alphabet, as wide as one may be taken: line breaks, also escaped ones, are part of it. */
static bool is_run_byte(char c)
{
	return c != '\0' && (strchr(digits, c) || strchr("-_=\r\n", c));
}

static void look(const struct corpus_item *item)
{
	size_t from = 0;
	for (size_t at = 0; at <= item->len; at++) {
		if (at < item->len && is_run_byte(item->body[at]))
			continue;
		size_t n = at - from;
		if (n > 0 && found(VIEW_BASE64, n, slice_of(item->body + from, n < RUN_START ? n : RUN_START)) > 0)
			fail_msg("%s at %zu", item->file, from);
		from = at + 1;
	}
}

static void test_corpus(void **state)
{
	(void)state;
	corpus_each(look);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lengths),    cmocka_unit_test(test_contents), cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_lookalikes), cmocka_unit_test(test_names),    cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_keys),       cmocka_unit_test(test_corpus),
	};
	return corpus_exit(cmocka_run_group_tests(tests, NULL, NULL));
}
