/* plan/judge.h: private to the judgement of an app (judge.c and its parts). */
#ifndef FELLOE_JUDGE_H
#define FELLOE_JUDGE_H

#include "plan/plan.h"

struct judge {
    arena *a;
    const struct catalogue *catalogue;
    const struct space *space;
    const struct need_list *needs;
    const struct target *target;
    findings *f;
    struct yaml limits; /* data/limits.yaml */
    str python;         /* "3.12", as declared; absent: not declared */
    const struct requirement_line
        *torch;    /* the line that pins it, or the last one that names it; NULL: none */
    str torch_pin; /* "2.8.0"; absent: not pinned */
};

void judge_front(struct judge *j);  /* front matter, app file, platform packages */
void judge_pins(struct judge *j);   /* requirements.txt and wheels against Python and torch */
void judge_wheels(struct judge *j); /* every wheel that is named: committed, by URL, installed at start-up */
void judge_builds(struct judge *j); /* start-up installs, source builds, vendored sources */
void judge_needs(struct judge *j);  /* what nothing installs, forks, back ends */
void judge_calls(struct judge *j);  /* GPU functions and what crosses the process boundary */

/* "3.12" of "3.12.12"; text itself when it has fewer parts. */
str major_minor(str version);
/* Whether code for `archs` (sm_80, sm_90a, compute_90 ...) runs on a GPU `arch` (sm_120), by the rules of the CUDA driver. */
bool archs_run_on(const struct strs *archs, str arch);
/* The need that an install command serves, NULL when it serves none. */
const struct need *need_of_command(const struct judge *j, const struct install_command *command);
/* Says that only `pythons` fit; nothing when the declared one does, or all of the target's do. */
void judge_pythons(struct judge *j, const struct strs *pythons, struct place place, str subject);

#endif
