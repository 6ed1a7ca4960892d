/* tests/asset/test_asset.c. Judges: the formats' own specifications (what is written must be read back the same), and
 * for gaussians the definition: a turned asset looks, along a turned direction, as the old one did. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <felloe/asset.h>

#include <dirent.h>
#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/felloe-test-XXXXXX";

static const char *in_folder(const char *name)
{
    static char path[4][256];
    static int next;
    char *out = path[next++ % 4];
    snprintf(out, sizeof path[0], "%s/%s", folder, name);
    return out;
}

static size_t read_whole(const char *path, char *out, size_t room)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    const size_t size = fread(out, 1, room, f);
    fclose(f);
    return size;
}

/* Two triangles of a unit square, with everything a mesh can have. */
static float positions[12] = {0, 0, 0, 1, 0, 0, 1, 1, 0.1F, 0, 1, -1.5e-7F};
static float normals[12] = {0, 0, 1, 0, 0, 1, 0.6F, 0, 0.8F, 0, 0, 1};
static float uvs[8] = {0, 0, 1, 0, 1, 1, 0.25F, 0.75F};
static float colors[16] = {1, 0, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1, 128 / 255.0F, 0, 0, 51 / 255.0F};
static int32_t faces[6] = {0, 1, 2, 0, 2, 3};

static fel_asset square(struct fel_mesh *mesh)
{
    *mesh = (struct fel_mesh){.name = "square \"one\"",
                              .vertex_count = 4,
                              .face_count = 2,
                              .positions = positions,
                              .normals = normals,
                              .uvs = uvs,
                              .colors = colors,
                              .faces = faces,
                              .material = -1};
    return (fel_asset){.meshes = mesh, .mesh_count = 1};
}

static void assert_same_mesh(const struct fel_mesh *a, const struct fel_mesh *b)
{
    assert_int_equal(a->vertex_count, b->vertex_count);
    assert_int_equal(a->face_count, b->face_count);
    assert_memory_equal(a->positions, b->positions, (size_t)a->vertex_count * 12);
    assert_memory_equal(a->faces, b->faces, (size_t)a->face_count * 12);
    assert_int_equal(!a->normals, !b->normals);
    assert_int_equal(!a->uvs, !b->uvs);
    assert_int_equal(!a->colors, !b->colors);
    if (a->normals)
        assert_memory_equal(a->normals, b->normals, (size_t)a->vertex_count * 12);
    if (a->uvs)
        assert_memory_equal(a->uvs, b->uvs, (size_t)a->vertex_count * 8);
    if (a->colors)
        assert_memory_equal(a->colors, b->colors, (size_t)a->vertex_count * 16);
}

static fel_asset *read_back(const char *path)
{
    fel_asset *asset = NULL;
    const fel_status status = fel_asset_read(path, NULL, &asset);
    if (status)
        print_message("%s\n", fel_last_error());
    assert_int_equal(FEL_OK, status);
    return asset;
}

static void glb_comes_back_bit_for_bit(void **state)
{
    (void)state;
    uint8_t pixels[12] = {255, 0, 0, 0, 255, 0, 0, 0, 255, 9, 9, 9}, *png;
    size_t png_size;
    assert_int_equal(FEL_OK, fel_png_encode(pixels, 2, 2, 3, 1, 0, &png, &png_size));
    struct fel_picture picture = {.name = "base", .bytes = png, .size = (int64_t)png_size};
    struct fel_material materials[2] = {{.name = "red",
                                         .base_color = {0.5F, 0.25F, 0.1F, 1},
                                         .metallic = 0.3F,
                                         .roughness = 0.7F,
                                         .emissive = {0, 0.5F, 0},
                                         .base_color_texture = 0,
                                         .metallic_roughness_texture = -1,
                                         .normal_texture = -1,
                                         .occlusion_texture = -1,
                                         .emissive_texture = 0,
                                         .alpha_mode = 1,
                                         .alpha_cutoff = 0.4F,
                                         .double_sided = 1},
                                        {.base_color = {1, 1, 1, 1},
                                         .base_color_texture = -1,
                                         .metallic_roughness_texture = -1,
                                         .normal_texture = -1,
                                         .occlusion_texture = -1,
                                         .emissive_texture = -1,
                                         .alpha_cutoff = 0.5F}};
    struct fel_mesh meshes[2];
    fel_asset asset = square(meshes);
    meshes[0].material = 0;
    meshes[1] = (struct fel_mesh){
        .vertex_count = 4, .face_count = 1, .positions = positions, .faces = faces + 3, .material = 1};
    asset.mesh_count = 2;
    asset.materials = materials;
    asset.material_count = 2;
    asset.pictures = &picture;
    asset.picture_count = 1;
    assert_int_equal(FEL_OK, fel_asset_write(in_folder("a.glb"), &asset, NULL));

    fel_asset *read = read_back(in_folder("a.glb"));
    assert_int_equal(FEL_ASSET_GLB, read->format);
    assert_int_equal(2, read->mesh_count);
    assert_same_mesh(meshes, read->meshes);
    assert_same_mesh(meshes + 1, read->meshes + 1);
    assert_string_equal("square \"one\"", read->meshes[0].name);
    assert_int_equal(2, read->material_count);
    assert_string_equal("red", read->materials[0].name);
    assert_memory_equal(materials[0].base_color, read->materials[0].base_color,
                        sizeof materials[0] - offsetof(struct fel_material, base_color));
    assert_memory_equal(materials[1].base_color, read->materials[1].base_color,
                        sizeof materials[1] - offsetof(struct fel_material, base_color));
    assert_int_equal(1, read->picture_count);
    assert_int_equal(png_size, read->pictures[0].size);
    assert_memory_equal(png, read->pictures[0].bytes, png_size);

    assert_int_equal(FEL_OK, fel_asset_write(in_folder("b.glb"), read, NULL));
    static char a[8192], b[8192];
    const size_t size = read_whole(in_folder("a.glb"), a, sizeof a);
    assert_int_equal(size, read_whole(in_folder("b.glb"), b, sizeof b));
    assert_int_equal(0, size % 4);
    fel_asset_free(read);
    fel_png_free(png);
}

static void obj_comes_back_with_its_picture(void **state)
{
    (void)state;
    uint8_t pixels[4] = {1, 2, 3, 4}, *png;
    size_t png_size;
    assert_int_equal(FEL_OK, fel_png_encode(pixels, 1, 1, 4, 1, 0, &png, &png_size));
    struct fel_picture picture = {.bytes = png, .size = (int64_t)png_size};
    struct fel_material material = {.base_color = {0.5F, 0.25F, 0.1F, 1},
                                    .base_color_texture = 0,
                                    .metallic_roughness_texture = -1,
                                    .normal_texture = -1,
                                    .occlusion_texture = -1,
                                    .emissive_texture = -1};
    struct fel_mesh mesh;
    fel_asset asset = square(&mesh);
    mesh.material = 0;
    asset.materials = &material;
    asset.material_count = 1;
    asset.pictures = &picture;
    asset.picture_count = 1;
    assert_int_equal(FEL_OK, fel_asset_write(in_folder("a.obj"), &asset, NULL));
    fel_asset *read = read_back(in_folder("a.obj"));
    float opaque[16]; /* OBJ has no alpha at vertices */
    memcpy(opaque, colors, sizeof opaque);
    opaque[15] = 1;
    mesh.colors = opaque;
    assert_same_mesh(&mesh, read->meshes);
    assert_memory_equal(material.base_color, read->materials[0].base_color, 16);
    assert_memory_equal(png, read->pictures[0].bytes, png_size);
    fel_asset_free(read);
    fel_png_free(png);
}

static void ply_comes_back_in_every_encoding(void **state)
{
    (void)state;
    for (int32_t encoding = 0; encoding <= FEL_PLY_ASCII; encoding++) {
        struct fel_mesh mesh;
        const fel_asset asset = square(&mesh);
        const struct fel_asset_options o = {.size = sizeof o, .encoding = encoding};
        assert_int_equal(FEL_OK, fel_asset_write(in_folder("a.ply"), &asset, &o));
        fel_asset *read = read_back(in_folder("a.ply"));
        assert_same_mesh(&mesh, read->meshes);
        fel_asset_free(read);
    }
}

static void stl_welds_equal_corners(void **state)
{
    (void)state;
    struct fel_mesh mesh;
    const fel_asset asset = square(&mesh);
    assert_int_equal(FEL_OK, fel_asset_write(in_folder("a.stl"), &asset, NULL));
    fel_asset *read = read_back(in_folder("a.stl"));
    mesh.normals = mesh.uvs = mesh.colors = NULL;
    assert_same_mesh(&mesh, read->meshes);
    fel_asset_free(read);
    static const char text[] =
        "solid x\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 1 1 0\nendloop\n"
        "endfacet\nfacet normal 0 0 1\nouter loop\nvertex -0 0 0\nvertex 1 1 0\nvertex 0 1e0 0\n"
        "endloop\nendfacet\nendsolid x\n";
    assert_int_equal(FEL_OK, fel_asset_read_memory("x.stl", text, sizeof text - 1, NULL, &read));
    assert_int_equal(4, read->meshes[0].vertex_count);
    assert_int_equal(2, read->meshes[0].face_count);
    fel_asset_free(read);
}

static struct fel_gaussians some_gaussians(float *numbers, int32_t degree)
{
    const int k = (degree + 1) * (degree + 1);
    unsigned seed = 1;
    for (int i = 0; i < 2 * (11 + 3 * k); i++) {
        seed = seed * 1664525u + 1013904223u;
        numbers[i] = (float)(seed >> 8) / 16777216.0F - 0.5F;
    }
    return (struct fel_gaussians){.count = 2,
                                  .sh_degree = degree,
                                  .positions = numbers,
                                  .log_scales = numbers + 6,
                                  .rotations = numbers + 12,
                                  .logits = numbers + 20,
                                  .sh = numbers + 22};
}

static void gaussians_come_back_at_every_degree(void **state)
{
    (void)state;
    for (int32_t degree = 0; degree <= 3; degree++) {
        float numbers[2 * (11 + 48)];
        struct fel_gaussians g = some_gaussians(numbers, degree);
        const fel_asset asset = {.gaussians = &g};
        for (int32_t encoding = 0; encoding <= FEL_PLY_ASCII; encoding++) {
            const struct fel_asset_options o = {.size = sizeof o, .encoding = encoding};
            assert_int_equal(FEL_OK, fel_asset_write(in_folder("g.ply"), &asset, &o));
            fel_asset *read = read_back(in_folder("g.ply"));
            const int k = (degree + 1) * (degree + 1);
            assert_int_equal(degree, read->gaussians->sh_degree);
            assert_memory_equal(g.positions, read->gaussians->positions, 24);
            assert_memory_equal(g.log_scales, read->gaussians->log_scales, 24);
            assert_memory_equal(g.rotations, read->gaussians->rotations, 32);
            assert_memory_equal(g.logits, read->gaussians->logits, 8);
            assert_memory_equal(g.sh, read->gaussians->sh, (size_t)k * 24);
            fel_asset_free(read);
        }
    }
}

static void splat_comes_back_within_its_bytes(void **state)
{
    (void)state;
    float numbers[2 * (11 + 3)];
    struct fel_gaussians g = some_gaussians(numbers, 0);
    const fel_asset asset = {.gaussians = &g};
    assert_int_equal(FEL_OK, fel_asset_write(in_folder("g.splat"), &asset, NULL));
    fel_asset *read = read_back(in_folder("g.splat"));
    assert_int_equal(2, read->gaussians->count);
    /* the order may have changed: larger first */
    const int first = memcmp(read->gaussians->positions, g.positions, 12) == 0 ? 0 : 1;
    for (int i = 0; i < 2; i++) {
        const int from = first ? 1 - i : i;
        assert_memory_equal(g.positions + 3 * from, read->gaussians->positions + 3 * i, 12);
        for (int k = 0; k < 3; k++) {
            assert_float_equal(g.log_scales[3 * from + k], read->gaussians->log_scales[3 * i + k], 1e-6);
            assert_float_equal(g.sh[3 * from + k], read->gaussians->sh[3 * i + k], 0.01);
        }
        assert_float_equal(g.logits[from], read->gaussians->logits[i], 0.02);
    }
    fel_asset_free(read);
}

/* Colour of one channel of the first gaussian along d, up to degree 1 and 2 by the published formulas. */
static double look(const struct fel_gaussians *g, const double d[3])
{
    const double x = d[0], y = d[1], z = d[2];
    const double basis[9] = {0.28209479177387814,
                             -0.4886025119029199 * y,
                             0.4886025119029199 * z,
                             -0.4886025119029199 * x,
                             1.0925484305920792 * x * y,
                             -1.0925484305920792 * y * z,
                             0.31539156525252005 * (2 * z * z - x * x - y * y),
                             -1.0925484305920792 * x * z,
                             0.5462742152960396 * (x * x - y * y)};
    double sum = 0;
    for (int i = 0; i < 9; i++)
        sum += basis[i] * (double)g->sh[3 * i];
    return sum;
}

static void turned_gaussians_look_the_same_from_a_turned_side(void **state)
{
    (void)state;
    float numbers[2 * (11 + 27)], before[2 * (11 + 27)];
    struct fel_gaussians g = some_gaussians(numbers, 2), old = g;
    memcpy(before, numbers, sizeof before);
    old.sh = before + 22;
    fel_asset asset = {.gaussians = &g};
    assert_int_equal(FEL_OK, fel_asset_orient(&asset, FEL_ORIENT_Z_UP_TO_Y_UP));
    const double d[3] = {0.48, -0.6, 0.64}, turned[3] = {0.48, 0.64, 0.6};
    assert_float_equal(look(&old, d), look(&g, turned), 1e-5);
    assert_float_equal(before[0], numbers[0], 0);
    assert_float_equal(before[2], numbers[1], 0);
    assert_float_equal(-before[1], numbers[2], 0);
    assert_int_equal(FEL_OK, fel_asset_orient(&asset, FEL_ORIENT_Y_UP_TO_Z_UP));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        assert_float_equal(before[i], numbers[i], 1e-5);
}

static void written_with_an_orientation_the_asset_itself_stays(void **state)
{
    (void)state;
    struct fel_mesh mesh;
    const fel_asset asset = square(&mesh);
    float before[12];
    memcpy(before, positions, sizeof before);
    const struct fel_asset_options o = {.size = sizeof o, .orientation = FEL_ORIENT_Z_UP_TO_Y_UP};
    assert_int_equal(FEL_OK, fel_asset_write(in_folder("up.glb"), &asset, &o));
    assert_memory_equal(before, positions, sizeof before);
    fel_asset *read = read_back(in_folder("up.glb"));
    assert_float_equal(positions[8], read->meshes[0].positions[7], 0);
    assert_float_equal(-positions[7], read->meshes[0].positions[8], 0);
    fel_asset_free(read);
}

/* ---- hostile and broken input */

static const char *error_of(const char *name, const void *bytes, size_t size)
{
    fel_asset *asset = NULL;
    const fel_status status = fel_asset_read_memory(name, bytes, size, NULL, &asset);
    fel_asset_free(asset);
    return status ? fel_last_error() : "read";
}

static void broken_text_is_refused_with_its_place(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text, *error;
    } cases[] = {
        {"a.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 4\n", "a.obj: byte 30: position 4 of 3"},
        {"a.obj", "v 0 0\n", "a.obj: byte 5: expected 3 numbers, got 2"},
        {"a.obj", "v 0 0 x\n", "a.obj: byte 6: expected a number"},
        {"a.obj", "v 0 0 0\nf 1 1\n", "a.obj: byte 13: expected at least three corners, got 2"},
        {"a.obj", "v 0 0 0\nf 1 1 1-\n", "a.obj: byte 14: expected a corner such as 1, 1/1 or 1/1/1"},
        {"a.ply", "ply\nformat ascii 2.0\n",
         "a.ply: byte 4: line 2: expected 'format ascii|binary_little_endian|"
         "binary_big_endian 1.0'"},
        {"a.ply", "ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nend_header\n1\n",
         "a.ply: byte 21: 3 rows of at least 1 bytes, 2 are left"},
        {"a.ply",
         "ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nproperty float y\nproperty float z\n"
         "end_header\n1 2 b\n",
         "a.ply: byte 104: expected a number"},
        {"a.ply",
         "ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nproperty float y\nproperty float z\n"
         "element face 1\nproperty list uchar int vertex_indices\nend_header\n1 2 3\n3 0 0 7\n",
         "a.ply: byte 166: vertex 7 of 1"},
        {"a.stl", "solid\nvertex 1 2\n", "a.stl: byte 16: line 2: expected a number"},
        {"a.stl", "short", "a.stl: byte 0: expected 84 bytes for 0 facets, the file has 5"},
        {"a.splat", "0123456789",
         "a.splat: byte 0: expected whole records of 32 bytes, the file ends at byte 10"},
        {"a.xyz", "0123456789", "a.xyz: byte 0: expected a GLB, OBJ, PLY, STL or .splat file"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(cases[i].error, error_of(cases[i].name, cases[i].text, strlen(cases[i].text)));
}

static size_t make_glb(const char *json, const void *bin, size_t bin_size, uint8_t *out)
{
    const size_t json_size = (strlen(json) + 3) / 4 * 4;
    const uint32_t head[5] = {0x46546C67, 2, (uint32_t)(28 + json_size + bin_size), (uint32_t)json_size,
                              0x4E4F534A};
    const uint32_t chunk[2] = {(uint32_t)bin_size, 0x004E4942};
    memcpy(out, head, 20);
    memset(out + 20, ' ', json_size);
    memcpy(out + 20, json, strlen(json));
    memcpy(out + 20 + json_size, chunk, 8);
    if (bin_size)
        memcpy(out + 28 + json_size, bin, bin_size);
    return 28 + json_size + bin_size;
}

static void broken_glb_is_refused_with_its_place(void **state)
{
    (void)state;
    static const struct {
        const char *json, *error;
    } cases[] = {
        {"{\"asset\":}", "a.glb: byte 29: JSON: expected a value"},
        {"{\"a\":1,}", "a.glb: byte 27: JSON: expected a member's name in quotes"},
        {"[1]", "a.glb: byte 20: expected a JSON object"},
        {"{\"extensionsRequired\":[\"KHR_draco_mesh_compression\"]}",
         "a.glb: byte 44: the file needs the extension KHR_draco_mesh_compression, which is not read"},
        {"{\"bufferViews\":[{\"buffer\":0,\"byteLength\":99}]}",
         "a.glb: byte 36: a buffer view of bytes 0 to 99, the BIN chunk has 36"},
        {"{\"bufferViews\":[{\"buffer\":0,\"byteLength\":36}],\"accessors\":[{\"bufferView\":0,"
         "\"componentType\":5126,"
         "\"count\":4,\"type\":\"VEC3\"}]}",
         "a.glb: byte 79: accessor 0 ends past its buffer view (48 of 36 bytes)"},
        {"{\"nodes\":[{\"children\":[0]}],\"scenes\":[{\"nodes\":[0]}]}",
         "a.glb: byte 30: node 0 is reached twice"},
        {"{\"meshes\":[{\"primitives\":[{\"attributes\":{\"POSITION\":3}}]}]}",
         "a.glb: byte 72: POSITION: expected a whole number below 0"},
    };
    const float bin[9] = {0};
    uint8_t file[512];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const size_t size = make_glb(cases[i].json, bin, sizeof bin, file);
        assert_string_equal(cases[i].error, error_of("a.glb", file, size));
    }
}

static void quantized_and_mirrored_glb_is_read_right(void **state)
{
    (void)state;
    /* three positions as normalized int16, 8 bytes apart; the node mirrors x and moves by 10 */
    const int16_t bin[12] = {32767, 0, 0, 0, 0, 32767, 0, 0, 0, 0, -32767, 0};
    const char *json =
        "{\"extensionsRequired\":[\"KHR_mesh_quantization\"],\"bufferViews\":[{\"buffer\":0,\"byteLength\":"
        "24,"
        "\"byteStride\":8}],\"accessors\":[{\"bufferView\":0,\"componentType\":5122,\"normalized\":true,"
        "\"count\":3,\"type\":\"VEC3\"}],\"meshes\":[{\"primitives\":[{\"attributes\":{\"POSITION\":0}},"
        "{\"attributes\":{\"POSITION\":0},\"mode\":1}]}],\"nodes\":[{\"mesh\":0,\"scale\":[-1,1,1],"
        "\"translation\":[10,0,0]}],\"scenes\":[{\"nodes\":[0]}],\"scene\":0}";
    uint8_t file[1024];
    fel_asset *asset;
    assert_int_equal(
        FEL_OK, fel_asset_read_memory("q.glb", file, make_glb(json, bin, sizeof bin, file), NULL, &asset));
    assert_int_equal(1, asset->mesh_count);
    assert_int_equal(1, asset->skipped_primitives);
    const float expected[9] = {9, 0, 0, 10, 1, 0, 10, 0, -1};
    for (int i = 0; i < 9; i++)
        assert_float_equal(expected[i], asset->meshes[0].positions[i], 1e-6);
    const int32_t turned[3] = {0, 2, 1};
    assert_memory_equal(turned, asset->meshes[0].faces, sizeof turned);
    fel_asset_free(asset);
}

static void every_cut_of_a_good_file_is_refused_or_read(void **state)
{
    (void)state;
    static const char *const names[] = {"cut.glb", "cut.obj", "cut.ply", "cut.stl"};
    struct fel_mesh mesh;
    const fel_asset asset = square(&mesh);
    for (size_t n = 0; n < 4; n++) {
        static char bytes[4096];
        assert_int_equal(FEL_OK, fel_asset_write(in_folder(names[n]), &asset, NULL));
        const size_t size = read_whole(in_folder(names[n]), bytes, sizeof bytes);
        for (size_t cut = 0; cut < size; cut++) {
            char *copy = malloc(cut + 1); /* its own block, so that a sanitizer sees a byte read past it */
            assert_non_null(copy);
            memcpy(copy, bytes, cut);
            const char *error = error_of(names[n], copy, cut);
            if (n == 0)
                assert_string_not_equal("read", error);
            free(copy);
        }
    }
}

static void the_memory_limit_holds(void **state)
{
    (void)state;
    struct fel_mesh mesh;
    const fel_asset asset = square(&mesh);
    assert_int_equal(FEL_OK, fel_asset_write(in_folder("limit.glb"), &asset, NULL));
    const struct fel_asset_options o = {.size = sizeof o, .memory_limit = 100};
    fel_asset *read = NULL;
    assert_int_equal(FEL_OUT_OF_MEMORY, fel_asset_read(in_folder("limit.glb"), &o, &read));
    assert_null(read);
}

/* ---- files */

static int entries_in(const char *path)
{
    int count = 0;
    DIR *d = opendir(path);
    assert_non_null(d);
    while (readdir(d))
        count++;
    closedir(d);
    return count - 2;
}

static void a_refused_write_leaves_the_old_file_and_nothing_else(void **state)
{
    (void)state;
    struct fel_mesh mesh;
    const fel_asset asset = square(&mesh);
    assert_int_equal(FEL_OK, fel_write_atomically(in_folder("keep.glb"), "old", 3));
    const int before = entries_in(folder);
    float broken[12];
    memcpy(broken, positions, sizeof broken);
    broken[4] = NAN;
    mesh.positions = broken;
    assert_int_equal(FEL_INVALID_ARGUMENT, fel_asset_write(in_folder("keep.glb"), &asset, NULL));
    assert_string_equal("mesh 0: position 1 is not finite", fel_last_error());
    char bytes[8];
    assert_int_equal(3, read_whole(in_folder("keep.glb"), bytes, sizeof bytes));
    assert_int_equal(before, entries_in(folder));
    assert_int_equal(FEL_IO, fel_asset_write(in_folder("no/such/folder.glb"), &(fel_asset){0}, NULL));
}

static void an_obj_cannot_reach_outside_its_folder(void **state)
{
    (void)state;
    assert_int_equal(FEL_OK, fel_write_atomically(in_folder("secret.png"), "\x89PNG\r\n\x1a\n0", 9));
    char sub[300];
    snprintf(sub, sizeof sub, "%s/sub", folder);
    mkdir(sub, 0700);
    snprintf(sub, sizeof sub, "%s/sub/m.mtl", folder);
    const char *mtl = "newmtl a\nmap_Kd ../secret.png\n";
    assert_int_equal(FEL_OK, fel_write_atomically(sub, mtl, strlen(mtl)));
    snprintf(sub, sizeof sub, "%s/sub/m.obj", folder);
    const char *obj = "mtllib m.mtl\nusemtl a\nv 0 0 0\nf 1 1 1\n";
    assert_int_equal(FEL_OK, fel_write_atomically(sub, obj, strlen(obj)));
    fel_asset *read = read_back(sub);
    assert_int_equal(1, read->picture_count);
    assert_null(read->pictures[0].bytes);
    assert_string_equal("../secret.png", read->pictures[0].name);
    fel_asset_free(read);
}

static void numbers_do_not_follow_the_locale(void **state)
{
    (void)state;
    if (!setlocale(LC_ALL, "de_DE.UTF-8") && !setlocale(LC_ALL, "fr_FR.UTF-8"))
        print_message("no locale with a decimal comma here: only the C locale is checked\n");
    struct fel_mesh mesh;
    const fel_asset asset = square(&mesh);
    assert_int_equal(FEL_OK, fel_asset_write(in_folder("locale.obj"), &asset, NULL));
    setlocale(LC_ALL, "C");
    char text[2048];
    text[read_whole(in_folder("locale.obj"), text, sizeof text - 1)] = '\0';
    assert_non_null(strstr(text, "v 1 1 0.1 0 0 1\n"));
    assert_non_null(strstr(text, "v 0 1 -1.5e-07"));
}

static void session_paths_neither_collide_nor_escape(void **state)
{
    (void)state;
    fel_session *session;
    char one[512], two[512];
    assert_int_equal(FEL_OK, fel_session_open(folder, &session));
    assert_int_equal(FEL_OK, fel_session_path(session, "../../etc/passwd", "glb", one, sizeof one));
    assert_int_equal(FEL_OK, fel_session_path(session, "../../etc/passwd", "../x", two, sizeof two));
    assert_string_equal("etcpasswd-1.glb", strrchr(one, '/') + 1);
    assert_string_equal("etcpasswd-2.x", strrchr(two, '/') + 1);
    assert_int_equal(0, strncmp(one, folder, strlen(folder)));
    assert_null(strstr(one, ".."));
    char own[512];
    memcpy(own, one, sizeof own);
    *strrchr(own, '/') = '\0';
    struct stat info;
    assert_int_equal(0, stat(own, &info));
    assert_int_equal(0700, info.st_mode & 0777);
    assert_int_equal(FEL_OK, fel_write_atomically(one, "x", 1));
    assert_int_equal(FEL_INVALID_ARGUMENT, fel_session_path(session, "a", "b", one, 4));
    fel_session_close(session);
    assert_int_not_equal(0, stat(own, &info));
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[300];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command); // NOLINT(cert-env33-c): the name is our own
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(glb_comes_back_bit_for_bit),
        cmocka_unit_test(obj_comes_back_with_its_picture),
        cmocka_unit_test(ply_comes_back_in_every_encoding),
        cmocka_unit_test(stl_welds_equal_corners),
        cmocka_unit_test(gaussians_come_back_at_every_degree),
        cmocka_unit_test(splat_comes_back_within_its_bytes),
        cmocka_unit_test(turned_gaussians_look_the_same_from_a_turned_side),
        cmocka_unit_test(written_with_an_orientation_the_asset_itself_stays),
        cmocka_unit_test(broken_text_is_refused_with_its_place),
        cmocka_unit_test(broken_glb_is_refused_with_its_place),
        cmocka_unit_test(quantized_and_mirrored_glb_is_read_right),
        cmocka_unit_test(every_cut_of_a_good_file_is_refused_or_read),
        cmocka_unit_test(the_memory_limit_holds),
        cmocka_unit_test(a_refused_write_leaves_the_old_file_and_nothing_else),
        cmocka_unit_test(an_obj_cannot_reach_outside_its_folder),
        cmocka_unit_test(numbers_do_not_follow_the_locale),
        cmocka_unit_test(session_paths_neither_collide_nor_escape),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
