/* space/space.h: an app's folder as facts: README front matter, requirements files, Python sources, committed wheels, vendored
 * extension sources. It reads text and runs nothing; what the facts mean for a platform is judged in plan/. All text is
 * copied into the arena. Paths are relative to the app's folder, with '/'. */
#ifndef FELLOE_SPACE_H
#define FELLOE_SPACE_H

#include "base/base.h"
#include "wheel/wheel.h"

/* ---- README.md's front matter ---- */
struct front_value {
    str text;    /* absent: the key is not there */
    bool quoted; /* 3.10 without quotes is the number 3.1 to YAML */
    struct place place;
};
struct front_matter {
    bool present;
    str file; /* "README.md" as the folder spells it */
    struct yaml map;
    struct front_value sdk, sdk_version, python_version, app_file, hardware, suggested_hardware,
        startup_duration_timeout, short_description;
    size_t first_line, last_line; /* the lines of the two '---'; an edit works on the lines between */
};

/* ---- requirements.txt and its kin ---- */
enum requirement_kind {
    REQUIREMENT_NAMED,   /* numpy>=2 ; marker */
    REQUIREMENT_URL,     /* name @ https://..., or a bare URL of a wheel or archive */
    REQUIREMENT_VCS,     /* git+https://... , with or without "name @" */
    REQUIREMENT_PATH,    /* ./texture_baker, dist/x.whl, file:... */
    REQUIREMENT_OPTION,  /* -i, --extra-index-url, -f, --no-binary ... */
    REQUIREMENT_INVALID, /* a finding says why */
};
struct requirement_line {
    enum requirement_kind kind;
    struct place place; /* where the line begins */
    size_t last_line;   /* of a line continued by '\' */
    str text;      /* the logical line without comment and continuation, environment variables not replaced */
    bool editable; /* -e */
    bool constraint; /* from a file read by -c */
    bool pre;        /* from pre-requirements.txt */
    bool applies;    /* its marker holds on Linux x86_64 for some supported Python, or there is none */
    struct requirement requirement; /* of NAMED; of URL, VCS, PATH the name may be absent */
    str name; /* normalised; from the name, #egg=, the wheel's file name or the repository's name; may be absent */
    str url;                    /* of URL and VCS, without "git+" and the fragment; of PATH the path */
    str revision, subdirectory; /* of VCS */
    str option, value;          /* of OPTION: "--extra-index-url" and its argument */
    struct strs hashes;         /* --hash values */
};
struct requirement_list {
    struct requirement_line *items;
    size_t count, capacity;
};

/* ---- Python sources ---- */
enum import_guard {
    GUARD_NONE = 0,
    GUARD_TRY =
        1, /* inside try: with a handler that catches ImportError, ModuleNotFoundError, Exception or all */
    GUARD_CONDITION =
        2, /* inside an if that no constant decides, a match, a loop, an except or finally branch */
    GUARD_FUNCTION = 4,      /* inside a function: runs when it is called */
    GUARD_TYPE_CHECKING = 8, /* never runs */
    GUARD_MAIN = 16,         /* under if __name__ == "__main__": runs in the app file only */
};
struct py_import {
    str module;        /* absolute and dotted, relative ones resolved: "nvdiffrast.torch" */
    struct strs names; /* from module import names; "*"; empty for a plain import */
    str text;          /* the statement, white space folded: "from diso import DiffDMC" */
    struct place place;
    unsigned guard; /* GUARD_ bits */
    str function;   /* the innermost function around it; absent at module level */
    size_t local;   /* index of the local module it names, SIZE_MAX: not local */
};
struct py_import_list {
    struct py_import *items;
    size_t count, capacity;
};

enum duration_kind { DURATION_DEFAULT, DURATION_SECONDS, DURATION_DYNAMIC, DURATION_UNKNOWN };
struct gpu_function {
    str name;               /* "generate", "Model.run" for a method */
    struct place place;     /* of the def */
    struct place decorator; /* of the '@', or of the call spaces.GPU(f) */
    enum duration_kind duration_kind;
    double duration;   /* seconds: 60 for DEFAULT; of SECONDS; not set otherwise */
    str duration_text; /* as written; absent when there is none */
    str size;          /* "large", "xlarge"; absent: not given */
    bool is_method, is_generator, is_async;
    bool calls_empty_cache;
    bool
        installs; /* runs a start-up install or compile in its body, or in a function that it calls by name */
    bool
        starts_process; /* subprocess, multiprocessing, os.system ... in its body or in one that it calls by name */
    struct strs parameters;
    struct strs calls; /* names called in the body, dotted, each once: "pipeline", "trimesh.export" */
};
struct gpu_function_list {
    struct gpu_function *items;
    size_t count, capacity;
};

enum env_kind { ENV_INHERITED, ENV_EXTENDED, ENV_REPLACED, ENV_UNKNOWN };
struct env_entry {
    str name, value; /* value is absent when it is no constant */
};
struct
    install_command { /* one command of a start-up call: 'cd x && pip install y' has one, with its directory */
    struct strs words; /* argv; a word that is not constant is "?" */
    str directory;     /* from cwd= or cd; absent: the app's */
    enum {
        INSTALL_PIP,
        INSTALL_SCRIPT,
        INSTALL_COMPILER,
        INSTALL_SETUP_PY,
        INSTALL_GIT_CLONE,
        INSTALL_OTHER
    } kind;
    struct strs
        targets; /* of PIP: what is installed (names, URLs, paths), of -r files too as "-r FILE"; of SCRIPT: the file; of
                            GIT_CLONE: URL and folder; of SETUP_PY: the folder */
    struct strs flags; /* of PIP: --no-build-isolation, --no-deps, --upgrade ... */
};
struct install_command_list {
    struct install_command *items;
    size_t count, capacity;
};
struct install_call {
    str text;    /* the call as written, white space folded */
    str command; /* the command line as far as it is constant: "pip install x.whl" */
    str callee;  /* "os.system", "subprocess.run", "subprocess.check_call", "pip.main" ... */
    struct place place;
    unsigned guard; /* GUARD_ bits of the call itself */
    str function;   /* around it; absent at module level */
    bool
        at_start; /* runs when the app is imported: at module level, or in a function that module level calls */
    bool in_gpu_call; /* runs inside a decorated function */
    bool checked;     /* check=True, check_call, check_output, or the result is looked at */
    bool shell;
    enum env_kind env_kind;
    struct env_entry *env; /* what env= sets, beside os.environ when EXTENDED */
    size_t env_count, env_capacity;
    bool after_spaces,
        after_torch; /* on the way from the app's first line, import spaces or torch came earlier */
    struct install_command_list commands;
};
struct install_call_list {
    struct install_call *items;
    size_t count, capacity;
};

struct env_setting { /* os.environ[...] = , os.environ.setdefault, os.putenv, os.environ.update({...}) */
    str name, value; /* value absent: not constant */
    struct place place;
    unsigned guard;
    str function;
    bool after_spaces, after_torch; /* as for install_call */
    bool is_default;                /* setdefault */
};
struct env_setting_list {
    struct env_setting *items;
    size_t count, capacity;
};

/* Smaller facts, each with its place and the text that shows it. */
enum note_kind {
    NOTE_CUDA_AT_IMPORT, /* touches CUDA at module level in a way the platform's patch does not cover (numba.cuda,
                                 pycuda.autoinit, cupy, torch.cuda.init, torch.zeros(device="cuda:0") ...) before import spaces */
    NOTE_CUDA_INDEX,     /* "cuda:0", device=0, device_map={"": 0} */
    NOTE_FIXED_OUTPUT, /* a constant path written or returned by a handler or GPU function: detail is the path */
    NOTE_EAGER_EXAMPLES, /* cache_examples=True */
    NOTE_RETURNS_CUDA, /* a GPU function visibly returns a CUDA tensor or an object that holds one: detail says how */
    NOTE_RETURNS_UNPICKLABLE, /* an open file, lock, lambda or generator object is returned or passed */
    NOTE_TORCH_COMPILE,       /* torch.compile at module level or in a GPU function */
    NOTE_TORCH_LOAD,          /* torch.load without weights_only */
    NOTE_SPACES_SHIM,         /* try: import spaces / except: a stand-in */
    NOTE_LAUNCH,              /* demo.launch() */
    NOTE_HANDLER,             /* a function is bound to a Gradio event: detail is its name */
    NOTE_PRELOAD,             /* ctypes.CDLL(...): detail is the path */
    NOTE_ATTENTION, /* attn_implementation="flash_attention_2", set_attention_backend(...): detail is the value */
    NOTE_CHILD_PROCESS, /* multiprocessing/subprocess in a GPU function: detail is the call */
    NOTE_XLARGE,        /* size="xlarge" */
    NOTE_SYS_PATH,      /* sys.path.insert/append with a constant folder: detail is the folder */
    NOTE_GLOBAL_WRITE, /* a handler or GPU function assigns a module-level name (global x): detail is the name */
    NOTE_PIPELINE_STAGE, /* from_pretrained(...) or another model load at module level: detail is the callee */
    NOTE_GPU_CHAIN, /* one event runs two or more GPU functions without the visitor between: f(g(x)) in a handler, .click(f).then(g);
                       detail: "f, g" */
};
struct note {
    enum note_kind kind;
    struct place place;
    str detail, text; /* text: the source line, trimmed */
    str function;
    unsigned guard;
    bool after_spaces, after_torch;
};
struct note_list {
    struct note *items;
    size_t count, capacity;
};

struct py_module {
    str path, name;          /* "tsr/models/isosurface.py", "tsr.models.isosurface" */
    bool reachable;          /* some chain of imports from the app file leads here */
    bool at_start;           /* a chain of unguarded, unconditional, top-level imports does */
    bool parsed_with_errors; /* the grammar found faults; facts are from what it could read */
    struct place first_error;
    struct py_import_list imports;
    size_t line_count;
};
struct py_module_list {
    struct py_module *items;
    size_t count, capacity;
};

/* ---- What lies in the folder ---- */
enum compiled_kind { COMPILED_UNKNOWN, COMPILED_NONE, COMPILED_CPP, COMPILED_CUDA };
struct vendored_source {
    str folder;         /* "hy3dpaint/custom_rasterizer" */
    struct place place; /* the setup.py, pyproject.toml, CMakeLists.txt or script that builds it */
    enum { BUILD_SETUP_PY, BUILD_PYPROJECT, BUILD_CMAKE, BUILD_SCRIPT, BUILD_MAKEFILE } build;
    enum compiled_kind compiled;
    str distribution;    /* name= of setup(); absent when not constant */
    struct strs modules; /* import names that it makes: of Extension(...), packages=, -o x$(...) */
    bool asks_gpu;       /* decides by torch.cuda.is_available() whether CUDA is built */
    bool foreign_suffix; /* takes the suffix from python3-config, which may belong to another Python */
    bool march_native;
};
struct vendored_list {
    struct vendored_source *items;
    size_t count, capacity;
};
struct committed_wheel {
    str path;
    uint64_t size;
    bool valid;      /* its name is a wheel's name */
    bool is_pointer; /* a Git LFS or Xet pointer, not the wheel itself */
    str why;         /* when it is not valid */
    struct wheel_name name;
};
struct committed_list {
    struct committed_wheel *items;
    size_t count, capacity;
};
struct
    script_command { /* from setup.sh, install.sh, Dockerfile: never run by the platform, but it documents */
    struct place place;
    struct install_command command;
    str text; /* "pip install ./x", white space folded */
};
struct script_list {
    struct script_command *items;
    size_t count, capacity;
};

struct space {
    str dir;
    struct front_matter front;
    str app_file; /* what the platform starts, or what we take for it; absent: nothing looks like an app */
    bool app_file_declared; /* by front matter */
    bool app_file_exists;
    struct requirement_list requirements;
    bool has_requirements;          /* requirements.txt at the root */
    struct strs other_requirements; /* requirements files below the root, when none is at the root */
    struct strs apt_packages;       /* packages.txt */
    struct py_module_list
        modules; /* every module reached from the app file, in the order reached; [0] is the app file */
    struct gpu_function_list gpu_functions;
    struct install_call_list installs;
    struct env_setting_list environment;
    struct note_list notes;
    struct vendored_list vendored;
    struct committed_list wheels;
    struct script_list scripts;
    struct strs
        vendored_platform; /* "spaces/__init__.py", "gradio/__init__.py": copies that shadow the platform's */
    struct strs files;     /* every file of the folder (walk), for 'does that path exist' */
    bool imports_spaces, imports_torch;
    struct place spaces_import, torch_import; /* the first on the way from the app's first line */
};

/* Reads the folder. False, with findings (exit code 3), when it can't be read at all; malformed parts are findings and the rest
 * is still read. At most 20,000 files, 64 MiB a file, 256 MiB of Python. Time is linear in the bytes reached. */
bool space_read(arena *a, str dir, struct space *out, findings *f);
bool space_has_file(const struct space *s, str path);
/* One requirements file on its own, with its -r and -c (cycles are found and named). */
bool requirements_read(arena *a, str dir, str file, struct requirement_list *out, findings *f);

#endif
