/* A file that says what a workflow is, YAML or JSON, as the body of a request. */
#ifndef CAGE_CLIENT_WORKFLOW_FILE_H
#define CAGE_CLIENT_WORKFLOW_FILE_H

#include <jansson.h>

/* "-": stdin. NULL: it was said what is wrong. What it has under files_from is read, and put under files. */
json_t *workflow_file_read(const char *path);

#endif
