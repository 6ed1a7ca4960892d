/* Long logs made of what pip, compilers, ninja, Gradio and Python print while nothing is wrong, with lines of a failure somewhere
 * inside. Seeded: the same seed gives the same bytes. Many of the lines are there to be taken for errors. */
#ifndef TESTS_DOCTOR_LOGS_H
#define TESTS_DOCTOR_LOGS_H

#include <stdio.h>

#include "base/base.h"

struct log_maker {
    uint64_t state;
    struct buf out;
    size_t line;
    unsigned style;
};

enum { STYLE_PLAIN, STYLE_DOCKER, STYLE_COLOR, STYLE_CRLF, STYLE_RANKS, STYLE_COUNT };

static inline uint64_t log_random(struct log_maker *m) /* splitmix64 */
{
    uint64_t z = m->state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static inline void log_line(struct log_maker *m, str text)
{
    const unsigned long long seconds = 36000 + m->line / 7;
    if (m->style == STYLE_DOCKER)
        buf_format(&m->out, "2026-03-04T%02llu:%02llu:%02llu.%06uZ ", seconds / 3600 % 24, seconds / 60 % 60,
                   seconds % 60, (unsigned)(log_random(m) % 1000000));
    else if (m->style == STYLE_RANKS)
        buf_format(&m->out, "[rank%u]: ", (unsigned)(log_random(m) % 4));
    if (m->style == STYLE_COLOR)
        buf_add(&m->out, S("\x1b[0m\x1b[01;31m\x1b[K"));
    buf_add(&m->out, text);
    if (m->style == STYLE_COLOR)
        buf_add(&m->out, S("\x1b[m\x1b[K"));
    buf_add(&m->out, m->style == STYLE_CRLF ? S("\r\n") : S("\n"));
    m->line++;
}

static inline void log_noise(struct log_maker *m)
{
    static const char *const PACKAGES[] = {"numpy",      "pillow",  "huggingface-hub", "safetensors",
                                           "einops",     "trimesh", "diffusers",       "transformers",
                                           "accelerate", "rembg",   "omegaconf",       "scikit-image",
                                           "imageio",    "xatlas",  "error-handling"};
    const char *p = PACKAGES[log_random(m) % COUNT(PACKAGES)];
    const unsigned a = (unsigned)(log_random(m) % 40), b = (unsigned)(log_random(m) % 400) + 1;
    char text[512];
    switch (log_random(m) % 34) {
    case 0:
        (void)snprintf(text, sizeof text, "Collecting %s>=%u.%u", p, a, b);
        break;
    case 1:
        (void)snprintf(text, sizeof text, "  Downloading %s-%u.%u-py3-none-any.whl (%u kB)", p, a, b, b);
        break;
    case 2:
        (void)snprintf(text, sizeof text,
                       "Requirement already satisfied: %s in /usr/local/lib/python3.12/site-packages (%u.%u)",
                       p, a, b);
        break;
    case 3:
        (void)snprintf(text, sizeof text,
                       "     \xe2\x94\x81\xe2\x94\x81\xe2\x94\x81\xe2\x94\x81\xe2\x94\x81 %u.0/%u.0 MB 52.1 "
                       "MB/s eta 0:00:00",
                       a, b);
        break;
    case 4:
        (void)snprintf(text, sizeof text,
                       "WARNING: Running pip as the 'root' user can result in broken permissions and "
                       "conflicting behaviour with the system package manager.");
        break;
    case 5:
        (void)snprintf(text, sizeof text,
                       "[%u/%u] c++ -MMD -MF build/%s.o.d -DTORCH_EXTENSION_NAME=_C -isystem "
                       "/usr/local/cuda/include -fPIC -std=c++17 -c csrc/%s.cpp -o build/%s.o",
                       a, b, p, p, p);
        break;
    case 6:
        (void)snprintf(text, sizeof text,
                       "csrc/error.cpp:%u:%u: warning: unused variable 'error' [-Wunused-variable]", b, a);
        break;
    case 7:
        (void)snprintf(text, sizeof text,
                       "   %u |     int error = check(fatal_error_code); // error: never read", b);
        break;
    case 8:
        (void)snprintf(text, sizeof text,
                       "ptxas info    : Used %u registers, used 1 barriers, %u bytes cmem[0]", a, b);
        break;
    case 9:
        (void)snprintf(text, sizeof text,
                       "/src/kernel.cu(%u): warning #20012-D: __device__ annotation is ignored on a "
                       "function(\"error_t\") that is explicitly defaulted",
                       b);
        break;
    case 10:
        (void)snprintf(text, sizeof text,
                       "INFO:     10.16.%u.%u:0 - \"GET /assets/error-%u.js HTTP/1.1\" 200 OK", a, a, b);
        break;
    case 11:
        (void)snprintf(text, sizeof text,
                       "/venv/lib/python3.12/site-packages/%s/layers.py:%u: FutureWarning: "
                       "`torch.cuda.amp.autocast(args...)` is deprecated. Please use "
                       "`torch.amp.autocast('cuda', args...)` instead.",
                       p, b);
        break;
    case 12:
        (void)snprintf(text, sizeof text,
                       "A matching Triton is not available, some optimizations will not be enabled");
        break;
    case 13:
        (void)snprintf(
            text, sizeof text,
            "ERROR: pip's dependency resolver does not currently take into account all the packages that are "
            "installed. This behaviour is the source of the following dependency conflicts.");
        break;
    case 14:
        (void)snprintf(
            text, sizeof text,
            "%s %u.%u requires pydantic<2.12, but you have pydantic 2.12.%u which is incompatible.", p, a, b,
            a);
        break;
    case 15:
        (void)snprintf(
            text, sizeof text,
            "2026-03-04 10:11:%02u.%06u: E external/local_xla/xla/stream_executor/cuda/cuda_fft.cc:477] "
            "Unable to register cuFFT factory: Attempting to register factory for plugin cuFFT when one has "
            "already been registered",
            a, b);
        break;
    case 16:
        (void)snprintf(text, sizeof text,
                       "Loading pipeline components...: %u%%|######    | %u/7 [00:0%u<00:00,  2.91it/s]", a,
                       a % 7, a % 9);
        break;
    case 17:
        (void)snprintf(text, sizeof text, "%u passed, 0 failed, 0 errors in %u.%us", b, a, b);
        break;
    case 18:
        (void)snprintf(text, sizeof text,
                       "WARNING: [Errno 11] Resource temporarily unavailable; retrying in %u s", a);
        break;
    case 19:
        (void)snprintf(text, sizeof text, "-- Performing Test HAVE_STDATOMIC_%u - Failed", b);
        break;
    case 20:
        (void)snprintf(text, sizeof text, "-- Looking for pthread_create in pthreads - not found");
        break;
    case 21:
        (void)snprintf(text, sizeof text, "  copying %s/exceptions/fatal_error.py -> build/lib/%s/exceptions",
                       p, p);
        break;
    case 22:
        (void)snprintf(text, sizeof text,
                       "DEPRECATION: Building '%s' using the legacy setup.py bdist_wheel mechanism, which "
                       "will be removed in a future version.",
                       p);
        break;
    case 23:
        (void)snprintf(text, sizeof text, "step %u loss 0.0%u error_rate 0.%u lr 1e-4", b, a, b);
        break;
    case 24:
        (void)snprintf(text, sizeof text, "Fetching %u files: %u%%|####      | %u/%u [00:02<00:03, 4.44it/s]",
                       b, a, a, b);
        break;
    case 25:
        (void)snprintf(text, sizeof text,
                       "/usr/bin/ld: warning: %s.o: missing .note.GNU-stack section implies executable stack",
                       p);
        break;
    case 26:
        (void)snprintf(text, sizeof text,
                       "SetuptoolsDeprecationWarning: setup.py install is deprecated. Use build and pip and "
                       "other standards-based tools.");
        break;
    case 27:
        (void)snprintf(
            text, sizeof text,
            "UserWarning: The value of the smallest subnormal for <class 'numpy.float32'> type is zero.");
        break;
    case 28:
        (void)snprintf(text, sizeof text, "[notice] A new release of pip is available: 25.%u -> 26.%u", a, a);
        break;
    case 29:
        (void)snprintf(text, sizeof text,
                       "Some weights of %s were not initialized from the model checkpoint and are newly "
                       "initialized: ['head.%u.weight']",
                       p, b);
        break;
    case 30:
        (void)snprintf(text, sizeof text, "npm warn deprecated %s@%u.%u: this version is no longer supported",
                       p, a, b);
        break;
    case 31:
        (void)snprintf(text, sizeof text,
                       "debconf: delaying package configuration, since apt-utils is not installed");
        break;
    case 32:
        (void)snprintf(text, sizeof text, "Note: switching to '%08x%04x'. You are in 'detached HEAD' state.",
                       b * 7919u, a * 31u);
        break;
    default:
        (void)snprintf(text, sizeof text, "%s: cache hit, %u entries, %u bytes", p, a, b * 4096);
        break;
    }
    log_line(m, str_from(text));
}

/* `total` lines in all, with `lines` in a row after `before` of them. Memory is the arena's. */
static inline str log_wrapped(arena *a, uint64_t seed, unsigned style, size_t total, const struct strs *lines,
                              size_t before)
{
    struct log_maker m = {.state = seed, .out = {.a = a}, .style = style};
    while (m.line < before)
        log_noise(&m);
    if (style == STYLE_RANKS) /* one rank fails; its lines stay in their order */
        m.style = STYLE_DOCKER;
    for (size_t i = 0; i < lines->count; i++)
        log_line(&m, lines->items[i]);
    m.style = style;
    while (m.line < total)
        log_noise(&m);
    return buf_str(&m.out);
}

#endif
