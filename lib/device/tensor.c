/* Tensors against what an operator takes. */
#include "device/internal.h"

#include <stdio.h>
#include <string.h>

struct text {
    char *at;
    size_t left;
};

static void put(struct text *t, const char *text)
{
    const size_t n = strlen(text) < t->left ? strlen(text) : t->left;
    memcpy(t->at, text, n);
    t->at += n;
    t->left -= n;
    *t->at = 0;
}

static const struct {
    int type;
    uint8_t code, bits;
    const char *name;
} TYPES[] = {
    {F32, kDLFloat, 32, "float32"}, {F16, kDLFloat, 16, "float16"}, {I32, kDLInt, 32, "int32"},
    {I64, kDLInt, 64, "int64"},     {U8, kDLUInt, 8, "uint8"},
};

static void type_text(struct text *t, DLDataType type)
{
    static const char *const CODES[] = {"int", "uint", "float", "handle", "bfloat", "complex", "bool"};
    char other[48];
    (void)snprintf(other, sizeof other, "%s%d", type.code < COUNT(CODES) ? CODES[type.code] : "type",
                   type.bits);
    put(t, other);
    if (type.lanes != 1) {
        (void)snprintf(other, sizeof other, "x%d", type.lanes);
        put(t, other);
    }
}

static fel_status mismatch(fel_status code, const struct tensor_rule *rule)
{
    char expected[256], got[512], number[32];
    struct text e = {expected, sizeof expected - 1}, g = {got, sizeof got - 1};
    bool first = true;
    *expected = *got = 0;
    for (size_t i = 0; i < COUNT(TYPES); i++)
        if (rule->types & TYPES[i].type) {
            put(&e, first ? "" : " or ");
            put(&e, TYPES[i].name);
            first = false;
        }
    put(&e, " [");
    for (const char *c = rule->shape; *c; c++) {
        const char letter[2] = {*c, 0};
        put(&e, *c == ' ' ? ", " : letter);
    }
    put(&e, "]");
    type_text(&g, rule->tensor->dtype);
    put(&g, " [");
    for (int32_t i = 0; i < rule->tensor->ndim && i < 16; i++) {
        (void)snprintf(number, sizeof number, "%s%lld", i ? ", " : "", (long long)rule->tensor->shape[i]);
        put(&g, number);
    }
    put(&g, rule->tensor->ndim > 16 ? ", ...]" : "]");
    return status_fail(code, "%s: expected %s, got %s", rule->name, expected, got);
}

static bool type_is_taken(const struct tensor_rule *rule)
{
    const DLDataType type = rule->tensor->dtype;
    for (size_t i = 0; i < COUNT(TYPES); i++)
        if ((rule->types & TYPES[i].type) && type.code == TYPES[i].code && type.bits == TYPES[i].bits &&
            type.lanes == 1)
            return true;
    /* A mask is bool or uint8: the same byte. */
    return (rule->types & U8) && type.code == kDLBool && type.bits == 8 && type.lanes == 1;
}

/* The next length of a rule's shape at *c: a letter (in *letter) or a number; false at the end. */
static bool next_length(const char **c, char *letter, int64_t *number)
{
    while (**c == ' ')
        ++*c;
    if (!**c)
        return false;
    *letter = 0;
    *number = 0;
    if (**c >= '0' && **c <= '9') {
        while (**c >= '0' && **c <= '9')
            *number = *number * 10 + (*(*c)++ - '0');
    } else {
        *letter = *(*c)++;
    }
    return true;
}

static fel_status expect_shape(const struct tensor_rule *rule, bool *known, struct dims *n)
{
    const DLTensor *t = rule->tensor;
    const char *c = rule->shape;
    char letter;
    int64_t number;
    int32_t i = 0;
    for (; next_length(&c, &letter, &number); i++) {
        if (i >= t->ndim || t->shape[i] < 0)
            return mismatch(FEL_INVALID_SHAPE, rule);
        const int64_t length = t->shape[i];
        if (!letter ? length != number
                    : known[(unsigned char)letter] && n->of[(unsigned char)letter] != length)
            return mismatch(FEL_INVALID_SHAPE, rule);
        if (letter) {
            known[(unsigned char)letter] = true;
            n->of[(unsigned char)letter] = length;
        }
    }
    return i == t->ndim ? FEL_OK : mismatch(FEL_INVALID_SHAPE, rule);
}

/* Compact, addressable, aligned to its elements. */
static fel_status expect_layout(const struct tensor_rule *rule)
{
    const DLTensor *t = rule->tensor;
    const int64_t size = t->dtype.bits / 8;
    int64_t elements = 1;
    for (int32_t i = t->ndim; i-- > 0;) {
        if (t->strides && t->shape[i] > 1 && t->strides[i] != elements)
            return status_fail(
                FEL_INVALID_ARGUMENT,
                "%s: expected a contiguous tensor, got stride %lld where %lld was expected in dimension %d",
                rule->name, (long long)t->strides[i], (long long)elements, (int)i);
        if (t->shape[i] > 0 && elements > INT64_MAX / 16 / t->shape[i])
            return status_fail(FEL_INVALID_SHAPE, "%s: has more elements than can be addressed", rule->name);
        elements *= t->shape[i];
        if (elements == 0)
            return FEL_OK; /* nothing is read: any address does */
    }
    if (!t->data)
        return status_fail(FEL_INVALID_ARGUMENT, "%s: expected data, got NULL", rule->name);
    if ((uintptr_t)tensor_data(t) % (uintptr_t)size)
        return status_fail(FEL_INVALID_ARGUMENT, "%s: expected data aligned to %lld bytes", rule->name,
                           (long long)size);
    return FEL_OK;
}

static const char *device_name(DLDevice device, char *text, size_t size)
{
    if (device.device_type == kDLCPU)
        return "the CPU";
    (void)snprintf(text, size,
                   device.device_type == kDLCUDA ? "cuda:%d" : "a device of another kind (number %d)",
                   (int)device.device_id);
    return text;
}

static fel_status expect_device(const fel_context *ctx, const struct tensor_rule *rule)
{
    const DLDevice device = rule->tensor->device;
    const bool cpu = device.device_type == kDLCPU || device.device_type == kDLCUDAHost;
    const bool cuda = device.device_type == kDLCUDA || device.device_type == kDLCUDAManaged;
    char expected[64], got[64];
    if (context_on_cuda(ctx) ? cuda && device.device_id == ctx->device.device_id : cpu)
        return FEL_OK;
    return status_fail(FEL_WRONG_DEVICE, "%s: expected a tensor on %s, got one on %s", rule->name,
                       device_name(ctx->device, expected, sizeof expected),
                       device_name(device, got, sizeof got));
}

fel_status tensors_expect(fel_context *ctx, const struct tensor_rule *rules, size_t count, struct dims *n)
{
    bool known[128] = {false};
    memset(n, 0, sizeof *n);
    if (!ctx)
        return status_fail(FEL_INVALID_ARGUMENT, "ctx: expected a context, got NULL");
    for (size_t i = 0; i < count; i++) {
        const struct tensor_rule *rule = &rules[i];
        if (!rule->tensor && (rule->types & OPTIONAL))
            continue;
        if (!rule->tensor)
            return status_fail(FEL_INVALID_ARGUMENT, "%s: expected a tensor, got NULL", rule->name);
        if (rule->tensor->ndim < 0 || (rule->tensor->ndim > 0 && !rule->tensor->shape))
            return status_fail(FEL_INVALID_ARGUMENT, "%s: expected a tensor with a shape", rule->name);
        fel_status status = type_is_taken(rule) ? FEL_OK : mismatch(FEL_INVALID_DTYPE, rule);
        if (!status)
            status = expect_shape(rule, known, n);
        if (!status)
            status = expect_device(ctx, rule);
        if (!status)
            status = expect_layout(rule);
        if (status)
            return status;
    }
    return FEL_OK;
}
