/* tests/surface/test_marching_cubes.c. Judges: topology counted on the mesh (Euler characteristic, each edge two faces),
 * areas and volumes of solids, and for single cells a brute-force walk over the faces of the cube that shares nothing
 * with the tables. */
#include "field.h"

#include <stdio.h>

static double sphere(double x, double y, double z, const double *n) /* centre, radius */
{
    return sqrt((x - n[0]) * (x - n[0]) + (y - n[1]) * (y - n[1]) + (z - n[2]) * (z - n[2])) - n[3];
}

static double ball_on_grid(double x, double y, double z,
                           const double *n) /* of radius n[1] in [-1, 1]^3 of n[0] samples */
{
    const double h = 2 / (n[0] - 1), a = x * h - 1, b = y * h - 1, c = z * h - 1;
    return sqrt(a * a + b * b + c * c) - n[1];
}

static double two_balls(double x, double y, double z, const double *n) /* samples, distance, radius */
{
    const double h = 2 / (n[0] - 1), a = x * h - 1, b = y * h - 1, c = z * h - 1;
    const double left = sqrt((a + n[1]) * (a + n[1]) + b * b + c * c),
                 right = sqrt((a - n[1]) * (a - n[1]) + b * b + c * c);
    return fmin(left, right) - n[2];
}

static double torus(double x, double y, double z, const double *n)
{
    const double h = 2 / (n[0] - 1), a = x * h - 1, b = y * h - 1, c = z * h - 1,
                 ring = sqrt(a * a + b * b) - 0.55;
    return sqrt(ring * ring + c * c) - 0.2;
}

static double shell(double x, double y, double z, const double *n)
{
    const double h = 2 / (n[0] - 1), a = x * h - 1, b = y * h - 1, c = z * h - 1;
    return fabs(sqrt(a * a + b * b + c * c) - 0.6) - 0.1;
}

static double hash_noise(double x, double y, double z, const double *n) /* +1 on the border */
{
    if (x < 1 || y < 1 || z < 1 || x > n[0] - 2 || y > n[0] - 2 || z > n[0] - 2)
        return 1;
    uint32_t k = 73856093u * (uint32_t)x ^ 19349663u * (uint32_t)y ^ 83492791u * (uint32_t)z;
    k *= 2654435761u;
    k ^= k >> 16;
    return (double)(k & 65535) / 32768 - 1 + 1.0 / 65536;
}

static void expect(const struct mesh *m, int64_t vertices, int64_t faces, int64_t euler, int64_t border)
{
    const struct counts c = count_mesh(m);
    assert_int_equal(vertices, m->vertex_count);
    assert_int_equal(faces, m->face_count);
    assert_int_equal(euler, c.euler);
    assert_int_equal(border, c.border);
    assert_true(c.oriented && c.whole_faces);
}

static void one_sample_below_makes_an_octahedron_that_faces_outward(void **state)
{
    (void)state;
    struct volume v = volume_of(3, 3, 3);
    for (int i = 0; i < 27; i++)
        v.values[i] = i == 13 ? -1 : 1;
    struct mesh m = mesh_of(&v, 0, NULL);
    expect(&m, 6, 8, 2, 0);
    double area, volume;
    measure(&m, &area, &volume);
    assert_float_equal(1.7320508, area, 1e-6);
    assert_float_equal(1.0 / 6, volume, 1e-6);
    mesh_free(&m);
    const struct fel_surface_options density = {.size = sizeof density, .inside_above = 1};
    for (int i = 0; i < 27; i++)
        v.values[i] = i == 13;
    m = mesh_of(&v, 0.5, &density);
    measure(&m, &area, &volume);
    assert_float_equal(1.0 / 6, volume, 1e-6);
    for (int64_t i = 0; i < m.vertex_count;
         i++) /* each vertex lies on an axis through the centre, its normal too */
        for (int k = 0; k < 3; k++)
            assert_float_equal(2 * (m.vertices[3 * i + k] - 1), m.normals[3 * i + k], 1e-6);
    mesh_free(&m);
    free(v.values);
}

static void spheres_converge_to_area_and_volume(void **state)
{
    (void)state;
    static const struct {
        int n;
        int64_t vertices, faces;
        double area, volume;
    } cases[] = {{17, 582, 1160, 6.097071, 1.410054},
                 {33, 2406, 4808, 6.142124, 1.429923},
                 {65, 9486, 18968, 6.153690, 1.435051},
                 {129, 37854, 75704, 6.156560, 1.436327}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int n = cases[i].n;
        const double numbers[2] = {n, 0.7}, h = 2.0 / (n - 1);
        struct volume v = sample_field(n, n, n, ball_on_grid, numbers);
        struct mesh m = mesh_of(&v, 0, NULL);
        double area, volume;
        expect(&m, cases[i].vertices, cases[i].faces, 2, 0);
        measure(&m, &area, &volume);
        assert_float_equal((float)cases[i].area, (float)(area * h * h), 1e-5);
        assert_float_equal((float)cases[i].volume, (float)(volume * h * h * h),
                           2e-4); /* depends on which diagonals are drawn */
        mesh_free(&m);
        free(v.values);
    }
}

static void solids_have_their_topology(void **state)
{
    (void)state;
    static const struct {
        field *f;
        double numbers[3];
        int64_t vertices, faces, euler;
    } cases[] = {{two_balls, {65, 0.45, 0.35}, 4788, 9568, 4},
                 {two_balls, {65, 0.3, 0.4}, 5406, 10808, 2},
                 {torus, {65}, 6432, 12864, 0},
                 {shell, {65}, 14244, 28480, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct volume v = sample_field(65, 65, 65, cases[i].f, cases[i].numbers);
        struct mesh m = mesh_of(&v, 0, NULL);
        expect(&m, cases[i].vertices, cases[i].faces, cases[i].euler, 0);
        mesh_free(&m);
        free(v.values);
    }
}

static void noise_is_a_closed_manifold(void **state)
{
    (void)state;
    static const struct {
        int n;
        int64_t vertices, faces;
    } cases[] = {{8, 344, 664}, {16, 4368, 9044}, {32, 41718, 87920}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int n = cases[i].n;
        const double numbers[1] = {n};
        struct volume v = sample_field(n, n, n, hash_noise, numbers);
        struct mesh m = mesh_of(&v, 0, NULL);
        expect(&m, cases[i].vertices, cases[i].faces, cases[i].vertices - cases[i].faces / 2, 0);
        mesh_free(&m);
        free(v.values);
    }
}

static void a_clipped_sphere_is_open_unless_closed_is_asked_for(void **state)
{
    (void)state;
    const double numbers[2] = {65, 1.2};
    struct volume v = sample_field(65, 65, 65, ball_on_grid, numbers);
    struct mesh m = mesh_of(&v, 0, NULL);
    assert_int_equal(15336, m.vertex_count);
    assert_int_equal(29648, m.face_count);
    assert_int_equal(-4, count_mesh(&m).euler);
    assert_true(count_mesh(&m).border > 0);
    mesh_free(&m);
    const struct fel_surface_options closed = {.size = sizeof closed, .closed = 1};
    m = mesh_of(&v, 0, &closed);
    assert_int_equal(0, count_mesh(&m).border);
    assert_int_equal(2, count_mesh(&m).euler);
    double area, volume;
    measure(&m, &area, &volume);
    assert_true(volume > 0);
    for (int64_t i = 0; i < 3 * m.vertex_count; i++)
        assert_true(m.vertices[i] >= 0 && m.vertices[i] <= 64);
    mesh_free(&m);
    free(v.values);
}

static double above_plane(double x, double y, double z, const double *n)
{
    (void)x;
    (void)y;
    return n[0] * (z - n[1]);
}

static void planes_lie_where_they_are(void **state)
{
    (void)state;
    static const double cases[][2] = {{1, 1.5}, {1, 2}, {-1, 2}};
    for (size_t i = 0; i < 3; i++) {
        struct volume v = sample_field(4, 5, 6, above_plane, cases[i]);
        struct mesh m = mesh_of(&v, 0, NULL);
        assert_int_equal(30, m.vertex_count);
        assert_int_equal(40, m.face_count);
        double area, volume;
        measure(&m, &area, &volume);
        assert_float_equal(20, area, 1e-6);
        for (int64_t k = 0; k < 30; k++) {
            assert_float_equal(cases[i][1], m.vertices[3 * k + 2], 0);
            assert_float_equal(cases[i][0], m.normals[3 * k + 2], 0);
        }
        mesh_free(&m);
        free(v.values);
    }
}

static void constant_and_tiny_volumes_are_empty(void **state)
{
    (void)state;
    static const int shapes[][3] = {{4, 4, 4}, {0, 4, 4}, {4, 0, 4}, {4, 4, 0}, {1, 1, 1}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct volume v = volume_of(shapes[i][0], shapes[i][1], shapes[i][2]);
        for (int level = -1; level <= 1; level++) {
            struct mesh m = mesh_of(&v, level, NULL);
            assert_int_equal(0, m.vertex_count);
            assert_int_equal(0, m.face_count);
            mesh_free(&m);
        }
        free(v.values);
    }
}

static void samples_on_the_level_leave_no_holes(void **state)
{
    (void)state;
    struct volume v = volume_of(11, 11, 11);
    for (int z = 0, i = 0; z < 11; z++)
        for (int y = 0; y < 11; y++)
            for (int x = 0; x < 11; x++, i++)
                v.values[i] = (float)((x - 5) * (x - 5) + (y - 5) * (y - 5) + (z - 5) * (z - 5) - 9);
    struct mesh m = mesh_of(&v, 0, NULL);
    expect(&m, 150, 296, 2, 0);
    double area, volume;
    measure(&m, &area, &volume);
    assert_float_equal(103.626667, volume, 1e-5);
    mesh_free(&m);
    free(v.values);
}

static void scale_of_the_field_does_not_matter(void **state)
{
    (void)state;
    const double numbers[2] = {33, 0.7};
    struct volume v = sample_field(33, 33, 33, ball_on_grid, numbers), scaled = volume_of(33, 33, 33);
    struct mesh plain = mesh_of(&v, 0, NULL);
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < 33 * 33 * 33; i++)
            scaled.values[i] = v.values[i] * (k ? 1e5F : 1e-5F);
        struct mesh m = mesh_of(&scaled, 0, NULL);
        assert_int_equal(plain.vertex_count, m.vertex_count);
        assert_memory_equal(plain.faces, m.faces, (size_t)m.face_count * 12);
        for (int64_t i = 0; i < 3 * m.vertex_count; i++)
            assert_float_equal(plain.vertices[i], m.vertices[i], 1e-4);
        mesh_free(&m);
    }
    mesh_free(&plain);
    free(v.values);
    free(scaled.values);
}

static void what_is_not_finite_never_reaches_the_mesh(void **state)
{
    (void)state;
    const double numbers[4] = {16, 16, 16, 11.2};
    struct volume v = sample_field(33, 33, 33, sphere, numbers);
    const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int k = 0; k < 9; k++) /* near the surface, inside and far outside */
        v.values[((16 + (k % 3) * 6) * 33 + 16 + k) * 33 + 16] = bad[k / 3];
    struct mesh m = mesh_of(&v, 0, NULL); /* asserts that all is finite */
    const struct counts c = count_mesh(&m);
    assert_int_equal(0, c.border);
    assert_true(c.oriented);
    mesh_free(&m);
    free(v.values);
}

/* ---- single cells: all 256 sign patterns, by brute force */

struct cell_edge { /* between two corners; corner bits are x, y, z */
    int a, b;
};

static int edge_between(const struct mesh *m, const struct volume *v, int a, int b)
{
    /* by position: the only vertex on the segment from corner a to corner b */
    (void)v;
    for (int i = 0; i < m->vertex_count; i++) {
        bool on = true;
        for (int k = 0; k < 3; k++) {
            const float pa = (float)(a >> k & 1), pb = (float)(b >> k & 1), p = m->vertices[3 * i + k];
            on = on && (pa == pb ? p == pa : p > 0 && p < 1); // NOLINT: grid coordinates are exact
        }
        if (on)
            return i;
    }
    return -1;
}

static bool face_has_edge(const struct mesh *m, int from, int to)
{
    for (int i = 0; i < 3 * m->face_count; i++)
        if (m->faces[i] == from && m->faces[i % 3 == 2 ? i - 2 : i + 1] == to)
            return true;
    return false;
}

/* The mesh's border must be exactly the segments that the rule draws on the cube's faces. */
static int check_cube_faces(const struct mesh *m, const struct volume *v, int pattern)
{
    int segments = 0;
    for (int axis = 0; axis < 3; axis++)
        for (int side = 0; side < 2; side++) {
            int ring[4];
            for (int i = 0; i < 4; i++) { /* counter-clockwise seen from outside the cube */
                const int u = i == 1 || i == 2, w = i >= 2;
                ring[side ? i : 3 - i] = side << axis | u << (axis + 1) % 3 | w << (axis + 2) % 3;
            }
            for (int i = 0; i < 4; i++) {
                const int before = ring[(i + 3) % 4];
                if (!(pattern >> ring[i] & 1) || pattern >> before & 1)
                    continue;
                int end = i; /* the run of corners below that starts here */
                while (pattern >> ring[(end + 1) % 4] & 1)
                    end++;
                const int entered = edge_between(m, v, before, ring[i]);
                const int left = edge_between(m, v, ring[end % 4], ring[(end + 1) % 4]);
                assert_true(entered >= 0 && left >= 0);
                /* the border runs one way, never both */
                assert_true(face_has_edge(m, entered, left) != face_has_edge(m, left, entered));
                segments++;
            }
        }
    return segments;
}

static void every_sign_pattern_meets_its_neighbours(void **state)
{
    (void)state;
    for (int pattern = 0; pattern < 256; pattern++) {
        struct volume v = volume_of(2, 2, 2);
        int crossed = 0;
        for (int c = 0; c < 8; c++)
            v.values[c] = pattern >> c & 1 ? -1 : 1;
        for (int a = 0; a < 8; a++)
            for (int k = 0; k < 3; k++)
                crossed += !(a >> k & 1) && (pattern >> a & 1) != (pattern >> (a | 1 << k) & 1);
        struct mesh m = mesh_of(&v, 0, NULL);
        const struct counts c = count_mesh(&m);
        assert_int_equal(crossed, m.vertex_count);
        assert_true(c.oriented && c.whole_faces);
        assert_int_equal(c.border, check_cube_faces(&m, &v, pattern));
        /* discs only: each loop of n border edges is cut into n - 2 triangles */
        assert_int_equal(c.border, m.vertex_count);
        for (int f = 0; f < m.face_count; f++) { /* the normal points away from below */
            double n[3], inside = 0;
            const float *p[3];
            for (int i = 0; i < 3; i++)
                p[i] = m.vertices + 3 * (int64_t)m.faces[3 * f + i];
            for (int k = 0; k < 3; k++) {
                const int u = (k + 1) % 3, w = (k + 2) % 3;
                n[k] = (double)((p[1][u] - p[0][u]) * (p[2][w] - p[0][w]) -
                                (p[1][w] - p[0][w]) * (p[2][u] - p[0][u]));
            }
            for (int i = 0; i < 3; i++) /* along each corner's edge, from the sample below to the other */
                for (int k = 0; k < 3; k++)
                    if (p[i][k] > 0 && p[i][k] < 1) {
                        int low = 0;
                        for (int q = 0; q < 3; q++)
                            low |= q != k && p[i][q] > 0.5F ? 1 << q : 0;
                        inside += pattern >> low & 1 ? n[k] : -n[k];
                    }
            assert_true(inside > 0);
        }
        mesh_free(&m);
        free(v.values);
    }
}

/* ---- random smooth volumes */

static double waves(double x, double y, double z, const double *n)
{
    double sum = 0;
    for (int k = 0; k < 6; k++)
        sum += n[5 * k + 4] * sin(n[5 * k] * x + n[5 * k + 1] * y + n[5 * k + 2] * z + n[5 * k + 3]);
    return sum;
}

static double next_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(*seed >> 40) / (double)(1 << 24);
}

static void fifty_smooth_volumes_are_manifolds_with_the_crossed_edges(void **state)
{
    (void)state;
    uint64_t seed = 7;
    for (int round = 0; round < 50; round++) {
        double numbers[30];
        for (int i = 0; i < 30; i++)
            numbers[i] = i % 5 == 3   ? 6.28 * next_random(&seed)
                         : i % 5 == 4 ? next_random(&seed)
                                      : next_random(&seed) - 0.5;
        const int d = 5 + (int)(next_random(&seed) * 20), h = 5 + (int)(next_random(&seed) * 20),
                  w = 5 + (int)(next_random(&seed) * 80);
        struct volume v = sample_field(d, h, w, waves, numbers);
        int64_t crossed = 0;
        for (int z = 0; z < d; z++)
            for (int y = 0; y < h; y++)
                for (int x = 0; x < w; x++) {
                    const int64_t i = ((int64_t)z * h + y) * w + x;
                    const bool below = v.values[i] < 0;
                    crossed += x + 1 < w && below != (v.values[i + 1] < 0);
                    crossed += y + 1 < h && below != (v.values[i + w] < 0);
                    crossed += z + 1 < d && below != (v.values[i + (int64_t)w * h] < 0);
                }
        struct mesh m = mesh_of(&v, 0, NULL);
        const struct counts open = count_mesh(&m);
        assert_int_equal(crossed, m.vertex_count);
        assert_true(open.oriented && open.whole_faces);
        for (int64_t i = 0; i < m.vertex_count;
             i++) { /* on an edge of the grid, where the level is crossed */
            const float *p = m.vertices + 3 * i;
            int inner = 0;
            for (int k = 0; k < 3; k++)
                inner += p[k] > floorf(p[k]);
            assert_true(inner <= 1);
        }
        mesh_free(&m);
        const struct fel_surface_options closed = {.size = sizeof closed, .closed = 1};
        m = mesh_of(&v, 0, &closed);
        const struct counts c = count_mesh(&m);
        assert_true(c.oriented && c.whole_faces);
        assert_int_equal(0, c.border);
        assert_int_equal(0, c.euler % 2);
        mesh_free(&m);
        free(v.values);
    }
}

/* ---- slabs */

static void slabs_put_together_are_the_whole_bit_for_bit(void **state)
{
    (void)state;
    uint64_t seed = 3;
    struct volume v = volume_of(31, 9, 37);
    for (int i = 0; i < 31 * 9 * 37; i++)
        v.values[i] = (float)(next_random(&seed) - 0.5);
    struct mesh whole = mesh_of(&v, 0.1, NULL);
    for (int step = 4; step <= 31; step += 3) {
        int64_t vertices = 0, faces = 0, next_vertex = 0;
        for (int first = 0, open = 1; open;) {
            const int last = first + step < 31 ? first + step : 31;
            open = last < 31;
            const struct volume slab = {.shape = {last - first, 9, 37},
                                        .values = v.values + (int64_t)first * 9 * 37};
            const struct fel_surface_options o = {.size = sizeof o,
                                                  .continued = first > 0,
                                                  .open = open,
                                                  .first_plane = first,
                                                  .first_vertex = next_vertex};
            struct mesh m = mesh_of(&slab, 0.1, &o);
            assert_true(vertices + m.vertex_count <= whole.vertex_count &&
                        faces + m.face_count <= whole.face_count);
            assert_memory_equal(whole.vertices + 3 * vertices, m.vertices, (size_t)m.vertex_count * 12);
            assert_memory_equal(whole.normals + 3 * vertices, m.normals, (size_t)m.vertex_count * 12);
            assert_memory_equal(whole.faces + 3 * faces, m.faces, (size_t)m.face_count * 12);
            vertices += m.vertex_count;
            faces += m.face_count;
            next_vertex = m.size.next_vertex;
            mesh_free(&m);
            first = last - 3;
        }
        assert_int_equal(whole.vertex_count, vertices);
        assert_int_equal(whole.face_count, faces);
    }
    mesh_free(&whole);
    free(v.values);
}

/* ---- gradients */

static double weighted_sum(const struct volume *v, const double *weights)
{
    struct mesh m = mesh_of(v, 0.05, NULL);
    double sum = 0;
    for (int64_t i = 0; i < 3 * m.vertex_count; i++)
        sum += weights[i] * (double)m.vertices[i];
    mesh_free(&m);
    return sum;
}

static void gradients_agree_with_finite_differences(void **state)
{
    (void)state;
    uint64_t seed = 11;
    struct volume v = volume_of(5, 6, 7);
    enum { SAMPLES = 5 * 6 * 7 };
    for (int i = 0; i < SAMPLES; i++) { /* far enough from the level that a step doesn't cross it */
        v.values[i] = (float)(next_random(&seed) - 0.5);
        v.values[i] += v.values[i] < 0.05F ? -0.2F : 0.2F;
    }
    struct fel_surface_size size;
    fel_surface *s;
    DLTensor volume = tensor_of(v.values, FLOAT32, 3, v.shape);
    assert_int_equal(FEL_OK, fel_surface_begin(test_context(), &volume, 0.05, NULL, &s, &size));
    double *weights = malloc((size_t)size.vertices * 3 * sizeof *weights);
    float *grad_vertices = malloc((size_t)size.vertices * 12), grad_volume[SAMPLES];
    assert_true(weights && grad_vertices);
    for (int64_t i = 0; i < 3 * size.vertices; i++)
        grad_vertices[i] = (float)(weights[i] = (double)(float)(next_random(&seed) - 0.5));
    int64_t shape[2] = {size.vertices, 3};
    DLTensor grad = tensor_of(grad_vertices, FLOAT32, 2, shape),
             out = tensor_of(grad_volume, FLOAT32, 3, v.shape);
    assert_int_equal(FEL_OK, fel_surface_backward(s, &grad, &out));
    fel_surface_end(s);
    for (int i = 0; i < SAMPLES; i++) {
        const float value = v.values[i], step = 2e-3F;
        v.values[i] = value + step;
        const double above = weighted_sum(&v, weights);
        v.values[i] = value - step;
        const double below = weighted_sum(&v, weights);
        v.values[i] = value;
        assert_float_equal((float)((above - below) / (2 * (double)step)), grad_volume[i], 5e-3);
    }
    free(weights);
    free(grad_vertices);
    free(v.values);
}

/* ---- errors and sampling */

static void wrong_arguments_are_named(void **state)
{
    (void)state;
    struct volume v = volume_of(4, 4, 4);
    DLTensor volume = tensor_of(v.values, FLOAT32, 3, v.shape),
             flat = tensor_of(v.values, FLOAT32, 2, v.shape);
    fel_surface *s = NULL;
    struct fel_surface_size size;
    assert_int_equal(FEL_INVALID_ARGUMENT, fel_surface_begin(test_context(), &volume, NAN, NULL, &s, &size));
    assert_non_null(strstr(fel_last_error(), "level"));
    assert_int_equal(FEL_INVALID_SHAPE, fel_surface_begin(test_context(), &flat, 0, NULL, &s, &size));
    assert_non_null(strstr(fel_last_error(), "volume"));
    const struct fel_surface_options o = {.size = sizeof o, .closed = 1, .open = 1};
    assert_int_equal(FEL_INVALID_ARGUMENT, fel_surface_begin(test_context(), &volume, 0, &o, &s, &size));
    assert_null(s);
    free(v.values);
}

static void grid_samples_are_trilinear_and_clamped(void **state)
{
    (void)state;
    float values[2 * 3 * 4 * 5], out[6][2];
    for (int c = 0, i = 0; c < 2; c++)
        for (int z = 0; z < 3; z++)
            for (int y = 0; y < 4; y++)
                for (int x = 0; x < 5; x++, i++)
                    values[i] = (float)(c + x + 10 * y + 100 * z);
    float points[6][3] = {{1.25F, 2.5F, 0.75F}, {4.7F, 3, 2},       {-0.5F, 0, 0},
                          {NAN, 0, 0},          {1e30F, -1e30F, 2}, {4, 3, 2}};
    const float expected[6] = {1.25F + 25 + 75, 234, 0, NAN, 204, 234};
    int64_t shape[4] = {2, 3, 4, 5}, point_shape[2] = {6, 3}, out_shape[2] = {6, 2};
    DLTensor volume = tensor_of(values, FLOAT32, 4, shape), p = tensor_of(points, FLOAT32, 2, point_shape),
             o = tensor_of(out, FLOAT32, 2, out_shape);
    assert_int_equal(FEL_OK, fel_grid_sample(test_context(), &volume, &p, 0, &o));
    for (int i = 0; i < 6; i++)
        for (int c = 0; c < 2; c++) {
            if (isnan(expected[i]))
                assert_true(isnan(out[i][c]));
            else
                assert_float_equal(expected[i] + (float)c, out[i][c], 1e-4);
        }
    assert_int_equal(FEL_OK, fel_grid_sample(test_context(), &volume, &p, 1, &o));
    assert_float_equal(-0.5, out[2][0], 1e-6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_sample_below_makes_an_octahedron_that_faces_outward),
        cmocka_unit_test(spheres_converge_to_area_and_volume),
        cmocka_unit_test(solids_have_their_topology),
        cmocka_unit_test(noise_is_a_closed_manifold),
        cmocka_unit_test(a_clipped_sphere_is_open_unless_closed_is_asked_for),
        cmocka_unit_test(planes_lie_where_they_are),
        cmocka_unit_test(constant_and_tiny_volumes_are_empty),
        cmocka_unit_test(samples_on_the_level_leave_no_holes),
        cmocka_unit_test(scale_of_the_field_does_not_matter),
        cmocka_unit_test(what_is_not_finite_never_reaches_the_mesh),
        cmocka_unit_test(every_sign_pattern_meets_its_neighbours),
        cmocka_unit_test(fifty_smooth_volumes_are_manifolds_with_the_crossed_edges),
        cmocka_unit_test(slabs_put_together_are_the_whole_bit_for_bit),
        cmocka_unit_test(gradients_agree_with_finite_differences),
        cmocka_unit_test(wrong_arguments_are_named),
        cmocka_unit_test(grid_samples_are_trilinear_and_clamped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
