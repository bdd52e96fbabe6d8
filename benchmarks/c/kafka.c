/* The benchmark's Kafka client, on librdkafka. Arguments and answers: see bench.h.
 *
 *     cc -O2 -o kafka kafka.c -lrdkafka -lpthread
 *     ./kafka 9092 create t && ./kafka 9092 produce t 400000 1024 5 0 && ./kafka 9092 consume t 400000 1024 5
 *
 * acks=all throughout. produce with PARAM 0 leaves batching to librdkafka's defaults; with PARAM n > 0 every
 * message is a request of its own (linger.ms=0, batch.num.messages=1) and n requests are in flight, on each
 * connection: a cluster's client has one for each leader.
 *
 * gap answers {"messages": n, "gap_ms": g}: the longest time between two acknowledgements of an idempotent producer.
 * transact and bursts send PARAM messages at a time, in a transaction or without one, and wait for the end of each: one
 * producer for each of PARTITIONS, all at once.
 * leader answers {"node": id, "port": p, "in_sync": n}.
 */
#include "bench.h"
#include <librdkafka/rdkafka.h>

#define BATCH 1000        /* messages handed to librdkafka, or taken from it, at once */
#define WAIT_MS 15000     /* until a topic is created, a warm-up message is acknowledged */
#define QUEUE_MAX 1000000 /* messages that wait in librdkafka's own queue */

static char bootstrap[64];
static volatile long failed; /* messages that were not delivered, counted by the delivery report */

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
    (void)rk, (void)opaque;
    if (message->err) failed++;
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value) {
    char error[256];
    if (rd_kafka_conf_set(conf, name, value, error, sizeof error)) die("%s: %s", name, error);
}

static void set_number(rd_kafka_conf_t *conf, const char *name, long value) {
    char text[32];
    snprintf(text, sizeof text, "%ld", value);
    set(conf, name, text);
}

/* BENCH_KAFKA: more settings of librdkafka, name=value, one on each line. Not as arguments: one is a password. */
static void set_from_environment(rd_kafka_conf_t *conf) {
    const char *given = getenv("BENCH_KAFKA");
    char *lines = strdup(given ? given : ""), *rest = lines, *line;
    while ((line = strsep(&rest, "\n"))) {
        char *value = strchr(line, '=');
        if (!value) continue;
        *value = '\0';
        set(conf, line, value + 1);
    }
    free(lines);
}

static rd_kafka_conf_t *conf_for(const struct run *run) {
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    snprintf(bootstrap, sizeof bootstrap, "127.0.0.1:%d", run->port);
    set(conf, "bootstrap.servers", bootstrap);
    set(conf, "socket.nagle.disable", "true");
    set(conf, "log_level", "3");
    set_from_environment(conf);
    return conf;
}

static rd_kafka_t *client_new(rd_kafka_type_t type, rd_kafka_conf_t *conf) {
    char error[256];
    rd_kafka_t *rk = rd_kafka_new(type, conf, error, sizeof error);
    if (!rk) die("%s", error);
    return rk;
}

/* in_flight 0: librdkafka's own batching. Otherwise that many requests, and max_batch messages in each. */
static rd_kafka_t *producer_new(const struct run *run, int in_flight, int max_batch) {
    rd_kafka_conf_t *conf = conf_for(run);
    set(conf, "acks", "all");
    set(conf, "delivery.report.only.error", "true");
    set_number(conf, "queue.buffering.max.messages", QUEUE_MAX);
    set_number(conf, "queue.buffering.max.kbytes", 1 << 20);
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    if (in_flight) {
        set(conf, "linger.ms", "0");
        set_number(conf, "batch.num.messages", max_batch);
        set_number(conf, "max.in.flight", in_flight);
    }
    return client_new(RD_KAFKA_PRODUCER, conf);
}

static void flush(rd_kafka_t *rk) {
    if (rd_kafka_flush(rk, WAIT_MS * 4)) die("%d messages were not acknowledged", rd_kafka_outq_len(rk));
    if (failed) die("%ld messages were refused", failed);
}

static void send_to(rd_kafka_t *rk, rd_kafka_topic_t *topic, int partition, const void *payload, int size, int flags) {
    while (rd_kafka_produce(topic, partition, flags, (void *)payload, (size_t)size, NULL, 0, NULL)) {
        if (rd_kafka_last_error() != RD_KAFKA_RESP_ERR__QUEUE_FULL)
            die("produce: %s", rd_kafka_err2str(rd_kafka_last_error()));
        rd_kafka_poll(rk, 10);
    }
}

static void send_one(rd_kafka_t *rk, rd_kafka_topic_t *topic, const void *payload, int size, int flags) {
    send_to(rk, topic, 0, payload, size, flags);
}

static void produce(const struct run *run) {
    rd_kafka_t *rk = producer_new(run, run->param, 1);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, run->topic, NULL);
    send_one(rk, topic, run->payload, run->size, 0); /* connects, asks for metadata */
    flush(rk);

    rd_kafka_message_t batch[BATCH];
    long sent = 0, backlog_max = run->param ? 2 * BATCH : QUEUE_MAX;
    int64_t start = now_ns();
    while (sent < run->count && seconds_since(start) < run->seconds) {
        /* A full queue would be sent long after the time is up: with few requests in flight keep it short. */
        if (rd_kafka_outq_len(rk) > backlog_max - BATCH) {
            rd_kafka_poll(rk, 1);
            continue;
        }
        int n = run->count - sent < BATCH ? (int)(run->count - sent) : BATCH;
        memset(batch, 0, sizeof(batch[0]) * (size_t)n);
        for (int i = 0; i < n; i++) {
            batch[i].payload = run->payload, batch[i].len = (size_t)run->size;
            batch[i].partition = i % run->partitions;
        }
        sent += rd_kafka_produce_batch(topic, 0, RD_KAFKA_MSG_F_PARTITION, batch, n);
        rd_kafka_poll(rk, 0);
    }
    flush(rk);
    answer(sent, seconds_since(start));
    rd_kafka_topic_destroy(topic);
    rd_kafka_destroy(rk);
}

static rd_kafka_t *consumer_new(const struct run *run) {
    rd_kafka_conf_t *conf = conf_for(run);
    set(conf, "enable.partition.eof", "false");
    set_number(conf, "queued.min.messages", 1000000); /* or librdkafka pauses fetching for a second */
    set_number(conf, "queued.max.messages.kbytes", 2000000);
    return client_new(RD_KAFKA_CONSUMER, conf);
}

/* The clock starts with the first batch that arrives, which is not counted. */
static void consume(const struct run *run) {
    rd_kafka_t *rk = consumer_new(run);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, run->topic, NULL);
    rd_kafka_message_t *batch[BATCH];
    long received = 0, first = 0;
    int64_t start = now_ns(), begun = start;
    if (rd_kafka_consume_start(topic, 0, 0)) die("consume: %s", rd_kafka_err2str(rd_kafka_last_error()));
    while (received < run->count && seconds_since(begun) < run->seconds) {
        ssize_t n = rd_kafka_consume_batch(topic, 0, 100, batch, BATCH);
        if (n < 0) die("consume: %s", rd_kafka_err2str(rd_kafka_last_error()));
        for (ssize_t i = 0; i < n; i++) {
            if (batch[i]->err) die("consume: %s", rd_kafka_message_errstr(batch[i]));
            rd_kafka_message_destroy(batch[i]);
        }
        if (n && !first) first = n, start = now_ns();
        received += n;
    }
    answer(received - first, seconds_since(start));
    rd_kafka_consume_stop(topic, 0);
    rd_kafka_topic_destroy(topic);
    rd_kafka_destroy(rk);
}

struct receiver {
    const struct run *run;
    struct samples samples;
    volatile long received;
};

static void *receive_latency(void *argument) {
    struct receiver *receiver = argument;
    const struct run *run = receiver->run;
    rd_kafka_t *rk = consumer_new(run);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, run->topic, NULL);
    int64_t begun = now_ns();
    if (rd_kafka_consume_start(topic, 0, 0)) die("consume: %s", rd_kafka_err2str(rd_kafka_last_error()));
    while (receiver->received <= run->count && seconds_since(begun) < run->seconds) {
        rd_kafka_message_t *message = rd_kafka_consume(topic, 0, 100);
        if (!message) continue;
        if (message->err) die("consume: %s", rd_kafka_message_errstr(message));
        sample(&receiver->samples, message->payload);
        rd_kafka_message_destroy(message);
        receiver->received++;
    }
    rd_kafka_consume_stop(topic, 0);
    rd_kafka_topic_destroy(topic);
    rd_kafka_destroy(rk);
    return NULL;
}

/* linger 0, five requests in flight: a message leaves at once while fewer are under way. */
static void latency(const struct run *run) {
    struct receiver receiver = {run, samples_new(run->count + 1), 0};
    rd_kafka_t *rk = producer_new(run, 5, 10000);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, run->topic, NULL);
    stamp(run->payload, now_ns());
    send_one(rk, topic, run->payload, run->size, RD_KAFKA_MSG_F_COPY);
    flush(rk);
    pthread_t thread = start_thread(receive_latency, &receiver);
    while (!receiver.received) usleep(1000);

    int64_t start = now_ns();
    for (long i = 0; i < run->count && seconds_since(start) < run->seconds; i++) {
        stamp(run->payload, pace(start, i, run->param));
        send_one(rk, topic, run->payload, run->size, RD_KAFKA_MSG_F_COPY);
    }
    flush(rk);
    pthread_join(thread, NULL);
    answer_latency(&receiver.samples);
    rd_kafka_topic_destroy(topic);
    rd_kafka_destroy(rk);
}

/* --- transactions ---------------------------------------------------------------------------------- */

static void check(rd_kafka_error_t *error) {
    if (error) die("transaction: %s", rd_kafka_error_string(error));
}

struct burster {
    const struct run *run;
    pthread_barrier_t *warm;
    int number, transactional;
    long sent;
    double seconds;
};

static void burst(const struct burster *burster, rd_kafka_t *rk, rd_kafka_topic_t *topic) {
    const struct run *run = burster->run;
    if (burster->transactional) check(rd_kafka_begin_transaction(rk));
    for (int i = 0; i < run->param; i++) send_to(rk, topic, burster->number, run->payload, run->size, 0);
    if (burster->transactional) check(rd_kafka_commit_transaction(rk, WAIT_MS));
    else flush(rk);
    if (failed) die("%ld messages were refused", failed);
}

/* The first burst, which is not counted, connects and asks for metadata. */
static void *send_bursts(void *argument) {
    struct burster *burster = argument;
    const struct run *run = burster->run;
    rd_kafka_conf_t *conf = conf_for(run);
    char id[300];
    snprintf(id, sizeof id, "%s-%d", run->topic, burster->number);
    set(conf, "enable.idempotence", "true");
    if (burster->transactional) set(conf, "transactional.id", id);
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    rd_kafka_t *rk = client_new(RD_KAFKA_PRODUCER, conf);
    if (burster->transactional) check(rd_kafka_init_transactions(rk, WAIT_MS));
    rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, run->topic, NULL);
    burst(burster, rk, topic);
    pthread_barrier_wait(burster->warm);
    int64_t start = now_ns();
    for (long count = run->count / run->partitions; burster->sent < count && seconds_since(start) < run->seconds;
         burster->sent += run->param)
        burst(burster, rk, topic);
    burster->seconds = seconds_since(start);
    rd_kafka_topic_destroy(topic);
    rd_kafka_destroy(rk);
    return NULL;
}

static void all_bursts(const struct run *run, int transactional) {
    struct burster bursters[run->partitions];
    pthread_t threads[run->partitions];
    pthread_barrier_t warm;
    pthread_barrier_init(&warm, NULL, (unsigned)run->partitions + 1);
    for (int i = 0; i < run->partitions; i++) {
        bursters[i] = (struct burster){.run = run, .warm = &warm, .number = i, .transactional = transactional};
        threads[i] = start_thread(send_bursts, &bursters[i]);
    }
    pthread_barrier_wait(&warm);
    long sent = 0;
    double seconds = 0;
    for (int i = 0; i < run->partitions; i++) {
        pthread_join(threads[i], NULL);
        sent += bursters[i].sent;
        if (bursters[i].seconds > seconds) seconds = bursters[i].seconds;
    }
    answer(sent, seconds);
}

static void transact(const struct run *run) { all_bursts(run, 1); }
static void bursts(const struct run *run) { all_bursts(run, 0); }

/* --- the death of a leader ------------------------------------------------------------------------- */

static int64_t acknowledged_ns, gap_ns;

static void on_acknowledged(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
    (void)rk, (void)opaque;
    int64_t now = now_ns();
    if (message->err) die("a message was lost: %s", rd_kafka_err2str(message->err));
    if (acknowledged_ns && now - acknowledged_ns > gap_ns) gap_ns = now - acknowledged_ns;
    acknowledged_ns = now;
}

/* Nothing is sent after SECONDS; the gap ends with the next acknowledgement, whenever that comes. */
static void gap(const struct run *run) {
    rd_kafka_conf_t *conf = conf_for(run);
    set(conf, "log_level", "0"); /* of a server that dies it would complain */
    set(conf, "enable.idempotence", "true");
    set(conf, "linger.ms", "0");
    rd_kafka_conf_set_dr_msg_cb(conf, on_acknowledged);
    rd_kafka_t *rk = client_new(RD_KAFKA_PRODUCER, conf);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, run->topic, NULL);
    int64_t start = now_ns();
    long sent = 0;
    for (; seconds_since(start) < run->seconds; sent++) {
        send_one(rk, topic, run->payload, run->size, RD_KAFKA_MSG_F_COPY);
        int64_t due = start + (int64_t)((double)(sent + 1) * 1e9 / run->param);
        do rd_kafka_poll(rk, 1);
        while (now_ns() < due);
    }
    flush(rk);
    printf("{\"messages\": %ld, \"gap_ms\": %.1f}\n", sent, (double)gap_ns / 1e6);
    rd_kafka_topic_destroy(topic);
    rd_kafka_destroy(rk);
}

static int port_of(const rd_kafka_metadata_t *metadata, int node) {
    for (int i = 0; i < metadata->broker_cnt; i++)
        if (metadata->brokers[i].id == node) return metadata->brokers[i].port;
    return 0;
}

static void leader(const struct run *run) {
    const rd_kafka_metadata_t *metadata;
    rd_kafka_t *rk = client_new(RD_KAFKA_PRODUCER, conf_for(run));
    rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, run->topic, NULL);
    rd_kafka_resp_err_t error = rd_kafka_metadata(rk, 0, topic, &metadata, WAIT_MS);
    if (error) die("metadata: %s", rd_kafka_err2str(error));
    if (metadata->topics[0].err) die("metadata: %s", rd_kafka_err2str(metadata->topics[0].err));
    const rd_kafka_metadata_partition_t *partition = &metadata->topics[0].partitions[0];
    printf("{\"node\": %d, \"port\": %d, \"in_sync\": %d}\n", partition->leader, port_of(metadata, partition->leader),
           partition->isr_cnt);
    rd_kafka_metadata_destroy(metadata);
    rd_kafka_topic_destroy(topic);
    rd_kafka_destroy(rk);
}

/* --- topics ---------------------------------------------------------------------------------------- */

static void check_topics(const rd_kafka_topic_result_t **results, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (rd_kafka_topic_result_error(results[i])) die("%s", rd_kafka_topic_result_error_string(results[i]));
}

static rd_kafka_event_t *wait_for(rd_kafka_queue_t *queue) {
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, WAIT_MS);
    if (!event) die("no answer within %d ms", WAIT_MS);
    if (rd_kafka_event_error(event)) die("%s", rd_kafka_event_error_string(event));
    return event;
}

static void create(const struct run *run) {
    char error[256];
    size_t count;
    rd_kafka_t *rk = client_new(RD_KAFKA_PRODUCER, conf_for(run));
    rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
    int replicas = run->param ? run->param : 1;
    rd_kafka_NewTopic_t *topic = rd_kafka_NewTopic_new(run->topic, run->partitions, replicas, error, sizeof error);
    rd_kafka_CreateTopics(rk, &topic, 1, NULL, queue);
    rd_kafka_event_t *event = wait_for(queue);
    const rd_kafka_CreateTopics_result_t *result = rd_kafka_event_CreateTopics_result(event);
    const rd_kafka_topic_result_t **topics = rd_kafka_CreateTopics_result_topics(result, &count);
    check_topics(topics, count);
    rd_kafka_event_destroy(event);
    rd_kafka_NewTopic_destroy(topic);
    rd_kafka_queue_destroy(queue);
    rd_kafka_destroy(rk);
    answer(0, 0);
}

static void drop(const struct run *run) {
    size_t count;
    rd_kafka_t *rk = client_new(RD_KAFKA_PRODUCER, conf_for(run));
    rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
    rd_kafka_DeleteTopic_t *topic = rd_kafka_DeleteTopic_new(run->topic);
    rd_kafka_DeleteTopics(rk, &topic, 1, NULL, queue);
    rd_kafka_event_t *event = wait_for(queue);
    const rd_kafka_DeleteTopics_result_t *result = rd_kafka_event_DeleteTopics_result(event);
    const rd_kafka_topic_result_t **topics = rd_kafka_DeleteTopics_result_topics(result, &count);
    check_topics(topics, count);
    rd_kafka_event_destroy(event);
    rd_kafka_DeleteTopic_destroy(topic);
    rd_kafka_queue_destroy(queue);
    rd_kafka_destroy(rk);
    answer(0, 0);
}

int main(int argc, char **argv) {
    const struct client client = {.create = create, .drop = drop, .produce = produce, .consume = consume, .latency = latency,
                                  .gap = gap, .leader = leader, .transact = transact, .bursts = bursts};
    return bench_main(argc, argv, &client);
}
