/* C++ names for people, by libiberty. Demanglers are a known weak spot: the input is bounded, and so is its recursion. */
#include "check/check.h"

#include <stdlib.h>

#include <libiberty/demangle.h>

enum { NAME_MOST = 1024, TEXT_MOST = 4096 };

str check_demangle(arena *a, str name)
{
    if (!str_starts(name, S("_Z")) || name.n > NAME_MOST)
        return name;
    char *text =
        cplus_demangle_v3(str_c(a, name), DMGL_PARAMS | DMGL_ANSI); /* without DMGL_NO_RECURSE_LIMIT */
    str result = name;
    if (text && strlen(text) <= TEXT_MOST)
        result = str_utf8(a, str_copy(a, str_from(text)));
    free(text);
    return result;
}
