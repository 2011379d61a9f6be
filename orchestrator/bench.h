/* The command `cage bench`. */
#ifndef CAGE_ORCHESTRATOR_BENCH_H
#define CAGE_ORCHESTRATOR_BENCH_H

int cmd_bench(int argc, char **argv);

#endif
