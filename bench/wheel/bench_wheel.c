/* How many names, versions, requirements and ranks a second. Each case is checked once, then timed in rounds of a fixed
 * number of calls; median and spread of the rounds are printed. What `packaging` needs for the same on the same machine:
 * python3 bench/wheel/bench_packaging.py. */
#include <stdio.h>
#include <stdlib.h>

#include "wheel/wheel.h"

enum { ROUNDS = 15, CALLS = 20000 };

static const str NAMES[] = {
    S_INIT("https://example.org/whl/cu130/torch-2.11.0%2Bcu130-cp312-cp312-manylinux_2_28_x86_64.whl"),
    S_INIT("flash_attn-2.7.3+cu12torch2.6cxx11abiFALSE-cp310-cp310-linux_x86_64.whl"),
    S_INIT("flash_attn_3-3.0.0+cu128torch2.10gite2743ab-cp39-abi3-manylinux_2_24_x86_64.manylinux_2_28_x86_"
           "64.whl"),
    S_INIT("torch_scatter-2.1.2+pt27cu128-cp310-cp310-linux_x86_64.whl"),
    S_INIT("nvdiffrast-0.4.0-cp310-cp310-linux_x86_64.whl"),
    S_INIT("spconv_cu120-2.3.6-cp312-cp312-manylinux_2_17_x86_64.manylinux2014_x86_64.whl"),
    S_INIT("pytorch3d-0.7.9+d9839a9pt2.8.0cu128-cp311-cp311-linux_x86_64.whl"),
    S_INIT("utils3d-0.0.2-py3-none-any.whl"),
};
static const str VERSIONS[] = {S_INIT("2.11.0+cu130"),
                               S_INIT("2.11.0"),
                               S_INIT("2.8"),
                               S_INIT("1.0.post345.dev456"),
                               S_INIT("3.0.0b1"),
                               S_INIT("2.7.4.post1"),
                               S_INIT("0.0.34+3da0fc92.d20260528"),
                               S_INIT("1!2.12rc1")};
static const str REQUIREMENTS[] = {
    S_INIT("torch>=2.8,<2.12,!=2.9.0"), S_INIT("nvdiffrast @ git+https://example.org/nvdiffrast.git@v0.4.0"),
    S_INIT("xformers[dev]==0.0.34; python_version >= '3.10' and sys_platform == 'linux'"), S_INIT("numpy")};

struct bench {
    arena *a; /* a fresh one each round */
    struct version versions[COUNT(VERSIONS)];
    struct tag_list tags;
    struct tag_set wheel;
    uint64_t sum; /* of results, so that no call is left out */
};

static bool parse_name(struct bench *b, size_t i)
{
    struct wheel_name name;
    str why;
    const bool well = wheel_name_parse(b->a, NAMES[i % COUNT(NAMES)], &name, &why);
    b->sum += name.name.n;
    return well;
}

static bool parse_version(struct bench *b, size_t i)
{
    struct version v;
    const bool well = version_parse(b->a, VERSIONS[i % COUNT(VERSIONS)], &v);
    b->sum += v.release_count;
    return well;
}

static bool compare_versions(struct bench *b, size_t i)
{
    const struct version *v = &b->versions[i % COUNT(VERSIONS)],
                         *w = &b->versions[i / COUNT(VERSIONS) % COUNT(VERSIONS)];
    const int order = version_compare(v, w);
    b->sum += (unsigned)order;
    return (order == 0) == (v == w); /* no two of them are equal */
}

static bool parse_requirement(struct bench *b, size_t i)
{
    struct requirement r;
    size_t at;
    const char *expected;
    return requirement_parse(b->a, REQUIREMENTS[i % COUNT(REQUIREMENTS)], &r, &at, &expected);
}

static bool rank_wheel(struct bench *b, size_t i)
{
    (void)i;
    const size_t rank = tags_rank(&b->tags, &b->wheel);
    b->sum += rank;
    return rank == b->tags.count - 13; /* py3-none-any of Python 3.12: the last but py3.11 to py3.0 */
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void run(struct bench *b, const char *name, bool (*call)(struct bench *b, size_t i))
{
    double seconds[ROUNDS];
    for (size_t round = 0; round < ROUNDS; round++) {
        b->a = arena_new(0);
        const double first = seconds_now();
        for (size_t i = 0; i < CALLS; i++)
            if (!call(b, i)) {
                (void)fprintf(stderr, "%s: call %zu gave a wrong result\n", name, i);
                exit(1);
            }
        seconds[round] = seconds_now() - first;
        arena_free(b->a);
    }
    qsort(seconds, ROUNDS, sizeof *seconds, by_value);
    (void)printf("%-24s %10.0f a second  (%.0f to %.0f)\n", name, CALLS / seconds[ROUNDS / 2],
                 CALLS / seconds[ROUNDS - 1], CALLS / seconds[0]);
}

int main(void)
{
    static const struct tag_env ENV = {
        .minor = 12, .machine = S_INIT("x86_64"), .glibc_major = 2, .glibc_minor = 36};
    struct bench b = {.sum = 0};
    arena *a = arena_new(0);
    struct wheel_name name;
    str why;
    bool well = wheel_name_parse(a, S("utils3d-0.0.2-py3-none-any.whl"), &name, &why) &&
                tags_supported(a, &ENV, &b.tags);
    for (size_t i = 0; i < COUNT(VERSIONS); i++)
        well = well && version_parse(a, VERSIONS[i], &b.versions[i]);
    if (!well)
        return 1;
    b.wheel = name.tags;
    run(&b, "wheel/name", parse_name);
    run(&b, "wheel/version-parse", parse_version);
    run(&b, "wheel/version-compare", compare_versions);
    run(&b, "wheel/requirement", parse_requirement);
    run(&b, "wheel/rank-last", rank_wheel);
    (void)printf("(sum of results %llu)\n", (unsigned long long)b.sum);
    arena_free(a);
    return 0;
}
