/* Contexts, threads, tensors, memory. Judge: the headers' own promises. No GPU is needed: where there is one, making a context works. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../device/context.h"
#include "device/device.h"

#define TENSOR(p, code_, bits_, ...)                                                                         \
    (&(DLTensor){.data = (p),                                                                                \
                 .device = {kDLCPU, 0},                                                                      \
                 .ndim = (int)COUNT(((int64_t[]){__VA_ARGS__})),                                             \
                 .dtype = {(code_), (bits_), 1},                                                             \
                 .shape = (int64_t[]){__VA_ARGS__}})

static float numbers[64];

static fel_status expect_two(const DLTensor *vertices, const DLTensor *faces)
{
    struct dims n;
    const struct tensor_rule rules[] = {{"vertices", vertices, F32, "v 3"},
                                        {"faces", faces, I32 | I64 | OPTIONAL, "v"}};
    return tensors_expect(test_context(), rules, COUNT(rules), &n);
}

static void wrong_tensors_are_named_with_expected_and_got(void **state)
{
    (void)state;
    DLTensor strided = *TENSOR(numbers, kDLFloat, 32, 2, 3), elsewhere = strided,
             empty = *TENSOR(NULL, kDLFloat, 32, 0, 3);
    int64_t strides[] = {4, 1};
    assert_int_equal(FEL_OK, expect_two(TENSOR(numbers, kDLFloat, 32, 2, 3), NULL));
    assert_int_equal(FEL_OK, expect_two(&empty, NULL)); /* nothing is read: no data is needed */
    assert_int_equal(FEL_INVALID_ARGUMENT, expect_two(NULL, NULL));
    assert_string_equal("vertices: expected a tensor, got NULL", fel_last_error());
    assert_int_equal(FEL_INVALID_SHAPE, expect_two(TENSOR(numbers, kDLFloat, 32, 2, 2), NULL));
    assert_string_equal("vertices: expected float32 [v, 3], got float32 [2, 2]", fel_last_error());
    assert_int_equal(FEL_INVALID_SHAPE, expect_two(TENSOR(numbers, kDLFloat, 32, 2), NULL));
    assert_int_equal(FEL_INVALID_DTYPE, expect_two(TENSOR(numbers, kDLInt, 32, 2, 3), NULL));
    assert_string_equal("vertices: expected float32 [v, 3], got int32 [2, 3]", fel_last_error());
    assert_int_equal(FEL_INVALID_SHAPE,
                     expect_two(TENSOR(numbers, kDLFloat, 32, 2, 3), TENSOR(numbers, kDLInt, 32, 3)));
    assert_string_equal("faces: expected int32 or int64 [v], got int32 [3]", fel_last_error());
    strided.strides = strides;
    assert_int_equal(FEL_INVALID_ARGUMENT, expect_two(&strided, NULL));
    assert_non_null(strstr(fel_last_error(), "contiguous"));
    elsewhere.device = (DLDevice){kDLCUDA, 1};
    assert_int_equal(FEL_WRONG_DEVICE, expect_two(&elsewhere, NULL));
    assert_string_equal("vertices: expected a tensor on the CPU, got one on cuda:1", fel_last_error());
    assert_int_equal(FEL_INVALID_ARGUMENT, expect_two(TENSOR((char *)numbers + 2, kDLFloat, 32, 2, 3), NULL));
    assert_int_equal(FEL_INVALID_SHAPE, expect_two(TENSOR(numbers, kDLFloat, 32, INT64_MAX / 8, 3), NULL));
    assert_int_equal(FEL_INVALID_SHAPE, expect_two(TENSOR(numbers, kDLFloat, 32, -1, 3), NULL));
}

static void options_are_checked(void **state)
{
    (void)state;
    fel_context_options o = FEL_CONTEXT_OPTIONS_INIT;
    fel_context *ctx = (fel_context *)numbers;
    o.size = 4;
    assert_int_equal(FEL_INVALID_ARGUMENT, fel_context_create(&o, &ctx));
    assert_null(ctx);
    o = (fel_context_options)FEL_CONTEXT_OPTIONS_INIT;
    o.threads = -1;
    assert_int_equal(FEL_INVALID_ARGUMENT, fel_context_create(&o, &ctx));
    o = (fel_context_options)FEL_CONTEXT_OPTIONS_INIT;
    o.device.device_type = (DLDeviceType)7;
    assert_int_equal(FEL_INVALID_ARGUMENT, fel_context_create(&o, &ctx));
    assert_int_equal(FEL_INVALID_ARGUMENT, fel_context_create(NULL, NULL));
    assert_string_equal("FEL_NO_CUDA", fel_status_name(FEL_NO_CUDA));
    assert_string_equal("0.1.0", fel_version());
    fel_context_free(NULL);
}

static void without_a_driver_cuda_says_so(void **state)
{
    (void)state;
    fel_context_options o = FEL_CONTEXT_OPTIONS_INIT;
    fel_context *ctx = NULL;
    o.device = (DLDevice){kDLCUDA, 0};
    const fel_status status = fel_context_create(&o, &ctx);
    if (status == FEL_OK) { /* a machine with a GPU */
        assert_true(context_on_cuda(ctx));
        fel_context_free(ctx);
        o.device.device_id = 63;
        assert_int_equal(FEL_NO_CUDA, fel_context_create(&o, &ctx));
        return;
    }
    assert_int_equal(FEL_NO_CUDA, status);
    assert_non_null(strstr(fel_last_error(), "CUDA driver"));
    assert_null(ctx);
}

struct sum_job {
    unsigned char *touched;
};

static void touch(const void *arg, int64_t first, int64_t last)
{
    const struct sum_job *job = arg;
    for (int64_t i = first; i < last; i++)
        job->touched[i]++;
}

enum { MANY = 100003 };
static unsigned char touched[MANY];

static bool each_once(fel_context *ctx, int64_t grain)
{
    const struct sum_job job = {touched};
    memset(touched, 0, sizeof touched);
    if (pool_for(ctx, MANY, grain, touch, &job) != FEL_OK)
        return false;
    for (size_t i = 0; i < MANY; i++)
        if (touched[i] != 1)
            return false;
    return true;
}

static void a_loop_touches_each_index_once(void **state)
{
    (void)state;
    const int64_t grains[] = {1, 7, 1000, MANY, MANY + 1, 0};
    for (size_t i = 0; i < COUNT(grains); i++)
        assert_true(each_once(test_context(), grains[i]));
    assert_int_equal(FEL_OK, pool_for(test_context(), 0, 1, touch, NULL));
    assert_int_equal(FEL_OK, pool_for(test_context(), -5, 1, touch, NULL));
}

static void outer(const void *arg, int64_t first, int64_t last)
{
    (void)arg;
    const struct sum_job job = {touched + 100 * first};
    for (int64_t i = first; i < last; i++) {
        const struct sum_job inner = {job.touched + 100 * (i - first)};
        if (pool_for(test_context(), 100, 3, touch, &inner) != FEL_OK)
            abort();
    }
}

static void loops_may_be_nested(void **state)
{
    (void)state;
    memset(touched, 0, sizeof touched);
    assert_int_equal(FEL_OK, pool_for(test_context(), 1000, 1, outer, NULL));
    for (size_t i = 0; i < 100000; i++)
        assert_int_equal(1, touched[i]);
}

#ifdef FELLOE_SANITIZED
/* A forked child that starts threads is what the next tests are about; ThreadSanitizer ends it unless told otherwise. */
__attribute__((visibility("default"))) const char *__tsan_default_options(void);
const char *__tsan_default_options(void) { return "die_after_fork=0"; }
#endif

static void *first_loops_of_a_child(void *context)
{
    static unsigned char counted[2][1000];
    unsigned char *const mine = counted[*(const int *)context];
    const struct sum_job job = {mine};
    if (pool_for(test_context(), 1000, 10, touch, &job) != FEL_OK)
        return NULL;
    for (size_t i = 0; i < 1000; i++)
        if (mine[i] != 1)
            return NULL;
    return mine;
}

static void two_threads_of_a_child_may_come_first_together(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__
    print_message("ThreadSanitizer cannot follow threads that a forked child starts\n");
    skip();
#endif
    assert_true(each_once(test_context(), 10));
    for (int round = 0; round < 20; round++) {
        const pid_t child = fork();
        if (child == 0) {
            int which[2] = {0, 1};
            void *well = NULL;
            pthread_t other;
            if (pthread_create(&other, NULL, first_loops_of_a_child, &which[1]) != 0)
                _exit(2);
            const bool first = first_loops_of_a_child(&which[0]) != NULL;
            _exit(pthread_join(other, &well) == 0 && first && well ? 0 : 1);
        }
        int status = -1;
        assert_int_equal(child, waitpid(child, &status, 0));
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

static void threads_survive_fork_on_both_sides(void **state)
{
    (void)state;
    for (int round = 0; round < 5; round++) {
        assert_true(each_once(test_context(), 10));
        const pid_t child = fork();
        if (child == 0)
            _exit(each_once(test_context(), 10) && each_once(test_context(), 100) ? 0 : 1);
        int status = -1;
        assert_true(each_once(test_context(), 10));
        assert_int_equal(child, waitpid(child, &status, 0));
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

/* An allocator that refuses the nth piece, and counts what is out. */
struct counting {
    int left, out;
};

static void *counting_allocate(void *user, size_t bytes, void *stream)
{
    struct counting *c = user;
    (void)stream;
    if (c->left-- <= 0)
        return NULL;
    c->out++;
    return malloc(bytes);
}

static void counting_release(void *user, void *memory, void *stream)
{
    struct counting *c = user;
    (void)stream;
    c->out--;
    free(memory);
}

static void scratch_goes_back_also_when_a_piece_is_refused(void **state)
{
    (void)state;
    for (int allowed = 0; allowed < 4; allowed++) {
        struct counting c = {allowed, 0};
        fel_context_options o = FEL_CONTEXT_OPTIONS_INIT;
        fel_context *ctx = NULL;
        o.allocate = counting_allocate;
        o.release = counting_release;
        o.user = &c;
        assert_int_equal(FEL_OK, fel_context_create(&o, &ctx));
        struct scratch scratch = scratch_begin(ctx);
        int got = 0;
        for (int i = 0; i < 4; i++)
            got += scratch_array(&scratch, double, 100) != NULL;
        assert_int_equal(allowed, got);
        assert_string_equal("the allocator refused 800 bytes", fel_last_error());
        assert_null(scratch_array(&scratch, double, SIZE_MAX / 4));
        scratch_end(&scratch);
        assert_int_equal(0, c.out);
        fel_context_free(ctx);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_tensors_are_named_with_expected_and_got),
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(without_a_driver_cuda_says_so),
        cmocka_unit_test(a_loop_touches_each_index_once),
        cmocka_unit_test(loops_may_be_nested),
        cmocka_unit_test(threads_survive_fork_on_both_sides),
        cmocka_unit_test(two_threads_of_a_child_may_come_first_together),
        cmocka_unit_test(scratch_goes_back_also_when_a_piece_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
