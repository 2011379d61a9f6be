/* Between the files of a job: job.c, job_program.c, job_link.c. */
#ifndef CAGE_INSIDE_JOB_PRIVATE_H
#define CAGE_INSIDE_JOB_PRIVATE_H

#include "orchestrator/inside/job.h"

/* ---- job.c ---- */

void job_enter(struct job *j, enum job_state next);

/* The job is free again, and "HOW NUMBER" is said of it. */
void job_done(struct job *j, job_say *say, const char *how, int number);

void job_shut(int *fd);

/* How full the file system of the root is: it has no other files than those of the sandbox. 0, or an errno. */
int job_say_used(const struct job *j, job_say *say);

/* ---- job_program.c ---- */

enum told { TOLD_SOME, TOLD_NOTHING, TOLD_ALL };

/* words: a directory, then a program and its arguments. */
void job_run(struct job *j, char **words, job_say *say);

/* As much of *fd as the window lets through: there is some room in it. */
enum told job_tell(struct job *j, int *fd, job_say *say);

/* It has ended: the rest of what it wrote, as far as the window lets it through, and then how; how, at once. */
void job_leave(struct job *j, job_say *say);
void job_tell_end(struct job *j, job_say *say);

void job_signal(const struct job *j, int number);

/* ---- job_link.c ---- */

void job_begin_link(struct job *j, const char *port, job_say *say);
void job_link_ready(struct job *j, job_say *say);
void job_link_frame(struct job *j, const struct frame *f, job_say *say);

#endif
