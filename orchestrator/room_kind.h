/* What room can be made on this machine: asked of the gate, before anything is prepared for one. */
#ifndef CAGE_ORCHESTRATOR_ROOM_KIND_H
#define CAGE_ORCHESTRATOR_ROOM_KIND_H

/* Of what the files of the room can be. */
enum room_files {
	FILES_OVERLAY, /* mounts, also an overlay of the directory that was asked about */
	FILES_MOUNTS,
	FILES_SHARED /* those of the machine or container, where they are */
};

struct room_kind {
	char mode[16]; /* "netns" or "seccomp" */
	enum room_files files;
};

/* mode: as asked for, or "auto". overlay: DIR:STATE as the gate takes it, or NULL. An exit code: 0, or one after somebody
 * has said why. */
int room_kind_ask(const char *mode, const char *overlay, struct room_kind *out);

#endif
