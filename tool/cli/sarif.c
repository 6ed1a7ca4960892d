/* Findings as SARIF 2.1.0 (OASIS), with the rules that occur. */
#include "cli/cli.h"

static json_t *text_object(str text)
{
    json_t *object = json_object();
    json_object_set_new(object, "text", json_str(text.p ? text : S("")));
    return object;
}

static json_t *rule_of(enum finding_code code)
{
    const struct finding_kind *kind = finding_kind(code);
    json_t *rule = json_object();
    json_object_set_new(rule, "id", json_string(kind->code));
    json_object_set_new(rule, "shortDescription", text_object(str_from(kind->title)));
    json_object_set_new(rule, "fullDescription", text_object(str_from(kind->why)));
    json_object_set_new(rule, "help", text_object(str_from(kind->fix)));
    return rule;
}

static json_t *location_of(const struct place *place)
{
    json_t *artifact = json_object(), *physical = json_object(), *location = json_object();
    json_object_set_new(artifact, "uri", json_str(place->file));
    json_object_set_new(physical, "artifactLocation", artifact);
    if (place->line) {
        json_t *region = json_object();
        json_object_set_new(region, "startLine", json_size(place->line));
        if (place->column)
            json_object_set_new(region, "startColumn", json_size(place->column));
        json_object_set_new(physical, "region", region);
    }
    json_object_set_new(location, "physicalLocation", physical);
    return location;
}

static json_t *result_of(struct cli *cli, const struct finding *item)
{
    static const char *const LEVELS[] = {"note", "warning", "error"};
    json_t *result = json_object();
    const str message = str_format(cli->arena, "%.*s. %.*s Fix: %.*s", STR_ARG(item->what),
                                   STR_ARG(item->why), STR_ARG(item->fix));
    json_object_set_new(result, "ruleId", json_string(finding_kind(item->code)->code));
    json_object_set_new(result, "level", json_string(LEVELS[item->severity]));
    json_object_set_new(result, "message", text_object(message));
    json_t *locations = json_array();
    if (item->place.file.p)
        json_array_append_new(locations, location_of(&item->place));
    json_object_set_new(result, "locations", locations);
    return result;
}

json_t *sarif_report(struct cli *cli)
{
    const findings *f = cli->findings;
    json_t *rules = json_array(), *results = json_array();
    bool *seen = arena_array(cli->arena, bool, FINDING_CODES);
    for (size_t i = 0; i < f->count; i++) {
        if (seen && !seen[f->items[i].code])
            json_array_append_new(rules, rule_of(f->items[i].code));
        if (seen)
            seen[f->items[i].code] = true;
        json_array_append_new(results, result_of(cli, &f->items[i]));
    }
    json_t *driver = json_object(), *tool = json_object(), *run = json_object(), *runs = json_array();
    json_object_set_new(driver, "name", json_string("felloe"));
    json_object_set_new(driver, "version", json_string(FELLOE_VERSION));
    json_object_set_new(driver, "rules", rules);
    json_object_set_new(tool, "driver", driver);
    json_object_set_new(run, "tool", tool);
    json_object_set_new(run, "columnKind", json_string("unicodeCodePoints"));
    json_object_set_new(run, "results", results);
    json_array_append_new(runs, run);
    json_t *log = json_object();
    json_object_set_new(log, "$schema", json_string("https://json.schemastore.org/sarif-2.1.0.json"));
    json_object_set_new(log, "version", json_string("2.1.0"));
    json_object_set_new(log, "runs", runs);
    return log;
}
