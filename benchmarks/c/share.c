/* The benchmark's client for subscriptions: share groups of Postroad and of Apache Kafka, over plain sockets.
 * Arguments and answers: see queue.h. A queue is a topic and a subscription of the same name. In a cluster there must be as
 * many consumers as nodes that lead a partition: each consumer fetches from one node.
 *
 *     cc -O2 -o share share.c -lpthread
 *     ./share 9092 create q && ./share 9092 flow q count=200000 consumers=8 acks=single
 *
 * The publisher is that of publisher.h. A consumer has one ShareFetch under way, which carries the acknowledgements for
 * what the last one brought: a range for each range that was acquired or, with acks=single, one for each message. The
 * checksum of one batch in CRC_EVERY is verified.
 */
#include "publisher.h"

#define WAIT_MS 100 /* a long poll; also after which a consumer looks whether the run is over */
#define CRC_EVERY 64

static void create(const struct job *job) {
    create_subscription(job->port, job->queue, job->partitions, job->replicas);
}

static void drop(const struct job *job) { drop_subscription(job->port, job->queue); }

static void *publisher(const struct job *job) { return publisher_new(job->port, job); }

/* --- consuming ------------------------------------------------------------------------------------- */

struct range {
    int partition;
    int64_t first, last;
};

/* What a consumer holds: the ranges that it acquired, those of a partition together, and how many messages of them are new to the tally. */
struct held {
    struct range *ranges;
    uint32_t count, capacity;
    long messages, fresh;
};

static void hold_range(struct held *held, int partition, int64_t first, int64_t last) {
    if (held->count == held->capacity) {
        held->capacity = held->capacity ? 2 * held->capacity : 1024;
        held->ranges = realloc(held->ranges, held->capacity * sizeof *held->ranges);
        if (!held->ranges) die("no memory for %u ranges", held->capacity);
    }
    held->ranges[held->count++] = (struct range){partition, first, last};
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

static void hold_nothing(struct held *held) { held->count = 0, held->messages = held->fresh = 0; }

static void take_ranges(struct held *held, struct fetched *got) {
    while (got->ranges) {
        int64_t first, last;
        next_range(got, &first, &last);
        hold_range(held, got->index, first, last);
    }
}

/* Afterwards the consumer holds the ranges that were acquired, and only those. */
static void take_fetched(struct tally *tally, struct held *held, struct fetched got) {
    hold_nothing(held);
    while (next_partition(&got)) {
        uint32_t at = held->count;
        take_ranges(held, &got);
        for (const char *batch = got.records; got.records_end - batch > BATCH_HEADER;) {
            size_t length = (size_t)get32(batch + BATCH_LENGTH) + 12;
            if ((size_t)(got.records_end - batch) < length) break;
            check_crc(batch, length);
            take_batch(tally, held, &at, batch);
            batch += length;
        }
    }
}

/* The end of the ranges that lie in the same partition as the one at `from`; *messages is how many are in them. */
static uint32_t partition_end(const struct held *held, uint32_t from, uint32_t *messages) {
    uint32_t at = from;
    for (*messages = 0; at < held->count && held->ranges[at].partition == held->ranges[from].partition; at++)
        *messages += (uint32_t)(held->ranges[at].last - held->ranges[at].first + 1);
    return at;
}

static uint32_t partitions_of(const struct held *held) {
    uint32_t count = 0, messages;
    for (uint32_t at = 0; at < held->count; at = partition_end(held, at, &messages)) count++;
    return count;
}

static void put_acknowledgements(struct member *m, const struct held *held, int single) {
    uint32_t end, messages;
    for (uint32_t at = 0; at < held->count; at = end, fetch_partition_end(m)) {
        end = partition_end(held, at, &messages);
        fetch_partition(m, held->ranges[at].partition, single ? messages : end - at);
        for (uint32_t i = at; i < end; i++) {
            struct range r = held->ranges[i];
            if (!single) fetch_acknowledge(m, r.first, r.last);
            for (int64_t offset = r.first; single && offset <= r.last; offset++) fetch_acknowledge(m, offset, offset);
        }
    }
}

/* Opens the session: all partitions are named once. */
static void fetch_first(struct member *m) {
    fetch_begin(m, 0, 0, PREFETCH, (uint32_t)m->count);
    for (int i = 0; i < m->count; i++) fetch_partition(m, m->partitions[i], 0), fetch_partition_end(m);
    fetch_end(m, (uint32_t)m->count);
    link_send(m->link);
}

/* Sends a ShareFetch that acknowledges all that is held. */
static void fetch(struct member *m, const struct held *held, int session_epoch, int single) {
    uint32_t named = partitions_of(held);
    fetch_begin(m, session_epoch, session_epoch > 0 ? WAIT_MS : 0, session_epoch < 0 ? 0 : PREFETCH, named);
    put_acknowledgements(m, held, single);
    fetch_end(m, named);
    link_send(m->link);
}

static void consume(struct tally *tally, int number) {
    struct member m;
    struct held held = {0};
    int single = tally->job->single;
    join(&m, tally->job->port, tally->job->queue, number);
    fetch_first(&m);
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
        uint32_t named = epoch == 0 || count;
        fetch_begin(m, epoch, WAIT_MS, (int)smaller(PREFETCH, job->count - kept), named);
        if (named) fetch_partition(m, 0, count), not_kept(m, &held, job->every, 1), fetch_partition_end(m);
        fetch_end(m, named);
        link_send(m->link);
        struct fetched got = fetch_wait(m);
        hold_nothing(&held);
        while (next_partition(&got)) take_ranges(&held, &got);
        if (seconds_since(begun) > job->seconds) die("only %ld messages could be held", kept + held.messages);
    }
    return kept + held.messages;
}

static void hold(const struct job *job) {
    struct member m;
    int64_t start = now_ns();
    join(&m, job->port, job->queue, 0);
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
