/* SHA-256 by libcrypto: it uses the processor's SHA instructions, and libcurl brings it along anyway. */
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>

#include <openssl/evp.h>

static EVP_MD_CTX *context_of(struct sha256 *h) { return h->state; }

void sha256_start(struct sha256 *h)
{
    h->state = EVP_MD_CTX_new();
    if (!h->state || EVP_DigestInit_ex(context_of(h), EVP_sha256(), NULL) != 1) {
        (void)fprintf(stderr, "felloe: libcrypto offers no SHA-256\n");
        abort();
    }
}

void sha256_add(struct sha256 *h, span bytes) { (void)EVP_DigestUpdate(context_of(h), bytes.p, bytes.n); }

void sha256_end(struct sha256 *h, uint8_t digest[32])
{
    unsigned length = 0;
    (void)EVP_DigestFinal_ex(context_of(h), digest, &length);
    EVP_MD_CTX_free(context_of(h));
    h->state = NULL;
}

str hex(arena *a, const uint8_t *bytes, size_t n)
{
    static const char DIGITS[] = "0123456789abcdef";
    char *text = arena_array(a, char, 2 * n + 1);
    if (!text)
        return (str){NULL, 0};
    for (size_t i = 0; i < n; i++) {
        text[2 * i] = DIGITS[bytes[i] >> 4];
        text[2 * i + 1] = DIGITS[bytes[i] & 15];
    }
    return (str){text, 2 * n};
}

str sha256_hex(arena *a, span bytes)
{
    struct sha256 h;
    uint8_t digest[32];
    sha256_start(&h);
    sha256_add(&h, bytes);
    sha256_end(&h, digest);
    return hex(a, digest, sizeof digest);
}
