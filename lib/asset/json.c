/* asset/json.c: a strict JSON reader (RFC 8259) for glTF. libfelloe must build with a C compiler and nothing else, so
 * no JSON library. One pass without recursion makes a flat array of nodes; strings and numbers stay in the text. */
#include "asset/asset.h"

#include <math.h>
#include <string.h>

enum { MAX_DEPTH = 64 };

struct parser {
    struct reader *reader;
    const char *text;
    size_t size, at;
    uint64_t offset;
    struct list nodes;
    uint32_t open[MAX_DEPTH]; /* arrays and objects not closed yet */
    int depth;
};

static bool fail(struct parser *p, const char *expected)
{
    return reader_fail(p->reader, p->offset + p->at, "JSON: expected %s", expected);
}

static void skip_space(struct parser *p)
{
    while (p->at < p->size && (p->text[p->at] == ' ' || p->text[p->at] == '\t' || p->text[p->at] == '\n' ||
                               p->text[p->at] == '\r'))
        p->at++;
}

static struct json_node *add_node(struct parser *p, enum json_kind kind, size_t start, size_t size)
{
    struct json_node *n = list_add(&p->nodes);
    if (!n) {
        reader_out_of_memory(p->reader);
        return NULL;
    }
    n->kind = kind;
    n->start = (uint32_t)start;
    n->size = (uint32_t)size;
    n->next = (uint32_t)p->nodes.count;
    return n;
}

static bool is_hex(char c) { return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f'); }

static bool parse_string(struct parser *p)
{
    const size_t start = ++p->at;
    for (; p->at < p->size && p->text[p->at] != '"'; p->at++) {
        if ((unsigned char)p->text[p->at] < 0x20)
            return fail(p, "an escape instead of a control character");
        if (p->text[p->at] != '\\')
            continue;
        if (++p->at >= p->size)
            break;
        if (p->text[p->at] == 'u') {
            for (int i = 1; i <= 4; i++)
                if (p->at + (size_t)i >= p->size || !is_hex(p->text[p->at + (size_t)i]))
                    return fail(p, "four hexadecimal digits after \\u");
            p->at += 4;
        } else if (!p->text[p->at] || !strchr("\"\\/bfnrt", p->text[p->at])) {
            return fail(p, "one of \" \\ / b f n r t u after a backslash");
        }
    }
    if (p->at >= p->size)
        return fail(p, "the end of the string");
    return add_node(p, JSON_STRING, start, p->at++ - start) != NULL;
}

static size_t digits(struct parser *p)
{
    const size_t start = p->at;
    while (p->at < p->size && p->text[p->at] >= '0' && p->text[p->at] <= '9')
        p->at++;
    return p->at - start;
}

static bool parse_number(struct parser *p)
{
    const size_t start = p->at;
    if (p->text[p->at] == '-')
        p->at++;
    if (p->at < p->size && p->text[p->at] == '0')
        p->at++;
    else if (!digits(p))
        return fail(p, "a digit");
    if (p->at < p->size && p->text[p->at] == '.') {
        p->at++;
        if (!digits(p))
            return fail(p, "a digit after the point");
    }
    if (p->at < p->size && (p->text[p->at] | 0x20) == 'e') {
        p->at++;
        if (p->at < p->size && (p->text[p->at] == '-' || p->text[p->at] == '+'))
            p->at++;
        if (!digits(p))
            return fail(p, "a digit of the exponent");
    }
    return add_node(p, JSON_NUMBER, start, p->at - start) != NULL;
}

static bool parse_word(struct parser *p, const char *word, enum json_kind kind)
{
    const size_t length = strlen(word);
    if (p->size - p->at < length || memcmp(p->text + p->at, word, length) != 0)
        return fail(p, "a value");
    p->at += length;
    return add_node(p, kind, p->at - length, length) != NULL;
}

static bool open_node(struct parser *p, enum json_kind kind)
{
    if (p->depth == MAX_DEPTH)
        return fail(p, "at most 64 levels of nesting");
    p->open[p->depth++] = (uint32_t)p->nodes.count;
    return add_node(p, kind, p->at++, 0) != NULL;
}

static struct json_node *opened(struct parser *p)
{
    return (struct json_node *)p->nodes.items + p->open[p->depth - 1];
}

static void close_node(struct parser *p)
{
    struct json_node *n = opened(p);
    n->next = (uint32_t)p->nodes.count;
    n->size = (uint32_t)(++p->at - n->start);
    p->depth--;
}

static bool parse_value(struct parser *p)
{
    switch (p->text[p->at]) {
    case '"':
        return parse_string(p);
    case '{':
        return open_node(p, JSON_OBJECT);
    case '[':
        return open_node(p, JSON_ARRAY);
    case 't':
        return parse_word(p, "true", JSON_TRUE);
    case 'f':
        return parse_word(p, "false", JSON_FALSE);
    case 'n':
        return parse_word(p, "null", JSON_NULL);
    default:
        if (p->text[p->at] == '-' || (p->text[p->at] >= '0' && p->text[p->at] <= '9'))
            return parse_number(p);
        return fail(p, "a value");
    }
}

/* One item of the innermost open array or object: a comma before it, a key, a value; or the closing bracket. */
static bool parse_item(struct parser *p)
{
    struct json_node *n = opened(p);
    const bool object = n->kind == JSON_OBJECT;
    skip_space(p);
    if (p->at < p->size && p->text[p->at] == (object ? '}' : ']')) {
        close_node(p);
        return true;
    }
    if (n->count) {
        if (p->at >= p->size || p->text[p->at] != ',')
            return fail(p, object ? "',' or '}'" : "',' or ']'");
        p->at++;
        skip_space(p);
    }
    n->count++;
    if (object) {
        if (p->at >= p->size || p->text[p->at] != '"')
            return fail(p, "a member's name in quotes");
        if (!parse_string(p))
            return false;
        skip_space(p);
        if (p->at >= p->size || p->text[p->at] != ':')
            return fail(p, "':'");
        p->at++;
        skip_space(p);
    }
    return p->at < p->size ? parse_value(p) : fail(p, "a value");
}

bool json_parse(struct reader *r, const char *text, size_t size, uint64_t offset, struct json *out)
{
    struct parser p = {.reader = r,
                       .text = text,
                       .size = size,
                       .offset = offset,
                       .nodes = {.item_size = sizeof(struct json_node), .memory = &r->memory}};
    if (size > INT32_MAX)
        return fail(&p, "at most 2^31 - 1 bytes");
    skip_space(&p);
    bool good = p.at < size ? parse_value(&p) : fail(&p, "a value");
    while (good && p.depth)
        good = parse_item(&p);
    if (good) {
        skip_space(&p);
        if (p.at < size)
            good = fail(&p, "nothing after the document");
    }
    if (!good) {
        list_free(&p.nodes);
        return false;
    }
    const size_t count = p.nodes.count;
    *out = (struct json){.text = text, .nodes = list_take(&p.nodes), .count = count, .offset = offset};
    return out->nodes ? true : reader_out_of_memory(r);
}

const struct json_node *json_member(const struct json *j, const struct json_node *n, const char *name)
{
    if (!n || n->kind != JSON_OBJECT)
        return NULL;
    const struct json_node *key = n + 1;
    for (uint32_t i = 0; i < n->count; i++) {
        const struct json_node *value = key + 1;
        if (json_is(j, key, name))
            return value;
        key = j->nodes + value->next;
    }
    return NULL;
}

const struct json_node *json_first(const struct json *j, const struct json_node *n)
{
    (void)j;
    return n && n->kind == JSON_ARRAY && n->count ? n + 1 : NULL;
}

const struct json_node *json_next(const struct json *j, const struct json_node *n)
{
    return j->nodes + n->next;
}

bool json_is(const struct json *j, const struct json_node *n, const char *text)
{
    return n && n->kind == JSON_STRING && n->size == strlen(text) &&
           memcmp(j->text + n->start, text, n->size) == 0;
}

bool json_number(struct reader *r, const struct json *j, const struct json_node *n, const char *what,
                 double otherwise, double *value)
{
    *value = otherwise;
    if (!n)
        return true;
    const char *at = j->text + n->start;
    if (n->kind != JSON_NUMBER || !number_parse(&at, at + n->size, value) || !isfinite(*value))
        return reader_fail(r, j->offset + n->start, "%s: expected a number", what);
    return true;
}

bool json_index(struct reader *r, const struct json *j, const struct json_node *n, const char *what,
                uint64_t limit, int64_t *value)
{
    double number;
    if (!json_number(r, j, n, what, -1, &number))
        return false;
    *value = -1;
    if (!n)
        return true;
    if (number < 0 || number >= (double)limit || number > 9007199254740991.0 || floor(number) < number)
        return reader_fail(r, j->offset + n->start, "%s: expected a whole number below %llu", what,
                           (unsigned long long)limit);
    *value = (int64_t)number;
    return true;
}

static uint32_t hex4(const char *p)
{
    uint32_t value = 0;
    for (int i = 0; i < 4; i++)
        value = value * 16 + (uint32_t)(p[i] <= '9' ? p[i] - '0' : (p[i] | 0x20) - 'a' + 10);
    return value;
}

static size_t put_utf8(char *out, uint32_t c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xC0 | c >> 6);
        out[1] = (char)(0x80 | (c & 63));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xE0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 63));
        out[2] = (char)(0x80 | (c & 63));
        return 3;
    }
    out[0] = (char)(0xF0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 63));
    out[2] = (char)(0x80 | (c >> 6 & 63));
    out[3] = (char)(0x80 | (c & 63));
    return 4;
}

char *json_text(struct reader *r, const struct json *j, const struct json_node *n)
{
    if (!n || n->kind != JSON_STRING)
        return NULL;
    /* an escape is never shorter than what it stands for */
    char *out = memory_array(&r->memory, (size_t)n->size + 1, 1);
    if (!out) {
        reader_out_of_memory(r);
        return NULL;
    }
    size_t length = 0;
    const char *end = j->text + n->start + n->size;
    for (const char *p = j->text + n->start; p < end; p++) {
        uint32_t c = (unsigned char)*p;
        if (c != '\\') {
            out[length++] = *p;
            if (c == 0x7F)
                out[length - 1] = '?';
            continue;
        }
        p++;
        if (*p == 'u') {
            c = hex4(p + 1);
            p += 4;
            if (c >= 0xD800 && c < 0xDC00 && end - p > 6 && p[1] == '\\' && p[2] == 'u') {
                const uint32_t low = hex4(p + 3);
                if (low >= 0xDC00 && low < 0xE000) {
                    c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
                    p += 6;
                }
            }
            if (c >= 0xD800 && c < 0xE000)
                c = 0xFFFD; /* half of a pair */
        } else {
            c = (unsigned char)*p == '"' || *p == '\\' || *p == '/' ? (unsigned char)*p : ' ';
        }
        if (c < 0x20 || (c >= 0x7F && c < 0xA0))
            c = '?';
        length += put_utf8(out + length, c);
    }
    return out;
}
