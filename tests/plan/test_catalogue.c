/* tests/plan/test_catalogue.c. Judge: the names that projects publish under, and their addresses as people write them. */
#include "fixture.h"

static struct catalogue catalogue;
static arena *a;

static int open_catalogue(void **state)
{
    (void)state;
    a = arena_new(0);
    findings *f = findings_new(a);
    return catalogue_read(a, &catalogue, f) ? 0 : -1;
}

static int close_catalogue(void **state)
{
    (void)state;
    arena_free(a);
    return 0;
}

static void names(const struct extension *e, const char *name)
{
    assert_non_null(e);
    assert_string_equal(name, str_c(a, e->name));
}

static void it_holds_every_extension_of_the_field(void **state)
{
    (void)state;
    static const char *const NAMES[] = {"nvdiffrast",
                                        "diff_gaussian_rasterization",
                                        "torchmcubes",
                                        "spconv",
                                        "custom_rasterizer",
                                        "mesh_processor",
                                        "texture_baker",
                                        "uv_unwrapper",
                                        "flex_gemm",
                                        "nvdiffrec_render",
                                        "cumesh",
                                        "o_voxel",
                                        "flash_attn",
                                        "xformers",
                                        "pytorch3d",
                                        "kaolin",
                                        "gsplat",
                                        "simple_knn",
                                        "diffoctreerast",
                                        "vox2seq",
                                        "torch_scatter",
                                        "torch_cluster",
                                        "torchsparse",
                                        "MinkowskiEngine",
                                        "tinycudann",
                                        "sageattention",
                                        "natten",
                                        "detectron2",
                                        "causal_conv1d",
                                        "mamba_ssm",
                                        "fused_ssim",
                                        "pointnet2_ops",
                                        "chamfer",
                                        "diso",
                                        "cubvh",
                                        "nvdiffmodeling",
                                        "flash_attn_3"};
    for (size_t i = 0; i < COUNT(NAMES); i++)
        names(catalogue_by_name(&catalogue, str_from(NAMES[i])), NAMES[i]);
    for (size_t i = 0; i < catalogue.count; i++) {
        assert_true(catalogue.items[i].date.n > 0); /* each says when and where it was read */
        assert_true(catalogue.items[i].source.n > 0);
    }
}

static void imports_match_by_prefix_and_the_longest_wins(void **state)
{
    (void)state;
    names(catalogue_by_import(&catalogue, S("nvdiffrast.torch")), "nvdiffrast");
    names(catalogue_by_import(&catalogue, S("flash_attn.modules.mha")), "flash_attn");
    names(catalogue_by_import(&catalogue, S("flash_attn.cute")), "flash_attn_4");
    names(catalogue_by_import(&catalogue, S("flash_attn_interface")), "flash_attn_3");
    names(catalogue_by_import(&catalogue, S("cumesh_vb")), "cumesh");
    assert_null(catalogue_by_import(&catalogue, S("nvdiffrast2")));
    assert_null(catalogue_by_import(&catalogue, S("numpy")));
    assert_null(catalogue_by_import(&catalogue, S("")));
}

static void distributions_match_in_any_spelling(void **state)
{
    (void)state;
    names(catalogue_by_distribution(&catalogue, S("Flash_Attn")), "flash_attn");
    names(catalogue_by_distribution(&catalogue, S("spconv-cu120")), "spconv");
    names(catalogue_by_distribution(&catalogue, S("spconv_cu126")), "spconv");
    names(catalogue_by_distribution(&catalogue, S("torch.scatter")), "torch_scatter");
    assert_null(catalogue_by_distribution(&catalogue, S("spconv-cpu")));
    assert_null(catalogue_by_distribution(&catalogue, S("flash-attn-stub")));
}

static void repositories_match_however_they_are_written(void **state)
{
    (void)state;
    static const char *const URLS[] = {"git+https://github.com/NVlabs/nvdiffrast",
                                       "git+https://github.com/NVlabs/nvdiffrast/",
                                       "git+https://github.com/NVlabs/nvdiffrast.git@v0.4.0",
                                       "https://github.com/NVlabs/nvdiffrast/archive/refs/heads/main.zip",
                                       "git@github.com:NVlabs/nvdiffrast.git",
                                       "git+ssh://git@github.com/nvlabs/nvdiffrast.git#egg=nvdiffrast"};
    for (size_t i = 0; i < COUNT(URLS); i++) {
        names(catalogue_by_repository(&catalogue, str_from(URLS[i]), NULL), "nvdiffrast");
        assert_string_equal("github.com/nvlabs/nvdiffrast", str_c(a, repository_of(a, str_from(URLS[i]))));
    }
    assert_null(catalogue_by_repository(&catalogue, S("https://github.com/NVlabs/nvdiffrast2"), NULL));
    assert_null(repository_of(a, S("./vendor/nvdiffrast")).p);
    assert_null(repository_of(a, S("https://github.com/NVlabs")).p);
}

static void forks_are_told_apart_by_owner_url_and_folder(void **state)
{
    (void)state;
    static const struct {
        const char *url, *fork;
    } CASES[] = {
        {"git+https://github.com/ashawkey/diff-gaussian-rasterization.git", "ashawkey"},
        {"git+https://github.com/graphdeco-inria/diff-gaussian-rasterization", "inria"},
        {"https://github.com/autonomousvision/mip-splatting.git", "mip-splatting"},
    };
    for (size_t i = 0; i < COUNT(CASES); i++) {
        const struct fork *fork = NULL;
        names(catalogue_by_repository(&catalogue, str_from(CASES[i].url), &fork),
              "diff_gaussian_rasterization");
        assert_non_null(fork);
        assert_string_equal(CASES[i].fork, str_c(a, fork->name));
    }
    const struct extension *e = catalogue_by_name(&catalogue, S("diff_gaussian_rasterization"));
    const struct fork *fork =
        extension_fork(e, S("/tmp/mip-splatting/submodules/diff-gaussian-rasterization"));
    assert_non_null(fork);
    assert_string_equal("mip-splatting", str_c(a, fork->name));
    fork = extension_fork(e, S("https://huggingface.co/spaces/dylanebert/LGM-mini/resolve/main/wheel/x.whl"));
    assert_non_null(fork);
    assert_int_equal(4, fork->result_count);
    assert_null(extension_fork(e, S("./submodules/diff-gaussian-rasterization")));
    assert_string_equal("inria", str_c(a, extension_default_fork(e)->name));
}

/* Two extensions live in one repository: the part of the URL that names a folder decides. */
static void a_subdirectory_decides_between_extensions_of_one_repository(void **state)
{
    (void)state;
    names(catalogue_by_repository(
              &catalogue, S("git+https://github.com/Stability-AI/stable-fast-3d#subdirectory=uv_unwrapper"),
              NULL),
          "uv_unwrapper");
    names(catalogue_by_repository(
              &catalogue, S("git+https://github.com/Stability-AI/stable-fast-3d#subdirectory=texture_baker"),
              NULL),
          "texture_baker");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_holds_every_extension_of_the_field),
        cmocka_unit_test(imports_match_by_prefix_and_the_longest_wins),
        cmocka_unit_test(distributions_match_in_any_spelling),
        cmocka_unit_test(repositories_match_however_they_are_written),
        cmocka_unit_test(forks_are_told_apart_by_owner_url_and_folder),
        cmocka_unit_test(a_subdirectory_decides_between_extensions_of_one_repository),
    };
    return cmocka_run_group_tests(tests, open_catalogue, close_catalogue);
}
