/* plan/plan.h: from an app's facts to a plan: which native extensions it needs, where each can come from on a target, and the
 * edits that make it so.
 *
 *     space --needs--> need[] --sources--> candidate[] --verify--> verdicts --choose--> plan --> JSON | edits | felloe.lock
 *
 * What is known of the world is in data/extensions.yaml and data/sources.yaml, never in C. */
#ifndef FELLOE_PLAN_H
#define FELLOE_PLAN_H

#include "base/base.h"
#include "space/space.h"
#include "target/target.h"
#include "wheel/wheel.h"

/* ---- The catalogue: data/extensions.yaml ---- */

enum pypi_form {               /* what the public index gives for one of the extension's distribution names */
                 PYPI_UNKNOWN, /* nobody looked */
                 PYPI_ABSENT,  /* no such project: only its repository has it */
                 PYPI_OTHER,   /* a project of that name exists and is something else */
                 PYPI_SDIST,   /* source only: installing it compiles */
                 PYPI_WHEEL,   /* binary wheels */
                 PYPI_JIT,     /* a py3 wheel that compiles at its first use */
                 PYPI_PURE,    /* a py3 wheel without native code of its own (Triton kernels) */
                 PYPI_FETCHES /* an sdist that looks for a ready wheel elsewhere and compiles when there is none */
};

struct arch_fact { /* what published wheels of these versions were compiled for */
    str versions;  /* a PEP 440 specifier: "<2.3.8"; empty: all */
    struct specs specs;
    struct strs archs; /* "sm_80" ...; PTX as "compute_90" */
    str source;        /* where that was read */
    bool sure;
};

/* Another project under the same import name, with another interface. */
struct fork {
    str name;        /* "ashawkey" */
    bool is_default; /* the one meant when nothing says otherwise */
    str interface;   /* what a caller sees: "returns (color, radii, depth, alpha)" */
    struct strs
        repositories; /* "github.com/ashawkey/diff-gaussian-rasterization": lower case, no scheme, no ".git" */
    struct strs owners; /* path parts of a URL or folder that give it away: "ashawkey", "mip-splatting" */
    struct strs distributions; /* only where they differ from the extension's: "cumesh_vb" */
    struct strs imports;       /* only where they differ */
    size_t result_count;       /* values that its main call returns, 0: does not tell forks apart */
    bool has_wheels;           /* some source of data/sources.yaml holds wheels of it */
    str drop_in;               /* module of libfelloe that stands in for this fork; absent: none */
    str caveat;
    size_t build_index; /* into the extension's builds */
};

/* How it is compiled from source, for a start-up compile or a wheel. */
struct build_recipe {
    str url;                 /* "git+https://github.com/NVlabs/nvdiffrast.git", "flash-attn" for an sdist */
    str subdirectory;        /* inside the repository; absent: its root */
    struct strs environment; /* "USE_CUDA=1" */
    struct strs flags;       /* of pip: "--no-build-isolation", "--no-deps" */
    struct strs needs;       /* distributions that must be there before: "ninja" */
    bool submodules;         /* an archive of the repository lacks parts of it */
    bool needs_gpu;          /* asks for a device while it builds */
    bool same_cuda_major;    /* links CUDA libraries beyond the runtime: no mixed majors */
    double minutes;          /* of one architecture on 4 cores, roughly; 0: not known */
    str caveat;
};

struct extension {
    str name;            /* canonical: "nvdiffrast" */
    str summary;         /* one line */
    struct strs imports; /* top-level names or dotted prefixes: "nvdiffrast" matches nvdiffrast.torch too */
    struct strs distributions; /* normalised: "nvdiffrast"; "spconv-cu*" matches a whole family */
    struct strs repositories;  /* as in struct fork */
    enum compiled_kind compiled;
    enum pypi_form pypi;
    bool torch_abi;        /* links torch's C++ libraries: tied to its minor version */
    struct strs runtime;   /* requirements that must be listed beside it: "numpy", "einops" */
    struct strs libraries; /* sonames it opens at run time that no wheel brings: "libEGL.so.1" */
    bool only_if_imported; /* nothing else loads it: an install without an import is no need of the app */
    bool jit_at_first_use; /* even a fitting wheel compiles inside the first call */
    bool attention;        /* an attention back end: may be switched */
    str backend;           /* its name in switches such as ATTN_BACKEND: "flash_attn" */
    struct strs runs_on;   /* architectures that it can run on at all: "sm_80", "sm_90a"; empty: any */
    str drop_in;           /* module of libfelloe that stands in for it; absent: none */
    struct strs instead;   /* extensions that do the same job for most callers */
    struct strs caveats;
    struct arch_fact *archs;
    size_t arch_count;
    struct fork *forks; /* none: only one project has this name */
    size_t fork_count;
    struct build_recipe *builds;
    size_t build_count; /* [0] is that of the default fork */
    str date, source;   /* when and where the entry was read */
    bool sure;          /* false: some of it is unchecked */
    struct place place; /* in the data file */
};

struct catalogue {
    struct extension *items;
    size_t count;
    str path;
    str date;
};

/* False, with findings (F005), when data/extensions.yaml is malformed. */
bool catalogue_read(arena *a, struct catalogue *out, findings *f);
const struct extension *catalogue_by_name(const struct catalogue *c, str name);
/* By a dotted module: "nvdiffrast.torch" gives nvdiffrast. The longest prefix wins. NULL: not a known extension. */
const struct extension *catalogue_by_import(const struct catalogue *c, str module);
/* By a distribution's name in any spelling: "flash-attn", "spconv_cu120". */
const struct extension *catalogue_by_distribution(const struct catalogue *c, str distribution);
/* By the URL of a repository, an archive of it or a file in it, with or without "git+", scheme, user and ".git". *fork is the
 * one that the URL names; NULL when it names none or the extension has none. */
const struct extension *catalogue_by_repository(const struct catalogue *c, str url, const struct fork **fork);
/* The fork that a path or URL gives away by one of its parts ("submodules/mip-splatting/..."); NULL: it does not say. */
const struct fork *extension_fork(const struct extension *e, str path_or_url);
const struct fork *extension_default_fork(const struct extension *e); /* NULL without forks */
/* A normalised repository: "github.com/nvlabs/nvdiffrast"; absent when url has no host and two path parts. */
str repository_of(arena *a, str url);
const char *pypi_form_name(enum pypi_form form);
const char *compiled_name(enum compiled_kind kind); /* "cuda", "cpp", "none"; "cuda" for unknown */

/* ---- Needs: what the app imports and how it gets it ---- */

enum obtained_how {
    OBTAINED_NONE,
    OBTAINED_REQUIREMENT,
    OBTAINED_URL,
    OBTAINED_GIT,
    OBTAINED_STARTUP_INSTALL,
    OBTAINED_COMMITTED_WHEEL,
    OBTAINED_VENDORED_SOURCE
};
struct obtained {
    enum obtained_how how;
    str spec; /* the line or command */
    struct place place;
    str url; /* of URL and GIT, and of a start-up install's target: what is fetched; may be absent */
    /* Where the fact stands in the space; those that apply are set. */
    const struct requirement_line *requirement;
    const struct install_call *install;
    const struct install_command *command;
    const struct committed_wheel *wheel;
    const struct vendored_source *vendored;
};
struct obtained_list {
    struct obtained *items;
    size_t count, capacity;
};

struct need {
    str name;                          /* canonical */
    const struct extension *extension; /* NULL: a compiled module of the app's own, not in the catalogue */
    const struct fork *fork;           /* the one that the app uses, as far as that shows; else NULL */
    str fork_reason;                   /* what shows it: "installed from github.com/ashawkey/..." */
    enum compiled_kind compiled;
    struct strs imports; /* import statements, as written */
    struct place place;  /* of the first import; else of the first way it is obtained */
    bool imported;       /* some reachable module imports it; else it is only installed */
    bool needed_at_start;
    bool optional;                 /* every import is guarded: the app runs without it, perhaps with less */
    struct obtained_list obtained; /* never empty: OBTAINED_NONE when nothing gets it */
    struct strs documented_in_script;
};
struct need_list {
    struct need *items;
    size_t count, capacity;
};

const char *obtained_name(enum obtained_how how); /* CONTRACT's words: "startup-install" */
bool needs_from_space(arena *a, const struct catalogue *c, const struct space *s, struct need_list *out,
                      findings *f);
/* All that the folder itself shows to be wrong on the target. */
void judge_space(arena *a, const struct catalogue *c, const struct space *s, const struct need_list *needs,
                 const struct target *t, findings *f);

/* ---- Sources: data/sources.yaml, and what they hold ---- */

enum source_kind {
    SOURCE_DATASET,
    SOURCE_RELEASE,
    SOURCE_OFFICIAL_APP,
    SOURCE_INDEX,
    SOURCE_FILE,
    SOURCE_BUILD,
    SOURCE_FELLOE
};
enum source_layout {
    LAYOUT_HUB_TREE,
    LAYOUT_GITHUB_RELEASE,
    LAYOUT_FIND_LINKS,
    LAYOUT_SIMPLE,
    LAYOUT_KERNELS,
    LAYOUT_LIST
};

struct source_file { /* one wheel that a source holds */
    str url;         /* with "%2B", as a server lists it */
    struct wheel_name name;
    str python, torch,
        cuda;            /* what the source says by where it put the file (a cell, a page); absent: nothing */
    str extension, fork; /* whose wheel it is */
    str sha256;          /* absent: the source does not give it */
    str requires_python;
    bool yanked;
    struct strs archs; /* known compiled architectures; empty: not known */
    const struct source *from;
    size_t page; /* index of the page of `from` that lists it */
};
struct source_file_list {
    struct source_file *items;
    size_t count, capacity;
};
struct source_page {         /* one listing of a source */
    str url, base;           /* base + file name is a file's URL, where the listing itself is not at hand */
    str python, torch, cuda; /* what the page is for; absent: any */
    str extension;           /* absent: any of the source's */
    bool fresh;              /* its files came from the network, now or from the cache that it confirmed */
};
struct source {
    str name, title, home;
    enum source_kind kind;
    enum source_layout layout;
    struct source_page *pages;
    size_t page_count;
    struct strs extensions;        /* what it is known to hold */
    struct strs archs;             /* what its files are compiled for, where that holds for all: "sm_120" */
    struct source_file_list files; /* the snapshot; a refresh replaces the files of each page that answers */
    bool
        torch_tolerant; /* its wheels are said to run on other torch minors too; a deep check has to confirm it */
    str publisher;      /* dialect of local versions; absent: by the grammar's rules */
    str date, note;
    struct place place;
};
struct sources {
    struct source *items;
    size_t count;
    str path, date;
    bool refreshed; /* at least one page came fresh or unchanged from the network */
    size_t pages_asked, pages_failed;
};

bool sources_read(arena *a, const struct catalogue *c, struct sources *out, findings *f);
/* Asks the pages that may hold wheels of the needed extensions, many at once. What fails keeps its snapshot and is a warning.
 * Pages are kept under cache_dir with their ETag. */
void sources_refresh(arena *a, const struct catalogue *c, struct sources *sources,
                     const struct need_list *needs, http *h, findings *f);
/* Wheel links of a page in the layout's format. Each link that is no wheel name is left out. False when the page is in
 * no form that the layout has; *why says what was expected. */
bool index_page_read(arena *a, enum source_layout layout, str page_url, str content_type, str body,
                     struct source_file_list *out, str *why);

/* ---- Candidates and the plan ---- */

enum strategy {
    STRATEGY_WHEEL,
    STRATEGY_COMMITTED,
    STRATEGY_JIT,
    STRATEGY_DROP_IN,
    STRATEGY_KERNELS,
    STRATEGY_UNNEEDED,
    STRATEGY_NONE
};
enum verified { VERIFIED_NO, VERIFIED_NAME, VERIFIED_DEEP };
enum fit { FIT_NO, FIT_UNKNOWN, FIT_LIKELY, FIT_YES };

struct candidate {
    enum strategy strategy;
    enum source_kind source;
    str url;    /* what to install or fetch: a URL, a path in the app, a command's argument */
    str sha256; /* absent: not known */
    str file;   /* the wheel's file name; absent when it is none */
    str version;
    enum verified verified;
    enum fit fit;
    str reason;                        /* why it fits, or why not */
    str python, torch;                 /* what it needs; absent: any */
    const struct source_file *wheel;   /* or NULL */
    const struct build_recipe *recipe; /* of JIT, or NULL */
    const struct obtained *obtained;   /* when it is what the app does already */
};
struct candidate_list {
    struct candidate *items;
    size_t count, capacity;
};

struct plan_item {
    const struct need *need;
    struct candidate chosen;
    struct candidate_list alternatives; /* best first */
};

struct edit {
    str file;          /* relative to the app's folder */
    str before, after; /* whole texts; before is absent for a new file */
    str diff;          /* unified */
    str why;
};
struct edit_list {
    struct edit *items;
    size_t count, capacity;
};

struct plan_options {
    str python, torch; /* asked for; absent: chosen */
    bool offline;
    http *http; /* NULL: as offline */
};
struct plan {
    const struct target *target;
    const struct space *space;
    str python; /* "3.12" */
    str torch;  /* "2.11.0"; absent when the app has no use for torch */
    str cuda;   /* of that torch */
    str python_reason, torch_reason;
    struct plan_item *items;
    size_t count;
    str pin_python, pin_torch; /* what to declare */
    struct edit_list edits;
    str attention; /* the back end to use, absent without attention; attention_reason says why */
    str attention_reason;
    str snapshot_date;
    bool offline;
};

/* Chooses. False only when it could not get as far as a plan; an extension without a source is a finding and an item. */
bool plan_make(arena *a, const struct catalogue *c, struct sources *sources, const struct target *t,
               const struct space *s, const struct need_list *needs, const struct plan_options *options,
               struct plan *out, findings *f);
json_t *plan_json(arena *a, const struct plan *plan); /* felloe.plan/1 without "schema" and "findings" */
str plan_text(arena *a, const struct plan *plan, const struct term *t, bool color);
/* Writes the edits and felloe.lock; a second run changes nothing. The names of written files are added to `written`. */
bool plan_write(arena *a, const struct plan *plan, struct strs *written, findings *f);
str lock_text(arena *a, const struct plan *plan); /* felloe.lock/1; the same plan gives the same bytes */
const char *strategy_name(enum strategy strategy);
const char *source_kind_name(enum source_kind kind);
const char *verified_name(enum verified verified);
/* A unified diff with three lines of context; empty when both are the same. before absent: a new file. */
str diff_unified(arena *a, str file, str before, str after);

#endif
