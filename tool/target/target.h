/* target/target.h: what a runtime offers: data/targets.yaml, and detection of this machine. */
#ifndef FELLOE_TARGET_H
#define FELLOE_TARGET_H

#include "base/base.h"
#include "wheel/wheel.h"

struct torch_offer {   /* one torch that the target takes */
    str version;       /* "2.11.0" */
    str cuda;          /* its CUDA: "13.0" */
    struct strs archs; /* SASS in the official wheel, where known: "sm_75" ... */
};
struct gpu_size {
    str name; /* "large" */
    double memory_gb;
    double quota_factor;
};
struct target {
    str name, description, date, source; /* when and where the facts were read */
    struct strs pythons;                 /* "3.12.12", "3.10.13": best first; empty: any */
    str python_default;                  /* when the app does not say */
    struct torch_offer *torch;           /* newest first; none: any */
    size_t torch_count;
    str torch_default;                    /* preinstalled when not pinned */
    str cuda, cuda_home;                  /* toolkit at run time; absent: none */
    struct strs archs;                    /* "sm_120" */
    double driver_cuda;                   /* the newest CUDA that the driver takes: 13.0 */
    str glibc, glibcxx, cxxabi;           /* highest symbol versions: "2.36", "3.4.30", "1.3.13" */
    str machine;                          /* "x86_64" */
    bool compiler_at_build, gpu_at_build; /* in the container that installs requirements.txt */
    bool compiler_at_run, gpu_at_import;
    struct strs preinstalled;       /* normalised distribution names that the app must not list */
    struct strs pinned_by_platform; /* a version in requirements.txt loses or clashes */
    struct gpu_size *sizes;
    size_t size_count;
    str size_default;
    double duration_default, duration_max; /* seconds; 0: not known */
    str app_dir;                           /* "/home/user/app" */
    struct strs libraries;                 /* sonames that the system has beside libc: "libGL.so.1" ... */
    bool schedules_gpu;                    /* GPU functions must be decorated (ZeroGPU) */
    const struct yaml *raw; /* the whole entry, for what only one folder reads (quotas, queue) */
};

struct target_list {
    struct target *items;
    size_t count, capacity;
};
bool targets_read(arena *a, struct target_list *out, findings *f);
/* By name, or "this" for this machine; an unknown name is a finding with the nearest one. NULL then. */
const struct target *target_find(arena *a, str name, findings *f);
bool target_detect(arena *a, struct target *out,
                   findings *f); /* this machine; runs nothing but reads files and libraries */
const struct torch_offer *target_torch(const struct target *t,
                                       str version); /* "2.11" and "2.11.0" alike; NULL: not taken */
/* The tags that the target's Python (X.Y) accepts. */
bool target_tags(arena *a, const struct target *t, unsigned python_minor, struct tag_list *out);

#endif
