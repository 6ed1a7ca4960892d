/* File names of wheels from URLs, paths and requirement lines. A name is refused exactly with a reason; the file name and
 * what was read from it can be put together again and read as the same; all texts can be read to their end (the sanitizer
 * watches); a wheel's rank is that of one of its own tags. */
#include <stdio.h>
#include <stdlib.h>

#include "wheel/wheel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds, const char *claim)
{
    if (holds)
        return;
    (void)fprintf(stderr, "does not hold: %s\n", claim);
    abort();
}

static uint64_t touch(str s) { return str_hash(s); }

static void add_field(struct buf *b, str field)
{
    if (b->count > 0)
        buf_char(b, '-');
    buf_add(b, field);
}

/* Installers allow any byte in a tag, so a file name by itself can look like a URL or a requirement line ("a@b"). */
static bool is_plain(str file)
{
    for (size_t i = 0; i < file.n; i++)
        if (file.p[i] <= ' ' || strchr("%@#?;:/\\", file.p[i]))
            return false;
    return true;
}

/* The same name from its parts. */
static str put_together(arena *a, const struct wheel_name *name)
{
    struct buf b = {.a = a};
    add_field(&b, name->distribution);
    add_field(&b, name->version_text);
    if (name->local.p)
        buf_format(&b, "+%.*s", STR_ARG(name->local));
    if (name->build_tag.p)
        add_field(&b, name->build_tag);
    add_field(&b, str_join(a, &name->tags.python, S(".")));
    add_field(&b, str_join(a, &name->tags.abi, S(".")));
    add_field(&b, str_join(a, &name->tags.platform, S(".")));
    if (name->variant.p)
        add_field(&b, name->variant);
    buf_add(&b, S(".whl"));
    return buf_str(&b);
}

static void check_build(const struct wheel_build *b)
{
    const str texts[] = {b->cuda, b->torch, b->torch_other, b->cuda_in_name, b->rocm, b->accelerator};
    uint64_t sum = 0;
    for (size_t i = 0; i < COUNT(texts); i++) {
        sum ^= touch(texts[i]);
        check(!texts[i].p || texts[i].n > 0, "what a name says is not empty");
    }
    check(sum != 1 || !b->torch_is_minimum || b->torch.p, "a minimum needs a version");
    check(!b->torch_other.p || b->torch.p, "a second reading needs a first");
    check(b->cxx11abi >= -1 && b->cxx11abi <= 1, "the ABI is yes, no or silent");
}

static void check_tags(arena *a, const struct wheel_name *name)
{
    static const struct tag_env ENV = {
        .minor = 12, .machine = S_INIT("x86_64"), .glibc_major = 2, .glibc_minor = 36};
    struct tag_list list;
    check(tags_supported(a, &ENV, &list), "the target's tags fit the memory limit");
    const size_t rank = tags_rank(&list, &name->tags);
    check(rank == SIZE_MAX || rank < list.count, "a rank is a place in the list");
    if (rank == SIZE_MAX)
        check(tags_mismatch(a, &ENV, &name->tags).n > 0, "a mismatch has words");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    arena *a = arena_new(64 << 20);
    struct wheel_name name, again;
    str why = {NULL, 0};
    const str text = str_from_span((span){data, size});
    if (wheel_name_parse(a, text, &name, &why)) {
        check(!why.p, "what is accepted has no reason to be refused");
        check(str_eq(put_together(a, &name), name.file), "the parts make up the file name");
        if (is_plain(name.file)) {
            check(wheel_name_parse(a, name.file, &again, &why), "the file name alone reads as well");
            check(str_eq(again.file, name.file) && str_eq(again.local, name.local), "and says the same");
        }
        check(name_same(name.distribution, name.name), "the normal name is the same name");
        check(str_eq(name.name, name_normalize(a, name.name)), "the normal name is its own normal form");
        check_build(&name.build);
        check_tags(a, &name);
    } else {
        check(why.n > 0, "a refusal has a reason");
        check(touch(name.file) != 1 && !name.distribution.p, "only the file is known of what was refused");
    }
    arena_free(a);
    return 0;
}
