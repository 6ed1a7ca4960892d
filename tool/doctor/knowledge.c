/* data/failures.yaml into rules, and its patterns into one Vectorscan database that is kept on disk between runs. */
#include <stdio.h>
#include <stdlib.h>

#include "doctor/rules.h"

static const struct {
    const char *name;
    enum rule_role role;
} ROLES[] = {{"box", ROLE_BOX},
             {"traceback", ROLE_TRACEBACK},
             {"chain", ROLE_CHAIN},
             {"error", ROLE_ERROR},
             {"hang", ROLE_HANG}};

struct loading {
    arena *a;
    str path;
    struct knowledge *k;
    findings *f;
};

static bool fault(const struct loading *l, const struct yaml *at, const char *what, str detail)
{
    return finding_fatal(l->f, 3, F005, (struct place){l->path, at ? at->line : 0, at ? at->column : 0},
                         "%s%.*s", what, STR_ARG(detail));
}

static bool read_code(const struct loading *l, const struct yaml *map, enum finding_code *code)
{
    const str name = yaml_str(map, "code");
    return !name.p || finding_by_name(name, code) ||
           fault(l, yaml_get(map, "code"), "there is no finding ", name);
}

static bool read_severity(const struct loading *l, const struct yaml *map, enum severity *severity)
{
    const str name = yaml_str(map, "severity");
    if (!name.p)
        return true;
    if (str_eq(name, S("error")))
        *severity = SEVERITY_ERROR;
    else if (str_eq(name, S("warning")))
        *severity = SEVERITY_WARNING;
    else if (str_eq(name, S("info")))
        *severity = SEVERITY_INFO;
    else
        return fault(l, yaml_get(map, "severity"), "expected error, warning or info, not ", name);
    return true;
}

static bool read_labels(struct loading *l, const struct yaml *list)
{
    struct knowledge *k = l->k;
    if (!list || list->kind != YAML_LIST)
        return fault(l, list, "expected a list of labels", S(""));
    k->labels = arena_array(l->a, struct label, list->count + 1);
    for (size_t i = 0; k->labels && i < list->count; i++) {
        const struct yaml *map = &list->items[i];
        struct label *label = &k->labels[k->label_count++];
        *label = (struct label){.name = yaml_str(map, "label"),
                                .stage = yaml_str(map, "stage"),
                                .why = yaml_str(map, "why"),
                                .fix = yaml_str(map, "fix"),
                                .severity = SEVERITY_ERROR};
        if (!label->name.p || !label->stage.p || !label->why.p || !label->fix.p || !yaml_str(map, "code").p)
            return fault(l, map, "a label needs label, stage, code, why and fix", S(""));
        if (!read_code(l, map, &label->code) || !read_severity(l, map, &label->severity))
            return false;
    }
    return k->labels != NULL;
}

static const struct label *label_by_name(const struct knowledge *k, str name)
{
    for (size_t i = 0; i < k->label_count; i++)
        if (str_eq(k->labels[i].name, name))
            return &k->labels[i];
    return NULL;
}

static bool read_values(struct loading *l, const struct yaml *map, struct rule *rule)
{
    if (!map)
        return true;
    size_t total = 0;
    for (size_t i = 0; i < map->count; i++)
        total += map->items[i].kind == YAML_LIST ? map->items[i].count : 1;
    rule->values = arena_array(l->a, struct rule_value, total);
    for (size_t i = 0; rule->values && map->kind == YAML_MAP && i < map->count; i++) {
        const struct yaml *one = &map->items[i];
        const size_t count = one->kind == YAML_LIST ? one->count : 1;
        for (size_t j = 0; j < count; j++) {
            const struct yaml *text = one->kind == YAML_LIST ? &one->items[j] : one;
            struct rule_value *value = &rule->values[rule->value_count++];
            value->name = map->keys[i].text;
            if (text->kind != YAML_SCALAR || !str_cut(text->text, '*', &value->before, &value->after))
                return fault(l, text, "a value needs one star", S(""));
            value->to_end = str_eq(value->after, S("*"));
        }
    }
    return rule->values != NULL;
}

static bool read_rule(struct loading *l, const struct yaml *map, bool is_failure, struct rule *rule)
{
    *rule = (struct rule){.id = yaml_str(map, "id"),
                          .confidence = yaml_number(map, "confidence", 0.9),
                          .within = (size_t)yaml_number(map, "within", 40),
                          .warns = yaml_bool(map, "warns", false),
                          .what = yaml_str(map, "what"),
                          .why = yaml_str(map, "why"),
                          .fix = yaml_str(map, "fix"),
                          .target = yaml_str(map, "target"),
                          .match = yaml_strs(l->a, map, "match"),
                          .not = yaml_strs(l->a, map, "not"),
                          .follows = yaml_strs(l->a, map, "follows")};
    if (!rule->id.p || rule->match.count == 0)
        return fault(l, map, "expected an id and patterns to match", S(""));
    const str role = yaml_str(map, "role");
    for (size_t i = 0; role.p && i < COUNT(ROLES); i++)
        if (str_eq(role, str_from(ROLES[i].name)))
            rule->role = ROLES[i].role;
    if (role.p && rule->role == ROLE_NONE)
        return fault(l, yaml_get(map, "role"), "there is no role ", role);
    if (!is_failure)
        return true;
    const str name = yaml_str(map, "label");
    rule->label = name.p ? label_by_name(l->k, name) : NULL;
    if (!rule->label)
        return fault(l, map, "expected one of the labels, not ", name);
    if (!rule->what.p)
        return fault(l, map, "a failure needs `what`", S(""));
    rule->code = rule->label->code;
    rule->severity = rule->label->severity;
    rule->why = rule->why.p ? rule->why : rule->label->why;
    rule->fix = rule->fix.p ? rule->fix : rule->label->fix;
    rule->follows_any = strs_has(&rule->follows, S("any"));
    return read_code(l, map, &rule->code) && read_severity(l, map, &rule->severity) &&
           read_values(l, yaml_get(map, "values"), rule);
}

static size_t rule_by_id(const struct knowledge *k, str id)
{
    for (size_t i = 0; i < k->rule_count; i++)
        if (str_eq(k->rules[i].id, id))
            return i;
    return SIZE_MAX;
}

static bool read_set(struct loading *l, const struct yaml *map, const char *key, struct rule_set *out)
{
    const struct strs names = yaml_strs(l->a, map, key);
    for (size_t i = 0; i < names.count; i++) {
        const size_t found = rule_by_id(l->k, names.items[i]);
        if (found == SIZE_MAX)
            return fault(l, yaml_get(map, key), "there is no scene or failure ", names.items[i]);
        if (!arena_room(l->a, out))
            return false;
        out->items[out->count++] = found;
    }
    return true;
}

static bool link_rules(struct loading *l, const struct yaml *list, size_t first)
{
    struct knowledge *k = l->k;
    for (size_t i = 0; i < list->count; i++) {
        const struct yaml *map = &list->items[i];
        struct rule *rule = &k->rules[first + i];
        if (!read_set(l, map, "near", &rule->near) || !read_set(l, map, "before", &rule->before) ||
            !read_set(l, map, "unless", &rule->unless) ||
            !read_set(l, map, "recovered_by", &rule->recovered_by))
            return false;
        for (size_t n = 0; n < rule->near.count; n++) {
            struct rule_set *of = &k->rules[rule->near.items[n]].near_of;
            if (!arena_room(l->a, of))
                return false;
            of->items[of->count++] = first + i;
        }
    }
    return true;
}

/* The matcher's \s, \W and negated classes take line ends as well; a pattern of ours never leaves its line. */
static str keep_on_line(arena *a, str pattern)
{
    struct buf b = {.a = a};
    bool in_class = false;
    for (size_t i = 0; i < pattern.n; i++) {
        const char c = pattern.p[i];
        if (c == '\\' && i + 1 < pattern.n) {
            const char next = pattern.p[++i];
            if (next == 's' && !in_class)
                buf_add(&b, S("[ \\t]"));
            else if (next == 's')
                buf_add(&b, S(" \\t"));
            else if (next == 'W' && !in_class)
                buf_add(&b, S("[^\\w\\n]"));
            else if (next == 'D' && !in_class)
                buf_add(&b, S("[^\\d\\n]"));
            else
                buf_format(&b, "\\%c", next);
            continue;
        }
        buf_char(&b, c);
        if (c == '[' && !in_class) {
            in_class = true;
            if (i + 1 < pattern.n && pattern.p[i + 1] == '^') {
                buf_add(&b, S("^\\n"));
                i++;
            }
        } else if (c == ']') {
            in_class = false;
        }
    }
    return str_copy(a, buf_str(&b));
}

static bool gather_patterns(struct loading *l)
{
    struct knowledge *k = l->k;
    size_t total = 0;
    for (size_t i = 0; i < k->rule_count; i++)
        total += k->rules[i].match.count;
    k->patterns = arena_array(l->a, str, total);
    k->rule_of = arena_array(l->a, size_t, total);
    if (!k->patterns || !k->rule_of)
        return finding_add(l->f, F006, l->path, "too many patterns");
    for (size_t i = 0; i < k->rule_count; i++)
        for (size_t j = 0; j < k->rules[i].match.count; j++) {
            k->rule_of[k->pattern_count] = i;
            k->patterns[k->pattern_count++] = keep_on_line(l->a, k->rules[i].match.items[j]);
        }
    return true;
}

static bool compile(struct loading *l)
{
    struct knowledge *k = l->k;
    const char **texts = arena_array(l->a, const char *, k->pattern_count);
    unsigned *flags = arena_array(l->a, unsigned, k->pattern_count);
    unsigned *ids = arena_array(l->a, unsigned, k->pattern_count);
    for (size_t i = 0; texts && flags && ids && i < k->pattern_count; i++) {
        texts[i] = k->patterns[i].p;
        flags[i] = HS_FLAG_MULTILINE;
        ids[i] = (unsigned)i;
    }
    hs_compile_error_t *error = NULL;
    if (!texts || !flags || !ids)
        return finding_add(l->f, F006, l->path, "too many patterns");
    if (hs_compile_multi(texts, flags, ids, (unsigned)k->pattern_count, HS_MODE_BLOCK, NULL, &k->database,
                         &error) == HS_SUCCESS)
        return true;
    const size_t at = error && error->expression >= 0 ? (size_t)error->expression : 0;
    const str pattern = at < k->pattern_count ? k->patterns[at] : S("");
    (void)finding_fatal(l->f, 3, F005, (struct place){.file = l->path}, "pattern '%.*s' of %.*s: %s",
                        STR_ARG(pattern), STR_ARG(k->rules[k->rule_of[at]].id),
                        error ? error->message : "out of memory");
    (void)hs_free_compile_error(error);
    return false;
}

/* Where the compiled database is kept: by what went into it, so a stale one is never found. Absent: no cache folder. */
static str cache_path(arena *a, const struct knowledge *k, findings *f)
{
    const str folder = cache_dir(a, f);
    if (!folder.p)
        return folder;
    hs_platform_info_t platform = {0};
    (void)hs_populate_platform(&platform);
    struct buf key = {.a = a};
    buf_format(&key, "%s %u %llu\n", hs_version(), platform.tune, platform.cpu_features);
    for (size_t i = 0; i < k->pattern_count; i++)
        buf_format(&key, "%.*s\n", STR_ARG(k->patterns[i]));
    const str digest = sha256_hex(a, span_from_str(buf_str(&key)));
    return str_format(a, "%.*s/doctor/%.*s.hs", STR_ARG(folder), STR_ARG(digest));
}

static bool load_cached(arena *a, struct knowledge *k, str path)
{
    findings *quiet = findings_new(a); /* a missing or broken cache is no news to anyone */
    span bytes;
    if (!file_exists(path) || !file_read(a, path, 256 << 20, &bytes, quiet))
        return false;
    return hs_deserialize_database((const char *)bytes.p, bytes.n, &k->database) == HS_SUCCESS;
}

static void store_cached(arena *a, const struct knowledge *k, str path)
{
    findings *quiet = findings_new(a);
    char *bytes = NULL;
    size_t size = 0;
    if (hs_serialize_database(k->database, &bytes, &size) != HS_SUCCESS)
        return;
    if (dir_make(path_dir(path), quiet))
        (void)file_write(path, (span){(const uint8_t *)bytes, size}, quiet);
    free(bytes);
}

static bool scene(struct loading *l, const char *id, size_t *out)
{
    *out = rule_by_id(l->k, str_from(id));
    return *out != SIZE_MAX || fault(l, NULL, "the program needs a scene named ", str_from(id));
}

struct knowledge *knowledge_load(arena *a, findings *f)
{
    struct knowledge *k = arena_array(a, struct knowledge, 1);
    struct loading l = {.a = a, .k = k, .f = f};
    struct yaml root;
    if (!k || !data_yaml(a, "failures.yaml", &root, &l.path, f) ||
        !read_labels(&l, yaml_get(&root, "labels")))
        return NULL;
    const struct yaml *scenes = yaml_get(&root, "scenes"), *failures = yaml_get(&root, "failures");
    if (!scenes || !failures || scenes->kind != YAML_LIST || failures->kind != YAML_LIST) {
        (void)fault(&l, &root, "expected lists of scenes and failures", S(""));
        return NULL;
    }
    k->rules = arena_array(a, struct rule, scenes->count + failures->count);
    for (size_t i = 0; k->rules && i < scenes->count + failures->count; i++) {
        const bool is_failure = i >= scenes->count;
        const struct yaml *map = is_failure ? &failures->items[i - scenes->count] : &scenes->items[i];
        if (!read_rule(&l, map, is_failure, &k->rules[i]))
            return NULL;
        k->rule_count++;
    }
    if (!k->rules || !link_rules(&l, failures, scenes->count) || !scene(&l, "pip-install", &k->pip_install) ||
        !scene(&l, "install-done", &k->install_done) || !scene(&l, "install-failed", &k->install_failed) ||
        !scene(&l, "app-running", &k->app_running) || !scene(&l, "retried", &k->retried) ||
        !gather_patterns(&l))
        return NULL;
    const str cached = cache_path(a, k, f);
    if (cached.p && load_cached(a, k, cached))
        return k;
    if (!compile(&l))
        return NULL;
    if (cached.p)
        store_cached(a, k, cached);
    return k;
}

void knowledge_free(struct knowledge *k)
{
    if (k)
        (void)hs_free_database(k->database);
}

size_t knowledge_pattern_count(const struct knowledge *k) { return k->pattern_count; }
str knowledge_pattern(const struct knowledge *k, size_t i) { return k->patterns[i]; }
