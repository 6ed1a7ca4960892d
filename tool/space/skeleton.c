/* Most of a library's Python is arithmetic that no fact depends on, and parsing it is most of what a scan costs. For a module that can
 * only matter by its imports, indented statements without any word of interest are blanked before the parse; every byte keeps its
 * place, so lines and columns are those of the file. Strings, brackets and continued lines are followed; where something does not add up
 * the whole source is parsed, and so it is when the parse of the blanked one fails. */
#include "space/private.h"

/* A module that holds one of these is parsed whole: it may install, set the environment, or serve calls. */
static const str WHOLE[] = {S_INIT("spaces"),    S_INIT("gradio"),        S_INIT("subprocess"),
                            S_INIT("os.system"), S_INIT("popen"),         S_INIT("pip install"),
                            S_INIT("pip.main"),  S_INIT("pip._internal"), S_INIT("environ"),
                            S_INIT("putenv")};

/* An indented statement that begins with one of these is kept: it makes the structure, or decides whether a handler goes on. */
static const str STARTS[] = {S_INIT("def"),   S_INIT("class"),    S_INIT("if"),     S_INIT("elif"),
                             S_INIT("else"),  S_INIT("try"),      S_INIT("except"), S_INIT("finally"),
                             S_INIT("with"),  S_INIT("for"),      S_INIT("while"),  S_INIT("match"),
                             S_INIT("case"),  S_INIT("async"),    S_INIT("from"),   S_INIT("import"),
                             S_INIT("raise"), S_INIT("sys.exit"), S_INIT("exit"),   S_INIT("os._exit")};

/* ... or that holds one of these. */
static const str WORDS[] = {S_INIT("import"),
                            S_INIT("cuda:"),
                            S_INIT("CDLL"),
                            S_INIT("LoadLibrary"),
                            S_INIT("attn_implementation"),
                            S_INIT("attention_backend"),
                            S_INIT("torch.compile"),
                            S_INIT("torch.load"),
                            S_INIT("from_pretrained"),
                            S_INIT("load_model"),
                            S_INIT(".launch"),
                            S_INIT("cache_examples"),
                            S_INIT("sys.path"),
                            S_INIT("multiprocessing"),
                            S_INIT("device_map")};

static bool contains_any(str text, const str *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (str_contains(text, words[i]))
            return true;
    return false;
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool is_kept(str statement)
{
    for (size_t i = 0; i < COUNT(STARTS); i++)
        if (str_starts(statement, STARTS[i]) &&
            (statement.n == STARTS[i].n || !is_word(statement.p[STARTS[i].n])))
            return true;
    return statement.p[0] == '@' || contains_any(statement, WORDS, COUNT(WORDS));
}

/* Past the string that begins at *at; false when it does not end. */
static bool skip_string(str s, size_t *at)
{
    const char quote = s.p[*at];
    const bool triple = *at + 2 < s.n && s.p[*at + 1] == quote && s.p[*at + 2] == quote;
    size_t i = *at + (triple ? 3 : 1);
    for (; i < s.n; i++) {
        if (s.p[i] == '\\') {
            i++;
        } else if (s.p[i] == '\n' && !triple) {
            return false;
        } else if (s.p[i] == quote &&
                   (!triple || (i + 2 < s.n && s.p[i + 1] == quote && s.p[i + 2] == quote))) {
            *at = i + (triple ? 3 : 1);
            return true;
        }
    }
    return false;
}

struct statement {
    size_t first, last; /* from its first character to the end of its last line */
    size_t indent;
    bool opens_block; /* ends with ':' */
};

/* The next logical line that holds code; false at the end of the source, and with *sound cleared where it cannot be followed. */
static bool next_statement(str s, size_t *at, struct statement *out, bool *sound)
{
    size_t i = *at;
    for (;;) { /* blank lines and comments */
        size_t indent = 0;
        while (i < s.n && (s.p[i] == ' ' || s.p[i] == '\t' || s.p[i] == '\f')) {
            indent++;
            i++;
        }
        if (i >= s.n)
            return false;
        if (s.p[i] == '#')
            while (i < s.n && s.p[i] != '\n')
                i++;
        if (i < s.n && (s.p[i] == '\n' || s.p[i] == '\r')) {
            i++;
            continue;
        }
        if (i >= s.n)
            return false;
        *out = (struct statement){.first = i, .indent = indent};
        break;
    }
    char last = 0;
    unsigned depth = 0;
    while (i < s.n) {
        const char c = s.p[i];
        if (c == '\n' && depth == 0)
            break;
        if (c == '#') {
            while (i < s.n && s.p[i] != '\n')
                i++;
            continue;
        }
        if (c == '\\') {
            i += i + 2 < s.n && s.p[i + 1] == '\r' && s.p[i + 2] == '\n' ? 3 : 2;
            continue;
        }
        if (c == '"' || c == '\'') {
            if (!skip_string(s, &i)) {
                *sound = false;
                return false;
            }
            last = c;
            continue;
        }
        if (c == '(' || c == '[' || c == '{')
            depth++;
        if (c == ')' || c == ']' || c == '}') {
            if (depth == 0) {
                *sound = false;
                return false;
            }
            depth--;
        }
        if (c != ' ' && c != '\t' && c != '\r' && c != '\n')
            last = c;
        i++;
    }
    if (depth > 0 || i > s.n) {
        *sound = false;
        return false;
    }
    out->last = i;
    out->opens_block = last == ':';
    *at = i < s.n ? i + 1 : i;
    return true;
}

str python_skeleton(arena *a, str source)
{
    if (contains_any(source, WHOLE, COUNT(WHOLE)))
        return source;
    char *text = arena_array(a, char, source.n + 1);
    struct statement statement;
    size_t at = 0;
    bool sound = true, block_is_empty = false;
    if (!text)
        return source;
    memcpy(text, source.p, source.n);
    while (next_statement(source, &at, &statement, &sound)) {
        const str code = str_slice(source, statement.first, statement.last);
        if (statement.indent == 0 || is_kept(code)) {
            block_is_empty = statement.opens_block;
            continue;
        }
        for (size_t i = statement.first; i < statement.last; i++)
            if (text[i] != '\n' && text[i] != '\r')
                text[i] = ' ';
        if (block_is_empty)
            text[statement.first] = '0'; /* a block needs a statement */
        block_is_empty = false;
    }
    return sound ? (str){text, source.n} : source;
}
