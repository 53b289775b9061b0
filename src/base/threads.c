/* threads.c: the only place where threads are made.
 *
 * What the tasks compute must not depend on how many threads there are. */
#include "base/threads.h"

#include <assert.h>
#include <pthread.h>

typedef struct member {
    void (*task)(void *user, uint32_t index);
    void *user;
    uint32_t first, step, n_tasks;
} member;

static void *work_through(void *user)
{
    const member *m = user;
    for (uint32_t i = m->first; i < m->n_tasks; i += m->step) m->task(m->user, i);
    return NULL;
}

void rm_threads_run(uint32_t n_threads, uint32_t n_tasks, void (*task)(void *user, uint32_t index),
                    void *user)
{
    assert(n_threads > 0 || n_tasks == 0);
    pthread_t threads[RM_THREADS_MAX];
    bool runs[RM_THREADS_MAX] = {false};
    member members[RM_THREADS_MAX];
    if (n_threads > n_tasks) n_threads = n_tasks;
    if (n_threads > RM_THREADS_MAX) n_threads = RM_THREADS_MAX;
    for (uint32_t t = 0; t < n_threads; t++)
        members[t] = (member){task, user, t, n_threads, n_tasks};
    for (uint32_t t = 1; t < n_threads; t++)
        runs[t] = pthread_create(&threads[t], NULL, work_through, &members[t]) == 0;
    if (n_threads) work_through(&members[0]);
    for (uint32_t t = 1; t < n_threads; t++) {
        if (runs[t]) pthread_join(threads[t], NULL);
        else work_through(&members[t]);
    }
}
