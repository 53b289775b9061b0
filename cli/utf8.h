/* utf8.h: a strict decoder, and what is not safe to print. The text and the JSON writer share it.
 */
#ifndef CLI_UTF8_H
#define CLI_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the character at p (not at the end of the string), 0 if it is broken, overlong, a
 * surrogate or past U+10FFFF. */
static inline size_t utf8_decode(const unsigned char *p, uint32_t *code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    *code = p[0];
    if (p[0] < 0x80) return 1;
    if (p[0] < 0xc0 || p[0] >= 0xf8) return 0;
    size_t length = 2;
    if (p[0] >= 0xe0) length = 3;
    if (p[0] >= 0xf0) length = 4;
    uint32_t c = p[0] & (0xffu >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        if ((p[i] & 0xc0) != 0x80) return 0; /* the terminating 0 stops here too */
        c = c << 6 | (p[i] & 0x3fu);
    }
    *code = c;
    const bool overlong = c < least[length], surrogate = c >= 0xd800 && c < 0xe000;
    return overlong || surrogate || c > 0x10ffff ? 0 : length;
}

/* What a terminal may obey or a reader cannot see: controls, zero width characters, changes of
 * direction, line separators. */
static inline bool utf8_unsafe(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x200b && code <= 0x200f) ||
           (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) ||
           code == 0xfeff;
}

#endif
