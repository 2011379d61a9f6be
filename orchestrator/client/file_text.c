/* Reading a whole file, within a bound. */
#include "orchestrator/client/file_text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/limits.h"
#include "core/base/say.h"

/* NULL with errno. */
static char *read_all(int fd, size_t *len)
{
	size_t room = KIB(64);
	char *text = malloc(room);
	ssize_t n = 1;
	*len = 0;
	while (text && n != 0) {
		n = read(fd, text + *len, room - *len);
		if (n < 0 && errno != EINTR)
			break;
		*len += n > 0 ? (size_t)n : 0;
		if (*len > LIMIT_CLIENT_TEXT) {
			errno = EFBIG;
			n = -1;
			break;
		}
		if (*len == room) {
			char *more = realloc(text, room *= 2);
			if (!more)
				free(text);
			text = more;
		}
	}
	if (n == 0)
		return text;
	free(text);
	return NULL;
}

char *file_text_from(int fd, const char *option, const char *path, size_t *len)
{
	char *text = fd < 0 ? NULL : read_all(fd, len);
	if (!text)
		say("%s %s: %s", option, path, strerror(errno));
	if (fd > STDIN_FILENO)
		close(fd);
	return text;
}

char *file_text(const char *option, const char *path, size_t *len)
{
	return file_text_from(strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC), option, path,
			      len);
}
