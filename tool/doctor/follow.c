/* Logs that are still being written: a growing file, a pipe, or the output of a command that runs under us. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "doctor/doctor.h"

enum { LOOK_MS = 100, PIECE = 64 << 10 };

/* ---- Following ---- */

struct following {
    struct doctor *doctor;
    arena *told_in;
    struct strs told; /* labels that were reported */
    void (*found)(void *context, const struct cause *cause);
    void *context;
};

static void tell(struct following *w)
{
    arena *scratch = arena_new(0);
    struct cause_list causes;
    doctor_causes(scratch, w->doctor, &causes);
    for (size_t i = 0; i < causes.count; i++) {
        const struct cause *c = &causes.items[i];
        if (strs_has(&w->told, c->label) || (c->severity == SEVERITY_INFO && i > 0))
            continue;
        (void)strs_add(w->told_in, &w->told, str_copy(w->told_in, c->label));
        w->found(w->context, c);
    }
    arena_free(scratch);
}

/* Opens the path anew when another file has taken its place, and rewinds one that was cut. */
static int reopened(const char *path, int fd)
{
    struct stat here, there;
    if (fstat(fd, &here) != 0)
        return fd;
    const off_t at = lseek(fd, 0, SEEK_CUR);
    if (at > here.st_size)
        (void)lseek(fd, 0, SEEK_SET);
    if (stat(path, &there) != 0 || (there.st_ino == here.st_ino && there.st_dev == here.st_dev) ||
        at < here.st_size)
        return fd;
    const int next = open(path, O_RDONLY | O_CLOEXEC);
    if (next < 0)
        return fd;
    (void)close(fd);
    return next;
}

bool doctor_follow(struct doctor *d, str path, void (*found)(void *context, const struct cause *cause),
                   void *context, findings *f)
{
    const bool from_stdin = str_eq(path, S("-"));
    arena *a = arena_new(0);
    const char *name = str_c(a, path);
    struct following w = {.doctor = d, .told_in = a, .found = found, .context = context};
    int fd = from_stdin ? STDIN_FILENO : open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        (void)finding_fatal(f, 3, F001, (struct place){.file = path}, "cannot be opened: %s",
                            strerror(errno));
        arena_free(a);
        return false;
    }
    struct stat status;
    const bool regular = fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
    uint8_t *bytes = arena_array(a, uint8_t, PIECE);
    double heard = seconds_now();
    bool good = true, stale = false;
    interrupts_catch();
    while (!interrupted()) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        if (!regular && poll(&ready, 1, LOOK_MS) < 0 && errno != EINTR)
            break;
        ssize_t got = 0;
        if (regular || ready.revents)
            got = read(fd, bytes, PIECE);
        if (got < 0 && errno != EINTR && errno != EAGAIN) {
            good = finding_fatal(f, 3, F001, (struct place){.file = path}, "cannot be read: %s",
                                 strerror(errno));
            break;
        }
        if (got > 0) {
            doctor_feed(d, (span){bytes, (size_t)got});
            heard = seconds_now();
            stale = true;
            continue; /* look when it pauses, or at the latest when a block is full */
        }
        if (!regular && ready.revents)
            break; /* the pipe's other end is closed */
        const double silence = seconds_now() - heard;
        if (stale) {
            doctor_pause(d, silence);
            tell(&w);
            stale = silence < DOCTOR_UNFINISHED_S;
        }
        if (regular) {
            fd = reopened(name, fd);
            (void)poll(NULL, 0, LOOK_MS);
        }
    }
    good = doctor_end(d, path, f) && good;
    tell(&w);
    if (!from_stdin)
        (void)close(fd);
    arena_free(a);
    return good;
}

/* ---- A command under us ---- */

static volatile sig_atomic_t child_id;

/* A signal that another process sent to us is meant for the command as well. One from the terminal reaches it anyway. */
static void forward(int number, siginfo_t *info, void *context)
{
    (void)context;
    if (child_id > 0 && (info->si_code == SI_USER || info->si_code == SI_QUEUE || info->si_code == SI_TKILL))
        (void)kill((pid_t)child_id, number);
}

static const int FORWARDED[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

static bool start(char *const *argv, const int pipes[2][2], pid_t *child, findings *f)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t defaults;
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawnattr_init(&attributes);
    (void)posix_spawn_file_actions_adddup2(&actions, pipes[0][1], STDOUT_FILENO);
    (void)posix_spawn_file_actions_adddup2(&actions, pipes[1][1], STDERR_FILENO);
    (void)sigemptyset(&defaults);
    for (size_t i = 0; i < COUNT(FORWARDED); i++)
        (void)sigaddset(&defaults, FORWARDED[i]);
    (void)sigaddset(&defaults, SIGPIPE);
    (void)posix_spawnattr_setsigdefault(&attributes, &defaults);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    const int error = posix_spawnp(child, argv[0], &actions, &attributes, argv, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)posix_spawnattr_destroy(&attributes);
    return error == 0 || finding_fatal(f, 5, F008, (struct place){.file = str_from(argv[0])},
                                       "cannot be started: %s", strerror(error));
}

static void pass_on(int fd, span bytes)
{
    while (bytes.n) {
        const ssize_t put = write(fd, bytes.p, bytes.n);
        if (put < 0 && errno != EINTR)
            return; /* our reader is gone: the command still runs to its end */
        if (put > 0)
            bytes = (span){bytes.p + put, bytes.n - (size_t)put};
    }
}

/* Each stream's unfinished line, so that the two do not cut each other's lines in half. */
struct half {
    uint8_t bytes[4096];
    size_t n;
};

static void feed_lines(struct doctor *d, struct half *h, span bytes)
{
    const uint8_t *end = memrchr(bytes.p, '\n', bytes.n);
    const size_t whole = end ? (size_t)(end - bytes.p) + 1 : 0;
    if (whole || h->n + bytes.n > sizeof h->bytes) {
        doctor_feed(d, (span){h->bytes, h->n});
        h->n = 0;
        doctor_feed(d, (span){bytes.p, whole});
        bytes = (span){bytes.p + whole, bytes.n - whole};
    }
    if (bytes.n > sizeof h->bytes - h->n) {
        doctor_feed(d, bytes);
        return;
    }
    memcpy(h->bytes + h->n, bytes.p, bytes.n);
    h->n += bytes.n;
}

static void attend(struct doctor *d, int out, int err)
{
    static const uint8_t NEWLINE[] = {'\n'};
    uint8_t bytes[PIECE];
    struct half halves[2] = {{.n = 0}, {.n = 0}};
    struct pollfd polls[2] = {{.fd = out, .events = POLLIN}, {.fd = err, .events = POLLIN}};
    while (polls[0].fd >= 0 || polls[1].fd >= 0) {
        if (poll(polls, 2, -1) < 0 && errno != EINTR)
            break;
        for (int i = 0; i < 2; i++) {
            if (polls[i].fd < 0 || !polls[i].revents)
                continue;
            const ssize_t got = read(polls[i].fd, bytes, sizeof bytes);
            if (got < 0 && (errno == EINTR || errno == EAGAIN))
                continue;
            if (got <= 0) {
                (void)close(polls[i].fd);
                polls[i].fd = -1;
                doctor_feed(d, (span){halves[i].bytes, halves[i].n});
                if (halves[i].n)
                    doctor_feed(d, (span){NEWLINE, 1});
                halves[i].n = 0;
                continue;
            }
            pass_on(i + 1, (span){bytes, (size_t)got});
            feed_lines(d, &halves[i], (span){bytes, (size_t)got});
        }
    }
}

bool doctor_run(struct doctor *d, char *const *argv, int *exit_code, findings *f)
{
    int pipes[2][2] = {{-1, -1}, {-1, -1}};
    pid_t child = 0;
    struct sigaction forwarding = {.sa_sigaction = forward, .sa_flags = SA_SIGINFO | SA_RESTART};
    (void)sigemptyset(&forwarding.sa_mask);
    if (pipe2(pipes[0], O_CLOEXEC) != 0 || pipe2(pipes[1], O_CLOEXEC) != 0)
        return finding_fatal(f, 5, F008, (struct place){.file = str_from(argv[0])}, "cannot be started: %s",
                             strerror(errno));
    for (size_t i = 0; i < COUNT(FORWARDED); i++)
        (void)sigaction(FORWARDED[i], &forwarding, NULL);
    const bool started = start(argv, pipes, &child, f);
    (void)close(pipes[0][1]);
    (void)close(pipes[1][1]);
    if (!started) {
        (void)close(pipes[0][0]);
        (void)close(pipes[1][0]);
        return false;
    }
    child_id = (sig_atomic_t)child;
    (void)fflush(stdout);
    attend(d, pipes[0][0], pipes[1][0]);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    child_id = 0;
    *exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return doctor_end(d, S("the command's output"), f);
}
