/* Names: of distributions (PEP 503, 508) and of wheel files (PEP 427 and 491, with PEP 825's trailing label), from a path,
 * a URL, a bare name or a requirement line. The rules for validity are those of packaging's parse_wheel_filename. */
#include "wheel/reader.h"

enum {
    NAME_LIMIT = 1024, /* bytes of a file name; file systems end at 255. Bounds the tag sets as well */
    LABEL_LIMIT = 16,  /* of a variant's label, PEP 825 */
};

static bool is_dash(char c) { return c == '-' || c == '_' || c == '.'; }

/* The next byte of the normal form of s, from *i on; NUL at the end. */
static char normal_next(str s, size_t *i)
{
    if (*i == s.n)
        return '\0';
    const char c = s.p[(*i)++];
    if (!is_dash(c))
        return to_lower(c);
    while (*i < s.n && is_dash(s.p[*i]))
        ++*i;
    return '-';
}

str name_normalize(arena *a, str name)
{
    char *text = arena_array(a, char, name.n + 1);
    size_t n = 0;
    if (!text)
        return name;
    for (size_t i = 0; i < name.n;)
        text[n++] = normal_next(name, &i);
    return (str){text, n};
}

bool name_same(str a, str b)
{
    size_t i = 0, k = 0;
    while (i < a.n && k < b.n)
        if (normal_next(a, &i) != normal_next(b, &k))
            return false;
    return i == a.n && k == b.n;
}

bool name_is_valid(str name)
{
    for (size_t i = 0; i < name.n; i++)
        if (!is_alnum(name.p[i]) && !is_dash(name.p[i]))
            return false;
    return name.n > 0 && is_alnum(name.p[0]) && is_alnum(name.p[name.n - 1]);
}

/* ---- From what users write to a file name ---- */

/* "name @ URL ; marker" -> URL; anything else unchanged. */
static str requirement_url(arena *a, str text)
{
    struct requirement requirement;
    size_t at;
    const char *expected;
    if (str_find_char(text, '@') == SIZE_MAX || !requirement_parse(a, text, &requirement, &at, &expected) ||
        !requirement.url.p)
        return text;
    return requirement.url;
}

/* The word that holds the URL: "pip install https://..." is seen in notes. */
static str url_word(str text)
{
    size_t first = str_find(text, S("://"));
    if (first == SIZE_MAX)
        return text;
    while (first > 0 && !is_white(text.p[first - 1]))
        first--;
    return str_from_index(text, first);
}

/* Ends the text behind ".whl" when what follows is a query, a fragment, a marker or an option of pip's. A URL ends at a
 * query, a fragment or white space wherever they stand. */
static str cut_behind(str text)
{
    const bool is_url = str_contains(text, S("://"));
    for (size_t i = 0; i < text.n; i++) {
        const char c = text.p[i];
        if (c != '?' && c != '#' && c != ';' && !is_white(c))
            continue;
        const bool behind_wheel = str_ends(str_slice(text, 0, i), S(".whl"));
        if (!behind_wheel && !is_url)
            continue;
        const struct reader next = {behind_wheel ? str_trim_left(str_from_index(text, i)) : S(""), 0};
        const bool goes_on =
            reader_peek(&next) == ';' || reader_peek(&next) == '#' || reader_peek(&next) == '-';
        const bool ends_wheel = behind_wheel && (!is_white(c) || goes_on);
        if (ends_wheel || (is_url && c != ';'))
            return str_slice(text, 0, i);
    }
    return text;
}

static str last_segment(str path)
{
    const size_t slash = str_rfind_char(path, '/');
    const str name = slash == SIZE_MAX ? path : str_from_index(path, slash + 1);
    const size_t back = str_rfind_char(name, '\\'); /* C:\wheels\x.whl */
    return back == SIZE_MAX ? name : str_from_index(name, back + 1);
}

static str file_name(arena *a, str text)
{
    const str coded = last_segment(cut_behind(url_word(requirement_url(a, str_trim(text)))));
    return last_segment(url_decode(a, coded)); /* ".../o/dist%2Fx.whl" hides a folder */
}

/* ---- The fields ---- */

/* The '.'-joined members; false when one is empty. */
static bool split_set(arena *a, str field, struct strs *out)
{
    str member, rest = field;
    while (rest.p) {
        (void)str_cut(rest, '.', &member, &rest);
        if (member.n == 0 || !strs_add(a, out, member))
            return false;
    }
    return true;
}

static bool starts_with_digit(str s) { return s.n > 0 && is_digit(s.p[0]); }

static bool is_identifier(str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!(is_letter(s.p[i]) || s.p[i] == '_' || (i > 0 && is_digit(s.p[i]))))
            return false;
    return s.n > 0;
}

static bool is_distribution(str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!is_alnum(s.p[i]) && s.p[i] != '_' && s.p[i] != '.')
            return false;
    return s.n > 0 && !str_contains(s, S("__"));
}

static bool is_platform(str s)
{
    static const str STARTS[] = {S_INIT("linux_"),  S_INIT("manylinux"), S_INIT("musllinux_"),
                                 S_INIT("macosx_"), S_INIT("win_"),      S_INIT("ios_"),
                                 S_INIT("android_")};
    if (str_eq(s, S("any")) || str_starts(s, S("win32")))
        return true;
    for (size_t i = 0; i < COUNT(STARTS); i++)
        if (str_starts(s, STARTS[i]))
            return true;
    return false;
}

/* A variant's label stands behind a platform; the last field of a name without one is a platform itself. */
static bool is_label(str s, str platform)
{
    for (size_t i = 0; i < s.n; i++)
        if (!is_digit(s.p[i]) && !(s.p[i] >= 'a' && s.p[i] <= 'z') && s.p[i] != '.' && s.p[i] != '_')
            return false;
    return s.n > 0 && s.n <= LABEL_LIMIT && is_platform(platform) && !is_platform(s);
}

enum { FIELDS_MOST = 7 }; /* name, version, build, python, abi, platform, variant */

static bool refuse(str *why, str reason)
{
    *why = reason;
    return false;
}

/* The fields between the dashes, with build tag and label told apart. */
static bool split_fields(arena *a, str stem, struct wheel_name *out, str *tags, str *why)
{
    str fields[FIELDS_MOST + 1], rest = stem;
    size_t count = 0;
    while (rest.p && count <= FIELDS_MOST)
        (void)str_cut(rest, '-', &fields[count++], &rest);
    /* A python tag starts with a letter, so a digit in the third field of six makes it a build tag. */
    const bool may_have_label = count == FIELDS_MOST || (count == 6 && !starts_with_digit(fields[2]));
    const bool labelled = may_have_label && is_label(fields[count - 1], fields[count - 2]);
    const size_t bare = count - labelled;
    if (bare != 5 && bare != 6)
        return refuse(why, str_format(a,
                                      "a wheel's name has 5 or 6 fields between dashes "
                                      "(name-version[-build]-python-abi-platform), this one has %zu%s",
                                      count, count > FIELDS_MOST ? " or more" : ""));
    out->distribution = fields[0];
    out->version_text = fields[1];
    if (bare == 6)
        out->build_tag = fields[2];
    if (labelled)
        out->variant = fields[count - 1];
    memcpy(tags, &fields[bare - 3], 3 * sizeof *tags);
    return true;
}

static bool read_fields(arena *a, struct wheel_name *out, const str *tags, str *why)
{
    if (!is_distribution(out->distribution))
        return refuse(why, str_format(a, "distribution '%.*s': expected letters, digits, '.' and single '_'",
                                      STR_ARG(out->distribution)));
    if (!version_parse(a, out->version_text, &out->version) || out->version.text.n != out->version_text.n)
        return refuse(
            why,
            str_format(a, "version '%.*s' is no PEP 440 version%s", STR_ARG(out->version_text),
                       str_contains(out->version_text, S("%2")) ? ": its '+' is percent-encoded twice" : ""));
    if (out->build_tag.p && !starts_with_digit(out->build_tag))
        return refuse(why, str_format(a, "build tag '%.*s': expected a digit at its start%s",
                                      STR_ARG(out->build_tag),
                                      str_find_char(out->version_text, '+') != SIZE_MAX
                                          ? " (a '-' in a local version is written '.' in a file name)"
                                          : ""));
    if (!split_set(a, tags[0], &out->tags.python) || !split_set(a, tags[1], &out->tags.abi) ||
        !split_set(a, tags[2], &out->tags.platform))
        return refuse(why, S("an empty member in a tag set: expected names joined by single dots"));
    for (size_t i = 0; i < out->tags.python.count; i++)
        if (!is_identifier(out->tags.python.items[i]))
            return refuse(why, str_format(a, "python tag '%.*s': expected one such as cp312 or py3",
                                          STR_ARG(out->tags.python.items[i])));
    return true;
}

bool wheel_name_parse(arena *a, str text, struct wheel_name *out, str *why)
{
    struct wheel_name name = {.file = file_name(a, text)};
    str tags[3];
    *out = (struct wheel_name){.file = name.file};
    if (name.file.n > NAME_LIMIT)
        return refuse(why, str_format(a, "%zu bytes long: expected at most %d", name.file.n, NAME_LIMIT));
    for (size_t i = 0; i < name.file.n; i++)
        if ((unsigned char)name.file.p[i] < ' ' || name.file.p[i] == 0x7f) /* "%00" in a URL, for one */
            return refuse(
                why, str_format(a, "control character %d at byte %zu of the name", name.file.p[i], i + 1));
    if (!str_ends(name.file, S(".whl")))
        return refuse(why, S("not a wheel: expected a name that ends in .whl"));
    if (!split_fields(a, str_slice(name.file, 0, name.file.n - 4), &name, tags, why) ||
        !read_fields(a, &name, tags, why))
        return false;
    str local;
    if (str_cut(name.version_text, '+', &name.version_text, &local))
        name.local = local;
    name.name = name_normalize(a, name.distribution);
    wheel_build_read(a, name.distribution, name.local, text, &name.build);
    *out = name;
    return true;
}
