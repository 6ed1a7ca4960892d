/* Memory of one command. Blocks double in size up to 1 MiB; a piece larger than a quarter of a block gets its own. */
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>

enum { BLOCK_FIRST = 16 << 10, BLOCK_MOST = 1 << 20 };

struct block {
    alignas(max_align_t) struct block *next; /* so that what follows the header is aligned for any type */
    size_t size, used;                       /* of the bytes that follow */
};

struct arena {
    struct block *blocks; /* the first one is being filled */
    size_t limit, used, next_size;
    struct arena *children, *next; /* adopted ones, and the next of its parent's */
};

static _Noreturn void out_of_memory(size_t bytes)
{
    (void)fprintf(stderr, "felloe: out of memory: the system refused %zu bytes\n", bytes);
    exit(3); /* as for input that could not be read: CONTRACT's code 3 */
}

arena *arena_new(size_t limit)
{
    arena *a = calloc(1, sizeof *a);
    if (!a)
        out_of_memory(sizeof *a);
    a->limit = limit ? limit : (size_t)4 << 30;
    a->next_size = BLOCK_FIRST;
    return a;
}

void arena_free(arena *a)
{
    arena *pending = a; /* linked by `next`; an adopted arena's children join the list */
    while (pending) {
        arena *one = pending;
        pending = one == a ? NULL : one->next;
        for (arena *child = one->children; child;) {
            arena *sibling = child->next;
            child->next = pending;
            pending = child;
            child = sibling;
        }
        for (struct block *block = one->blocks; block;) {
            struct block *next = block->next;
            free(block);
            block = next;
        }
        free(one);
    }
}

size_t arena_used(const arena *a) { return a->used; }

void arena_adopt(arena *a, arena *child)
{
    child->next = a->children;
    a->children = child;
}

static struct block *block_new(size_t size)
{
    struct block *block = calloc(1, sizeof *block + size);
    if (!block)
        out_of_memory(size);
    block->size = size;
    return block;
}

/* A piece in a block of its own, kept behind the block that is being filled. */
static void *piece_alone(arena *a, size_t bytes)
{
    struct block *block = block_new(bytes);
    block->used = bytes;
    if (a->blocks) {
        block->next = a->blocks->next;
        a->blocks->next = block;
    } else {
        a->blocks = block;
    }
    return block + 1;
}

void *arena_alloc(arena *a, size_t count, size_t size, size_t align)
{
    if (size != 0 && count > SIZE_MAX / 2 / size)
        return NULL;
    const size_t product = count * size;
    const size_t bytes = product > 0 ? product : 1; /* a distinct, non-NULL address also for nothing */
    if (bytes > a->limit - a->used)
        return NULL;
    a->used += bytes;
#ifdef FELLOE_SANITIZED
    (void)align;
    return piece_alone(a, bytes);
#else
    struct block *block = a->blocks;
    if (block) {
        const size_t at = (block->used + align - 1) & ~(align - 1);
        if (at <= block->size && bytes <= block->size - at) {
            block->used = at + bytes;
            return (char *)(block + 1) + at;
        }
    }
    if (bytes > a->next_size / 4)
        return piece_alone(a, bytes);
    block = block_new(a->next_size);
    block->next = a->blocks;
    block->used = bytes;
    a->blocks = block;
    if (a->next_size < BLOCK_MOST)
        a->next_size *= 2;
    return block + 1;
#endif
}

bool arena_room_for(arena *a, void *items, size_t count, size_t *capacity, size_t size, size_t more)
{
    if (more <= *capacity - count)
        return true;
    if (more > SIZE_MAX / 4 - count)
        return false;
    size_t wanted = *capacity ? *capacity * 2 : 8;
    if (wanted < count + more)
        wanted = count + more;
    void *grown = arena_alloc(a, wanted, size, alignof(max_align_t));
    if (!grown)
        return false;
    void *old = NULL;
    memcpy(&old, items,
           sizeof old); /* items is the address of a typed pointer: copied as bytes, not read as void* */
    if (count > 0)
        memcpy(grown, old, count * size);
    memcpy(items, &grown, sizeof grown);
    *capacity = wanted;
    return true;
}
