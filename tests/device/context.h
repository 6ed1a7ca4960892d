/* tests/device/context.h: one CPU context for a test program, with three threads whatever the machine has, so that loops are shared. */
#ifndef TEST_CONTEXT_H
#define TEST_CONTEXT_H

#include <stdio.h>
#include <stdlib.h>

#include <felloe/felloe.h>

static fel_context *test_context_made;

static inline void test_context_free(void) { fel_context_free(test_context_made); }

static inline fel_context *test_context(void)
{
    fel_context_options options = FEL_CONTEXT_OPTIONS_INIT;
    options.threads = 3;
    if (!test_context_made) {
        if (fel_context_create(&options, &test_context_made) != FEL_OK) {
            (void)fprintf(stderr, "%s\n", fel_last_error());
            abort();
        }
        (void)atexit(test_context_free);
    }
    return test_context_made;
}

#endif
