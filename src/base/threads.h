/* threads.h: tasks of one kind, shared out among threads. */
#ifndef RM_THREADS_H
#define RM_THREADS_H

#include "base/base.h"

enum { RM_THREADS_MAX = 64 };

/* Calls task(user, i) for every i below n_tasks, once each. Thread t of T does t, t + T, ... in
 * order; the calling thread is the first, so task 0 runs in it. A thread that cannot be had is done
 * without. Returns when all is done. */
void rm_threads_run(uint32_t n_threads, uint32_t n_tasks, void (*task)(void *user, uint32_t index),
                    void *user);

#endif
