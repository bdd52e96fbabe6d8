/* The benchmark's client for subscriptions: share groups of Postroad and of Apache Kafka, over plain sockets.
 * Arguments and answers: see queue.h. A queue is a topic with one partition and a subscription of the same name.
 *
 *     cc -O2 -o share share.c -lpthread
 *     ./share 9092 create q && ./share 9092 flow q count=200000 consumers=8 acks=single
 *
 * The publisher sends batches of at most BATCH messages, within the window that all queue clients have. A consumer has
 * one ShareFetch under way, which carries the acknowledgements for what the last one brought: a range for each
 * range that was acquired or, with acks=single, one for each message. The checksum of one batch in CRC_EVERY is
 * verified. With delay_ms every message carries the header that Postroad delays it by.
 */
#include "queue.h"
#include "share.h"

#define WAIT_MS 100 /* a long poll; also after which a consumer looks whether the run is over */
#define CRC_EVERY 64
#define HEADER_DELAY "postroad-delay-ms"

static void create(const struct job *job) {
    struct link *link = link_new(job->port);
    create_topic(link, job->queue);
    find_coordinator(link, job->queue);
    set_group_config(link, job->queue, "share.auto.offset.reset", "earliest");
}

static void drop(const struct job *job) {
    struct link *link = link_new(job->port);
    delete_group(link, job->queue);
    delete_topic(link, job->queue);
}

/* --- publishing ------------------------------------------------------------------------------------ */

struct publisher {
    struct link *link;
    char delay[24]; /* empty: no header */
    long batches[1 << 16]; /* messages in each request, by correlation */
    long answered;
};

static void *publisher(const struct job *job) {
    struct publisher *p = calloc(1, sizeof *p);
    char id[16];
    p->link = link_new(job->port);
    find_topic(p->link, job->queue, id); /* so that there is a leader */
    if (job->delay_ms) snprintf(p->delay, sizeof p->delay, "%ld", job->delay_ms);
    return p;
}

static void put_headers(struct frame *f, const char *delay) {
    put_varint(f, *delay ? 1 : 0);
    if (!*delay) return;
    put_varint(f, sizeof HEADER_DELAY - 1), put_bytes(f, HEADER_DELAY, sizeof HEADER_DELAY - 1);
    put_varint(f, (int)strlen(delay)), put_bytes(f, delay, strlen(delay));
}

static int headers_bytes(const char *delay) {
    return *delay ? 1 + 1 + (int)sizeof HEADER_DELAY - 1 + 1 + (int)strlen(delay) : 1;
}

static void put_record(struct frame *f, const struct job *job, const char *delay, int delta) {
    int size = (int)job->size;
    put_varint(f, 1 + 1 + varint_bytes(delta) + 1 + varint_bytes(size) + size + headers_bytes(delay));
    put8(f, 0), put_varint(f, 0), put_varint(f, delta), put_varint(f, -1), put_varint(f, size);
    put_bytes(f, job->payload, (size_t)size);
    put_headers(f, delay);
}

static void put_batch(struct frame *f, const struct job *job, const char *delay, long first, long count) {
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

static void publish_batch(struct publisher *p, const struct job *job, long first, long count) {
    struct frame *f = &p->link->out;
    begin(f, PRODUCE, 7);
    put16(f, -1), put16(f, -1), put32(f, TIMEOUT_MS); /* no transaction, acks=all */
    put32(f, 1), put_string(f, job->queue), put32(f, 1), put32(f, 0);
    size_t size_at = f->length;
    put32(f, 0);
    put_batch(f, job, p->delay, first, count);
    set32(f->data + size_at, (uint32_t)(f->length - f->batch));
    link_send(p->link);
    p->batches[p->link->correlation % (1 << 16)] = count;
}

static void publish(void *publisher, const struct job *job, long first, long count) {
    for (long n; count; first += n, count -= n) publish_batch(publisher, job, first, n = smaller(count, job->batch));
}

static long confirmed(void *publisher, int wait) {
    struct publisher *p = publisher;
    long fresh = 0;
    size_t length;
    const char *body;
    receive(&p->link->in, wait ? 0 : MSG_DONTWAIT);
    while ((body = take(&p->link->in, &length))) {
        int error = get16(body + 4 + 4 + 2 + get16(body + 8) + 4 + 4);
        if (error) die("produce was answered with error %d", error);
        fresh += p->batches[get32(body) % (1 << 16)];
    }
    return fresh;
}

/* --- consuming ------------------------------------------------------------------------------------- */

struct range {
    int64_t first, last;
};

/* What a consumer holds: the ranges that it acquired, and how many messages of them are new to the tally. */
struct held {
    struct range *ranges;
    uint32_t count, capacity;
    long messages, fresh;
};

static void hold_range(struct held *held, int64_t first, int64_t last) {
    if (held->count == held->capacity) {
        held->capacity = held->capacity ? 2 * held->capacity : 1024;
        held->ranges = realloc(held->ranges, held->capacity * sizeof *held->ranges);
        if (!held->ranges) die("no memory for %u ranges", held->capacity);
    }
    held->ranges[held->count++] = (struct range){first, last};
    held->messages += last - first + 1;
}

static void check_crc(const char *batch, size_t length) {
    static atomic_long batches;
    if (batches++ % CRC_EVERY) return;
    if (crc32c(batch + BATCH_CRC + 4, length - BATCH_CRC - 4) != (uint32_t)get32(batch + BATCH_CRC))
        die("a batch came with a wrong checksum");
}

/* Counts the records of a batch that lie in the acquired ranges, from range *at on. */
static void take_batch(struct tally *tally, struct held *held, uint32_t *at, const char *batch) {
    int64_t base = get64(batch);
    const char *record = batch + BATCH_HEADER;
    for (int32_t count = get32(batch + BATCH_COUNT); count; count--) {
        int32_t length = take_varint(&record);
        const char *field = record + 1;
        take_varint(&field); /* the timestamp */
        int64_t offset = base + take_varint(&field);
        take_varint(&field); /* no key */
        int32_t size = take_varint(&field);
        while (*at < held->count && held->ranges[*at].last < offset) ++*at;
        if (*at < held->count && held->ranges[*at].first <= offset) held->fresh += took(tally, field, (size_t)size);
        record += length;
    }
}

/* Afterwards the consumer holds the ranges that were acquired, and only those. */
static void take_ranges(struct held *held, struct fetched got) {
    held->count = 0;
    held->messages = held->fresh = 0;
    while (got.ranges) {
        struct range r;
        next_range(&got, &r.first, &r.last);
        hold_range(held, r.first, r.last);
    }
}

static void take_fetched(struct tally *tally, struct held *held, struct fetched got) {
    uint32_t at = 0;
    take_ranges(held, got);
    for (const char *batch = got.records; got.records_end - batch > BATCH_HEADER;) {
        size_t length = (size_t)get32(batch + BATCH_LENGTH) + 12;
        if ((size_t)(got.records_end - batch) < length) break;
        check_crc(batch, length);
        take_batch(tally, held, &at, batch);
        batch += length;
    }
}

static uint32_t entries(const struct held *held, int single) {
    return single ? (uint32_t)held->messages : held->count;
}

static void put_acknowledgements(struct member *m, const struct held *held, int single) {
    for (uint32_t i = 0; i < held->count; i++) {
        struct range r = held->ranges[i];
        if (!single) fetch_acknowledge(m, r.first, r.last);
        for (int64_t offset = r.first; single && offset <= r.last; offset++) fetch_acknowledge(m, offset, offset);
    }
}

/* Sends a ShareFetch that acknowledges all that is held. */
static void fetch(struct member *m, const struct held *held, int session_epoch, int single) {
    uint32_t count = entries(held, single);
    fetch_begin(m, session_epoch, session_epoch > 0 ? WAIT_MS : 0, session_epoch < 0 ? 0 : PREFETCH, count);
    put_acknowledgements(m, held, single);
    fetch_end(m, session_epoch == 0 || count);
    link_send(m->link);
}

static void consume(struct tally *tally, int number) {
    struct member m;
    struct held held = {0};
    int single = tally->job->single;
    (void)number;
    join(&m, tally->job->port, tally->job->queue);
    fetch(&m, &held, 0, single);
    take_fetched(tally, &held, fetch_wait(&m));
    consumer_ready(tally);
    for (int epoch = 1; !finished(tally); epoch++) {
        fetch(&m, &held, epoch, single);
        if (held.fresh) acknowledged(tally, held.fresh);
        turn(tally);
        take_fetched(tally, &held, fetch_wait(&m));
    }
    fetch(&m, &(struct held){0}, -1, single);
    fetch_wait(&m);
    leave(&m);
}

/* --- holding --------------------------------------------------------------------------------------- */

/* The offsets of `held` that are not kept, which is all but one in `every`. */
static uint32_t not_kept(struct member *m, const struct held *held, long every, int write) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < held->count; i++)
        for (int64_t offset = held->ranges[i].first; offset <= held->ranges[i].last; offset++) {
            if (offset % every == 0) continue;
            if (write) fetch_acknowledge(m, offset, offset);
            count++;
        }
    return count;
}

/* Takes until `count` messages are held; the last few may be more than one in `every`. */
static long hold_messages(struct member *m, const struct job *job) {
    struct held held = {0};
    int64_t begun = now_ns();
    long kept = 0;
    for (int epoch = 0; kept + held.messages < job->count; epoch++) {
        uint32_t count = not_kept(m, &held, job->every, 0);
        kept += held.messages - count;
        fetch_begin(m, epoch, WAIT_MS, (int)smaller(PREFETCH, job->count - kept), count);
        not_kept(m, &held, job->every, 1);
        fetch_end(m, epoch == 0 || count);
        link_send(m->link);
        take_ranges(&held, fetch_wait(m));
        if (seconds_since(begun) > job->seconds) die("only %ld messages could be held", kept + held.messages);
    }
    return kept + held.messages;
}

static void hold(const struct job *job) {
    struct member m;
    int64_t start = now_ns();
    join(&m, job->port, job->queue);
    long held = hold_messages(&m, job);
    answer(held, seconds_since(start));
    fflush(stdout);
    while (getchar() != EOF) {}
    leave(&m);
}

int main(int argc, char **argv) {
    const struct queue_client client = {create, drop, publisher, publish, confirmed, consume, hold};
    crc32c_init();
    return queue_main(argc, argv, &client);
}
