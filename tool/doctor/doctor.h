/* doctor/doctor.h: from a build or run log to its cause. What failures look like is data/failures.yaml; this folder finds all of
 * its patterns at once (Vectorscan) and ranks what was found. It reads bytes and runs no code of the log's app. */
#ifndef FELLOE_DOCTOR_H
#define FELLOE_DOCTOR_H

#include "base/base.h"

/* What data/failures.yaml says, with its patterns compiled. Compiling takes seconds, so the result is kept in cache_dir/doctor
 * under a name made of the data, the matcher's version and the processor's abilities; an unreadable cache is only slower.
 * NULL with a finding when the data is malformed. The arena must outlive it; knowledge_free releases the matcher. */
struct knowledge;
struct knowledge *knowledge_load(arena *a, findings *f);
void knowledge_free(struct knowledge *k);
size_t knowledge_pattern_count(const struct knowledge *k);
/* Pattern i as an extended regular expression's text, for comparison with grep. */
str knowledge_pattern(const struct knowledge *k, size_t i);

/* One cause, in the words of data/failures.yaml with the log's values put in. */
struct cause {
    str label, failure; /* "missing-arch" and the entry's id; label "unknown" when nothing is known */
    enum finding_code code;
    enum severity severity;
    double confidence; /* 0..1: how often such evidence is right */
    size_t line;       /* from 1, as an editor counts */
    str excerpt; /* the line, without its end and escape sequences; for an unknown error its first block */
    str what, why, fix;
    str subject; /* a file, module or package the line names; may be absent */
};
struct cause_list {
    struct cause *items;
    size_t count, capacity;
};

/* A log being read. Memory does not grow with the log: some events a failure are kept, one block and one overlap. */
struct doctor;
struct doctor_options {
    const char *target; /* a target's name, or NULL: failures that belong to one target count on it only */
};
struct doctor *doctor_new(arena *a, const struct knowledge *k, const struct doctor_options *options);
void doctor_free(struct doctor *d);
/* More of the log, in any pieces: plain text in any encoding that holds ASCII, UTF-16 with or without a mark, gzip. */
void doctor_feed(struct doctor *d, span bytes);
/* All of an open file from where it stands. False, with a finding, when it cannot be read. */
bool doctor_read(struct doctor *d, int fd, str path, findings *f);
/* The log paused for silence_s. What is held back of an unfinished line is looked at after DOCTOR_UNFINISHED_S: it may be a prompt
 * or the last words of a process. */
#define DOCTOR_UNFINISHED_S 0.25
void doctor_pause(struct doctor *d, double silence_s);
/* The log's end. False, with a finding of exit code 3, when its gzip stream was damaged: the causes hold for what came before. */
bool doctor_end(struct doctor *d, str path, findings *f);
size_t doctor_lines(const struct doctor *d);
/* The causes so far, most probable root first; each label once. An error that only follows from an earlier one is left out. */
void doctor_causes(arena *a, const struct doctor *d, struct cause_list *out);

/* Reads the app's folder and adds to each fix the line of the app that brought what the cause speaks of: a requirement, else a
 * start-up install. False, with findings, when the folder cannot be read. */
bool doctor_locate(arena *a, str dir, struct cause_list *causes, findings *f);

/* Runs a command, passes its output through as it comes and reads it as a log. The child has this process's standard input and
 * gets the signals that are sent to this process. Its exit code (128 + signal) goes to *exit_code. False, with a finding, when it
 * could not be started. */
bool doctor_run(struct doctor *d, char *const *argv, int *exit_code, findings *f);

/* Follows a growing file, or standard input when path is "-": shrinking or replacement starts it anew. `found` gets each cause
 * when it is first known, within half a second of its line. Ends at the end of a pipe, or when interrupted. */
bool doctor_follow(struct doctor *d, str path, void (*found)(void *context, const struct cause *cause),
                   void *context, findings *f);

#endif
