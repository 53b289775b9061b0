/* sha256.c: the digest that ties a plan to its graph.
 *
 * Method: FIPS 180-4, section 6.2. The text is padded with 0x80, zeros and its length in bits. Each
 * block of 64 bytes is expanded to 64 words, and 64 rounds mix them into the state. The constants
 * are fractional parts of roots of the first primes: cube roots in K, square roots in start.
 *
 * Invariant: block holds n_bytes % 64 bytes, which wait for a full block.
 *
 * Cost: linear in the bytes. */
#include "base/sha256.h"

#include <assert.h>
#include <string.h>

static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t x, unsigned n) { return x >> n | x << (32 - n); }

static void compress(uint32_t state[8], const unsigned char *block)
{
    uint32_t w[64], v[8];
    for (unsigned i = 0; i < 16; i++, block += 4)
        w[i] = (uint32_t)block[0] << 24 | (uint32_t)block[1] << 16 | (uint32_t)block[2] << 8 |
               block[3];
    for (unsigned i = 16; i < 64; i++) {
        const uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + w[i - 7] +
               (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
    }
    memcpy(v, state, sizeof v);
    for (unsigned i = 0; i < 64; i++) {
        const uint32_t a = v[0], e = v[4];
        const uint32_t t1 = v[7] + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +
                            ((e & v[5]) ^ (~e & v[6])) + K[i] + w[i];
        const uint32_t t2 = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) +
                            ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += t1;
        v[0] = t1 + t2;
    }
    for (unsigned i = 0; i < 8; i++) state[i] += v[i];
}

void rm_sha256_begin(rm_sha256 *s)
{
    static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    *s = (rm_sha256){.n_bytes = 0};
    memcpy(s->state, start, sizeof start);
}

void rm_sha256_add(rm_sha256 *s, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    while (n) {
        const size_t waiting = s->n_bytes % 64, take = n < 64 - waiting ? n : 64 - waiting;
        memcpy(s->block + waiting, p, take);
        s->n_bytes += take;
        p += take;
        n -= take;
        if (s->n_bytes % 64 == 0) compress(s->state, s->block);
    }
}

void rm_sha256_end(rm_sha256 *s, unsigned char digest[32])
{
    const uint64_t n_bits = 8 * s->n_bytes;
    unsigned char tail[72] = {0x80};
    const size_t n = 1 + (119 - s->n_bytes % 64) % 64; /* 0x80 and zeros, up to the length */
    for (unsigned i = 0; i < 8; i++) tail[n + i] = (unsigned char)(n_bits >> (56 - 8 * i));
    rm_sha256_add(s, tail, n + 8);
    assert(s->n_bytes % 64 == 0);
    for (unsigned i = 0; i < 32; i++)
        digest[i] = (unsigned char)(s->state[i / 4] >> (24 - 8 * (i % 4)));
}
