/* asset/number.c: numbers in text. Not strtod and printf: those follow the process's locale, in which "0.5" may read
 * as 0, and the host program, not a library, chooses that. */
#include "asset/asset.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool word_parse(const char **at, const char *end, double sign, double *value)
{
    static const struct {
        const char *text;
        double value;
    } words[] = {{"nan", NAN}, {"infinity", INFINITY}, {"inf", INFINITY}};
    for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
        const size_t length = strlen(words[w].text);
        size_t same = 0;
        while (same < length && (size_t)(end - *at) > same && ((*at)[same] | 0x20) == words[w].text[same])
            same++;
        if (same == length) {
            *at += length;
            *value = sign * words[w].value;
            return true;
        }
    }
    return false;
}

/* mantissa * 10^exponent. Powers of ten to 10^22 are exact in a double, so most results are rounded once. */
static double scale_ten(double mantissa, int exponent)
{
    static const double ten[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    for (; exponent > 22 && mantissa < INFINITY; exponent -= 22)
        mantissa *= 1e22;
    for (; exponent < -22 && mantissa > 0; exponent += 22)
        mantissa /= 1e22;
    if (mantissa <= 0 || mantissa >= INFINITY)
        return mantissa;
    return exponent < 0 ? mantissa / ten[-exponent] : mantissa * ten[exponent];
}

bool number_parse(const char **at, const char *end, double *value)
{
    const char *p = *at;
    double sign = 1;
    if (p < end && (*p == '-' || *p == '+'))
        sign = *p++ == '-' ? -1 : 1;
    uint64_t mantissa = 0;
    int digits = 0, exponent = 0;
    bool fraction = false;
    for (; p < end; p++) {
        if (*p == '.' && !fraction) {
            fraction = true;
            continue;
        }
        if (*p < '0' || *p > '9')
            break;
        digits++;
        if (mantissa < (UINT64_MAX - 9) / 10) {
            mantissa = mantissa * 10 + (uint64_t)(*p - '0');
            exponent -= fraction;
        } else if (exponent < 100000) {
            exponent += !fraction;
        }
    }
    if (!digits) {
        if (fraction || !word_parse(&p, end, sign, value))
            return false;
        *at = p;
        return true;
    }
    if (p < end && (*p | 0x20) == 'e') {
        const char *q = p + 1;
        const bool minus = q < end && *q == '-';
        if (q < end && (*q == '-' || *q == '+'))
            q++;
        int written = 0;
        bool any = false;
        for (; q < end && *q >= '0' && *q <= '9'; q++, any = true)
            written = written < 100000 ? written * 10 + (*q - '0') : written;
        if (any) {
            p = q;
            exponent += minus ? -written : written;
        }
    }
    *at = p;
    *value = sign * (mantissa ? scale_ten((double)mantissa, exponent) : 0.0);
    return true;
}

bool integer_parse(const char **at, const char *end, int64_t *value)
{
    const char *p = *at;
    const bool minus = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+'))
        p++;
    int64_t result = 0;
    const char *first = p;
    for (; p < end && *p >= '0' && *p <= '9'; p++) {
        if (result > (INT64_MAX - 9) / 10)
            return false;
        result = result * 10 + (*p - '0');
    }
    if (p == first)
        return false;
    *at = p;
    *value = minus ? -result : result;
    return true;
}

size_t float_print(char *out, float value)
{
    if (isnan(value) || isinf(value)) {
        const char *text = isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
        memcpy(out, text, strlen(text) + 1);
        return strlen(text);
    }
    size_t length = 0;
    for (int digits = 6; digits <= 9; digits += digits == 6 ? 2 : 1) {
        char text[48];
        const int size = snprintf(text, sizeof text, "%.*g", digits, (double)value);
        /* whatever the locale puts between the digits, of one byte or several, is the decimal point */
        length = 0;
        bool point = false;
        for (int i = 0; i < size; i++) {
            const bool plain =
                (text[i] >= '0' && text[i] <= '9') || text[i] == '-' || text[i] == '+' || text[i] == 'e';
            if (plain)
                out[length++] = text[i];
            else if (!point)
                out[length++] = '.';
            point = !plain;
        }
        out[length] = '\0';
        const char *at = out;
        double back;
        if (number_parse(&at, out + length, &back) && (float)back == value) // NOLINT: the bits must come back
            break;
    }
    return length;
}
