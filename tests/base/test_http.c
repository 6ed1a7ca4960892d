/* HTTP over loopback. Judge: a small server of this test's own that answers as RFC 9110 and 9112 say, or breaks them on purpose. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"

static int listener;
static int port;
static atomic_int busy_answers; /* how often /busy still says 503 */
static atomic_int requests;

static void send_text(int peer, const char *text) { (void)!write(peer, text, strlen(text)); }

/* "Range: bytes=first-last" or "bytes=-n" of a body of ten digits. */
static void send_range(int peer, const char *request)
{
    const char *range = strstr(request, "ange: bytes=");
    unsigned first = 0, last = 9;
    char answer[256];
    if (range && sscanf(range, "ange: bytes=%u-%u", &first, &last) != 2 &&
        sscanf(range, "ange: bytes=-%u", &last) == 1) {
        first = 10 - last;
        last = 9;
    }
    if (first > last || last > 9) {
        send_text(peer, "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Length: 0\r\n\r\n");
        return;
    }
    (void)snprintf(answer, sizeof answer,
                   "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes %u-%u/10\r\nContent-Length: "
                   "%u\r\nETag: \"e1\"\r\n\r\n%.*s",
                   first, last, last - first + 1, (int)(last - first + 1), "0123456789" + first);
    send_text(peer, answer);
}

static void answer(int peer, const char *request)
{
    char text[256];
    if (strncmp(request, "GET /ok", 7) == 0) {
        send_text(peer, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Type: text/plain\r\n\r\nhello");
    } else if (strncmp(request, "GET /range", 10) == 0) {
        send_range(peer, request);
    } else if (strncmp(request, "GET /there", 10) == 0) {
        send_text(peer, "HTTP/1.1 302 Found\r\nLocation: /ok\r\nETag: \"old\"\r\nContent-Length: 0\r\n\r\n");
    } else if (strncmp(request, "GET /loop", 9) == 0) {
        send_text(peer, "HTTP/1.1 302 Found\r\nLocation: /loop\r\nContent-Length: 0\r\n\r\n");
    } else if (strncmp(request, "GET /file-scheme", 16) == 0) {
        send_text(peer, "HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n");
    } else if (strncmp(request, "GET /busy", 9) == 0 && atomic_fetch_sub(&busy_answers, 1) > 0) {
        send_text(peer, "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nbusy");
    } else if (strncmp(request, "GET /busy", 9) == 0) {
        send_text(peer, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone");
    } else if (strncmp(request, "GET /cut", 8) == 0) {
        send_text(peer, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort");
    } else if (strncmp(request, "GET /big", 8) == 0) {
        send_text(peer, "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n01234567890123456789");
    } else if (strncmp(request, "GET /same", 9) == 0) {
        send_text(peer, strstr(request, "If-None-Match: \"e1\"")
                            ? "HTTP/1.1 304 Not Modified\r\n\r\n"
                            : "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    } else {
        (void)snprintf(text, sizeof text, "HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\nnot found");
        send_text(peer, text);
    }
}

static void *serve(void *unused)
{
    (void)unused;
    for (;;) {
        char request[4096];
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
        atomic_fetch_add(&requests, 1);
        answer(peer, request);
        (void)shutdown(peer, SHUT_RDWR);
        (void)close(peer);
    }
}

static arena *a;
static http *h;

static str at(const char *path) { return str_format(a, "http://127.0.0.1:%d%s", port, path); }

static int set_up(void **state)
{
    (void)state;
    a = arena_new(0);
    h = http_new(&(struct http_options){0});
    return h ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    http_free(h);
    arena_free(a);
    return 0;
}

static void a_body_comes_with_its_type_and_length(void **state)
{
    (void)state;
    struct http_response r;
    assert_true(http_get(h, a, &(struct http_request){.url = at("/ok")}, &r));
    assert_int_equal(200, r.status);
    assert_string_equal("hello", str_c(a, str_from_span(r.body)));
    assert_string_equal("text/plain", str_c(a, r.content_type));
    assert_true(r.has_length && r.length == 5 && r.received == 5);
}

static void ranges_give_the_bytes_asked_for_and_the_total(void **state)
{
    (void)state;
    struct http_response r;
    assert_true(http_get(
        h, a, &(struct http_request){.url = at("/range"), .ranged = true, .first = 2, .last = 4}, &r));
    assert_int_equal(206, r.status);
    assert_string_equal("234", str_c(a, str_from_span(r.body)));
    assert_true(r.has_total && r.total == 10 && r.accepts_ranges);
    assert_string_equal("\"e1\"", str_c(a, r.etag));
    assert_true(http_get(h, a, &(struct http_request){.url = at("/range"), .suffix = true, .last = 3}, &r));
    assert_string_equal("789", str_c(a, str_from_span(r.body)));
}

static void redirects_are_followed_within_bounds_and_schemes(void **state)
{
    (void)state;
    struct http_response r;
    assert_true(http_get(h, a, &(struct http_request){.url = at("/there")}, &r));
    assert_true(str_ends(r.url, S("/ok")) && r.status == 200);
    assert_null(r.etag.p); /* that of the redirect is not the file's */
    assert_false(http_get(h, a, &(struct http_request){.url = at("/loop")}, &r));
    assert_false(http_get(h, a, &(struct http_request){.url = at("/file-scheme")}, &r));
    assert_false(http_get(h, a, &(struct http_request){.url = S("file:///etc/passwd")}, &r));
    assert_int_equal(0, r.body.n);
}

static void a_busy_server_is_asked_again(void **state)
{
    (void)state;
    struct http_response r;
    atomic_store(&busy_answers, 1);
    assert_true(http_get(h, a, &(struct http_request){.url = at("/busy")}, &r));
    assert_int_equal(200, r.status);
    assert_string_equal("done", str_c(a, str_from_span(r.body)));
}

static void a_missing_page_is_an_answer_and_not_retried(void **state)
{
    (void)state;
    struct http_response r;
    const int before = atomic_load(&requests);
    assert_true(http_get(h, a, &(struct http_request){.url = at("/none")}, &r));
    assert_int_equal(404, r.status);
    assert_int_equal(1, atomic_load(&requests) - before);
}

static void a_body_cut_short_or_too_long_is_an_error(void **state)
{
    (void)state;
    struct http_response r;
    http *once = http_new(&(struct http_options){.retries = -1});
    assert_false(http_get(once, a, &(struct http_request){.url = at("/cut")}, &r));
    assert_false(http_get(once, a, &(struct http_request){.url = at("/big"), .limit = 10}, &r));
    assert_true(str_contains(r.error, S("limit of 10 bytes")));
    http_free(once);
}

static bool first_five(void *context, span bytes)
{
    struct buf *b = context;
    buf_add(b, str_from_span(bytes));
    return b->count < 5;
}

static void a_sink_may_stop_a_transfer_without_an_error(void **state)
{
    (void)state;
    struct http_response r;
    struct buf got = {.a = a};
    assert_true(
        http_get(h, a, &(struct http_request){.url = at("/big"), .sink = first_five, .context = &got}, &r));
    assert_true(r.stopped && got.count >= 5 && r.status == 200);
}

static void an_unchanged_page_is_told_by_its_etag(void **state)
{
    (void)state;
    struct http_response r;
    assert_true(http_get(h, a, &(struct http_request){.url = at("/same"), .etag = S("\"e1\"")}, &r));
    assert_int_equal(304, r.status);
}

static void many_at_once_each_get_their_own_answer(void **state)
{
    (void)state;
    enum { MANY = 40 };
    struct http_request q[MANY];
    struct http_response r[MANY];
    for (unsigned i = 0; i < MANY; i++)
        q[i] = (struct http_request){
            .url = i % 10 == 9 ? at("/none") : at("/range"), .ranged = true, .first = i % 10, .last = i % 10};
    http_get_many(h, a, q, MANY, 8, r);
    for (unsigned i = 0; i < MANY; i++) {
        assert_null(r[i].error.p);
        if (i % 10 == 9)
            assert_int_equal(404, r[i].status);
        else
            assert_int_equal('0' + i % 10, r[i].body.p[0]);
    }
}

static void offline_nothing_is_sent(void **state)
{
    (void)state;
    struct http_response r;
    const int before = atomic_load(&requests);
    http *none = http_new(&(struct http_options){.offline = true});
    assert_false(http_get(none, a, &(struct http_request){.url = at("/ok")}, &r));
    assert_true(str_contains(r.error, S("offline")));
    assert_int_equal(before, atomic_load(&requests));
    http_free(none);
}

static void a_closed_port_and_a_broken_url_are_errors(void **state)
{
    (void)state;
    struct http_response r;
    http *once = http_new(&(struct http_options){.retries = -1});
    assert_false(http_get(once, a, &(struct http_request){.url = S("http://127.0.0.1:1/x")}, &r));
    assert_int_equal(0, r.status);
    assert_false(http_get(once, a, &(struct http_request){.url = S("http://[broken")}, &r));
    assert_false(http_get(once, a, &(struct http_request){.url = S("")}, &r));
    http_free(once);
}

int main(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    pthread_t thread;
    const char *const proxies[] = {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"};
    for (size_t i = 0; i < COUNT(proxies); i++)
        (void)unsetenv(proxies[i]); /* the server is this machine's own */
    listener = socket(AF_INET, SOCK_STREAM, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, size) != 0 || listen(listener, 64) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &size) != 0)
        return 1;
    port = ntohs(address.sin_port);
    if (pthread_create(&thread, NULL, serve, NULL) != 0)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_body_comes_with_its_type_and_length),
        cmocka_unit_test(ranges_give_the_bytes_asked_for_and_the_total),
        cmocka_unit_test(redirects_are_followed_within_bounds_and_schemes),
        cmocka_unit_test(a_busy_server_is_asked_again),
        cmocka_unit_test(a_missing_page_is_an_answer_and_not_retried),
        cmocka_unit_test(a_body_cut_short_or_too_long_is_an_error),
        cmocka_unit_test(a_sink_may_stop_a_transfer_without_an_error),
        cmocka_unit_test(an_unchanged_page_is_told_by_its_etag),
        cmocka_unit_test(many_at_once_each_get_their_own_answer),
        cmocka_unit_test(offline_nothing_is_sent),
        cmocka_unit_test(a_closed_port_and_a_broken_url_are_errors),
    };
    const int failed = cmocka_run_group_tests(tests, set_up, tear_down);
    (void)shutdown(listener, SHUT_RDWR);
    (void)pthread_join(thread, NULL);
    (void)close(listener);
    return failed;
}
