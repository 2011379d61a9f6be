/* Runs a fuzz target without a fuzzer: once with each file of the named directories, so that every build that has tests
 * keeps the promises on the inputs that are known. */
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <limits.h>

#define INPUT_MAX (1 << 20)

static char input[INPUT_MAX];

static bool replay_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	if (!file) {
		perror(path);
		return false;
	}
	struct slice bytes = fuzz_copy(slice_of(input, fread(input, 1, sizeof(input), file)));
	fclose(file);
	fprintf(stderr, "%s\n", path);
	LLVMFuzzerTestOneInput((const uint8_t *)bytes.ptr, bytes.len);
	fuzz_free(&bytes);
	return true;
}

/* How many files there were; 0 is a failure. */
static size_t replay_directory(const char *path)
{
	size_t n = 0;
	DIR *dir = opendir(path);
	if (!dir) {
		perror(path);
		return 0;
	}
	for (const struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
		char name[PATH_MAX];
		snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
		if (entry->d_name[0] == '.')
			continue;
		if (!replay_file(name)) {
			n = 0;
			break;
		}
		n++;
	}
	closedir(dir);
	return n;
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "usage: %s DIRECTORY...\n", argv[0]);
		return 2;
	}
	for (int i = 1; i < argc; i++)
		if (replay_directory(argv[i]) == 0)
			return 1;
	return 0;
}
