/* The catalogue of extensions: data/extensions.yaml as structs, and look-ups in it. The file can come from --data, so every
 * value is checked and a fault has its line. */
#include "plan/plan.h"

enum { ENTRIES_MOST = 4096 };

struct reader {
    arena *a;
    str path;
    findings *f;
};

static bool refuse(const struct reader *r, const struct yaml *at, const char *what, str value)
{
    const struct place place = {r->path, at->line, at->column};
    return finding_fatal(r->f, 3, F005, place, "%s: %.*s", what, STR_ARG(value));
}

/* A key that nobody reads is a mistyped one: its value would be lost without a word. */
static bool keys_known(const struct reader *r, const struct yaml *map, const char *const *known)
{
    if (map->kind != YAML_MAP)
        return refuse(r, map, "expected a map of keys and values, got", map->text);
    for (size_t i = 0; i < map->count; i++) {
        size_t k = 0;
        while (known[k] && !str_eq(map->keys[i].text, str_from(known[k])))
            k++;
        if (!known[k])
            return refuse(r, &map->keys[i], "no such key", map->keys[i].text);
    }
    return true;
}

static bool read_choice(const struct reader *r, const struct yaml *map, const char *key,
                        const char *const *names, size_t count, size_t *out)
{
    const struct yaml *value = yaml_get(map, key);
    if (!value)
        return true;
    for (size_t i = 0; i < count; i++)
        if (names[i] && value->kind == YAML_SCALAR && str_eq(value->text, str_from(names[i]))) {
            *out = i;
            return true;
        }
    return refuse(r, value, "not one of this key's values", value->text);
}

static const char *const PYPI_NAMES[] = {
    [PYPI_UNKNOWN] = "unknown", [PYPI_ABSENT] = "absent", [PYPI_OTHER] = "other", [PYPI_SDIST] = "sdist",
    [PYPI_WHEEL] = "wheel",     [PYPI_JIT] = "jit",       [PYPI_PURE] = "pure",   [PYPI_FETCHES] = "fetches"};

static const char *const COMPILED_NAMES[] = {
    [COMPILED_UNKNOWN] = NULL, [COMPILED_NONE] = "none", [COMPILED_CPP] = "cpp", [COMPILED_CUDA] = "cuda"};

const char *pypi_form_name(enum pypi_form form) { return PYPI_NAMES[form]; }

const char *compiled_name(enum compiled_kind kind)
{
    return kind == COMPILED_UNKNOWN ? "cuda" : COMPILED_NAMES[kind];
}

static struct strs lower_all(arena *a, struct strs list)
{
    for (size_t i = 0; i < list.count; i++)
        list.items[i] = str_lower(a, list.items[i]);
    return list;
}

static struct strs normal_names(arena *a, struct strs list)
{
    for (size_t i = 0; i < list.count; i++) {
        const bool family = str_ends(list.items[i], S("*"));
        const str name = name_normalize(a, str_slice(list.items[i], 0, list.items[i].n - family));
        list.items[i] = family ? str_format(a, "%.*s*", STR_ARG(name)) : name;
    }
    return list;
}

static const struct yaml *list_of(const struct yaml *map, const char *key)
{
    static const struct yaml EMPTY = {.kind = YAML_LIST};
    const struct yaml *list = yaml_get(map, key);
    return list && list->kind == YAML_LIST ? list : &EMPTY;
}

static bool read_archs(const struct reader *r, const struct yaml *map, struct extension *e)
{
    static const char *const KEYS[] = {"versions", "archs", "source", "sure", NULL};
    const struct yaml *list = list_of(map, "archs");
    e->archs = arena_array(r->a, struct arch_fact, list->count);
    for (size_t i = 0; e->archs && i < list->count; i++) {
        const struct yaml *item = &list->items[i];
        struct arch_fact *fact = &e->archs[e->arch_count++];
        if (!keys_known(r, item, KEYS))
            return false;
        *fact = (struct arch_fact){.versions = yaml_str(item, "versions"),
                                   .archs = yaml_strs(r->a, item, "archs"),
                                   .source = yaml_str(item, "source"),
                                   .sure = yaml_bool(item, "sure", true)};
        size_t at = 0;
        const char *expected = "";
        if (fact->versions.n && !specs_parse(r->a, fact->versions, &fact->specs, &at, &expected))
            return refuse(r, item, "versions is no version specifier", fact->versions);
    }
    return true;
}

static bool read_builds(const struct reader *r, const struct yaml *map, struct extension *e)
{
    static const char *const KEYS[] = {"url",     "subdirectory", "environment", "flags",
                                       "needs",   "submodules",   "needs_gpu",   "same_cuda_major",
                                       "minutes", "caveat",       NULL};
    const struct yaml *list = list_of(map, "builds");
    e->builds = arena_array(r->a, struct build_recipe, list->count);
    for (size_t i = 0; e->builds && i < list->count; i++) {
        const struct yaml *item = &list->items[i];
        if (!keys_known(r, item, KEYS))
            return false;
        if (!yaml_str(item, "url").n)
            return refuse(r, item, "a build needs the key", S("url"));
        e->builds[e->build_count++] =
            (struct build_recipe){.url = yaml_str(item, "url"),
                                  .subdirectory = yaml_str(item, "subdirectory"),
                                  .environment = yaml_strs(r->a, item, "environment"),
                                  .flags = yaml_strs(r->a, item, "flags"),
                                  .needs = yaml_strs(r->a, item, "needs"),
                                  .submodules = yaml_bool(item, "submodules", false),
                                  .needs_gpu = yaml_bool(item, "needs_gpu", false),
                                  .same_cuda_major = yaml_bool(item, "same_cuda_major", false),
                                  .minutes = yaml_number(item, "minutes", 0),
                                  .caveat = yaml_str(item, "caveat")};
    }
    return true;
}

static bool read_forks(const struct reader *r, const struct yaml *map, struct extension *e)
{
    static const char *const KEYS[] = {
        "name",         "default",    "interface", "repositories", "owners", "imports", "distributions",
        "result_count", "has_wheels", "drop_in",   "caveat",       "build",  NULL};
    const struct yaml *list = list_of(map, "forks");
    e->forks = arena_array(r->a, struct fork, list->count);
    for (size_t i = 0; e->forks && i < list->count; i++) {
        const struct yaml *item = &list->items[i];
        if (!keys_known(r, item, KEYS))
            return false;
        const double results = yaml_number(item, "result_count", 0);
        const double build = yaml_number(item, "build", 0);
        if (results < 0 || results > 64)
            return refuse(r, item, "result_count is out of range in", yaml_str(item, "name"));
        if (build < 0 || (e->build_count && build >= (double)e->build_count))
            return refuse(r, item, "build is no index into builds in", yaml_str(item, "name"));
        e->forks[e->fork_count++] =
            (struct fork){.name = yaml_str(item, "name"),
                          .is_default = yaml_bool(item, "default", false),
                          .interface = yaml_str(item, "interface"),
                          .repositories = lower_all(r->a, yaml_strs(r->a, item, "repositories")),
                          .owners = lower_all(r->a, yaml_strs(r->a, item, "owners")),
                          .distributions = normal_names(r->a, yaml_strs(r->a, item, "distributions")),
                          .imports = yaml_strs(r->a, item, "imports"),
                          .result_count = (size_t)results,
                          .has_wheels = yaml_bool(item, "has_wheels", false),
                          .drop_in = yaml_str(item, "drop_in"),
                          .caveat = yaml_str(item, "caveat"),
                          .build_index = (size_t)build};
    }
    return true;
}

static bool read_extension(const struct reader *r, const struct yaml *map, struct extension *e)
{
    static const char *const KEYS[] = {
        "name",      "summary",   "imports", "distributions", "repositories",     "compiled",
        "pypi",      "torch_abi", "runtime", "libraries",     "only_if_imported", "jit_at_first_use",
        "attention", "backend",   "runs_on", "drop_in",       "instead",          "caveats",
        "archs",     "forks",     "builds",  "date",          "source",           "sure",
        NULL};
    if (!keys_known(r, map, KEYS))
        return false;
    size_t compiled = COMPILED_UNKNOWN, pypi = PYPI_UNKNOWN;
    if (!read_choice(r, map, "compiled", COMPILED_NAMES, COUNT(COMPILED_NAMES), &compiled) ||
        !read_choice(r, map, "pypi", PYPI_NAMES, COUNT(PYPI_NAMES), &pypi))
        return false;
    *e = (struct extension){.name = yaml_str(map, "name"),
                            .summary = yaml_str(map, "summary"),
                            .imports = yaml_strs(r->a, map, "imports"),
                            .distributions = normal_names(r->a, yaml_strs(r->a, map, "distributions")),
                            .repositories = lower_all(r->a, yaml_strs(r->a, map, "repositories")),
                            .compiled = (enum compiled_kind)compiled,
                            .pypi = (enum pypi_form)pypi,
                            .torch_abi = yaml_bool(map, "torch_abi", false),
                            .runtime = yaml_strs(r->a, map, "runtime"),
                            .libraries = yaml_strs(r->a, map, "libraries"),
                            .only_if_imported = yaml_bool(map, "only_if_imported", false),
                            .jit_at_first_use = yaml_bool(map, "jit_at_first_use", false),
                            .attention = yaml_bool(map, "attention", false),
                            .backend = yaml_str(map, "backend"),
                            .runs_on = yaml_strs(r->a, map, "runs_on"),
                            .drop_in = yaml_str(map, "drop_in"),
                            .instead = yaml_strs(r->a, map, "instead"),
                            .caveats = yaml_strs(r->a, map, "caveats"),
                            .date = yaml_str(map, "date"),
                            .source = yaml_str(map, "source"),
                            .sure = yaml_bool(map, "sure", true),
                            .place = {r->path, map->line, map->column}};
    if (!e->name.n)
        return refuse(r, map, "an extension needs the key", S("name"));
    if (!e->imports.count)
        return refuse(r, map, "the key imports is missing or empty in", e->name);
    return read_archs(r, map, e) && read_builds(r, map, e) && read_forks(r, map, e);
}

bool catalogue_read(arena *a, struct catalogue *out, findings *f)
{
    struct yaml document;
    struct reader r = {.a = a, .f = f};
    if (!data_yaml(a, "extensions.yaml", &document, &r.path, f))
        return false;
    const struct yaml *list = yaml_get(&document, "extensions");
    if (!list || list->kind != YAML_LIST || list->count > ENTRIES_MOST)
        return refuse(&r, &document, "expected a list of at most 4096 entries under the key",
                      S("extensions"));
    struct catalogue c = {.items = arena_array(a, struct extension, list->count),
                          .path = r.path,
                          .date = yaml_str(&document, "date")};
    for (size_t i = 0; c.items && i < list->count; i++) {
        if (!read_extension(&r, &list->items[i], &c.items[i]))
            return false;
        if (catalogue_by_name(&c, c.items[i].name))
            return refuse(&r, &list->items[i], "a second entry with the name", c.items[i].name);
        c.count++;
    }
    *out = c;
    return true;
}

const struct extension *catalogue_by_name(const struct catalogue *c, str name)
{
    for (size_t i = 0; i < c->count; i++)
        if (str_eq(c->items[i].name, name))
            return &c->items[i];
    return NULL;
}

/* How much of module the import covers: all of it, or up to a dot; 0 when it is another module. */
static size_t import_covers(str import, str module)
{
    if (!import.n || !str_starts(module, import))
        return 0;
    return module.n == import.n || module.p[import.n] == '.' ? import.n : 0;
}

static size_t longest(const struct strs *imports, str module)
{
    size_t best = 0;
    for (size_t i = 0; i < imports->count; i++) {
        const size_t covered = import_covers(imports->items[i], module);
        best = covered > best ? covered : best;
    }
    return best;
}

const struct extension *catalogue_by_import(const struct catalogue *c, str module)
{
    const struct extension *found = NULL;
    size_t best = 0;
    for (size_t i = 0; i < c->count; i++) {
        const struct extension *e = &c->items[i];
        size_t covered = longest(&e->imports, module);
        for (size_t k = 0; k < e->fork_count; k++) {
            const size_t of_fork = longest(&e->forks[k].imports, module);
            covered = of_fork > covered ? of_fork : covered;
        }
        if (covered > best) {
            best = covered;
            found = e;
        }
    }
    return found;
}

static bool distribution_matches(str pattern, str name)
{
    if (!str_ends(pattern, S("*")))
        return name_same(pattern, name);
    /* Compared as far as the pattern goes; both are spelled by PEP 503 there. */
    const size_t n = pattern.n - 1;
    return name.n > n && name_same(str_slice(pattern, 0, n), str_slice(name, 0, n));
}

static bool distributions_have(const struct strs *list, str name)
{
    for (size_t i = 0; i < list->count; i++)
        if (distribution_matches(list->items[i], name))
            return true;
    return false;
}

const struct extension *catalogue_by_distribution(const struct catalogue *c, str distribution)
{
    for (size_t i = 0; i < c->count; i++)
        if (distributions_have(&c->items[i].distributions, distribution))
            return &c->items[i];
    return NULL;
}

enum { URL_MOST = 512 };

/* A URL in lower case as "host/owner/name...", without scheme and user; git@host:owner/name too. */
static bool url_normal(str url, char room[URL_MOST], str *out)
{
    if (url.n >= URL_MOST)
        return false;
    for (size_t i = 0; i < url.n; i++) {
        const char c = url.p[i];
        room[i] = (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    }
    str rest = {room, url.n};
    const size_t scheme = str_find(rest, S("://"));
    if (scheme != SIZE_MAX)
        rest = str_from_index(rest, scheme + 3);
    const size_t slash = str_find_char(rest, '/');
    const size_t user = str_find_char(str_slice(rest, 0, slash), '@');
    if (user != SIZE_MAX)
        rest = str_from_index(rest, user + 1);
    const size_t colon = str_find_char(rest, ':');
    if (colon < str_find_char(rest, '/'))
        room[(size_t)(rest.p - room) + colon] = '/';
    *out = rest;
    return scheme != SIZE_MAX || user != SIZE_MAX; /* else it is a path */
}

str repository_of(arena *a, str url)
{
    char room[URL_MOST];
    str rest, host, owner, name, ignored;
    if (!url_normal(url, room, &rest) || !str_cut(rest, '/', &host, &rest) ||
        !str_cut(rest, '/', &owner, &name))
        return (str){NULL, 0};
    const char ends[] = {'?', '#', '/', '@'}; /* query, fragment, a path below, pip's revision */
    for (size_t i = 0; i < COUNT(ends); i++)
        (void)str_cut(name, ends[i], &name, &ignored);
    if (str_ends(name, S(".git")))
        name = str_slice(name, 0, name.n - 4);
    if (!host.n || !owner.n || !name.n)
        return (str){NULL, 0};
    return str_format(a, "%.*s/%.*s/%.*s", STR_ARG(host), STR_ARG(owner), STR_ARG(name));
}

/* Whether url names the repository "host/owner/name", given in lower case. */
static bool url_names(str url, str repository)
{
    char room[URL_MOST];
    str rest;
    if (!repository.n || !url_normal(url, room, &rest) || !str_starts(rest, repository))
        return false;
    str after = str_from_index(rest, repository.n);
    if (str_starts(after, S(".git")))
        after = str_from_index(after, 4);
    return !after.n || after.p[0] == '/' || after.p[0] == '@' || after.p[0] == '#' || after.p[0] == '?';
}

static bool any_names(const struct strs *repositories, str url)
{
    for (size_t i = 0; i < repositories->count; i++)
        if (url_names(url, repositories->items[i]))
            return true;
    return false;
}

/* Several extensions live in one repository (TRELLIS, Hunyuan3D): the part of the URL after "subdirectory=" or the last part of
 * a path then decides between them. */
static bool url_speaks_of(const struct extension *e, str url)
{
    for (size_t i = 0; i < e->build_count; i++)
        if (e->builds[i].subdirectory.n && str_contains(url, e->builds[i].subdirectory))
            return true;
    return false;
}

const struct extension *catalogue_by_repository(const struct catalogue *c, str url, const struct fork **fork)
{
    const struct extension *found = NULL;
    const struct fork *found_fork = NULL;
    for (size_t i = 0; i < c->count; i++) {
        const struct extension *e = &c->items[i];
        const struct fork *of = NULL;
        for (size_t k = 0; k < e->fork_count && !of; k++)
            if (any_names(&e->forks[k].repositories, url))
                of = &e->forks[k];
        if (!of && !any_names(&e->repositories, url))
            continue;
        if (!found || url_speaks_of(e, url)) {
            found = e;
            found_fork = of;
        }
    }
    if (fork)
        *fork = found_fork;
    return found;
}

/* Whether one of path's parts is the word, case ignored; "-" and "_" differ as they do on disk. */
static bool has_part(str path, str word)
{
    str rest = path, part, tail;
    for (bool more = true; more; rest = tail) {
        more = str_cut(rest, '/', &part, &tail);
        if (str_ends(part, S(".git")))
            part = str_slice(part, 0, part.n - 4);
        str ignored;
        (void)str_cut(part, '@', &part, &ignored);
        if (str_eq_nocase(part, word))
            return true;
    }
    return false;
}

const struct fork *extension_fork(const struct extension *e, str path_or_url)
{
    for (size_t i = 0; i < e->fork_count; i++)
        if (any_names(&e->forks[i].repositories, path_or_url))
            return &e->forks[i];
    for (size_t i = 0; i < e->fork_count; i++)
        for (size_t k = 0; k < e->forks[i].owners.count; k++)
            if (has_part(path_or_url, e->forks[i].owners.items[k]))
                return &e->forks[i];
    return NULL;
}

const struct fork *extension_default_fork(const struct extension *e)
{
    for (size_t i = 0; i < e->fork_count; i++)
        if (e->forks[i].is_default)
            return &e->forks[i];
    return e->fork_count ? &e->forks[0] : NULL;
}
