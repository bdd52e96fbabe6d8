/* The publisher of the clients that publish over Kafka's protocol, whatever they receive by: batches of at most BATCH
 * messages, within the window that all queue clients have. With delay_ms every message carries the header that
 * Postroad delays it by. A queue is a topic and a subscription of the same name.
 */
#ifndef PUBLISHER_H
#define PUBLISHER_H

#include "queue.h"
#include <poll.h>
#include "share.h"

#define HEADER_DELAY "postroad-delay-ms"

static inline void create_subscription(int port, const char *name, long partitions, long replicas) {
    struct link *link = link_new(port);
    create_topic(link, name, partitions, replicas);
    find_coordinator(link, name);
    set_group_config(link, name, "share.auto.offset.reset", "earliest");
}

static inline void drop_subscription(int port, const char *name) {
    struct link *link = link_new(port);
    delete_group(link, name);
    delete_topic(link, name);
}

/* A connection to a node that leads something. */
struct outlet {
    struct link *link;
    long batches[1 << 16]; /* messages in each request, by correlation */
};

/* Batches go to all partitions in turn. */
struct publisher {
    struct layout layout;
    struct outlet *outlets[NODES_MAX]; /* by node; NULL where nothing is led */
    struct pollfd polled[NODES_MAX];
    int count, partition; /* of outlets; where the next batch goes */
    char delay[24];       /* empty: no header */
};

static inline void *publisher_new(int port, const struct job *job) {
    struct publisher *p = calloc(1, sizeof *p);
    struct link *link = link_new(port);
    int nodes[NODES_MAX];
    find_topic(link, job->queue, &p->layout);
    close(link->in.fd);
    p->count = leading(&p->layout, nodes);
    for (int i = 0; i < p->count; i++) {
        struct outlet *outlet = p->outlets[nodes[i]] = calloc(1, sizeof *outlet);
        outlet->link = link_new(p->layout.ports[nodes[i]]);
        p->polled[i] = (struct pollfd){.fd = outlet->link->in.fd, .events = POLLIN};
    }
    if (job->delay_ms) snprintf(p->delay, sizeof p->delay, "%ld", job->delay_ms);
    return p;
}

static inline void put_headers(struct frame *f, const char *delay) {
    put_varint(f, *delay ? 1 : 0);
    if (!*delay) return;
    put_varint(f, sizeof HEADER_DELAY - 1), put_bytes(f, HEADER_DELAY, sizeof HEADER_DELAY - 1);
    put_varint(f, (int)strlen(delay)), put_bytes(f, delay, strlen(delay));
}

static inline int headers_bytes(const char *delay) {
    return *delay ? 1 + 1 + (int)sizeof HEADER_DELAY - 1 + 1 + (int)strlen(delay) : 1;
}

static inline void put_record(struct frame *f, const struct job *job, const char *delay, int delta) {
    int size = (int)job->size;
    put_varint(f, 1 + 1 + varint_bytes(delta) + 1 + varint_bytes(size) + size + headers_bytes(delay));
    put8(f, 0), put_varint(f, 0), put_varint(f, delta), put_varint(f, -1), put_varint(f, size);
    put_bytes(f, job->payload, (size_t)size);
    put_headers(f, delay);
}

static inline void put_batch(struct frame *f, const struct job *job, const char *delay, long first, long count) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    int64_t ms = (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
    f->batch = f->length;
    put64(f, 0), put32(f, 0), put32(f, -1), put8(f, 2), put32(f, 0), put16(f, 0), put32(f, count - 1);
    put64(f, ms), put64(f, ms), put64(f, -1), put16(f, -1), put32(f, -1), put32(f, count);
    for (long i = 0; i < count; i++) set_number(job, first + i), put_record(f, job, delay, (int)i);
    set32(f->data + f->batch + BATCH_LENGTH, (uint32_t)(f->length - f->batch - 12));
    seal(f);
}

static inline void publish_batch(struct publisher *p, const struct job *job, long first, long count) {
    struct outlet *outlet = p->outlets[p->layout.leader[p->partition]];
    struct frame *f = &outlet->link->out;
    begin(f, PRODUCE, 7);
    put16(f, -1), put16(f, -1), put32(f, TIMEOUT_MS); /* no transaction, acks=all */
    put32(f, 1), put_string(f, job->queue), put32(f, 1), put32(f, p->partition);
    size_t size_at = f->length;
    put32(f, 0);
    put_batch(f, job, p->delay, first, count);
    set32(f->data + size_at, (uint32_t)(f->length - f->batch));
    link_send(outlet->link);
    outlet->batches[outlet->link->correlation % (1 << 16)] = count;
    p->partition = (p->partition + 1) % p->layout.partitions;
}

static inline void publish(void *publisher, const struct job *job, long first, long count) {
    for (long n; count; first += n, count -= n) publish_batch(publisher, job, first, n = smaller(count, job->batch));
}

static inline long confirmed_by(struct outlet *outlet, int flags) {
    long fresh = 0;
    size_t length;
    const char *body;
    receive(&outlet->link->in, flags);
    while ((body = take(&outlet->link->in, &length))) {
        int error = get16(body + 4 + 4 + 2 + get16(body + 8) + 4 + 4);
        if (error) die("produce was answered with error %d", error);
        fresh += outlet->batches[get32(body) % (1 << 16)];
    }
    return fresh;
}

static inline long confirmed(void *publisher, int wait) {
    struct publisher *p = publisher;
    int flags = p->count == 1 && wait ? 0 : MSG_DONTWAIT;
    long fresh = 0;
    if (p->count > 1 && wait) poll(p->polled, (nfds_t)p->count, -1);
    for (int node = 0; node < p->layout.nodes; node++)
        if (p->outlets[node]) fresh += confirmed_by(p->outlets[node], flags);
    return fresh;
}

#endif
