/* README.md's front matter: YAML between two lines of three dashes at the very top. */
#include "space/private.h"

static struct front_value value_of(const struct yaml *map, str file, const char *key)
{
    const struct yaml *value = yaml_get(map, key);
    if (!value || value->kind != YAML_SCALAR)
        return (struct front_value){0};
    return (struct front_value){
        .text = value->text, .quoted = !value->plain, .place = {file, value->line, value->column}};
}

static bool is_fence(str line) { return str_eq(str_trim_right(line), S("---")); }

bool front_read(arena *a, str dir, const struct strs *files, struct front_matter *out, findings *f)
{
    span bytes;
    *out = (struct front_matter){0};
    for (size_t i = 0; i < files->count; i++)
        if (str_eq_nocase(files->items[i], S("readme.md")) &&
            (!out->file.p || str_eq(files->items[i], S("README.md"))))
            out->file = files->items[i];
    const size_t before = f->count;
    if (!out->file.p)
        return false;
    if (!file_read(a, path_join(a, dir, out->file), FILE_LIMIT_TEXT, &bytes, f))
        return findings_relabel(f, before, out->file);
    str text = str_from_span(bytes), line;
    if (str_starts(text, S("\xef\xbb\xbf"))) /* a byte order mark */
        text = str_from_index(text, 3);
    str rest = text;
    if (!str_next_line(&rest, &line) || !is_fence(line))
        return true; /* a README without front matter */
    const char *start = rest.p;
    out->first_line = 1;
    for (size_t number = 2; str_next_line(&rest, &line); number++) {
        if (!is_fence(line))
            continue;
        out->last_line = number;
        const str yaml = {start, (size_t)(line.p - start)};
        out->present = yaml_parse(a, yaml, out->file, 2, F101, &out->map, f);
        break;
    }
    if (!out->last_line)
        return finding_fatal(f, 3, F101, (struct place){out->file, 1, 1},
                             "the front matter that begins here has no closing '---'");
    if (!out->present)
        return false;
    if (out->map.kind != YAML_MAP && out->map.kind != YAML_NULL)
        return finding_fatal(f, 3, F101, (struct place){out->file, 2, 1},
                             "front matter: expected 'key: value' lines");
    const struct yaml *map = &out->map;
    out->sdk = value_of(map, out->file, "sdk");
    out->sdk_version = value_of(map, out->file, "sdk_version");
    out->python_version = value_of(map, out->file, "python_version");
    out->app_file = value_of(map, out->file, "app_file");
    out->hardware = value_of(map, out->file, "hardware");
    out->suggested_hardware = value_of(map, out->file, "suggested_hardware");
    out->startup_duration_timeout = value_of(map, out->file, "startup_duration_timeout");
    out->short_description = value_of(map, out->file, "short_description");
    return true;
}
