/* check/check.h: whether a compiled wheel will import and launch on a target, read from its bytes, before it is installed. */
#ifndef FELLOE_CHECK_H
#define FELLOE_CHECK_H

#include "elf/elf.h"
#include "target/target.h"
#include "wheel/wheel.h"

/* In the order of how good they are: a file has the worst that any part of it has. */
enum check_verdict {
    CHECK_FITS,
    CHECK_FITS_BY_PTX,
    CHECK_UNKNOWN,
    CHECK_NO_KERNEL,
    CHECK_IMPORT_ERROR,
    CHECK_NOT_INSTALLABLE,
    CHECK_BROKEN
};
const char *check_verdict_name(enum check_verdict v); /* "fits-by-ptx" */

struct check_missing { /* a symbol that nothing on the target exports */
    str name, demangled;
    str exported_by; /* "torch 2.8.0, torch 2.9.1"; absent when no known release does */
};
struct check_missing_list {
    struct check_missing *items;
    size_t count, capacity;
};
struct check_object {
    struct elf_object elf;
    struct check_missing_list missing;
    struct strs archs,
        ptx; /* "sm_120", "compute_120": those of all containers, each once, as cuobjdump lists them */
    size_t containers_in_data; /* found by their magic outside of .nv_fatbin: a program loads them itself */
    size_t containers,
        containers_without; /* with code that is loaded; of these, without any for the target's GPU */
    enum check_verdict verdict;
};
struct check_file {
    str file;   /* as it was given */
    bool named; /* the name is a wheel's; else name holds nothing but the file */
    struct wheel_name name;
    struct wheel_metadata metadata; /* name absent when it was not read */
    struct wheel_facts facts;
    bool has_facts;
    struct check_object *objects;
    size_t object_count;
    str python, torch; /* that it was judged for: "3.12", "2.11.0" */
    uint64_t bytes_read, bytes_total;
    size_t hashes_good, hashes_unread; /* files of RECORD whose hash agrees; that were not read whole */
    struct strs variant;               /* properties of variant.json, as "nvidia :: cuda_version :: 13" */
    enum check_verdict verdict;
    struct findings *findings; /* of this file alone */
};
struct check_options {
    const struct target *target;
    str python;  /* "3.12"; absent: the best of the target's that the file's tags fit */
    str torch;   /* "2.11.0"; absent: the target's default */
    str against; /* folder of an environment whose torch is compared with; absent: profiles */
    bool names_only, offline, skip_hashes;
    size_t threads; /* 0: one a processor */
    int verbose;
};
struct check_report {
    struct check_file *files;
    size_t count;
    const struct target *target;
    struct arena **arenas; /* one a file: files are read at the same time */
};

/* Reads and judges every file: a wheel, a shared object, a folder of either, or a URL of a wheel. Each file's findings are its
 * own; they are repeated in f, with what else went wrong. False only when nothing could be judged (then f says why).
 * Cost: local archives are unpacked once, in parallel; remote ones are read by range. Memory: about 50 MB a thread. */
bool check_files(arena *a, const struct check_options *options, const struct strs *files,
                 struct check_report *out, findings *f);
void check_report_free(struct check_report *report);

/* ---- Private to the folder ---- */
struct check_env { /* what every file is compared with; read-only while threads run */
    const struct check_options *options;
    const struct abi *abi;
    str torch;                 /* the release that is judged for */
    bool torch_known;          /* abi has it */
    const struct abi *against; /* NULL: none */
};
/* Reads the file; out->findings exists. False when nothing of it could be read; damage that leaves objects to judge only sets
 * the verdict. */
bool check_read(arena *a, const struct check_env *env, str file, size_t threads, struct check_file *out);
void check_judge(arena *a, const struct check_env *env, struct check_file *file);
void check_judge_name(arena *a, const struct check_env *env, struct check_file *file);
/* The names that the libraries of an installed environment export, as a profile; *torch is its release. */
bool check_environment(arena *a, str folder, const struct abi *base, const struct abi **out, str *torch,
                       findings *f);
/* One shared object on disk. */
bool check_read_object(arena *a, str path, struct elf_object *out, uint64_t *size, findings *f);
/* The torch libraries of a wheel, as inputs of a profile. */
bool check_profile_inputs(arena *a, struct check_file *file, str release, struct abi_input **inputs,
                          size_t *count, findings *f);
str check_demangle(arena *a, str name); /* name itself when it is no C++ name, or too long to be shown */

#endif
