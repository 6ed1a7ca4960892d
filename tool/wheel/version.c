/* Versions: PEP 440's appendix B read by hand, its order, its normal form. Where the PEP's pattern lets white space
 * surround a version, ASCII white space is meant (the PEP lists it); Python's own notion of it is wider. */
#include "wheel/reader.h"

static const struct pre_word {
    str word;
    enum version_pre pre;
} PRE_WORDS[] = {
    /* longer words before their beginnings */
    {S_INIT("alpha"), PRE_ALPHA},  {S_INIT("a"), PRE_ALPHA},           {S_INIT("beta"), PRE_BETA},
    {S_INIT("b"), PRE_BETA},       {S_INIT("preview"), PRE_CANDIDATE}, {S_INIT("pre"), PRE_CANDIDATE},
    {S_INIT("rc"), PRE_CANDIDATE}, {S_INIT("c"), PRE_CANDIDATE},
};
static const str POST_WORDS[] = {S_INIT("post"), S_INIT("rev"), S_INIT("r")};

static bool is_separator(char c) { return c == '.' || c == '-' || c == '_'; }

static bool take_separator(struct reader *r)
{
    const bool here = is_separator(reader_peek(r));
    r->at += here;
    return here;
}

/* The number that may follow a word: [._-]?[0-9]*, nothing is 0. False when it does not fit 64 bits. */
static bool take_number_after_word(struct reader *r, uint64_t *number)
{
    (void)take_separator(r);
    const str digits = reader_take_digits(r);
    *number = 0;
    return digits.n == 0 || str_to_u64(digits, number);
}

static bool take_release(arena *a, struct reader *r, struct version *v)
{
    size_t parts = 1;
    for (struct reader ahead = *r; (is_digit(reader_peek(&ahead)) || reader_peek(&ahead) == '.'); ahead.at++)
        parts += reader_peek(&ahead) == '.';
    v->release = arena_array(a, uint64_t, parts);
    if (!v->release)
        return false;
    for (;;) {
        if (!str_to_u64(reader_take_digits(r), &v->release[v->release_count]))
            return false;
        v->release_count++;
        const struct reader before_dot = *r;
        if (!reader_take(r, '.') || !is_digit(reader_peek(r))) {
            *r = before_dot;
            return true;
        }
    }
}

static bool take_pre(struct reader *r, struct version *v)
{
    struct reader ahead = *r;
    (void)take_separator(&ahead);
    for (size_t i = 0; i < COUNT(PRE_WORDS); i++)
        if (reader_take_word(&ahead, PRE_WORDS[i].word)) {
            v->pre = PRE_WORDS[i].pre;
            *r = ahead;
            return take_number_after_word(r, &v->pre_number);
        }
    return true;
}

static bool take_post(struct reader *r, struct version *v)
{
    struct reader ahead = *r;
    if (reader_take(&ahead, '-') && is_digit(reader_peek(&ahead))) { /* 1.0-1 is 1.0.post1 */
        v->has_post = true;
        *r = ahead;
        return str_to_u64(reader_take_digits(r), &v->post);
    }
    ahead = *r;
    (void)take_separator(&ahead);
    for (size_t i = 0; i < COUNT(POST_WORDS); i++)
        if (reader_take_word(&ahead, POST_WORDS[i])) {
            v->has_post = true;
            *r = ahead;
            return take_number_after_word(r, &v->post);
        }
    return true;
}

static bool take_dev(struct reader *r, struct version *v)
{
    struct reader ahead = *r;
    (void)take_separator(&ahead);
    if (!reader_take_word(&ahead, S("dev")))
        return true;
    v->has_dev = true;
    *r = ahead;
    return take_number_after_word(r, &v->dev);
}

/* A segment of digits is a number of any size: without its leading zeros, longer is larger. */
static bool local_segment(arena *a, str text, struct version_segment *out)
{
    bool is_number = true, is_lower = true;
    for (size_t i = 0; i < text.n; i++) {
        is_number = is_number && is_digit(text.p[i]);
        is_lower = is_lower && text.p[i] == to_lower(text.p[i]);
    }
    while (is_number && text.n > 1 && text.p[0] == '0')
        text = str_from_index(text, 1);
    *out = (struct version_segment){.text = is_lower ? text : str_lower(a, text), .is_number = is_number};
    return out->text.p != NULL;
}

static bool take_local(arena *a, struct reader *r, struct version *v)
{
    if (!reader_take(r, '+'))
        return true;
    size_t segments = 1;
    for (size_t i = r->at; i < r->text.n; i++)
        segments += is_separator(r->text.p[i]);
    v->local = arena_array(a, struct version_segment, segments);
    if (!v->local)
        return false;
    do {
        const size_t first = r->at;
        while (is_alnum(reader_peek(r)))
            r->at++;
        if (r->at == first || !local_segment(a, str_slice(r->text, first, r->at), &v->local[v->local_count]))
            return false;
        v->local_count++;
    } while (take_separator(r));
    return true;
}

bool version_parse(arena *a, str text, struct version *out)
{
    struct version v = {.text = str_trim(text)};
    struct reader r = {v.text, 0};
    (void)reader_take_word(&r, S("v"));
    struct reader epoch = r;
    const str digits = reader_take_digits(&epoch);
    if (digits.n > 0 && reader_take(&epoch, '!')) {
        if (!str_to_u64(digits, &v.epoch))
            return false;
        r = epoch;
    }
    if (!take_release(a, &r, &v) || !take_pre(&r, &v) || !take_post(&r, &v) || !take_dev(&r, &v) ||
        !take_local(a, &r, &v) || !reader_done(&r))
        return false;
    *out = v;
    return true;
}

static int compare_u64(uint64_t a, uint64_t b) { return (a > b) - (a < b); }

int version_compare_release(const struct version *a, const struct version *b)
{
    const size_t parts = a->release_count > b->release_count ? a->release_count : b->release_count;
    int order = compare_u64(a->epoch, b->epoch);
    for (size_t i = 0; order == 0 && i < parts; i++)
        order = compare_u64(i < a->release_count ? a->release[i] : 0,
                            i < b->release_count ? b->release[i] : 0); /* 2.8 is 2.8.0 */
    return order;
}

/* 1.0.dev1 stands before 1.0a0, and 1.0 after 1.0rc9. */
static int pre_rank(const struct version *v)
{
    if (v->pre == PRE_NONE)
        return v->has_dev && !v->has_post ? -1 : PRE_CANDIDATE + 1;
    return (int)v->pre;
}

int version_compare_public(const struct version *a, const struct version *b)
{
    int order = version_compare_release(a, b);
    if (order == 0)
        order = pre_rank(a) - pre_rank(b);
    if (order == 0)
        order = compare_u64(a->pre_number, b->pre_number);
    if (order == 0)
        order = (int)a->has_post - (int)b->has_post;
    if (order == 0)
        order = compare_u64(a->post, b->post);
    if (order == 0)
        order = (int)b->has_dev - (int)a->has_dev; /* a dev release stands before what it leads to */
    return order ? order : compare_u64(a->dev, b->dev);
}

static int compare_segments(const struct version_segment *a, const struct version_segment *b)
{
    if (a->is_number != b->is_number)
        return a->is_number ? 1 : -1;
    if (a->is_number && a->text.n != b->text.n)
        return a->text.n > b->text.n ? 1 : -1;
    return str_cmp(a->text, b->text);
}

int version_compare(const struct version *a, const struct version *b)
{
    int order = version_compare_public(a, b);
    for (size_t i = 0; order == 0 && i < a->local_count && i < b->local_count; i++)
        order = compare_segments(&a->local[i], &b->local[i]);
    return order ? order : compare_u64(a->local_count, b->local_count);
}

bool version_is_pre(const struct version *v) { return v->pre != PRE_NONE || v->has_dev; }

static void add_public(struct buf *b, const struct version *v)
{
    static const char *const PRE_LETTERS[] = {"", "a", "b", "rc"};
    if (v->epoch > 0)
        buf_format(b, "%llu!", (unsigned long long)v->epoch);
    for (size_t i = 0; i < v->release_count; i++)
        buf_format(b, i > 0 ? ".%llu" : "%llu", (unsigned long long)v->release[i]);
    if (v->pre != PRE_NONE)
        buf_format(b, "%s%llu", PRE_LETTERS[v->pre], (unsigned long long)v->pre_number);
    if (v->has_post)
        buf_format(b, ".post%llu", (unsigned long long)v->post);
    if (v->has_dev)
        buf_format(b, ".dev%llu", (unsigned long long)v->dev);
}

static void add_local(struct buf *b, const struct version *v)
{
    for (size_t i = 0; i < v->local_count; i++) {
        if (i > 0)
            buf_char(b, '.');
        buf_add(b, v->local[i].text);
    }
}

str version_normal(arena *a, const struct version *v)
{
    struct buf b = {.a = a};
    add_public(&b, v);
    if (v->local_count > 0)
        buf_char(&b, '+');
    add_local(&b, v);
    return buf_str(&b);
}

str version_public(arena *a, const struct version *v)
{
    struct buf b = {.a = a};
    add_public(&b, v);
    return buf_str(&b);
}

str version_local(arena *a, const struct version *v)
{
    struct buf b = {.a = a};
    add_local(&b, v);
    return v->local_count > 0 ? buf_str(&b) : (str){NULL, 0};
}
