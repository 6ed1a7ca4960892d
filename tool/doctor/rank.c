/* From what matched to causes: what speaks against a failure, what only follows from another one, and which comes first. */
#include <stdio.h>
#include <stdlib.h>

#include "doctor/rules.h"

enum { NEAREST = 3 };
/* Confidence is the share of right answers that a wording gave; two unrelated strong causes can't both be the root. */
static const double STRONG = 0.8, RIVAL_CAP = 0.78, EASED = 0.6, WARNED = 0.5, RECOVERED = 0.5,
                    DISPUTES = 0.7;

struct candidate {
    const struct rule *rule;
    const struct rule_state *state;
    const struct event *event; /* the first one that stands as an error, else the first */
    double confidence;
    enum severity severity;
    bool folded;
    bool disputed; /* the same line reads almost as well as another cause of its stage */
};

/* ---- Values and sentences ---- */

static bool ends_value(char c) { return c == ' ' || c == '\t' || c == '\n'; }

static str trim_value(str s)
{
    static const char EDGES[] = " \t'\"`,;:()[]";
    while (s.n && memchr(EDGES, s.p[0], sizeof EDGES - 1))
        s = str_from_index(s, 1);
    while (s.n && (memchr(EDGES, s.p[s.n - 1], sizeof EDGES - 1) || s.p[s.n - 1] == '.'))
        s.n--;
    return s;
}

static str value_in(const struct rule_value *value, str line)
{
    size_t first = 0;
    if (value->before.n) {
        first = str_find(line, value->before);
        if (first == SIZE_MAX)
            return (str){NULL, 0};
        first += value->before.n;
    }
    const str rest = str_from_index(line, first);
    if (value->to_end)
        return trim_value(rest);
    size_t n = 0;
    if (value->after.n) {
        n = str_find(rest, value->after);
        if (n == SIZE_MAX)
            return (str){NULL, 0};
    } else {
        while (n < rest.n && !ends_value(rest.p[n]))
            n++;
    }
    str found = trim_value(str_slice(rest, 0, n));
    if (!value->before.n) { /* the word before the text */
        size_t start = found.n;
        while (start > 0 && !ends_value(found.p[start - 1]))
            start--;
        found = trim_value(str_from_index(found, start));
    }
    return found.n && found.n <= 300 ? found : (str){NULL, 0};
}

static str value_of(arena *a, const struct candidate *c, str name)
{
    if (str_eq(name, S("gap")))
        return str_format(a, "%.0f s", c->event->gap_s);
    for (size_t i = 0; i < c->rule->value_count; i++)
        if (str_eq(c->rule->values[i].name, name)) {
            const str found = value_in(&c->rule->values[i], c->event->text);
            if (found.p)
                return found;
        }
    return str_eq(name, S("package")) && c->event->package.n ? c->event->package : (str){NULL, 0};
}

static str fill(arena *a, const struct candidate *c, str text)
{
    struct buf b = {.a = a};
    str head, inside, rest = text;
    while (str_cut(rest, '{', &head, &rest)) {
        buf_add(&b, head);
        if (!str_cut(rest, '}', &inside, &rest))
            break;
        str name, otherwise;
        (void)str_cut(inside, '|', &name, &otherwise);
        const str value = value_of(a, c, name);
        buf_add(&b, value.p ? value : otherwise.p ? otherwise : S("something"));
    }
    buf_add(&b, head); /* what follows the last brace */
    return str_utf8(a, str_copy(a, buf_str(&b)));
}

static str subject_of(arena *a, const struct candidate *c)
{
    static const char *const NAMES[] = {"file",    "module", "library", "wheel",
                                        "package", "header", "program", "name"};
    for (size_t i = 0; i < COUNT(NAMES); i++) {
        const str value = value_of(a, c, str_from(NAMES[i]));
        if (value.p)
            return str_utf8(a, str_copy(a, value));
    }
    return (str){NULL, 0};
}

/* ---- What speaks against it ---- */

static bool any_seen(const struct doctor_state *s, const struct rule_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct rule_state *other = &s->rules[set->items[i]];
        const bool failure = s->knowledge->rules[set->items[i]].label != NULL;
        if (failure ? other->event_count : other->count)
            return true;
    }
    return false;
}

static bool came_before(const struct doctor_state *s, const struct rule_set *set, size_t line)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct rule_state *other = &s->rules[set->items[i]];
        if (other->count && other->first_line < line)
            return true;
    }
    return set->count == 0;
}

static bool came_after(const struct doctor_state *s, const struct rule_set *set, size_t line)
{
    for (size_t i = 0; i < set->count; i++)
        if (s->rules[set->items[i]].last_line > line)
            return true;
    return false;
}

/* "flash-attn" in "Successfully installed flash_attn-2.8.3": names compared as PEP 503 has them. */
static bool lists_package(str line, str package)
{
    for (size_t i = 0; package.n && i + package.n < line.n; i++) {
        size_t n = 0;
        while (n < package.n) {
            const char x = line.p[i + n], y = package.p[n];
            const bool dash_x = x == '-' || x == '_' || x == '.', dash_y = y == '-' || y == '_' || y == '.';
            if (!(dash_x && dash_y) && (x | 0x20) != (y | 0x20))
                break;
            n++;
        }
        const char after = line.p[i + n];
        char before = ' ';
        if (i)
            before = line.p[i - 1];
        if (n == package.n && (before == ' ' || before == '/') &&
            (after == '-' || after == ' ' || after == '='))
            return true;
    }
    return false;
}

/* A failed install or build that a later line shows to have been made good. */
static bool installed_later(const struct doctor_state *s, const struct candidate *c)
{
    const struct rule_state *done = &s->rules[s->knowledge->install_done];
    const struct rule_state *failed = &s->rules[s->knowledge->install_failed];
    if (done->last_line <= c->state->last_line)
        return false;
    if (!c->event->package.n)
        return failed->last_line < done->last_line;
    for (size_t i = 0; i < s->installed.count; i++)
        if (lists_package(s->installed.items[i], c->event->package))
            return true;
    return false;
}

static void weigh(const struct doctor_state *s, struct candidate *c)
{
    const struct rule *rule = c->rule;
    c->confidence = rule->confidence;
    c->severity = rule->severity;
    if (c->event->warning) {
        c->confidence *= WARNED;
        c->severity = c->severity > SEVERITY_WARNING ? SEVERITY_WARNING : c->severity;
    }
    bool harmless = came_after(s, &rule->recovered_by, c->state->last_event_line);
    if (str_eq(rule->label->stage, S("obtaining")) || str_eq(rule->label->stage, S("compiling")) ||
        str_eq(rule->label->name, S("cpu-only-build")))
        harmless = harmless || installed_later(s, c);
    /* A retry or a fall-back speaks of the line before it, unless the install fails after all. */
    const bool eased = c->event->eased && s->rules[s->knowledge->install_failed].last_line <= c->event->line;
    if (eased || harmless) {
        c->confidence *= harmless ? RECOVERED : EASED;
        c->severity = c->severity > SEVERITY_WARNING ? SEVERITY_WARNING : c->severity;
    }
}

static const struct event *best_event(const struct rule_state *state)
{
    for (size_t i = 0; i < state->event_count; i++)
        if (!state->events[i].warning && !state->events[i].eased)
            return &state->events[i];
    return &state->events[0];
}

static size_t gather(const struct doctor_state *s, struct candidate *out)
{
    size_t count = 0;
    for (size_t i = 0; i < s->knowledge->rule_count; i++) {
        const struct rule *rule = &s->knowledge->rules[i];
        const struct rule_state *state = &s->rules[i];
        if (!rule->label || !state->event_count || any_seen(s, &rule->unless) ||
            !came_before(s, &rule->before, state->events[0].line))
            continue;
        if (rule->target.p && s->target && !str_eq(rule->target, str_from(s->target)))
            continue;
        out[count] = (struct candidate){.rule = rule, .state = state, .event = best_event(state)};
        weigh(s, &out[count++]);
    }
    return count;
}

/* ---- What follows from what ---- */

static bool names(const struct rule *rule, const struct rule *root)
{
    return strs_has(&rule->follows, root->label->name) || strs_has(&rule->follows, root->label->stage) ||
           strs_has(&rule->follows, root->id);
}

/* c is only a consequence (or a weaker reading of the same line) of root. What a root was made good by made its consequences
 * good as well, so the rules' own confidence and severity count here; a warning line is no root of an error. */
static bool follows_from(const struct candidate *c, const struct candidate *root)
{
    const struct rule *rule = c->rule, *other = root->rule;
    if (rule == other || rule->label == other->label)
        return false;
    if (c->event->line == root->event->line && rule->confidence < other->confidence && !names(other, rule))
        return true;
    if (other->severity < rule->severity || (root->event->warning && !c->event->warning))
        return false;
    if (rule->follows_any && (!other->follows_any || rule->confidence < other->confidence))
        return true;
    if (names(rule, other) && root->event->line <= c->state->last_event_line + 40)
        return true;
    /* One unit is one process, or one chain of exceptions: its first error is the root of the later ones. */
    return c->event->unit == root->event->unit && c->event->unit && root->event->line < c->event->line &&
           other->confidence >= STRONG && !names(other, rule);
}

static void fold(struct candidate *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < count && !list[i].folded; j++)
            if (i != j && !list[j].folded && follows_from(&list[i], &list[j])) {
                list[i].folded = true;
                list[j].disputed = list[j].disputed || (list[i].event->line == list[j].event->line &&
                                                        list[i].confidence >= DISPUTES &&
                                                        str_eq(list[i].rule->label->stage, S("memory")) &&
                                                        str_eq(list[j].rule->label->stage, S("memory")));
            }
}

/* One candidate a label: the most confident, the earliest of equals. */
static void merge_labels(struct candidate *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < count; j++) {
            if (i == j || list[i].folded || list[j].folded || list[i].rule->label != list[j].rule->label)
                continue;
            const bool better =
                list[j].severity > list[i].severity ||
                (list[j].severity == list[i].severity &&
                 (list[j].confidence > list[i].confidence ||
                  (list[j].confidence == list[i].confidence && list[j].event->line < list[i].event->line)));
            list[i].folded = better;
        }
}

static int tier(const struct candidate *c)
{
    return c->confidence >= STRONG ? 0 : c->confidence >= 0.55 ? 1 : 2;
}

/* Errors before warnings, strong evidence before weak, and among equals the first error of the log. */
static int by_rank(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;
    if (a->folded != b->folded)
        return a->folded - b->folded;
    if (a->severity != b->severity)
        return a->severity > b->severity ? -1 : 1;
    if (tier(a) != tier(b))
        return tier(a) - tier(b);
    if (a->event->line != b->event->line)
        return a->event->line < b->event->line ? -1 : 1;
    if (a->confidence != b->confidence)
        return a->confidence > b->confidence ? -1 : 1;
    return str_cmp(a->rule->id, b->rule->id);
}

/* ---- An error that nothing here knows ---- */

static size_t shared_words(str text, const struct strs *patterns)
{
    size_t shared = 0;
    for (size_t p = 0; p < patterns->count; p++) {
        const str s = patterns->items[p];
        for (size_t i = 0; i < s.n;) {
            size_t n = 0;
            while (i + n < s.n && ((s.p[i + n] | 0x20) >= 'a' && (s.p[i + n] | 0x20) <= 'z'))
                n++;
            if (n >= 5 && str_contains(text, str_slice(s, i, i + n)))
                shared++;
            i += n + 1;
        }
    }
    return shared;
}

static str nearest_known(arena *a, const struct doctor_state *s)
{
    const struct knowledge *k = s->knowledge;
    size_t best[NEAREST] = {0}, score[NEAREST] = {0};
    for (size_t i = 0; i < k->rule_count; i++) {
        if (!k->rules[i].label)
            continue;
        size_t mine = 100 * shared_words(s->unknown.text, &k->rules[i].match) / (4 + k->rules[i].match.count),
               at = i;
        for (size_t j = 0; j < NEAREST; j++)
            if (mine > score[j]) {
                const size_t old = score[j], old_at = best[j];
                score[j] = mine;
                best[j] = at;
                mine = old;
                at = old_at;
            }
    }
    struct strs list = {0};
    for (size_t j = 0; j < NEAREST && score[j]; j++)
        if (!strs_has(&list, k->rules[best[j]].label->name))
            (void)strs_add(a, &list, k->rules[best[j]].label->name);
    return list.count ? str_format(a, "Its words are nearest to: %.*s.", STR_ARG(str_join(a, &list, S(", "))))
                      : S("No known failure has words like these.");
}

static void add_unknown(arena *a, const struct doctor_state *s, struct cause_list *out)
{
    const struct knowledge *k = s->knowledge;
    const size_t line = s->unknown.line;
    const bool went_on = s->rules[k->app_running].last_line > line ||
                         s->rules[k->install_done].last_line > line || s->rules[k->retried].last_line > line;
    if (went_on || !arena_room(a, out))
        return;
    out->items[out->count++] = (struct cause){
        .label = S("unknown"),
        .failure = S("unknown"),
        .code = F399,
        .severity = SEVERITY_ERROR,
        .confidence = 0.3,
        .line = line,
        .excerpt = str_utf8(a, s->unknown.text),
        .what = S("an error that is not known here; this is the first one of the log"),
        .why = nearest_known(a, s),
        .fix = S("Read the log from this line on; if it is a kind of failure that others meet too, add it to "
                 "data/failures.yaml."),
    };
}

void doctor_rank(arena *a, const struct doctor_state *s, struct cause_list *out)
{
    *out = (struct cause_list){0};
    struct candidate *list = arena_array(a, struct candidate, s->knowledge->rule_count);
    if (!list)
        return;
    const size_t count = gather(s, list);
    fold(list, count);
    merge_labels(list, count);
    qsort(list, count, sizeof *list, by_rank);
    size_t kept = 0, strong = 0;
    while (kept < count && !list[kept].folded) {
        strong += list[kept].severity == SEVERITY_ERROR && list[kept].confidence >= STRONG;
        kept++;
    }
    bool known = false;
    for (size_t i = 0; i < kept && arena_room(a, out); i++) {
        const struct candidate *c = &list[i];
        known = known || c->severity == SEVERITY_ERROR || c->confidence >= 0.5;
        out->items[out->count++] = (struct cause){
            .label = c->rule->label->name,
            .failure = c->rule->id,
            .code = c->rule->code,
            .severity = c->severity,
            .confidence =
                (strong > 1 || c->disputed) && c->confidence > RIVAL_CAP ? RIVAL_CAP : c->confidence,
            .line = c->event->line,
            .excerpt = str_utf8(a, str_trim_right(c->event->text)),
            .what = fill(a, c, c->rule->what),
            .why = fill(a, c, c->rule->why),
            .fix = fill(a, c, c->rule->fix),
            .subject = subject_of(a, c),
        };
    }
    if (!known && s->unknown.line) {
        add_unknown(a, s, out);
        if (out->count > 1 && out->items[out->count - 1].severity == SEVERITY_ERROR) { /* errors first */
            const struct cause last = out->items[out->count - 1];
            memmove(out->items + 1, out->items, (out->count - 1) * sizeof *out->items);
            out->items[0] = last;
        }
    }
}
