/* Sources of extensions that lie in the app's folder: setup scripts, CMake files, compile scripts. They are read as text: what they
 * would do when run is not tried. */
#include "space/private.h"

enum { SCRIPT_LIMIT = 1 << 20, VENDORED_MOST = 500 };

static bool read_text(arena *a, str dir, str file, str *text)
{
    span bytes;
    const str path = path_join(a, dir, file);
    if (!file_exists(path) || !file_read(a, path, SCRIPT_LIMIT, &bytes, findings_new(a)))
        return false; /* an odd file among many: it is no vendored source */
    *text = str_from_span(bytes);
    return true;
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static str skip_blanks(str s)
{
    while (s.n > 0 && strchr(" \t\r\n", s.p[0]))
        s = str_from_index(s, 1);
    return s;
}

/* The string literal that s begins with; absent when it begins with something else. */
static str literal(str s)
{
    s = skip_blanks(s);
    if (s.n < 2 || (s.p[0] != '"' && s.p[0] != '\''))
        return (str){NULL, 0};
    const size_t end = str_find_char(str_from_index(s, 1), s.p[0]);
    return end == SIZE_MAX ? (str){NULL, 0} : str_slice(s, 1, end + 1);
}

/* The literal of the next `key=` in s, which must be a word by itself. */
static str keyword_literal(str s, str key)
{
    for (size_t at = str_find(s, key); at != SIZE_MAX; at = str_find(s, key)) {
        const bool alone = at == 0 || !is_word(s.p[at - 1]);
        str rest = skip_blanks(str_from_index(s, at + key.n));
        s = str_from_index(s, at + key.n);
        if (alone && rest.n > 0 && rest.p[0] == '=' && !(rest.n > 1 && rest.p[1] == '='))
            return literal(str_from_index(rest, 1));
    }
    return (str){NULL, 0};
}

static void add_module(arena *a, struct vendored_source *v, str module)
{
    if (module.n > 0 && module.n < 200 && !strs_has(&v->modules, module))
        (void)strs_add(a, &v->modules, str_copy(a, module));
}

/* Every call of something that ends in "Extension": its first argument or name= is a module. "(A if x else B)(...)" too. */
static void extension_modules(arena *a, str text, struct vendored_source *v)
{
    static const str WORD = S_INIT("Extension");
    for (size_t at = str_find(text, WORD); at != SIZE_MAX; at = str_find(text, WORD)) {
        str rest = skip_blanks(str_from_index(text, at + WORD.n));
        text = str_from_index(text, at + WORD.n);
        if (rest.n > 1 && rest.p[0] == ')' && rest.p[1] == '(')
            rest = str_from_index(rest, 1);
        if (rest.n == 0 || rest.p[0] != '(')
            continue;
        rest = str_from_index(rest, 1);
        const str first = literal(rest);
        const size_t end = str_find_char(rest, ')');
        add_module(a, v, first.p ? first : keyword_literal(str_slice(rest, 0, end), S("name")));
    }
}

static str setup_name(str text)
{
    const size_t at = str_find(text, S("setup("));
    if (at == SIZE_MAX)
        return (str){NULL, 0};
    str rest = str_from_index(text, at + 6);
    for (size_t name = str_find(rest, S("name")); name != SIZE_MAX; name = str_find(rest, S("name"))) {
        const str before = str_trim_right(str_slice(rest, 0, name));
        const str after = skip_blanks(str_from_index(rest, name + 4));
        const bool of_extension = str_ends(before, S("Extension(")) || str_ends(before, S("_module("));
        const bool alone = name == 0 || !is_word(rest.p[name - 1]);
        if (alone && !of_extension && after.n > 0 && after.p[0] == '=')
            return literal(str_from_index(after, 1));
        rest = str_from_index(rest, name + 4);
    }
    return (str){NULL, 0};
}

static void add_packages(arena *a, str text, struct vendored_source *v)
{
    const size_t at = str_find(text, S("packages"));
    str rest = at == SIZE_MAX ? S("") : skip_blanks(str_from_index(text, at + 8));
    if (rest.n < 2 || rest.p[0] != '=')
        return;
    rest = skip_blanks(str_from_index(rest, 1));
    if (rest.n == 0 || rest.p[0] != '[')
        return;
    rest = str_slice(rest, 1, str_find_char(rest, ']'));
    for (str name = literal(rest); name.p; name = literal(rest)) {
        add_module(a, v, name);
        rest = str_from_index(rest, (size_t)(name.p - rest.p) + name.n + 1);
        rest = skip_blanks(rest);
        if (rest.n > 0 && rest.p[0] == ',')
            rest = str_from_index(rest, 1);
    }
}

static bool has_cuda_words(str text)
{
    static const str WORDS[] = {
        S_INIT("CUDAExtension"), S_INIT("nvcc"),           S_INIT(".cu\""),    S_INIT(".cu'"),
        S_INIT("CUDA_HOME"),     S_INIT("LANGUAGES CUDA"), S_INIT("CXX CUDA"), S_INIT("enable_language(CUDA"),
        S_INIT(".cu\n"),         S_INIT(".cu "),           S_INIT(".cu)"),     S_INIT("find_package(CUDA")};
    for (size_t i = 0; i < COUNT(WORDS); i++)
        if (str_contains(text, WORDS[i]))
            return true;
    return false;
}

static bool read_setup_py(arena *a, str text, struct vendored_source *v)
{
    const bool extension = str_contains(text, S("Extension")) || str_contains(text, S("ext_modules")) ||
                           str_contains(text, S("cpp_extension"));
    v->build = BUILD_SETUP_PY;
    v->compiled = has_cuda_words(text) ? COMPILED_CUDA : extension ? COMPILED_CPP : COMPILED_NONE;
    v->distribution = str_copy(a, setup_name(text));
    v->asks_gpu = str_contains(text, S("cuda.is_available()"));
    v->march_native = str_contains(text, S("-march=native"));
    extension_modules(a, text, v);
    add_packages(a, text, v);
    if (v->distribution.p && v->modules.count == 0)
        add_module(a, v, v->distribution);
    return true;
}

static bool read_cmake(arena *a, str text, struct vendored_source *v)
{
    static const str MAKERS[] = {S_INIT("pybind11_add_module("), S_INIT("nanobind_add_module("),
                                 S_INIT("python_add_library("), S_INIT("Python_add_library("),
                                 S_INIT("Python3_add_library(")};
    v->build = BUILD_CMAKE;
    v->compiled = has_cuda_words(text) ? COMPILED_CUDA : COMPILED_CPP;
    for (size_t i = 0; i < COUNT(MAKERS); i++)
        for (str rest = text; str_contains(rest, MAKERS[i]);) {
            rest = skip_blanks(str_from_index(rest, str_find(rest, MAKERS[i]) + MAKERS[i].n));
            size_t n = 0;
            while (n < rest.n && is_word(rest.p[n]))
                n++;
            add_module(a, v, str_slice(rest, 0, n));
        }
    return v->modules.count > 0;
}

static bool read_pyproject(arena *a, str dir, str text, struct vendored_source *v)
{
    str cmake = {NULL, 0};
    const size_t project = str_find(text, S("[project]"));
    v->build = BUILD_PYPROJECT;
    v->distribution = project == SIZE_MAX
                          ? (str){NULL, 0}
                          : str_copy(a, keyword_literal(str_from_index(text, project), S("name")));
    if (!str_contains(text, S("scikit_build_core")) && !str_contains(text, S("mesonpy")) &&
        !str_contains(text, S("scikit-build")))
        return false; /* setuptools without a setup.py: no extension that anybody writes */
    v->compiled = COMPILED_CPP;
    if (read_text(a, dir, path_join(a, v->folder, S("CMakeLists.txt")), &cmake)) {
        struct vendored_source inner = {0};
        (void)read_cmake(a, cmake, &inner);
        v->compiled = inner.compiled;
        v->modules = inner.modules;
    }
    if (v->distribution.p)
        add_module(a, v, v->distribution);
    return true;
}

/* c++ -shared x.cpp -o x$(python3-config --extension-suffix): the module is what the output's name begins with. */
static bool read_script(arena *a, str text, struct vendored_source *v)
{
    struct buf joined = {.a = a};
    str rest = text, line;
    v->build = BUILD_SCRIPT;
    while (str_next_line(&rest, &line)) {
        const bool joins = str_ends(line, S("\\"));
        buf_add(&joined, joins ? str_slice(line, 0, line.n - 1) : line);
        buf_char(&joined, joins ? ' ' : '\n');
    }
    rest = buf_str(&joined);
    while (str_next_line(&rest, &line)) {
        struct install_command_list commands = {0};
        struct env_entry *env = NULL;
        size_t env_count = 0;
        if (!str_contains(line, S("-shared")) ||
            !shell_commands(a, line, (str){NULL, 0}, &commands, &env, &env_count))
            continue;
        for (size_t c = 0; c < commands.count; c++) {
            const struct install_command *command = &commands.items[c];
            if (command->kind != INSTALL_COMPILER || command->targets.count == 0)
                continue;
            const str output = path_base(command->targets.items[0]);
            size_t n = 0;
            while (n < output.n && is_word(output.p[n]))
                n++;
            add_module(a, v, str_slice(output, 0, n));
            if (str_eq(path_base(command->words.items[0]), S("nvcc")))
                v->compiled = COMPILED_CUDA;
            else if (v->compiled != COMPILED_CUDA)
                v->compiled = COMPILED_CPP;
        }
    }
    v->foreign_suffix = str_contains(text, S("python3-config")) || str_contains(text, S("python-config"));
    v->march_native = str_contains(text, S("-march=native"));
    return v->modules.count > 0;
}

static bool has_in_folder(const struct strs *files, arena *a, str folder, str name)
{
    return strs_has(files, folder.n ? path_join(a, folder, name) : name);
}

static bool read_one(arena *a, str dir, const struct strs *files, str file, struct vendored_source *v)
{
    const str base = path_base(file);
    str text;
    const str folder = str_find_char(file, '/') == SIZE_MAX ? S("") : path_dir(file);
    *v = (struct vendored_source){.folder = folder, .place = {.file = file}};
    const bool setup = str_eq(base, S("setup.py")), pyproject = str_eq(base, S("pyproject.toml")),
               cmake = str_eq(base, S("CMakeLists.txt"));
    const bool script = str_ends(base, S(".sh")), makefile = str_eq(base, S("Makefile"));
    if (!setup && !pyproject && !cmake && !script && !makefile)
        return false;
    /* One entry a folder: the first of setup.py, pyproject.toml, CMakeLists.txt speaks for it. */
    if (!setup && !script && !makefile && has_in_folder(files, a, folder, S("setup.py")))
        return false;
    if (cmake && has_in_folder(files, a, folder, S("pyproject.toml")))
        return false;
    if (!read_text(a, dir, file, &text))
        return false;
    bool found = setup       ? read_setup_py(a, text, v)
                 : pyproject ? read_pyproject(a, dir, text, v)
                 : cmake     ? read_cmake(a, text, v)
                             : read_script(a, text, v);
    if (makefile)
        v->build = BUILD_MAKEFILE;
    return found &&
           !(folder.n == 0 && v->compiled == COMPILED_NONE); /* the app's own packaging is nothing vendored */
}

void vendored_read(arena *a, str dir, const struct strs *files, struct vendored_list *out, findings *f)
{
    for (size_t i = 0; i < files->count && out->count < VENDORED_MOST; i++) {
        struct vendored_source v;
        if (!read_one(a, dir, files, files->items[i], &v))
            continue;
        if (!arena_room(a, out)) {
            (void)finding_fatal(f, 3, F006, v.place, "the app's facts do not fit the memory limit");
            return;
        }
        out->items[out->count++] = v;
    }
}

/* ---- Scripts that document installs ---- */

static str script_text(arena *a, const struct install_command *command, size_t first)
{
    struct buf b = {.a = a};
    for (size_t i = first; i < command->words.count; i++)
        buf_format(&b, "%s%.*s", i > first ? " " : "", STR_ARG(command->words.items[i]));
    return str_utf8(a, buf_str(&b));
}

/* then, do, RUN, 118): what may stand before a command in a script. */
static bool is_lead_in(str word)
{
    static const str WORDS[] = {S_INIT("then"), S_INIT("do"),  S_INIT("else"), S_INIT("if"),  S_INIT("!"),
                                S_INIT("{"),    S_INIT("RUN"), S_INIT("("),    S_INIT("time")};
    for (size_t i = 0; i < COUNT(WORDS); i++)
        if (str_eq(word, WORDS[i]))
            return true;
    return str_ends(word, S(")"));
}

static void script_line(arena *a, str line, struct place place, struct script_list *out)
{
    struct install_command_list commands = {0};
    struct env_entry *env = NULL;
    size_t env_count = 0;
    if (!shell_commands(a, line, (str){NULL, 0}, &commands, &env, &env_count))
        return;
    for (size_t c = 0; c < commands.count; c++) {
        const struct install_command *command = &commands.items[c];
        size_t first = 0;
        while (first < command->words.count && is_lead_in(command->words.items[first]))
            first++;
        const struct strs words = {.items = command->words.items + first,
                                   .count = command->words.count - first};
        struct install_command_list again = {0};
        if (!argv_command(a, &words, command->directory, &again) || again.count == 0 ||
            (again.items[0].kind != INSTALL_PIP && again.items[0].kind != INSTALL_GIT_CLONE) ||
            !arena_room(a, out))
            continue;
        out->items[out->count++] = (struct script_command){
            .place = place, .command = again.items[0], .text = script_text(a, command, first)};
    }
}

void scripts_read(arena *a, str dir, const struct strs *files, struct script_list *out, findings *f)
{
    (void)f;
    for (size_t i = 0; i < files->count && out->count < 2000; i++) {
        const str file = files->items[i], base = path_base(file);
        str text, line;
        if ((!str_ends(base, S(".sh")) && !str_starts(base, S("Dockerfile"))) ||
            !read_text(a, dir, file, &text))
            continue;
        struct buf logical = {.a = a};
        size_t first = 0;
        for (size_t number = 1; str_next_line(&text, &line) && number < 20000; number++) {
            const str trimmed = str_trim(line);
            if (logical.count == 0)
                first = number;
            if (str_starts(trimmed, S("#")))
                continue;
            const bool joins = str_ends(trimmed, S("\\"));
            buf_add(&logical, joins ? str_slice(trimmed, 0, trimmed.n - 1) : trimmed);
            if (joins)
                continue;
            if (logical.count > 0 &&
                (str_contains(buf_str(&logical), S("pip")) || str_contains(buf_str(&logical), S("git"))))
                script_line(a, buf_str(&logical), (struct place){file, first, 1}, out);
            logical = (struct buf){.a = a};
        }
    }
}
