/* place_brute.h: the least height of any placement, by trying all orders. */
#ifndef PLACE_BRUTE_H
#define PLACE_BRUTE_H

#include <stddef.h>

#include "remat.h"

enum { PLACE_BRUTE_MOST = 10 };

/* At most PLACE_BRUTE_MOST spans. */
int64_t place_brute(const remat_span *spans, size_t n_spans);

#endif
