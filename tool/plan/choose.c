/* The choice: one Python and one torch of the target, and for each extension the best candidate under them. All combinations are
 * few (a target offers a handful of each), so each is tried and the cheapest wins; what the app declares is kept as long as
 * nothing becomes impossible by it. */
#include "plan/choose.h"

#include "plan/judge.h"

enum { SETTINGS_MOST = 64, ALTERNATIVES_MOST = 4 };

struct outcome {
    struct setting setting;
    struct candidate_list *candidates; /* one list a need */
    unsigned cost;
    size_t impossible; /* needs without any way */
    size_t spoiled;    /* needs whose own wheel in the app has a tag for another Python */
    unsigned kept;     /* of what the app declares: its Python, its torch */
};

/* ---- What the app declares ---- */

static bool find_declared(struct chooser *w)
{
    const struct front_value *python = &w->space->front.python_version;
    if (python->text.p) {
        w->declared_python = major_minor(python->text);
        if (!python->quoted && str_eq(python->text, S("3.1"))) /* 3.10 without quotes is the number 3.1 */
            w->declared_python = S("3.10");
    }
    for (size_t i = 0; i < w->space->requirements.count; i++) {
        const struct requirement_line *line = &w->space->requirements.items[i];
        struct version pin;
        if (line->kind != REQUIREMENT_NAMED || !line->applies || !str_eq(line->name, S("torch")))
            continue;
        w->torch_line = line;
        if (specs_pin(&line->requirement.specs, &pin))
            w->declared_torch = version_public(w->a, &pin);
    }
    return true;
}

/* Whether the app's torch line takes the version; true without a line. */
static bool torch_allowed(struct chooser *w, str torch)
{
    struct version version;
    return !w->torch_line || !version_parse(w->a, torch, &version) ||
           specs_contain(&w->torch_line->requirement.specs, &version, true);
}

/* Whether the app's other pins leave the Python: data/limits.yaml knows releases without wheels for it. */
static bool python_allowed(struct chooser *w, str python)
{
    const struct yaml *rows = yaml_get(&w->limits, "pythons");
    for (size_t i = 0; rows && i < rows->count; i++)
        for (size_t k = 0; k < w->space->requirements.count; k++) {
            const struct yaml *row = &rows->items[i];
            const struct requirement_line *line = &w->space->requirements.items[k];
            struct specs limited = {0};
            struct version pin;
            size_t at = 0;
            const char *expected = NULL;
            if (line->kind != REQUIREMENT_NAMED || !line->applies ||
                !str_eq(line->name, yaml_str(row, "distribution")) ||
                !specs_pin(&line->requirement.specs, &pin) ||
                !specs_parse(w->a, yaml_str(row, "versions"), &limited, &at, &expected) ||
                !specs_contain(&limited, &pin, true))
                continue;
            const struct strs pythons = yaml_strs(w->a, row, "pythons");
            if (!strs_has(&pythons, python))
                return false;
        }
    return true;
}

/* ---- Settings ---- */

struct offers { /* what can be combined */
    struct strs pythons;
    const struct torch_offer *torch;
    size_t torch_count;
};

static bool uses_torch(const struct chooser *w)
{
    for (size_t i = 0; i < w->needs->count; i++)
        if (!w->needs->items[i].extension || w->needs->items[i].extension->torch_abi)
            return true;
    return w->torch_line != NULL || w->space->imports_torch || w->needs->count > 0;
}

static struct torch_offer *known_torch(struct chooser *w, str version)
{
    const struct torch_offer *taken = target_torch(w->target, version);
    struct torch_offer *offer = arena_array(w->a, struct torch_offer, 1);
    if (!offer)
        return NULL;
    *offer = taken ? *taken : (struct torch_offer){.version = version, .cuda = w->target->cuda};
    const struct yaml *known = yaml_get(w->target->raw, "torch_known");
    for (size_t i = 0; !taken && known && i < known->count; i++)
        if (str_eq(torch_minor(yaml_str(&known->items[i], "version")), torch_minor(version)))
            offer->cuda = yaml_str(&known->items[i], "cuda");
    return offer;
}

static bool find_offers(struct chooser *w, struct offers *out)
{
    const struct target *t = w->target;
    const struct plan_options *o = w->options;
    *out = (struct offers){0};
    if (o->python.p) {
        const str python = major_minor(o->python);
        bool taken = !t->pythons.count;
        for (size_t i = 0; i < t->pythons.count; i++)
            taken |= str_eq(major_minor(t->pythons.items[i]), python);
        if (!taken)
            (void)finding_at(w->f, F132, (struct place){0}, python, "%.*s has no Python %.*s: it offers %.*s",
                             STR_ARG(t->name), STR_ARG(python),
                             STR_ARG(str_join(w->a, &t->pythons, S(", "))));
        (void)strs_add(w->a, &out->pythons, python);
    } else {
        for (size_t i = 0; i < t->pythons.count; i++)
            if (!strs_has(&out->pythons, major_minor(t->pythons.items[i])))
                (void)strs_add(w->a, &out->pythons, major_minor(t->pythons.items[i]));
        if (!out->pythons.count && w->declared_python.p)
            (void)strs_add(w->a, &out->pythons, w->declared_python);
        if (!out->pythons.count)
            (void)strs_add(w->a, &out->pythons, t->python_default.p ? t->python_default : S("3.12"));
    }
    if (!uses_torch(w))
        return true;
    if (o->torch.p) {
        out->torch = known_torch(w, o->torch);
        out->torch_count = out->torch ? 1 : 0;
        if (t->torch_count && !target_torch(t, o->torch))
            (void)finding_at(w->f, F133, (struct place){0}, S("torch"), "%.*s does not take torch %.*s",
                             STR_ARG(t->name), STR_ARG(o->torch));
    } else if (t->torch_count) {
        out->torch = t->torch;
        out->torch_count = t->torch_count;
    } else {
        out->torch = known_torch(w, w->declared_torch.p  ? w->declared_torch
                                    : t->torch_default.p ? t->torch_default
                                                         : S("2.11.0"));
        out->torch_count = out->torch ? 1 : 0;
    }
    return true;
}

static bool python_minor(str python, unsigned *minor)
{
    str major, rest, tail;
    uint64_t n = 0;
    (void)str_cut(python, '.', &major, &rest);
    (void)str_cut(rest, '.', &rest, &tail);
    if (!str_eq(major, S("3")) || !str_to_u64(rest, &n) || n > 99)
        return false;
    *minor = (unsigned)n;
    return true;
}

/* ---- One setting ---- */

static bool own_wheel_spoiled(const struct need *need, const struct candidate_list *list)
{
    bool own = false, fits = false;
    (void)need;
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].obtained && list->items[i].file.p) {
            own = true;
            fits |= list->items[i].fit != FIT_NO;
        }
    return own && !fits;
}

static bool try_setting(struct chooser *w, struct outcome *o)
{
    o->candidates = arena_array(w->a, struct candidate_list, w->needs->count);
    for (size_t i = 0; o->candidates && i < w->needs->count; i++) {
        const struct need *need = &w->needs->items[i];
        struct candidate_list *list = &o->candidates[i];
        if (!candidates_find(w, &o->setting, need, list))
            return false;
        const unsigned cost = list->count ? candidate_cost(need, &list->items[0]) : COST_NONE;
        o->cost += cost;
        o->impossible += cost >= COST_NONE;
        o->spoiled += own_wheel_spoiled(need, list);
    }
    return o->candidates || !w->needs->count;
}

/* Fewer impossible needs first; then what the app declares and brings itself; then the cheaper. Ties keep the target's order. */
static bool better(const struct outcome *a, const struct outcome *b)
{
    if (a->impossible != b->impossible)
        return a->impossible < b->impossible;
    if (a->spoiled != b->spoiled)
        return a->spoiled < b->spoiled;
    if (a->kept != b->kept)
        return a->kept > b->kept;
    return a->cost < b->cost;
}

static bool choose_setting(struct chooser *w, struct outcome *best, struct outcome *cheapest)
{
    struct offers offers;
    if (!find_offers(w, &offers))
        return false;
    struct outcome none = {.impossible = SIZE_MAX};
    *best = *cheapest = none;
    bool any_python = false;
    for (size_t p = 0; p < offers.pythons.count; p++)
        any_python |= python_allowed(w, offers.pythons.items[p]);
    if (!any_python)
        (void)finding_at(w->f, F136, (struct place){0}, S("python"),
                         "the app's pins leave none of the Pythons that %.*s offers (%.*s)",
                         STR_ARG(w->target->name), STR_ARG(str_join(w->a, &offers.pythons, S(", "))));
    size_t tried = 0;
    for (size_t p = 0; p < offers.pythons.count; p++) {
        const str python = offers.pythons.items[p];
        struct tag_list *tags = arena_array(w->a, struct tag_list, 1);
        unsigned minor = 0;
        if ((any_python && !python_allowed(w, python)) || !python_minor(python, &minor))
            continue;
        if (!tags || !target_tags(w->a, w->target, minor, tags))
            return false;
        for (size_t t = 0; t < (offers.torch_count ? offers.torch_count : 1) && tried < SETTINGS_MOST;
             t++, tried++) {
            struct outcome o = {
                .setting = {.target = w->target, .python = python, .minor = minor, .tags = tags}};
            if (offers.torch_count) {
                o.setting.torch = offers.torch[t].version;
                o.setting.cuda = offers.torch[t].cuda;
            }
            o.kept = !w->declared_python.p || str_eq(w->declared_python, python);
            o.kept += !o.setting.torch.p || torch_allowed(w, o.setting.torch);
            if (!try_setting(w, &o))
                return false;
            if (better(&o, best))
                *best = o;
            if (o.impossible < cheapest->impossible ||
                (o.impossible == cheapest->impossible && o.cost < cheapest->cost))
                *cheapest = o;
        }
    }
    return best->impossible != SIZE_MAX;
}

/* ---- Attention ---- */

static str environment_value(const struct chooser *w, str name, struct place *place)
{
    str value = {NULL, 0};
    for (size_t i = 0; i < w->space->environment.count; i++)
        if (str_eq(w->space->environment.items[i].name, name)) {
            value = w->space->environment.items[i].value;
            *place = w->space->environment.items[i].place;
        }
    return value;
}

static const struct plan_item *item_of_backend(const struct plan *plan, str backend)
{
    for (size_t i = 0; i < plan->count; i++) {
        const struct extension *e = plan->items[i].need->extension;
        if (e && e->attention && str_eq(e->backend, backend))
            return &plan->items[i];
    }
    return NULL;
}

static bool is_installed(const struct plan_item *item)
{
    return item && item->chosen.strategy != STRATEGY_UNNEEDED && item->chosen.strategy != STRATEGY_NONE;
}

/* platform notes' order: an explicit choice that can run; flash-attention 2 with a fitting wheel; xformers; else torch's own. */
static void choose_attention(struct chooser *w, struct plan *plan)
{
    bool any = false;
    for (size_t i = 0; i < plan->count; i++)
        any |= plan->items[i].need->extension && plan->items[i].need->extension->attention;
    struct place place = {0};
    const str asked = environment_value(w, S("ATTN_BACKEND"), &place);
    if (!any && !asked.p)
        return;
    static const char *const ORDER[] = {"flash_attn", "xformers"};
    if (asked.p && (str_eq(asked, S("sdpa")) || str_eq(asked, S("naive")) ||
                    is_installed(item_of_backend(plan, asked)))) {
        plan->attention = asked;
        plan->attention_reason = S("the app asks for it, and it runs on the target");
    }
    for (size_t i = 0; i < COUNT(ORDER) && !plan->attention.p; i++)
        if (is_installed(item_of_backend(plan, str_from(ORDER[i])))) {
            plan->attention = str_from(ORDER[i]);
            plan->attention_reason =
                S("its sparse and varlen calls are needed by most 3D models, and a source fits the target");
        }
    if (!plan->attention.p) {
        plan->attention = S("sdpa");
        plan->attention_reason =
            S("torch's own: nothing to install; it has no varlen interface, so models with sparse attention "
              "need flash_attn or xformers");
    }
    /* The others are then not imported, as long as nothing imports them at start. */
    for (size_t i = 0; i < plan->count; i++) {
        struct plan_item *item = &plan->items[i];
        const struct extension *e = item->need->extension;
        const bool brought = item->need->obtained.count &&
                             item->need->obtained.items[0].how != OBTAINED_NONE &&
                             item->chosen.strategy == STRATEGY_WHEEL;
        if (!e || !e->attention || item->need->needed_at_start || str_eq(e->backend, plan->attention) ||
            brought)
            continue;
        if (item->chosen.strategy != STRATEGY_UNNEEDED)
            item->chosen =
                (struct candidate){.strategy = STRATEGY_UNNEEDED, .source = SOURCE_FILE, .url = S("")};
        item->chosen.reason =
            str_format(w->a, "another attention back end is used: %.*s", STR_ARG(plan->attention));
    }
}

/* ---- Findings of the choice ---- */

static void say_choice(struct chooser *w, const struct plan *plan, const struct outcome *best,
                       const struct outcome *cheapest)
{
    const struct front_value *declared = &w->space->front.python_version;
    if (w->declared_python.p && !str_eq(w->declared_python, plan->python) && !w->options->python.p)
        (void)finding_at(
            w->f, F134, declared->place, S("python_version"), "Python %.*s is declared; with %.*s %s",
            STR_ARG(w->declared_python), STR_ARG(plan->python),
            plan->count ? "every wheel that the app brings or needs fits better" : "the target can start it");
    else if (w->declared_python.p && cheapest->cost + 20 < best->cost &&
             !str_eq(cheapest->setting.python, plan->python))
        (void)finding_at(w->f, F134, declared->place, S("python_version"),
                         "Python %.*s would let more extensions come from wheels than %.*s",
                         STR_ARG(cheapest->setting.python), STR_ARG(plan->python));
    const struct place torch_place = w->torch_line ? w->torch_line->place : (struct place){0};
    if (w->torch_line && plan->torch.p && !torch_allowed(w, plan->torch))
        (void)finding_at(w->f, F135, torch_place, S("torch"),
                         "the app asks for %.*s; the plan rests on torch %.*s", STR_ARG(w->torch_line->text),
                         STR_ARG(plan->torch));
    else if (w->torch_line && plan->torch.p && cheapest->cost + 20 < best->cost &&
             !str_eq(cheapest->setting.torch, plan->torch))
        (void)finding_at(w->f, F135, torch_place, S("torch"),
                         "torch %.*s would let more extensions come from wheels than %.*s",
                         STR_ARG(cheapest->setting.torch), STR_ARG(plan->torch));
}

static str way_out(struct chooser *w, const struct plan *plan, const struct plan_item *item)
{
    const struct extension *e = item->need->extension;
    const struct target *t = w->target;
    struct buf b = {.a = w->a};
    if (e && e->attention && e->instead.count)
        buf_format(&b, "switch the attention back end to %.*s, which has a wheel here; or ",
                   STR_ARG(e->instead.items[0]));
    else if (e && e->instead.count)
        buf_format(&b, "%.*s does the same job for most callers; or ",
                   STR_ARG(str_join(w->a, &e->instead, S(", "))));
    const struct build_recipe *recipe = NULL;
    for (size_t i = 0; i < item->alternatives.count && !recipe; i++)
        recipe = item->alternatives.items[i].recipe;
    buf_format(
        &b,
        "build a wheel where a CUDA toolkit is (pip wheel --no-build-isolation --no-deps %.*s, with "
        "TORCH_CUDA_ARCH_LIST set for %.*s, Python %.*s and torch %.*s) and commit it to the repository",
        STR_ARG(recipe ? recipe->url : item->need->name), STR_ARG(t->name), STR_ARG(plan->python),
        STR_ARG(plan->torch.p ? plan->torch : S("of the app")));
    return buf_str(&b);
}

static void say_items(struct chooser *w, struct plan *plan)
{
    for (size_t i = 0; i < plan->count; i++) {
        struct plan_item *item = &plan->items[i];
        const struct need *need = item->need;
        const struct candidate *c = &item->chosen;
        if (c->strategy == STRATEGY_NONE) {
            struct finding *finding = finding_at(w->f, F221, need->place, need->name, "%.*s: %.*s",
                                                 STR_ARG(need->name), STR_ARG(c->reason));
            finding->fix = way_out(w, plan, item);
        } else if (c->strategy == STRATEGY_JIT && need->compiled != COMPILED_CPP) { /* C++ takes seconds */
            (void)finding_at(w->f, F224, need->place, need->name, "%.*s is %.*s", STR_ARG(need->name),
                             STR_ARG(c->reason));
        } else if (c->strategy == STRATEGY_WHEEL && c->fit != FIT_YES) {
            (void)finding_at(w->f, F222, need->place, need->name, "%.*s: %.*s", STR_ARG(c->file),
                             STR_ARG(c->reason));
        }
    }
}

static bool fill_items(struct chooser *w, const struct outcome *o, struct plan *plan)
{
    plan->items = arena_array(w->a, struct plan_item, w->needs->count);
    if (!plan->items && w->needs->count)
        return false;
    for (size_t i = 0; i < w->needs->count; i++) {
        struct plan_item *item = &plan->items[plan->count++];
        const struct candidate_list *list = &o->candidates[i];
        item->need = &w->needs->items[i];
        const bool any = list->count && candidate_cost(item->need, &list->items[0]) < COST_NONE;
        if (any) {
            item->chosen = list->items[0];
        } else {
            item->chosen = (struct candidate){.strategy = STRATEGY_NONE, .source = SOURCE_FILE, .url = S("")};
            item->chosen.reason =
                list->count
                    ? str_format(w->a, "no source fits Python %.*s and torch %.*s; the nearest: %.*s",
                                 STR_ARG(plan->python), STR_ARG(plan->torch), STR_ARG(list->items[0].reason))
                    : S("nothing is known that provides it");
        }
        item->alternatives.items = list->items + any;
        item->alternatives.count = list->count - any;
        if (item->alternatives.count > ALTERNATIVES_MOST)
            item->alternatives.count = ALTERNATIVES_MOST;
    }
    return true;
}

static str reason_of_python(struct chooser *w, const struct plan *plan)
{
    if (w->options->python.p)
        return S("asked for");
    if (w->declared_python.p && str_eq(w->declared_python, plan->python))
        return S("declared in README.md");
    return w->needs->count ? S("lets the extensions come from the best sources") : S("the target's newest");
}

static str reason_of_torch(struct chooser *w, const struct plan *plan)
{
    if (w->options->torch.p)
        return S("asked for");
    if (w->torch_line && torch_allowed(w, plan->torch))
        return str_format(w->a, "fits %.*s of %.*s", STR_ARG(w->torch_line->text),
                          STR_ARG(w->torch_line->place.file));
    return w->needs->count ? S("lets the extensions come from the best sources")
                           : S("what the target installs");
}

static bool needs_pin(const struct plan *plan)
{
    for (size_t i = 0; i < plan->count; i++)
        if (plan->items[i].chosen.strategy == STRATEGY_WHEEL ||
            plan->items[i].chosen.strategy == STRATEGY_COMMITTED ||
            plan->items[i].chosen.strategy == STRATEGY_JIT)
            return true;
    return false;
}

bool plan_make(arena *a, const struct catalogue *c, struct sources *sources, const struct target *t,
               const struct space *s, const struct need_list *needs, const struct plan_options *options,
               struct plan *out, findings *f)
{
    struct chooser w = {.a = a,
                        .catalogue = c,
                        .sources = sources,
                        .target = t,
                        .space = s,
                        .needs = needs,
                        .options = options,
                        .f = f};
    str path;
    if (!data_yaml(a, "limits.yaml", &w.limits, &path, f) || !find_declared(&w))
        return false;
    if (!options->offline && options->http)
        sources_refresh(a, c, sources, needs, options->http, f);
    struct outcome best, cheapest;
    struct plan plan = {.target = t, .space = s, .offline = options->offline, .snapshot_date = sources->date};
    if (!choose_setting(&w, &best, &cheapest))
        return finding_fatal(f, 3, F136, (struct place){0},
                             "no combination of Python and torch could be tried");
    plan.python = best.setting.python;
    plan.torch = best.setting.torch;
    plan.cuda = best.setting.cuda;
    if (!fill_items(&w, &best, &plan))
        return finding_fatal(f, 3, F006, (struct place){0}, "the plan does not fit the memory limit");
    choose_attention(&w, &plan);
    plan.python_reason = reason_of_python(&w, &plan);
    if (plan.torch.p)
        plan.torch_reason = reason_of_torch(&w, &plan);
    if (needs_pin(&plan)) {
        plan.pin_python = plan.python;
        plan.pin_torch = plan.torch;
    } else {
        plan.pin_python = w.declared_python.p ? plan.python : w.declared_python;
        plan.pin_torch = w.declared_torch.p ? plan.torch : w.declared_torch;
    }
    say_choice(&w, &plan, &best, &cheapest);
    say_items(&w, &plan);
    if (!plan_edits(&w, &plan))
        return finding_fatal(f, 3, F006, (struct place){0}, "the edits do not fit the memory limit");
    *out = plan;
    return true;
}
