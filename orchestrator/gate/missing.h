/* Why a command is not there. */
#ifndef CAGE_GATE_MISSING_H
#define CAGE_GATE_MISSING_H

/* In the process that could not become it: says what would help. */
void missing_explain(const char *command);

#endif
