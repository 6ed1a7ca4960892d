/* Wheel links of an index page: HTML with anchors (PEP 503, find-links), PEP 691 JSON, the Hub's file listing, a GitHub release.
 * Pages come from the network: sizes are bounded, nothing recurses on their text, and what is no wheel's name is left out. */
#include "plan/plan.h"

enum { LINKS_MOST = 20000, TAG_MOST = 65536 };

struct page {
    arena *a;
    str url, base; /* base: what relative links start from */
    struct source_file_list *out;
};

/* ---- URLs ---- */

static bool is_absolute(str url) { return str_starts(url, S("https://")) || str_starts(url, S("http://")); }

/* RFC 3986's resolution, as far as index pages need it. */
static str url_join(arena *a, str base, str link)
{
    if (is_absolute(link))
        return link;
    const size_t scheme = str_find(base, S("://"));
    if (scheme == SIZE_MAX)
        return (str){NULL, 0};
    if (str_starts(link, S("//")))
        return str_format(a, "%.*s%.*s", (int)scheme + 1, base.p, STR_ARG(link));
    const str rest = str_from_index(base, scheme + 3);
    const size_t slash = str_find_char(rest, '/');
    const str origin = slash == SIZE_MAX ? base : str_slice(base, 0, scheme + 3 + slash);
    str path = slash == SIZE_MAX ? S("/") : str_from_index(base, scheme + 3 + slash);
    str ignored;
    (void)str_cut(path, '?', &path, &ignored);
    (void)str_cut(path, '#', &path, &ignored);
    if (str_starts(link, S("/")))
        return str_format(a, "%.*s%.*s", STR_ARG(origin), STR_ARG(link));
    str folder = str_slice(path, 0, str_rfind_char(path, '/') + 1);
    while (str_starts(link, S("../")) || str_starts(link, S("./"))) {
        if (str_starts(link, S("../")) && folder.n > 1)
            folder = str_slice(folder, 0, str_rfind_char(str_slice(folder, 0, folder.n - 1), '/') + 1);
        link = str_from_index(link, link.p[1] == '.' ? 3 : 2);
    }
    return str_format(a, "%.*s%.*s%.*s", STR_ARG(origin), STR_ARG(folder), STR_ARG(link));
}

/* A path as a URL spells it: '+' and whatever else is not plain becomes %XX. */
static str url_encode(arena *a, str path)
{
    struct buf b = {.a = a};
    for (size_t i = 0; i < path.n; i++) {
        const char c = path.p[i];
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                           (c && strchr("-._~/", c));
        if (plain)
            buf_char(&b, c);
        else
            buf_format(&b, "%%%02X", (unsigned)(unsigned char)c);
    }
    return buf_str(&b);
}

/* Adds the link when its last part is a wheel's name. False past the limits. */
static bool add_link(struct page *p, str url, str sha256, str requires_python, bool yanked)
{
    str target, fragment;
    (void)str_cut(url, '#', &target, &fragment);
    str path, query;
    (void)str_cut(target, '?', &path, &query);
    if (!str_ends(path, S(".whl")) || !is_absolute(target))
        return true;
    struct source_file file = {.url = target, .requires_python = requires_python, .yanked = yanked};
    str why;
    if (!wheel_name_parse(p->a, target, &file.name, &why))
        return true;
    if (!sha256.p && str_starts(fragment, S("sha256=")))
        sha256 = str_from_index(fragment, 7);
    if (sha256.n == 64)
        file.sha256 = str_lower(p->a, sha256);
    if (p->out->count >= LINKS_MOST || !arena_room(p->a, p->out))
        return false;
    p->out->items[p->out->count++] = file;
    return true;
}

/* ---- HTML ---- */

static const struct {
    const char *name;
    char c;
} ENTITIES[] = {{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}, {"plus", '+'}};

/* One character reference after '&'; ASCII ones only, others stay as they are. */
static bool entity(str name, char *out)
{
    for (size_t i = 0; i < COUNT(ENTITIES); i++)
        if (str_eq(name, str_from(ENTITIES[i].name))) {
            *out = ENTITIES[i].c;
            return true;
        }
    if (name.n < 2 || name.n > 8 || name.p[0] != '#')
        return false;
    const bool in_hex = (name.p[1] | 0x20) == 'x';
    unsigned value = 0;
    for (size_t i = in_hex ? 2 : 1; i < name.n; i++) {
        const char c = name.p[i], low = (char)(c | 0x20);
        const bool digit = c >= '0' && c <= '9', letter = in_hex && low >= 'a' && low <= 'f';
        if (!digit && !letter)
            return false;
        value = value * (in_hex ? 16 : 10) + (unsigned)(digit ? c - '0' : low - 'a' + 10);
    }
    *out = (char)value;
    return value >= 0x20 && value < 0x7f;
}

static str unescape(arena *a, str text)
{
    if (str_find_char(text, '&') == SIZE_MAX)
        return text;
    struct buf b = {.a = a};
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        const str rest = str_slice(text, i + 1, i + 12);
        const size_t end = c == '&' ? str_find_char(rest, ';') : SIZE_MAX;
        if (end != SIZE_MAX && entity(str_slice(rest, 0, end), &c))
            i += end + 1;
        buf_char(&b, c);
    }
    return buf_str(&b);
}

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f'; }

/* The next attribute of a tag's inside. False at its end. */
static bool next_attribute(str *inside, str *name, str *value)
{
    size_t i = 0;
    while (i < inside->n && (is_space(inside->p[i]) || inside->p[i] == '/'))
        i++;
    const size_t start = i;
    while (i < inside->n && !is_space(inside->p[i]) && inside->p[i] != '=' && inside->p[i] != '/')
        i++;
    *name = str_slice(*inside, start, i);
    *value = S("");
    while (i < inside->n && is_space(inside->p[i]))
        i++;
    if (i < inside->n && inside->p[i] == '=') {
        i++;
        while (i < inside->n && is_space(inside->p[i]))
            i++;
        size_t first = i;
        if (i < inside->n && (inside->p[i] == '"' || inside->p[i] == '\'')) {
            const char quote = inside->p[i];
            first = ++i;
            while (i < inside->n && inside->p[i] != quote)
                i++;
            *value = str_slice(*inside, first, i);
            i += i < inside->n;
        } else {
            while (i < inside->n && !is_space(inside->p[i]))
                i++;
            *value = str_slice(*inside, first, i);
        }
    }
    *inside = str_from_index(*inside, i > start ? i : inside->n);
    return name->n > 0;
}

/* The inside of the tag that begins at text.p[0] == '<': up to the '>' outside quotes. SIZE_MAX when it does not end. */
static size_t tag_end(str text)
{
    char quote = 0;
    for (size_t i = 1; i < text.n && i < TAG_MOST; i++) {
        const char c = text.p[i];
        if (quote && c == quote)
            quote = 0;
        else if (quote)
            continue;
        else if (c == '"' || c == '\'')
            quote = c;
        else if (c == '>')
            return i;
    }
    return SIZE_MAX;
}

static bool read_tag(struct page *p, str inside)
{
    str name, value, href = {NULL, 0}, requires_python = {NULL, 0};
    bool yanked = false;
    if (!next_attribute(&inside, &name, &value))
        return true;
    const bool is_link = str_eq_nocase(name, S("a")), is_base = str_eq_nocase(name, S("base"));
    while ((is_link || is_base) && next_attribute(&inside, &name, &value)) {
        if (str_eq_nocase(name, S("href")))
            href = str_trim(unescape(p->a, value));
        else if (str_eq_nocase(name, S("data-requires-python")))
            requires_python = unescape(p->a, value);
        else if (str_eq_nocase(name, S("data-yanked")))
            yanked = true;
    }
    if (!href.n)
        return true;
    const str url = url_join(p->a, p->base, href);
    if (is_base && url.n)
        p->base = url;
    return !is_link || !url.n || add_link(p, url, (str){NULL, 0}, requires_python, yanked);
}

static bool read_html(struct page *p, str body, str *why)
{
    bool tags = false;
    for (size_t at = 0; at < body.n;) {
        const str rest = str_from_index(body, at);
        const size_t open = str_find_char(rest, '<');
        if (open == SIZE_MAX)
            break;
        const str tag = str_from_index(rest, open);
        if (str_starts(tag, S("<!--"))) {
            const size_t close = str_find(tag, S("-->"));
            at = close == SIZE_MAX ? body.n : at + open + close + 3;
            continue;
        }
        const size_t end = tag_end(tag);
        if (end == SIZE_MAX) { /* a lone '<' */
            at += open + 1;
            continue;
        }
        tags = true;
        if (!read_tag(p, str_slice(tag, 1, end))) {
            *why = S("it lists more files than the limit of 20000");
            return false;
        }
        at += open + end + 1;
    }
    if (!tags)
        *why = S("expected an HTML page with links");
    return tags;
}

/* ---- JSON ---- */

static str json_text(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_string(value) ? (str){json_string_value(value), json_string_length(value)}
                                 : (str){NULL, 0};
}

/* PEP 691: {"files": [{"filename", "url", "hashes": {"sha256"}, "requires-python", "yanked"}]} */
static bool read_simple(struct page *p, const json_t *root, str *why)
{
    const json_t *files = json_object_get(root, "files"), *file;
    size_t i;
    *why = S("expected a PEP 691 page: an object with a list 'files'");
    if (!json_is_array(files))
        return false;
    json_array_foreach(files, i, file)
    {
        const json_t *yanked = json_object_get(file, "yanked");
        const str url = url_join(p->a, p->base, str_copy(p->a, json_text(file, "url")));
        if (url.n && !add_link(p, url, json_text(json_object_get(file, "hashes"), "sha256"),
                               str_copy(p->a, json_text(file, "requires-python")),
                               json_is_true(yanked) || json_is_string(yanked)))
            return false;
    }
    return true;
}

/* {"assets": [{"browser_download_url", "digest": "sha256:..."}]}, or a list of those */
static bool read_release(struct page *p, const json_t *root, str *why)
{
    const json_t *assets = json_object_get(root, "assets"), *asset;
    size_t i;
    *why = S("expected a release: an object with a list 'assets'");
    if (!json_is_array(assets))
        return false;
    json_array_foreach(assets, i, asset)
    {
        str digest = json_text(asset, "digest");
        digest = str_starts(digest, S("sha256:")) ? str_from_index(digest, 7) : (str){NULL, 0};
        const str url = str_copy(p->a, json_text(asset, "browser_download_url"));
        if (url.n && !add_link(p, url, digest, (str){NULL, 0}, false))
            return false;
    }
    return true;
}

/* [{"type": "file", "path": "wheels/cell/x.whl", "lfs": {"oid": sha256}}]; the page is HOST/api/KIND/OWNER/NAME/tree/REV/FOLDER
 * and a file HOST/KIND/OWNER/NAME/resolve/REV/PATH, without KIND for models. */
static bool read_hub(struct page *p, const json_t *root, str *why)
{
    *why = S("expected the Hub's listing: a list of files");
    const size_t api = str_find(p->url, S("/api/")), tree = str_find(p->url, S("/tree/"));
    if (!json_is_array(root) || api == SIZE_MAX || tree == SIZE_MAX || tree < api + 5)
        return false;
    str repository = str_slice(p->url, api + 5, tree), revision, folder;
    if (str_starts(repository, S("models/")))
        repository = str_from_index(repository, 7);
    (void)str_cut(str_from_index(p->url, tree + 6), '/', &revision, &folder);
    const json_t *file;
    size_t i;
    json_array_foreach(root, i, file)
    {
        const str path = json_text(file, "path");
        if (!path.n || !str_eq(json_text(file, "type"), S("file")))
            continue;
        const str url = str_format(p->a, "%.*s/%.*s/resolve/%.*s/%.*s", (int)api, p->url.p,
                                   STR_ARG(repository), STR_ARG(revision), STR_ARG(url_encode(p->a, path)));
        if (!add_link(p, url, json_text(json_object_get(file, "lfs"), "oid"), (str){NULL, 0}, false))
            return false;
    }
    return true;
}

bool index_page_read(arena *a, enum source_layout layout, str page_url, str content_type, str body,
                     struct source_file_list *out, str *why)
{
    struct source_file_list files = {0};
    struct page p = {.a = a, .url = page_url, .base = page_url, .out = &files};
    const bool wants_json = layout == LAYOUT_HUB_TREE || layout == LAYOUT_GITHUB_RELEASE ||
                            (layout == LAYOUT_SIMPLE && str_contains(content_type, S("json")));
    bool well;
    if (wants_json) {
        json_error_t error;
        json_t *root = json_loadb(body.p ? body.p : "", body.n, JSON_REJECT_DUPLICATES, &error);
        if (!root) {
            *why = str_format(a, "expected JSON: line %d: %s", error.line, error.text);
            return false;
        }
        well = layout == LAYOUT_HUB_TREE         ? read_hub(&p, root, why)
               : layout == LAYOUT_GITHUB_RELEASE ? read_release(&p, root, why)
                                                 : read_simple(&p, root, why);
        json_decref(root);
    } else {
        well = read_html(&p, body, why);
    }
    if (well)
        *out = files;
    return well;
}
