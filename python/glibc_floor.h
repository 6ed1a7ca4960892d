/* Included before every source when the wheel is built on x86-64 (python/backend.py): binds to the first version that glibc ever gave these
 * functions, so that the wheel also loads on distributions older than the one that builds it. All behave as their later versions do here:
 * dlopen to pthread_once only moved into libc.so.6 in 2.34 (backend.py therefore names the two libraries they moved from), the float functions
 * only lost matherr() in 2.27, and fstat was an inline call of __fxstat before 2.33. */
#ifndef GLIBC_FLOOR_H
#define GLIBC_FLOOR_H

#include <sys/stat.h>

#define FIRST_VERSION(name) __asm__(".symver " #name "," #name "@GLIBC_2.2.5")
FIRST_VERSION(dlopen);
FIRST_VERSION(dlsym);
FIRST_VERSION(dlclose);
FIRST_VERSION(dlerror);
FIRST_VERSION(pthread_create);
FIRST_VERSION(pthread_join);
FIRST_VERSION(pthread_once);
FIRST_VERSION(expf);
FIRST_VERSION(logf);
FIRST_VERSION(log2f);
FIRST_VERSION(powf);
FIRST_VERSION(__fxstat);
#undef FIRST_VERSION

extern int __fxstat(int version, int fd, struct stat *info);

static inline int first_fstat(int fd, struct stat *info)
{
    return __fxstat(1 /* struct stat of x86-64, the only one */, fd, info);
}
#define fstat first_fstat

#endif
