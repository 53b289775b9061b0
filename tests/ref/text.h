/* text.h: a sink that keeps what it is given. `text t = {0};` is empty; free(t.bytes) in the end.
 */
#ifndef TEXT_H
#define TEXT_H

#include <stdlib.h>
#include <string.h>

typedef struct text {
    char *bytes; /* with a 0 behind them, once there are some */
    size_t n;
} text;

static inline int into_text(void *user, const void *bytes, size_t n)
{
    text *t = user;
    t->bytes = realloc(t->bytes, t->n + n + 1);
    if (!t->bytes) abort();
    memcpy(t->bytes + t->n, bytes, n);
    t->bytes[t->n += n] = '\0';
    return 0;
}

/* A copy with `now` in place of the first `old`, which is as long; {0} if that is not there. */
static inline text text_with(const text *t, const char *old, const char *now)
{
    const char *at = strstr(t->bytes, old);
    text copy = {0};
    if (!at || strlen(old) != strlen(now)) return copy;
    into_text(&copy, t->bytes, t->n);
    memcpy(copy.bytes + (at - t->bytes), now, strlen(now));
    return copy;
}

#endif
