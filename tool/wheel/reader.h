/* wheel/reader.h: a place in a text, for the folder's hand-written parsers. Private to wheel/. All of it works on ASCII:
 * bytes from 0x80 on belong to no class, so any other text is refused where a class is asked for. */
#ifndef FELLOE_WHEEL_READER_H
#define FELLOE_WHEEL_READER_H

#include "wheel/wheel.h"

struct reader {
    str text;
    size_t at; /* never past text.n */
};

static inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
static inline bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
static inline bool is_alnum(char c) { return is_digit(c) || is_letter(c); }
static inline bool is_blank(char c) { return c == ' ' || c == '\t'; } /* PEP 508's wsp */
static inline bool is_white(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
static inline char to_lower(char c)
{
    if (c >= 'A' && c <= 'Z')
        c = (char)(c | 0x20);
    return c;
}

/* The byte here; NUL at the end and for a NUL in the text, which no class holds either. */
static inline char reader_peek(const struct reader *r)
{
    char c = '\0';
    if (r->at < r->text.n)
        c = r->text.p[r->at];
    return c;
}

/* The byte before this place; NUL at the start. */
static inline char reader_before(const struct reader *r)
{
    char c = '\0';
    if (r->at > 0)
        c = r->text.p[r->at - 1];
    return c;
}

static inline bool reader_done(const struct reader *r) { return r->at == r->text.n; }

static inline bool reader_take(struct reader *r, char c)
{
    if (r->at == r->text.n || r->text.p[r->at] != c)
        return false;
    r->at++;
    return true;
}

/* The word, ASCII case ignored. */
static inline bool reader_take_word(struct reader *r, str word)
{
    if (!str_eq_nocase(str_slice(r->text, r->at, r->at + word.n), word))
        return false;
    r->at += word.n;
    return true;
}

static inline str reader_take_digits(struct reader *r)
{
    const size_t first = r->at;
    while (is_digit(reader_peek(r)))
        r->at++;
    return str_slice(r->text, first, r->at);
}

static inline void reader_skip_blanks(struct reader *r)
{
    while (is_blank(reader_peek(r)))
        r->at++;
}

/* One clause without white space around it, "==2.11.*", and nothing after it. On false, *at is an offset in clause. */
bool spec_parse_clause(arena *a, str clause, struct spec *out, size_t *at, const char **expected);

#endif
