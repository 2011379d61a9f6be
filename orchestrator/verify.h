/* cage verify: is the room as tight here as it should be? */
#ifndef CAGE_ORCHESTRATOR_VERIFY_H
#define CAGE_ORCHESTRATOR_VERIFY_H

int cmd_verify(int argc, char **argv);

#endif
