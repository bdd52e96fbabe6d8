/* The benchmark's Redis streams client, on hiredis. Arguments and answers: see bench.h. A topic is a stream.
 *
 *     cc -O2 -o redis redis.c -lhiredis -lpthread
 *     ./redis 6379 produce t 100000 1024 5 1000
 *
 * One XADD for each message, pipelined: PARAM of them unanswered. Reading is XREAD, 1,000 entries at a time, or
 * blocking for the latency.
 */
#include "bench.h"
#include <hiredis/hiredis.h>
#include <poll.h>

#define READ_COUNT 1000

static redisContext *connect_redis(const struct run *run) {
    int one = 1;
    redisContext *redis = redisConnect("127.0.0.1", run->port);
    if (!redis || redis->err) die("redis: %s", redis ? redis->errstr : "no memory");
    setsockopt(redis->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return redis;
}

static redisReply *checked(redisContext *redis, redisReply *reply) {
    if (!reply) die("redis: %s", redis->errstr);
    if (reply->type == REDIS_REPLY_ERROR) die("redis: %s", reply->str);
    return reply;
}

static void put_add(redisContext *redis, const struct run *run) {
    const char *words[] = {"XADD", run->topic, "*", "v", run->payload};
    const size_t lengths[] = {4, strlen(run->topic), 1, 1, (size_t)run->size};
    redisAppendCommandArgv(redis, 5, words, lengths);
}

static void send_queued(redisContext *redis) {
    for (int done = 0; !done;)
        if (redisBufferWrite(redis, &done)) die("redis: %s", redis->errstr);
}

/* Answers to commands that were sent; waits for one, then takes all that have arrived with it. */
static long take_replies(redisContext *redis) {
    long taken = 0;
    void *reply = NULL;
    while (!reply) {
        if (redisBufferRead(redis) || redisGetReplyFromReader(redis, &reply)) die("redis: %s", redis->errstr);
    }
    while (reply) {
        freeReplyObject(checked(redis, reply));
        taken++;
        if (redisGetReplyFromReader(redis, &reply)) die("redis: %s", redis->errstr);
    }
    return taken;
}

static void create(const struct run *run) {
    redisFree(connect_redis(run)); /* the first XADD makes the stream */
    answer(0, 0);
}

static void drop(const struct run *run) {
    redisContext *redis = connect_redis(run);
    freeReplyObject(checked(redis, redisCommand(redis, "DEL %s", run->topic)));
    answer(0, 0);
}

static void produce(const struct run *run) {
    redisContext *redis = connect_redis(run);
    long sent = 0, acknowledged = 0;
    put_add(redis, run), send_queued(redis), take_replies(redis);

    int64_t start = now_ns();
    for (int more = 1; more || acknowledged < sent;) {
        int queued = 0;
        more = sent < run->count && seconds_since(start) < run->seconds;
        for (; more && sent < run->count && sent - acknowledged < run->param; sent++, queued++) put_add(redis, run);
        if (queued) send_queued(redis);
        if (acknowledged < sent) acknowledged += take_replies(redis);
    }
    answer(sent, seconds_since(start));
}

/* Reads once after `last` (an entry's id, renewed here); calls `each` with every value. */
static long read_entries(redisContext *redis, const struct run *run, const char *options, char last[64],
                         void (*each)(void *, const char *), void *argument) {
    char command[256];
    snprintf(command, sizeof command, "XREAD COUNT %d %s STREAMS %s %s", READ_COUNT, options, run->topic, last);
    redisReply *reply = checked(redis, redisCommand(redis, command));
    if (reply->type == REDIS_REPLY_NIL) {
        freeReplyObject(reply);
        return 0;
    }
    redisReply *entries = reply->element[0]->element[1];
    for (size_t i = 0; each && i < entries->elements; i++)
        each(argument, entries->element[i]->element[1]->element[1]->str);
    snprintf(last, 64, "%s", entries->element[entries->elements - 1]->element[0]->str);
    long count = (long)entries->elements;
    freeReplyObject(reply);
    return count;
}

static void consume(const struct run *run) {
    redisContext *redis = connect_redis(run);
    char last[64] = "0";
    long received = 0, first = read_entries(redis, run, "", last, NULL, NULL);
    int64_t start = now_ns();
    while (received + first < run->count && seconds_since(start) < run->seconds)
        received += read_entries(redis, run, "", last, NULL, NULL);
    answer(received, seconds_since(start));
}

struct receiver {
    const struct run *run;
    struct samples samples;
    volatile long received;
};

static void keep(void *argument, const char *payload) {
    struct receiver *receiver = argument;
    sample(&receiver->samples, payload);
    receiver->received++;
}

static void *receive_latency(void *argument) {
    struct receiver *receiver = argument;
    redisContext *redis = connect_redis(receiver->run);
    char last[64] = "0";
    int64_t begun = now_ns();
    while (receiver->received <= receiver->run->count && seconds_since(begun) < receiver->run->seconds)
        read_entries(redis, receiver->run, "BLOCK 500", last, keep, receiver);
    return NULL;
}

static void latency(const struct run *run) {
    struct receiver receiver = {run, samples_new(run->count + 1), 0};
    redisContext *redis = connect_redis(run);
    stamp(run->payload, now_ns());
    put_add(redis, run), send_queued(redis), take_replies(redis);
    pthread_t thread = start_thread(receive_latency, &receiver);
    while (!receiver.received) usleep(1000);

    struct pollfd readable = {redis->fd, POLLIN, 0};
    long sent = 0, acknowledged = 0;
    int64_t start = now_ns();
    for (; sent < run->count && seconds_since(start) < run->seconds; sent++) {
        stamp(run->payload, pace(start, sent, run->param));
        put_add(redis, run), send_queued(redis);
        if (poll(&readable, 1, 0) > 0) acknowledged += take_replies(redis);
    }
    while (acknowledged < sent) acknowledged += take_replies(redis);
    pthread_join(thread, NULL);
    answer_latency(&receiver.samples);
}

int main(int argc, char **argv) {
    const struct client client = {.create = create, .drop = drop, .produce = produce, .consume = consume, .latency = latency,
                                  };
    return bench_main(argc, argv, &client);
}
