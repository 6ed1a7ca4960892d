/* asset/memory.c: the memory of one asset, with a limit; growing lists; welding of equal vertices. */
#include "asset/asset.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

struct memory_block {
    struct memory_block *previous, *next;
    size_t size;
    alignas(max_align_t) unsigned char bytes[];
};

void *memory_array(struct memory *m, size_t count, size_t size)
{
    if (size && count > (SIZE_MAX / 2) / size) {
        (void)status_fail(FEL_OUT_OF_MEMORY, "%zu items of %zu bytes are more than can be addressed", count,
                          size);
        return NULL;
    }
    const size_t bytes = count * size;
    if (bytes > m->limit - m->used) {
        (void)status_fail(FEL_OUT_OF_MEMORY, "%zu bytes more are over the limit of %zu (memory_limit)", bytes,
                          m->limit);
        return NULL;
    }
    struct memory_block *block = calloc(1, sizeof *block + bytes);
    if (!block) {
        (void)status_fail(FEL_OUT_OF_MEMORY, "%zu bytes could not be allocated", bytes);
        return NULL;
    }
    block->size = bytes;
    block->next = m->blocks;
    if (m->blocks)
        m->blocks->previous = block;
    m->blocks = block;
    m->used += bytes;
    return block->bytes;
}

static void memory_release(struct memory *m, void *items)
{
    if (!items)
        return;
    struct memory_block *block = (void *)((unsigned char *)items - offsetof(struct memory_block, bytes));
    if (block->previous)
        block->previous->next = block->next;
    else
        m->blocks = block->next;
    if (block->next)
        block->next->previous = block->previous;
    m->used -= block->size;
    free(block);
}

char *memory_text(struct memory *m, const char *text, size_t size)
{
    char *copy = memory_array(m, size + 1, 1);
    if (copy && size)
        memcpy(copy, text, size);
    return copy;
}

void memory_free(struct memory *m)
{
    for (struct memory_block *block = m->blocks; block;) {
        struct memory_block *next = block->next;
        free(block);
        block = next;
    }
    *m = (struct memory){.limit = m->limit};
}

static bool list_resize(struct list *l, size_t room)
{
    void *items = memory_array(l->memory, room, l->item_size);
    if (!items)
        return false;
    if (l->count)
        memcpy(items, l->items, l->count * l->item_size);
    memory_release(l->memory, l->items);
    l->items = items;
    l->room = room;
    return true;
}

void *list_add(struct list *l)
{
    if (l->count == l->room && !list_resize(l, l->room ? l->room * 2 : 64))
        return NULL;
    return (unsigned char *)l->items + l->count++ * l->item_size;
}

void *list_take(struct list *l)
{
    if (l->count != l->room && !list_resize(l, l->count))
        return NULL;
    void *items = l->items ? l->items : memory_array(l->memory, 0, 1);
    *l = (struct list){.item_size = l->item_size, .memory = l->memory};
    return items;
}

void list_free(struct list *l)
{
    memory_release(l->memory, l->items);
    *l = (struct list){.item_size = l->item_size, .memory = l->memory};
}

bool welder_open(struct welder *w, struct memory *m, size_t words)
{
    *w = (struct welder){.slot_count = 1024, .words = words, .keys = {.item_size = words * 4, .memory = m}};
    w->slots = memory_array(m, w->slot_count, sizeof *w->slots);
    return w->slots != NULL;
}

void welder_close(struct welder *w)
{
    memory_release(w->keys.memory, w->slots);
    list_free(&w->keys);
    w->slots = NULL;
}

static size_t welder_hash(const struct welder *w, const uint32_t *key)
{
    uint64_t hash = 0x9E3779B97F4A7C15u;
    for (size_t i = 0; i < w->words; i++) {
        hash = (hash ^ key[i]) * 0xD6E8FEB86659FD93u;
        hash ^= hash >> 32;
    }
    return (size_t)hash;
}

static const uint32_t *welder_key(const struct welder *w, uint32_t index)
{
    return (const uint32_t *)w->keys.items + (size_t)index * w->words;
}

static bool welder_grow(struct welder *w)
{
    const size_t count = w->slot_count * 2;
    uint32_t *slots = memory_array(w->keys.memory, count, sizeof *slots);
    if (!slots)
        return false;
    for (uint32_t i = 0; i < (uint32_t)w->keys.count; i++) {
        size_t at = welder_hash(w, welder_key(w, i)) & (count - 1);
        while (slots[at])
            at = (at + 1) & (count - 1);
        slots[at] = i + 1;
    }
    memory_release(w->keys.memory, w->slots);
    w->slots = slots;
    w->slot_count = count;
    return true;
}

bool welder_add(struct welder *w, const uint32_t *key, uint32_t *index)
{
    if (w->keys.count * 2 >= w->slot_count && !welder_grow(w))
        return false;
    size_t at = welder_hash(w, key) & (w->slot_count - 1);
    while (w->slots[at]) {
        if (memcmp(welder_key(w, w->slots[at] - 1), key, w->words * 4) == 0) {
            *index = w->slots[at] - 1;
            return true;
        }
        at = (at + 1) & (w->slot_count - 1);
    }
    if (w->keys.count >= INT32_MAX)
        return status_fail(FEL_OUT_OF_MEMORY, "more than 2^31 - 1 vertices"), false;
    uint32_t *copy = list_add(&w->keys);
    if (!copy)
        return false;
    memcpy(copy, key, w->words * 4);
    *index = (uint32_t)w->keys.count - 1;
    w->slots[at] = *index + 1;
    return true;
}
