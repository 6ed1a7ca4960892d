/* requirements.txt as pip reads it (its file format's documentation, PEP 508 for the lines): logical lines, comments, environment
 * variables, options, nested files, and what each line asks for. */
#include "space/private.h"

enum { NESTED_MOST = 20, LINES_MOST = 100000 };

struct reader {
    arena *a;
    str dir;
    struct requirement_list *out;
    findings *f;
    struct strs open; /* the files being read, outermost first */
    bool pre;
};

/* NOLINTBEGIN(misc-no-recursion): files are nested at most NESTED_MOST deep */
static bool read_file(struct reader *r, str file, bool constraint, struct place from);

/* "${NAME}" is what pip replaces; what the environment of the build holds is not known, so it stays in the text. A comment starts
 * at a '#' at the line's start or after white space. */
static str without_comment(str line)
{
    for (size_t i = 0; i < line.n; i++)
        if (line.p[i] == '#' && (i == 0 || line.p[i - 1] == ' ' || line.p[i - 1] == '\t'))
            return str_slice(line, 0, i);
    return line;
}

static bool is_scheme_url(str s)
{
    const size_t colon = str_find(s, S("://"));
    if (colon == SIZE_MAX || colon == 0)
        return false;
    for (size_t i = 0; i < colon; i++) {
        const char c = s.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' ||
              c == '.' || c == '-'))
            return false;
    }
    return true;
}

static bool is_vcs(str url)
{
    static const str SCHEMES[] = {S_INIT("git+"), S_INIT("hg+"), S_INIT("svn+"), S_INIT("bzr+")};
    for (size_t i = 0; i < COUNT(SCHEMES); i++)
        if (str_starts(url, SCHEMES[i]))
            return true;
    return false;
}

/* The value of key in a fragment such as "egg=name&subdirectory=x". */
static str fragment_value(str fragment, str key)
{
    str part;
    for (bool more = fragment.n > 0; more;) {
        str head, tail, rest;
        more = str_cut(fragment, '&', &part, &rest);
        if (str_cut(part, '=', &head, &tail) && str_eq(head, key))
            return tail;
        fragment = rest;
    }
    return (str){NULL, 0};
}

static str repository_name(str url)
{
    while (str_ends(url, S("/")))
        url.n--;
    str name = path_base(url);
    return str_ends(name, S(".git")) ? str_slice(name, 0, name.n - 4) : name;
}

/* Sets kind, url, revision, subdirectory and, where the URL shows it, the name. */
static void take_url(struct reader *r, struct requirement_line *line, str url)
{
    str fragment, rest;
    (void)str_cut(url, '#', &url, &fragment);
    if (fragment.p) {
        str egg = fragment_value(fragment, S("egg"));
        (void)str_cut(egg, '[', &egg, &rest);
        line->subdirectory = fragment_value(fragment, S("subdirectory"));
        if (egg.n > 0 && !line->name.p)
            line->name = name_normalize(r->a, egg);
    }
    if (is_vcs(url)) {
        line->kind = REQUIREMENT_VCS;
        url = str_from_index(url, str_find_char(url, '+') + 1);
        const size_t host = str_find(url, S("://"));
        const size_t path = host == SIZE_MAX ? SIZE_MAX : str_find_char(str_from_index(url, host + 3), '/');
        const size_t at = str_rfind_char(url, '@'); /* of a revision, not of user@host */
        if (at != SIZE_MAX && path != SIZE_MAX && at > host + 3 + path) {
            line->revision = str_from_index(url, at + 1);
            url = str_slice(url, 0, at);
        }
        if (!line->name.p)
            line->name = name_normalize(r->a, repository_name(url));
    } else {
        line->kind = str_starts(url, S("file:")) ? REQUIREMENT_PATH : REQUIREMENT_URL;
        struct wheel_name wheel;
        str why;
        if (!line->name.p && str_contains(url, S(".whl")) && wheel_name_parse(r->a, url, &wheel, &why))
            line->name = wheel.name;
    }
    line->url = url;
}

static bool looks_like_path(str s)
{
    static const str ENDS[] = {S_INIT(".whl"), S_INIT(".tar.gz"), S_INIT(".zip"), S_INIT(".tar.bz2"),
                               S_INIT(".tgz")};
    str word, rest;
    (void)str_cut(s, ';', &word, &rest);
    word = str_trim(word);
    if (str_find_char(word, '@') != SIZE_MAX && str_find_char(word, ' ') != SIZE_MAX)
        return false; /* name @ URL */
    if (str_starts(word, S(".")) || str_starts(word, S("/")) || str_starts(word, S("~")))
        return true;
    for (size_t i = 0; i < COUNT(ENDS); i++)
        if (str_ends(word, ENDS[i]))
            return true;
    return str_find_char(word, '/') != SIZE_MAX && str_find_char(word, ' ') == SIZE_MAX &&
           str_find_char(word, '[') == SIZE_MAX;
}

/* Whether a marker can hold on Linux x86_64 with one of the Pythons that apps use. */
static bool marker_applies(arena *a, const struct marker *marker)
{
    static const char *const PYTHONS[] = {"3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14"};
    if (!marker)
        return true;
    for (size_t i = 0; i < COUNT(PYTHONS); i++) {
        const struct marker_env env = {.os_name = S("posix"),
                                       .sys_platform = S("linux"),
                                       .platform_machine = S("x86_64"),
                                       .platform_python_implementation = S("CPython"),
                                       .platform_system = S("Linux"),
                                       .implementation_name = S("cpython"),
                                       .python_version = str_from(PYTHONS[i]),
                                       .python_full_version = str_format(a, "%s.9", PYTHONS[i]),
                                       .implementation_version = str_format(a, "%s.9", PYTHONS[i])};
        if (marker_holds(a, marker, &env))
            return true;
    }
    return false;
}

/* Cuts pip's per-requirement options off the end: " --hash=sha256:..", " --config-settings ..". */
static str take_line_options(struct reader *r, struct requirement_line *line, str text)
{
    for (size_t at = str_find(text, S(" --")); at != SIZE_MAX; at = str_find(text, S(" --"))) {
        str rest = str_trim(str_from_index(text, at)), word, more;
        text = str_trim_right(str_slice(text, 0, at));
        while (rest.n > 0) {
            (void)str_cut(rest, ' ', &word, &more);
            if (str_starts(word, S("--hash=")))
                (void)strs_add(r->a, &line->hashes, str_from_index(word, 7));
            rest = str_trim_left(more.p ? more : S(""));
        }
    }
    return text;
}

static void take_requirement(struct reader *r, struct requirement_line *line, str text)
{
    size_t at = 0;
    const char *expected = "a requirement";
    text = take_line_options(r, line, text);
    if (is_scheme_url(text) || str_starts(text, S("file:"))) {
        str url, marker_text = {NULL, 0};
        const size_t semicolon = str_find(text, S(" ;"));
        url = semicolon == SIZE_MAX ? text : str_slice(text, 0, semicolon);
        if (semicolon != SIZE_MAX)
            marker_text = str_trim(str_from_index(text, semicolon + 2));
        take_url(r, line, str_trim(url));
        const struct marker *marker = NULL;
        if (marker_text.n > 0 && marker_parse(r->a, marker_text, &marker, &at, &expected))
            line->applies = marker_applies(r->a, marker);
        return;
    }
    if (looks_like_path(text)) {
        str path, rest;
        (void)str_cut(text, ';', &path, &rest);
        line->kind = REQUIREMENT_PATH;
        line->url = str_trim(path);
        struct wheel_name wheel;
        str why;
        if (str_ends(line->url, S(".whl")) && wheel_name_parse(r->a, line->url, &wheel, &why))
            line->name = wheel.name;
        return;
    }
    if (!requirement_parse(r->a, text, &line->requirement, &at, &expected)) {
        line->kind = REQUIREMENT_INVALID;
        struct place place = line->place;
        place.column += at;
        finding_at(r->f, F102, place, (str){NULL, 0}, "'%.*s': expected %s", STR_ARG(text), expected)
            ->excerpt = text;
        return;
    }
    line->kind = REQUIREMENT_NAMED;
    line->name = name_normalize(r->a, line->requirement.name);
    line->applies = marker_applies(r->a, line->requirement.marker);
    if (line->requirement.url.p)
        take_url(r, line, line->requirement.url);
}

static const struct {
    const char *brief, *full;
    bool has_value;
} OPTIONS[] = {
    {"-r", "--requirement", true}, {"-c", "--constraint", true},   {"-e", "--editable", true},
    {"-i", "--index-url", true},   {"", "--pypi-url", true},       {"", "--extra-index-url", true},
    {"-f", "--find-links", true},  {"", "--no-index", false},      {"", "--no-binary", true},
    {"", "--only-binary", true},   {"", "--prefer-binary", false}, {"", "--require-hashes", false},
    {"", "--pre", false},          {"", "--trusted-host", true},   {"", "--use-feature", true},
};

/* Splits "-r x", "-rx", "--requirement=x", "--requirement x". False when it is no option that pip takes in a file. */
static bool split_option(str text, str *option, str *value)
{
    for (size_t i = 0; i < COUNT(OPTIONS); i++) {
        const str names[] = {str_from(OPTIONS[i].full), str_from(OPTIONS[i].brief)};
        for (size_t n = 0; n < COUNT(names); n++) {
            if (names[n].n == 0 || !str_starts(text, names[n]))
                continue;
            const str rest = str_from_index(text, names[n].n);
            const bool ends = rest.n == 0 || rest.p[0] == ' ' || rest.p[0] == '\t' || rest.p[0] == '=';
            if (!ends && n == 0)
                continue; /* --pre is not --prefer-binary */
            *option = names[0];
            *value = str_trim(rest.n > 0 && rest.p[0] == '=' ? str_from_index(rest, 1) : rest);
            return (value->n > 0) == OPTIONS[i].has_value;
        }
    }
    return false;
}

static void take_option(struct reader *r, struct requirement_line *line)
{
    str option, value;
    if (!split_option(line->text, &option, &value)) {
        line->kind = REQUIREMENT_INVALID;
        finding_at(r->f, F102, line->place, (str){NULL, 0}, "'%.*s' is no option of a requirements file",
                   STR_ARG(line->text))
            ->excerpt = line->text;
        return;
    }
    if (value.n >= 2 && (value.p[0] == '"' || value.p[0] == '\'') && value.p[value.n - 1] == value.p[0])
        value = str_slice(value, 1, value.n - 1);
    line->kind = REQUIREMENT_OPTION;
    line->option = option;
    line->value = value;
    if (str_eq(option, S("--editable"))) {
        line->editable = true;
        line->option = (str){NULL, 0};
        if (is_scheme_url(value) || is_vcs(value)) {
            take_url(r, line, value);
        } else {
            line->kind = REQUIREMENT_PATH;
            line->url = value;
        }
    } else if (str_eq(option, S("--requirement")) || str_eq(option, S("--constraint"))) {
        if (is_scheme_url(value))
            return; /* fetched by pip; a fact, but nothing of the folder */
        const str folder = path_dir(line->place.file);
        const str file = path_normal(r->a, str_eq(folder, S(".")) ? value : path_join(r->a, folder, value));
        (void)read_file(r, file, line->constraint || str_eq(option, S("--constraint")), line->place);
    }
}

static bool add_line(struct reader *r, struct place place, size_t last, str text, bool constraint)
{
    if (!arena_room(r->a, r->out))
        return finding_fatal(r->f, 3, F006, place, "the requirements do not fit the memory limit");
    struct requirement_line line = {.kind = REQUIREMENT_INVALID,
                                    .place = place,
                                    .last_line = last,
                                    .text = text,
                                    .constraint = constraint,
                                    .pre = r->pre,
                                    .applies = true};
    const size_t index = r->out->count++;
    r->out->items[index] = line;
    if (str_starts(text, S("-")))
        take_option(r, &line);
    else
        take_requirement(r, &line, text);
    r->out->items[index] = line; /* a nested file may have moved the list */
    return true;
}

static bool read_lines(struct reader *r, str file, str text, bool constraint)
{
    str rest = text, physical;
    struct buf logical = {.a = r->a};
    size_t number = 0, first = 0;
    if (str_starts(rest, S("\xef\xbb\xbf")))
        rest = str_from_index(rest, 3);
    while (str_next_line(&rest, &physical)) {
        if (++number > LINES_MOST)
            return finding_fatal(r->f, 3, F003, (struct place){file, number, 1}, "more than %d lines",
                                 (int)LINES_MOST);
        if (logical.count == 0)
            first = number;
        const str visible = str_trim_right(physical);
        const bool joins =
            str_ends(visible, S("\\")) && rest.n > 0 && !str_starts(str_trim_left(visible), S("#"));
        buf_add(&logical, joins ? str_slice(visible, 0, visible.n - 1) : visible);
        if (joins)
            continue;
        const str whole = without_comment(buf_str(&logical));
        const str trimmed = str_trim(whole);
        const size_t indent = (size_t)(trimmed.n ? trimmed.p - whole.p : 0);
        if (trimmed.n > 0 && !add_line(r, (struct place){file, first, indent + 1}, number,
                                       str_copy(r->a, trimmed), constraint))
            return false;
        logical = (struct buf){.a = r->a};
    }
    return true;
}

static bool read_file(struct reader *r, str file, bool constraint, struct place from)
{
    span bytes;
    if (strs_has(&r->open, file)) {
        (void)finding_at(r->f, F104, from, file, "%.*s includes itself: %.*s", STR_ARG(file),
                         STR_ARG(str_join(r->a, &r->open, S(" -> "))));
        return false;
    }
    if (r->open.count >= NESTED_MOST) {
        (void)finding_at(r->f, F104, from, file, "files are nested more than %d deep", (int)NESTED_MOST);
        return false;
    }
    const str path = path_join(r->a, r->dir, file);
    if (from.file.p && !file_exists(path)) {
        (void)finding_at(r->f, F105, from, file, "%.*s is not in the folder", STR_ARG(file));
        return false;
    }
    const size_t before = r->f->count;
    if (!file_read(r->a, path, FILE_LIMIT_TEXT, &bytes, r->f))
        return findings_relabel(r->f, before, file);
    if (!str_is_utf8(str_from_span(bytes)))
        return finding_fatal(r->f, 3, F009, (struct place){.file = file}, "%.*s is not UTF-8", STR_ARG(file));
    if (!strs_add(r->a, &r->open, file))
        return false;
    const bool well = read_lines(r, file, str_from_span(bytes), constraint);
    r->open.count--;
    return well;
}

/* NOLINTEND(misc-no-recursion) */

bool requirements_read(arena *a, str dir, str file, struct requirement_list *out, findings *f)
{
    struct reader r = {
        .a = a, .dir = dir, .out = out, .f = f, .pre = str_eq(file, S("pre-requirements.txt"))};
    return read_file(&r, file, false, (struct place){0});
}
