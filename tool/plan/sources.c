/* Where wheels are published: data/sources.yaml with its snapshot of file names, and the refresh of it over the network. */
#include "plan/plan.h"

#include <stdlib.h>

enum { SOURCES_MOST = 1024, PAGES_MOST = 4096, PARALLEL = 8, PAGE_LIMIT = 16 << 20 };

struct reader {
    arena *a;
    const struct catalogue *catalogue;
    str path;
    findings *f;
};

static bool refuse(const struct reader *r, const struct yaml *at, const char *what, str value)
{
    const struct place place = {r->path, at->line, at->column};
    return finding_fatal(r->f, 3, F005, place, "%s: %.*s", what, STR_ARG(value));
}

static const char *const KIND_NAMES[] = {
    [SOURCE_DATASET] = "dataset", [SOURCE_RELEASE] = "release", [SOURCE_OFFICIAL_APP] = "official-app",
    [SOURCE_INDEX] = "index",     [SOURCE_FILE] = "file",       [SOURCE_BUILD] = "build",
    [SOURCE_FELLOE] = "felloe"};

static const char *const LAYOUT_NAMES[] = {
    [LAYOUT_HUB_TREE] = "hub-tree",     [LAYOUT_GITHUB_RELEASE] = "github-release",
    [LAYOUT_FIND_LINKS] = "find-links", [LAYOUT_SIMPLE] = "simple",
    [LAYOUT_KERNELS] = "kernels",       [LAYOUT_LIST] = "list"};

const char *source_kind_name(enum source_kind kind) { return KIND_NAMES[kind]; }

static bool read_choice(const struct reader *r, const struct yaml *map, const char *key,
                        const char *const *names, size_t count, size_t *out)
{
    const str text = yaml_str(map, key);
    for (size_t i = 0; i < count; i++)
        if (text.p && str_eq(text, str_from(names[i]))) {
            *out = i;
            return true;
        }
    return refuse(r, map, key, text.p ? text : S("missing"));
}

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

/* Whose wheel it is, by its distribution; which fork's, by its URL, its distribution, else the default. */
static void place_file(const struct catalogue *c, struct source_file *file)
{
    const struct extension *e = catalogue_by_distribution(c, file->name.name);
    if (!e)
        return;
    file->extension = e->name;
    const struct fork *fork = extension_fork(e, file->url);
    for (size_t i = 0; i < e->fork_count && !fork; i++)
        for (size_t k = 0; k < e->forks[i].distributions.count; k++)
            if (name_same(e->forks[i].distributions.items[k], file->name.name))
                fork = &e->forks[i];
    if (!fork)
        fork = extension_default_fork(e);
    if (fork)
        file->fork = fork->name;
}

/* What the place of a file says of it, and what is known of its source and of its extension's wheels. */
static void describe_file(const struct catalogue *c, const struct source *source, size_t page,
                          struct source_file *file)
{
    const struct source_page *p = &source->pages[page];
    file->from = source;
    file->page = page;
    file->python = p->python;
    file->torch = p->torch;
    file->cuda = p->cuda;
    file->archs = source->archs;
    place_file(c, file);
    const struct extension *e = file->extension.p ? catalogue_by_name(c, file->extension) : NULL;
    for (size_t i = 0; e && !file->archs.count && i < e->arch_count; i++)
        if (specs_contain(&e->archs[i].specs, &file->name.version, true))
            file->archs = e->archs[i].archs;
}

/* "3.12" as file names have it: "312". */
static str digits_of(arena *a, str python)
{
    str major, minor;
    (void)str_cut(python, '.', &major, &minor);
    return str_format(a, "%.*s%.*s", STR_ARG(major), STR_ARG(minor));
}

static bool add_name(const struct reader *r, const struct yaml *at, struct source *source, size_t page,
                     str template, str python)
{
    static const str MARK = S_INIT("{py}");
    struct buf name = {.a = r->a};
    const str digits = digits_of(r->a, python);
    for (str rest = template; rest.n;) {
        const size_t mark = str_find(rest, MARK);
        buf_add(&name, str_slice(rest, 0, mark));
        if (mark != SIZE_MAX)
            buf_add(&name, digits);
        rest = mark == SIZE_MAX ? S("") : str_from_index(rest, mark + MARK.n);
    }
    const str base = source->pages[page].base;
    struct buf url = {.a = r->a};
    buf_add(&url, base);
    const str text = buf_str(&name);
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] == '+')
            buf_add(&url, S("%2B"));
        else
            buf_char(&url, text.p[i]);
    }
    struct source_file file = {.url = buf_str(&url)};
    str why;
    if (!wheel_name_parse(r->a, file.url, &file.name, &why))
        return refuse(r, at, str_c(r->a, why), text);
    if (!arena_room(r->a, &source->files))
        return refuse(r, at, "too many files in", source->name);
    describe_file(r->catalogue, source, page, &file);
    source->files.items[source->files.count++] = file;
    return true;
}

static bool read_names(const struct reader *r, const struct yaml *at, const char *key, struct source *source,
                       size_t page, const struct strs *pythons)
{
    const struct strs names = yaml_strs(r->a, at, key);
    for (size_t i = 0; i < names.count; i++) {
        const bool repeats = str_contains(names.items[i], S("{py}"));
        if (repeats && !pythons->count)
            return refuse(r, at, "{py} needs the page's python or pythons in", names.items[i]);
        for (size_t k = 0; k < (repeats ? pythons->count : 1); k++)
            if (!add_name(r, at, source, page, names.items[i], repeats ? pythons->items[k] : S("")))
                return false;
    }
    return true;
}

static bool read_page(const struct reader *r, const struct yaml *of, const struct yaml *map,
                      struct source *source)
{
    static const char *const KEYS[] = {"name",  "url",  "base",      "python", "pythons",
                                       "torch", "cuda", "extension", "files",  NULL};
    if (!keys_known(r, map, KEYS))
        return false;
    const size_t page = source->page_count++;
    struct source_page *p = &source->pages[page];
    *p = (struct source_page){.url = yaml_str(map, "url"),
                              .base = yaml_str(map, "base"),
                              .python = yaml_str(map, "python"),
                              .torch = yaml_str(map, "torch"),
                              .cuda = yaml_str(map, "cuda"),
                              .extension = yaml_str(map, "extension")};
    const str name = yaml_str(map, "name"), url = yaml_str(of, "page_url"), base = yaml_str(of, "page_base");
    if (!p->url.p && url.p && name.p)
        p->url = str_format(r->a, "%.*s%.*s", STR_ARG(url), STR_ARG(name));
    if (!p->base.p && base.p && name.p)
        p->base = str_format(r->a, "%.*s%.*s/", STR_ARG(base), STR_ARG(name));
    if (!p->url.p)
        return refuse(r, map, "a page needs the key", S("url"));
    if (p->extension.p && !catalogue_by_name(r->catalogue, p->extension))
        return refuse(r, map, "no such extension", p->extension);
    struct strs pythons = yaml_strs(r->a, map, "pythons");
    if (p->python.p)
        (void)strs_add(r->a, &pythons, p->python);
    return read_names(r, map, "files", source, page, &pythons) &&
           (!yaml_get(of, "every_page") || read_names(r, of, "every_page", source, page, &pythons));
}

static bool read_source(const struct reader *r, const struct yaml *map, struct source *source)
{
    static const char *const KEYS[] = {
        "name", "title", "kind",       "layout",         "home",      "extensions", "archs",     "date",
        "note", "pages", "every_page", "torch_tolerant", "publisher", "page_url",   "page_base", NULL};
    size_t kind = 0, layout = 0;
    if (!keys_known(r, map, KEYS) || !read_choice(r, map, "kind", KIND_NAMES, COUNT(KIND_NAMES), &kind) ||
        !read_choice(r, map, "layout", LAYOUT_NAMES, COUNT(LAYOUT_NAMES), &layout))
        return false;
    *source = (struct source){.name = yaml_str(map, "name"),
                              .title = yaml_str(map, "title"),
                              .home = yaml_str(map, "home"),
                              .kind = (enum source_kind)kind,
                              .layout = (enum source_layout)layout,
                              .extensions = yaml_strs(r->a, map, "extensions"),
                              .archs = yaml_strs(r->a, map, "archs"),
                              .torch_tolerant = yaml_bool(map, "torch_tolerant", false),
                              .publisher = yaml_str(map, "publisher"),
                              .date = yaml_str(map, "date"),
                              .note = yaml_str(map, "note"),
                              .place = {r->path, map->line, map->column}};
    for (size_t i = 0; i < source->extensions.count; i++)
        if (!catalogue_by_name(r->catalogue, source->extensions.items[i]))
            return refuse(r, map, "no such extension", source->extensions.items[i]);
    const struct yaml *pages = yaml_get(map, "pages");
    if (!source->name.n || !pages || pages->kind != YAML_LIST || pages->count > PAGES_MOST)
        return refuse(r, map, "a source needs a name and a list of at most 4096 pages, got", source->name);
    source->pages = arena_array(r->a, struct source_page, pages->count);
    for (size_t i = 0; source->pages && i < pages->count; i++)
        if (!read_page(r, map, &pages->items[i], source))
            return false;
    return true;
}

bool sources_read(arena *a, const struct catalogue *c, struct sources *out, findings *f)
{
    struct yaml document;
    struct reader r = {.a = a, .catalogue = c, .f = f};
    if (!data_yaml(a, "sources.yaml", &document, &r.path, f))
        return false;
    const struct yaml *list = yaml_get(&document, "sources");
    if (!list || list->kind != YAML_LIST || list->count > SOURCES_MOST)
        return refuse(&r, &document, "expected a list of at most 1024 entries under the key", S("sources"));
    struct sources sources = {.items = arena_array(a, struct source, list->count),
                              .path = r.path,
                              .date = yaml_str(&document, "date")};
    for (size_t i = 0; sources.items && i < list->count; i++)
        if (!read_source(&r, &list->items[i], &sources.items[sources.count++]))
            return false;
    *out = sources;
    return true;
}

/* ---- Refresh ---- */

struct asked { /* a page on its way */
    struct source *source;
    size_t page;
    str url, cache; /* cache: where its copy lies; absent without a cache folder */
};
struct asked_list {
    struct asked *items;
    size_t count, capacity;
};

/* A cached page: its ETag, its type, an empty line, the body. */
struct copy {
    str etag, type, body;
};

static bool copy_read(arena *a, str path, struct copy *out)
{
    span bytes;
    if (!path.p || !file_exists(path) || !file_read(a, path, PAGE_LIMIT + 4096, &bytes, findings_new(a)))
        return false;
    str rest = str_from_span(bytes);
    return str_cut(rest, '\n', &out->etag, &rest) && str_cut(rest, '\n', &out->type, &rest) &&
           str_cut(rest, '\n', &out->body, &rest) && (out->body = rest, true);
}

static void copy_write(arena *a, str path, const struct http_response *response)
{
    if (!path.p || !response->etag.n || str_contains(response->etag, S("\n")) ||
        str_contains(response->content_type, S("\n")))
        return;
    struct buf b = {.a = a};
    buf_add(&b, response->etag);
    buf_char(&b, '\n');
    buf_add(&b, response->content_type);
    buf_add(&b, S("\n\n"));
    buf_add(&b, str_from_span(response->body));
    findings *ignored = findings_new(a); /* a cache that cannot be written costs time, not the answer */
    if (dir_make(path_dir(path), ignored))
        (void)file_write(path, span_from_str(buf_str(&b)), ignored);
}

/* "index:NAME" on the index that pip is configured for by its environment; absent without one. */
static str page_address(arena *a, str url)
{
    if (!str_starts(url, S("index:")))
        return url;
    const char *index = getenv("PIP_INDEX_URL");
    if (!index || !*index)
        return (str){NULL, 0};
    str base = str_from(index);
    while (str_ends(base, S("/")))
        base = str_slice(base, 0, base.n - 1);
    const str name = str_from_index(url, 6);
    return str_format(a, "%.*s/%.*s/", STR_ARG(base), STR_ARG(name));
}

static bool page_matters(const struct source *s, const struct source_page *page,
                         const struct need_list *needs)
{
    for (size_t i = 0; i < needs->count; i++) {
        const struct extension *e = needs->items[i].extension;
        if (e && (page->extension.p ? str_eq(page->extension, e->name) : strs_has(&s->extensions, e->name)))
            return true;
    }
    return false;
}

/* The page's files take the place of those of the snapshot. */
static bool take_page(arena *a, const struct catalogue *c, struct source *source, size_t page,
                      const struct source_file_list *files)
{
    struct source_file_list all = {0};
    for (size_t i = 0; i < source->files.count; i++)
        if (source->files.items[i].page != page) {
            if (!arena_room(a, &all))
                return false;
            all.items[all.count++] = source->files.items[i];
        }
    for (size_t i = 0; i < files->count; i++) {
        struct source_file file = files->items[i];
        describe_file(c, source, page, &file);
        if (!file.extension.p || file.yanked)
            continue;
        if (!arena_room(a, &all))
            return false;
        all.items[all.count++] = file;
    }
    source->files = all;
    source->pages[page].fresh = true;
    return true;
}

struct failure { /* pages of one host that failed alike are one finding */
    str host, why;
    const struct asked *first;
    size_t count;
};
struct failure_list {
    struct failure *items;
    size_t count, capacity;
};

static void note_failure(arena *a, struct failure_list *list, const struct asked *page, str why)
{
    const str host = url_host(page->url);
    for (size_t i = 0; i < list->count; i++)
        if (str_eq(list->items[i].host, host) && str_eq(list->items[i].why, why)) {
            list->items[i].count++;
            return;
        }
    if (arena_room(a, list))
        list->items[list->count++] = (struct failure){host, why, page, 1};
}

static void say_failures(const struct sources *sources, const struct failure_list *list, findings *f)
{
    if (sources->pages_failed && !sources->refreshed) { /* most likely there is no network */
        (void)finding_at(
            f, F220, (struct place){0}, S("sources"),
            "none of %zu wheel sources was reached, so the file names are those of %.*s: %.*s (%.*s)",
            sources->pages_asked, STR_ARG(sources->date), STR_ARG(list->items[0].host),
            STR_ARG(list->items[0].why));
        return;
    }
    for (size_t i = 0; i < list->count; i++) {
        const struct failure *failure = &list->items[i];
        const str title = failure->first->source->title, date = failure->first->source->date;
        (void)finding_at(
            f, F220, (struct place){0}, title,
            "%.*s was not refreshed (%zu page%s), so its file names are those of %.*s: %.*s (%.*s)",
            STR_ARG(title), failure->count, failure->count == 1 ? "" : "s",
            STR_ARG(date.p ? date : sources->date), STR_ARG(failure->first->url), STR_ARG(failure->why));
    }
}

void sources_refresh(arena *a, const struct catalogue *c, struct sources *sources,
                     const struct need_list *needs, http *h, findings *f)
{
    struct asked_list asked = {0};
    struct failure_list failures = {0};
    const str cache = cache_dir(a, f);
    for (size_t i = 0; i < sources->count; i++) {
        struct source *s = &sources->items[i];
        for (size_t k = 0; k < s->page_count; k++) {
            const str url = page_address(a, s->pages[k].url);
            if (s->layout == LAYOUT_KERNELS || s->layout == LAYOUT_LIST || !url.p ||
                !page_matters(s, &s->pages[k], needs) || !arena_room(a, &asked))
                continue;
            const str key = sha256_hex(a, span_from_str(url));
            asked.items[asked.count++] = (struct asked){
                .source = s,
                .page = k,
                .url = url,
                .cache = cache.p ? str_format(a, "%.*s/pages/%.*s", STR_ARG(cache), STR_ARG(key)) : cache};
        }
    }
    struct http_request *requests = arena_array(a, struct http_request, asked.count);
    struct http_response *responses = arena_array(a, struct http_response, asked.count);
    struct copy *copies = arena_array(a, struct copy, asked.count);
    if (!asked.count || !requests || !responses || !copies)
        return;
    for (size_t i = 0; i < asked.count; i++) {
        requests[i] = (struct http_request){.url = asked.items[i].url, .limit = PAGE_LIMIT};
        if (copy_read(a, asked.items[i].cache, &copies[i]))
            requests[i].etag = copies[i].etag;
        if (asked.items[i].source->layout == LAYOUT_SIMPLE)
            requests[i].accept = S("application/vnd.pypi.simple.v1+json, "
                                   "application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1");
    }
    http_get_many(h, a, requests, asked.count, PARALLEL, responses);
    for (size_t i = 0; i < asked.count; i++) {
        const struct asked *page = &asked.items[i];
        const struct http_response *r = &responses[i];
        struct source_file_list files;
        str why = r->error;
        const bool same = r->status == 304 && copies[i].body.p;
        bool well = !r->error.p && (r->status == 200 || same);
        if (!r->error.p && !well)
            why = str_format(a, "HTTP status %ld", r->status);
        /* Relative links count from where the page was found in the end. */
        well = well && index_page_read(a, page->source->layout, r->url.p && !same ? r->url : page->url,
                                       same ? copies[i].type : r->content_type,
                                       same ? copies[i].body : str_from_span(r->body), &files, &why);
        sources->pages_asked++;
        if (well && take_page(a, c, page->source, page->page, &files)) {
            sources->refreshed = true;
            if (!same)
                copy_write(a, page->cache, r);
            continue;
        }
        sources->pages_failed++;
        note_failure(a, &failures, page, why);
    }
    if (failures.count)
        say_failures(sources, &failures, f);
}
