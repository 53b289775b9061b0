/* compiler.h: the few compiler extensions that the library uses, each behind a name. */
#ifndef RM_COMPILER_H
#define RM_COMPILER_H

#include <stdint.h> /* defines __GLIBC__ where the C library is glibc */

#define RM_PRINTF(format_index, first_argument)                                                    \
    __attribute__((format(printf, format_index, first_argument)))

/* A function that is compiled three times: for AVX-512, for AVX2 and for any machine. The loader
 * chooses one. Only glibc's loader can do that, and not together with sanitizers. */
#if defined(__x86_64__) && defined(__linux__) && defined(__GLIBC__) && defined(__GNUC__) &&        \
    !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define RM_MULTIVERSION __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define RM_MULTIVERSION
#endif

/* Calls what checks an invariant and takes time, if the condition (a small case) holds. Only in
 * debug builds, where CMake defines RM_CHECKED. */
#ifdef RM_CHECKED
#define RM_CHECK(condition, call)                                                                  \
    do {                                                                                           \
        if (condition) call;                                                                       \
    } while (0)
#else
#define RM_CHECK(condition, call) ((void)0)
#endif

#define RM_LIKELY(x) __builtin_expect(!!(x), 1)
#define RM_UNUSED                                                                                  \
    __attribute__((unused)) /* of what a macro defines and not every user of it calls */

#define rm_lowest_bit(bits) ((unsigned)__builtin_ctzll(bits)) /* bits is not 0 */
typedef unsigned __int128 rm_uint128;

/* True: it overflows. Else *out has the result. */
#define rm_add_overflows(a, b, out) __builtin_add_overflow((a), (b), (out))
#define rm_mul_overflows(a, b, out) __builtin_mul_overflow((a), (b), (out))

#endif
