/* digest.h: the pieces that digests of graphs and chains are made of. */
#ifndef RM_DIGEST_H
#define RM_DIGEST_H

#include "base/sha256.h"

void rm_digest_int(rm_sha256 *s, int64_t x);        /* 8 bytes, little-endian */
void rm_digest_text(rm_sha256 *s, char digest[80]); /* ends the hash; writes "sha256:..." */

#endif
