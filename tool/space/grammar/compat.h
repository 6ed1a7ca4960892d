/* Included before the grammar's parser.c: what parsers made by tree-sitter 0.24 expect of tree_sitter/parser.h and Debian's
 * 0.20 does not have. The language ABI (14) is the same; these are only ways to write the lexer. */
#ifndef FELLOE_GRAMMAR_COMPAT_H
#define FELLOE_GRAMMAR_COMPAT_H

#include <tree_sitter/parser.h>

typedef struct {
    int32_t start, end;
} TSCharacterRange;

static inline bool set_contains(const TSCharacterRange *ranges, uint32_t count, int32_t character)
{
    uint32_t first = 0, last = count; /* ranges are sorted and apart */
    while (first < last) {
        const uint32_t middle = first + (last - first) / 2;
        if (character < ranges[middle].start)
            last = middle;
        else if (character > ranges[middle].end)
            first = middle + 1;
        else
            return true;
    }
    return false;
}

#define ADVANCE_MAP(...)                                                                                     \
    {                                                                                                        \
        static const uint16_t map[] = {__VA_ARGS__};                                                         \
        for (uint32_t pair = 0; pair < sizeof map / sizeof *map; pair += 2)                                  \
            if (map[pair] == lookahead) {                                                                    \
                state = map[pair + 1];                                                                       \
                goto next_state;                                                                             \
            }                                                                                                \
    }

/* The generator writes (symbol, child count, dynamic precedence, production); 0.20's macro would put the last two into the wrong
 * fields without a warning. */
#undef REDUCE
#define REDUCE(symbol_value, child_count_value, precedence_value, production_value)                          \
    {                                                                                                        \
        {                                                                                                    \
            .reduce = {                                                                                      \
                .type = TSParseActionTypeReduce,                                                             \
                .symbol = (symbol_value),                                                                    \
                .child_count = (child_count_value),                                                          \
                .dynamic_precedence = (precedence_value),                                                    \
                .production_id = (production_value),                                                         \
            }                                                                                                \
        }                                                                                                    \
    }

#endif
