/* What sniff() makes of first bytes: one example of each format, of the words that look like one, and of pieces cut short. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "inspectors/sniff.h"

static void assert_kind(struct slice start, enum content_kind wanted)
{
	enum content_kind got = sniff(start);
	if (got != wanted)
		fail_msg("%.20s: got %s, wanted %s", start.ptr, content_kind_text(got).ptr,
			 content_kind_text(wanted).ptr);
}

#define KIND(lit, kind) assert_kind(SLICE(lit), kind)

static void test_text(void **state)
{
	(void)state;
	assert_kind(SLICE_NONE, CONTENT_EMPTY);
	KIND("hello", CONTENT_TEXT);
	KIND("a=1&b=2", CONTENT_TEXT);
	KIND("gr\xc3\xbc\xc3\x9f Gott \xe4\xbd\xa0 \xf0\x9f\x98\x80", CONTENT_TEXT);
	KIND("\x1b[31mred\x1b[0m\n", CONTENT_TEXT);
	KIND("\xef\xbb\xbftext", CONTENT_TEXT);
	KIND("\xff\xfeh\0i\0", CONTENT_TEXT);
	KIND("\xfe\xff\0h\0i", CONTENT_TEXT);
	KIND("MZ is how it starts", CONTENT_TEXT);
	KIND("BM and BZh and PACK and ID3", CONTENT_TEXT);
	KIND("-----BEGIN CERTIFICATE-----\nMIIF", CONTENT_TEXT);
	KIND("---\ncontents: yaml\n", CONTENT_TEXT);
	KIND("--\nContent-Type: no name\n", CONTENT_TEXT);
	KIND("[section]\nkey=1\n", CONTENT_TEXT);
	KIND("{{ template }}", CONTENT_TEXT);
	KIND("a < b", CONTENT_TEXT);
	KIND("< b", CONTENT_TEXT);
}

static void test_structured_text(void **state)
{
	(void)state;
	KIND("{\"a\":1}", CONTENT_JSON);
	KIND("  {\n \"a\" : 1}", CONTENT_JSON);
	KIND("\xef\xbb\xbf{}", CONTENT_JSON);
	KIND("[", CONTENT_JSON);
	KIND("[{\"a\":1}]", CONTENT_JSON);
	KIND("[-1]", CONTENT_JSON);
	KIND("<?xml version=\"1.0\"?>", CONTENT_XML);
	KIND("\n<!DOCTYPE html>", CONTENT_XML);
	KIND("<svg xmlns=\"x\">", CONTENT_XML);
	KIND("--abc\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--abc--\r\n", CONTENT_MULTIPART);
	KIND("------b\ncontent-type: text/plain\n\nx", CONTENT_MULTIPART);
	KIND("--abc\r\nContent-Type: image/png\r\n\r\n\x89PNG\r\n\x1a\n", CONTENT_MULTIPART);
	KIND("#!/bin/sh\necho\n", CONTENT_EXECUTABLE);
}

static void test_not_text(void **state)
{
	(void)state;
	KIND("a\0b", CONTENT_BINARY);
	KIND("\xc0\x80 overlong", CONTENT_BINARY);
	KIND("\xe0\x80\x80 overlong", CONTENT_BINARY);
	KIND("\xed\xa0\x80 half a pair", CONTENT_BINARY);
	KIND("\xf4\x90\x80\x80 too high", CONTENT_BINARY);
	KIND("\xf8 no lead", CONTENT_BINARY);
	KIND("cut off \xe4\xbd", CONTENT_BINARY);
	KIND("\x7f", CONTENT_BINARY);
	KIND("\xff\xfeh\0i", CONTENT_BINARY);
	KIND("\xff\xfe\x00\xdc", CONTENT_BINARY);
	KIND("\xff\xfe\x00\xd8", CONTENT_BINARY);
	KIND("\xff\xfe\x01\0", CONTENT_BINARY);
}

/* Text that ends inside a character only because no more than SNIFF_BYTES are looked at is text. */
static void test_cut_text(void **state)
{
	(void)state;
	char start[SNIFF_BYTES + 2];
	for (size_t shift = 0; shift < 4; shift++) {
		memset(start, 'a', sizeof(start));
		for (size_t i = shift; i + 4 <= sizeof(start); i += 4)
			memcpy(start + i, "\xf0\x9f\x98\x80", 4);
		assert_kind(slice_of(start, SNIFF_BYTES), CONTENT_TEXT);
		assert_kind(slice_of(start, sizeof(start)), CONTENT_TEXT);
		if (shift != 0)
			assert_kind(slice_of(start, SNIFF_BYTES - 4), CONTENT_BINARY);
	}
}

static void test_images(void **state)
{
	(void)state;
	KIND("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", CONTENT_IMAGE);
	KIND("\xff\xd8\xff\xe0\0\x10JFIF", CONTENT_IMAGE);
	KIND("GIF89a\1\0\1\0\x80", CONTENT_IMAGE);
	KIND("RIFF\x24\0\0\0WEBPVP8 ", CONTENT_IMAGE);
	KIND("II*\0\x08\0\0\0", CONTENT_IMAGE);
	KIND("\0\0\0\x20"
	     "ftypavif\0\0\0\0",
	     CONTENT_IMAGE);
	KIND("\0\0\1\0\1\0\x10\x10\0\0\1\0\x20\0\x68\4\0\0\x16\0\0\0", CONTENT_IMAGE);
	KIND("BM\x46\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\1\0\0\0\1\0\0\0\1\0", CONTENT_IMAGE);
}

static void test_media_and_fonts(void **state)
{
	(void)state;
	KIND("RIFF\x24\0\0\0WAVEfmt ", CONTENT_MEDIA);
	KIND("ID3\4\0\0\0\0\0\0", CONTENT_MEDIA);
	KIND("OggS\0\2\0\0", CONTENT_MEDIA);
	KIND("\xff\xfb\x90\x44\0\0", CONTENT_MEDIA);
	KIND("\xff\xf1\x50\x80\0\0", CONTENT_MEDIA);
	KIND("#!AMR\n\x0c\0\xf0", CONTENT_MEDIA);
	KIND("\0\0\0\x18"
	     "ftypmp42\0\0\0\0",
	     CONTENT_MEDIA);
	KIND("\x1a\x45\xdf\xa3\x01", CONTENT_MEDIA);
	KIND("wOF2\0\1\0\0", CONTENT_FONT);
	KIND("\0\1\0\0\0\x0c\0\x80\0\3\0\x40", CONTENT_FONT);
	KIND("%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", CONTENT_PDF);
	KIND("%PDF-1.7\nplain", CONTENT_PDF);
}

static void test_archives(void **state)
{
	(void)state;
	char tar[512] = "file.txt";
	memcpy(tar + 257, "ustar", 5);
	assert_kind(slice_of(tar, sizeof(tar)), CONTENT_ARCHIVE);
	KIND("PK\3\4\x14\0\0\0", CONTENT_ARCHIVE);
	KIND("\x1f\x8b\x08\0\0\0\0\0", CONTENT_ARCHIVE);
	KIND("BZh91AY&SY\xff", CONTENT_ARCHIVE);
	KIND("\xfd"
	     "7zXZ\0\0",
	     CONTENT_ARCHIVE);
	KIND("\x28\xb5\x2f\xfd\4", CONTENT_ARCHIVE);
	KIND("7z\xbc\xaf\x27\x1c\0", CONTENT_ARCHIVE);
	KIND("Rar!\x1a\7\1\0", CONTENT_ARCHIVE);
	KIND("PACK\0\0\0\2\0\0\0\3", CONTENT_ARCHIVE);
	KIND("# v2 git bundle\n0123 HEAD\n\nPACK", CONTENT_ARCHIVE);
}

static void test_executables(void **state)
{
	(void)state;
	KIND("\x7f"
	     "ELF\2\1\1\0",
	     CONTENT_EXECUTABLE);
	KIND("MZ\x90\0\3\0", CONTENT_EXECUTABLE);
	KIND("\xcf\xfa\xed\xfe\7\0\0\1", CONTENT_EXECUTABLE);
	KIND("\xca\xfe\xba\xbe\0\0\0\x34", CONTENT_EXECUTABLE);
	KIND("\0asm\1\0\0\0", CONTENT_EXECUTABLE);
	KIND("#!/bin/sh\n\x1f\x8b", CONTENT_EXECUTABLE);
}

static void test_grpc(void **state)
{
	(void)state;
	KIND("\0\0\0\0\0", CONTENT_GRPC);
	KIND("\0\0\0\0\3\x0a\1a", CONTENT_GRPC);
	KIND("\0\0\0\0\1\x08\1\0\0\0\2\x1f\x8b", CONTENT_GRPC);
	KIND("\0\0\0\0\4\x0a\1a", CONTENT_BINARY);
	KIND("\0\0\0\0\2\x0a\1a", CONTENT_BINARY);
	KIND("\2\0\0\0\3\x0a\1a", CONTENT_BINARY);
	char start[SNIFF_BYTES] = "\0\0\1\0\0\xff"; /* 64 KiB, of which this is the first part */
	assert_kind(slice_of(start, sizeof(start)), CONTENT_GRPC);
	start[1] = '\x10'; /* 256 MiB */
	assert_kind(slice_of(start, sizeof(start)), CONTENT_BINARY);
}

#define ID "0123456789abcdef0123456789abcdef01234567"

static void test_git(void **state)
{
	(void)state;
	KIND("0032want " ID "\n00000009done\n", CONTENT_TEXT);
	KIND("0011command=fetch0014agent=git/2.390001000fno-progress0032want " ID "\n0000", CONTENT_TEXT);
	KIND("0074" ID " " ID " refs/heads/main\0 report-status0000PACK\0\0\0\2\0\0", CONTENT_ARCHIVE);
	KIND("0074" ID " " ID " refs/heads/main\0 report-status0000", CONTENT_TEXT);
	KIND("0074" ID " " ID " refs/heads/main\0 report-status0000\1\2\3\4", CONTENT_BINARY);
	KIND("0010\0\1\2\3\4\5\6\7\x08\x0b\x0c\x0e", CONTENT_BINARY);
}

/* The same numbers at every run. */
static size_t next_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (size_t)(*seed >> 33);
}

/* Whatever the bytes and however few, there is an answer and nothing is read beyond the end. */
static void test_any_bytes(void **state)
{
	(void)state;
	uint64_t seed = 1;
	for (int round = 0; round < 2000; round++) {
		size_t n = next_random(&seed) % (SNIFF_BYTES + 8);
		unsigned char *bytes = malloc(n + 1);
		assert_non_null(bytes);
		size_t range = round % 2 ? 256 : 3;
		for (size_t i = 0; i < n; i++)
			bytes[i] = (unsigned char)(next_random(&seed) % range);
		struct slice exact = slice_of(bytes, n);
		assert_true(content_kind_text(sniff(exact)).len > 0);
		free(bytes);
	}
}

/* Every beginning of a format gives an answer, read from memory of exactly that size. */
static void test_every_length(void **state)
{
	(void)state;
	static const struct slice all[] = {
		{"\0\0\1\0\1\0\x10\x10\0\0\1\0\x20\0\x68\4\0\0\x16\0\0\0", 22},
		{"0074" ID " " ID " refs/heads/main\0 report-status0000PACK\0\0\0\2", 128},
		{"--abc\r\nContent-Disposition: form-data", 37},
		{"\xff\xfeh\0i\0", 6},
	};
	for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++) {
		for (size_t n = 1; n <= all[k].len; n++) {
			char *copy = malloc(n);
			assert_non_null(copy);
			memcpy(copy, all[k].ptr, n);
			assert_true(content_kind_text(sniff(slice_of(copy, n))).len > 0);
			free(copy);
		}
		assert_true(sniff(all[k]) != CONTENT_BINARY);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),      cmocka_unit_test(test_structured_text),
		cmocka_unit_test(test_not_text),  cmocka_unit_test(test_cut_text),
		cmocka_unit_test(test_images),    cmocka_unit_test(test_media_and_fonts),
		cmocka_unit_test(test_archives),  cmocka_unit_test(test_executables),
		cmocka_unit_test(test_grpc),      cmocka_unit_test(test_git),
		cmocka_unit_test(test_any_bytes), cmocka_unit_test(test_every_length),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
