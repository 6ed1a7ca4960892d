/* doctor/scan: throughput over a synthetic log of which one line in a thousand matches, against `grep -E -c -f` with the same
 * patterns in its dialect, on the log's first 32 MiB. Usage: doctor_bench_doctor [MEBIBYTES]. A run counts only when the cause that
 * is planted at the log's end is found. Processor seconds stand beside wall seconds: on a shared machine the latter say little. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "../../tests/doctor/logs.h"
#include "doctor/doctor.h"

enum { RUNS = 5, GREP_MIB = 32 };

static double processor_seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

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

static double read_once(const struct knowledge *k, const char *path, bool *right, double *processor)
{
    arena *a = arena_new(0);
    findings *f = findings_new(a);
    const double start = seconds_now(), used = processor_seconds();
    struct doctor *d = doctor_new(a, k, NULL);
    const int fd = open(path, O_RDONLY);
    struct cause_list list = {0};
    *right = fd >= 0 && doctor_read(d, fd, str_from(path), f) && doctor_end(d, str_from(path), f);
    doctor_causes(a, d, &list);
    const double seconds = seconds_now() - start;
    *processor = processor_seconds() - used;
    *right = *right && list.count && str_eq(list.items[0].label, S("arch-unknown-to-nvcc"));
    (void)close(fd);
    doctor_free(d);
    arena_free(a);
    return seconds;
}

/* The pattern in grep's dialect: no (?:...), no (?i), no \\d. */
static str for_grep(arena *a, str pattern)
{
    struct buf b = {.a = a};
    bool in_class = false;
    for (size_t i = 0; i < pattern.n; i++) {
        const str rest = str_from_index(pattern, i);
        if (str_starts(rest, S("(?i)"))) {
            i += 3;
        } else if (str_starts(rest, S("(?:"))) {
            buf_char(&b, '(');
            i += 2;
        } else if (str_starts(rest, S("\\d"))) {
            buf_add(&b, in_class ? S("0-9") : S("[0-9]"));
            i++;
        } else if (str_starts(rest, S("\\n"))) {
            i++;
        } else if (rest.p[0] == '\\' && rest.n > 1) {
            buf_add(&b, str_slice(rest, 0, 2));
            i++;
        } else {
            in_class = rest.p[0] == '[' || (in_class && rest.p[0] != ']');
            buf_char(&b, rest.p[0]);
        }
    }
    return buf_str(&b);
}

/* Processor seconds of grep over the first GREP_MIB of the log; negative when it could not be run. */
static double grep_seconds(arena *a, const struct knowledge *k, const char *path)
{
    char patterns[] = "/tmp/felloe-patterns-XXXXXX";
    const int fd = mkstemp(patterns);
    FILE *out = fd >= 0 ? fdopen(fd, "w") : NULL;
    for (size_t i = 0; out && i < knowledge_pattern_count(k); i++)
        (void)fprintf(out, "%.*s\n", STR_ARG(for_grep(a, knowledge_pattern(k, i))));
    if (!out || fclose(out) != 0)
        return -1;
    struct rusage before, after;
    (void)getrusage(RUSAGE_CHILDREN, &before);
    const str command =
        str_format(a, "head -c %dM '%s' | LC_ALL=C timeout 300 grep -E -c -f '%s' > /dev/null 2>&1", GREP_MIB,
                   path, patterns);
    const int status = system(str_c(a, command));
    (void)getrusage(RUSAGE_CHILDREN, &after);
    (void)unlink(patterns);
    const double used = (double)(after.ru_utime.tv_sec - before.ru_utime.tv_sec) +
                        1e-6 * (double)(after.ru_utime.tv_usec - before.ru_utime.tv_usec);
    return status == 0 || status == 256 ? used : -used;
}

int main(int argc, char **argv)
{
    const size_t mebibytes = argc > 1 ? (size_t)strtoul(argv[1], NULL, 10) : 1024;
    const double gigabytes = (double)mebibytes * 1048576e-9;
    arena *a = arena_new(0);
    findings *f = findings_new(a);
    const double loading = seconds_now();
    struct knowledge *k = knowledge_load(a, f);
    if (!k)
        return 1;
    (void)printf("doctor/load patterns=%zu: %.3f s\n", knowledge_pattern_count(k), seconds_now() - loading);
    char path[] = "/tmp/felloe-bench-XXXXXX";
    const int fd = mkstemp(path);
    if (fd < 0 || close(fd) != 0 || !write_log(path, mebibytes << 20))
        return 1;
    double wall[RUNS], processor[RUNS];
    bool right = true;
    for (int i = 0; i < RUNS && right; i++)
        wall[i] = read_once(k, path, &right, &processor[i]);
    if (right) {
        qsort(wall, RUNS, sizeof *wall, by_value);
        qsort(processor, RUNS, sizeof *processor, by_value);
        (void)printf("doctor/scan MiB=%zu matching=0.1%%: wall %.3f s (%.3f to %.3f), processor %.3f s (%.3f "
                     "to %.3f), %.2f GB per "
                     "processor second, peak %ld KiB\n",
                     mebibytes, wall[RUNS / 2], wall[0], wall[RUNS - 1], processor[RUNS / 2], processor[0],
                     processor[RUNS - 1], gigabytes / processor[RUNS / 2], peak_kib());
        const double grep = grep_seconds(a, k, path);
        const double scan = processor[RUNS / 2] * GREP_MIB / (double)mebibytes;
        (void)printf("grep -E -c -f, same patterns, MiB=%d: processor %.3f s%s, ratio %.1f\n", GREP_MIB,
                     grep < 0 ? -grep : grep, grep < 0 ? " (stopped after 300 s)" : "",
                     (grep < 0 ? -grep : grep) / scan);
    } else {
        (void)printf("doctor/scan: the planted cause was not found, figures are void\n");
    }
    (void)unlink(path);
    knowledge_free(k);
    arena_free(a);
    return right ? 0 : 1;
}
