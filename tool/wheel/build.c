/* What a wheel's name alone says about its build: CUDA, torch, C++ ABI, from the local part of the version and from the
 * distribution's name. The words and the publishers' habits are data/dialects.yaml, read once per process. */
#include "wheel/reader.h"

#include <pthread.h>

enum reading { READING_UNKNOWN, READING_MINOR, READING_PATCH };

struct publisher {
    enum reading digits;
    struct strs distributions, addresses;
};
struct torch_series {
    str minor; /* "2.10" */
    uint64_t last_patch;
};
struct dialects {
    struct strs cuda, torch, abi, new_abi, rocm, accelerators, minimum, cuda_majors;
    struct publisher *publishers;
    size_t publisher_count;
    struct torch_series *series;
    size_t series_count;
};

/* ---- The data ---- */

static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;
static const struct dialects *loaded; /* for the life of the process, as the data it was made from */
static findings *load_findings;

static bool read_publishers(arena *a, const struct yaml *list, struct dialects *out)
{
    const size_t count = list && list->kind == YAML_LIST ? list->count : 0;
    out->publishers = arena_array(a, struct publisher, count);
    for (size_t i = 0; out->publishers && i < count; i++) {
        const struct yaml *item = &list->items[i];
        const str digits = yaml_str(item, "digits");
        out->publishers[i] = (struct publisher){.digits = str_eq(digits, S("minor"))   ? READING_MINOR
                                                          : str_eq(digits, S("patch")) ? READING_PATCH
                                                                                       : READING_UNKNOWN,
                                                .distributions = yaml_strs(a, item, "distributions"),
                                                .addresses = yaml_strs(a, item, "addresses")};
    }
    out->publisher_count = count;
    return out->publishers != NULL;
}

static bool read_series(arena *a, const struct yaml *map, struct dialects *out)
{
    const size_t count = map && map->kind == YAML_MAP ? map->count : 0;
    out->series = arena_array(a, struct torch_series, count);
    for (size_t i = 0; out->series && i < count; i++) {
        out->series[i].minor = map->keys[i].text;
        if (!str_to_u64(map->items[i].text, &out->series[i].last_patch))
            return false;
    }
    out->series_count = count;
    return out->series != NULL;
}

static const struct dialects *read_dialects(arena *a, findings *f)
{
    struct yaml root;
    str path;
    struct dialects *d = arena_array(a, struct dialects, 1);
    if (!d || !data_yaml(a, "dialects.yaml", &root, &path, f))
        return NULL;
    const struct yaml *words = yaml_get(&root, "words");
    d->cuda = yaml_strs(a, words, "cuda");
    d->torch = yaml_strs(a, words, "torch");
    d->abi = yaml_strs(a, words, "abi");
    d->new_abi = yaml_strs(a, words, "new_abi");
    d->rocm = yaml_strs(a, words, "rocm");
    d->accelerators = yaml_strs(a, words, "accelerators");
    d->minimum = yaml_strs(a, words, "minimum");
    d->cuda_majors = yaml_strs(a, &root, "cuda_majors");
    if (d->cuda.count == 0 || d->torch.count == 0 || !read_publishers(a, yaml_get(&root, "publishers"), d) ||
        !read_series(a, yaml_get(&root, "torch_releases"), d)) {
        (void)finding_fatal(f, 3, F005, (struct place){.file = path},
                            "expected words, publishers and torch_releases as in the file compiled in");
        return NULL;
    }
    return d;
}

static const struct dialects *dialects(void)
{
    (void)pthread_mutex_lock(&loading);
    if (!load_findings) {
        arena *a = arena_new(16 << 20);
        load_findings = findings_new(a);
        loaded = read_dialects(a, load_findings);
    }
    (void)pthread_mutex_unlock(&loading);
    return loaded;
}

bool wheel_dialects_load(findings *f)
{
    if (dialects())
        return true;
    for (size_t i = 0; i < load_findings->count; i++) {
        const struct finding *found = &load_findings->items[i];
        (void)finding_fatal(f, load_findings->exit_code, found->code, found->place, "%.*s",
                            STR_ARG(found->what));
    }
    return false;
}

/* ---- Reading ---- */

struct scan {
    arena *a;
    const struct dialects *d;
    struct reader r;
    enum reading digits; /* of this publisher */
    struct wheel_build *out;
};

static bool take_one_of(struct reader *r, const struct strs *words)
{
    for (size_t i = 0; i < words->count; i++)
        if (reader_take_word(r, words->items[i]))
            return true;
    return false;
}

static bool is_hex_letter(char c) { return to_lower(c) >= 'a' && to_lower(c) <= 'f'; }

static bool word_starts(const struct scan *s, size_t at)
{
    const struct dialects *d = s->d;
    struct reader r = {s->r.text, at};
    return take_one_of(&r, &d->cuda) || take_one_of(&r, &d->torch) || take_one_of(&r, &d->abi) ||
           take_one_of(&r, &d->new_abi) || take_one_of(&r, &d->rocm) || take_one_of(&r, &d->accelerators) ||
           take_one_of(&r, &d->minimum);
}

/* ".N" of a dotted number: one or two digits that do not go on as a commit hash does ("cu12.8afc61"). */
static bool take_part(const struct scan *s, struct reader *r, str *part)
{
    struct reader ahead = *r;
    if (!reader_take(&ahead, '.'))
        return false;
    *part = reader_take_digits(&ahead);
    if (part->n == 0 || part->n > 2 || (is_hex_letter(reader_peek(&ahead)) && !word_starts(s, ahead.at)))
        return false;
    *r = ahead;
    return true;
}

/* 12 -> "12", 128 -> "12.8", 92 -> "9.2", 13 and ".1" -> "13.1"; a patch number is left out. */
static str cuda_from_digits(arena *a, const struct dialects *d, str digits)
{
    if (digits.n == 0 || digits.n > 4 || digits.p[0] == '0')
        return (str){NULL, 0};
    if (digits.n == 1 || (digits.n == 2 && strs_has(&d->cuda_majors, digits)))
        return digits;
    const str major = str_slice(digits, 0, digits.n == 2 ? 1 : 2);
    return str_format(a, "%.*s.%c", STR_ARG(major), digits.p[major.n]);
}

static void read_cuda(struct scan *s)
{
    const str digits = reader_take_digits(&s->r);
    str minor;
    if (s->out->cuda.p)
        return;
    if (digits.n > 0 && digits.n <= 2 && take_part(s, &s->r, &minor))
        s->out->cuda = str_format(s->a, "%.*s.%.*s", STR_ARG(digits), STR_ARG(minor));
    else
        s->out->cuda = cuda_from_digits(s->a, s->d, digits);
}

/* Whether torch X.Y (patch absent) or X.Y.Z was ever released. */
static bool torch_exists(const struct dialects *d, str minor, str patch)
{
    uint64_t number = 0;
    for (size_t i = 0; i < d->series_count; i++)
        if (str_eq(d->series[i].minor, minor))
            return !patch.p || (str_to_u64(patch, &number) && number <= d->series[i].last_patch);
    return false;
}

/* Digits without dots. "211" is 2.11 to some publishers and 2.1.1 to others; "2100" can only be 2.10.0. */
static void read_torch_digits(struct scan *s, str digits, bool short_word)
{
    const str major = str_slice(digits, 0, 1), rest = str_from_index(digits, 1);
    const str last = str_from_index(digits, digits.n - 1), middle = str_slice(rest, 0, rest.n - 1);
    str minor_reading = {NULL, 0}, patch_reading = {NULL, 0};
    bool minor_exists = false, patch_exists = false;
    if (rest.n == 1 || (rest.n == 2 && rest.p[0] != '0')) {
        minor_reading = str_format(s->a, "%.*s.%.*s", STR_ARG(major), STR_ARG(rest));
        minor_exists = torch_exists(s->d, minor_reading, (str){NULL, 0});
    }
    if (middle.n == 1 || (middle.n == 2 && middle.p[0] != '0')) {
        const str series = str_format(s->a, "%.*s.%.*s", STR_ARG(major), STR_ARG(middle));
        patch_reading = str_format(s->a, "%.*s.%.*s", STR_ARG(series), STR_ARG(last));
        patch_exists = torch_exists(s->d, series, last);
    }
    const bool minor_first = s->digits == READING_MINOR || (s->digits == READING_UNKNOWN && short_word);
    const str first = minor_first ? minor_reading : patch_reading;
    const str second = minor_first ? patch_reading : minor_reading;
    if (s->digits == READING_UNKNOWN && minor_exists != patch_exists) {
        s->out->torch = minor_exists ? minor_reading : patch_reading;
        return;
    }
    s->out->torch = first.p ? first : second;
    if (s->digits == READING_UNKNOWN && first.p) /* both exist, or neither is known yet */
        s->out->torch_other = second;
}

static void read_torch(struct scan *s, bool short_word)
{
    const str digits = reader_take_digits(&s->r);
    struct reader ahead = s->r;
    str minor, patch;
    if (s->out->torch.p || digits.n > 4)
        return;
    if (digits.n > 1) {
        read_torch_digits(s, digits, short_word);
    } else if (reader_take(&ahead, '.') && (minor = reader_take_digits(&ahead)).n > 0 && minor.n <= 2) {
        s->r = ahead;
        s->out->torch =
            take_part(s, &s->r, &patch)
                ? str_format(s->a, "%.*s.%.*s.%.*s", STR_ARG(digits), STR_ARG(minor), STR_ARG(patch))
                : str_format(s->a, "%.*s.%.*s", STR_ARG(digits), STR_ARG(minor));
    } else {
        s->out->torch = digits;
    }
    ahead = s->r;
    if (reader_peek(&ahead) == '.' || reader_peek(&ahead) == '_' || reader_peek(&ahead) == '-')
        ahead.at++;
    s->out->torch_is_minimum = take_one_of(&ahead, &s->d->minimum);
}

static void read_abi(struct scan *s)
{
    const str rest = str_from_index(s->r.text, s->r.at);
    if (str_eq_nocase(str_slice(rest, 0, 4), S("true")) || str_starts(rest, S("1")))
        s->out->cxx11abi = 1;
    else if (str_eq_nocase(str_slice(rest, 0, 5), S("false")) || str_starts(rest, S("0")))
        s->out->cxx11abi = 0;
}

/* rocm6.2.4 -> "6.2.4", rocm62 -> "6.2" */
static void read_rocm(struct scan *s)
{
    const str digits = reader_take_digits(&s->r);
    str minor, patch;
    if (s->out->rocm.p)
        return;
    if (digits.n == 2 || digits.n == 3) {
        s->out->rocm = str_format(s->a, digits.n == 2 ? "%c.%c" : "%c.%c.%c", digits.p[0], digits.p[1],
                                  digits.p[digits.n - 1]);
        return;
    }
    if (!take_part(s, &s->r, &minor))
        s->out->rocm = digits;
    else if (!take_part(s, &s->r, &patch))
        s->out->rocm = str_format(s->a, "%.*s.%.*s", STR_ARG(digits), STR_ARG(minor));
    else
        s->out->rocm = str_format(s->a, "%.*s.%.*s.%.*s", STR_ARG(digits), STR_ARG(minor), STR_ARG(patch));
}

/* Takes a word that a number must follow directly. */
static bool take_numbered(struct reader *r, const struct strs *words)
{
    struct reader ahead = *r;
    if (!take_one_of(&ahead, words) || !is_digit(reader_peek(&ahead)))
        return false;
    *r = ahead;
    return true;
}

static void read_local(struct scan *s)
{
    struct reader *r = &s->r;
    while (!reader_done(r)) {
        const size_t start = r->at;
        const char before = reader_before(r);
        if (is_letter(before) && !is_hex_letter(before)) { /* inside another word; a hash has only a to f */
            r->at++;
            continue;
        }
        if (take_numbered(r, &s->d->torch)) {
            read_torch(s, r->at - start <= 3); /* pt, pyt */
        } else if (take_numbered(r, &s->d->cuda)) {
            read_cuda(s);
        } else if (take_numbered(r, &s->d->rocm)) {
            read_rocm(s);
        } else if (take_one_of(r, &s->d->abi)) {
            read_abi(s);
        } else if (take_one_of(r, &s->d->new_abi)) {
            s->out->cxx11abi = 1;
        } else if (!is_letter(before) && take_one_of(r, &s->d->accelerators) && !is_letter(reader_peek(r))) {
            if (!s->out->accelerator.p)
                s->out->accelerator = str_lower(s->a, str_slice(r->text, start, r->at));
        }
        r->at = r->at > start ? r->at : start + 1;
    }
}

/* "spconv-cu120" -> 12.0, "cupy-cuda12x" -> 12, "nvidia-cuda-runtime-cu12" -> 12 */
static str cuda_in_name(arena *a, const struct dialects *d, str name)
{
    str part, rest = name;
    while (rest.p) {
        (void)str_cut(rest, '-', &part, &rest);
        struct reader r = {part, 0};
        if (!take_numbered(&r, &d->cuda))
            continue;
        const str digits = reader_take_digits(&r);
        (void)reader_take(&r, 'x');
        if (reader_done(&r))
            return cuda_from_digits(a, d, digits);
    }
    return (str){NULL, 0};
}

static enum reading publisher_reading(const struct dialects *d, str name, str address)
{
    for (size_t i = 0; i < d->publisher_count; i++)
        if (strs_has(&d->publishers[i].distributions, name))
            return d->publishers[i].digits;
    for (size_t i = 0; i < d->publisher_count; i++)
        for (size_t k = 0; k < d->publishers[i].addresses.count; k++)
            if (str_contains(address, d->publishers[i].addresses.items[k]))
                return d->publishers[i].digits;
    return READING_UNKNOWN;
}

void wheel_build_read(arena *a, str distribution, str local, str address, struct wheel_build *out)
{
    const struct dialects *d = dialects();
    const str name = name_normalize(a, distribution);
    *out = (struct wheel_build){.cxx11abi = -1, .is_torch = str_eq(name, S("torch"))};
    if (!d)
        return;
    struct scan s = {
        .a = a, .d = d, .r = {local, 0}, .digits = publisher_reading(d, name, address), .out = out};
    out->cuda_in_name = cuda_in_name(a, d, name);
    read_local(&s);
}
