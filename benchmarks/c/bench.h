/* What the benchmark's clients share: arguments, clock, pacing, samples, sockets, the answer.
 *
 * Every client is one program with the same arguments:
 *
 *     CLIENT PORT COMMAND TOPIC [COUNT SIZE SECONDS PARAM PARTITIONS]
 *
 *     create   make the topic (stream, queue); Kafka: with PARTITIONS, and PARAM replicas
 *     drop     delete it with its messages
 *     produce  send up to COUNT messages of SIZE bytes, for SECONDS at most, and wait until all are
 *              acknowledged; at most PARAM messages are unacknowledged (Kafka: 0 leaves batching to librdkafka).
 *              Kafka: they go to all PARTITIONS in turn
 *     consume  read up to COUNT messages from the start, for SECONDS at most
 *     latency  send PARAM messages a second, one by one, and receive them in the same process
 *     gap      send PARAM messages a second for SECONDS, while somebody kills a server; Kafka only
 *     transact send PARAM messages in each transaction, one transaction after the other; Kafka only
 *     bursts   send PARAM messages at a time without a transaction, and wait for them; Kafka only
 *     leader   say who leads partition 0, and how many replicas are in sync; Kafka only
 *
 * and answers with one line of JSON on stdout: {"messages": n, "seconds": s} or, for latency,
 * {"messages": n, "p50_us": a, "p99_us": b, "max_us": c}; kafka.c says what gap and leader answer. Anything that goes wrong ends it with status 1
 * and a sentence on stderr. Clocks start after the connection is warm, so set-up is not measured.
 */
#ifndef BENCH_H
#define BENCH_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct run {
    int port;
    const char *command, *topic;
    long count;
    int size;
    double seconds;
    int param, partitions;
    char *payload; /* SIZE bytes, the same for every message */
};

struct client {
    void (*create)(const struct run *);
    void (*drop)(const struct run *);
    void (*produce)(const struct run *);
    void (*consume)(const struct run *);
    void (*latency)(const struct run *);
    void (*gap)(const struct run *);
    void (*leader)(const struct run *);
    void (*transact)(const struct run *);
    void (*bursts)(const struct run *);
};

static inline void die(const char *format, ...) {
    va_list list;
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fputc('\n', stderr);
    exit(1);
}

static inline int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline double seconds_since(int64_t start_ns) { return (double)(now_ns() - start_ns) / 1e9; }

static inline void answer(long messages, double seconds) {
    printf("{\"messages\": %ld, \"seconds\": %.6f}\n", messages, seconds);
}

/* --- latency: a paced sender, and a receiver that keeps one sample for each message ------------- */

struct samples {
    int64_t *ns;
    long count, capacity;
};

static inline struct samples samples_new(long capacity) {
    struct samples s = {calloc((size_t)capacity, sizeof(int64_t)), 0, capacity};
    if (!s.ns) die("no memory for %ld samples", capacity);
    return s;
}

/* The sender writes its clock into the first 8 bytes of the payload; this takes it out again. */
static inline void sample(struct samples *s, const void *payload) {
    int64_t sent;
    memcpy(&sent, payload, sizeof sent);
    if (s->count < s->capacity) s->ns[s->count++] = now_ns() - sent;
}

static inline int by_value(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The first tenth is left out: threads, sockets and caches warm up in it. */
static inline void answer_latency(struct samples *s) {
    long skip = s->count / 10, n = s->count - skip;
    if (n <= 0) die("no message was received");
    qsort(s->ns + skip, (size_t)n, sizeof(int64_t), by_value);
    int64_t *sorted = s->ns + skip;
    printf("{\"messages\": %ld, \"p50_us\": %.1f, \"p99_us\": %.1f, \"max_us\": %.1f}\n", n,
           (double)sorted[n / 2] / 1e3, (double)sorted[n * 99 / 100] / 1e3, (double)sorted[n - 1] / 1e3);
}

/* Sleeps until message number i of `rate` a second is due. A late sender does not wait, so that a stalled server
 * is charged for what it delays (no coordinated omission): the stamp is the due time, not the time of sending. */
static inline int64_t pace(int64_t start_ns, long i, int rate) {
    int64_t due = start_ns + (int64_t)((double)i * 1e9 / rate);
    if (now_ns() < due) {
        struct timespec t = {due / 1000000000, due % 1000000000};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) {}
        /* the wake-up itself is the machine's, not the server's */
        return now_ns();
    }
    return due;
}

static inline void stamp(void *payload, int64_t ns) { memcpy(payload, &ns, sizeof ns); }

static inline pthread_t start_thread(void *(*body)(void *), void *argument) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, body, argument)) die("no thread could be started");
    return thread;
}

/* --- plain sockets, for the clients without a library -------------------------------------------- */

static inline int connect_local(int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address))
        die("can't connect to port %d: %s", port, strerror(errno));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

static inline void send_all(int fd, const void *data, size_t length) {
    const char *at = data;
    while (length) {
        ssize_t n = send(fd, at, length, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) die("the server closed the connection while we sent: %s", strerror(errno));
        at += n;
        length -= (size_t)n;
    }
}

/* A receive buffer: bytes from `start` to `end` have been received and not yet taken. */
struct inbox {
    int fd;
    char *data;
    size_t start, end, capacity;
};

static inline struct inbox inbox_new(int fd, size_t capacity) {
    struct inbox in = {fd, malloc(capacity), 0, 0, capacity};
    if (!in.data) die("no memory for a buffer");
    return in;
}

/* Receives once (blocking, or not with MSG_DONTWAIT); 0 if nothing was there. */
static inline size_t receive(struct inbox *in, int flags) {
    if (in->start) {
        memmove(in->data, in->data + in->start, in->end - in->start);
        in->end -= in->start;
        in->start = 0;
    }
    if (in->end == in->capacity) die("an answer of more than %zu bytes", in->capacity);
    ssize_t n = recv(in->fd, in->data + in->end, in->capacity - in->end, flags);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    if (n <= 0) die("the server closed the connection");
    in->end += (size_t)n;
    return (size_t)n;
}

/* --- main ------------------------------------------------------------------------------------------ */

static inline int bench_main(int argc, char **argv, const struct client *client) {
    if (argc < 4) die("usage: %s PORT COMMAND TOPIC [COUNT SIZE SECONDS PARAM PARTITIONS]", argv[0]);
    struct run run = {.port = atoi(argv[1]), .command = argv[2], .topic = argv[3]};
    run.count = argc > 4 ? atol(argv[4]) : 0;
    run.size = argc > 5 ? atoi(argv[5]) : 100;
    run.seconds = argc > 6 ? atof(argv[6]) : 10;
    run.param = argc > 7 ? atoi(argv[7]) : 0;
    run.partitions = argc > 8 ? atoi(argv[8]) : 1;
    if (run.size < 8 || run.size > 1 << 20) die("SIZE is 8 bytes to 1 MB");
    run.payload = malloc((size_t)run.size);
    for (int i = 0; i < run.size; i++) run.payload[i] = (char)('a' + i % 26);
    prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0); /* 50 µs of slack would blur a latency of 100 µs */

    const struct { const char *name; void (*run)(const struct run *); } commands[] = {
        {"create", client->create},   {"drop", client->drop},       {"produce", client->produce},
        {"consume", client->consume}, {"latency", client->latency}, {"gap", client->gap},
        {"leader", client->leader},   {"transact", client->transact}, {"bursts", client->bursts},
    };
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (!strcmp(run.command, commands[i].name) && commands[i].run) {
            commands[i].run(&run);
            return 0;
        }
    die("%s does not know %s", argv[0], run.command);
    return 1;
}

#endif
