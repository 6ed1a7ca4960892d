/* Which GPU code runs on which GPU: the rules of NVIDIA's driver, as the CUDA C++ programming guide has them under binary and
 * PTX compatibility. */
#include "elf/elf.h"

bool arch_parse(str text, struct arch *out)
{
    uint64_t number;
    str head, tail;
    char suffix = '\0';
    if (str_cut(text, '_', &head, &tail))
        text = tail;
    if (text.n > 0 && (text.p[text.n - 1] == 'a' || text.p[text.n - 1] == 'f')) {
        suffix = text.p[text.n - 1];
        text.n--;
    }
    if (!str_to_u64(text, &number) || number < 10 || number > 9999)
        return false;
    *out = (struct arch){(unsigned)number, suffix};
    return true;
}

/* Boards with an integrated GPU take no code of desktop ones of their generation, nor the other way round. */
static bool is_tegra(unsigned arch)
{
    return arch == 53 || arch == 62 || arch == 72 || arch == 87 || arch == 88 || arch == 101 || arch == 110;
}

/* The PTX version that came with each CUDA release: the driver of that release reads it and older ones. From CUDA 11.0
 * (7.0) each minor release raised the PTX version by 0.1; 12.0 has 8.0 and 13.0 has 9.0. 12.7 had no release: 12.8 has 8.7. */
static bool driver_reads_ptx(const struct fatbin_entry *e, unsigned major, unsigned minor)
{
    if (major == 0)
        return true;
    if (major < 11)
        return e->isa_major < 7;
    const unsigned isa_major = major - 4;
    const unsigned isa_minor = major == 12 && minor >= 8 ? minor - 1 : minor;
    return e->isa_major < isa_major || (e->isa_major == isa_major && e->isa_minor <= isa_minor);
}

enum arch_verdict arch_entry_runs(const struct fatbin_entry *e, unsigned device, unsigned driver_major,
                                  unsigned driver_minor)
{
    if (e->stub)
        return ARCH_NO;
    const bool same_family = e->arch / 10 == device / 10 && e->arch <= device;
    if (e->kind == FATBIN_CUBIN) {
        if (e->suffix == 'a')
            return e->arch == device ? ARCH_YES : ARCH_NO;
        return same_family && (is_tegra(e->arch) == is_tegra(device)) ? ARCH_YES : ARCH_NO;
    }
    if (e->kind != FATBIN_PTX || !driver_reads_ptx(e, driver_major, driver_minor))
        return ARCH_NO;
    if (e->suffix == 'a')
        return e->arch == device ? ARCH_BY_PTX : ARCH_NO;
    if (e->suffix == 'f')
        return same_family ? ARCH_BY_PTX : ARCH_NO;
    return e->arch <= device ? ARCH_BY_PTX : ARCH_NO;
}

enum arch_verdict arch_container_runs(const struct fatbin_container *c, unsigned device,
                                      unsigned driver_major, unsigned driver_minor)
{
    enum arch_verdict best = fatbin_has_code(c) ? ARCH_NO : ARCH_YES;
    for (size_t i = 0; i < c->count; i++) {
        const enum arch_verdict one = arch_entry_runs(&c->entries[i], device, driver_major, driver_minor);
        best = one > best ? one : best;
    }
    return best;
}
