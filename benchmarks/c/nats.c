/* The benchmark's NATS JetStream client, over a plain socket (the protocol is lines of text).
 * Arguments and answers: see bench.h. A topic is a file-backed stream with one subject of the same name.
 *
 *     cc -O2 -o nats nats.c -lpthread
 *     ./nats 4222 create t && ./nats 4222 produce t 100000 1024 5 1000
 *
 * Every message is published with a reply subject and acknowledged by the server one by one, as JetStream's own
 * clients do (PARAM messages unacknowledged). Reading is a push consumer without acknowledgements and with flow
 * control, which is what their ordered consumer is.
 */
#include "nats.h"

#define DELIVER "_DELIVER.bench"

static void create(const struct run *run) {
    char json[512];
    struct nats n = connect_nats(run->port, REPLY);
    snprintf(json, sizeof json, "{\"name\":\"%s\",\"subjects\":[\"%s\"],\"storage\":\"file\",\"num_replicas\":1}",
             run->topic, run->topic);
    call(&n, json, "$JS.API.STREAM.CREATE.%s", run->topic);
    answer(0, 0);
}

static void drop(const struct run *run) {
    struct nats n = connect_nats(run->port, REPLY);
    call(&n, "", "$JS.API.STREAM.DELETE.%s", run->topic);
    answer(0, 0);
}

static void produce(const struct run *run) {
    struct nats n = connect_nats(run->port, REPLY);
    struct message m;
    put_publish(&n, run->topic, REPLY, run->payload, run->size), send_queued(&n), next(&n, &m);

    long sent = 0, acknowledged = 0;
    int64_t start = now_ns();
    for (int more = 1; more || acknowledged < sent;) {
        more = sent < run->count && seconds_since(start) < run->seconds;
        for (; more && sent < run->count && sent - acknowledged < run->param; sent++) {
            if (n.queued + (size_t)run->size + 256 > OUT_BYTES) send_queued(&n);
            put_publish(&n, run->topic, REPLY, run->payload, run->size);
        }
        if (n.queued) send_queued(&n);
        if (acknowledged < sent) receive(&n.in, 0);
        for (; take(&n, &m); acknowledged++) check_acknowledgement(&m);
    }
    answer(sent, seconds_since(start));
}

/* Asks for everything in the stream, from its start, to be pushed to DELIVER. */
static void start_consumer(const struct run *run) {
    char json[512];
    struct nats n = connect_nats(run->port, REPLY);
    snprintf(json, sizeof json,
             "{\"stream_name\":\"%s\",\"config\":{\"deliver_subject\":\"" DELIVER "\",\"deliver_policy\":\"all\","
             "\"ack_policy\":\"none\",\"flow_control\":true,\"idle_heartbeat\":5000000000}}", run->topic);
    call(&n, json, "$JS.API.CONSUMER.CREATE.%s", run->topic);
    close(n.fd);
}

/* True for a message of the stream; heartbeats and flow control (status messages) are answered here. */
static int is_data(struct nats *n, const struct message *m) {
    if (!m->headers) return 1;
    if (*m->reply) put_publish(n, m->reply, "", "", 0), send_queued(n);
    return 0;
}

static void consume(const struct run *run) {
    struct nats n = connect_nats(run->port, DELIVER);
    struct message m;
    long received = 0;
    int64_t begun = now_ns(), start;
    start_consumer(run);
    next(&n, &m);
    for (start = now_ns(); received < run->count - 1 && seconds_since(begun) < run->seconds;) {
        while (take(&n, &m)) received += is_data(&n, &m);
        if (received < run->count - 1) receive(&n.in, 0);
    }
    answer(received, seconds_since(start));
}

struct receiver {
    const struct run *run;
    struct samples samples;
    volatile long received;
};

static void *receive_latency(void *argument) {
    struct receiver *receiver = argument;
    struct nats n = connect_nats(receiver->run->port, DELIVER);
    struct message m;
    int64_t begun = now_ns();
    start_consumer(receiver->run);
    while (receiver->received <= receiver->run->count && seconds_since(begun) < receiver->run->seconds) {
        next(&n, &m);
        if (!is_data(&n, &m)) continue;
        sample(&receiver->samples, m.payload);
        receiver->received++;
    }
    return NULL;
}

static void latency(const struct run *run) {
    struct receiver receiver = {run, samples_new(run->count + 1), 0};
    struct nats n = connect_nats(run->port, REPLY);
    struct message m;
    long acknowledged = 0, sent = 0;
    stamp(run->payload, now_ns());
    put_publish(&n, run->topic, REPLY, run->payload, run->size), send_queued(&n), next(&n, &m);
    pthread_t thread = start_thread(receive_latency, &receiver);
    while (!receiver.received) usleep(1000);

    int64_t start = now_ns();
    for (; sent < run->count && seconds_since(start) < run->seconds; sent++) {
        stamp(run->payload, pace(start, sent, run->param));
        put_publish(&n, run->topic, REPLY, run->payload, run->size), send_queued(&n);
        receive(&n.in, MSG_DONTWAIT);
        for (; take(&n, &m); acknowledged++) check_acknowledgement(&m);
    }
    for (; acknowledged < sent; acknowledged++) next(&n, &m), check_acknowledgement(&m);
    pthread_join(thread, NULL);
    answer_latency(&receiver.samples);
}

int main(int argc, char **argv) {
    const struct client client = {.create = create, .drop = drop, .produce = produce, .consume = consume, .latency = latency,
                                  };
    return bench_main(argc, argv, &client);
}
