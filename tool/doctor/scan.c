/* The log as it comes: cut into blocks of whole lines, each block matched at once, and what matched kept as events. A line that
 * matches nothing costs the matcher's time and the count of its end, nothing else. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "doctor/decode.h"
#include "doctor/rules.h"

enum {
    BLOCK = 256 << 10, /* fits a second-level cache together with the tables of the matcher */
    OVERLAP = 4 << 10, /* of a line that is longer than a block: no pattern of ours is longer */
    INSTALLED_KEPT = 8,
    HANG_SECONDS = 60,
};

struct doctor {
    arena *a;
    const struct knowledge *k;
    struct doctor_state state;
    hs_scratch_t *scratch;
    struct decoder *decoder;
    char *block;     /* BLOCK + OVERLAP bytes of text */
    size_t filled;   /* of it */
    bool seen;       /* the block's text was looked at while the log paused */
    char *clean;     /* the block without escapes */
    uint32_t *extra; /* line ends in clean that are not counted */
    size_t extra_count;
    size_t unit; /* of the process or traceback that the current line belongs to */
    bool chain;  /* the next traceback belongs to the same unit */
    str package; /* that pip is building */
    char package_room[80];
    size_t base; /* lines before the block */
    double silence_s;

    /* while a block is matched */
    str text;
    size_t counted_to, counted;        /* line ends before text.p + counted_to */
    size_t line_start, line_end, line; /* the line of the last hit */
    size_t extra_at;
};

/* Line ends, 128 bytes at a time so that compilers turn it into vector code. */
static size_t count_lines(const char *p, size_t n)
{
    size_t total = 0;
    while (n >= 128) {
        uint8_t found = 0; /* at most 128 */
        for (size_t i = 0; i < 128; i++)
            found = (uint8_t)(found + (p[i] == '\n'));
        total += found;
        p += 128;
        n -= 128;
    }
    for (size_t i = 0; i < n; i++)
        total += p[i] == '\n';
    return total;
}

static void take_text(void *context, span text);

struct doctor *doctor_new(arena *a, const struct knowledge *k, const struct doctor_options *options)
{
    struct doctor *d = arena_array(a, struct doctor, 1);
    if (!d)
        return NULL;
    *d = (struct doctor){
        .a = a, .k = k, .state = {.knowledge = k, .target = options ? options->target : NULL}};
    d->state.rules = arena_array(a, struct rule_state, k->rule_count);
    d->block = arena_array(a, char, BLOCK + OVERLAP);
    d->clean = arena_array(a, char, BLOCK + OVERLAP);
    d->extra = arena_array(a, uint32_t, BLOCK + OVERLAP);
    if (!d->state.rules || !d->block || !d->clean || !d->extra ||
        hs_alloc_scratch(k->database, &d->scratch) != HS_SUCCESS)
        return NULL;
    d->decoder = decoder_new(take_text, d);
    return d;
}

void doctor_free(struct doctor *d)
{
    if (!d)
        return;
    (void)hs_free_scratch(d->scratch);
    decoder_free(d->decoder);
}

const struct doctor_state *doctor_state_of(const struct doctor *d) { return &d->state; }
size_t doctor_lines(const struct doctor *d) { return d->state.lines; }

/* ---- One line that matched ---- */

static bool has_word_nocase(str s, str word) /* word in lower case */
{
    if (!s.p)
        return false;
    for (size_t i = 0; i + word.n <= s.n; i++)
        if ((s.p[i] | 0x20) == word.p[0] && str_eq_nocase(str_slice(s, i, i + word.n), word))
            return true;
    return false;
}

/* A line of program text that a compiler or a traceback quotes: it says nothing by itself. */
static bool is_quoted_source(str line)
{
    str s = str_trim_left(line);
    size_t digits = 0;
    while (digits < s.n && s.p[digits] >= '0' && s.p[digits] <= '9')
        digits++;
    if (digits && digits < 8 && str_starts(str_trim_left(str_from_index(s, digits)), S("|")))
        return true;
    static const str STARTS[] = {S_INIT("raise "),   S_INIT("print("),  S_INIT("logger."),
                                 S_INIT("logging."), S_INIT("assert "), S_INIT("warnings.warn("),
                                 S_INIT("#"),        S_INIT("if "),     S_INIT("except ")};
    for (size_t i = 0; i < COUNT(STARTS); i++)
        if (str_starts(s, STARTS[i]))
            return true;
    return false;
}

static bool refused(const struct rule *rule, str line)
{
    for (size_t i = 0; i < rule->not .count; i++)
        if (str_contains(line, rule->not .items[i]))
            return true;
    return false;
}

static bool came_within(const struct doctor *d, const struct rule_set *set, size_t lines)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct rule_state *s = &d->state.rules[set->items[i]];
        if (s->count && d->line - s->last_line <= lines)
            return true;
    }
    return false;
}

static void keep_event(struct rule_state *state, const struct event *event)
{
    if (state->event_count < EVENTS_KEPT)
        state->events[state->event_count++] = *event;
    state->last_event_line = event->line;
}

static void wait_event(struct rule_state *state, const struct event *event)
{
    if (state->waiting_count == COUNT(state->waiting)) {
        state->waiting[0] = state->waiting[1];
        state->waiting_count--;
    }
    state->waiting[state->waiting_count++] = *event;
}

/* Seconds of the day of the first HH:MM:SS in the line; negative without one. */
static double clock_of(str line)
{
    for (size_t i = 0; i + 8 <= line.n && i < 64; i++) {
        const char *p = line.p + i;
        if (p[2] != ':' || p[5] != ':')
            continue;
        unsigned v[3];
        bool good = true;
        for (size_t j = 0; j < 3; j++) {
            const unsigned tens = (unsigned)(p[3 * j] - '0'), ones = (unsigned)(p[3 * j + 1] - '0');
            good = good && tens < 10 && ones < 10;
            v[j] = tens * 10 + ones;
        }
        if (good && v[0] < 24 && v[1] < 60 && v[2] < 61)
            return v[0] * 3600.0 + v[1] * 60.0 + v[2];
    }
    return -1;
}

static str line_at(const struct doctor *d, size_t start)
{
    if (start >= d->text.n)
        return (str){NULL, 0};
    const char *end = memchr(d->text.p + start, '\n', d->text.n - start);
    return str_slice(d->text, start, end ? (size_t)(end - d->text.p) : d->text.n);
}

/* How long the log was silent after the line, when what follows is the end of something; 0: it was not. */
static double gap_after(const struct doctor *d, str line)
{
    static const str ENDS[] = {S_INIT("abort"),    S_INIT("timeout"), S_INIT("timed out"),
                               S_INIT("stop"),     S_INIT("shut"),    S_INIT("kill"),
                               S_INIT("terminat"), S_INIT("restart"), S_INIT("disconnect")};
    const double from = clock_of(line);
    const str next = line_at(d, d->line_end + 1);
    const double to = next.p ? clock_of(next) : -1;
    if (from < 0 || to < 0)
        return 0;
    const double gap = to >= from ? to - from : to + 86400 - from;
    for (size_t i = 0; i < COUNT(ENDS); i++)
        if (gap >= HANG_SECONDS && has_word_nocase(next, ENDS[i]))
            return gap;
    return 0;
}

/* Remembers which package pip works on: the word after one of these. */
static void note_package(struct doctor *d, str line)
{
    static const str BEFORE[] = {S_INIT("Building wheel for "), S_INIT("Collecting "),
                                 S_INIT("Building wheels for collected packages: "),
                                 S_INIT("Failed building wheel for ")};
    for (size_t i = 0; i < COUNT(BEFORE); i++) {
        const size_t at = str_find(line, BEFORE[i]);
        if (at == SIZE_MAX)
            continue;
        str name = str_from_index(line, at + BEFORE[i].n);
        size_t n = 0;
        while (n < name.n && n < sizeof d->package_room && strchr(" =<>~![;,@(", name.p[n]) == NULL)
            n++;
        memcpy(d->package_room, name.p, n);
        d->package = (str){d->package_room, n};
        return;
    }
}

static void scene_hit(struct doctor *d, size_t index, const struct rule *rule, str line)
{
    switch (rule->role) {
    case ROLE_TRACEBACK:
        d->unit += !d->chain;
        d->chain = false;
        break;
    case ROLE_CHAIN:
        d->chain = true;
        break;
    case ROLE_BOX:
        d->unit++;
        break;
    case ROLE_ERROR:
        if (!d->state.unknown.line && !is_quoted_source(line)) {
            size_t end = d->line_end;
            for (size_t i = 1; i < BLOCK_LINES && end < d->text.n; i++)
                end = (size_t)(line_at(d, end + 1).n) + end + 1;
            const str block = str_slice(d->text, d->line_start, end < d->text.n ? end : d->text.n);
            d->state.unknown =
                (struct event){.line = d->line, .text = str_copy(d->a, str_slice(block, 0, EXCERPT_LIMIT))};
        }
        break;
    case ROLE_NONE:
    case ROLE_HANG:
        break;
    }
    if (index == d->k->pip_install || index == d->k->install_failed)
        note_package(d, line);
    if (index == d->k->install_done) {
        struct strs *installed = &d->state.installed;
        if (installed->count == INSTALLED_KEPT) {
            memmove(installed->items, installed->items + 1, (INSTALLED_KEPT - 1) * sizeof *installed->items);
            installed->count--;
        }
        /* bounded: at most some hundred distinct copies a log, since most hold the same few packages */
        if (arena_used(d->a) < (size_t)256 << 20)
            (void)strs_add(d->a, installed, str_copy(d->a, str_slice(line, 0, EXCERPT_LIMIT)));
    }
    if (index == d->k->retried)
        for (size_t i = 0; i < d->k->rule_count; i++) { /* it speaks of what came just before */
            struct rule_state *s = &d->state.rules[i];
            for (size_t e = 0; d->k->rules[i].label && e < s->event_count; e++)
                if (d->line - s->events[e].line <= 1)
                    s->events[e].eased = true;
        }
}

static void failure_hit(struct doctor *d, const struct rule *rule, struct rule_state *state, str line)
{
    if (is_quoted_source(line) && !rule->near.count && !str_starts(str_trim_left(line), S("arch_list")))
        return;
    const bool is_new = state->event_count < EVENTS_KEPT;
    struct event event = {.line = d->line, .unit = d->unit};
    if (rule->role == ROLE_HANG && (event.gap_s = gap_after(d, line)) == 0)
        return;
    event.warning =
        !rule->warns && (has_word_nocase(line, S("warning")) || has_word_nocase(line, S("warn ")));
    event.eased = d->state.rules[d->k->retried].last_line == d->line;
    const bool waits = rule->near.count && !came_within(d, &rule->near, rule->within);
    if (is_new || waits) {
        event.text = str_copy(d->a, str_slice(line, 0, EXCERPT_LIMIT));
        event.package = str_copy(d->a, d->package);
    }
    if (waits && arena_used(d->a) < (size_t)256 << 20)
        wait_event(state, &event);
    else if (!waits)
        keep_event(state, &event);
}

static void line_hit(struct doctor *d, size_t index, str line)
{
    const struct rule *rule = &d->k->rules[index];
    struct rule_state *state = &d->state.rules[index];
    if (refused(rule, line))
        return;
    state->count++;
    state->last_line = d->line;
    if (!state->first_line)
        state->first_line = d->line;
    if (rule->label)
        failure_hit(d, rule, state, line);
    else
        scene_hit(d, index, rule, line);
    for (size_t i = 0; i < rule->near_of.count; i++) {
        const size_t waiter = rule->near_of.items[i];
        struct rule_state *w = &d->state.rules[waiter];
        for (size_t e = 0; e < w->waiting_count; e++)
            if (d->line - w->waiting[e].line <= d->k->rules[waiter].within)
                keep_event(w, &w->waiting[e]);
        w->waiting_count = 0;
    }
}

/* ---- One block ---- */

/* Moves the current line to the one that holds byte `at`. Hits come in order of their ends, so counting goes forward only. */
static void move_to(struct doctor *d, size_t at)
{
    const char *start = memrchr(d->text.p, '\n', at);
    const char *end = memchr(d->text.p + at, '\n', d->text.n - at);
    d->line_start = start ? (size_t)(start - d->text.p) + 1 : 0;
    d->line_end = end ? (size_t)(end - d->text.p) : d->text.n;
    if (d->line_start > d->counted_to) {
        d->counted += count_lines(d->text.p + d->counted_to, d->line_start - d->counted_to);
        d->counted_to = d->line_start;
    }
    while (d->extra_at < d->extra_count && d->extra[d->extra_at] < d->line_start)
        d->extra_at++;
    d->line = d->base + d->counted - d->extra_at + 1;
}

static int on_match(unsigned id, unsigned long long from, unsigned long long to, unsigned flags,
                    void *context)
{
    (void)from;
    (void)flags;
    struct doctor *d = context;
    const size_t at = to ? (size_t)to - 1 : 0;
    if (at < d->line_start || at >= d->line_end || d->line == 0)
        move_to(d, at);
    const size_t index = d->k->rule_of[id];
    const struct rule_state *state = &d->state.rules[index];
    if (state->count && state->last_line == d->line)
        return 0;
    /* Of a very long line, what lies around the match. */
    size_t first = d->line_start, last = d->line_end;
    if (last - first > EXCERPT_LIMIT) {
        first = at > first + EXCERPT_LIMIT / 2 ? at - EXCERPT_LIMIT / 2 : first;
        last = last - first > EXCERPT_LIMIT ? first + EXCERPT_LIMIT : last;
    }
    line_hit(d, index, str_slice(d->text, first, last));
    return 0;
}

/* Looks at n bytes of the block. `whole` lines end there, or the log does. */
static void look_at(struct doctor *d, size_t n)
{
    d->text = (str){d->block, n};
    d->extra_count = 0;
    if (memchr(d->block, 0x1B, n) || memchr(d->block, '\r', n)) {
        const size_t cleaned =
            clean_text((span){(const uint8_t *)d->block, n}, d->clean, d->extra, &d->extra_count);
        d->text = (str){d->clean, cleaned};
    }
    d->counted_to = d->counted = d->extra_at = 0;
    d->line_start = d->line_end = d->line = 0;
    if (d->text.n)
        (void)hs_scan(d->k->database, d->text.p, (unsigned)d->text.n, 0, d->scratch, on_match, d);
}

static void drop(struct doctor *d, size_t n)
{
    d->base += count_lines(d->block, n);
    memmove(d->block, d->block + n, d->filled - n);
    d->filled -= n;
    d->seen = false;
}

static void block_full(struct doctor *d)
{
    const char *end = memrchr(d->block, '\n', d->filled);
    if (end) {
        const size_t n = (size_t)(end - d->block) + 1;
        look_at(d, n);
        drop(d, n);
    } else { /* one line fills the block */
        look_at(d, d->filled);
        drop(d, d->filled - OVERLAP);
    }
}

static void take_text(void *context, span text)
{
    struct doctor *d = context;
    while (text.n) {
        const size_t room = BLOCK - d->filled, part = text.n < room ? text.n : room;
        memcpy(d->block + d->filled, text.p, part);
        d->filled += part;
        text = (span){text.p + part, text.n - part};
        if (d->filled == BLOCK)
            block_full(d);
    }
}

static void set_lines(struct doctor *d)
{
    const bool partial = d->filled && d->block[d->filled - 1] != '\n';
    d->state.lines = d->base + count_lines(d->block, d->filled) + partial;
}

void doctor_feed(struct doctor *d, span bytes) { decoder_feed(d->decoder, bytes); }

bool doctor_read(struct doctor *d, int fd, str path, findings *f)
{
    uint8_t first[4096] = {0};
    for (;;) {
        const bool plain = decoder_is_plain(d->decoder);
        const size_t room = plain ? BLOCK - d->filled : sizeof first;
        const ssize_t got = read(fd, plain ? (void *)(d->block + d->filled) : first, room);
        if (got < 0 && errno == EINTR && !interrupted())
            continue;
        if (got < 0)
            return finding_fatal(f, 3, F001, (struct place){.file = path}, "cannot be read: %s",
                                 strerror(errno));
        if (got == 0)
            return true;
        if (!plain) {
            decoder_feed(d->decoder, (span){first, (size_t)got});
        } else {
            d->filled += (size_t)got;
            if (d->filled == BLOCK)
                block_full(d);
        }
    }
}

void doctor_pause(struct doctor *d, double silence_s)
{
    d->silence_s = silence_s;
    if (d->filled == 0)
        return;
    const char *end = memrchr(d->block, '\n', d->filled);
    if (end) {
        const size_t n = (size_t)(end - d->block) + 1;
        look_at(d, n);
        drop(d, n);
    }
    if (silence_s >= DOCTOR_UNFINISHED_S &&
        !d->seen) { /* an unfinished line: a prompt, or a message without its end */
        look_at(d, d->filled);
        d->seen = true;
    }
    set_lines(d);
}

bool doctor_end(struct doctor *d, str path, findings *f)
{
    const bool good = decoder_end(d->decoder);
    if (d->filled)
        look_at(d, d->filled);
    set_lines(d);
    return good || finding_fatal(f, 3, F001, (struct place){.file = path},
                                 "the gzip stream is damaged or cut; the causes hold for what comes before");
}

void doctor_causes(arena *a, const struct doctor *d, struct cause_list *out)
{
    doctor_rank(a, &d->state, out);
}
