/* The mount calls that work on descriptors. */
#include "orchestrator/gate/mount_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <unistd.h>

#include "orchestrator/gate/plain.h"

int mount_tree_clone(const char *path)
{
	return open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
}

int mount_tree_clone_open(int fd)
{
	return open_tree(fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_EMPTY_PATH);
}

int mount_tree_clone_plain(const char *path)
{
	int fd = plain_open(path);
	if (fd < 0)
		return -1;
	int tree = mount_tree_clone_open(fd);
	int error = errno;
	close(fd);
	errno = error;
	return tree;
}

int mount_tree_kernel(const char *type, const char *const *settings, uint64_t attributes)
{
	int tree = -1;
	int context = fsopen(type, FSOPEN_CLOEXEC);
	if (context < 0)
		return -1;
	int result = 0;
	for (; settings[0] && result == 0; settings += 2)
		result = fsconfig(context, settings[1] ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG, settings[0],
				  settings[1], 0);
	if (result == 0 && fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
		tree = fsmount(context, FSMOUNT_CLOEXEC, (unsigned)attributes);
	int error = errno;
	close(context);
	errno = error;
	return tree;
}

int mount_tree_tmpfs(struct memory most, const char *mode, uint64_t attributes)
{
	char bytes[32], inodes[32];
	const char *const settings[] = {"size", bytes, "nr_inodes", inodes, "mode", mode, NULL};
	snprintf(bytes, sizeof(bytes), "%zu", most.bytes);
	snprintf(inodes, sizeof(inodes), "%zu", most.inodes);
	return mount_tree_kernel("tmpfs", settings, attributes | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
}

int mount_tree_restrict(int tree, uint64_t attributes)
{
	struct mount_attr attr = {.attr_set = attributes, .propagation = MS_PRIVATE};
	return mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr));
}

int mount_tree_restrict_path(const char *path, uint64_t attributes)
{
	struct mount_attr attr = {.attr_set = attributes};
	return mount_setattr(AT_FDCWD, path, 0, &attr, sizeof(attr));
}

int mount_tree_attach(int tree, const char *path)
{
	return move_mount(tree, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_SYMLINKS);
}
