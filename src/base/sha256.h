/* sha256.h: SHA-256 (FIPS 180-4) of a stream of bytes. */
#ifndef RM_SHA256_H
#define RM_SHA256_H

#include <stddef.h>
#include <stdint.h>

typedef struct rm_sha256 {
    uint32_t state[8];
    uint64_t n_bytes;
    unsigned char block[64];
} rm_sha256;

void rm_sha256_begin(rm_sha256 *s);
void rm_sha256_add(rm_sha256 *s, const void *bytes, size_t n);
void rm_sha256_end(rm_sha256 *s, unsigned char digest[32]);

#endif
