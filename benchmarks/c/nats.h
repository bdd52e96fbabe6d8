/* NATS over a plain socket: lines of text, each perhaps followed by a payload. */
#ifndef NATS_H
#define NATS_H

#define _GNU_SOURCE /* memmem */
#include "bench.h"

#define REPLY "_INBOX.bench"
#define OUT_BYTES (8 << 20)

struct nats {
    int fd;
    struct inbox in;
    char *out; /* commands that wait to be sent together */
    size_t queued;
};

struct message {
    const char *reply; /* empty if none */
    int headers; /* bytes of headers before the payload */
    const char *payload; /* after the headers, if any */
    size_t length;
};

static inline void put(struct nats *n, const void *data, size_t length) {
    memcpy(n->out + n->queued, data, length);
    n->queued += length;
}

static inline void send_queued(struct nats *n) {
    send_all(n->fd, n->out, n->queued);
    n->queued = 0;
}

static inline void put_publish(struct nats *n, const char *subject, const char *reply, const void *payload, int size) {
    n->queued += (size_t)sprintf(n->out + n->queued, "PUB %s %s %d\r\n", subject, reply, size);
    put(n, payload, (size_t)size);
    put(n, "\r\n", 2);
}

/* Splits "MSG subject sid [reply] bytes" or "HMSG subject sid [reply] header-bytes bytes". */
static inline void parse_head(char *line, struct message *m) {
    char *words[8], *save = NULL;
    int count = 0, headers = line[0] == 'H';
    for (char *w = strtok_r(line, " \r\n", &save); w && count < 8; w = strtok_r(NULL, " \r\n", &save)) words[count++] = w;
    int numbers = headers ? 2 : 1, with_reply = count == 4 + numbers;
    m->reply = with_reply ? words[3] : "";
    m->headers = headers ? atoi(words[count - 2]) : 0;
}

/* Takes the next message from what has been received; 0 if none is whole yet. The message is valid until the next receive. */
static inline int take(struct nats *n, struct message *m) {
    struct inbox *in = &n->in;
    for (;;) {
        char *line = in->data + in->start, *end = memchr(line, '\n', in->end - in->start);
        if (!end) return 0;
        size_t head = (size_t)(end - line) + 1;
        if (!strncmp(line, "PING", 4)) {
            put(n, "PONG\r\n", 6), send_queued(n);
        } else if (line[0] == '-') {
            die("nats-server answered %.*s", (int)head - 2, line);
        } else if (!strncmp(line, "MSG ", 4) || !strncmp(line, "HMSG ", 5)) {
            const char *bytes = end;
            while (bytes[-1] != ' ') bytes--;
            size_t body = (size_t)atol(bytes);
            if (in->end - in->start < head + body + 2) return 0;
            *end = 0;
            parse_head(line, m);
            m->payload = end + 1 + m->headers;
            m->length = body - (size_t)m->headers;
            in->start += head + body + 2;
            return 1;
        }
        in->start += head;
    }
}

static inline void next(struct nats *n, struct message *m) {
    while (!take(n, m)) receive(&n->in, 0);
}

static inline struct nats connect_nats(int port, const char *subscribe) {
    struct nats n = {.fd = connect_local(port), .out = malloc(OUT_BYTES)};
    n.in = inbox_new(n.fd, 8 << 20);
    n.queued = (size_t)sprintf(n.out,
                               "CONNECT {\"verbose\":false,\"pedantic\":false,\"headers\":true,\"protocol\":1}\r\n"
                               "SUB %s 1\r\n", subscribe);
    send_queued(&n);
    return n;
}

/* A call of JetStream's own API: JSON to a subject, JSON back. */
static inline void call(struct nats *n, const char *json, const char *subject_format, const char *name) {
    char subject[256];
    struct message m;
    snprintf(subject, sizeof subject, subject_format, name);
    put_publish(n, subject, REPLY, json, (int)strlen(json));
    send_queued(n);
    next(n, &m);
    if (memmem(m.payload, m.length, "\"error\"", 7)) die("%s: %.*s", subject, (int)m.length, m.payload);
}

static inline void check_acknowledgement(const struct message *m) {
    if (memmem(m->payload, m->length, "\"error\"", 7) || m->headers) die("publish: %.*s", (int)m->length, m->payload);
}

#endif
