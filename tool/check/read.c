/* From a file or URL to what is in it: metadata, hashes, shared objects. */
#include "check/check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "wheel/archive.h"

enum {
    WALKED_MOST = 64 << 10, /* members of an archive that comes in file order */
    PASSES_MOST = 4,
    TAIL_WORTH_SKIPPING =
        1 << 20, /* bytes after an object's loaded part; less is read, for its section names and its hash */
    THREADS_MOST = 16,
    PIECE = 8 << 20 /* of an object on disk at a time */
};

/* What happens to one member. */
struct part {
    size_t member;
    bool is_object, is_text, hashed, ended;
    struct buf text;
    struct elf_scan *scan;
    struct sha256 sha;
    uint8_t digest[32];
    bool has_digest; /* of all of it */
    uint64_t passed, size;
    bool by_range;
    arena *scratch;
    struct elf_object object;
    bool has_object;
    struct archive_job job;
    findings *f;
};
struct reading {
    arena *a;
    const struct check_env *env;
    struct check_file *file;
    struct archive archive;
    struct part *parts;
    size_t count;
    pthread_mutex_t lock; /* of a, file and archive.bytes_read */
    atomic_size_t next;
    const size_t *order;
    bool again; /* a pass for objects whose tables lie far from their start */
};

static bool is_object_name(str name)
{
    const str base = path_base(name);
    const size_t so = str_find(base, S(".so"));
    return so != SIZE_MAX && (so + 3 == base.n || base.p[so + 3] == '.');
}

static bool is_text_name(str name)
{
    static const str NAMES[] = {S_INIT(".dist-info/METADATA"), S_INIT(".dist-info/WHEEL"),
                                S_INIT(".dist-info/RECORD"), S_INIT(".dist-info/variant.json")};
    for (size_t i = 0; i < COUNT(NAMES); i++) {
        const str folder = str_slice(name, 0, name.n - (name.n < NAMES[i].n ? name.n : NAMES[i].n));
        if (str_ends(name, NAMES[i]) && str_find_char(folder, '/') == SIZE_MAX)
            return true;
    }
    return false;
}

static bool take(void *context, span bytes)
{
    struct part *p = context;
    p->passed += bytes.n;
    if (p->hashed)
        sha256_add(&p->sha, bytes);
    if (p->is_text) {
        if (p->text.count + bytes.n > ARCHIVE_TEXT_MOST)
            return false;
        buf_add(&p->text, str_from_span(bytes));
    }
    if (!p->scan)
        return p->is_text || p->hashed;
    const bool wanted = elf_scan_feed(p->scan, bytes);
    if (wanted && p->by_range && p->passed >= elf_scan_enough(p->scan) &&
        p->size - p->passed > TAIL_WORTH_SKIPPING)
        return false;
    return wanted || p->hashed;
}

static void part_start(struct reading *r, struct part *p, size_t index)
{
    const struct archive_member *m = &r->archive.items[index];
    p->member = index;
    p->by_range = r->archive.http != NULL;
    p->passed = 0;
    p->size = m->size;
    if (!r->again) {
        p->is_object = is_object_name(m->name);
        p->is_text = is_text_name(m->name);
        p->hashed = !r->env->options->skip_hashes &&
                    (!p->by_range || p->is_object || p->is_text || !r->archive.by_range);
        if (p->is_object) {
            p->scratch = arena_new(0);
            p->scan = elf_scan_new(p->scratch, m->name, m->sizes_known ? m->size : ARCHIVE_SIZE_MOST);
        }
    } else {
        p->hashed = false;
    }
    if (p->is_text && !p->scratch)
        p->scratch = arena_new(0); /* threads fill it outside the lock, so it must not be the file's arena */
    if (p->is_text)
        p->text = (struct buf){.a = p->scratch};
    if (p->hashed)
        sha256_start(&p->sha);
    p->job = (struct archive_job){.member = index, .sink = take, .context = p};
}

/* After a member has passed: its hash, and its object. Called with the lock held. */
static void part_end(struct reading *r, struct part *p)
{
    const struct archive_member *m = &r->archive.items[p->member];
    findings *f = r->file->findings;
    const bool has_error = p->job.error.p != NULL;
    if (p->hashed) {
        sha256_end(&p->sha, p->digest);
        p->has_digest = p->job.whole;
        p->hashed = false;
    }
    p->ended = true;
    if (has_error) {
        (void)finding_fatal(f, 3, F200, (struct place){.file = r->file->file}, "%.*s: %.*s", STR_ARG(m->name),
                            STR_ARG(p->job.error));
        r->file->verdict = CHECK_BROKEN;
    }
    if (p->scan && !has_error) {
        findings *own = findings_new(p->scratch);
        const enum elf_state state = elf_scan_end(p->scan, &p->object, own);
        for (size_t i = 0; i < own->count; i++) {
            struct finding *copy = finding_at(f, own->items[i].code, (struct place){.file = r->file->file},
                                              str_copy(r->a, m->name), "%.*s: %.*s", STR_ARG(m->name),
                                              STR_ARG(own->items[i].what));
            copy->severity = own->items[i].severity;
        }
        if (state == ELF_WANTED)
            return; /* once more */
        if (state == ELF_READ) {
            p->object = elf_object_copy(r->a, &p->object);
            p->has_object = true;
        } else {
            r->file->verdict = CHECK_BROKEN;
        }
    }
    if (p->is_text) {
        const str text = str_copy(r->a, buf_str(&p->text));
        p->text = (struct buf){.a = r->a, .items = unconst(text.p), .count = text.n, .capacity = text.n};
    }
    if (p->scan)
        elf_scan_free(p->scan);
    p->scan = NULL;
    arena_free(p->scratch);
    p->scratch = NULL;
}

static void *work(void *context)
{
    struct reading *r = context;
    for (size_t i = atomic_fetch_add(&r->next, 1); i < r->count; i = atomic_fetch_add(&r->next, 1)) {
        struct part *p = &r->parts[r->order[i]];
        arena *mine = arena_new(0);
        (void)pthread_mutex_lock(&r->lock);
        const bool wanted = r->again ? p->scan != NULL : true;
        if (wanted)
            part_start(r, p, r->order[i]);
        (void)pthread_mutex_unlock(&r->lock);
        if (wanted) {
            archive_run(mine, &r->archive, &p->job, 1);
            (void)pthread_mutex_lock(&r->lock);
            r->file->bytes_read += r->again ? 0 : r->archive.items[p->member].packed;
            part_end(r, p);
            (void)pthread_mutex_unlock(&r->lock);
        }
        arena_free(mine);
    }
    return NULL;
}

/* The largest members first, so that no thread is left with one at the end. */
static const struct archive_member *sorted_members;
static pthread_mutex_t sort_lock = PTHREAD_MUTEX_INITIALIZER;
static int larger_first(const void *x, const void *y)
{
    const uint64_t a = sorted_members[*(const size_t *)x].packed,
                   b = sorted_members[*(const size_t *)y].packed;
    return a > b ? -1 : a < b;
}

static const size_t *by_size(arena *a, const struct archive *archive)
{
    size_t *order = arena_array(a, size_t, archive->count + 1);
    for (size_t i = 0; order && i < archive->count; i++)
        order[i] = i;
    (void)pthread_mutex_lock(&sort_lock);
    sorted_members = archive->items;
    if (order)
        qsort(order, archive->count, sizeof *order, larger_first);
    (void)pthread_mutex_unlock(&sort_lock);
    return order;
}

static bool any_again(const struct reading *r)
{
    for (size_t i = 0; i < r->count; i++)
        if (r->parts[i].scan)
            return true;
    return false;
}

static void read_local(struct reading *r, size_t threads)
{
    r->order = by_size(r->a, &r->archive);
    for (int pass = 0; r->order && pass < PASSES_MOST; pass++) {
        pthread_t ids[THREADS_MOST];
        size_t started = 0;
        atomic_store(&r->next, 0);
        r->again = pass > 0;
        while (started + 1 < threads && started < THREADS_MOST &&
               pthread_create(&ids[started], NULL, work, r) == 0)
            started++;
        (void)work(r);
        while (started > 0)
            (void)pthread_join(ids[--started], NULL);
        if (!any_again(r))
            break;
    }
}

static void read_remote(struct reading *r)
{
    struct archive_job *jobs = arena_array(r->a, struct archive_job, r->count);
    struct part **wanted = arena_array(r->a, struct part *, r->count);
    for (int pass = 0; jobs && wanted && pass < PASSES_MOST; pass++) {
        size_t count = 0;
        r->again = pass > 0;
        for (size_t i = 0; i < r->count; i++) {
            const str name = r->archive.items[i].name;
            if (r->again ? r->parts[i].scan == NULL : !is_object_name(name) && !is_text_name(name))
                continue;
            part_start(r, &r->parts[i], i);
            wanted[count] = &r->parts[i];
            jobs[count++] = r->parts[i].job;
        }
        archive_run(r->a, &r->archive, jobs, count);
        for (size_t i = 0; i < count; i++) {
            wanted[i]->job = jobs[i];
            part_end(r, wanted[i]);
        }
        if (!any_again(r))
            break;
    }
}

static struct archive_job *walk_begin(void *context, const struct archive_member *member, size_t index)
{
    struct reading *r = context;
    (void)member;
    if (index >= r->count) { /* the list of parts grows with the walk; parts in use are never moved */
        if (index >= WALKED_MOST)
            return NULL;
        r->count = index + 1;
    }
    if (r->again && !r->parts[index].scan)
        return NULL;
    part_start(r, &r->parts[index], index);
    return &r->parts[index].job;
}

static void walk_done(void *context, struct archive_job *job) { part_end(context, job->context); }

static bool read_in_order(struct reading *r)
{
    r->parts = arena_array(r->a, struct part, WALKED_MOST);
    if (!r->parts)
        return finding_add(r->file->findings, F006, r->file->file,
                           "its members are over the limit on memory");
    for (int pass = 0; pass < PASSES_MOST; pass++) {
        r->again = pass > 0;
        if (!archive_walk(r->a, &r->archive, walk_begin, walk_done, r, r->file->findings))
            return false;
        if (!any_again(r))
            break;
    }
    return true;
}

/* ---- The files of .dist-info ---- */
static struct part *text_part(struct reading *r, str ending)
{
    for (size_t i = 0; i < r->count; i++)
        if (r->parts[i].is_text && r->parts[i].ended && !r->parts[i].job.error.p &&
            str_ends(r->archive.items[i].name, ending))
            return &r->parts[i];
    return NULL;
}

static void malformed(struct reading *r, const char *name, size_t line, str why)
{
    (void)finding_fatal(r->file->findings, 3, F253, (struct place){.file = r->file->file, .line = line},
                        "%s: %.*s", name, STR_ARG(why));
    r->file->verdict = CHECK_BROKEN;
}

static int record_cmp(const void *x, const void *y)
{
    return str_cmp(((const struct record_entry *)x)->path, ((const struct record_entry *)y)->path);
}

static void verify_record(struct reading *r, struct record *record, str record_name)
{
    findings *f = r->file->findings;
    size_t bad = 0;
    if (record->count > 1)
        qsort(record->items, record->count, sizeof *record->items, record_cmp);
    for (size_t i = 0; i < r->count && bad < 20; i++) {
        const struct archive_member *m = &r->archive.items[i];
        const struct part *p = &r->parts[i];
        const struct record_entry key = {.path = m->name};
        uint8_t digest[32];
        if (m->name.p[m->name.n - 1] == '/')
            continue;
        const struct record_entry *e =
            record->count ? bsearch(&key, record->items, record->count, sizeof key, record_cmp) : NULL;
        if (!e) {
            /* Signatures are outside of RECORD by its own definition. */
            if (str_eq(m->name, record_name) || str_ends(m->name, S(".dist-info/RECORD.jws")) ||
                str_ends(m->name, S(".dist-info/RECORD.p7s")))
                continue;
            bad++;
            (void)finding_at(f, F201, (struct place){.file = r->file->file}, m->name, "%.*s is not in RECORD",
                             STR_ARG(m->name));
            continue;
        }
        if (!p->has_digest) {
            r->file->hashes_unread += e->digest.n > 0;
            continue;
        }
        if (!record_sha256(e, digest))
            continue; /* its own line, or a hash that is not SHA-256 */
        if (memcmp(digest, p->digest, sizeof digest) == 0) {
            r->file->hashes_good++;
            continue;
        }
        bad++;
        (void)finding_at(f, F201, (struct place){.file = r->file->file}, m->name,
                         "the SHA-256 of %.*s differs from RECORD's", STR_ARG(m->name));
    }
    if (bad > 0)
        r->file->verdict = CHECK_BROKEN;
}

static void read_variant(struct reading *r, str text)
{
    json_t *root = json_loadb(text.p, text.n, 0, NULL);
    const char *label;
    json_t *properties;
    /* {"variants": {label: {namespace: {feature: [values]}}}}; other shapes of the draft are passed over. */
    json_object_foreach(json_object_get(root, "variants"), label, properties)
    {
        const char *namespace, *feature;
        json_t *features, *values;
        json_object_foreach(properties, namespace, features)
        {
            json_object_foreach(features, feature, values)
            {
                for (size_t i = 0; i < json_array_size(values); i++) {
                    const char *value = json_string_value(json_array_get(values, i));
                    if (value)
                        (void)strs_add(r->a, &r->file->variant,
                                       str_format(r->a, "%s :: %s :: %s", namespace, feature, value));
                }
            }
        }
    }
    json_decref(root);
}

static void read_texts(struct reading *r)
{
    struct check_file *file = r->file;
    struct part *metadata = text_part(r, S("/METADATA")), *facts = text_part(r, S("/WHEEL")),
                *record = text_part(r, S("/RECORD")), *variant = text_part(r, S("/variant.json"));
    size_t line = 0;
    str why = {NULL, 0};
    struct record entries;
    if (file->verdict == CHECK_BROKEN)
        return; /* said already: the archive */
    if (!metadata || !facts || !record) {
        (void)finding_fatal(file->findings, 3, F253, (struct place){.file = file->file},
                            "*.dist-info/%s is missing",
                            !metadata ? "METADATA"
                            : !facts  ? "WHEEL"
                                      : "RECORD");
        file->verdict = CHECK_BROKEN;
        return;
    }
    if (!metadata_parse(r->a, span_from_str(buf_str(&metadata->text)), &file->metadata, &line, &why))
        malformed(r, "METADATA", line, why);
    if (!wheel_facts_parse(r->a, span_from_str(buf_str(&facts->text)), &file->facts, &line, &why))
        malformed(r, "WHEEL", line, why);
    else
        file->has_facts = true;
    if (!record_parse(r->a, span_from_str(buf_str(&record->text)), &entries, &line, &why))
        malformed(r, "RECORD", line, why);
    else if (!r->env->options->skip_hashes)
        verify_record(r, &entries, r->archive.items[record->member].name);
    if (variant)
        read_variant(r, buf_str(&variant->text));
}

static bool collect_objects(struct reading *r)
{
    size_t count = 0;
    for (size_t i = 0; i < r->count; i++)
        count += r->parts[i].has_object;
    r->file->objects = arena_array(r->a, struct check_object, count);
    if (!r->file->objects && count > 0)
        return finding_add(r->file->findings, F006, r->file->file,
                           "its objects are over the limit on memory");
    for (size_t i = 0; i < r->count; i++)
        if (r->parts[i].has_object)
            r->file->objects[r->file->object_count++].elf = r->parts[i].object;
    return true;
}

static bool read_archive(arena *a, const struct check_env *env, str file, size_t threads,
                         struct check_file *out)
{
    struct reading r = {.a = a, .env = env, .file = out, .lock = PTHREAD_MUTEX_INITIALIZER};
    const bool remote = str_starts(file, S("http://")) || str_starts(file, S("https://"));
    const struct http_options options = {.offline = env->options->offline, .verbose = env->options->verbose};
    http *h = remote ? http_new(&options) : NULL;
    bool good = archive_open(a, h, file, &r.archive, out->findings);
    if (good) {
        r.count = r.archive.by_range ? r.archive.count : 0;
        r.parts = arena_array(a, struct part, r.count);
        if (!r.archive.by_range)
            good = read_in_order(&r);
        else if (remote)
            read_remote(&r);
        else
            read_local(&r, threads);
        for (size_t i = 0; i < r.count; i++) { /* what no pass could end */
            elf_scan_free(r.parts[i].scan);
            if (r.parts[i].scratch)
                arena_free(r.parts[i].scratch);
        }
        out->bytes_read += r.archive.bytes_read;
        out->bytes_total = r.archive.size;
        if (good) {
            good = collect_objects(&r);
            read_texts(&r);
        }
        archive_close(&r.archive);
    }
    http_free(h);
    return good;
}

bool check_read_object(arena *a, str path, struct elf_object *out, uint64_t *size, findings *f)
{
    span map;
    if (!file_map(path, ARCHIVE_SIZE_MOST, &map, f))
        return false;
    arena *scratch = arena_new(0);
    struct elf_scan *scan = elf_scan_new(scratch, path, map.n);
    enum elf_state state = scan ? ELF_WANTED : ELF_BROKEN;
    struct elf_object object;
    for (int pass = 0; state == ELF_WANTED && pass < PASSES_MOST; pass++) {
        for (size_t at = 0; at < map.n; at += PIECE) {
            const span piece = {map.p + at, map.n - at < PIECE ? map.n - at : PIECE};
            const bool more = elf_scan_feed(scan, piece);
            archive_forget(piece);
            if (!more)
                break;
        }
        state = elf_scan_end(scan, &object, f);
    }
    if (state == ELF_READ)
        *out = elf_object_copy(a, &object);
    elf_scan_free(scan);
    arena_free(scratch);
    *size = map.n;
    file_unmap(map);
    return state == ELF_READ;
}

static bool read_object(arena *a, str file, struct check_file *out)
{
    out->objects = arena_array(a, struct check_object, 1);
    if (!out->objects || !check_read_object(a, file, &out->objects[0].elf, &out->bytes_total, out->findings))
        return false;
    out->objects[0].elf.path = path_base(file);
    out->object_count = 1;
    out->bytes_read = out->bytes_total;
    return true;
}

bool check_read(arena *a, const struct check_env *env, str file, size_t threads, struct check_file *out)
{
    str path = file;
    for (const char *end = "?#"; *end; end++) {
        const size_t at = str_find(file, S("://")) == SIZE_MAX ? SIZE_MAX : str_find_char(path, *end);
        path = at == SIZE_MAX ? path : str_slice(path, 0, at);
    }
    const bool good = is_object_name(path) && str_find(file, S("://")) == SIZE_MAX
                          ? read_object(a, file, out)
                          : read_archive(a, env, file, threads, out);
    if (!good)
        out->verdict = CHECK_BROKEN;
    return good;
}
