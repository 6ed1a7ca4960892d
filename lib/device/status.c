/* Messages: one line a thread, and the log. */
#include "device/internal.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char message[1024];
static void (*log_function)(void *user, int level, const char *text);
static void *log_user;

const char *fel_last_error(void) { return message; }

fel_status status_fail(fel_status code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return code;
}

const char *fel_status_name(fel_status status)
{
    switch (status) {
    case FEL_OK:
        return "FEL_OK";
    case FEL_INVALID_ARGUMENT:
        return "FEL_INVALID_ARGUMENT";
    case FEL_INVALID_SHAPE:
        return "FEL_INVALID_SHAPE";
    case FEL_INVALID_DTYPE:
        return "FEL_INVALID_DTYPE";
    case FEL_WRONG_DEVICE:
        return "FEL_WRONG_DEVICE";
    case FEL_OUT_OF_MEMORY:
        return "FEL_OUT_OF_MEMORY";
    case FEL_OVERFLOW:
        return "FEL_OVERFLOW";
    case FEL_CUDA:
        return "FEL_CUDA";
    case FEL_NO_CUDA:
        return "FEL_NO_CUDA";
    case FEL_IO:
        return "FEL_IO";
    case FEL_MALFORMED:
        return "FEL_MALFORMED";
    }
    return "an unknown status";
}

#define TEXT_OF(x) #x
#define VERSION_TEXT(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

const char *fel_version(void)
{
    return VERSION_TEXT(FEL_VERSION_MAJOR, FEL_VERSION_MINOR, FEL_VERSION_PATCH);
}

void fel_set_log(void (*log)(void *user, int level, const char *text), void *user)
{
    log_function = log;
    log_user = user;
}

void log_line(int level, const char *format, ...)
{
    char text[1024];
    va_list args;
    if (!log_function)
        return;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    log_function(log_user, level, text);
}
