/* HTTP/1.1 over plain sockets, as much of it as the benchmark needs: requests with a body, one at a time on each
 * connection, which is kept for the next one unless the server closes it. Answers must tell their length.
 */
#ifndef HTTP_H
#define HTTP_H

#include "bench.h"
#include <strings.h>
#include <sys/epoll.h>

#define HTTP_INBOX_BYTES (1 << 18)

/* A text that grows. */
struct text {
    char *data;
    size_t length, capacity;
};

static inline void text_room(struct text *t, size_t more) {
    if (t->length + more < t->capacity) return;
    t->capacity = 2 * (t->length + more) + 1024;
    t->data = realloc(t->data, t->capacity);
    if (!t->data) die("no memory for a text");
}

static inline void text_add(struct text *t, const char *data, size_t length) {
    text_room(t, length);
    memcpy(t->data + t->length, data, length);
    t->length += length;
    t->data[t->length] = 0;
}

__attribute__((format(printf, 2, 3))) static inline void text_print(struct text *t, const char *format, ...) {
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    size_t length = (size_t)vsnprintf(NULL, 0, format, list);
    text_room(t, length);
    vsnprintf(t->data + t->length, length + 1, format, again);
    t->length += length;
    va_end(list), va_end(again);
}

struct http {
    int port, poll; /* an epoll that is told of every connection, or -1 */
    void *tag;      /* what the epoll answers for it */
    struct inbox in; /* fd -1: to be connected */
    struct text out;
};

struct http_answer {
    int status;
    const char *body; /* ends with a zero byte; valid until the next request */
};

static inline struct http http_new(int port, int poll, void *tag) {
    struct http http = {.port = port, .poll = poll, .tag = tag, .in = inbox_new(-1, HTTP_INBOX_BYTES)};
    return http;
}

static inline void http_connect(struct http *http) {
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = http->tag};
    http->in.fd = connect_local(http->port);
    http->in.start = http->in.end = 0;
    if (http->poll >= 0 && epoll_ctl(http->poll, EPOLL_CTL_ADD, http->in.fd, &event)) die("epoll: %s", strerror(errno));
}

/* `headers`: lines that end with \r\n. */
static inline void http_post(struct http *http, const char *headers, const struct text *body) {
    if (http->in.fd < 0) http_connect(http);
    http->out.length = 0;
    text_print(&http->out, "POST / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n%sContent-Length: %zu\r\n\r\n", http->port, headers,
               body->length);
    text_add(&http->out, body->data, body->length);
    send_all(http->in.fd, http->out.data, http->out.length);
}

/* The value of a header; NULL if there is none. The head ends with a zero byte. */
static inline const char *http_header(const char *head, const char *name) {
    size_t length = strlen(name);
    for (const char *line = head; (line = strstr(line, "\r\n")); ) {
        line += 2;
        if (!strncasecmp(line, name, length) && line[length] == ':') return line + length + 1 + (line[length + 1] == ' ');
    }
    return NULL;
}

/* 1 if a whole answer is there, which is taken. */
static inline int http_take(struct http *http, struct http_answer *got) {
    struct inbox *in = &http->in;
    char *head = in->data + in->start, *end = memmem(head, in->end - in->start, "\r\n\r\n", 4);
    if (!end) return 0;
    end[2] = 0; /* the first byte after the last header's line */
    const char *length = http_header(head, "content-length"), *connection = http_header(head, "connection");
    if (!length) die("an answer that does not tell its length: %.100s", head);
    size_t size = (size_t)atol(length);
    int closes = connection && !strncasecmp(connection, "close", 5);
    got->status = atoi(head + 9); /* after HTTP/1.1 and a blank */
    end[2] = '\r';
    end += 4;
    if ((size_t)(in->data + in->end - end) < size) return 0;
    if (in->end == in->capacity) die("an answer of more than %zu bytes", in->capacity - 1);
    end[size] = 0;
    got->body = end;
    in->start = in->end = 0; /* one request, one answer: nothing can follow it */
    if (closes) close(in->fd), in->fd = -1;
    return 1;
}

/* Waits for the answer. */
static inline struct http_answer http_call(struct http *http, const char *headers, const struct text *body) {
    struct http_answer got;
    http_post(http, headers, body);
    do receive(&http->in, 0);
    while (!http_take(http, &got));
    return got;
}

#endif
