/* doctor/scan: throughput over a synthetic log of which one line in a thousand matches, against `grep -E -c -f` with the same
 * patterns. Usage: doctor_bench_doctor [MEBIBYTES [TEXT-PATTERNS-OUT]]. First a check: the cause planted at the end is found. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../../tests/doctor/logs.h"
#include "doctor/doctor.h"

enum { RUNS = 5, UNIT_LINES = 20000 };

static int by_value(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static long peak_kib(void)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

/* A log of at least `bytes`: lines of builds without a match, and every thousandth line a warning that the matcher knows. */
static bool write_log(const char *path, size_t bytes)
{
    static const char *const MATCHING[] = {
        "WARNING: /src/forward.cu(88): fatal error: third_party/glm/glm.hpp: No such file or directory, "
        "retrying\n",
        "UserWarning: CUDA out of memory while probing, retrying with half the batch\n",
        "Building extension module gsplat_cuda...\n",
    };
    FILE *file = fopen(path, "w");
    if (!file)
        return false;
    struct log_maker random = {.state = 11};
    size_t written = 0, line = 0;
    char text[400];
    while (written < bytes) {
        const unsigned a = (unsigned)(log_random(&random) % 900), b = (unsigned)(log_random(&random) % 9000);
        int n;
        if (++line % 1000 == 0)
            n = snprintf(text, sizeof text, "%s", MATCHING[line / 1000 % COUNT(MATCHING)]);
        else
            switch (line % 5) {
            case 0:
                n = snprintf(text, sizeof text,
                             "[%u/%u] c++ -MMD -MF build/k%u.o.d -DNAME=_C -isystem /usr/include/torch -fPIC "
                             "-std=c++17 -O3 csrc/k%u.cpp -o build/k%u.o\n",
                             a, b, b, b, b);
                break;
            case 1:
                n = snprintf(text, sizeof text,
                             "ptxas info    : Used %u registers, used 1 barriers, %u bytes cmem[0], compile "
                             "time %u.0 ms\n",
                             a, b, a);
                break;
            case 2:
                n = snprintf(text, sizeof text,
                             "Requirement satisfied: package-%u>=%u.%u in "
                             "/usr/local/lib/python3.12/site-packages (from app==0.%u)\n",
                             b, a, b, a);
                break;
            case 3:
                n = snprintf(text, sizeof text,
                             "2026-03-04 10:%02u:%02u.%06u INFO step %u loss 0.%u lr 1e-4 grad_norm 0.%u "
                             "throughput %u samples\n",
                             a % 60, b % 60, b, b, a, b, a);
                break;
            default:
                n = snprintf(text, sizeof text,
                             "INFO:     10.16.%u.%u:0 - \"GET /assets/index-%u.js HTTP/1.1\" 200 OK\n",
                             a % 255, b % 255, b);
                break;
            }
        written += fwrite(text, 1, (size_t)n, file);
    }
    (void)fputs("nvcc fatal   : Unsupported gpu architecture 'compute_120'\n", file);
    return fclose(file) == 0;
}

static double read_once(const struct knowledge *k, const char *path, size_t *causes, bool *right)
{
    arena *a = arena_new(0);
    findings *f = findings_new(a);
    const double start = seconds_now();
    struct doctor *d = doctor_new(a, k, NULL);
    const int fd = open(path, O_RDONLY);
    struct cause_list list = {0};
    *right = fd >= 0 && doctor_read(d, fd, str_from(path), f) && doctor_end(d, str_from(path), f);
    doctor_causes(a, d, &list);
    const double seconds = seconds_now() - start;
    *right = *right && list.count && str_eq(list.items[0].label, S("arch-unknown-to-nvcc"));
    *causes = list.count;
    (void)close(fd);
    doctor_free(d);
    arena_free(a);
    return seconds;
}

int main(int argc, char **argv)
{
    const size_t mebibytes = argc > 1 ? (size_t)strtoul(argv[1], NULL, 10) : 1024;
    arena *a = arena_new(0);
    findings *f = findings_new(a);
    const double loading = seconds_now();
    struct knowledge *k = knowledge_load(a, f);
    if (!k)
        return 1;
    (void)printf("doctor/load patterns=%zu: %.3f s\n", knowledge_pattern_count(k), seconds_now() - loading);
    if (argc > 2) { /* for grep -E: its dialect has no (?:...), (?i), \d, \w inside a class */
        FILE *out = fopen(argv[2], "w");
        for (size_t i = 0; out && i < knowledge_pattern_count(k); i++)
            (void)fprintf(out, "%.*s\n", STR_ARG(knowledge_pattern(k, i)));
        if (out)
            (void)fclose(out);
    }
    char path[] = "/tmp/felloe-bench-XXXXXX";
    const int fd = mkstemp(path);
    if (fd < 0 || close(fd) != 0 || !write_log(path, mebibytes << 20))
        return 1;
    double seconds[RUNS];
    bool right = true;
    size_t causes = 0;
    for (int i = 0; i < RUNS && right; i++)
        seconds[i] = read_once(k, path, &causes, &right);
    if (right) {
        qsort(seconds, RUNS, sizeof *seconds, by_value);
        const double gigabytes = (double)mebibytes * 1048576e-9;
        (void)printf(
            "doctor/scan MiB=%zu matching=0.1%%: %.3f s (spread %.3f to %.3f), %.2f GB/s, peak %ld KiB\n",
            mebibytes, seconds[RUNS / 2], seconds[0], seconds[RUNS - 1], gigabytes / seconds[RUNS / 2],
            peak_kib());
    } else {
        (void)printf("doctor/scan: the planted cause was not found, figures are void\n");
    }
    if (argc > 3)
        (void)rename(path, argv[3]);
    else
        (void)unlink(path);
    knowledge_free(k);
    arena_free(a);
    return right ? 0 : 1;
}
