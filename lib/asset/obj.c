/* asset/obj.c: Wavefront OBJ with MTL (Alias/Wavefront appendices B1 and B2; PBR keys after Ben Houston's extension).
 *
 * A corner of an OBJ names position, texture coordinate and normal apart; each distinct triple becomes a vertex, and
 * each material a mesh. Polygons become fans. Curves, lines, points and smoothing groups are passed over. Vertex
 * colours after the position are read and written, as most programs do. */
#include "asset/asset.h"

#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_MATERIALS = 4096, MAX_SIDE_FILE = 1 << 28 };

struct group { /* the faces of one material */
    struct welder corners;
    struct list faces; /* int32_t[3] */
    char *name;
    int32_t material;
    bool any_uv, all_normals;
};

struct obj {
    struct reader *reader;
    struct cursor cursor;
    struct list positions, colors, uvs, normals; /* float[3], float[3], float[2], float[3] */
    struct list groups, materials, pictures;
    char *object;   /* the current name */
    size_t current; /* group */
    bool has_group;
};

/* The rest of a line, taken apart from its front. */
struct line {
    const char *at, *end;
    uint64_t start; /* offset of the whole line in the source */
    const char *first;
};

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

static void skip_blanks(struct line *l)
{
    while (l->at < l->end && is_blank(*l->at))
        l->at++;
}

static uint64_t line_offset(const struct line *l) { return l->start + (uint64_t)(l->at - l->first); }

/* The next word, or an empty one at the end. */
static size_t next_word(struct line *l, const char **word)
{
    skip_blanks(l);
    *word = l->at;
    while (l->at < l->end && !is_blank(*l->at))
        l->at++;
    return (size_t)(l->at - *word);
}

static bool word_is(const char *word, size_t size, const char *text)
{
    return size == strlen(text) && memcmp(word, text, size) == 0;
}

/* At least `least` numbers, at most `most`; returns how many there were, -1 when fewer or not numbers. */
static int read_numbers(struct reader *r, struct line *l, float *out, int least, int most)
{
    int count = 0;
    for (; count < most; count++) {
        double value;
        skip_blanks(l);
        if (l->at == l->end)
            break;
        if (!number_parse(&l->at, l->end, &value) || (l->at < l->end && !is_blank(*l->at))) {
            (void)reader_fail(r, line_offset(l), "expected a number");
            return -1;
        }
        out[count] = (float)value;
    }
    if (count >= least)
        return count;
    (void)reader_fail(r, line_offset(l), "expected %d numbers, got %d", least, count);
    return -1;
}

static char *rest_of_line(struct reader *r, struct line *l)
{
    skip_blanks(l);
    while (l->end > l->at && is_blank(l->end[-1]))
        l->end--;
    char *text = memory_text(&r->memory, l->at, (size_t)(l->end - l->at));
    if (!text)
        (void)reader_out_of_memory(r);
    for (char *p = text; p && *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7F)
            *p = '?'; /* names end up on terminals */
    return text;
}

/* ---- files that the OBJ names */

/* Relative, and never upwards: a file must not make us read others' files. */
static bool is_inside(const char *name)
{
    if (!*name || *name == '/' || strchr(name, '\\') || strchr(name, ':'))
        return false;
    for (const char *p = name; p; p = strchr(p, '/') ? strchr(p, '/') + 1 : NULL)
        if (p[0] == '.' && p[1] == '.' && (p[2] == '/' || p[2] == '\0'))
            return false;
    return true;
}

/* The file's bytes, or NULL when it is not there or may not be read; false only when out of memory. */
static bool read_side_file(struct reader *r, const char *name, uint8_t **bytes, size_t *size)
{
    *bytes = NULL;
    if (!r->source->folder || !is_inside(name))
        return true;
    const size_t room = strlen(r->source->folder) + strlen(name) + 1;
    char *path = malloc(room);
    if (!path) {
        r->status = status_fail(FEL_OUT_OF_MEMORY, "%zu bytes could not be allocated", room);
        return false;
    }
    memcpy(path, r->source->folder, strlen(r->source->folder));
    memcpy(path + strlen(r->source->folder), name, strlen(name) + 1);
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    free(path);
    struct stat info;
    bool good = true;
    if (fd >= 0 && !fstat(fd, &info) && S_ISREG(info.st_mode) && info.st_size <= MAX_SIDE_FILE) {
        uint8_t *read_bytes = memory_array(&r->memory, (size_t)info.st_size + 1, 1);
        if (!read_bytes) {
            good = reader_out_of_memory(r);
        } else {
            size_t done = 0;
            for (ssize_t got; done < (size_t)info.st_size; done += (size_t)got)
                if ((got = read(fd, read_bytes + done, (size_t)info.st_size - done)) <= 0)
                    break;
            *bytes = read_bytes;
            *size = done;
        }
    }
    if (fd >= 0)
        close(fd);
    return good;
}

static struct fel_material *find_material(struct obj *o, const char *name)
{
    struct fel_material *materials = o->materials.items;
    for (size_t i = 0; i < o->materials.count; i++)
        if (!strcmp(materials[i].name, name))
            return materials + i;
    return NULL;
}

static struct fel_material *add_material(struct obj *o, char *name, uint64_t offset)
{
    if (o->materials.count == MAX_MATERIALS) {
        (void)reader_fail(o->reader, offset, "more than %d materials", MAX_MATERIALS);
        return NULL;
    }
    struct fel_material *m = list_add(&o->materials);
    if (!m) {
        (void)reader_out_of_memory(o->reader);
        return NULL;
    }
    *m = (struct fel_material){.name = name,
                               .base_color = {1, 1, 1, 1},
                               .roughness = 1,
                               .alpha_cutoff = 0.5F,
                               .base_color_texture = -1,
                               .metallic_roughness_texture = -1,
                               .normal_texture = -1,
                               .occlusion_texture = -1,
                               .emissive_texture = -1};
    return m;
}

static bool add_texture(struct obj *o, struct line *l, int32_t *texture)
{
    char *name = rest_of_line(o->reader, l);
    if (!name)
        return false;
    if (*name == '-' && strrchr(name, ' ')) /* options come before the name */
        name = strrchr(name, ' ') + 1;
    const struct fel_picture *pictures = o->pictures.items;
    for (size_t i = 0; i < o->pictures.count; i++) {
        if (!strcmp(pictures[i].name, name)) {
            *texture = (int32_t)i;
            return true;
        }
    }
    if (o->pictures.count == MAX_MATERIALS)
        return reader_fail(o->reader, line_offset(l), "more than %d pictures", MAX_MATERIALS);
    uint8_t *bytes;
    size_t size = 0;
    if (!read_side_file(o->reader, name, &bytes, &size))
        return false;
    struct fel_picture *picture = list_add(&o->pictures);
    if (!picture)
        return reader_out_of_memory(o->reader);
    const bool jpeg = size > 2 && bytes[0] == 0xFF && bytes[1] == 0xD8;
    const bool png = size > 8 && !memcmp(bytes, "\x89PNG", 4);
    *picture = (struct fel_picture){.name = name,
                                    .bytes = png || jpeg ? bytes : NULL,
                                    .size = png || jpeg ? (int64_t)size : 0,
                                    .mime = png    ? "image/png"
                                            : jpeg ? "image/jpeg"
                                                   : NULL};
    *texture = (int32_t)o->pictures.count - 1;
    return true;
}

static bool read_material_line(struct obj *o, struct line *l, struct fel_material **m)
{
    struct reader *r = o->reader;
    const char *word;
    const size_t size = next_word(l, &word);
    if (word_is(word, size, "newmtl")) {
        char *name = rest_of_line(r, l);
        if (!name)
            return false;
        struct fel_material *known = find_material(o, name);
        *m = known ? known : add_material(o, name, line_offset(l));
        return *m != NULL;
    }
    if (!*m)
        return true;
    float tr;
    if (word_is(word, size, "Kd"))
        return read_numbers(r, l, (*m)->base_color, 3, 3) > 0;
    if (word_is(word, size, "Ke"))
        return read_numbers(r, l, (*m)->emissive, 3, 3) > 0;
    if (word_is(word, size, "Pm"))
        return read_numbers(r, l, &(*m)->metallic, 1, 1) > 0;
    if (word_is(word, size, "Pr"))
        return read_numbers(r, l, &(*m)->roughness, 1, 1) > 0;
    if (word_is(word, size, "d") || word_is(word, size, "Tr")) {
        if (read_numbers(r, l, &tr, 1, 1) < 0)
            return false;
        (*m)->base_color[3] = size == 1 ? tr : 1 - tr;
        (*m)->alpha_mode = (*m)->base_color[3] < 1 ? 2 : 0;
        return true;
    }
    if (word_is(word, size, "map_Kd"))
        return add_texture(o, l, &(*m)->base_color_texture);
    if (word_is(word, size, "map_Ke"))
        return add_texture(o, l, &(*m)->emissive_texture);
    if (word_is(word, size, "norm"))
        return add_texture(o, l, &(*m)->normal_texture);
    return true;
}

static bool read_library(struct obj *o, struct line *l)
{
    struct reader *r = o->reader;
    const char *name = rest_of_line(r, l);
    uint8_t *bytes;
    size_t size = 0;
    if (!name || !read_side_file(r, name, &bytes, &size))
        return false;
    if (!bytes)
        return true; /* materials then keep their defaults */
    const struct source source = {
        .name = name, .bytes = bytes, .size = size, .folder = r->source->folder, .fd = -1};
    const struct source *outer = r->source;
    struct cursor c;
    r->source = &source;
    bool good = cursor_open(&c, r, 0);
    struct fel_material *m = NULL;
    struct line line;
    for (size_t length; good && cursor_line(&c, &line.first, &length);) {
        line.at = line.first;
        line.end = line.first + length;
        line.start = c.line_offset;
        good = read_material_line(o, &line, &m);
    }
    cursor_close(&c);
    r->source = outer;
    return good && !r->status;
}

/* ---- geometry */

static bool choose_group(struct obj *o, int32_t material)
{
    struct group *groups = o->groups.items;
    for (size_t i = 0; i < o->groups.count; i++) {
        if (groups[i].material == material) {
            o->current = i;
            return o->has_group = true;
        }
    }
    struct group *g = list_add(&o->groups);
    if (!g)
        return reader_out_of_memory(o->reader);
    *g = (struct group){.material = material,
                        .name = o->object,
                        .all_normals = true,
                        .faces = {.item_size = 3 * sizeof(int32_t), .memory = &o->reader->memory}};
    if (!welder_open(&g->corners, &o->reader->memory, 3))
        return reader_out_of_memory(o->reader);
    o->current = o->groups.count - 1;
    return o->has_group = true;
}

static bool use_material(struct obj *o, struct line *l)
{
    char *name = rest_of_line(o->reader, l);
    if (!name)
        return false;
    const struct fel_material *m = find_material(o, name);
    if (!m)
        m = add_material(o, name, line_offset(l));
    return m && choose_group(o, (int32_t)(m - (const struct fel_material *)o->materials.items));
}

/* One index of a corner, counted from 1 or back from the last; 0 when there is none. */
static bool read_index(struct obj *o, struct line *l, const char *what, size_t count, uint32_t *index)
{
    int64_t value;
    *index = 0;
    if (l->at == l->end || is_blank(*l->at) || *l->at == '/')
        return true;
    const uint64_t offset = line_offset(l);
    if (!integer_parse(&l->at, l->end, &value))
        return reader_fail(o->reader, offset, "%s: expected an index", what);
    const int64_t absolute = value < 0 ? (int64_t)count + 1 + value : value;
    if (absolute < 1 || absolute > (int64_t)count)
        return reader_fail(o->reader, offset, "%s %" PRId64 " of %zu", what, value, count);
    *index = (uint32_t)absolute;
    return true;
}

static bool read_corner(struct obj *o, struct line *l, struct group *g, uint32_t *vertex)
{
    uint32_t key[3] = {0, 0, 0};
    const struct {
        const char *what;
        size_t count;
    } parts[3] = {
        {"position", o->positions.count}, {"texture coordinate", o->uvs.count}, {"normal", o->normals.count}};
    const uint64_t offset = line_offset(l);
    for (int i = 0; i < 3; i++) {
        if (!read_index(o, l, parts[i].what, parts[i].count, key + i))
            return false;
        if (l->at == l->end || *l->at != '/')
            break;
        l->at++;
    }
    if (!key[0] || (l->at < l->end && !is_blank(*l->at)))
        return reader_fail(o->reader, offset, "expected a corner such as 1, 1/1 or 1/1/1");
    g->any_uv = g->any_uv || key[1];
    g->all_normals = g->all_normals && key[2];
    return welder_add(&g->corners, key, vertex) ? true : reader_out_of_memory(o->reader);
}

static bool read_face(struct obj *o, struct line *l)
{
    if (!o->has_group && !choose_group(o, -1))
        return false;
    struct group *g = (struct group *)o->groups.items + o->current;
    uint32_t first = 0, previous = 0;
    int corners = 0;
    for (skip_blanks(l); l->at < l->end; skip_blanks(l), corners++) {
        uint32_t vertex = 0;
        if (!read_corner(o, l, g, &vertex))
            return false;
        if (corners == 0)
            first = vertex;
        if (corners >= 2) {
            int32_t *face = list_add(&g->faces);
            if (!face)
                return reader_out_of_memory(o->reader);
            face[0] = (int32_t)first;
            face[1] = (int32_t)previous;
            face[2] = (int32_t)vertex;
        }
        previous = vertex;
    }
    return corners >= 3 ||
           reader_fail(o->reader, line_offset(l), "expected at least three corners, got %d", corners);
}

static bool read_vertex(struct obj *o, struct line *l)
{
    float numbers[7];
    const int count = read_numbers(o->reader, l, numbers, 3, 7);
    if (count < 0)
        return false;
    float *p = list_add(&o->positions);
    if (!p)
        return reader_out_of_memory(o->reader);
    memcpy(p, numbers, 3 * sizeof *p);
    if (count < 6)
        return true;
    while (o->colors.count < o->positions.count) { /* vertices before the first coloured one are white */
        float *color = list_add(&o->colors);
        if (!color)
            return reader_out_of_memory(o->reader);
        for (int k = 0; k < 3; k++)
            color[k] = o->colors.count == o->positions.count ? numbers[count - 3 + k] : 1.0F;
    }
    return true;
}

static bool read_list(struct obj *o, struct line *l, struct list *list, int least, int width)
{
    float numbers[3] = {0, 0, 0};
    if (read_numbers(o->reader, l, numbers, least, 3) < 0)
        return false;
    float *item = list_add(list);
    if (!item)
        return reader_out_of_memory(o->reader);
    memcpy(item, numbers, (size_t)width * sizeof *item);
    return true;
}

static bool read_line(struct obj *o, struct line *l)
{
    const char *word;
    const size_t size = next_word(l, &word);
    if (word_is(word, size, "v"))
        return read_vertex(o, l);
    if (word_is(word, size, "vt"))
        return read_list(o, l, &o->uvs, 1, 2);
    if (word_is(word, size, "vn"))
        return read_list(o, l, &o->normals, 3, 3);
    if (word_is(word, size, "f"))
        return read_face(o, l);
    if (word_is(word, size, "usemtl"))
        return use_material(o, l);
    if (word_is(word, size, "mtllib"))
        return read_library(o, l);
    if (word_is(word, size, "o"))
        return (o->object = rest_of_line(o->reader, l)) != NULL;
    return true;
}

static bool make_mesh(struct obj *o, struct group *g, struct fel_mesh *mesh)
{
    struct memory *m = &o->reader->memory;
    const size_t v = g->corners.keys.count;
    mesh->name = g->name;
    mesh->material = g->material;
    mesh->vertex_count = (int64_t)v;
    mesh->face_count = (int64_t)g->faces.count;
    mesh->positions = memory_array(m, v, 12);
    mesh->faces = list_take(&g->faces);
    mesh->uvs = g->any_uv ? memory_array(m, v, 8) : NULL;
    mesh->normals = v && g->all_normals ? memory_array(m, v, 12) : NULL;
    mesh->colors = o->colors.count ? memory_array(m, v, 16) : NULL;
    if (!mesh->positions || !mesh->faces || (g->any_uv && !mesh->uvs) ||
        (v && g->all_normals && !mesh->normals) || (o->colors.count && !mesh->colors))
        return reader_out_of_memory(o->reader);
    const uint32_t *keys = g->corners.keys.items;
    const float *positions = o->positions.items, *uvs = o->uvs.items, *normals = o->normals.items,
                *colors = o->colors.items;
    for (size_t i = 0; i < v; i++) {
        const uint32_t *key = keys + 3 * i;
        memcpy(mesh->positions + 3 * i, positions + 3 * (size_t)(key[0] - 1), 12);
        if (mesh->uvs && key[1]) {
            mesh->uvs[2 * i] = uvs[2 * (size_t)(key[1] - 1)];
            mesh->uvs[2 * i + 1] = 1 - uvs[2 * (size_t)(key[1] - 1) + 1];
        }
        if (mesh->normals)
            memcpy(mesh->normals + 3 * i, normals + 3 * (size_t)(key[2] - 1), 12);
        for (size_t k = 0; k < 4 && mesh->colors; k++)
            mesh->colors[4 * i + k] =
                k < 3 && key[0] - 1 < o->colors.count ? colors[3 * (size_t)(key[0] - 1) + k] : 1.0F;
    }
    welder_close(&g->corners);
    return true;
}

bool obj_read(struct reader *r, fel_asset *asset)
{
    struct memory *m = &r->memory;
    struct obj o = {.reader = r,
                    .positions = {.item_size = 12, .memory = m},
                    .colors = {.item_size = 12, .memory = m},
                    .uvs = {.item_size = 8, .memory = m},
                    .normals = {.item_size = 12, .memory = m},
                    .groups = {.item_size = sizeof(struct group), .memory = m},
                    .materials = {.item_size = sizeof(struct fel_material), .memory = m},
                    .pictures = {.item_size = sizeof(struct fel_picture), .memory = m}};
    bool good = cursor_open(&o.cursor, r, 0);
    struct line line;
    for (size_t size; good && cursor_line(&o.cursor, &line.first, &size);) {
        const char *comment = memchr(line.first, '#', size);
        line.at = line.first;
        line.end = comment ? comment : line.first + size;
        line.start = o.cursor.line_offset;
        good = read_line(&o, &line);
    }
    cursor_close(&o.cursor);
    if (!good || r->status)
        return false;
    asset->mesh_count = (int64_t)o.groups.count;
    asset->meshes = memory_array(m, o.groups.count, sizeof *asset->meshes);
    if (!asset->meshes)
        return reader_out_of_memory(r);
    for (size_t i = 0; i < o.groups.count; i++)
        if (!make_mesh(&o, (struct group *)o.groups.items + i, asset->meshes + i))
            return false;
    list_free(&o.positions);
    list_free(&o.colors);
    list_free(&o.uvs);
    list_free(&o.normals);
    asset->material_count = (int64_t)o.materials.count;
    asset->materials = list_take(&o.materials);
    asset->picture_count = (int64_t)o.pictures.count;
    asset->pictures = list_take(&o.pictures);
    return asset->materials && asset->pictures ? true : reader_out_of_memory(r);
}

/* ---- writing */

/* "dir/name.obj" to "dir/name" + ending; malloc'd. */
static char *beside(const char *path, const char *ending)
{
    const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
    const size_t stem = dot && (!slash || dot > slash) ? (size_t)(dot - path) : strlen(path);
    const size_t room = stem + strlen(ending) + 1;
    char *out = malloc(room);
    if (out)
        snprintf(out, room, "%.*s%s", (int)stem, path, ending);
    else
        (void)status_fail(FEL_OUT_OF_MEMORY, "%zu bytes could not be allocated", room);
    return out;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void picture_ending(const struct fel_picture *p, int64_t index, char ending[32])
{
    const bool jpeg = p->size > 2 && p->bytes[0] == 0xFF && p->bytes[1] == 0xD8;
    char digits[24];
    size_t length = 0, at = 0;
    for (int64_t left = index; left || !length; left /= 10)
        digits[length++] = (char)('0' + left % 10);
    ending[at++] = '_';
    while (length)
        ending[at++] = digits[--length];
    memcpy(ending + at, jpeg ? ".jpg" : ".png", 5);
}

static fel_status write_pictures(const char *path, const fel_asset *asset)
{
    for (int64_t i = 0; i < asset->picture_count; i++) {
        const struct fel_picture *p = asset->pictures + i;
        if (!p->bytes)
            continue;
        char ending[32];
        picture_ending(p, i, ending);
        char *name = beside(path, ending);
        if (!name)
            return FEL_OUT_OF_MEMORY;
        const fel_status status = fel_write_atomically(name, p->bytes, (size_t)p->size);
        free(name);
        if (status)
            return status;
    }
    return FEL_OK;
}

static void put_texture(struct output *o, const char *path, const fel_asset *asset, const char *key,
                        int32_t texture)
{
    if (texture < 0 || !asset->pictures[texture].bytes)
        return;
    char ending[32];
    picture_ending(asset->pictures + texture, texture, ending);
    char *name = beside(path, ending);
    if (name)
        output_text(o, "%s %s\n", key, base_name(name));
    else
        o->status = FEL_OUT_OF_MEMORY;
    free(name);
}

static void put_floats(struct output *o, const char *key, const float *values, int count)
{
    output_text(o, "%s ", key);
    for (int i = 0; i < count; i++)
        output_float(o, values[i], i + 1 < count ? ' ' : '\n');
}

static fel_status write_library(const char *path, const char *library, const fel_asset *asset)
{
    struct output o;
    fel_status status = output_open(&o, library);
    if (status)
        return status;
    for (int64_t i = 0; i < asset->material_count; i++) {
        const struct fel_material *m = asset->materials + i;
        output_text(&o, "newmtl material_%" PRId64 "\n", i);
        put_floats(&o, "Kd", m->base_color, 3);
        put_floats(&o, "d", m->base_color + 3, 1);
        put_floats(&o, "Pm", &m->metallic, 1);
        put_floats(&o, "Pr", &m->roughness, 1);
        put_floats(&o, "Ke", m->emissive, 3);
        put_texture(&o, path, asset, "map_Kd", m->base_color_texture);
        put_texture(&o, path, asset, "map_Ke", m->emissive_texture);
        put_texture(&o, path, asset, "norm", m->normal_texture);
    }
    return output_close(&o, FEL_OK);
}

static void put_mesh(struct output *o, const struct fel_mesh *m, int64_t index, int64_t first,
                     int64_t first_uv, int64_t first_normal)
{
    output_text(o, "o mesh_%" PRId64 "\n", index);
    if (m->material >= 0)
        output_text(o, "usemtl material_%d\n", m->material);
    for (int64_t i = 0; i < m->vertex_count; i++) {
        output_bytes(o, "v ", 2);
        for (int k = 0; k < 3; k++)
            output_float(o, m->positions[3 * i + k], k < 2 || m->colors ? ' ' : '\n');
        for (int k = 0; k < 3 && m->colors; k++)
            output_float(o, m->colors[4 * i + k], k < 2 ? ' ' : '\n');
    }
    for (int64_t i = 0; i < m->vertex_count && m->uvs; i++) {
        const float uv[2] = {m->uvs[2 * i], 1 - m->uvs[2 * i + 1]};
        put_floats(o, "vt", uv, 2);
    }
    for (int64_t i = 0; i < m->vertex_count && m->normals; i++)
        put_floats(o, "vn", m->normals + 3 * i, 3);
    for (int64_t f = 0; f < m->face_count; f++) {
        output_bytes(o, "f", 1);
        for (int k = 0; k < 3; k++) {
            const int64_t c = m->faces[3 * f + k];
            if (m->uvs && m->normals)
                output_text(o, " %" PRId64 "/%" PRId64 "/%" PRId64, first + c, first_uv + c,
                            first_normal + c);
            else if (m->uvs)
                output_text(o, " %" PRId64 "/%" PRId64, first + c, first_uv + c);
            else if (m->normals)
                output_text(o, " %" PRId64 "//%" PRId64, first + c, first_normal + c);
            else
                output_text(o, " %" PRId64, first + c);
        }
        output_bytes(o, "\n", 1);
    }
}

fel_status obj_write(struct output *o, const char *path, const fel_asset *asset)
{
    output_text(o, "# felloe\n");
    if (asset->material_count) {
        /* pictures and library first: whoever sees the new OBJ finds what it names */
        char *library = beside(path, ".mtl");
        if (!library)
            return FEL_OUT_OF_MEMORY;
        fel_status status = write_pictures(path, asset);
        if (!status)
            status = write_library(path, library, asset);
        output_text(o, "mtllib %s\n", base_name(library));
        free(library);
        if (status)
            return status;
    }
    int64_t first = 1, first_uv = 1, first_normal = 1;
    for (int64_t i = 0; i < asset->mesh_count; i++) {
        const struct fel_mesh *m = asset->meshes + i;
        put_mesh(o, m, i, first, first_uv, first_normal);
        first += m->vertex_count;
        first_uv += m->uvs ? m->vertex_count : 0;
        first_normal += m->normals ? m->vertex_count : 0;
    }
    return FEL_OK;
}
