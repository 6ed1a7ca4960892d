/* An app's folder: which files there are, which of them is the app, and the facts of each, put together. */
#include "space/private.h"

#include <stdlib.h>

static int by_bytes(const void *left, const void *right)
{
    const str *a = left, *b = right;
    return str_cmp(*a, *b);
}

bool space_has_file(const struct space *s, str path)
{
    return s->files.count > 0 &&
           bsearch(&path, s->files.items, s->files.count, sizeof path, by_bytes) != NULL;
}

static bool list_files(arena *a, struct space *s, findings *f)
{
    struct walk_list walk;
    if (!dir_walk(a, s->dir, FILES_MOST, &walk, f))
        return false;
    for (size_t i = 0; i < walk.count; i++)
        if (!walk.items[i].is_dir && !strs_add(a, &s->files, walk.items[i].path))
            return finding_fatal(f, 3, F006, (struct place){.file = s->dir},
                                 "the folder has too many files for the memory limit");
    if (walk.truncated)
        finding_at(f, F003, (struct place){0}, (str){NULL, 0},
                   "the folder has more than %d files; the rest was not looked at", (int)FILES_MOST)
            ->severity = SEVERITY_WARNING;
    if (s->files.count > 0)
        qsort(s->files.items, s->files.count, sizeof *s->files.items, by_bytes);
    return true;
}

static bool read_requirements(arena *a, struct space *s, findings *f)
{
    static const char *const NAMES[] = {"pre-requirements.txt", "requirements.txt"};
    bool well = true;
    for (size_t i = 0; i < COUNT(NAMES); i++)
        if (space_has_file(s, str_from(NAMES[i])))
            well = requirements_read(a, s->dir, str_from(NAMES[i]), &s->requirements, f) && well;
    s->has_requirements = space_has_file(s, S("requirements.txt"));
    for (size_t i = 0; !s->has_requirements && i < s->files.count; i++) {
        const str base = path_base(s->files.items[i]);
        if (str_starts(base, S("requirements")) && str_ends(base, S(".txt")) &&
            !strs_add(a, &s->other_requirements, s->files.items[i]))
            return false;
    }
    return well;
}

static void read_apt_packages(arena *a, struct space *s, findings *f)
{
    span bytes;
    str line;
    const size_t before = f->count;
    if (!space_has_file(s, S("packages.txt")))
        return;
    if (!file_read(a, path_join(a, s->dir, S("packages.txt")), FILE_LIMIT_TEXT, &bytes, f)) {
        (void)findings_relabel(f, before, S("packages.txt"));
        return;
    }
    str text = str_from_span(bytes);
    while (str_next_line(&text, &line)) {
        const str name = str_trim(line);
        if (name.n > 0 && name.p[0] != '#' && !strs_add(a, &s->apt_packages, name))
            return;
    }
}

static void read_wheels(arena *a, struct space *s, findings *f)
{
    for (size_t i = 0; i < s->files.count; i++) {
        const str path = s->files.items[i];
        span bytes;
        if (!str_ends(path, S(".whl")) || !arena_room(a, &s->wheels))
            continue;
        struct committed_wheel *wheel = &s->wheels.items[s->wheels.count++];
        *wheel = (struct committed_wheel){.path = path};
        wheel->valid = wheel_name_parse(a, path, &wheel->name, &wheel->why);
        if (!file_map(path_join(a, s->dir, path), UINT64_MAX, &bytes, f))
            continue;
        wheel->size = bytes.n;
        wheel->is_pointer = str_starts(str_from_span(bytes), S("version https://git-lfs"));
        file_unmap(bytes);
    }
}

static void find_platform_copies(arena *a, struct space *s)
{
    static const str NAMES[] = {S_INIT("spaces/__init__.py"), S_INIT("gradio/__init__.py"),
                                S_INIT("spaces.py"), S_INIT("gradio.py")};
    for (size_t i = 0; i < COUNT(NAMES); i++)
        if (space_has_file(s, NAMES[i]))
            (void)strs_add(a, &s->vendored_platform, NAMES[i]);
}

/* ---- The app file ---- */

static bool file_contains(arena *a, const struct space *s, str file, const char *const *words, size_t count)
{
    span bytes;
    bool found = false;
    if (!file_map(path_join(a, s->dir, file), PYTHON_FILE_LIMIT, &bytes, findings_new(a)))
        return false;
    for (size_t i = 0; i < count && !found; i++)
        found = str_contains(str_from_span(bytes), str_from(words[i]));
    file_unmap(bytes);
    return found;
}

static unsigned depth_of(str path)
{
    unsigned depth = 0;
    for (size_t i = 0; i < path.n; i++)
        depth += path.p[i] == '/';
    return depth;
}

/* How much a file looks like what a person would start; 0: not at all. */
static unsigned app_score(arena *a, const struct space *s, str file)
{
    static const char *const PAGE[] = {"gradio", "gr.Blocks", "gr.Interface", "streamlit"};
    static const char *const SPACES[] = {"@spaces.GPU", "import spaces"};
    static const char *const MAIN[] = {"__main__", "argparse"};
    static const struct {
        const char *word;
        unsigned score;
    } NAMES[] = {{"app", 40},   {"gradio", 40},    {"demo", 30},  {"main", 25},     {"run", 25},
                 {"webui", 30}, {"inference", 15}, {"infer", 15}, {"generate", 15}, {"serve", 15}};
    const str base = path_base(file);
    const unsigned depth = depth_of(file);
    unsigned score = 0;
    if (!str_ends(base, S(".py")) || str_eq(base, S("setup.py")) || str_starts(base, S("test")) ||
        str_eq(base, S("conftest.py")))
        return 0;
    for (size_t i = 0; i < COUNT(NAMES); i++)
        if (str_contains(base, str_from(NAMES[i].word)) && score < NAMES[i].score)
            score = NAMES[i].score;
    if (str_eq(base, S("__main__.py")))
        score = 24;
    if (str_ends(file, S("cli/__init__.py")) || str_ends(base, S("cli.py")))
        score = 20;
    if (str_eq(base, S("__init__.py")) && score != 20)
        return 0;
    if (depth == 0 && score == 0)
        score = 5;
    if (score == 0)
        return 0;
    if (file_contains(a, s, file, PAGE, COUNT(PAGE)))
        score += 60;
    if (file_contains(a, s, file, SPACES, COUNT(SPACES)))
        score += 40;
    if (file_contains(a, s, file, MAIN, COUNT(MAIN)))
        score += 8;
    const unsigned cost = depth > 5 ? 45 : 9 * depth;
    return score > cost ? score - cost : 1;
}

static void choose_app_file(arena *a, struct space *s)
{
    unsigned best = 0;
    if (s->front.app_file.text.p) {
        s->app_file = path_normal(a, s->front.app_file.text);
        s->app_file_declared = true;
    } else if (space_has_file(s, S("app.py"))) {
        s->app_file = S("app.py");
    } else {
        for (size_t i = 0; i < s->files.count; i++) {
            const unsigned score = app_score(a, s, s->files.items[i]);
            if (score > best) {
                best = score;
                s->app_file = s->files.items[i];
            }
        }
    }
    s->app_file_exists = s->app_file.p && space_has_file(s, s->app_file);
}

bool space_read(arena *a, str dir, struct space *out, findings *f)
{
    *out = (struct space){.dir = dir};
    if (!list_files(a, out, f))
        return false;
    struct strs root = {0};
    for (size_t i = 0; i < out->files.count; i++)
        if (str_find_char(out->files.items[i], '/') == SIZE_MAX && !strs_add(a, &root, out->files.items[i]))
            return false;
    (void)front_read(a, dir, &root, &out->front, f);
    (void)read_requirements(a, out, f);
    read_apt_packages(a, out, f);
    read_wheels(a, out, f);
    find_platform_copies(a, out);
    vendored_read(a, dir, &out->files, &out->vendored, f);
    scripts_read(a, dir, &out->files, &out->scripts, f);
    choose_app_file(a, out);
    return modules_read(a, out, f);
}
