/* YAML through libfyaml, as a tree in the arena. The events are read one by one, so that aliases, merge keys, depth and size
 * are refused before anything is expanded. */
#include "base/base.h"

#include <stdlib.h>

#include <libfyaml.h>

enum { DEPTH_MOST = 64 };

struct reader {
    arena *a;
    struct fy_parser *parser;
    str path;
    size_t first_line;
    enum finding_code code;
    findings *f;
};

static struct place place_of(const struct reader *r, const struct fy_mark *mark)
{
    return (struct place){.file = r->path,
                          .line = mark ? (size_t)mark->line + r->first_line : r->first_line,
                          .column = mark ? (size_t)mark->column + 1 : 0};
}

static bool refuse(const struct reader *r, const struct fy_event *event, const char *what)
{
    const struct fy_mark *mark = event ? fy_event_start_mark(unconst(event)) : NULL;
    return finding_fatal(r->f, 3, r->code, place_of(r, mark), "%s", what);
}

struct node_list {
    struct yaml *items;
    size_t count, capacity;
};

/* Recursion ends at DEPTH_MOST. */
static bool read_node(const struct reader *r, struct fy_event *event, unsigned depth, struct yaml *out);

/* NOLINTBEGIN(misc-no-recursion): ends at DEPTH_MOST */

/* The children up to the end event; a map's keys and values alternate. */
static bool read_children(const struct reader *r, enum fy_event_type end, unsigned depth, struct yaml *out)
{
    struct node_list keys = {0}, items = {0};
    for (;;) {
        struct fy_event *event = fy_parser_parse(r->parser);
        if (!event)
            return false; /* the parser has said why */
        const bool ended = event->type == end;
        const bool is_key = end == FYET_MAPPING_END && keys.count == items.count;
        struct node_list *list = is_key ? &keys : &items;
        bool well = ended || arena_room(r->a, list);
        if (!well)
            (void)refuse(r, event, "the document is too large");
        if (well && !ended)
            well = read_node(r, event, depth + 1, &list->items[list->count++]);
        if (well && is_key && !ended && keys.items[keys.count - 1].kind != YAML_SCALAR)
            well = refuse(r, event, "a key must be plain text");
        fy_parser_event_free(r->parser, event);
        if (!well)
            return false;
        if (ended)
            break;
    }
    out->keys = keys.items;
    out->items = items.items;
    out->count = items.count;
    return true;
}

static bool is_null_text(str s)
{
    return s.n == 0 || str_eq(s, S("~")) || str_eq(s, S("null")) || str_eq(s, S("Null")) ||
           str_eq(s, S("NULL"));
}

static bool read_node(const struct reader *r, struct fy_event *event, unsigned depth, struct yaml *out)
{
    const struct place place = place_of(r, fy_event_start_mark(event));
    *out = (struct yaml){.line = place.line, .column = place.column};
    if (depth > DEPTH_MOST)
        return refuse(r, event, "nested more than 64 deep");
    switch (event->type) {
    case FYET_SCALAR: {
        size_t n = 0;
        struct fy_token *token = fy_event_get_token(event);
        const char *text = token ? fy_token_get_text(token, &n) : NULL;
        out->text = str_copy(r->a, (str){text ? text : "", text ? n : 0});
        out->plain = !token || fy_scalar_token_get_style(token) == FYSS_PLAIN;
        out->kind = out->plain && is_null_text(out->text) ? YAML_NULL : YAML_SCALAR;
        if (!out->text.p)
            return refuse(r, event, "the document is too large");
        return true;
    }
    case FYET_SEQUENCE_START:
        out->kind = YAML_LIST;
        return read_children(r, FYET_SEQUENCE_END, depth, out);
    case FYET_MAPPING_START:
        out->kind = YAML_MAP;
        return read_children(r, FYET_MAPPING_END, depth, out);
    case FYET_ALIAS:
        return refuse(r, event, "aliases (*name) are not accepted: write the value out");
    default:
        return refuse(r, event, "a value was expected");
    }
}

/* NOLINTEND(misc-no-recursion) */

/* libfyaml's own message, with its place, as a finding. */
static void take_diagnostics(const struct reader *r, struct fy_diag *diag)
{
    void *cursor = NULL;
    const struct fy_diag_error *error = fy_diag_errors_iterate(diag, &cursor);
    if (!error) {
        (void)refuse(r, NULL, "not valid YAML");
        return;
    }
    const struct place place = {.file = r->path,
                                .line = (error->line > 0 ? (size_t)error->line - 1 : 0) + r->first_line,
                                .column = error->column > 0 ? (size_t)error->column : 0};
    (void)finding_fatal(r->f, 3, r->code, place, "not valid YAML: %s",
                        error->msg ? error->msg : "unknown error");
}

bool yaml_parse(arena *a, str text, str path, size_t first_line, enum finding_code code, struct yaml *out,
                findings *f)
{
    *out = (struct yaml){.line = first_line, .column = 1};
    struct reader r = {.a = a, .path = path, .first_line = first_line, .code = code, .f = f};
    if (str_trim(text).n == 0)
        return true;
    if (!str_is_utf8(text) || str_contains(text, (str){"", 1}))
        return refuse(&r, NULL, "not valid YAML: a byte is not UTF-8 text");
    const struct fy_diag_cfg diag_config = {.level = FYET_ERROR, .fp = NULL};
    struct fy_diag *diag = fy_diag_create(&diag_config);
    if (!diag)
        return refuse(&r, NULL, "the YAML reader could not start");
    fy_diag_set_collect_errors(diag, true);
    const struct fy_parse_cfg config = {.diag = diag, .flags = FYPCF_QUIET};
    r.parser = fy_parser_create(&config);
    bool well = r.parser && fy_parser_set_string(r.parser, text.p, text.n) == 0;
    bool refused = false;
    bool documents = false;
    while (well) {
        struct fy_event *event = fy_parser_parse(r.parser);
        if (!event) {
            well = !fy_parser_get_stream_error(r.parser);
            break;
        }
        if (event->type == FYET_DOCUMENT_START && documents) {
            refused = true;
            well = refuse(&r, event, "a second document; one was expected");
        } else if (event->type == FYET_DOCUMENT_START) {
            documents = true;
        } else if (event->type != FYET_STREAM_START && event->type != FYET_STREAM_END &&
                   event->type != FYET_DOCUMENT_END) {
            const size_t before = f->count;
            well = read_node(&r, event, 0, out);
            refused = !well && f->count > before;
        }
        fy_parser_event_free(r.parser, event);
    }
    if (!well && !refused)
        take_diagnostics(&r, diag);
    if (r.parser)
        fy_parser_destroy(r.parser);
    fy_diag_destroy(diag);
    return well;
}

const struct yaml *yaml_get(const struct yaml *map, const char *key)
{
    if (!map || map->kind != YAML_MAP)
        return NULL;
    for (size_t i = 0; i < map->count; i++)
        if (str_eq(map->keys[i].text, str_from(key)))
            return &map->items[i];
    return NULL;
}

str yaml_str(const struct yaml *map, const char *key)
{
    const struct yaml *value = yaml_get(map, key);
    return value && value->kind == YAML_SCALAR ? value->text : (str){NULL, 0};
}

bool yaml_bool(const struct yaml *map, const char *key, bool otherwise)
{
    const str text = yaml_str(map, key);
    return !text.p ? otherwise : str_eq_nocase(text, S("true")) || str_eq_nocase(text, S("yes"));
}

double yaml_number(const struct yaml *map, const char *key, double otherwise)
{
    const str text = yaml_str(map, key);
    char copy[64];
    if (!text.p || text.n == 0 || text.n >= sizeof copy)
        return otherwise;
    memcpy(copy, text.p, text.n);
    copy[text.n] = 0;
    char *end = NULL;
    const double value = strtod(copy, &end);
    return *end == 0 ? value : otherwise;
}

struct strs yaml_strs(arena *a, const struct yaml *map, const char *key)
{
    struct strs list = {0};
    const struct yaml *value = yaml_get(map, key);
    if (!value)
        return list;
    if (value->kind == YAML_SCALAR)
        (void)strs_add(a, &list, value->text);
    for (size_t i = 0; value->kind == YAML_LIST && i < value->count; i++)
        if (value->items[i].kind == YAML_SCALAR)
            (void)strs_add(a, &list, value->items[i].text);
    return list;
}

bool data_yaml(arena *a, const char *name, struct yaml *out, str *path, findings *f)
{
    span bytes;
    return data_file(a, name, &bytes, path, f) && yaml_parse(a, str_from_span(bytes), *path, 1, F005, out, f);
}
