/* What content is, by its bytes: the declared type is only a claim (THREATS T27). */
#ifndef CAGE_INSPECTORS_SNIFF_H
#define CAGE_INSPECTORS_SNIFF_H

#include "core/base/slice.h"

enum content_kind {
	CONTENT_EMPTY,
	CONTENT_TEXT,      /* UTF-8, or UTF-16 with its mark, without controls but tab, CR, LF, FF, ESC */
	CONTENT_JSON,      /* text that starts like JSON */
	CONTENT_XML,       /* and like XML or HTML */
	CONTENT_MULTIPART, /* starts with a boundary line */
	CONTENT_IMAGE,     /* png, jpeg, gif, webp, bmp, ico, tiff, avif */
	CONTENT_MEDIA,     /* audio and video */
	CONTENT_FONT,
	CONTENT_PDF,
	CONTENT_ARCHIVE,    /* zip, tar, 7z, rar, gzip, bzip2, xz, zstd, git pack and bundle, ... */
	CONTENT_EXECUTABLE, /* ELF, PE, Mach-O, wasm, class files, scripts by their #! line */
	CONTENT_GRPC,       /* length-prefixed messages that add up */
	CONTENT_BINARY      /* none of these */
};

/* The kind, from the first bytes of a body (SNIFF_BYTES are enough, fewer may be all there is). */
#define SNIFF_BYTES 1024
#define SNIFF_BOUNDARY 72 /* bytes of a boundary line at most, with its "--" */
enum content_kind sniff(struct slice start);

struct slice content_kind_text(enum content_kind kind);

#endif
