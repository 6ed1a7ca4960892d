/* Threads for CPU loops. They start at the first loop that is worth it and wait on a condition between loops. After fork() the child has
 * none of them, whatever their locks said: it notices by its process id and starts its own. */
#include "device/internal.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

enum { THREADS_MOST = 256 };

static _Thread_local bool in_loop; /* this thread runs a piece: an inner loop must not wait for the others */

static int processors(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return CPU_COUNT(&set);
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int)online : 1;
}

static void make_locks(struct pool *pool)
{
    (void)pthread_mutex_init(&pool->lock, NULL);
    (void)pthread_cond_init(&pool->wake, NULL);
    (void)pthread_cond_init(&pool->idle, NULL);
}

void pool_init(struct pool *pool, int threads)
{
    int wanted = threads > 0 ? threads : processors();
    if (wanted > THREADS_MOST)
        wanted = THREADS_MOST;
    *pool = (struct pool){.wanted = wanted - 1, .owner = getpid()};
    make_locks(pool);
}

static void run_pieces(struct pool_job *job)
{
    for (;;) {
        const long long first = atomic_fetch_add_explicit(&job->next, job->grain, memory_order_relaxed);
        if (first >= job->n)
            return;
        job->work(job->arg, first, job->n - first < job->grain ? job->n : first + job->grain);
    }
}

static void *worker(void *context)
{
    struct pool *pool = context;
    unsigned long seen = 0;
    in_loop = true;
    (void)pthread_mutex_lock(&pool->lock);
    for (;;) {
        while (!pool->stop && (pool->generation == seen || !pool->job))
            (void)pthread_cond_wait(&pool->wake, &pool->lock);
        if (pool->stop)
            break;
        seen = pool->generation;
        struct pool_job *job = pool->job;
        pool->busy++;
        (void)pthread_mutex_unlock(&pool->lock);
        run_pieces(job);
        (void)pthread_mutex_lock(&pool->lock);
        if (--pool->busy == 0)
            (void)pthread_cond_signal(&pool->idle);
    }
    (void)pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* With the lock held. Fewer threads than wanted is fine. */
static void start_threads(struct pool *pool)
{
    if (pool->threads || pool->wanted == 0)
        return;
    pool->threads = calloc((size_t)pool->wanted, sizeof *pool->threads);
    while (pool->threads && pool->started < pool->wanted &&
           pthread_create(&pool->threads[pool->started], NULL, worker, pool) == 0)
        pool->started++;
}

/* In a child of fork(): the threads are the parent's, and the locks may be held by one of them. */
static void forget_parent(struct pool *pool)
{
    pool->threads =
        NULL; /* the array is lost: freeing could wait for a lock of malloc that nobody will open */
    pool->started = pool->busy = 0;
    pool->job = NULL;
    make_locks(pool);
}

/* Makes the pool this process's. Of several threads of a child that come first together, one does it; a child of a child that was forked
 * meanwhile sees another process's number and starts over. */
static void take_over(struct pool *pool)
{
    const int self = (int)getpid();
    int owner = atomic_load_explicit(&pool->owner, memory_order_acquire);
    while (owner != self) {
        if (owner != -self && atomic_compare_exchange_strong(&pool->owner, &owner, -self)) {
            forget_parent(pool);
            atomic_store_explicit(&pool->owner, self, memory_order_release);
            return;
        }
        (void)sched_yield();
        owner = atomic_load_explicit(&pool->owner, memory_order_acquire);
    }
}

fel_status pool_for(fel_context *ctx, int64_t n, int64_t grain,
                    void (*work)(const void *arg, int64_t first, int64_t last), const void *arg)
{
    struct pool *pool = &ctx->pool;
    if (n <= 0)
        return FEL_OK;
    if (grain < 1)
        grain = 1;
    struct pool_job job = {.work = work, .arg = arg, .n = n, .grain = grain, .next = 0};
    if (in_loop || pool->wanted == 0 || n <= grain) {
        run_pieces(&job);
        return FEL_OK;
    }
    take_over(pool);
    (void)pthread_mutex_lock(&pool->lock);
    start_threads(pool);
    if (pool->job) { /* another thread's loop on the same context: do not wait for it */
        (void)pthread_mutex_unlock(&pool->lock);
        run_pieces(&job);
        return FEL_OK;
    }
    pool->job = &job;
    pool->generation++;
    (void)pthread_cond_broadcast(&pool->wake);
    (void)pthread_mutex_unlock(&pool->lock);
    in_loop = true;
    run_pieces(&job);
    in_loop = false;
    (void)pthread_mutex_lock(&pool->lock);
    pool->job = NULL; /* who has not woken up by now is not needed */
    while (pool->busy > 0)
        (void)pthread_cond_wait(&pool->idle, &pool->lock);
    (void)pthread_mutex_unlock(&pool->lock);
    return FEL_OK;
}

void pool_close(struct pool *pool)
{
    if (pool->owner != getpid())
        return; /* the parent's threads are not here */
    (void)pthread_mutex_lock(&pool->lock);
    pool->stop = true;
    (void)pthread_cond_broadcast(&pool->wake);
    (void)pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < pool->started; i++)
        (void)pthread_join(pool->threads[i], NULL);
    free(pool->threads);
    (void)pthread_mutex_destroy(&pool->lock);
    (void)pthread_cond_destroy(&pool->wake);
    (void)pthread_cond_destroy(&pool->idle);
}
