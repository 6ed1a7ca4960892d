/* tests/plan/test_refresh.c. Judge: a server of this test's own, and what it was asked. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "fixture.h"

static int listener, port;
static atomic_int asked, not_modified;

static void *serve(void *unused)
{
    (void)unused;
    for (;;) {
        char request[8192], answer[1024];
        size_t n = 0;
        const int peer = accept(listener, NULL, NULL);
        if (peer < 0)
            return NULL;
        while (n + 1 < sizeof request) {
            const ssize_t got = read(peer, request + n, sizeof request - 1 - n);
            if (got <= 0)
                break;
            n += (size_t)got;
            request[n] = 0;
            if (strstr(request, "\r\n\r\n"))
                break;
        }
        request[n] = 0;
        atomic_fetch_add(&asked, 1);
        const char *page = "<a href=\"nvdiffrast-9.9+cu130torch2.11-cp312-cp312-linux_x86_64.whl\">new</a>"
                           "<a href=\"other-1-py3-none-any.whl\">other</a>";
        if (strncmp(request, "GET /good", 9) != 0) {
            (void)snprintf(answer, sizeof answer, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
        } else if (strstr(request, "If-None-Match: \"e1\"")) {
            atomic_fetch_add(&not_modified, 1);
            (void)snprintf(answer, sizeof answer, "HTTP/1.1 304 Not Modified\r\nETag: \"e1\"\r\n\r\n");
        } else {
            (void)snprintf(
                answer, sizeof answer,
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nETag: \"e1\"\r\nContent-Length: %zu\r\n\r\n%s",
                strlen(page), page);
        }
        (void)!write(peer, answer, strlen(answer));
        (void)shutdown(peer, SHUT_RDWR);
        (void)close(peer);
    }
}

static char folder[] = "/tmp/felloe-refresh-XXXXXX";

static int set_up(void **state)
{
    (void)state;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    pthread_t thread;
    listener = socket(AF_INET, SOCK_STREAM, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, size) || listen(listener, 8) ||
        getsockname(listener, (struct sockaddr *)&address, &size) ||
        pthread_create(&thread, NULL, serve, NULL) || pthread_detach(thread) || !mkdtemp(folder))
        return -1;
    port = ntohs(address.sin_port);
    arena *a = arena_new(0);
    const str text = str_format(a,
                                "date: 2026-01-01\nsources:\n"
                                "  - {name: good, title: good, kind: index, layout: simple, extensions: "
                                "[nvdiffrast], pages: [{url: 'http://127.0.0.1:%d/good/', "
                                "base: 'http://127.0.0.1:%d/good/', files: "
                                "[nvdiffrast-0.1+cu130torch2.11-cp312-cp312-linux_x86_64.whl]}]}\n"
                                "  - {name: gone, title: gone, kind: index, layout: simple, extensions: "
                                "[nvdiffrast], pages: [{url: 'http://127.0.0.1:%d/gone/', "
                                "base: 'http://127.0.0.1:%d/gone/', files: "
                                "[nvdiffrast-0.2+cu130torch2.11-cp312-cp312-linux_x86_64.whl]}]}\n"
                                "  - {name: idle, title: idle, kind: index, layout: simple, extensions: "
                                "[spconv], pages: [{url: 'http://127.0.0.1:%d/idle/'}]}\n",
                                port, port, port, port, port);
    const bool well =
        file_write(str_format(a, "%s/sources.yaml", folder), span_from_str(text), findings_new(a));
    data_override(str_from(folder));
    arena_free(a);
    return well && !setenv("FELLOE_CACHE", folder, 1) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    arena *a = arena_new(0);
    struct proc_result result;
    const char *argv[] = {"rm", "-r", folder, NULL};
    (void)proc_run(a, &(struct proc_options){.argv = argv}, &result, findings_new(a));
    arena_free(a);
    return 0;
}

static struct app *refreshed(http *h, bool offline)
{
    struct app *app = app_new("zerogpu");
    app_requirements(app, "numpy\n");
    app_import(app, "nvdiffrast.torch", 1, 0);
    const struct plan_options options = {.offline = offline, .http = h};
    app_plan(app, &options);
    return app;
}

/* A page that answers replaces its names; one that fails keeps them, and that is said; one that nobody needs is not asked. */
static void pages_are_asked_once_kept_and_confirmed(void **state)
{
    (void)state;
    http *h = http_new(&(struct http_options){.retries = -1});
    for (int round = 0; round < 2; round++) {
        atomic_store(&asked, 0);
        struct app *app = refreshed(h, false);
        assert_true(str_ends(app_item(app, "nvdiffrast")->chosen.url,
                             S("/good/nvdiffrast-9.9+cu130torch2.11-cp312-cp312-linux_x86_64.whl")));
        assert_int_equal(1, app->sources.items[0].files.count);
        assert_int_equal(1, app->sources.items[1].files.count);
        assert_int_equal(2, atomic_load(&asked));
        assert_int_equal(round, atomic_load(&not_modified));
        assert_int_equal(1, app_findings(app, F220));
        assert_int_equal(0, app->f->exit_code); /* the snapshot answers: not a failure */
        app_free(app);
    }
    http_free(h);
}

static void offline_asks_nobody(void **state)
{
    (void)state;
    atomic_store(&asked, 0);
    http *h = http_new(&(struct http_options){.offline = true});
    struct app *app = refreshed(h, true);
    assert_true(str_contains(app_item(app, "nvdiffrast")->chosen.url, S("nvdiffrast-0.1")));
    assert_int_equal(0, atomic_load(&asked));
    assert_int_equal(0, app_findings(app, F220));
    app_free(app);
    http_free(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_are_asked_once_kept_and_confirmed),
        cmocka_unit_test(offline_asks_nobody),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
