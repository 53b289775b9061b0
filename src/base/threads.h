/* threads.h: tasks of one kind, shared out among threads. */
#ifndef RM_THREADS_H
#define RM_THREADS_H

#include "base/base.h"

enum { RM_THREADS_MAX = 64 };

/* Calls task(user, i) once for every i below n_tasks, and returns when all are done. Thread t of T
 * does the tasks t, t + T, ... in order. The calling thread is thread 0, so task 0 runs in it. If a
 * thread cannot be made, the calling thread does its tasks. */
void rm_threads_run(uint32_t n_threads, uint32_t n_tasks, void (*task)(void *user, uint32_t index),
                    void *user);

#endif
