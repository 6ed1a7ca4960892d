/* How long an app's folder takes to read: a typical app of 20 modules, and a tree of 2,000. Each is made below a temporary folder,
 * read once to check what was found, then timed in rounds; median, spread, bytes a second and peak memory are printed.
 *
 * Against Python's own parser on the same files: python3 bench/space/bench_ast.py BUILD/bench/space_bench_scan. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "space/space.h"

enum { ROUNDS = 11, LAYERS = 6 };

static const char LAYER[] =
    "class Layer%d(nn.Module):\n"
    "    \"\"\"Attention over tokens.\"\"\"\n\n"
    "    def __init__(self, dim, heads=8):\n"
    "        super().__init__()\n"
    "        self.query = nn.Linear(dim, dim * %d, bias=False)\n"
    "        self.norm = nn.LayerNorm(dim)\n"
    "        self.heads = heads\n\n"
    "    def forward(self, x, mask=None):\n"
    "        batch, count, width = x.shape\n"
    "        q = self.query(x).reshape(batch, count, self.heads, -1).permute(0, 2, 1, 3)\n"
    "        if mask is not None:\n"
    "            q = q.masked_fill(mask[:, None], float(\"-inf\"))\n"
    "        for step in range(4):\n"
    "            q = torch.softmax(q @ q.transpose(-2, -1) / (width**0.5), dim=-1)\n"
    "        return self.norm(x + q.sum(dim=1))\n\n\n";
static const char APP[] =
    "import os\nimport subprocess\n\nimport gradio as gr\nimport spaces\n\n"
    "subprocess.run(\"pip install native.whl\", shell=True, check=True)\n"
    "from net.m0 import Layer0\n\n\n"
    "@spaces.GPU(duration=120)\ndef generate(image):\n    return Layer0(64)(image)\n\n\n"
    "gr.Interface(generate, \"image\", \"model3d\").launch()\n";

static bool write_text(arena *a, str folder, const char *name, str text, findings *f)
{
    return file_write(path_join(a, folder, str_from(name)), span_from_str(text), f);
}

/* A binary tree of imports, so that every module is reached. */
static bool make_tree(arena *a, str folder, unsigned count, size_t *bytes, findings *f)
{
    bool well = dir_make(path_join(a, folder, S("net")), f) &&
                write_text(a, folder, "app.py", str_from(APP), f) &&
                write_text(a, folder, "net/__init__.py", S(""), f) &&
                write_text(a, folder, "README.md", S("---\nsdk: gradio\napp_file: app.py\n---\n"), f) &&
                write_text(a, folder, "requirements.txt", S("torch==2.8.0\neinops\n"), f);
    for (unsigned m = 0; well && m < count; m++) {
        struct buf b = {.a = a};
        char name[32];
        buf_add(&b, S("import torch\nimport torch.nn as nn\n"));
        for (unsigned child = 2 * m + 1; child <= 2 * m + 2 && child < count; child++)
            buf_format(&b, "from .m%u import Layer0 as Layer%u\n", child, child + 100);
        buf_add(&b, S("\n\n"));
        for (int layer = 0; layer < LAYERS; layer++) {
            const char *rest = LAYER;
            for (int n = 0; n < 2; n++) { /* the two numbers of LAYER */
                const char *at = strstr(rest, "%d");
                buf_add(&b, (str){rest, (size_t)(at - rest)});
                buf_format(&b, "%d", layer + n);
                rest = at + 2;
            }
            buf_add(&b, str_from(rest));
        }
        (void)snprintf(name, sizeof name, "net/m%u.py", m);
        *bytes += b.count;
        well = write_text(a, folder, name, buf_str(&b), f);
    }
    return well;
}

static double now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int by_value(const void *left, const void *right)
{
    const double l = *(const double *)left, r = *(const double *)right;
    return (l > r) - (l < r);
}

static bool measure(str folder, unsigned modules, findings *f)
{
    double times[ROUNDS];
    size_t bytes = 0;
    arena *made = arena_new(0); /* the texts, which are not part of the peak */
    const bool well_made = make_tree(made, folder, modules, &bytes, f);
    arena_free(made);
    if (!well_made)
        return false;
    for (size_t round = 0; round <= ROUNDS; round++) { /* the first warms the page cache and is not counted */
        arena *own = arena_new(0);
        struct space s;
        const double start = now();
        const bool well = space_read(own, folder, &s, findings_new(own));
        const double spent = now() - start;
        const bool right =
            well && s.modules.count == modules + 2 && s.gpu_functions.count == 1 && s.installs.count == 1;
        arena_free(own);
        if (!right)
            return false;
        if (round > 0)
            times[round - 1] = spent;
    }
    qsort(times, ROUNDS, sizeof *times, by_value);
    printf("space/read modules=%u bytes=%zu: %.1f ms (%.1f to %.1f), %.0f MB/s\n", modules, bytes,
           times[ROUNDS / 2], times[0], times[ROUNDS - 1], (double)bytes / times[ROUNDS / 2] / 1e3);
    return true;
}

/* bench_scan [FOLDER]: keeps the trees in FOLDER, so that another parser can be timed on the same files. */
int main(int argc, char **argv)
{
    char name[] = "/tmp/felloe-bench-XXXXXX";
    arena *a = arena_new(0);
    findings *f = findings_new(a);
    const str root = str_from(argc > 1 ? argv[1] : mkdtemp(name));
    const bool well = root.p && measure(path_join(a, root, S("app")), 20, f) &&
                      measure(path_join(a, root, S("tree")), 2000, f);
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    printf("peak memory: %ld MB\n", usage.ru_maxrss / 1024);
    if (argc == 1 && root.p) {
        const char *const remove[] = {"rm", "-rf", root.p, NULL};
        struct proc_result result;
        (void)proc_run(a, &(struct proc_options){.argv = remove}, &result, f);
    }
    arena_free(a);
    return well ? 0 : 1;
}
