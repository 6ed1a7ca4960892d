/* Names of wheels: fields, where they are found in URLs and lines, and what they say about the build. Judge: PEP 427, 491,
 * 503 and 825, and the file names that publishers use. */
#include <setjmp.h>
#include <stdio.h>

#include <cmocka.h>

#include "wheel/wheel.h"

static arena *memory;

static int start(void **state)
{
    (void)state;
    memory = arena_new(0);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    arena_free(memory);
    return 0;
}

static struct wheel_name name_of(const char *text)
{
    struct wheel_name name;
    str why;
    if (!wheel_name_parse(memory, str_from(text), &name, &why))
        fail_msg("'%s' was refused: %.*s", text, STR_ARG(why));
    return name;
}

/* "-" stands for an absent text. */
static void expect_text(const char *name, const char *expected, str got)
{
    const char *text = got.p ? str_c(memory, got) : "-";
    if (strcmp(expected, text) != 0)
        fail_msg("%s: expected %s, got %s", name, expected, text);
}

static void the_file_name_is_found_wherever_it_stands(void **state)
{
    (void)state;
    static const char *const TEXTS[] = {
        "torch-2.11.0+cu130-cp312-cp312-linux_x86_64.whl",
        "https://example.org/whl/torch-2.11.0%2Bcu130-cp312-cp312-linux_x86_64.whl",
        "https://example.org/whl/torch-2.11.0%2bcu130-cp312-cp312-linux_x86_64.whl?download=true#sha256=00",
        "https://example.org/o/whl%2Ftorch-2.11.0%2Bcu130-cp312-cp312-linux_x86_64.whl?alt=media",
        "torch @ https://example.org/torch-2.11.0+cu130-cp312-cp312-linux_x86_64.whl ; os_name < 'z'",
        "torch[x]@file:///D:/a/torch-2.11.0%2Bcu130-cp312-cp312-linux_x86_64.whl#sha256=00",
        "https://example.org/torch-2.11.0+cu130-cp312-cp312-linux_x86_64.whl --hash=sha256:00",
        "pip install https://example.org/torch-2.11.0+cu130-cp312-cp312-linux_x86_64.whl",
        "https://user@example.org/torch-2.11.0+cu130-cp312-cp312-linux_x86_64.whl; sys_platform == 'linux'",
        "./wheels/torch-2.11.0+cu130-cp312-cp312-linux_x86_64.whl ; sys_platform == 'linux'",
        "my wheels/torch-2.11.0+cu130-cp312-cp312-linux_x86_64.whl # the good one",
        "C:\\wheels\\torch-2.11.0+cu130-cp312-cp312-linux_x86_64.whl",
        "  torch-2.11.0%2Bcu130-cp312-cp312-linux_x86_64.whl#sha256=00\r\n",
    };
    for (size_t i = 0; i < COUNT(TEXTS); i++)
        expect_text(TEXTS[i], "torch-2.11.0+cu130-cp312-cp312-linux_x86_64.whl", name_of(TEXTS[i]).file);
}

static void a_name_comes_apart_into_its_fields(void **state)
{
    (void)state;
    const struct wheel_name name = name_of(
        "Flash_Attn-2.7.4.Post1+cu12torch2.6cxx11abiFALSE-1b-cp39.cp310-abi3.none-linux_x86_64.1.whl");
    expect_text("distribution", "Flash_Attn", name.distribution);
    expect_text("name", "flash-attn", name.name);
    expect_text("version", "2.7.4.Post1", name.version_text);
    expect_text("local", "cu12torch2.6cxx11abiFALSE", name.local);
    expect_text("build tag", "1b", name.build_tag);
    expect_text("python", "cp39,cp310", str_join(memory, &name.tags.python, S(",")));
    expect_text("abi", "abi3,none", str_join(memory, &name.tags.abi, S(",")));
    expect_text("platform", "linux_x86_64,1", str_join(memory, &name.tags.platform, S(",")));
    expect_text("variant", "-", name.variant);
}

static void a_label_behind_the_platform_is_a_variant(void **state)
{
    (void)state;
    const struct wheel_name plain = name_of("x-1.0-cp312-cp312-linux_x86_64-cu130.whl"),
                            built = name_of("x-1.0-1-cp312-cp312-manylinux_2_28_x86_64-null.whl"),
                            digit = name_of("x-1.0-py3-none-any-00a9.torch_2.whl");
    expect_text("variant", "cu130", plain.variant);
    expect_text("build tag", "-", plain.build_tag);
    expect_text("variant", "null", built.variant);
    expect_text("build tag", "1", built.build_tag);
    expect_text("variant", "00a9.torch_2", digit.variant);
}

static void a_broken_name_says_which_part_and_what_was_expected(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } CASES[] = {
        {"torch-2.11.0.tar.gz", "not a wheel: expected a name that ends in .whl"},
        {"torch-2.11.0-cp312-linux_x86_64.whl", "a wheel's name has 5 or 6 fields between dashes "
                                                "(name-version[-build]-python-abi-platform), this one has 4"},
        {"spconv-cu120-2.3.6-cp312-cp312-linux_x86_64.whl", "version 'cu120' is no PEP 440 version"},
        {"x-1.0%252Bcu130-py3-none-any.whl",
         "version '1.0%2Bcu130' is no PEP 440 version: its '+' is percent-encoded twice"},
        {"x-1.0+cu130-torch2.10-cp312-cp312-linux_x86_64.whl",
         "build tag 'torch2.10': expected a digit at its start (a '-' in a local version is written '.' in a "
         "file name)"},
        {"x-1.0-post1-cp312-cp312-linux_x86_64.whl", "build tag 'post1': expected a digit at its start"},
        {"x__y-1.0-py3-none-any.whl", "distribution 'x__y': expected letters, digits, '.' and single '_'"},
        {"x-1.0-py3..py2-none-any.whl", "an empty member in a tag set: expected names joined by single dots"},
        {"x-1.0-3.12-none-any.whl", "python tag '3': expected one such as cp312 or py3"},
        {"x-1.0-py3%00-none-any.whl", "control character 0 at byte 10 of the name"},
        {"", "not a wheel: expected a name that ends in .whl"},
    };
    for (size_t i = 0; i < COUNT(CASES); i++) {
        struct wheel_name name;
        str why = {NULL, 0};
        assert_false(wheel_name_parse(memory, str_from(CASES[i].text), &name, &why));
        expect_text(CASES[i].text, CASES[i].why, why);
        assert_null(name.distribution.p);
    }
}

static void distributions_compare_in_normal_form(void **state)
{
    (void)state;
    assert_true(name_same(S("Flash_Attn"), S("flash-attn")));
    assert_true(name_same(S("a-_.b"), S("A.B")));
    assert_false(name_same(S("flash-attn"), S("flash-attn-3")));
    assert_false(name_same(S("a"), S("a-")));
    assert_true(name_is_valid(S("a.b_C-1")));
    assert_false(name_is_valid(S("a-")));
    assert_false(name_is_valid(S("")));
}

static void the_local_version_tells_cuda_torch_and_abi(void **state)
{
    (void)state;
    static const struct {
        const char *distribution, *local, *cuda, *torch, *other;
        int abi;
    } CASES[] = {
        {"flash_attn", "cu12torch2.6cxx11abiFALSE", "12", "2.6", "-", 0},
        {"flash_attn", "cu130torch2.10", "13.0", "2.10", "-", -1},
        {"flash_attn", "torch2.11.0.cu130", "13.0", "2.11.0", "-", -1},
        {"flash_attn", "torch2.9.1.cuda13.1", "13.1", "2.9.1", "-", -1},
        {"pytorch3d", "d9839a9pt2.8.0cu128", "12.8", "2.8.0", "-", -1},
        {"diso", "0a9fb5fpt2.10.0cu130", "13.0", "2.10.0", "-", -1}, /* the hash ends with a letter */
        {"pytorch3d", "py310.cu118.pyt2.0.1", "11.8", "2.0.1", "-", -1},
        {"torch_scatter", "pt27cu128", "12.8", "2.7", "-", -1},
        {"torch_scatter", "pt113cu117", "11.7", "1.13", "-", -1},
        {"torch_scatter", "pt210cu128", "12.8", "2.10", "-", -1},
        {"gsplat", "pt20cu118", "11.8", "2.0", "-", -1},
        {"natten", "torch210cu118", "11.8", "2.1.0", "-", -1},
        {"natten", "torch1130cu117", "11.7", "1.13.0", "-", -1},
        {"custom_rasterizer", "torch2100.cuda130", "13.0", "2.10.0", "-", -1},
        {"flash_attn_3", "20260318.cu128torch280cxx11abitrue.8afc61", "12.8", "2.8.0", "-", 1},
        {"unheard_of", "pt210cu128", "12.8", "2.10", "2.1.0", -1}, /* both exist */
        {"unheard_of", "torch212cu128", "12.8", "2.1.2", "2.12", -1},
        {"unheard_of", "torch271cu128", "12.8", "2.7.1", "-", -1}, /* there is no torch 2.71 */
        {"unheard_of", "pt213", "-", "2.13", "-", -1},             /* nor a 2.1.3 */
        {"unheard_of", "pt2100", "-", "2.10.0", "-", -1},
        {"unheard_of", "torch28", "-", "2.8", "-", -1},
        {"unheard_of", "torch219", "-", "2.1.9", "2.19", -1}, /* neither is known yet */
        {"flash_attn_3", "cu128torch2.10gite2743ab", "12.8", "2.10", "-", -1},
        {"sageattention", "cu126torch2.6.0.post3", "12.6", "2.6.0", "-", -1},
        {"torch", "cu92", "9.2", "-", "-", -1},
        {"torch", "cu102", "10.2", "-", "-", -1},
        {"x", "cu12.8afc61", "12", "-", "-", -1}, /* a hash, not 12.8 */
        {"xformers", "3da0fc92.d20260528", "-", "-", "-", -1},
        {"x", "xcu12.opt2", "-", "-", "-", -1}, /* words inside other words */
        {"x", "cxx11abi1", "-", "-", "-", 1},
        {"x", "cu128torch2.8.0cxx11abi0", "12.8", "2.8.0", "-", 0},
        {"torch", "cpu.cxx11.abi", "-", "-", "-", 1},
        {"nunchaku", "cu12.8torch2.9", "12.8", "2.9", "-", -1},
        {"jaxlib", "cuda11.cudnn86", "11", "-", "-", -1},
        {"x", "cu.torch.pt.rocm", "-", "-", "-", -1},
        {"x", "cu0000torch99999", "-", "-", "-", -1},
    };
    for (size_t i = 0; i < COUNT(CASES); i++) {
        struct wheel_build build;
        wheel_build_read(memory, str_from(CASES[i].distribution), str_from(CASES[i].local), (str){NULL, 0},
                         &build);
        expect_text(CASES[i].local, CASES[i].cuda, build.cuda);
        expect_text(CASES[i].local, CASES[i].torch, build.torch);
        expect_text(CASES[i].local, CASES[i].other, build.torch_other);
        assert_int_equal(CASES[i].abi, build.cxx11abi);
    }
}

static void an_address_tells_the_publisher_where_the_distribution_does_not(void **state)
{
    (void)state;
    const struct wheel_name listed = name_of("https://data.pyg.org/whl/torch-2.10.0%2Bcu130/"
                                             "unheard_of-1.0%2Bpt210cu130-cp312-cp312-linux_x86_64.whl");
    expect_text("torch", "2.10", listed.build.torch);
    expect_text("torch_other", "-", listed.build.torch_other);
}

static void other_hardware_is_told_as_well(void **state)
{
    (void)state;
    expect_text("rocm", "6.4", name_of("torch-2.9.0+rocm6.4-cp312-cp312-linux_x86_64.whl").build.rocm);
    expect_text("rocm", "6.2.4", name_of("torch-2.9.0+rocm6.2.4-cp312-cp312-linux_x86_64.whl").build.rocm);
    expect_text("rocm", "6.2", name_of("x-1+rocm62torch2.5-cp312-cp312-linux_x86_64.whl").build.rocm);
    expect_text("cpu", "cpu",
                name_of("torch_cluster-1.6.3+pt25cpu-cp312-cp312-linux_x86_64.whl").build.accelerator);
    expect_text("cpu", "cpu",
                name_of("x-0.6+18f6958pt2.6.0CPU-cp312-cp312-linux_x86_64.whl").build.accelerator);
    expect_text("xpu", "xpu", name_of("torch-2.9.0+xpu-cp312-cp312-linux_x86_64.whl").build.accelerator);
    expect_text("none", "-", name_of("torch-2.9.0+cu130-cp312-cp312-linux_x86_64.whl").build.accelerator);
}

static void the_distribution_may_name_its_cuda(void **state)
{
    (void)state;
    static const char *const CASES[][2] = {
        {"spconv_cu120", "12.0"},
        {"cupy_cuda12x", "12"},
        {"nvidia_cuda_runtime_cu12", "12"},
        {"cupy_cuda102", "10.2"},
        {"tensorrt_cu12_libs", "12"},
        {"spconv", "-"},
        {"cumesh", "-"},
        {"cu_x", "-"},
    };
    for (size_t i = 0; i < COUNT(CASES); i++) {
        struct wheel_build build;
        wheel_build_read(memory, str_from(CASES[i][0]), (str){NULL, 0}, (str){NULL, 0}, &build);
        expect_text(CASES[i][0], CASES[i][1], build.cuda_in_name);
        assert_null(build.cuda.p);
    }
}

static void a_minimum_of_torch_is_told_from_an_exact_one(void **state)
{
    (void)state;
    assert_true(
        name_of("x-1+cu130torch2.9.0andhigher.post4-cp39-abi3-linux_x86_64.whl").build.torch_is_minimum);
    assert_true(name_of("x-1+torch2.9.orlater-cp39-abi3-linux_x86_64.whl").build.torch_is_minimum);
    assert_false(name_of("x-1+cu130torch2.9.0.post4-cp39-abi3-linux_x86_64.whl").build.torch_is_minimum);
}

static void a_name_as_long_as_a_book_is_refused(void **state)
{
    (void)state;
    struct wheel_name name;
    struct buf b = {.a = memory};
    str why;
    buf_add(&b, S("x-1-py3-none-"));
    for (size_t i = 0; i < 100000; i++)
        buf_add(&b, S("any."));
    buf_add(&b, S("any.whl"));
    assert_false(wheel_name_parse(memory, buf_str(&b), &name, &why));
    expect_text("why", "400020 bytes long: expected at most 1024", why);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_file_name_is_found_wherever_it_stands),
        cmocka_unit_test(a_name_comes_apart_into_its_fields),
        cmocka_unit_test(a_label_behind_the_platform_is_a_variant),
        cmocka_unit_test(a_broken_name_says_which_part_and_what_was_expected),
        cmocka_unit_test(distributions_compare_in_normal_form),
        cmocka_unit_test(the_local_version_tells_cuda_torch_and_abi),
        cmocka_unit_test(an_address_tells_the_publisher_where_the_distribution_does_not),
        cmocka_unit_test(other_hardware_is_told_as_well),
        cmocka_unit_test(the_distribution_may_name_its_cuda),
        cmocka_unit_test(a_minimum_of_torch_is_told_from_an_exact_one),
        cmocka_unit_test(a_name_as_long_as_a_book_is_refused),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
