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
 *
 *     batch: base-offset i64, length i32, leader-epoch i32, magic=2, crc u32, attributes i16, last-offset-delta i32,
 *            base-timestamp i64, max-timestamp i64, producer i64, epoch i16, sequence i32, count=1 i32, record
 *     record: length, attributes, timestamp-delta, offset-delta, key=null, value-length, value, headers=0 (varints)
 */
#include "bench.h"

#define TIMEOUT_MS 30000
#define INBOX_BYTES (4 << 20)
#define BATCH_HEADER 61 /* bytes before the first record */
#define BATCH_CRC 17    /* where the checksum stands in a batch; it covers all that follows it */
#define BATCH_LENGTH 8

enum { PRODUCE = 0, FETCH = 1 };

struct frame {
    char data[2 << 20];
    size_t length, batch, value;
};

/* --- bytes ----------------------------------------------------------------------------------------- */

static void put8(struct frame *f, int v) { f->data[f->length++] = (char)v; }
static void put16(struct frame *f, int v) { put8(f, v >> 8), put8(f, v); }
static void put32(struct frame *f, int64_t v) { put16(f, (int)(v >> 16)), put16(f, (int)v); }
static void put64(struct frame *f, int64_t v) { put32(f, v >> 32), put32(f, v); }
static void put_bytes(struct frame *f, const void *data, size_t n) { memcpy(f->data + f->length, data, n), f->length += n; }
static void put_string(struct frame *f, const char *s) { put16(f, (int)strlen(s)), put_bytes(f, s, strlen(s)); }

static void put_varint(struct frame *f, int32_t value) {
    uint32_t zigzag = ((uint32_t)value << 1) ^ (uint32_t)(value >> 31);
    for (; zigzag >= 0x80; zigzag >>= 7) put8(f, (int)(zigzag | 0x80));
    put8(f, (int)zigzag);
}

static int varint_bytes(int32_t value) {
    int bytes = 1;
    for (uint32_t zigzag = (uint32_t)value << 1; zigzag >= 0x80; zigzag >>= 7) bytes++;
    return bytes;
}

static void set32(char *at, uint32_t v) { v = htonl(v), memcpy(at, &v, 4); }

static int32_t get32(const char *at) {
    uint32_t v;
    memcpy(&v, at, 4);
    return (int32_t)ntohl(v);
}

static int16_t get16(const char *at) { return (int16_t)((unsigned char)at[0] << 8 | (unsigned char)at[1]); }

static int64_t get64(const char *at) { return ((int64_t)get32(at) << 32) | (uint32_t)get32(at + 4); }

static uint32_t crc_table[256];

static void crc32c_init(void) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int bit = 0; bit < 8; bit++) c = c & 1 ? (c >> 1) ^ 0x82F63B78u : c >> 1;
        crc_table[i] = c;
    }
}

static uint32_t crc32c(const char *data, size_t length) {
    uint32_t c = ~0u;
    while (length--) c = crc_table[(c ^ (unsigned char)*data++) & 0xff] ^ (c >> 8);
    return ~c;
}

/* --- frames ---------------------------------------------------------------------------------------- */

static void begin(struct frame *f, int key, int version) {
    f->length = 4;
    put16(f, key), put16(f, version), put32(f, 0), put16(f, -1);
}

static void end(struct frame *f) { set32(f->data, (uint32_t)(f->length - 4)); }

static void set_correlation(struct frame *f, long id) { set32(f->data + 8, (uint32_t)id); }

static void put_record(struct frame *f, const struct run *run) {
    put_varint(f, 4 + varint_bytes(run->size) + run->size + 1);
    put8(f, 0), put_varint(f, 0), put_varint(f, 0), put_varint(f, -1), put_varint(f, run->size);
    f->value = f->length;
    put_bytes(f, run->payload, (size_t)run->size);
    put_varint(f, 0);
}

static void seal(struct frame *f) {
    char *batch = f->data + f->batch;
    size_t length = f->length - f->batch;
    set32(batch + BATCH_CRC, crc32c(batch + BATCH_CRC + 4, length - BATCH_CRC - 4));
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

/* The next whole answer in the inbox (after its size field), or NULL; *length is its length. */
static const char *take(struct inbox *in, size_t *length) {
    if (in->end - in->start < 4) return NULL;
    *length = (size_t)get32(in->data + in->start);
    if (in->end - in->start < 4 + *length) return NULL;
    const char *body = in->data + in->start + 4;
    in->start += 4 + *length;
    return body;
}

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
    const struct client client = {NULL, NULL, produce, NULL, latency};
    crc32c_init();
    return bench_main(argc, argv, &client);
}
