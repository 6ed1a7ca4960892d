/* What of a Python source is worth parsing. Most modules of an app define networks: all that they have to say is what they import and
 * under which guards. Building a syntax tree of their arithmetic costs more than everything else together, so it is left out
 * first: what is kept stands where it stood, at its line and column.
 *
 * Kept are: all that runs when the module is imported, and within functions every statement with a word that can make a fact, with
 * the headers around it. A module that handles GPU calls, pages or child processes is kept whole. */
#include "space/private.h"

enum {
    /* The parser library corrupts its memory when 65,536 tokens wait to be put together. A statement has no more tokens than bytes;
     * one of this size is data. */
    STATEMENT_MOST = 48 << 10,
    HEADERS_MOST = 256, /* headers around one line; deeper ones count as the outermost */
};

struct line { /* a logical line: a statement, or the header of a block */
    size_t first, end, number, last_number, indent;
    size_t header; /* the line whose block it stands in; SIZE_MAX: none */
    size_t leader; /* of elif, else, except, finally: the line that begins the statement; else itself */
    bool is_header, opens_block, is_function, is_except, is_decorator, leaves;
    bool said;        /* has a word that can make a fact */
    bool in_function; /* runs later than the import */
    bool kept;
};
struct line_list {
    struct line *items;
    size_t count, capacity;
};

struct scan {
    arena *a;
    str source;
    size_t at, number;
    struct line_list lines;
    bool whole;         /* a word was seen that asks for the whole module */
    size_t fault;       /* the line where a bracket or a string begins that never ends; 0: none */
    bool has_fault;     /* or another fault of the words themselves: left to the parser */
    bool has_long_line; /* over STATEMENT_MOST */
};

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           (unsigned char)c >= 0x80;
}

static bool among(str word, const str *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (word.n == words[i].n && word.p[0] == words[i].p[0] && memcmp(word.p, words[i].p, word.n) == 0)
            return true;
    return false;
}

static void take_word(struct scan *s, struct line *line, str word)
{
    static const str WHOLE[] = {S_INIT("spaces"), S_INIT("gradio"), S_INIT("subprocess"),
                                S_INIT("popen"),  S_INIT("pip"),    S_INIT("system")};
    static const str SAYING[] = {S_INIT("import"),
                                 S_INIT("environ"),
                                 S_INIT("putenv"),
                                 S_INIT("load"),
                                 S_INIT("compile"),
                                 S_INIT("launch"),
                                 S_INIT("from_pretrained"),
                                 S_INIT("load_model"),
                                 S_INIT("CDLL"),
                                 S_INIT("LoadLibrary"),
                                 S_INIT("sys"),
                                 S_INIT("set_attention_backend"),
                                 S_INIT("device_map"),
                                 S_INIT("attn_implementation"),
                                 S_INIT("cache_examples")};
    if (word.n < 3)
        return;
    s->whole = s->whole || among(word, WHOLE, COUNT(WHOLE));
    line->said = line->said || among(word, SAYING, COUNT(SAYING));
    if (str_eq(word, S("device"))) { /* device=0 */
        size_t i = (size_t)(word.p - s->source.p) + word.n;
        while (i < s->source.n && (s->source.p[i] == ' ' || s->source.p[i] == '='))
            i++;
        line->said = line->said || (i < s->source.n && s->source.p[i] >= '0' && s->source.p[i] <= '9');
    }
}

/* From a quote to behind the closing one. A string in one pair of quotes ends with its line. */
static void skip_string(struct scan *s, struct line *line)
{
    const str t = s->source;
    const char quote = t.p[s->at];
    const bool triple = s->at + 2 < t.n && t.p[s->at + 1] == quote && t.p[s->at + 2] == quote;
    const size_t begin = s->number;
    s->at += triple ? 3 : 1;
    if (str_starts(str_from_index(t, s->at), S("cuda:")))
        line->said = true;
    for (; s->at < t.n; s->at++) {
        const char c = t.p[s->at];
        if (c == '\\' && s->at + 1 < t.n) {
            s->number += t.p[++s->at] == '\n';
        } else if (c == '\n') {
            if (!triple) {
                s->has_fault = true;
                return;
            }
            s->number++;
        } else if (c == quote &&
                   (!triple || (s->at + 2 < t.n && t.p[s->at + 1] == quote && t.p[s->at + 2] == quote))) {
            s->at += triple ? 3 : 1;
            return;
        }
    }
    s->has_fault = true;
    if (triple)
        s->fault = begin;
}

static void take_first_word(struct line *line, str word, str rest)
{
    static const str HEADERS[] = {S_INIT("if"),     S_INIT("for"),    S_INIT("while"), S_INIT("try"),
                                  S_INIT("with"),   S_INIT("def"),    S_INIT("class"), S_INIT("async"),
                                  S_INIT("elif"),   S_INIT("else"),   S_INIT("match"), S_INIT("case"),
                                  S_INIT("except"), S_INIT("finally")};
    if (word.n == 0)
        return;
    line->is_header = among(word, HEADERS, COUNT(HEADERS));
    line->is_except = str_eq(word, S("except"));
    line->is_function =
        str_eq(word, S("def")) || (str_eq(word, S("async")) && str_starts(str_trim_left(rest), S("def")));
    line->leaves = str_eq(word, S("raise")) || str_eq(word, S("exit")) || str_starts(rest, S(".exit")) ||
                   str_starts(rest, S("._exit"));
}

/* From the first character of a logical line to its end. */
static void scan_line(struct scan *s, struct line *line)
{
    const str t = s->source;
    size_t depth = 0, opened = 0;
    char last = 0; /* the last character that counts */
    bool first = true;
    line->is_decorator = t.p[s->at] == '@';
    while (s->at < t.n) {
        const char c = t.p[s->at];
        if (c == '\n' || c == '\r') {
            if (depth == 0)
                break;
            s->number += c == '\n';
            s->at++;
        } else if (c == '\\') {
            s->at++;
            if (s->at < t.n && t.p[s->at] == '\r')
                s->at++;
            if (s->at < t.n && t.p[s->at] == '\n') {
                s->number++;
                s->at++;
            }
        } else if (c == '#') {
            while (s->at < t.n && t.p[s->at] != '\n')
                s->at++;
        } else if (c == '"' || c == '\'') {
            skip_string(s, line);
            last = c;
        } else if (is_name_char(c)) {
            const size_t begin = s->at;
            while (s->at < t.n && is_name_char(t.p[s->at]))
                s->at++;
            const str word = str_slice(t, begin, s->at);
            if (first)
                take_first_word(line, word, str_from_index(t, s->at));
            take_word(s, line, word);
            last = c;
        } else {
            if (c == '(' || c == '[' || c == '{') {
                if (depth++ == 0)
                    opened = s->number;
            } else if (c == ')' || c == ']' || c == '}') {
                s->has_fault = s->has_fault || depth == 0;
                depth -= depth > 0;
            }
            if (c != ' ' && c != '\t' && c != '\f')
                last = c;
            s->at++;
        }
        first = first && (c == ' ' || c == '\t');
    }
    if (depth > 0) {
        s->has_fault = true;
        s->fault = opened;
    }
    line->end = s->at;
    line->last_number = s->number;
    line->opens_block = last == ':';
    line->is_header = line->is_header || line->opens_block;
    s->has_long_line = s->has_long_line || line->end - line->first > STATEMENT_MOST;
}

static bool continues(str word)
{
    static const str CLAUSES[] = {S_INIT("elif"), S_INIT("else"), S_INIT("except"), S_INIT("finally")};
    size_t n = 0;
    while (n < word.n && is_name_char(word.p[n]))
        n++;
    return n > 0 && among(str_slice(word, 0, n), CLAUSES, COUNT(CLAUSES));
}

/* The lines of the source, each with the header of its block. False past the arena's limit. */
static bool scan_lines(struct scan *s)
{
    const str t = s->source;
    size_t headers[HEADERS_MOST], depth = 0;
    while (s->at < t.n) {
        size_t indent = 0;
        for (; s->at < t.n && strchr(" \t\f", t.p[s->at]) && t.p[s->at]; s->at++)
            indent = t.p[s->at] == '\t' ? (indent / 8 + 1) * 8 : indent + 1;
        if (s->at >= t.n)
            break;
        if (t.p[s->at] == '#') {
            while (s->at < t.n && t.p[s->at] != '\n')
                s->at++;
            continue;
        }
        if (t.p[s->at] == '\n' || t.p[s->at] == '\r') {
            s->number += t.p[s->at++] == '\n';
            continue;
        }
        if (!arena_room(s->a, &s->lines))
            return false;
        const size_t index = s->lines.count++;
        struct line *lines = s->lines.items, *line = &lines[index];
        *line = (struct line){
            .first = s->at, .number = s->number, .indent = indent, .header = SIZE_MAX, .leader = index};
        scan_line(s, line);
        size_t sibling = SIZE_MAX; /* the header that this line's block would continue */
        while (depth > 0 && lines[headers[depth - 1]].indent >= indent) {
            sibling = lines[headers[depth - 1]].indent == indent ? headers[depth - 1] : SIZE_MAX;
            depth--;
        }
        if (depth > 0) {
            line->header = headers[depth - 1];
            line->in_function = lines[line->header].in_function || lines[line->header].is_function;
        }
        if (sibling != SIZE_MAX && continues(str_slice(t, line->first, line->end)))
            line->leader = lines[sibling].leader;
        if (line->is_header && depth < HEADERS_MOST)
            headers[depth++] = index;
    }
    return true;
}

static void keep_headers(struct line *lines, size_t index)
{
    for (size_t h = lines[index].header; h != SIZE_MAX; h = lines[h].header) {
        const size_t leader = lines[h].leader;
        if (lines[leader].kept)
            return; /* and so are those around it */
        lines[leader].kept = true;
    }
}

static void choose_lines(struct scan *s, bool whole)
{
    struct line *lines = s->lines.items;
    for (size_t i = 0; i < s->lines.count; i++) {
        struct line *line = &lines[i];
        const bool too_long = line->end - line->first > STATEMENT_MOST;
        const bool wanted =
            whole || (!line->is_decorator &&
                      (line->said || (!line->in_function && !line->is_function && !line->is_header)));
        if (!wanted || too_long)
            continue;
        lines[line->leader].kept = true;
        line->kept = true;
        keep_headers(lines, i);
    }
    for (size_t i = 0; !whole && i < s->lines.count;
         i++) { /* clauses of what is kept, and how handlers end */
        struct line *line = &lines[i];
        if (line->leader != i && lines[line->leader].kept && line->end - line->first <= STATEMENT_MOST)
            line->kept = true;
        if (line->leaves && line->header != SIZE_MAX && lines[line->header].is_except &&
            lines[line->header].kept)
            line->kept = true;
    }
}

/* The kept lines with their indentation, each at its line number. */
static str draw(struct scan *s)
{
    struct buf b = {.a = s->a};
    const struct line *lines = s->lines.items;
    size_t waiting = SIZE_MAX; /* a kept header whose block has nothing yet */
    size_t number = 1;
    for (size_t i = 0; i < s->lines.count; i++) {
        const struct line *line = &lines[i];
        const bool fills =
            waiting != SIZE_MAX && line->header == waiting; /* any statement makes the block one */
        if (!line->kept && !fills)
            continue;
        for (; number < line->number; number++)
            buf_char(&b, '\n');
        size_t start = line->first;
        while (start > 0 && s->source.p[start - 1] != '\n' && s->source.p[start - 1] != '\r')
            start--;
        buf_add(&b, str_slice(s->source, start, line->kept ? line->end : line->first));
        if (!line->kept)
            buf_char(&b, '0');
        number = line->kept ? line->last_number : number;
        waiting = line->kept && line->opens_block ? i : SIZE_MAX;
    }
    buf_char(&b, '\n');
    return b.failed ? (str){NULL, 0} : buf_str(&b);
}

bool python_sketch(arena *a, str source, bool whole, struct sketch *out)
{
    struct scan s = {.a = a, .source = source, .number = 1};
    *out = (struct sketch){.text = source, .whole = true};
    if (!scan_lines(&s))
        return false;
    out->fault = s.fault;
    out->line_count = s.number;
    out->whole = whole || s.whole || s.has_fault;
    if (out->whole && !s.has_long_line)
        return true; /* the source as it is */
    choose_lines(&s, out->whole);
    out->text = draw(&s);
    return out->text.p != NULL;
}
