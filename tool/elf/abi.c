/* ABI profiles: one table for all releases, since most names are exported by most of them. The file:
 *
 *   bytes  0..8    "FELABI1\n"
 *          8..40   u32 size of the text, u32 size of the packed sets, u32 their plain size, u32 Rice parameter k,
 *                  u64 number of names, u64 size of the hashes; little-endian
 *   then the text  JSON: {"sources": [{"release", "library", "needs", "symbols"}]}
 *   the sets       zstd: u16 count, as many bit sets of (sources + 7) / 8 bytes, then for each name the u16 number of its set
 *   the hashes     gaps between sorted 48-bit hashes, Rice-coded: quotient in unary (ones, then a zero), k low bits, from the
 *                  lowest bit of each byte on
 *
 * Gaps of uniform hashes are geometric, for which Rice codes are within 0.03 bits of the entropy: 0.8 million names take
 * about 30 bits each, where their text has 80 bytes. */
#include "elf/elf.h"

#include <stdlib.h>

#include <zstd.h>

enum {
    HEADER = 40,
    HASH_BITS = 48,
    NAMES_MOST = 16 << 20,
    CLASSES_MOST = 65535,
    SETS_MOST = 512 << 20,
    TEXT_MOST = 4 << 20,
    QUOTIENT_MOST = 4096 /* of one gap; uniform hashes stay under 64 */
};
static const char MAGIC[8] = {'F', 'E', 'L', 'A', 'B', 'I', '1', '\n'};

struct abi {
    struct abi_source *sources;
    size_t source_count;
    uint64_t *hashes;  /* sorted */
    uint16_t *classes; /* of each hash */
    struct abi_set *sets;
    size_t count, set_count;
};

uint64_t abi_hash(str name)
{
    uint64_t h = str_hash(
        name); /* then murmur3's finalizer: FNV-1a alone leaves the last bytes in few of the upper bits */
    h ^= h >> 33;
    h *= 0xff51afd7ed558ccdULL;
    h ^= h >> 33;
    h *= 0xc4ceb9fe1a85ec53ULL;
    return h ^ h >> 33;
}

/* ---- Bits ---- */
struct bits {
    span bytes;
    uint64_t at; /* in bits */
};

static unsigned bit_next(struct bits *b)
{
    const unsigned bit = (unsigned)(span_u8(b->bytes, b->at >> 3) >> (b->at & 7)) & 1;
    b->at++;
    return bit;
}

static bool gap_next(struct bits *b, unsigned k, uint64_t *gap)
{
    uint64_t quotient = 0, low = 0;
    while (bit_next(b))
        if (++quotient > QUOTIENT_MOST)
            return false;
    for (unsigned done = 0; done < k;) { /* a byte's worth at a time */
        const unsigned offset = (unsigned)(b->at & 7), take = 8 - offset < k - done ? 8 - offset : k - done;
        const uint64_t part = (uint64_t)(span_u8(b->bytes, b->at >> 3) >> offset) & ((1u << take) - 1);
        low |= part << done;
        done += take;
        b->at += take;
    }
    *gap = quotient << k | low;
    return b->at <= b->bytes.n * 8;
}

struct bit_writer {
    uint8_t *bytes;
    size_t capacity;
    uint64_t at;
};

static void bit_put(struct bit_writer *w, unsigned bit)
{
    if (w->at >> 3 < w->capacity && bit)
        w->bytes[w->at >> 3] |= (uint8_t)(1u << (w->at & 7));
    w->at++;
}

static void gap_put(struct bit_writer *w, unsigned k, uint64_t gap)
{
    for (uint64_t q = gap >> k; q > 0; q--)
        bit_put(w, 1);
    bit_put(w, 0);
    for (unsigned i = 0; i < k; i++)
        bit_put(w, (gap >> i) & 1);
}

/* ---- Reading ---- */
static bool read_sources(arena *a, span text, struct abi *abi)
{
    json_error_t error;
    json_t *root = json_loadb((const char *)text.p, text.n, 0, &error);
    const json_t *list = json_object_get(root, "sources");
    const size_t count = json_array_size(list);
    bool good = count > 0 && count <= ABI_SOURCES_MOST;
    abi->sources = good ? arena_array(a, struct abi_source, count) : NULL;
    good = good && abi->sources;
    for (size_t i = 0; good && i < count; i++) {
        const json_t *item = json_array_get(list, i), *needs = json_object_get(item, "needs");
        struct abi_source *s = &abi->sources[abi->source_count++];
        s->release = str_copy(a, str_from(json_string_value(json_object_get(item, "release"))));
        s->library = str_copy(a, str_from(json_string_value(json_object_get(item, "library"))));
        s->symbols = (size_t)json_integer_value(json_object_get(item, "symbols"));
        for (size_t n = 0; n < json_array_size(needs); n++)
            (void)strs_add(a, &s->needs, str_copy(a, str_from(json_string_value(json_array_get(needs, n)))));
        good = s->release.n > 0 && s->library.n > 0;
    }
    json_decref(root);
    return good;
}

static bool read_sets(arena *a, span packed, size_t plain_size, struct abi *abi)
{
    const size_t width = (abi->source_count + 7) / 8;
    if (plain_size > SETS_MOST || plain_size < 2)
        return false;
    uint8_t *plain = malloc(plain_size);
    const size_t got = plain ? ZSTD_decompress(plain, plain_size, packed.p, packed.n) : 0;
    const span s = {plain, plain_size};
    abi->set_count = span_u16le(s, 0);
    bool good = plain && !ZSTD_isError(got) && got == plain_size &&
                plain_size == 2 + abi->set_count * width + abi->count * 2;
    abi->sets = good ? arena_array(a, struct abi_set, abi->set_count) : NULL;
    abi->classes = good ? arena_array(a, uint16_t, abi->count) : NULL;
    good = good && (abi->sets || abi->set_count == 0) && (abi->classes || abi->count == 0);
    for (size_t c = 0; good && c < abi->set_count; c++)
        for (size_t i = 0; i < abi->source_count; i++)
            if (plain[2 + c * width + i / 8] >> (i % 8) & 1)
                abi_set_add(&abi->sets[c], i);
    for (size_t i = 0; good && i < abi->count; i++) {
        abi->classes[i] = span_u16le(s, 2 + abi->set_count * width + i * 2);
        good = abi->classes[i] < abi->set_count;
    }
    free(plain);
    return good;
}

bool abi_read(arena *a, span file, str path, struct abi **out, findings *f)
{
    struct abi *abi = arena_array(a, struct abi, 1);
    const uint64_t text_size = span_u32le(file, 8), sets_size = span_u32le(file, 12),
                   plain = span_u32le(file, 16);
    const unsigned k = span_u32le(file, 20);
    const uint64_t count = span_u64le(file, 24), hash_size = span_u64le(file, 32);
    span text, sets, hashes;
    if (!abi || file.n < HEADER || memcmp(file.p, MAGIC, sizeof MAGIC) != 0)
        return finding_add(f, F005, path, "it is no ABI profile: expected FELABI1 at its start");
    abi->count = (size_t)count;
    if (count > NAMES_MOST || k > HASH_BITS || text_size > TEXT_MOST ||
        !span_slice(file, HEADER, text_size, &text) ||
        !span_slice(file, HEADER + text_size, sets_size, &sets) ||
        !span_slice(file, HEADER + text_size + sets_size, hash_size, &hashes) ||
        !read_sources(a, text, abi) || !read_sets(a, sets, (size_t)plain, abi))
        return finding_add(f, F005, path, "the ABI profile's header or its sets are damaged");
    abi->hashes = arena_array(a, uint64_t, abi->count);
    struct bits b = {.bytes = hashes};
    uint64_t hash = 0;
    for (size_t i = 0; i < abi->count; i++) {
        uint64_t gap = 0;
        if (!abi->hashes || !gap_next(&b, k, &gap))
            return finding_add(f, F005, path, "the ABI profile ends after %zu of %zu names", i, abi->count);
        hash += gap;
        abi->hashes[i] = hash;
    }
    *out = abi;
    return true;
}

bool abi_data(arena *a, struct abi **out, findings *f)
{
    span file;
    str path;
    return data_file(a, "abi/profiles.abi", &file, &path, f) && abi_read(a, file, path, out, f);
}

size_t abi_source_count(const struct abi *abi) { return abi->source_count; }
const struct abi_source *abi_source_at(const struct abi *abi, size_t i) { return &abi->sources[i]; }
size_t abi_name_count(const struct abi *abi) { return abi->count; }

bool abi_find(const struct abi *abi, uint64_t hash, struct abi_set *set)
{
    const uint64_t wanted = hash >> (64 - HASH_BITS);
    size_t low = 0, high = abi->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (abi->hashes[middle] < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == abi->count || abi->hashes[low] != wanted)
        return false;
    *set = abi->sets[abi->classes[low]];
    return true;
}

/* ---- Writing ---- */
struct pair {
    uint64_t hash;
    uint32_t source;
};
struct pair_list {
    struct pair *items;
    size_t count, capacity;
};

static int pair_cmp(const void *x, const void *y)
{
    const struct pair *a = x, *b = y;
    if (a->hash != b->hash)
        return a->hash < b->hash ? -1 : 1;
    return a->source < b->source ? -1 : a->source > b->source;
}

static bool add_pair(arena *a, struct pair_list *list, uint64_t hash, size_t source)
{
    if (!arena_room(a, list))
        return false;
    list->items[list->count++] = (struct pair){hash, (uint32_t)source};
    return true;
}

static bool replaced(const struct abi_source *s, const struct abi_input *inputs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (str_eq(inputs[i].source.release, s->release) && str_eq(inputs[i].source.library, s->library))
            return true;
    return false;
}

static json_t *source_json(const struct abi_source *s)
{
    json_t *object = json_object();
    json_object_set_new(object, "release", json_str(s->release));
    json_object_set_new(object, "library", json_str(s->library));
    json_object_set_new(object, "needs", json_strs(&s->needs));
    json_object_set_new(object, "symbols", json_integer((json_int_t)s->symbols));
    return object;
}

/* The number of the set, added when it is new; CLASSES_MOST when there is no more room. Sets are few (under 2,000) and those of
 * neighbours differ, so a hash of the set leads to it. */
struct set_table {
    struct abi_set *items;
    size_t count;
    uint32_t *slots; /* 1 + index; 0: free */
    size_t slot_count;
};

static size_t set_number(struct set_table *t, const struct abi_set *set)
{
    size_t at = (size_t)str_hash((str){(const char *)set, sizeof *set}) % t->slot_count;
    while (t->slots[at] != 0) {
        if (memcmp(&t->items[t->slots[at] - 1], set, sizeof *set) == 0)
            return t->slots[at] - 1;
        at = (at + 1) % t->slot_count;
    }
    if (t->count == CLASSES_MOST)
        return CLASSES_MOST;
    t->items[t->count++] = *set;
    t->slots[at] = (uint32_t)t->count;
    return t->count - 1;
}

static bool collect(arena *a, const struct abi *base, const struct abi_input *inputs, size_t count,
                    json_t *sources, struct pair_list *pairs)
{
    size_t next = 0;
    for (size_t s = 0; base && s < base->source_count; s++) {
        if (replaced(&base->sources[s], inputs, count))
            continue;
        for (size_t i = 0; i < base->count; i++)
            if (abi_set_has(&base->sets[base->classes[i]], s) && !add_pair(a, pairs, base->hashes[i], next))
                return false;
        json_array_append_new(sources, source_json(&base->sources[s]));
        next++;
    }
    for (size_t s = 0; s < count; s++) {
        struct abi_source source = inputs[s].source;
        source.symbols = inputs[s].count;
        for (size_t i = 0; i < inputs[s].count; i++)
            if (!add_pair(a, pairs, inputs[s].hashes[i] >> (64 - HASH_BITS), next))
                return false;
        json_array_append_new(sources, source_json(&source));
        next++;
    }
    return next <= ABI_SOURCES_MOST;
}

static unsigned rice_parameter(size_t names)
{
    unsigned k = HASH_BITS;
    for (uint64_t n = names ? names : 1; n > 1; n >>= 1)
        k--;
    return k > 0 ? k - 1 : 0; /* half of the mean gap's power of two: the mean quotient is about 1.4 */
}

static void put_le(uint8_t *at, uint64_t value, size_t n)
{
    for (size_t i = 0; i < n; i++)
        at[i] = (uint8_t)(value >> (8 * i));
}

bool abi_write(arena *a, const struct abi *base, const struct abi_input *inputs, size_t count, span *out,
               findings *f)
{
    struct pair_list pairs = {0};
    json_t *root = json_object(), *sources = json_array();
    json_object_set_new(root, "sources", sources);
    bool good = collect(a, base, inputs, count, sources, &pairs);
    const size_t width = (json_array_size(sources) + 7) / 8;
    char *text = json_dumps(root, JSON_COMPACT);
    json_decref(root);
    struct set_table sets = {.slot_count = (size_t)4 * CLASSES_MOST};
    sets.items = arena_array(a, struct abi_set, CLASSES_MOST);
    sets.slots = arena_array(a, uint32_t, sets.slot_count);
    uint16_t *classes = arena_array(a, uint16_t, pairs.count);
    uint64_t *hashes = arena_array(a, uint64_t, pairs.count);
    size_t names = 0;
    good = good && text && sets.items && sets.slots && (pairs.count == 0 || (classes && hashes));
    if (good && pairs.count > 0)
        qsort(pairs.items, pairs.count, sizeof *pairs.items, pair_cmp);
    for (size_t i = 0; good && i < pairs.count;) {
        struct abi_set set = {{0}};
        const uint64_t hash = pairs.items[i].hash;
        for (; i < pairs.count && pairs.items[i].hash == hash; i++)
            abi_set_add(&set, pairs.items[i].source);
        const size_t number = set_number(&sets, &set);
        good = number < CLASSES_MOST;
        hashes[names] = hash;
        classes[names++] = (uint16_t)number;
    }

    const size_t plain_size = 2 + sets.count * width + names * 2, text_size = text ? strlen(text) : 0;
    const unsigned k = rice_parameter(names);
    struct bit_writer w = {.capacity = names * (k + 4) / 8 + 64};
    w.bytes = arena_array(a, uint8_t, w.capacity);
    uint8_t *plain = arena_array(a, uint8_t, plain_size);
    const size_t bound = ZSTD_compressBound(plain_size);
    uint8_t *packed = arena_array(a, uint8_t, bound);
    good = good && w.bytes && plain && packed;
    size_t packed_size = 0;
    if (good) {
        put_le(plain, sets.count, 2);
        for (size_t c = 0; c < sets.count; c++)
            for (size_t s = 0; s < width * 8; s++)
                if (abi_set_has(&sets.items[c], s))
                    plain[2 + c * width + s / 8] |= (uint8_t)(1u << (s % 8));
        for (size_t i = 0; i < names; i++)
            put_le(plain + 2 + sets.count * width + i * 2, classes[i], 2);
        packed_size = ZSTD_compress(packed, bound, plain, plain_size, 19);
        good = !ZSTD_isError(packed_size);
        uint64_t before = 0;
        for (size_t i = 0; i < names; i++) {
            gap_put(&w, k, hashes[i] - before);
            before = hashes[i];
        }
    }
    const size_t hash_size = (size_t)((w.at + 7) / 8);
    good = good && hash_size <= w.capacity; /* it is, for uniform hashes: 1.4 + 1 + k bits each */
    uint8_t *file = good ? arena_array(a, uint8_t, HEADER + text_size + packed_size + hash_size) : NULL;
    if (file) {
        memcpy(file, MAGIC, sizeof MAGIC);
        put_le(file + 8, text_size, 4);
        put_le(file + 12, packed_size, 4);
        put_le(file + 16, plain_size, 4);
        put_le(file + 20, k, 4);
        put_le(file + 24, names, 8);
        put_le(file + 32, hash_size, 8);
        /* NOLINTNEXTLINE(bugprone-not-null-terminated-result): its size is in the header */
        memcpy(file + HEADER, text, text_size);
        memcpy(file + HEADER + text_size, packed, packed_size);
        memcpy(file + HEADER + text_size + packed_size, w.bytes, hash_size);
        *out = (span){file, HEADER + text_size + packed_size + hash_size};
    }
    free(text);
    return file ? true
                : finding_add(f, F006, (str){NULL, 0},
                              "the profile would be over the limits on names and sets");
}
