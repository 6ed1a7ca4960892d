/* wheel/wheel.h: packaging standards: wheel file names (PEP 427, 491, 825), versions (PEP 440), tags (PEP 425, 600, 656),
 * requirements and markers (PEP 508), the files of a wheel's *.dist-info, and what CUDA wheels put into their local
 * versions. No I/O but data/dialects.yaml, once per process. Results point into the text given or into the arena. */
#ifndef FELLOE_WHEEL_H
#define FELLOE_WHEEL_H

#include "base/base.h"

/* ---- PEP 503 names ---- */
str name_normalize(arena *a, str name); /* lower case, runs of "-_." as one "-" */
bool name_same(str a, str b);           /* as PEP 503 compares them, without memory */
bool name_is_valid(str name);           /* PEP 508's grammar for names */

/* ---- PEP 440 versions ---- */
enum version_pre { PRE_NONE, PRE_ALPHA, PRE_BETA, PRE_CANDIDATE };

struct version_segment { /* of a local version */
    str text;            /* lower case; a number without leading zeros, of any size */
    bool is_number;
};

struct version {
    str text; /* as it was given, without white space around it */
    uint64_t epoch;
    uint64_t *release; /* at least one part; numbers beyond 64 bits are refused */
    size_t release_count;
    uint64_t pre_number, post, dev;
    struct version_segment *local;
    size_t local_count;
    enum version_pre pre;
    bool has_post, has_dev;
};

/* False when text is no PEP 440 version (then out is untouched). Cost: one pass, one or two pieces of memory. */
bool version_parse(arena *a, str text, struct version *out);
int version_compare(const struct version *a,
                    const struct version *b); /* the total order of PEP 440, local included */
int version_compare_public(const struct version *a,
                           const struct version *b); /* the same without local parts */
int version_compare_release(const struct version *a,
                            const struct version *b);  /* epoch and release numbers alone: 2.8 is 2.8.0 */
bool version_is_pre(const struct version *v);          /* a pre-release or a dev release */
str version_normal(arena *a, const struct version *v); /* canonical form */
str version_public(arena *a, const struct version *v); /* canonical form without the local part */
str version_local(arena *a, const struct version *v);  /* "torch2.11.0.cu130", absent without one */

enum spec_op {
    SPEC_COMPATIBLE,
    SPEC_EQUAL,
    SPEC_NOT_EQUAL,
    SPEC_LESS_EQUAL,
    SPEC_GREATER_EQUAL,
    SPEC_LESS,
    SPEC_GREATER,
    SPEC_ARBITRARY
};

struct spec { /* one clause: ==2.11.* */
    enum spec_op op;
    bool wildcard;
    bool has_version;       /* false only for === before text that is no version */
    bool names_pre;         /* it asks for pre-releases by naming one (!= and ".*" do not) */
    str text;               /* the version as written, with its ".*" */
    struct version version; /* without the ".*" */
};
struct specs { /* a set, joined by commas: all must hold; empty: everything */
    struct spec *items;
    size_t count, capacity;
};

/* False, with *at set to the offset of the fault in text and *expected to what should stand there. Empty clauses are
 * skipped (">=3.8," occurs). */
bool specs_parse(arena *a, str text, struct specs *out, size_t *at, const char **expected);
/* Whether v satisfies one clause, whatever it says about pre-releases. === compares v->text, case ignored. */
bool spec_contains(const struct spec *s, const struct version *v);
str spec_op_text(enum spec_op op); /* "~=" */
/* Whether v is in the set. Pre-releases count only when `pre` is true or a clause names one (PEP 440). */
bool specs_contain(const struct specs *s, const struct version *v, bool pre);
bool specs_pin(const struct specs *s,
               struct version *out); /* the one version of an == or === clause without wildcard */

/* ---- PEP 425 tags ---- */
struct tag {
    str python, abi, platform;
};
struct tag_set { /* as in a file name: each a '.'-joined set; the wheel has their cross product */
    struct strs python, abi, platform;
};
/* What an interpreter accepts, best first. Built from facts, never by running it. */
struct tag_env {
    unsigned minor;                    /* of CPython 3.minor */
    bool free_threaded;                /* cp313t */
    str machine;                       /* "x86_64", "aarch64" */
    unsigned glibc_major, glibc_minor; /* 0.0 on musl */
    unsigned musl_major, musl_minor;   /* 0.0 on glibc */
};
struct tag_list {
    struct tag *items;
    size_t count, capacity;
};
bool tags_supported(arena *a, const struct tag_env *env,
                    struct tag_list *out); /* packaging.tags.sys_tags' order */
/* The rank of the best tag (0 is best), SIZE_MAX when none fits. Cost: members of the set times list lookups. */
size_t tags_rank(const struct tag_list *supported, const struct tag_set *wheel);
/* Why no tag fits, in words: "for CPython 3.10, the target has 3.12". */
str tags_mismatch(arena *a, const struct tag_env *env, const struct tag_set *wheel);

/* ---- Wheel file names ---- */
struct wheel_build { /* what the name alone says about how it was built */
    str cuda;        /* "13.0"; "12" for any CUDA 12; absent: silent */
    str torch;       /* "2.11.0", "2.11": as many parts as the name gives; absent: silent */
    str torch_other; /* the second reading where digits are ambiguous and the publisher unknown; else absent */
    int cxx11abi;    /* 1, 0; -1: silent */
    bool torch_is_minimum;
    str cuda_in_name; /* of the distribution's name: "12.0" for spconv-cu120, "13" for cupy-cuda13x; absent: none */
    str rocm;         /* "6.2"; absent: none */
    str accelerator; /* one that is neither CUDA nor ROCm: "cpu", "xpu" ...; absent: silent */
    bool is_torch;   /* the distribution is torch itself */
};
struct wheel_name {
    str file;         /* the last path segment, decoded */
    str distribution; /* as written */
    str name;         /* normalised */
    str version_text; /* the public part as written, "2.7.4.post1" */
    struct version version;
    str local;           /* text after '+' as written, absent without one */
    str build_tag;       /* absent without one */
    struct tag_set tags; /* as written */
    str variant;         /* PEP 825 label, absent without one */
    struct wheel_build build;
};
/* From a path, URL (percent-encoded, with query or fragment), bare name or a PEP 508 line's URL. False with *why, a sentence
 * that names the part and what was expected; `out->file` is set even then, all else is absent. */
bool wheel_name_parse(arena *a, str text, struct wheel_name *out, str *why);
/* Reads a distribution's name and a local version by data/dialects.yaml. address, the URL or path that the name came from,
 * may tell the publisher where the distribution does not; it may be absent, as may local. */
void wheel_build_read(arena *a, str distribution, str local, str address, struct wheel_build *out);
/* data/dialects.yaml is read at the first use. A command calls this early, so that a fault in a file from --data is a
 * finding; without the file nothing is read from names. */
bool wheel_dialects_load(findings *f);

/* ---- PEP 508 requirements ---- */
enum marker_kind { MARKER_COMPARE, MARKER_AND, MARKER_OR };
struct marker { /* a tree whose chains lean to the right; a comparison has text on both sides */
    enum marker_kind kind;
    const struct marker *left, *right; /* of AND and OR */
    str a, op, b;
    bool a_is_name, b_is_name; /* an environment variable's name in today's spelling, else a quoted literal */
};
struct requirement {
    str name; /* as written */
    struct strs extras;
    struct specs specs;
    str url;                     /* after '@', absent without one */
    const struct marker *marker; /* NULL: always */
};
struct marker_env { /* PEP 508's variables; absent ones compare as "" */
    str os_name, sys_platform, platform_machine, platform_python_implementation, platform_release,
        platform_system, platform_version, python_version, python_full_version, implementation_name,
        implementation_version, extra;
};
/* False with *at (an offset in text, at most text.n) and *expected, what should stand there. The text is one requirement
 * without its line end or comment. */
bool requirement_parse(arena *a, str text, struct requirement *out, size_t *at, const char **expected);
bool marker_parse(arena *a, str text, const struct marker **out, size_t *at, const char **expected);
/* The versions among the variables are compared as versions, all else as text. A comparison that the standard leaves
 * undefined (an order of texts, ~= of texts) does not hold. Recursion is bounded by the parser's limit of 200 parentheses. */
bool marker_holds(arena *a, const struct marker *m, const struct marker_env *env);
str marker_text(arena *a, const struct marker *m);           /* "" for NULL; reads back as the same marker */
str requirement_text(arena *a, const struct requirement *r); /* reads back as the same requirement */
/* "column 12: expected a closing quote, found '...'", for what the four parsers with *at and *expected refuse. */
str parse_error_text(arena *a, str text, size_t at, const char *expected);

/* ---- What a wheel says inside: the files of its *.dist-info ---- */
struct wheel_need { /* a Requires-Dist */
    str text;
    size_t line;
    bool valid; /* old metadata has some that no standard allows; then requirement is empty */
    struct requirement requirement;
};
struct wheel_metadata { /* METADATA (core metadata); texts lie in the file or, when folded, in the arena */
    str metadata_version, name, version_text, summary,
        requires_python; /* absent when the file does not have them */
    struct version version;
    bool python_valid; /* requires_python is a set of specifiers, or absent */
    struct specs python;
    struct wheel_need *items; /* in file order */
    size_t count, capacity;
    struct strs extras; /* Provides-Extra */
};
struct wheel_facts {                     /* WHEEL */
    str wheel_version, generator, build; /* absent when the file does not have them */
    bool is_pure;                        /* Root-Is-Purelib */
    struct strs tags;                    /* "cp312-cp312-linux_x86_64", one a line of the file */
};
struct record_entry { /* a line of RECORD */
    str path;
    str algorithm, digest; /* "sha256" and base64 as written; absent in the line of RECORD itself */
    bool has_size;
    uint64_t size;
};
struct record {
    struct record_entry *items;
    size_t count, capacity;
};
/* False with *line (from 1) and *why. METADATA needs a Name and a Version that is one; WHEEL a Wheel-Version and a Tag. */
bool metadata_parse(arena *a, span file, struct wheel_metadata *out, size_t *line, str *why);
bool wheel_facts_parse(arena *a, span file, struct wheel_facts *out, size_t *line, str *why);
bool record_parse(arena *a, span file, struct record *out, size_t *line, str *why);
/* The 32 bytes of a sha256 entry; false for another algorithm and for what is no unpadded URL-safe base64 of 32 bytes. */
bool record_sha256(const struct record_entry *entry, uint8_t digest[32]);
/* Whether the Tag lines are the cross product of the name's sets. If not, *odd is a tag that only one of the two has;
 * absent when there are more than 4,096 of them, which no wheel has. */
bool wheel_tags_agree(arena *a, const struct wheel_facts *facts, const struct tag_set *name, str *odd);

#endif
