/* What the queue clients share: arguments, the publisher's loop, the tally of what came back, the answer.
 *
 * Every queue client is one program with the same arguments:
 *
 *     CLIENT PORT COMMAND QUEUE [NAME=VALUE …]
 *
 *     create   make the queue; kind=quorum chooses a kind where the broker knows several; share groups: of a topic with
 *              PARTITIONS and REPLICAS
 *     drop     delete it with its messages
 *     fill     publish COUNT messages and wait until all are confirmed
 *     flow     publish and, at the same time, take and acknowledge with CONSUMERS connections, until all that was
 *              published has been acknowledged (of a queue with a backlog: as many as were published)
 *     latency  the same with RATE messages a second, one by one; each carries the time it was due
 *     hold     take COUNT messages and keep them; EVERY=n acknowledges all but one in n. Ends when stdin does
 *
 * and answers with one line of JSON, as bench.h says. Anything that goes wrong ends it with status 1 and a sentence on
 * stderr; a message that comes twice, or not at all, is wrong.
 *
 * One thread publishes on one connection: at most WINDOW messages are unconfirmed, and at most AHEAD have been
 * published and not yet acknowledged, so that a queue that was empty stays nearly empty; nor do the consumers of a
 * backlog run further ahead of the publisher than that. Each consumer has a thread and a connection of its own. A message is done when its acknowledgement has been handed to the socket, on all
 * brokers alike. Every message carries its number, by which it is counted. The clock starts after the consumers are
 * there and one message has gone all the way.
 */
#ifndef QUEUE_H
#define QUEUE_H

#include "bench.h"
#include <limits.h>
#include <stdatomic.h>

#define DRAIN_SECONDS 30 /* that the first message may take, and the last ones after the publisher has ended */
#define PREFETCH 1000    /* messages that a consumer holds at most */
#define NUMBERED 16      /* bytes of a payload that are used: the time it was due, its number */

struct job {
    int port;
    const char *command, *queue, *kind;
    long count, first, ahead, delay_ms;
    long size, consumers, window, batch, rate, every;
    long connections; /* of clients that speak HTTP */
    long kafka, frame; /* WebSocket: where to publish, and how many messages a frame may have */
    long partitions, replicas; /* of a queue that is a topic */
    int single; /* each message is acknowledged on its own */
    double seconds;
    char *payload;
};

struct tally {
    const struct job *job;
    pthread_barrier_t ready;
    _Atomic uint64_t *seen; /* a bit for each message number */
    atomic_long published, done, target, duplicates;
    struct samples samples; /* latency only, with one consumer */
    int64_t deadline_ns;
    _Atomic int64_t end_ns;
    atomic_long end_done;
};

struct queue_client {
    void (*create)(const struct job *);
    void (*drop)(const struct job *);
    void *(*publisher)(const struct job *);
    /* Sends messages number first to first + count - 1. */
    void (*publish)(void *publisher, const struct job *, long first, long count);
    /* How many more have been confirmed; waits for one if told to. */
    long (*confirmed)(void *publisher, int wait);
    /* A consumer's life: connects, calls consumer_ready(), then takes and acknowledges until finished(), but only as
     * long as it is its turn(). */
    void (*consume)(struct tally *, int number);
    void (*hold)(const struct job *); /* may be NULL */
};

/* --- the tally ------------------------------------------------------------------------------------- */

static inline void tally_new(struct tally *tally, const struct job *job) {
    size_t words = (size_t)(job->first + job->count + 1) / 64 + 1;
    tally->job = job;
    tally->seen = calloc(words, sizeof *tally->seen);
    tally->target = LONG_MAX;
    tally->deadline_ns = INT64_MAX;
    if (job->rate) tally->samples = samples_new(job->count + 1);
    if (!tally->seen || pthread_barrier_init(&tally->ready, NULL, (unsigned)job->consumers + 1)) die("no memory for the tally");
}

static inline void consumer_ready(struct tally *tally) { pthread_barrier_wait(&tally->ready); }

/* 1 for a message that was not seen before, 0 for one that came twice. After the end that is as it should be: those
 * who leave first give back what they hold, if there is a backlog. */
static inline int took(struct tally *tally, const void *payload, size_t length) {
    int64_t number;
    if (length < NUMBERED) die("a message of %zu bytes, which nobody sent", length);
    memcpy(&number, (const char *)payload + 8, sizeof number);
    if (number < 0 || number > tally->job->first + tally->job->count) die("message %ld, which nobody sent", (long)number);
    uint64_t bit = 1ull << (number % 64);
    if (atomic_fetch_or(&tally->seen[number / 64], bit) & bit) {
        if (tally->done < tally->target) tally->duplicates++;
        return 0;
    }
    if (tally->samples.ns) sample(&tally->samples, payload);
    return 1;
}

static inline void note_end(struct tally *tally) {
    int64_t none = 0;
    if (tally->done >= tally->target && atomic_compare_exchange_strong(&tally->end_ns, &none, now_ns()))
        tally->end_done = tally->done;
}

/* `count` messages that took() called new have been acknowledged. */
static inline void acknowledged(struct tally *tally, long count) {
    tally->done += count;
    note_end(tally);
}

/* True when the consumers may leave. */
static inline int finished(struct tally *tally) {
    if (tally->done >= tally->target) return 1;
    if (now_ns() > tally->deadline_ns)
        die("%ld of %ld messages did not come", tally->target - tally->done, (long)tally->target);
    return 0;
}

/* Waits while the consumers have taken more of a backlog than was published. */
static inline void turn(struct tally *tally) {
    while (tally->done - tally->published > tally->job->ahead && !finished(tally)) usleep(100);
}

/* --- publishing ------------------------------------------------------------------------------------ */

static inline void set_number(const struct job *job, int64_t number) { memcpy(job->payload + 8, &number, sizeof number); }

struct publishing {
    const struct job *job;
    const struct queue_client *client;
    struct tally *tally; /* NULL: nobody consumes */
    void *publisher;
    long sent, confirmed;
};

static inline void publish_now(struct publishing *p, long count) {
    p->client->publish(p->publisher, p->job, p->job->first + p->sent, count);
    p->sent += count;
    if (p->tally) p->tally->published = p->sent;
}

static inline void confirm_all(struct publishing *p) {
    while (p->confirmed < p->sent) p->confirmed += p->client->confirmed(p->publisher, 1);
}

static inline long smaller(long a, long b) { return a < b ? a : b; }

/* As fast as it is confirmed, and as fast as the consumers follow. */
static inline void publish_all(struct publishing *p, int64_t start) {
    const struct job *job = p->job;
    while (p->sent < job->count && seconds_since(start) < job->seconds) {
        long allowed = smaller(job->count - p->sent, job->window - (p->sent - p->confirmed));
        if (p->tally) allowed = smaller(allowed, job->ahead - (p->sent - p->tally->done));
        if (allowed > 0) publish_now(p, allowed);
        if (p->confirmed < p->sent)
            p->confirmed += p->client->confirmed(p->publisher, 1);
        else
            usleep(100);
    }
    confirm_all(p);
}

static inline void publish_paced(struct publishing *p, int64_t start) {
    const struct job *job = p->job;
    for (long i = 0; p->sent < job->count && seconds_since(start) < job->seconds; i++) {
        stamp(job->payload, pace(start, i, (int)job->rate));
        publish_now(p, 1);
        p->confirmed += p->client->confirmed(p->publisher, 0);
    }
    confirm_all(p);
}

/* --- commands -------------------------------------------------------------------------------------- */

struct consumer {
    pthread_t thread;
    const struct queue_client *client;
    struct tally *tally;
    int number;
};

static inline void *consumer_body(void *argument) {
    struct consumer *consumer = argument;
    consumer->client->consume(consumer->tally, consumer->number);
    return NULL;
}

static inline struct consumer *start_consumers(const struct queue_client *client, struct tally *tally) {
    struct consumer *consumers = calloc((size_t)tally->job->consumers, sizeof *consumers);
    for (int i = 0; i < tally->job->consumers; i++) {
        consumers[i] = (struct consumer){.client = client, .tally = tally, .number = i};
        consumers[i].thread = start_thread(consumer_body, &consumers[i]);
    }
    consumer_ready(tally);
    return consumers;
}

/* Publishes one message and waits until it is done; answers how many were, for there may be a backlog. */
static inline long warm_up(struct publishing *p) {
    int64_t begun = now_ns();
    stamp(p->job->payload, begun);
    publish_now(p, 1);
    confirm_all(p);
    while (!p->tally->done) {
        if (seconds_since(begun) > DRAIN_SECONDS) die("the first message did not come");
        usleep(1000);
    }
    return p->tally->done;
}

static inline void answer_flow(struct tally *tally, int64_t start, long warm) {
    if (tally->duplicates) die("%ld messages came twice", (long)tally->duplicates);
    if (tally->job->rate)
        answer_latency(&tally->samples);
    else
        answer(tally->end_done - warm, (double)(tally->end_ns - start) / 1e9);
}

static inline void flow(const struct job *job, const struct queue_client *client) {
    struct tally tally = {0};
    tally_new(&tally, job);
    struct publishing p = {job, client, &tally, client->publisher(job), 0, 0};
    struct consumer *consumers = start_consumers(client, &tally);
    long warm = warm_up(&p);

    int64_t start = now_ns();
    if (job->rate)
        publish_paced(&p, start);
    else
        publish_all(&p, start);
    tally.deadline_ns = now_ns() + DRAIN_SECONDS * 1000000000ll;
    tally.target = p.sent;
    note_end(&tally);
    for (int i = 0; i < job->consumers; i++) pthread_join(consumers[i].thread, NULL);
    answer_flow(&tally, start, warm);
}

static inline void fill(const struct job *job, const struct queue_client *client) {
    struct publishing p = {job, client, NULL, client->publisher(job), 0, 0};
    int64_t start = now_ns();
    publish_all(&p, start);
    answer(p.sent, seconds_since(start));
}

/* --- main ------------------------------------------------------------------------------------------ */

static inline int set_text(struct job *job, const char *name, const char *value) {
    if (!strcmp(name, "kind")) return job->kind = value, 1;
    if (!strcmp(name, "acks")) return job->single = !strcmp(value, "single"), 1;
    if (!strcmp(name, "seconds")) return job->seconds = atof(value), 1;
    return 0;
}

static inline int set_number_option(struct job *job, const char *name, long value) {
    const struct { const char *name; long *at; } numbers[] = {
        {"count", &job->count},   {"first", &job->first},         {"ahead", &job->ahead},
        {"size", &job->size},     {"consumers", &job->consumers}, {"window", &job->window},
        {"batch", &job->batch},   {"rate", &job->rate},           {"every", &job->every},
        {"delay_ms", &job->delay_ms}, {"connections", &job->connections},
        {"kafka", &job->kafka},   {"frame", &job->frame},         {"partitions", &job->partitions},
        {"replicas", &job->replicas},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!strcmp(name, numbers[i].name)) return *numbers[i].at = value, 1;
    return 0;
}

static inline void set_option(struct job *job, char *word) {
    char *value = strchr(word, '=');
    if (!value) die("%s is not NAME=VALUE", word);
    *value++ = 0;
    if (!set_text(job, word, value) && !set_number_option(job, word, atol(value))) die("there is no option %s", word);
}

static inline void queue_run(const struct job *job, const struct queue_client *client) {
    if (!strcmp(job->command, "create"))
        client->create(job), answer(0, 0);
    else if (!strcmp(job->command, "drop"))
        client->drop(job), answer(0, 0);
    else if (!strcmp(job->command, "fill"))
        fill(job, client);
    else if (!strcmp(job->command, "flow") || !strcmp(job->command, "latency"))
        flow(job, client);
    else if (!strcmp(job->command, "hold") && client->hold)
        client->hold(job);
    else
        die("this client does not know %s", job->command);
}

static inline struct job read_job(int argc, char **argv) {
    if (argc < 4) die("usage: %s PORT COMMAND QUEUE [NAME=VALUE …]", argv[0]);
    struct job job = {.port = atoi(argv[1]), .command = argv[2], .queue = argv[3], .kind = "", .count = 1000,
                      .ahead = 10000, .size = 100, .consumers = 1, .window = 1000, .batch = 200, .every = 1, .seconds = 10,
                      .connections = 1, .frame = 100, .partitions = 1, .replicas = 1};
    for (int i = 4; i < argc; i++) set_option(&job, argv[i]);
    if (job.size < NUMBERED || job.size > 1 << 20) die("size is %d bytes to 1 MB", NUMBERED);
    if (job.consumers < 1 || job.window < 1 || job.batch < 1 || job.every < 1) die("consumers, window, batch, every: at least 1");
    if (!strcmp(job.command, "latency") && (job.consumers != 1 || job.rate < 1)) die("latency needs a rate and one consumer");
    job.payload = malloc((size_t)job.size);
    for (int i = 0; i < job.size; i++) job.payload[i] = (char)('a' + i % 26);
    prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0); /* 50 µs of slack would blur a latency of 100 µs */
    return job;
}

static inline int queue_main(int argc, char **argv, const struct queue_client *client) {
    struct job job = read_job(argc, argv);
    queue_run(&job, client);
    return 0;
}

#endif
