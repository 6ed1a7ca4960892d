/* The terminal: colour rules, tables that fit, wrapped text, a progress line, findings for people. */
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

enum { WIDTH_PIPE = 100, WIDTH_LEAST = 40, WIDTH_MOST = 200 };

static bool set_and_not_empty(const char *name)
{
    const char *value = getenv(name);
    return value && *value;
}

static bool wants_color(enum color_mode mode, int fd)
{
    if (mode != COLOR_AUTO)
        return mode == COLOR_ALWAYS;
    const char *term = getenv("TERM");
    return isatty(fd) && !set_and_not_empty("NO_COLOR") && !(term && strcmp(term, "dumb") == 0);
}

void term_init(struct term *t, enum color_mode mode, int quiet, int verbose)
{
    struct winsize size = {0};
    uint64_t columns = 0;
    *t = (struct term){.color_out = wants_color(mode, STDOUT_FILENO),
                       .color_err = wants_color(mode, STDERR_FILENO),
                       .err_is_terminal = isatty(STDERR_FILENO),
                       .width = WIDTH_PIPE,
                       .quiet = quiet,
                       .verbose = verbose};
    if (str_to_u64(str_from(getenv("COLUMNS")), &columns) && columns > 0 && columns < 10000)
        t->width = (int)columns;
    else if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        t->width = size.ws_col;
    if (t->width < WIDTH_LEAST)
        t->width = WIDTH_LEAST;
    if (t->width > WIDTH_MOST)
        t->width = WIDTH_MOST;
}

str term_safe(arena *a, str s)
{
    s = str_utf8(a, s);
    bool clean = true;
    for (size_t i = 0; i < s.n && clean; i++)
        clean = (unsigned char)s.p[i] >= 0x20 && s.p[i] != 0x7f &&
                !((unsigned char)s.p[i] == 0xc2 && i + 1 < s.n && (unsigned char)s.p[i + 1] < 0xa0);
    if (clean)
        return s;
    struct buf b = {.a = a};
    for (size_t i = 0; i < s.n; i++) {
        const unsigned char c = (unsigned char)s.p[i];
        if (c == 0xc2 && i + 1 < s.n && (unsigned char)s.p[i + 1] < 0xa0) /* C1 controls: U+0080..U+009F */
            buf_format(&b, "\\x%02x", (unsigned)(unsigned char)s.p[++i]);
        else if (c == '\t')
            buf_add(&b, S("    "));
        else if (c < 0x20 || c == 0x7f)
            buf_format(&b, "\\x%02x", (unsigned)c);
        else
            buf_char(&b, s.p[i]);
    }
    return buf_str(&b);
}

/* Code points of East Asian wide and fullwidth characters and emoji, in the ranges that matter for a table. */
static bool is_wide(uint32_t c)
{
    static const uint32_t RANGES[][2] = {
        {0x1100, 0x115f}, {0x2e80, 0x303e},   {0x3041, 0x33ff},  {0x3400, 0x4dbf}, {0x4e00, 0x9fff},
        {0xa000, 0xa4cf}, {0xac00, 0xd7a3},   {0xf900, 0xfaff},  {0xfe30, 0xfe6f}, {0xff00, 0xff60},
        {0xffe0, 0xffe6}, {0x1f300, 0x1faff}, {0x20000, 0x3fffd}};
    for (size_t i = 0; i < COUNT(RANGES); i++)
        if (c >= RANGES[i][0] && c <= RANGES[i][1])
            return true;
    return false;
}

/* Decodes the character at i (valid UTF-8) and moves past it. */
static uint32_t next_character(str s, size_t *i)
{
    const unsigned char first = (unsigned char)s.p[(*i)++];
    uint32_t c = first < 0x80   ? first
                 : first < 0xe0 ? first & 0x1fU
                 : first < 0xf0 ? first & 0xfU
                                : first & 7U;
    while (*i < s.n && ((unsigned char)s.p[*i] & 0xc0) == 0x80)
        c = c << 6 | ((unsigned char)s.p[(*i)++] & 0x3fU);
    return c;
}

static size_t columns_of(uint32_t c)
{
    const bool combining = (c >= 0x300 && c <= 0x36f) || c == 0x200d || (c >= 0xfe00 && c <= 0xfe0f);
    return combining ? 0 : is_wide(c) ? 2 : 1;
}

size_t term_columns(str s)
{
    size_t columns = 0;
    for (size_t i = 0; i < s.n;)
        columns += columns_of(next_character(s, &i));
    return columns;
}

/* The most of s that fits the columns. */
static str fit(str s, size_t columns)
{
    size_t used = 0;
    for (size_t i = 0; i < s.n;) {
        const size_t before = i;
        used += columns_of(next_character(s, &i));
        if (used > columns)
            return str_slice(s, 0, before);
    }
    return s;
}

str term_paint(arena *a, bool color, enum style style, str s)
{
    static const char *const CODES[] = {"", "1", "2", "31", "33", "32", "34"};
    if (!color || style == STYLE_NONE || s.n == 0)
        return s;
    return str_format(a, "\033[%sm%.*s\033[0m", CODES[style], STR_ARG(s));
}

/* Takes from *rest what fits a line of `width` columns, broken at a space where there is one. */
static str take_line(str *rest, size_t width)
{
    str line = fit(*rest, width ? width : 1);
    if (line.n == 0) /* one wide character in one column */
        line = str_slice(*rest, 0, 1);
    const size_t newline = str_find_char(line, '\n');
    if (newline != SIZE_MAX) {
        line = str_slice(line, 0, newline);
        *rest = str_from_index(*rest, newline + 1);
        return line;
    }
    if (line.n < rest->n && rest->p[line.n] != ' ' && rest->p[line.n] != '\n') {
        const size_t space = str_rfind_char(line, ' ');
        if (space != SIZE_MAX && space > 0)
            line.n = space;
    }
    *rest = str_from_index(*rest, line.n);
    if (rest->n > 0 && (rest->p[0] == ' ' || rest->p[0] == '\n'))
        *rest = str_from_index(*rest, 1);
    return str_trim_right(line);
}

str text_wrap(arena *a, str text, size_t width, size_t indent)
{
    struct buf b = {.a = a};
    const size_t room = width > indent + 8 ? width - indent : 8;
    for (bool first = true; text.n > 0; first = false) {
        if (!first)
            buf_format(&b, "\n%*s", (int)indent, "");
        buf_add(&b, take_line(&text, room));
    }
    return buf_str(&b);
}

enum { GAP = 2, COLUMN_LEAST = 8 };

/* Widths: what each column would like; when that is too much, the widest are narrowed, the last one first. */
static void column_widths(const struct table *t, size_t width, size_t *widths)
{
    size_t total = GAP * (t->columns - 1);
    for (size_t c = 0; c < t->columns; c++) {
        widths[c] = term_columns(str_from(t->headings[c]));
        for (size_t i = c; i < t->cells.count; i += t->columns) {
            const size_t wanted = term_columns(t->cells.items[i]);
            if (wanted > widths[c])
                widths[c] = wanted;
        }
        total += widths[c];
    }
    const size_t last = t->columns - 1;
    if (total > width) {
        const size_t excess = total - width;
        const size_t keep = width / 3 > COLUMN_LEAST ? width / 3 : COLUMN_LEAST;
        const size_t spare = widths[last] > keep ? widths[last] - keep : 0;
        const size_t cut = excess < spare ? excess : spare;
        widths[last] -= cut;
        total -= cut;
    }
    while (total > width) {
        size_t widest = 0;
        for (size_t c = 1; c < t->columns; c++)
            if (widths[c] > widths[widest])
                widest = c;
        if (widths[widest] <= COLUMN_LEAST)
            return;
        widths[widest]--;
        total--;
    }
}

static void add_padded(struct buf *b, str text, size_t width, bool last)
{
    buf_add(b, text);
    const size_t columns = term_columns(text);
    if (!last)
        buf_format(b, "%*s", (int)(width > columns ? width - columns + GAP : GAP), "");
}

str table_text(arena *a, const struct table *table, int width, bool color)
{
    struct buf b = {.a = a};
    size_t *widths = arena_array(a, size_t, table->columns);
    if (!widths || table->columns == 0)
        return S("");
    struct table t = *table;
    t.cells = (struct strs){0};
    for (size_t i = 0; i < table->cells.count; i++)
        if (!strs_add(a, &t.cells, term_safe(a, table->cells.items[i].p ? table->cells.items[i] : S(""))))
            return S("");
    column_widths(&t, (size_t)width, widths);
    size_t indent = 0;
    for (size_t c = 0; c + 1 < t.columns; c++)
        indent += widths[c] + GAP;
    for (size_t c = 0; c < t.columns; c++) {
        const str heading = str_from(t.headings[c]);
        const bool last = c + 1 == t.columns;
        buf_add(&b, color ? S("\033[1m") : S(""));
        add_padded(&b, fit(heading, widths[c]), widths[c], last);
        buf_add(&b, color ? S("\033[0m") : S(""));
    }
    buf_char(&b, '\n');
    for (size_t i = 0; i < t.cells.count; i += t.columns) {
        for (size_t c = 0; c < t.columns && i + c < t.cells.count; c++) {
            const enum style style = t.styles ? t.styles[i + c] : STYLE_NONE;
            str cell = t.cells.items[i + c];
            const bool last = c + 1 == t.columns;
            if (last)
                cell = text_wrap(a, cell, indent + widths[c], indent);
            else if (term_columns(cell) > widths[c])
                cell = str_format(a, "%.*s\xe2\x80\xa6", STR_ARG(fit(cell, widths[c] - 1)));
            const size_t columns = last ? 0 : term_columns(cell);
            buf_add(&b, term_paint(a, color, style, cell));
            if (!last)
                buf_format(&b, "%*s", (int)(widths[c] - columns + GAP), "");
        }
        buf_char(&b, '\n');
    }
    return buf_str(&b);
}

void progress_start(struct progress *p, const struct term *t, const char *label, uint64_t total)
{
    *p = (struct progress){.term = t, .label = label, .total = total, .started = seconds_now()};
}

void progress_at(struct progress *p, uint64_t done)
{
    const double now = seconds_now();
    if (!p->term || !p->term->err_is_terminal || p->term->quiet || p->term->verbose ||
        now - p->started < 0.5 || now - p->shown < 0.1)
        return;
    p->shown = now;
    p->visible = true;
    if (p->total > 0)
        (void)fprintf(stderr, "\r\033[K%s %3u %%", p->label,
                      (unsigned)(done < p->total ? 100.0 * (double)done / (double)p->total : 100));
    else
        (void)fprintf(stderr, "\r\033[K%s %llu", p->label, (unsigned long long)done);
    (void)fflush(stderr);
}

void progress_end(struct progress *p)
{
    if (p->visible)
        (void)fprintf(stderr, "\r\033[K");
    p->visible = false;
}

static void add_finding(arena *a, struct buf *b, const struct finding *item, const struct term *t)
{
    static const char *const NAMES[] = {"info", "warning", "error"};
    static const enum style STYLES[] = {STYLE_BLUE, STYLE_YELLOW, STYLE_RED};
    const bool color = t->color_err;
    struct buf head = {.a = a};
    if (item->place.file.p) {
        buf_add(&head, term_safe(a, item->place.file));
        if (item->place.line)
            buf_format(&head, ":%zu", item->place.line);
        if (item->place.line && item->place.column)
            buf_format(&head, ":%zu", item->place.column);
        buf_add(&head, S(": "));
    }
    const str name = term_paint(a, color, STYLES[item->severity], str_from(NAMES[item->severity]));
    buf_format(b, "%.*s%.*s: %.*s (%s)\n", STR_ARG(term_paint(a, color, STYLE_BOLD, buf_str(&head))),
               STR_ARG(name), STR_ARG(term_safe(a, item->what)), finding_kind(item->code)->code);
    if (item->excerpt.p) {
        const str line = term_safe(a, item->excerpt);
        buf_format(b, "  %.*s\n", STR_ARG(fit(line, (size_t)t->width - 2)));
    }
    if (item->why.n && t->quiet == 0)
        buf_format(b, "  %.*s\n",
                   STR_ARG(term_paint(a, color, STYLE_DIM,
                                      text_wrap(a, term_safe(a, item->why), (size_t)t->width, 2))));
    if (item->fix.n)
        buf_format(b, "  fix: %.*s\n", STR_ARG(text_wrap(a, term_safe(a, item->fix), (size_t)t->width, 7)));
}

str findings_text(arena *a, const findings *f, const struct term *t)
{
    struct buf b = {.a = a};
    for (size_t i = 0; i < f->count; i++)
        add_finding(a, &b, &f->items[i], t);
    return buf_str(&b);
}
