/* HTTP through libcurl's multi interface: ranges, retries with back-off, proxies from the environment. */
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <curl/curl.h>

enum {
    RETRIES = 3,
    STALL_SECONDS = 20,
    REDIRECTS = 10,
    BODY_LIMIT = 64 << 20,
    BACKOFF_MS = 400,
    BACKOFF_MOST_MS = 20000
};

struct http {
    struct http_options options;
    CURLM *multi;
};

struct transfer {
    http *owner;
    arena *a;
    const struct http_request *request;
    struct http_response *response;
    CURL *easy;
    struct curl_slist *headers;
    struct buf body;
    uint64_t limit;
    double again_at; /* waiting for a retry until then; 0: not waiting */
    int tries;
    bool active, done, over_limit,
        delivered; /* delivered: the sink has had bytes, so a retry would repeat them */
    double retry_after;
};

http *http_new(const struct http_options *options)
{
    http *h = calloc(1, sizeof *h);
    if (!h)
        return NULL;
    h->options = *options;
    if (h->options.retries == 0)
        h->options.retries = RETRIES;
    if (!options->offline) {
        (void)curl_global_init(CURL_GLOBAL_DEFAULT);
        h->multi = curl_multi_init();
    }
    return h;
}

void http_free(http *h)
{
    if (!h)
        return;
    if (h->multi) {
        (void)curl_multi_cleanup(h->multi);
        curl_global_cleanup();
    }
    free(h);
}

static bool header_value(str line, str name, str *value)
{
    str head, tail;
    if (!str_cut(line, ':', &head, &tail) || !str_eq_nocase(head, name))
        return false;
    *value = str_trim(tail);
    return true;
}

static size_t on_header(char *bytes, size_t size, size_t count, void *context)
{
    struct transfer *t = context;
    struct http_response *r = t->response;
    const str line = str_trim((str){bytes, size * count});
    str value;
    uint64_t number;
    if (str_starts(line, S("HTTP/"))) { /* a new response: an earlier one was a redirect or 100 Continue */
        r->etag = r->content_type = (str){NULL, 0};
        r->accepts_ranges = r->has_total = r->has_length = false;
    } else if (header_value(line, S("etag"), &value)) {
        r->etag = str_copy(t->a, value);
    } else if (header_value(line, S("content-type"), &value)) {
        r->content_type = str_copy(t->a, value);
    } else if (header_value(line, S("accept-ranges"), &value)) {
        r->accepts_ranges = str_eq_nocase(value, S("bytes"));
    } else if (header_value(line, S("content-length"), &value) && str_to_u64(value, &number)) {
        r->has_length = true;
        r->length = number;
    } else if (header_value(line, S("content-range"), &value)) {
        const size_t slash = str_rfind_char(value, '/');
        if (slash != SIZE_MAX && str_to_u64(str_from_index(value, slash + 1), &number)) {
            r->has_total = r->accepts_ranges = true;
            r->total = number;
        }
    } else if (header_value(line, S("retry-after"), &value) && str_to_u64(value, &number)) {
        t->retry_after = number < 3600 ? (double)number : 3600;
    }
    return size * count;
}

static size_t on_body(char *bytes, size_t size, size_t count, void *context)
{
    struct transfer *t = context;
    const size_t n = size * count;
    long status = 0;
    (void)curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    t->response->status = status;
    t->response->received += n;
    if (t->response->received > t->limit) {
        t->over_limit = true;
        return 0;
    }
    if (t->request->sink && status >= 200 && status < 300) {
        t->delivered = true;
        if (!t->request->sink(t->request->context, (span){(const uint8_t *)bytes, n})) {
            t->response->stopped = true;
            return 0;
        }
        return n;
    }
    buf_add(&t->body, (str){bytes, n});
    return t->body.failed ? 0 : n;
}

static int on_progress(void *context, curl_off_t total, curl_off_t now, curl_off_t sent_total,
                       curl_off_t sent)
{
    (void)context, (void)total, (void)now, (void)sent_total, (void)sent;
    return interrupted(); /* not zero ends the transfer */
}

static void add_header(struct transfer *t, const char *name, str value)
{
    const str line = str_format(t->a, "%s: %.*s", name, STR_ARG(value));
    if (value.p && !str_contains(value, S("\n")) && !str_contains(value, S("\r")))
        t->headers = curl_slist_append(t->headers, str_c(t->a, line));
}

static void set_up(struct transfer *t)
{
    const struct http_request *q = t->request;
    const struct http_options *o = &t->owner->options;
    CURL *e = t->easy;
    (void)curl_easy_setopt(e, CURLOPT_URL, str_c(t->a, q->url));
    (void)curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
    /* From https only to https: a redirect must not take the transfer into the clear. */
    (void)curl_easy_setopt(e, CURLOPT_REDIR_PROTOCOLS_STR,
                           str_starts(q->url, S("https:")) ? "https" : "http,https");
    (void)curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 1L);
    (void)curl_easy_setopt(e, CURLOPT_MAXREDIRS, (long)REDIRECTS);
    (void)curl_easy_setopt(e, CURLOPT_USERAGENT, "felloe/" FELLOE_VERSION);
    (void)curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS,
                           o->timeout_ms ? (long)o->timeout_ms : STALL_SECONDS * 1000L);
    (void)curl_easy_setopt(e, CURLOPT_LOW_SPEED_LIMIT, 1L);
    (void)curl_easy_setopt(e, CURLOPT_LOW_SPEED_TIME,
                           o->timeout_ms ? (o->timeout_ms + 999L) / 1000 : (long)STALL_SECONDS);
    (void)curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(e, CURLOPT_NOBODY, q->head ? 1L : 0L);
    (void)curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_header);
    (void)curl_easy_setopt(e, CURLOPT_HEADERDATA, t);
    (void)curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body);
    (void)curl_easy_setopt(e, CURLOPT_WRITEDATA, t);
    (void)curl_easy_setopt(e, CURLOPT_XFERINFOFUNCTION, on_progress);
    (void)curl_easy_setopt(e, CURLOPT_NOPROGRESS, 0L);
    (void)curl_easy_setopt(e, CURLOPT_PRIVATE, t);
    if (!q->ranged && !q->suffix)
        (void)curl_easy_setopt(e, CURLOPT_ACCEPT_ENCODING, ""); /* ranges are of the bytes as stored */
    if (q->suffix)
        (void)curl_easy_setopt(e, CURLOPT_RANGE,
                               str_c(t->a, str_format(t->a, "-%llu", (unsigned long long)q->last)));
    if (q->ranged)
        (void)curl_easy_setopt(e, CURLOPT_RANGE,
                               str_c(t->a, str_format(t->a, "%llu-%llu", (unsigned long long)q->first,
                                                      (unsigned long long)q->last)));
    add_header(t, "Accept", q->accept);
    add_header(t, "If-None-Match", q->etag);
    if (t->headers)
        (void)curl_easy_setopt(e, CURLOPT_HTTPHEADER, t->headers);
    if (o->verbose > 0)
        (void)fprintf(stderr, "felloe: GET %.*s\n", STR_ARG(q->url));
}

static bool transfer_start(struct transfer *t)
{
    *t->response = (struct http_response){0};
    t->body = (struct buf){.a = t->a};
    t->headers = NULL;
    t->over_limit = false;
    t->retry_after = 0;
    t->again_at = 0;
    t->limit = t->request->limit ? t->request->limit : BODY_LIMIT;
    t->easy = curl_easy_init();
    if (!t->easy) {
        t->response->error = S("libcurl could not start a transfer");
        return false;
    }
    set_up(t);
    (void)curl_multi_add_handle(t->owner->multi, t->easy);
    t->active = true;
    t->tries++;
    return true;
}

static bool worth_retrying(const struct transfer *t, CURLcode code)
{
    if (t->tries > t->owner->options.retries || t->response->stopped || t->over_limit || t->delivered ||
        interrupted())
        return false;
    switch (code) {
    case CURLE_OK:
        return t->response->status == 429 || (t->response->status >= 500 && t->response->status != 501);
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_PARTIAL_FILE:
    case CURLE_HTTP2_STREAM:
    case CURLE_HTTP2:
        return true;
    default:
        return false;
    }
}

static void transfer_finish(struct transfer *t, CURLcode code)
{
    struct http_response *r = t->response;
    char *final_url = NULL;
    (void)curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &r->status);
    (void)curl_easy_getinfo(t->easy, CURLINFO_EFFECTIVE_URL, &final_url);
    r->url = str_copy(t->a, str_from(final_url));
    if (t->over_limit)
        r->error = str_format(t->a, "the answer is longer than the limit of %llu bytes",
                              (unsigned long long)t->limit);
    else if (t->body.failed)
        r->error = S("the answer does not fit the memory limit");
    else if (code != CURLE_OK && !r->stopped)
        r->error = interrupted() ? S("interrupted") : str_copy(t->a, str_from(curl_easy_strerror(code)));
    r->body = span_from_str(buf_str(&t->body));
    (void)curl_multi_remove_handle(t->owner->multi, t->easy);
    curl_easy_cleanup(t->easy);
    curl_slist_free_all(t->headers);
    t->easy = NULL;
    t->active = false;
    t->done = !worth_retrying(t, code);
    if (!t->done) {
        double wait = BACKOFF_MS / 1000.0 * (double)(1 << (t->tries - 1));
        wait *= 0.75 + 0.5 * (double)(str_hash(t->request->url) % 1000) /
                           1000; /* clients apart, the same run alike */
        wait = t->retry_after > wait ? t->retry_after : wait;
        t->again_at = seconds_now() + (wait < BACKOFF_MOST_MS / 1000.0 ? wait : BACKOFF_MOST_MS / 1000.0);
    }
}

static struct transfer *finished(http *h, CURLcode *code)
{
    int left = 0;
    for (const CURLMsg *message = curl_multi_info_read(h->multi, &left); message;
         message = curl_multi_info_read(h->multi, &left)) {
        struct transfer *t = NULL;
        if (message->msg != CURLMSG_DONE)
            continue;
        *code = message->data.result;
        (void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&t);
        return t;
    }
    return NULL;
}

void http_get_many(http *h, arena *a, const struct http_request *requests, size_t count, size_t parallel,
                   struct http_response *responses)
{
    struct transfer *transfers = arena_array(a, struct transfer, count);
    for (size_t i = 0; i < count; i++)
        responses[i] = (struct http_response){.error = h->options.offline ? S("offline: nothing is fetched")
                                                                          : S("no memory for the transfer")};
    if (h->options.offline || !h->multi || !transfers)
        return;
    for (size_t i = 0; i < count; i++)
        transfers[i] =
            (struct transfer){.owner = h, .a = a, .request = &requests[i], .response = &responses[i]};
    for (size_t done = 0, active = 0; done < count;) {
        const double now = seconds_now();
        for (size_t i = 0; i < count && active < (parallel ? parallel : 1); i++) {
            struct transfer *t = &transfers[i];
            if (t->done || t->active || (t->again_at > now && !interrupted()))
                continue;
            if (transfer_start(t)) {
                active++;
            } else {
                t->done = true;
                done++;
            }
        }
        int running = 0;
        (void)curl_multi_perform(h->multi, &running);
        CURLcode code = CURLE_OK;
        for (struct transfer *t = finished(h, &code); t; t = finished(h, &code)) {
            transfer_finish(t, code);
            active--;
            done += t->done;
        }
        if (done < count)
            (void)curl_multi_poll(h->multi, NULL, 0, 50, NULL);
    }
}

bool http_get(http *h, arena *a, const struct http_request *request, struct http_response *response)
{
    http_get_many(h, a, request, 1, 1, response);
    return response->error.p == NULL;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'                     ? c - '0'
           : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                    : -1;
}

str url_decode(arena *a, str s)
{
    if (str_find_char(s, '%') == SIZE_MAX)
        return s;
    char *text = arena_array(a, char, s.n + 1);
    size_t n = 0;
    for (size_t i = 0; text && i < s.n; i++) {
        const int high = s.n - i > 2 && s.p[i] == '%' ? hex_digit(s.p[i + 1]) : -1;
        const int low = high >= 0 ? hex_digit(s.p[i + 2]) : -1;
        const uint8_t byte = (uint8_t)(low >= 0 ? high * 16 + low : (unsigned char)s.p[i]);
        memcpy(&text[n++], &byte, 1);
        i += low >= 0 ? 2 : 0;
    }
    return (str){text, n};
}

str url_host(str url)
{
    const size_t scheme = str_find(url, S("://"));
    str rest = scheme == SIZE_MAX ? url : str_from_index(url, scheme + 3);
    size_t end = 0;
    while (end < rest.n && !strchr("/?#", rest.p[end]))
        end++;
    rest = str_slice(rest, 0, end);
    const size_t at = str_rfind_char(rest, '@');
    rest = at == SIZE_MAX ? rest : str_from_index(rest, at + 1);
    const size_t colon = str_rfind_char(rest, ':');
    return colon == SIZE_MAX || str_ends(rest, S("]")) ? rest : str_slice(rest, 0, colon);
}
