/* plan/choose.h: private to the choice of a plan: candidates for a need, what speaks for and against each, the edits. */
#ifndef FELLOE_CHOOSE_H
#define FELLOE_CHOOSE_H

#include "plan/plan.h"

struct setting { /* one runtime that the target could give: candidates are judged against it */
    const struct target *target;
    str python;     /* "3.12" */
    unsigned minor; /* 12 */
    str torch;      /* "2.11.0"; absent: the app has no use for it */
    str cuda;       /* of that torch; absent: CPU */
    const struct tag_list *tags;
};

struct chooser {
    arena *a;
    const struct catalogue *catalogue;
    const struct sources *sources;
    const struct target *target;
    const struct space *space;
    const struct need_list *needs;
    const struct plan_options *options;
    findings *f;
    struct yaml limits;  /* data/limits.yaml */
    str declared_python; /* "3.12"; absent: not declared */
    str declared_torch;  /* "2.8.0"; absent: not pinned */
    const struct requirement_line *torch_line;
};

/* Whether a wheel fits the setting, from its name, its place and the catalogue; sets fit, verified and reason. The one place where a
 * look into the file can take over from its name. */
void candidate_verify(arena *a, const struct setting *s, const struct extension *e,
                      struct candidate *candidate);
/* All ways to get the need in the setting, best first, each with its reason; those that don't fit are at the end. */
bool candidates_find(struct chooser *w, const struct setting *s, const struct need *need,
                     struct candidate_list *out);
/* How bad it is to depend on the candidate: 0 is best. The brief's order of preference, weighed with how well it fits. */
unsigned candidate_cost(const struct need *need, const struct candidate *candidate);
enum { COST_NONE = 1000 }; /* no way at all */

/* The edits that make the app follow the plan, in a fixed order of files. */
bool plan_edits(struct chooser *w, struct plan *plan);

/* "2.11" of "2.11.0+cu130". */
str torch_minor(str version);
/* 13 of "13.0"; 0 when absent. */
unsigned major_of(str version);
bool version_less(arena *a, str left, str right);

#endif
