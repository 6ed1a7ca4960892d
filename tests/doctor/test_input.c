/* Judge: the plain text of the same log. Whatever carries it (gzip, UTF-16, colours, carriage returns, pieces of any size), the
 * causes and their lines must be those of the plain text; and inputs that are no log must end well. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <isa-l/igzip_lib.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor/doctor.h"
#include "logs.h"

static arena *memory;
static struct knowledge *known;

static const char FAILURE[] = "nvcc fatal   : Unsupported gpu architecture 'compute_120'";

static str long_log(unsigned style)
{
    struct strs lines = {0};
    (void)strs_add(memory, &lines, str_from(FAILURE));
    return log_wrapped(memory, 42, style, 9000, &lines, 4321);
}

/* Feeds in pieces of `piece` bytes. */
static struct cause_list causes_of(span bytes, size_t piece, bool *good, size_t *lines)
{
    struct doctor *d = doctor_new(memory, known, NULL);
    struct cause_list causes;
    for (size_t at = 0; at < bytes.n; at += piece)
        doctor_feed(d, (span){bytes.p + at, bytes.n - at < piece ? bytes.n - at : piece});
    const bool ended = doctor_end(d, S("log"), findings_new(memory));
    if (good)
        *good = ended;
    if (lines)
        *lines = doctor_lines(d);
    doctor_causes(memory, d, &causes);
    doctor_free(d);
    return causes;
}

static void expect_failure_at(span bytes, size_t piece, size_t line)
{
    bool good;
    size_t lines;
    const struct cause_list causes = causes_of(bytes, piece, &good, &lines);
    assert_true(good);
    assert_true(causes.count >= 1);
    assert_true(str_eq(causes.items[0].label, S("arch-unknown-to-nvcc")));
    assert_int_equal(line, causes.items[0].line);
    assert_int_equal(9000, lines);
}

static void pieces_of_any_size_give_the_same_answer(void **state)
{
    (void)state;
    const size_t sizes[] = {1, 3, 4096, 65537, 262144, 1 << 30};
    for (size_t i = 0; i < COUNT(sizes); i++)
        expect_failure_at(span_from_str(long_log(STYLE_DOCKER)), sizes[i], 4322);
}

static span gzipped(span text)
{
    struct isal_zstream z;
    const size_t room = text.n + 4096;
    uint8_t *out = arena_array(memory, uint8_t, room);
    isal_deflate_init(&z);
    z.gzip_flag = IGZIP_GZIP;
    z.end_of_stream = 1;
    z.next_in = (uint8_t *)(uintptr_t)text.p;
    z.avail_in = (uint32_t)text.n;
    z.next_out = out;
    z.avail_out = (uint32_t)room;
    assert_int_equal(COMP_OK, isal_deflate(&z));
    return (span){out, z.total_out};
}

static void gzip_is_read_in_pieces_and_members(void **state)
{
    (void)state;
    const span text = span_from_str(long_log(STYLE_PLAIN));
    const span whole = gzipped(text);
    expect_failure_at(whole, 1 << 20, 4322);
    expect_failure_at(whole, 7, 4322);
    const span first = gzipped((span){text.p, 1000}), second = gzipped((span){text.p + 1000, text.n - 1000});
    struct buf both = {.a = memory};
    buf_add(&both, str_from_span(first));
    buf_add(&both, str_from_span(second));
    expect_failure_at(span_from_str(buf_str(&both)), 4096, 4322);
}

static void cut_gzip_is_said_and_what_came_is_diagnosed(void **state)
{
    (void)state;
    const span whole = gzipped(span_from_str(long_log(STYLE_PLAIN)));
    bool good = true;
    const struct cause_list causes = causes_of((span){whole.p, whole.n - 100}, 4096, &good, NULL);
    assert_false(good);
    assert_true(causes.count >= 1 && str_eq(causes.items[0].label, S("arch-unknown-to-nvcc")));
}

static span utf16(str text, bool big, bool mark)
{
    uint8_t *out = arena_array(memory, uint8_t, text.n * 2 + 2);
    size_t n = 0;
    if (mark) {
        out[n++] = big ? 0xFE : 0xFF;
        out[n++] = big ? 0xFF : 0xFE;
    }
    for (size_t i = 0; i < text.n; i++) {
        const uint8_t c = (uint8_t)text.p[i] < 0x80 ? (uint8_t)text.p[i] : '?';
        out[n++] = big ? 0 : c;
        out[n++] = big ? c : 0;
    }
    return (span){out, n};
}

static void utf16_is_read_with_and_without_a_mark(void **state)
{
    (void)state;
    const str text = long_log(STYLE_CRLF);
    for (unsigned i = 0; i < 4; i++)
        expect_failure_at(utf16(text, i & 1, i & 2), i & 1 ? 4095 : 1 << 20, 4322);
}

static void progress_bars_do_not_move_line_numbers(void **state)
{
    (void)state;
    const struct cause_list causes =
        causes_of(span_from_str(S("one\r 10%\r 50%\r100%\ntwo\r\n\x1b[31mnvcc \x1b[0mfatal   : Unsupported "
                                  "gpu architecture 'compute_120'\n")),
                  1 << 20, NULL, NULL);
    assert_true(causes.count == 1);
    assert_int_equal(3, causes.items[0].line);
    assert_string_equal(FAILURE, str_c(memory, causes.items[0].excerpt));
}

static void inputs_that_are_no_log_end_well(void **state)
{
    (void)state;
    uint8_t *noise = arena_array(memory, uint8_t, 3 << 20);
    struct log_maker random = {.state = 5};
    for (size_t i = 0; i < 3 << 20; i++)
        noise[i] = (uint8_t)log_random(&random);
    const span inputs[] = {{noise, 0},
                           {noise, 1},
                           {noise, 3 << 20},
                           {(const uint8_t *)"\n", 1},
                           {(const uint8_t *)"\x1b", 1},
                           {(const uint8_t *)"\x1f\x8b\x08", 3},
                           {(const uint8_t *)"\xff\xfe", 2},
                           {(const uint8_t *)"\xff\xfe\x00", 3}};
    for (size_t i = 0; i < COUNT(inputs); i++) {
        const struct cause_list causes = causes_of(inputs[i], 65536, NULL, NULL);
        assert_int_equal(0, causes.count);
    }
}

static void failure_inside_an_endless_line_is_found(void **state)
{
    (void)state;
    const size_t n = 32 << 20;
    char *line = arena_array(memory, char, n);
    memset(line, 'x', n);
    memcpy(line + 262144 - 20, FAILURE, sizeof FAILURE - 1); /* across the end of a block */
    const struct cause_list causes = causes_of((span){(const uint8_t *)line, n}, 65536, NULL, NULL);
    assert_true(causes.count >= 1 && str_eq(causes.items[0].label, S("arch-unknown-to-nvcc")));
    assert_int_equal(1, causes.items[0].line);
    assert_true(causes.items[0].excerpt.n <= 2000);
}

static void memory_does_not_grow_with_the_log(void **state)
{
    (void)state;
    const str log = long_log(STYLE_PLAIN);
    arena *a = arena_new(0);
    struct doctor *d = doctor_new(a, known, NULL);
    for (int i = 0; i < 20; i++)
        doctor_feed(d, span_from_str(log));
    const size_t after_20 = arena_used(a);
    for (int i = 0; i < 200; i++)
        doctor_feed(d, span_from_str(log));
    assert_true(arena_used(a) - after_20 < 64 << 10);
    doctor_free(d);
    arena_free(a);
}

static void unknown_error_is_said_to_be_unknown(void **state)
{
    (void)state;
    const struct cause_list causes = causes_of(
        span_from_str(S("starting\nTraceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n"
                        "ZeroDivisionError: division by zero\n")),
        1 << 20, NULL, NULL);
    assert_int_equal(1, causes.count);
    assert_string_equal("unknown", str_c(memory, causes.items[0].label));
    assert_true(causes.items[0].confidence <= 0.5);
    assert_true(str_contains(causes.items[0].excerpt, S("ZeroDivisionError")));
}

static void silence_after_the_work_is_a_hang(void **state)
{
    (void)state;
    struct cause_list causes =
        causes_of(span_from_str(S("12:00:01 Sampling done in 9.1 s\n12:02:31 worker timed out, stopping\n")),
                  99, NULL, NULL);
    assert_true(causes.count >= 1 && str_eq(causes.items[0].label, S("pickle-boundary")));
    assert_true(str_contains(causes.items[0].what, S("150 s")));
    causes =
        causes_of(span_from_str(S("12:00:01 Sampling done in 9.1 s\n12:02:31 request 2\n")), 99, NULL, NULL);
    assert_int_equal(0, causes.count);
}

static void first_error_of_a_chain_is_the_root(void **state)
{
    (void)state;
    const struct cause_list causes =
        causes_of(span_from_str(S("Traceback (most recent call last):\n"
                                  "ImportError: /v/_C.so: undefined symbol: _ZN3c104cuda9SetDeviceEi\n\n"
                                  "During handling of the above exception, another exception occurred:\n\n"
                                  "Traceback (most recent call last):\n"
                                  "ModuleNotFoundError: No module named 'fallback_kernels'\n")),
                  1 << 20, NULL, NULL);
    assert_int_equal(1, causes.count);
    assert_string_equal("abi-mismatch", str_c(memory, causes.items[0].label));
    assert_true(str_contains(causes.items[0].what, S("_ZN3c104cuda9SetDeviceEi")));
    assert_string_equal("/v/_C.so", str_c(memory, causes.items[0].subject));
}

static void folder_names_the_line_to_change(void **state)
{
    (void)state;
    char folder[] = "/tmp/felloe-app-XXXXXX";
    assert_non_null(mkdtemp(folder));
    const str requirements = path_join(memory, str_from(folder), S("requirements.txt"));
    const str app = path_join(memory, str_from(folder), S("app.py"));
    findings *f = findings_new(memory);
    assert_true(file_write(requirements, span_from_str(S("gradio\nflash-attn==2.7.0\n")), f));
    assert_true(file_write(app, span_from_str(S("import flash_attn\n")), f));
    struct cause_list causes =
        causes_of(span_from_str(S(
                      "ImportError: /v/flash_attn_2_cuda.so: undefined symbol: _ZN3c104cuda9SetDeviceEi\n")),
                  99, NULL, NULL);
    assert_true(doctor_locate(memory, str_from(folder), &causes, f));
    assert_true(causes.count == 1 &&
                str_contains(causes.items[0].fix, S("requirements.txt:2: flash-attn==2.7.0")));
    (void)unlink(str_c(memory, requirements));
    (void)unlink(str_c(memory, app));
    (void)rmdir(folder);
}

/* ---- A command under us ---- */

static int run_command(const char *script, struct cause_list *causes)
{
    char *const argv[] = {(char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c", (char *)(uintptr_t)script,
                          NULL};
    struct doctor *d = doctor_new(memory, known, NULL);
    int code = -1;
    assert_true(doctor_run(d, argv, &code, findings_new(memory)));
    doctor_causes(memory, d, causes);
    doctor_free(d);
    return code;
}

static void command_keeps_its_exit_code_and_is_diagnosed(void **state)
{
    (void)state;
    struct cause_list causes;
    assert_int_equal(0, run_command("exit 0", &causes));
    assert_int_equal(0, causes.count);
    assert_int_equal(7, run_command("echo '/bin/sh: 1: nvcc: not found' >&2; exit 7", &causes));
    assert_true(causes.count == 1 && str_eq(causes.items[0].label, S("no-nvcc")));
    assert_int_equal(128 + SIGTERM, run_command("kill -TERM $$", &causes));
}

static void *signal_soon(void *argument)
{
    (void)argument;
    (void)usleep(300000);
    (void)kill(getpid(), SIGTERM);
    return NULL;
}

static void signal_goes_to_the_command(void **state)
{
    (void)state;
    struct cause_list causes;
    pthread_t thread;
    assert_int_equal(0, pthread_create(&thread, NULL, signal_soon, NULL));
    assert_int_equal(
        42, run_command("trap 'exit 42' TERM; i=0; while [ $i -lt 50 ]; do sleep 0.1; i=$((i+1)); done",
                        &causes));
    (void)pthread_join(thread, NULL);
    (void)signal(SIGTERM, SIG_DFL);
}

static void missing_command_is_a_finding(void **state)
{
    (void)state;
    char *const argv[] = {(char *)(uintptr_t) "/no/such/program", NULL};
    struct doctor *d = doctor_new(memory, known, NULL);
    findings *f = findings_new(memory);
    int code = -1;
    assert_false(doctor_run(d, argv, &code, f));
    assert_int_equal(5, f->exit_code);
    doctor_free(d);
}

/* ---- Following ---- */

struct growing {
    const char *path;
    double told_after[4];
    size_t told;
    double written_at;
};

static void note_cause(void *context, const struct cause *cause)
{
    struct growing *g = context;
    if (cause->severity == SEVERITY_ERROR && g->told < COUNT(g->told_after))
        g->told_after[g->told++] = seconds_now() - g->written_at;
}

static void write_to(const char *path, int flags, const char *text)
{
    const int fd = open(path, O_WRONLY | O_CREAT | flags, 0600);
    assert_true(fd >= 0);
    assert_true(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    (void)close(fd);
}

static void *grow(void *argument)
{
    struct growing *g = argument;
    (void)usleep(300000);
    g->written_at = seconds_now();
    write_to(g->path, O_APPEND, "nvcc: not found\n");
    (void)usleep(900000);
    (void)unlink(g->path); /* rotation: another file of the same name, whose last line has no end */
    g->written_at = seconds_now();
    write_to(g->path, O_APPEND, "OSError: [Errno 28] No space left on device");
    (void)usleep(1500000);
    (void)kill(getpid(), SIGTERM);
    return NULL;
}

static void following_tells_each_cause_once_within_a_second(void **state)
{
    (void)state;
    char path[] = "/tmp/felloe-follow-XXXXXX";
    (void)close(mkstemp(path));
    struct growing g = {.path = path};
    pthread_t thread;
    struct doctor *d = doctor_new(memory, known, NULL);
    interrupts_catch();
    assert_int_equal(0, pthread_create(&thread, NULL, grow, &g));
    assert_true(doctor_follow(d, str_from(path), note_cause, &g, findings_new(memory)));
    (void)pthread_join(thread, NULL);
    doctor_free(d);
    (void)unlink(path);
    assert_int_equal(2, g.told);
    assert_true(g.told_after[0] < 1 && g.told_after[1] < 1);
}

int main(void)
{
    memory = arena_new(0);
    known = knowledge_load(memory, findings_new(memory));
    if (!known)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_of_any_size_give_the_same_answer),
        cmocka_unit_test(gzip_is_read_in_pieces_and_members),
        cmocka_unit_test(cut_gzip_is_said_and_what_came_is_diagnosed),
        cmocka_unit_test(utf16_is_read_with_and_without_a_mark),
        cmocka_unit_test(progress_bars_do_not_move_line_numbers),
        cmocka_unit_test(inputs_that_are_no_log_end_well),
        cmocka_unit_test(failure_inside_an_endless_line_is_found),
        cmocka_unit_test(memory_does_not_grow_with_the_log),
        cmocka_unit_test(unknown_error_is_said_to_be_unknown),
        cmocka_unit_test(silence_after_the_work_is_a_hang),
        cmocka_unit_test(first_error_of_a_chain_is_the_root),
        cmocka_unit_test(folder_names_the_line_to_change),
        cmocka_unit_test(command_keeps_its_exit_code_and_is_diagnosed),
        cmocka_unit_test(signal_goes_to_the_command),
        cmocka_unit_test(missing_command_is_a_finding),
        cmocka_unit_test(
            following_tells_each_cause_once_within_a_second), /* last: it leaves `interrupted` set */
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    knowledge_free(known);
    arena_free(memory);
    return failed;
}
