/* The growing array that the grammar's scanner is written against. Later tree-sitter releases install a header of this name;
 * Debian's does not, and the grammar's sdist leaves it out. Only what the scanner uses. */
#ifndef FELLOE_GRAMMAR_ARRAY_H
#define FELLOE_GRAMMAR_ARRAY_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define Array(T)                                                                                             \
    struct {                                                                                                 \
        T *contents;                                                                                         \
        uint32_t size, capacity;                                                                             \
    }

/* realloc, or the end of the process: the scanner has no way to report a failure. */
static inline void *array_storage(void *old, size_t count, size_t size)
{
    void *grown = realloc(old, count * size);
    if (!grown) {
        (void)fprintf(stderr, "felloe: out of memory: the system refused %zu bytes\n", count * size);
        exit(3);
    }
    return grown;
}

#define array_init(array) ((array)->contents = NULL, (array)->size = 0, (array)->capacity = 0)
#define array_get(array, index) (&(array)->contents[index])
#define array_back(array) array_get(array, (array)->size - 1)
#define array_clear(array) ((array)->size = 0)
#define array_pop(array) ((array)->contents[--(array)->size])
#define array_reserve(array, count)                                                                          \
    ((count) > (array)->capacity                                                                             \
         ? (void)((array)->contents = array_storage((array)->contents, (count), sizeof *(array)->contents),  \
                  (array)->capacity = (count))                                                               \
         : (void)0)
#define array_push(array, item)                                                                              \
    (array_reserve(array, (array)->size < (array)->capacity ? 0 : 2 * (array)->capacity + 8),                \
     (void)((array)->contents[(array)->size++] = (item)))
#define array_delete(array) (free((array)->contents), array_init(array))

#endif
