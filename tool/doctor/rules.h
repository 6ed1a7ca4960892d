/* doctor/rules.h: data/failures.yaml as structs, private to the folder. */
#ifndef FELLOE_DOCTOR_RULES_H
#define FELLOE_DOCTOR_RULES_H

#include <hs/hs.h>

#include "doctor/doctor.h"

enum rule_role { ROLE_NONE, ROLE_BOX, ROLE_TRACEBACK, ROLE_CHAIN, ROLE_ERROR, ROLE_HANG };

struct label {
    str name, stage, why, fix;
    enum finding_code code;
    enum severity severity;
};

struct rule_value {
    str name, before, after;
    bool to_end; /* of the line */
};

struct rule_set { /* indices of rules */
    size_t *items;
    size_t count, capacity;
};

/* A scene (label NULL) or a failure. */
struct rule {
    str id;
    const struct label *label;
    enum rule_role role;
    enum finding_code code;
    enum severity severity;
    double confidence;
    size_t within; /* lines, for near */
    bool warns, follows_any;
    str what, why, fix, target;
    struct strs match, not, follows;
    struct rule_value *values;
    size_t value_count;
    struct rule_set near, before, unless, recovered_by;
    struct rule_set near_of; /* failures that wait for this rule */
};

struct knowledge {
    struct label *labels;
    size_t label_count;
    struct rule *rules;
    size_t rule_count;
    size_t *rule_of; /* of each pattern */
    str *patterns;   /* as given to the matcher */
    size_t pattern_count;
    size_t pip_install, install_done, install_failed, app_running,
        retried; /* scenes that the ranking itself asks for */
    hs_database_t *database;
};

enum {
    EVENTS_KEPT = 6,      /* a failure: the first ones, which decide */
    EXCERPT_LIMIT = 2000, /* bytes of a line that are kept and looked at */
    BLOCK_LINES = 8,      /* of an unknown error's excerpt */
};

struct event {
    size_t line, unit;
    str text;    /* the line, cut to EXCERPT_LIMIT */
    str package; /* that pip was building; may be absent */
    bool warning, eased;
    double gap_s; /* of ROLE_HANG */
};

struct rule_state {
    size_t count, first_line, last_line; /* of lines that matched; 0: none */
    struct event events[EVENTS_KEPT];    /* that count, in order */
    size_t event_count;
    size_t last_event_line;
    struct event waiting[2]; /* newest ones whose near scene has not come */
    size_t waiting_count;
};

struct doctor_state { /* what the ranking reads */
    const struct knowledge *knowledge;
    const char *target;
    struct rule_state *rules;
    size_t lines;
    struct strs installed; /* "Successfully installed" lines, the last ones */
    struct event unknown;  /* the first error line with the lines below it */
};

void doctor_rank(arena *a, const struct doctor_state *state, struct cause_list *out);
const struct doctor_state *doctor_state_of(const struct doctor *d);

#endif
