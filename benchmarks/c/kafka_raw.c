/* A minimal Kafka client: ready-made frames over a plain socket, so that next to nothing but the broker is measured.
 * Arguments and answers: see bench.h. Topics are created and dropped by the librdkafka client.
 *
 *     cc -O2 -o kafka_raw kafka_raw.c -lpthread
 *     ./kafka_raw 9092 produce t 50000 100 2 100     # 100 requests in flight, one message each
 *     ./kafka_raw 9092 latency t 2000 100 10 1000    # 1,000 messages a second
 *
 * Produce v7, acks=all, one topic, one partition, one batch of one record; Fetch v11 as a long poll. Layout of a
 * produce frame (all integers big-endian), with the offsets that `struct frame` remembers:
 *
 *     size key=0 version=7 correlation client-id=null transactional-id=null acks=-1 timeout
 *     [topic [partition=0 bytes  <batch>]]
 */
#include "kafka_bytes.h"

#define TIMEOUT_MS 30000
#define INBOX_BYTES (4 << 20)

enum { PRODUCE = 0, FETCH = 1 };

/* --- frames ---------------------------------------------------------------------------------------- */

static void put_record(struct frame *f, const struct run *run) {
    put_varint(f, 4 + varint_bytes(run->size) + run->size + 1);
    put8(f, 0), put_varint(f, 0), put_varint(f, 0), put_varint(f, -1), put_varint(f, run->size);
    f->value = f->length;
    put_bytes(f, run->payload, (size_t)run->size);
    put_varint(f, 0);
}

static void put_batch(struct frame *f, const struct run *run) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    int64_t ms = (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
    f->batch = f->length;
    put64(f, 0), put32(f, 0), put32(f, -1), put8(f, 2), put32(f, 0), put16(f, 0), put32(f, 0);
    put64(f, ms), put64(f, ms), put64(f, -1), put16(f, -1), put32(f, -1), put32(f, 1);
    put_record(f, run);
    set32(f->data + f->batch + BATCH_LENGTH, (uint32_t)(f->length - f->batch - 12));
    seal(f);
}

static struct frame *produce_frame(const struct run *run) {
    struct frame *f = calloc(1, sizeof *f);
    begin(f, PRODUCE, 7);
    put16(f, -1), put16(f, -1), put32(f, TIMEOUT_MS); /* no transaction, acks=all */
    put32(f, 1), put_string(f, run->topic), put32(f, 1), put32(f, 0);
    size_t size_at = f->length;
    put32(f, 0);
    put_batch(f, run);
    set32(f->data + size_at, (uint32_t)(f->length - f->batch));
    end(f);
    return f;
}

static void fetch_frame(struct frame *f, const struct run *run, int64_t offset) {
    begin(f, FETCH, 11);
    put32(f, -1), put32(f, 500), put32(f, 1), put32(f, INBOX_BYTES / 2), put8(f, 0); /* wait 500 ms for 1 byte */
    put32(f, 0), put32(f, -1);                                                       /* no fetch session */
    put32(f, 1), put_string(f, run->topic);
    put32(f, 1), put32(f, 0), put32(f, -1), put64(f, offset), put64(f, -1), put32(f, INBOX_BYTES / 2);
    put32(f, 0), put16(f, 0); /* nothing forgotten, no rack */
    end(f);
}

/* --- answers --------------------------------------------------------------------------------------- */

/* Takes all whole produce answers; each must be without an error. */
static long take_acknowledgements(struct inbox *in) {
    long taken = 0;
    size_t length;
    const char *body;
    while ((body = take(in, &length))) {
        int error = get16(body + 4 + 4 + 2 + get16(body + 8) + 4 + 4);
        if (error) die("produce was answered with error %d", error);
        taken++;
    }
    return taken;
}

static void produce(const struct run *run) {
    int fd = connect_local(run->port), window = run->param > 0 ? run->param : 1;
    struct inbox in = inbox_new(fd, 1 << 20);
    struct frame *frame = produce_frame(run);
    char *out = malloc(frame->length * (size_t)window);
    send_all(fd, frame->data, frame->length);
    while (!take_acknowledgements(&in)) receive(&in, 0);

    long sent = 0, acknowledged = 0, correlation = 0;
    int64_t start = now_ns();
    for (int more = 1; more || acknowledged < sent;) {
        size_t length = 0;
        more = sent < run->count && seconds_since(start) < run->seconds;
        for (; more && sent < run->count && sent - acknowledged < window; sent++) {
            set_correlation(frame, ++correlation);
            memcpy(out + length, frame->data, frame->length);
            length += frame->length;
        }
        if (length) send_all(fd, out, length);
        if (acknowledged < sent) receive(&in, 0);
        acknowledged += take_acknowledgements(&in);
    }
    answer(sent, seconds_since(start));
}

struct receiver {
    const struct run *run;
    struct samples samples;
    size_t value; /* where a record's value begins in its batch: every batch holds one record of one size */
    volatile long received;
};

/* Samples every batch of a fetch answer; answers the offset to fetch next. */
static int64_t take_batches(struct receiver *receiver, const char *body, int64_t offset) {
    const char *at = body + 4 + 4; /* correlation, throttle */
    if (get16(at)) die("fetch was answered with error %d", get16(at));
    at += 2 + 4; /* error, session */
    if (!get32(at)) return offset;
    at += 4;
    at += 2 + get16(at) + 4 + 4; /* topic, partitions, index */
    if (get16(at)) die("fetch of the partition was answered with error %d", get16(at));
    at += 2 + 8 + 8 + 8; /* error, high watermark, last stable offset, log start */
    int32_t aborted = get32(at);
    at += 4 + (aborted > 0 ? aborted * 16 : 0) + 4; /* preferred replica */
    const char *end_at = at + 4 + get32(at);
    for (at += 4; at + BATCH_HEADER < end_at && at + 12 + get32(at + BATCH_LENGTH) <= end_at;) {
        sample(&receiver->samples, at + receiver->value);
        receiver->received++;
        offset = get64(at) + 1;
        at += 12 + get32(at + BATCH_LENGTH);
    }
    return offset;
}

static void *receive_latency(void *argument) {
    struct receiver *receiver = argument;
    const struct run *run = receiver->run;
    int fd = connect_local(run->port);
    struct inbox in = inbox_new(fd, INBOX_BYTES);
    struct frame *frame = calloc(1, sizeof *frame);
    int64_t offset = 0, begun = now_ns();
    while (receiver->received <= run->count && seconds_since(begun) < run->seconds) {
        const char *body;
        size_t length;
        fetch_frame(frame, run, offset);
        send_all(fd, frame->data, frame->length);
        while (!(body = take(&in, &length))) receive(&in, 0);
        offset = take_batches(receiver, body, offset);
    }
    return NULL;
}

static void latency(const struct run *run) {
    int fd = connect_local(run->port);
    struct inbox in = inbox_new(fd, 1 << 20);
    struct frame *frame = produce_frame(run);
    struct receiver receiver = {run, samples_new(run->count + 1), frame->value - frame->batch, 0};
    stamp(frame->data + frame->value, now_ns()), seal(frame);
    send_all(fd, frame->data, frame->length);
    while (!take_acknowledgements(&in)) receive(&in, 0);
    pthread_t thread = start_thread(receive_latency, &receiver);
    while (!receiver.received) usleep(1000);

    long acknowledged = 0, sent = 0;
    int64_t start = now_ns();
    for (; sent < run->count && seconds_since(start) < run->seconds; sent++) {
        stamp(frame->data + frame->value, pace(start, sent, run->param)), seal(frame);
        set_correlation(frame, sent + 1);
        send_all(fd, frame->data, frame->length);
        receive(&in, MSG_DONTWAIT);
        acknowledged += take_acknowledgements(&in);
    }
    for (; acknowledged < sent; acknowledged += take_acknowledgements(&in)) receive(&in, 0);
    pthread_join(thread, NULL);
    answer_latency(&receiver.samples);
}

int main(int argc, char **argv) {
    const struct client client = {.produce = produce, .latency = latency};
    crc32c_init();
    return bench_main(argc, argv, &client);
}
