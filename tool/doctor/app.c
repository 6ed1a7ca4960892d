/* The app's folder beside its log: which line there brought what a cause speaks of. */
#include "doctor/doctor.h"
#include "space/space.h"

/* Whether text names the distribution, "-", "_" and "." being the same to pip. */
static bool speaks_of(str text, str name)
{
    for (size_t i = 0; name.n >= 3 && i + name.n <= text.n; i++) {
        size_t n = 0;
        while (n < name.n) {
            const char x = text.p[i + n], y = name.p[n];
            const bool dashes = (x == '-' || x == '_' || x == '.') && (y == '-' || y == '_' || y == '.');
            if (!dashes && (x | 0x20) != (y | 0x20))
                break;
            n++;
        }
        if (n == name.n)
            return true;
    }
    return false;
}

static bool about(const struct cause *c, str name)
{
    return speaks_of(c->excerpt, name) || speaks_of(c->what, name);
}

static void add_place(arena *a, struct cause *c, const struct place *place, str text)
{
    c->fix = str_format(a, "%.*s It comes from %.*s:%zu: %.*s", STR_ARG(c->fix), STR_ARG(place->file),
                        place->line, STR_ARG(str_utf8(a, text)));
}

static void locate(arena *a, const struct space *app, struct cause *c)
{
    for (size_t i = 0; i < app->requirements.count; i++) {
        const struct requirement_line *line = &app->requirements.items[i];
        if (line->name.n && about(c, line->name)) {
            add_place(a, c, &line->place, line->text);
            return;
        }
    }
    for (size_t i = 0; i < app->installs.count; i++) {
        const struct install_call *call = &app->installs.items[i];
        for (size_t j = 0; j < call->commands.count; j++)
            for (size_t k = 0; k < call->commands.items[j].targets.count; k++)
                if (about(c, path_base(call->commands.items[j].targets.items[k]))) {
                    add_place(a, c, &call->place, call->text);
                    return;
                }
    }
}

bool doctor_locate(arena *a, str dir, struct cause_list *causes, findings *f)
{
    struct space app;
    if (!space_read(a, dir, &app, f))
        return false;
    for (size_t i = 0; i < causes->count; i++)
        locate(a, &app, &causes->items[i]);
    return true;
}
