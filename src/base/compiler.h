/* compiler.h: the few compiler extensions that the library uses, each behind a name. */
#ifndef RM_COMPILER_H
#define RM_COMPILER_H

#define RM_PRINTF(format_index, first_argument) __attribute__((format(printf, format_index, first_argument)))
#define RM_LIKELY(x) __builtin_expect(!!(x), 1)
#define RM_UNLIKELY(x) __builtin_expect(!!(x), 0)

#define rm_lowest_bit(bits) ((unsigned)__builtin_ctzll(bits)) /* bits != 0 */
typedef unsigned __int128 rm_uint128;

/* True on overflow; *out has the result otherwise. */
#define rm_add_overflows(a, b, out) __builtin_add_overflow((a), (b), (out))
#define rm_mul_overflows(a, b, out) __builtin_mul_overflow((a), (b), (out))

#endif
