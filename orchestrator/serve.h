/* The command `cage serve`. */
#ifndef CAGE_ORCHESTRATOR_SERVE_H
#define CAGE_ORCHESTRATOR_SERVE_H

int cmd_serve(int argc, char **argv);

#endif
