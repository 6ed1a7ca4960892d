/* Strings by pointer and length, bounded readers of bytes, growing text. */
#include "base/base.h"

#include <stdio.h>

str str_from(const char *text) { return text ? (str){text, strlen(text)} : (str){NULL, 0}; }

bool str_eq(str a, str b) { return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0); }

static char lower(char c)
{
    static const char LETTERS[] = "abcdefghijklmnopqrstuvwxyz";
    if (c < 'A' || c > 'Z')
        return c;
    return LETTERS[c - 'A'];
}

bool str_eq_nocase(str a, str b)
{
    if (a.n != b.n)
        return false;
    for (size_t i = 0; i < a.n; i++)
        if (lower(a.p[i]) != lower(b.p[i]))
            return false;
    return true;
}

int str_cmp(str a, str b)
{
    const size_t n = a.n < b.n ? a.n : b.n;
    const int order = n ? memcmp(a.p, b.p, n) : 0;
    return order ? order : (a.n > b.n) - (a.n < b.n);
}

bool str_starts(str s, str prefix) { return s.n >= prefix.n && str_eq(str_slice(s, 0, prefix.n), prefix); }

bool str_ends(str s, str suffix)
{
    return s.n >= suffix.n && str_eq(str_from_index(s, s.n - suffix.n), suffix);
}

size_t str_find(str s, str part)
{
    if (part.n == 0)
        return 0;
    if (s.n < part.n)
        return SIZE_MAX;
    const char *found = memmem(s.p, s.n, part.p, part.n);
    return found ? (size_t)(found - s.p) : SIZE_MAX;
}

bool str_contains(str s, str part) { return str_find(s, part) != SIZE_MAX; }

size_t str_find_char(str s, char c)
{
    const char *found = s.n ? memchr(s.p, c, s.n) : NULL;
    return found ? (size_t)(found - s.p) : SIZE_MAX;
}

size_t str_rfind_char(str s, char c)
{
    const char *found = s.n ? memrchr(s.p, c, s.n) : NULL;
    return found ? (size_t)(found - s.p) : SIZE_MAX;
}

str str_slice(str s, size_t first, size_t last)
{
    if (last > s.n)
        last = s.n;
    if (first > last)
        first = last;
    return s.p ? (str){s.p + first, last - first} : s;
}

str str_from_index(str s, size_t first) { return str_slice(s, first, s.n); }

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

str str_trim_left(str s)
{
    size_t first = 0;
    while (first < s.n && is_space(s.p[first]))
        first++;
    return str_from_index(s, first);
}

str str_trim_right(str s)
{
    while (s.n > 0 && is_space(s.p[s.n - 1]))
        s.n--;
    return s;
}

str str_trim(str s) { return str_trim_right(str_trim_left(s)); }

bool str_cut(str s, char c, str *head, str *tail)
{
    const size_t at = str_find_char(s, c);
    *head = str_slice(s, 0, at); /* SIZE_MAX is clamped: all of it */
    *tail = at == SIZE_MAX ? (str){NULL, 0} : str_from_index(s, at + 1);
    return at != SIZE_MAX;
}

bool str_next_line(str *rest, str *line)
{
    if (rest->n == 0)
        return false;
    size_t end = 0;
    while (end < rest->n && rest->p[end] != '\n' && rest->p[end] != '\r')
        end++;
    *line = str_slice(*rest, 0, end);
    if (end + 1 < rest->n && rest->p[end] == '\r' && rest->p[end + 1] == '\n')
        end++;
    *rest = str_from_index(*rest, end + 1);
    return true;
}

bool str_to_u64(str s, uint64_t *value)
{
    uint64_t sum = 0;
    if (s.n == 0)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        const unsigned digit = (unsigned)(unsigned char)s.p[i] - '0';
        if (digit > 9 || sum > (UINT64_MAX - digit) / 10)
            return false;
        sum = sum * 10 + digit;
    }
    *value = sum;
    return true;
}

uint64_t str_hash(str s)
{
    uint64_t hash = 0xcbf29ce484222325;
    for (size_t i = 0; i < s.n; i++)
        hash = (hash ^ (unsigned char)s.p[i]) * 0x100000001b3;
    return hash;
}

/* Optimal string alignment: insert, delete, replace, swap two neighbours. */
size_t str_distance(str a, str b)
{
    enum { MOST = 64 };
    size_t rows[3][MOST + 1];
    a = str_slice(a, 0, MOST);
    b = str_slice(b, 0, MOST);
    size_t *before = rows[0], *last = rows[1], *row = rows[2];
    for (size_t j = 0; j <= b.n; j++)
        last[j] = j;
    memset(rows[0], 0, sizeof rows[0]);
    for (size_t i = 1; i <= a.n; i++) {
        row[0] = i;
        for (size_t j = 1; j <= b.n; j++) {
            const size_t differs = a.p[i - 1] != b.p[j - 1];
            size_t least = last[j - 1] + differs;
            if (last[j] + 1 < least)
                least = last[j] + 1;
            if (row[j - 1] + 1 < least)
                least = row[j - 1] + 1;
            if (i > 1 && j > 1 && a.p[i - 1] == b.p[j - 2] && a.p[i - 2] == b.p[j - 1] &&
                before[j - 2] + 1 < least)
                least = before[j - 2] + 1;
            row[j] = least;
        }
        size_t *spare = before;
        before = last;
        last = row;
        row = spare;
    }
    return last[b.n];
}

str str_copy(arena *a, str s)
{
    if (!s.p)
        return s;
    char *copy = arena_array(a, char, s.n + 1);
    if (!copy)
        return (str){NULL, 0};
    memcpy(copy, s.p, s.n);
    return (str){copy, s.n};
}

const char *str_c(arena *a, str s)
{
    const str copy = str_copy(a, s.p ? s : S(""));
    return copy.p ? copy.p : "";
}

str str_lower(arena *a, str s)
{
    str copy = str_copy(a, s);
    char *p = arena_array(a, char, s.n + 1);
    if (!p)
        return copy;
    for (size_t i = 0; i < s.n; i++)
        p[i] = lower(s.p[i]);
    return (str){p, s.n};
}

str str_vformat(arena *a, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    const int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (length < 0)
        return S("");
    char *text = arena_array(a, char, (size_t)length + 1);
    if (!text)
        return (str){NULL, 0};
    (void)vsnprintf(text, (size_t)length + 1, format, args);
    return (str){text, (size_t)length};
}

str str_format(arena *a, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const str text = str_vformat(a, format, args);
    va_end(args);
    return text;
}

str str_join(arena *a, const struct strs *list, str separator)
{
    struct buf b = {.a = a};
    for (size_t i = 0; i < list->count; i++) {
        if (i > 0)
            buf_add(&b, separator);
        buf_add(&b, list->items[i]);
    }
    return buf_str(&b);
}

bool strs_add(arena *a, struct strs *list, str s)
{
    if (!arena_room(a, list))
        return false;
    list->items[list->count++] = s;
    return true;
}

bool strs_has(const struct strs *list, str s)
{
    for (size_t i = 0; i < list->count; i++)
        if (str_eq(list->items[i], s))
            return true;
    return false;
}

/* The length of the UTF-8 sequence at s, 0 when there is none (RFC 3629: no surrogates, no overlong forms, to U+10FFFF). */
static size_t utf8_length(str s)
{
    const unsigned char *p = (const unsigned char *)s.p;
    if (p[0] < 0x80)
        return 1;
    const size_t n = p[0] >= 0xc2 && p[0] < 0xe0   ? 2
                     : p[0] >= 0xe0 && p[0] < 0xf0 ? 3
                     : p[0] >= 0xf0 && p[0] < 0xf5 ? 4
                                                   : 0;
    if (n == 0 || s.n < n)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    const bool overlong = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90);
    const bool beyond = (p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf4 && p[1] > 0x8f);
    return overlong || beyond ? 0 : n;
}

static bool utf8_scan(str s, bool nul_is_bad)
{
    for (size_t i = 0; i < s.n;) {
        const size_t n = utf8_length(str_from_index(s, i));
        if (n == 0 || (nul_is_bad && s.p[i] == 0))
            return false;
        i += n;
    }
    return true;
}

bool str_is_utf8(str s) { return utf8_scan(s, false); }

str str_utf8(arena *a, str s)
{
    if (utf8_scan(s, true))
        return s;
    struct buf b = {.a = a};
    for (size_t i = 0; i < s.n;) {
        const size_t n = utf8_length(str_from_index(s, i));
        const bool good = n > 0 && s.p[i] != 0;
        buf_add(&b, good ? str_slice(s, i, i + n) : S("\xef\xbf\xbd"));
        i += good ? n : 1;
    }
    return buf_str(&b);
}

bool span_slice(span s, uint64_t offset, uint64_t length, span *out)
{
    if (offset > s.n || length > s.n - offset)
        return false;
    *out = (span){s.p + offset, (size_t)length};
    return true;
}

static uint64_t span_le(span s, uint64_t offset, unsigned bytes)
{
    uint64_t value = 0;
    if (offset > s.n || bytes > s.n - offset)
        return 0;
    for (unsigned i = 0; i < bytes; i++)
        value |= (uint64_t)s.p[offset + i] << (8 * i);
    return value;
}

uint8_t span_u8(span s, uint64_t offset) { return (uint8_t)span_le(s, offset, 1); }
uint16_t span_u16le(span s, uint64_t offset) { return (uint16_t)span_le(s, offset, 2); }
uint32_t span_u32le(span s, uint64_t offset) { return (uint32_t)span_le(s, offset, 4); }
uint64_t span_u64le(span s, uint64_t offset) { return span_le(s, offset, 8); }

bool span_cstr(span s, uint64_t offset, str *out)
{
    if (offset >= s.n)
        return false;
    const uint8_t *end = memchr(s.p + offset, 0, s.n - (size_t)offset);
    if (!end)
        return false;
    *out = (str){(const char *)s.p + offset, (size_t)(end - (s.p + offset))};
    return true;
}

str str_from_span(span s) { return (str){s.p ? (const char *)s.p : "", s.n}; }
span span_from_str(str s) { return (span){(const uint8_t *)s.p, s.n}; }

void buf_add(struct buf *b, str s)
{
    if (b->failed || s.n == 0)
        return;
    /* One byte more than the text, so that a NUL always follows it. */
    if (!arena_room_for(b->a, (void *)&b->items, b->count, &b->capacity, 1, s.n + 1)) {
        b->failed = true;
        return;
    }
    memcpy(b->items + b->count, s.p, s.n);
    b->count += s.n;
    b->items[b->count] = 0;
}

void buf_char(struct buf *b, char c) { buf_add(b, (str){&c, 1}); }

void buf_format(struct buf *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    buf_add(b, str_vformat(b->a, format, args));
    va_end(args);
}

str buf_str(const struct buf *b) { return b->items ? (str){b->items, b->count} : S(""); }
