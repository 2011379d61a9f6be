/* cage image: what would be said of an image, without running it. */
#ifndef CAGE_IMAGE_IMAGE_H
#define CAGE_IMAGE_IMAGE_H

int cmd_image(int argc, char **argv);

#endif
