/* Unified diffs, as `patch` and git take them. Common lines at both ends are set aside first, so that the table of the longest
 * common subsequence is as large as what changed; a change too large for that is shown as one block. */
#include "plan/plan.h"

enum { CONTEXT = 3, CELLS_MOST = 4 << 20 };

struct lines {
    str *items; /* with their ends */
    size_t count, capacity;
};

static bool split(arena *a, str text, struct lines *out)
{
    for (size_t at = 0; at < text.n;) {
        const size_t end = str_find_char(str_from_index(text, at), '\n');
        const size_t next = end == SIZE_MAX ? text.n : at + end + 1;
        if (!arena_room(a, out))
            return false;
        out->items[out->count++] = str_slice(text, at, next);
        at = next;
    }
    return true;
}

struct step { /* one line of the diff: ' ', '-' or '+' */
    char mark;
    str line;
};
struct steps {
    struct step *items;
    size_t count, capacity;
};

static bool push(arena *a, struct steps *steps, str mark, str line)
{
    if (!arena_room(a, steps))
        return false;
    steps->items[steps->count++] = (struct step){mark.p[0], line};
    return true;
}

/* The middle, where both sides differ: longest common subsequence from the end, walked from the start. */
static bool push_middle(arena *a, struct steps *steps, const str *old, size_t n, const str *new, size_t m)
{
    uint32_t *table = n < CELLS_MOST && m < CELLS_MOST && (n + 1) * (m + 1) <= CELLS_MOST
                          ? arena_array(a, uint32_t, (n + 1) * (m + 1))
                          : NULL;
    size_t i = 0, k = 0;
    if (table) {
        for (size_t x = n; x-- > 0;)
            for (size_t y = m; y-- > 0;) {
                const uint32_t down = table[(x + 1) * (m + 1) + y], right = table[x * (m + 1) + y + 1];
                table[x * (m + 1) + y] = str_eq(old[x], new[y]) ? table[(x + 1) * (m + 1) + y + 1] + 1
                                         : down > right         ? down
                                                                : right;
            }
        while (i < n && k < m) {
            const bool same = str_eq(old[i], new[k]);
            const bool drop = !same && table[(i + 1) * (m + 1) + k] >= table[i * (m + 1) + k + 1];
            if (!push(a, steps, same ? S(" ") : drop ? S("-") : S("+"), drop || same ? old[i] : new[k]))
                return false;
            i += same || drop;
            k += same || !drop;
        }
    }
    for (; i < n; i++)
        if (!push(a, steps, S("-"), old[i]))
            return false;
    for (; k < m; k++)
        if (!push(a, steps, S("+"), new[k]))
            return false;
    return true;
}

static void print_step(struct buf *b, const struct step *s)
{
    buf_char(b, s->mark);
    buf_add(b, s->line);
    if (!str_ends(s->line, S("\n")))
        buf_add(b, S("\n\\ No newline at end of file\n"));
}

/* "12,3": where a side's part begins and how long it is; an empty part names the line before it. */
static void print_range(struct buf *b, char sign, size_t first, size_t count)
{
    buf_format(b, "%c%zu", sign, count ? first + 1 : first);
    if (count != 1)
        buf_format(b, ",%zu", count);
}

static void print_hunks(struct buf *b, const struct steps *steps)
{
    size_t old_line = 0, new_line = 0;
    for (size_t i = 0; i < steps->count;) {
        if (steps->items[i].mark == ' ') {
            i++;
            old_line++;
            new_line++;
            continue;
        }
        const size_t lead = i < CONTEXT ? i : CONTEXT; /* all unchanged: a hunk ends only after as many */
        size_t end = i, quiet = 0;
        for (size_t k = i; k < steps->count && quiet <= (size_t)CONTEXT * 2; k++) {
            quiet = steps->items[k].mark == ' ' ? quiet + 1 : 0;
            if (!quiet)
                end = k + 1;
        }
        const size_t tail = steps->count - end < CONTEXT ? steps->count - end : CONTEXT;
        size_t olds = lead + tail;
        size_t news = olds;
        for (size_t k = i; k < end; k++) {
            olds += steps->items[k].mark != '+';
            news += steps->items[k].mark != '-';
        }
        buf_add(b, S("@@ "));
        print_range(b, '-', old_line - lead, olds);
        buf_char(b, ' ');
        print_range(b, '+', new_line - lead, news);
        buf_add(b, S(" @@\n"));
        for (size_t k = i - lead; k < end + tail; k++)
            print_step(b, &steps->items[k]);
        for (; i < end; i++) {
            old_line += steps->items[i].mark != '+';
            new_line += steps->items[i].mark != '-';
        }
    }
}

str diff_unified(arena *a, str file, str before, str after)
{
    struct lines old = {0}, new = {0};
    struct steps steps = {0};
    struct buf b = {.a = a};
    if (before.p && str_eq(before, after))
        return S("");
    if (!split(a, before, &old) || !split(a, after, &new))
        return S("");
    size_t head = 0, tail = 0;
    while (head < old.count && head < new.count &&str_eq(old.items[head], new.items[head]))
        head++;
    while (tail < old.count - head &&
           tail < new.count - head &&str_eq(old.items[old.count - 1 - tail], new.items[new.count - 1 - tail]))
        tail++;
    bool well = true;
    for (size_t i = 0; well && i < head; i++)
        well = push(a, &steps, S(" "), old.items[i]);
    well = well && push_middle(a, &steps, old.items + head, old.count - head - tail, new.items + head,
                               new.count - head - tail);
    for (size_t i = old.count - tail; well && i < old.count; i++)
        well = push(a, &steps, S(" "), old.items[i]);
    if (!well)
        return S("");
    if (before.p)
        buf_format(&b, "--- a/%.*s\n", STR_ARG(file));
    else
        buf_add(&b, S("--- /dev/null\n"));
    buf_format(&b, "+++ b/%.*s\n", STR_ARG(file));
    print_hunks(&b, &steps);
    return buf_str(&b);
}
