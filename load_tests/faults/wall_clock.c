/* Preloaded: the wall clock of this process is that of the machine, and as many seconds more as the file WALL_CLOCK has in it, at any time.
   Clocks that do not run backwards are left alone; waits until a time of the wall clock end when that is there. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* Of a clock that began with the machine; the wall clock's are far above it. */
#define LONGEST_UP 1000000000

static const volatile int64_t nothing = 0;
static const volatile int64_t *ahead = &nothing;

__attribute__((constructor)) static void begin(void) {
    const char *name = getenv("WALL_CLOCK");
    int file = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *seen = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
    if (seen != MAP_FAILED) ahead = seen;
    close(file);
}

static struct timespec of_machine(const struct timespec *until) {
    struct timespec moved = *until;
    if (moved.tv_sec > LONGEST_UP) moved.tv_sec -= *ahead;
    return moved;
}

#define NEXT(name) \
    static __typeof__(&name) next; \
    if (!next) next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

int clock_gettime(clockid_t clock, struct timespec *now) {
    NEXT(clock_gettime);
    int failed = next ? next(clock, now) : (int)syscall(SYS_clock_gettime, clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += *ahead;
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    NEXT(gettimeofday);
    int failed = next(now, zone);
    if (!failed && now) now->tv_sec += *ahead;
    return failed;
}

time_t time(time_t *told) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (told) *told = now.tv_sec;
    return now.tv_sec;
}

int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex, const struct timespec *restrict until) {
    NEXT(pthread_cond_timedwait);
    struct timespec moved = of_machine(until);
    return next(condition, mutex, &moved);
}

int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict until) {
    NEXT(sem_timedwait);
    struct timespec moved = of_machine(until);
    return next(semaphore, &moved);
}
