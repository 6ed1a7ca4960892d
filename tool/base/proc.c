/* Child processes: no shell, both streams drained at once, the whole process group ended on a timeout or a stop. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { GRACE_MS = 2000, OUTPUT_LIMIT = 16 << 20, POLL_MS = 50 };

static volatile sig_atomic_t signals_seen;

static void on_signal(int number)
{
    if (signals_seen) { /* the second one: the person means it */
        (void)signal(number, SIG_DFL);
        (void)raise(number);
    }
    signals_seen = 1;
}

void interrupts_catch(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    (void)signal(SIGPIPE,
                 SIG_IGN); /* a closed pipe is an error of write(), with a message, not a silent death */
}

bool interrupted(void) { return signals_seen != 0; }

double seconds_now(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* This process's environment with the changes made; memory from the arena. */
static char **environment_with(arena *a, const char *const *changes)
{
    size_t count = 0, changed = 0;
    while (environ[count])
        count++;
    while (changes && changes[changed])
        changed++;
    char **result = arena_array(a, char *, count + changed + 1);
    if (!result)
        return NULL;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        bool replaced = false;
        for (size_t j = 0; j < changed && !replaced; j++) {
            const size_t name = strcspn(changes[j], "=");
            replaced = strncmp(environ[i], changes[j], name) == 0 && environ[i][name] == '=';
        }
        if (!replaced)
            result[kept++] = environ[i];
    }
    for (size_t j = 0; j < changed; j++)
        if (strchr(changes[j], '='))
            result[kept++] = unconst(changes[j]);
    return result;
}

struct stream {
    int fd, number;
    struct buf text;
    size_t limit;
    bool truncated;
};

/* Reads what is there. False at the end of the stream. */
static bool stream_read(struct stream *s, const struct proc_options *o)
{
    uint8_t bytes[65536];
    const ssize_t got = read(s->fd, bytes, sizeof bytes);
    if (got < 0)
        return errno == EINTR || errno == EAGAIN;
    if (got == 0)
        return false;
    if (o->on_output)
        o->on_output(o->context, s->number, (span){bytes, (size_t)got});
    const size_t room = s->limit - s->text.count;
    s->truncated = s->truncated || (size_t)got > room;
    buf_add(&s->text, (str){(const char *)bytes, (size_t)got < room ? (size_t)got : room});
    return true;
}

static void end_group(pid_t child, int signal_number) { (void)kill(-child, signal_number); }

static bool spawn(arena *a, const struct proc_options *o, int out, int err, pid_t *child, int *error)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    char **environment = environment_with(a, o->environment);
    if (!environment) {
        *error = ENOMEM;
        return false;
    }
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawnattr_init(&attributes);
    (void)posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_adddup2(&actions, out, 1);
    (void)posix_spawn_file_actions_adddup2(&actions, err, 2);
    if (o->directory)
        (void)posix_spawn_file_actions_addchdir_np(&actions, o->directory);
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    (void)posix_spawnattr_setsigmask(&attributes, &none);
    (void)posix_spawnattr_setsigdefault(&attributes, &all);
    (void)posix_spawnattr_setpgroup(&attributes, 0);
    (void)posix_spawnattr_setflags(&attributes,
                                   POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    *error = posix_spawnp(child, o->argv[0], &actions, &attributes, unconst(o->argv), environment);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)posix_spawnattr_destroy(&attributes);
    return *error == 0;
}

/* Drains both streams until the child is gone and they are closed, or until time runs out. */
static int attend(const struct proc_options *o, pid_t child, struct stream streams[2],
                  struct proc_result *out)
{
    const double started = seconds_now();
    const double grace = (o->grace_ms ? o->grace_ms : GRACE_MS) / 1000.0;
    double term_at = 0; /* when SIGTERM was sent */
    double gone_at = 0; /* when the child was reaped */
    bool killed = false;
    int status = 0;
    while (streams[0].fd >= 0 || streams[1].fd >= 0 || gone_at == 0) {
        struct pollfd polls[2] = {{.fd = streams[0].fd, .events = POLLIN},
                                  {.fd = streams[1].fd, .events = POLLIN}};
        (void)poll(polls, 2, POLL_MS);
        for (size_t i = 0; i < 2; i++)
            if (polls[i].fd >= 0 && polls[i].revents && !stream_read(&streams[i], o)) {
                (void)close(streams[i].fd);
                streams[i].fd = -1;
            }
        const double now = seconds_now();
        if (gone_at == 0 && waitpid(child, &status, WNOHANG) == child)
            gone_at = now;
        if (gone_at > 0 && !polls[0].revents && !polls[1].revents && now - gone_at > 0.2)
            break; /* a grandchild in the background still holds the streams: its output is not the child's */
        const bool late = o->timeout_ms > 0 && now - started > o->timeout_ms / 1000.0;
        if ((late || interrupted()) && term_at == 0 && gone_at == 0) {
            out->timed_out = true;
            term_at = now;
            end_group(child, SIGTERM);
        }
        if (term_at > 0 && !killed && now - term_at > grace) {
            killed = true;
            end_group(child, SIGKILL);
        }
    }
    if (term_at > 0)
        end_group(child, SIGKILL); /* what is left of the group */
    out->seconds = seconds_now() - started;
    return status;
}

bool proc_run(arena *a, const struct proc_options *options, struct proc_result *out, findings *f)
{
    int pipes[2][2] = {{-1, -1}, {-1, -1}};
    pid_t child = 0;
    int error = 0;
    *out = (struct proc_result){0};
    bool started = pipe2(pipes[0], O_CLOEXEC) == 0 && pipe2(pipes[1], O_CLOEXEC) == 0;
    if (!started)
        error = errno;
    started = started && spawn(a, options, pipes[0][1], pipes[1][1], &child, &error);
    for (size_t i = 0; i < 2; i++)
        if (pipes[i][1] >= 0)
            (void)close(pipes[i][1]);
    if (!started) {
        for (size_t i = 0; i < 2; i++)
            if (pipes[i][0] >= 0)
                (void)close(pipes[i][0]);
        return finding_fatal(f, 5, F008, (struct place){0}, "%s cannot be started: %s", options->argv[0],
                             strerror(error));
    }
    const size_t limit = options->output_limit ? options->output_limit : OUTPUT_LIMIT;
    struct stream streams[2] = {{.fd = pipes[0][0], .number = 1, .text = {.a = a}, .limit = limit},
                                {.fd = pipes[1][0], .number = 2, .text = {.a = a}, .limit = limit}};
    const int status = attend(options, child, streams, out);
    for (size_t i = 0; i < 2; i++)
        if (streams[i].fd >= 0)
            (void)close(streams[i].fd);
    out->exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    out->out = buf_str(&streams[0].text);
    out->err = buf_str(&streams[1].text);
    out->truncated = streams[0].truncated || streams[1].truncated;
    return true;
}
