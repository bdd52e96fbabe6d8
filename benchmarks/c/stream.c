/* The benchmark's client for Postroad's push: messages come over a WebSocket, by credit, and are acknowledged there.
 * Arguments and answers: see queue.h; PORT is the gateway's, kafka=PORT that of the node, where messages are published.
 *
 *     cc -O2 -o stream stream.c -lpthread
 *     ./stream 8080 create q kafka=9092 && ./stream 8080 flow q kafka=9092 count=200000
 *
 * A consumer has a credit of PREFETCH messages, and grants anew what it has taken. It accepts every message by its id: all
 * that have arrived with one frame or, with acks=single, each with a frame of its own. The server puts at most FRAME
 * messages into a frame.
 */
#define _GNU_SOURCE
#include "publisher.h"
#include "websocket.h"

#define SUBPROTOCOL "postroad.v1.binary"
#define AS_CONFIGURED 0xFFFFFFFFll
#define MESSAGE_FIXED 36 /* bytes of a message before its topic: id, partition, offset, time, attempt, headers */

enum { CREDIT = 1, SETTLE_ACCEPT = 2, MESSAGES = 0x10 }; /* the first byte of a frame */

/* The subscription is there before its first consumer, which names no topics. */
static void create(const struct job *job) {
    create_subscription((int)job->kafka, job->queue, 1, 1);
    set_group_config(link_new((int)job->kafka), job->queue, "postroad.topics", job->queue);
}

static void drop(const struct job *job) { drop_subscription((int)job->kafka, job->queue); }

static void *publisher(const struct job *job) { return publisher_new((int)job->kafka, job); }

struct stream {
    struct tally *tally;
    struct inbox in;
    struct frame *out;
    int64_t ids[PREFETCH];
    long count, fresh; /* messages that have been taken and not yet accepted; those that are new to the tally */
};

/* --- what arrives -------------------------------------------------------------------------------- */

static void skip_sized(const char **at) {
    int32_t length = take32(at);
    if (length > 0) *at += length;
}

/* id i64, partition i32, offset i64, time i64, attempt i32, headers i32, topic, key, value, headers, receipt */
static const char *take_message(struct stream *s, const char *at) {
    if (s->count == PREFETCH) die("more messages than there was credit for");
    s->ids[s->count++] = get64(at);
    int32_t headers = get32(at + MESSAGE_FIXED - 4);
    at += MESSAGE_FIXED;
    at += 2 + get16(at); /* the topic */
    skip_sized(&at);     /* the key */
    int32_t length = take32(&at);
    s->fresh += took(s->tally, at, (size_t)length);
    at += length;
    for (; headers; headers--) skip_sized(&at), skip_sized(&at);
    return at + 2 + get16(at); /* no receipt is asked for, so it is empty */
}

static void take_frame(struct stream *s, struct arrived got) {
    size_t length = (size_t)(got.end - got.at);
    if (got.opcode == CLOSE) die("the server ends the stream: %.*s", (int)length - 2, got.at + 2);
    if (got.opcode == PING) put_head(s->out, PONG, length), put_bytes(s->out, got.at, length);
    if (got.opcode != BINARY) return;
    if (*got.at++ != MESSAGES) die("the server says: %.*s", (int)length - 1, got.at);
    while (got.at < got.end) got.at = take_message(s, got.at);
}

/* --- what is said -------------------------------------------------------------------------------- */

static void say_accept(struct frame *f, const int64_t *ids, long count) {
    put_head(f, BINARY, 9 + 8 * (size_t)count);
    put8(f, SETTLE_ACCEPT), put32(f, 0), put32(f, AS_CONFIGURED);
    for (long i = 0; i < count; i++) put64(f, ids[i]);
}

static void say_credit(struct frame *f, long messages) {
    put_head(f, BINARY, 5);
    put8(f, CREDIT), put32(f, messages);
}

/* Accepts what was taken, and grants as much again. */
static void accept_taken(struct stream *s) {
    if (s->tally->job->single)
        for (long i = 0; i < s->count; i++) say_accept(s->out, &s->ids[i], 1);
    else if (s->count)
        say_accept(s->out, s->ids, s->count);
    if (s->count) say_credit(s->out, s->count);
    if (s->out->length) send_all(s->in.fd, s->out->data, s->out->length);
    s->out->length = 0;
    if (s->fresh) acknowledged(s->tally, s->fresh);
    s->count = s->fresh = 0;
}

static void consume(struct tally *tally, int number) {
    const struct job *job = tally->job;
    struct stream s = {.tally = tally, .out = calloc(1, sizeof *s.out)};
    struct arrived got;
    char path[512];
    (void)number;
    snprintf(path, sizeof path, "/v1/subscriptions/%s/stream?batch=%ld&credit=%d", job->queue, job->frame, PREFETCH);
    s.in = socket_open(job->port, path, SUBPROTOCOL);
    consumer_ready(tally);
    while (!finished(tally)) {
        receive(&s.in, 0);
        while ((got = next_frame(&s.in)).end) take_frame(&s, got);
        accept_taken(&s);
        turn(tally);
    }
    put_head(s.out, CLOSE, 0);
    send_all(s.in.fd, s.out->data, s.out->length);
    close(s.in.fd);
}

int main(int argc, char **argv) {
    const struct queue_client client = {create, drop, publisher, publish, confirmed, consume, NULL};
    crc32c_init();
    return queue_main(argc, argv, &client);
}
