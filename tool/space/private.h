/* space/private.h: private to the folder: what one Python module says by itself, before modules are put together. */
#ifndef FELLOE_SPACE_PRIVATE_H
#define FELLOE_SPACE_PRIVATE_H

#include "space/space.h"

enum {
    PYTHON_FILE_LIMIT = 8 << 20, /* a larger source is generated data, and is left out with a finding */
    PYTHON_TOTAL_LIMIT = 256 << 20,
    FILES_MOST = 20000,
    DEPTH_MOST = 200, /* nesting of a source that is still followed */
};

enum event_kind { EVENT_IMPORT, EVENT_INSTALL, EVENT_ENV, EVENT_NOTE, EVENT_CALL };

/* One thing that happens when the module, or a function of it, runs; in source order within its function. */
struct event {
    enum event_kind kind;
    size_t index;    /* in the list of its kind */
    size_t function; /* index of the innermost function, SIZE_MAX: module level */
    unsigned guard;
};
struct event_list {
    struct event *items;
    size_t count, capacity;
};

struct py_call { /* a call of a plain name, for 'who runs what when the app starts' */
    str name;    /* resolved through the module's imports: "install", "setup_env.install" */
};
struct py_call_list {
    struct py_call *items;
    size_t count, capacity;
};

struct py_function {
    str name;
    size_t outer; /* the function around it, SIZE_MAX: none */
    bool in_class;
    bool starts_process, installs, empties_cache;
    struct place process_place;
};
struct py_function_list {
    struct py_function *items;
    size_t count, capacity;
};

struct sized_list { /* of indices */
    size_t *items;
    size_t count, capacity;
};

struct
    gpu_record { /* a decorated function, with its index among the module's functions (SIZE_MAX: not one of them) */
    struct gpu_function gpu;
    size_t function;
};
struct gpu_record_list {
    struct gpu_record *items;
    size_t count, capacity;
};

/* f(g(x)) or .click(f).then(g): counts when both turn out to be GPU functions. */
struct chain {
    str first, second;
    struct place place;
    str text;
};
struct chain_list {
    struct chain *items;
    size_t count, capacity;
};

struct module_facts {
    str path, name;
    str source;
    bool read;
    bool sketched; /* calls inside functions were left out */
    bool parsed_with_errors;
    struct place first_error;
    size_t line_count;
    struct py_import_list imports;
    struct install_call_list installs;
    struct env_setting_list environment;
    struct note_list notes;
    struct gpu_record_list gpu;
    struct py_function_list functions;
    struct py_call_list calls;
    struct event_list events;
    struct chain_list chains;
    struct strs paths_added; /* sys.path.insert(0, "x"): constant folders */
};

struct sketch {
    str text;   /* every kept statement at its line and column; the source itself when nothing is left out */
    bool whole; /* nothing but statements of absurd size was left out */
    size_t line_count;
    size_t fault; /* the line of a bracket or string that never ends; 0: none */
};
/* What of a source is worth parsing (sketch.c). With `whole`, all that can be. Linear in the source. False past the arena's limit. */
bool python_sketch(arena *a, str source, bool whole, struct sketch *out);

/* Reads a module's source into facts; memory from a. Without `whole`, what functions call by name is left out when nothing in the
 * module asks for it, and m->sketched says so. False past the arena's limit. Thread-safe between different arenas. */
bool python_read(arena *a, str source, bool whole, struct module_facts *m);

/* One shell line or argv into commands; directory is that of the call. Unknown words are "?". */
bool shell_commands(arena *a, str line, str directory, struct install_command_list *out,
                    struct env_entry **env, size_t *env_count);
bool argv_command(arena *a, const struct strs *words, str directory, struct install_command_list *out);

bool front_read(arena *a, str dir, const struct strs *files, struct front_matter *out, findings *f);
void vendored_read(arena *a, str dir, const struct strs *files, struct vendored_list *out, findings *f);
void scripts_read(arena *a, str dir, const struct strs *files, struct script_list *out, findings *f);
str dotted_path(arena *a, str path);                       /* "a/b" as "a.b" */
bool modules_read(arena *a, struct space *s, findings *f); /* from the app file on */

#endif
