/* space/syntax.h: Python syntax trees (tree-sitter) with our own names for the kinds of nodes, and constants as far as a module shows
 * them without being run. Private to space/. */
#ifndef FELLOE_SPACE_SYNTAX_H
#define FELLOE_SPACE_SYNTAX_H

#include <tree_sitter/api.h>

#include "space/private.h"

enum node_kind {
    N_OTHER = 0,
#define NODE(kind, name) kind,
#include "space/syntax.def"
#undef NODE
    NODE_KINDS
};

/* A name bound by an assignment; names are looked up from the innermost function outwards. */
struct binding {
    str name;        /* "Class.NAME" in a class body */
    size_t function; /* SIZE_MAX: module level */
    TSNode value;
    size_t scope; /* the function in which the value's own names are looked up */
    bool known;   /* false: assigned where it depends, or more than once with different values */
};
struct binding_list {
    struct binding *items;
    size_t count, capacity;
};
struct alias { /* a name bound by an import: np -> numpy, run -> subprocess.run */
    str name, target;
};
struct alias_list {
    struct alias *items;
    size_t count, capacity;
};
struct env_update { /* env["X"] = "1" on a name that is not os.environ */
    str name, key, value;
};
struct env_update_list {
    struct env_update *items;
    size_t count, capacity;
};

enum { NAMES_MOST = 4096, SLOTS = 2 * NAMES_MOST };

struct reading { /* of one module */
    arena *a;
    struct module_facts *m;
    str parsed;     /* the text that nodes point into */
    str class_name; /* of the class whose body is being read; absent elsewhere */
    uint16_t *binding_slots,
        *alias_slots; /* SLOTS each: index + 1 by hash, so that names are found at once */
    struct binding_list bindings;
    struct alias_list aliases;
    struct env_update_list env_updates;
};

enum node_kind kind_of(TSNode node);
str text_of(const struct reading *r, TSNode node);
str folded_text(const struct reading *r, TSNode node); /* white space folded, at most 300 bytes */
struct place place_of(const struct reading *r, TSNode node);
TSNode field(TSNode node, const char *name);
bool is_absent(TSNode node);
TSNode named_child(TSNode node, size_t i);
size_t named_count(TSNode node); /* at most 1,000: reaching a child by its number costs its number */
TSNode unparenthesized(TSNode node);

/* "os.environ" for an attribute chain of plain names, its first part resolved through imports; absent for anything else. */
str dotted_name(const struct reading *r, TSNode node);
/* The name's entry, made when there is none; NULL when NAMES_MOST are there already, or past the arena's limit (*well is then false). */
struct binding *binding_entry(struct reading *r, str name, size_t function, bool *well);
struct alias *alias_entry(struct reading *r, str name, bool *well);
bool alias_is_known(const struct reading *r, str name);
const struct binding *binding_find(const struct reading *r, str name, size_t function);
/* The text of a constant expression; parts that are not constant are "?". *whole tells whether there were none. */
str constant_text(const struct reading *r, TSNode node, size_t function, bool *whole);
bool constant_number(const struct reading *r, TSNode node, size_t function, double *value);
/* 1 true, 0 false, -1 not decided by constants. */
int constant_truth(const struct reading *r, TSNode node, size_t function);
/* The values of a list or tuple of strings; false when the node is neither (looked up through names). */
bool constant_words(const struct reading *r, TSNode node, size_t function, struct strs *words);
TSNode keyword(const struct reading *r, TSNode arguments,
               const char *name); /* the value of name=; absent node */
TSNode positional(TSNode arguments, size_t index);

#endif
