/* Findings and strings as jansson values. */
#include "base/base.h"

json_t *json_str(str s)
{
    if (!s.p)
        return json_null();
    json_t *value = json_stringn(s.p, s.n);
    if (value)
        return value;
    arena *a = arena_new(0);
    const str safe = str_utf8(a, s);
    value = json_stringn(safe.p, safe.n);
    arena_free(a);
    return value ? value : json_null();
}

json_t *json_strs(const struct strs *list)
{
    json_t *array = json_array();
    for (size_t i = 0; i < list->count; i++)
        json_array_append_new(array, json_str(list->items[i]));
    return array;
}

json_t *json_size(size_t n) { return n ? json_integer((json_int_t)n) : json_null(); }

static const char *severity_name(enum severity severity)
{
    return severity == SEVERITY_ERROR ? "error" : severity == SEVERITY_WARNING ? "warning" : "info";
}

json_t *json_finding(const struct finding *finding)
{
    json_t *object = json_object();
    json_object_set_new(object, "code", json_string(finding_kind(finding->code)->code));
    json_object_set_new(object, "severity", json_string(severity_name(finding->severity)));
    json_object_set_new(object, "file", json_str(finding->place.file));
    json_object_set_new(object, "line", json_size(finding->place.line));
    json_object_set_new(object, "column", json_size(finding->place.column));
    json_object_set_new(object, "subject", json_str(finding->subject));
    json_object_set_new(object, "what", json_str(finding->what));
    json_object_set_new(object, "why", json_str(finding->why));
    json_object_set_new(object, "fix", json_str(finding->fix));
    return object;
}

json_t *json_findings(const findings *f)
{
    json_t *array = json_array();
    for (size_t i = 0; i < f->count; i++)
        json_array_append_new(array, json_finding(&f->items[i]));
    return array;
}
