/* The commands `cage serve` and `cage azure`. */
#ifndef CAGE_ORCHESTRATOR_SERVE_H
#define CAGE_ORCHESTRATOR_SERVE_H

int cmd_serve(int argc, char **argv);
int cmd_azure(int argc, char **argv);

#endif
