/* The benchmark's RabbitMQ client, on librabbitmq. Arguments and answers: see bench.h.
 * A topic is a durable classic queue, reached through the default exchange.
 *
 *     cc -O2 -o rabbitmq rabbitmq.c -lrabbitmq -lpthread
 *     ./rabbitmq 5672 create t && ./rabbitmq 5672 produce t 10000 1024 5 1000
 *
 * Messages are persistent and confirmed by the server (publisher confirms); PARAM of them unconfirmed. Reading is
 * basic.consume without acknowledgements.
 */
#include "rabbitmq.h"

static void create(const struct run *run) {
    amqp_connection_state_t rabbit = connect_rabbit(run->port);
    amqp_queue_declare(rabbit, CHANNEL, amqp_cstring_bytes(run->topic), 0, 1, 0, 0, amqp_empty_table);
    check(rabbit, "the queue");
    amqp_destroy_connection(rabbit);
    answer(0, 0);
}

static void drop(const struct run *run) {
    amqp_connection_state_t rabbit = connect_rabbit(run->port);
    amqp_queue_delete(rabbit, CHANNEL, amqp_cstring_bytes(run->topic), 0, 0);
    check(rabbit, "to delete the queue");
    amqp_destroy_connection(rabbit);
    answer(0, 0);
}

/* How many messages are confirmed in all, after one more confirmation. */
static long confirmed_after(amqp_connection_state_t rabbit, long confirmed, const struct timeval *timeout) {
    amqp_basic_ack_t ack;
    if (!take_confirm(rabbit, &ack, timeout)) return confirmed;
    return ack.multiple ? (long)ack.delivery_tag : confirmed + 1;
}

static void produce(const struct run *run) {
    amqp_connection_state_t rabbit = publisher_new(run->port);
    const struct timeval now = {0, 0};
    long sent = 1, confirmed = 0;
    publish(rabbit, run->topic, run->payload, (size_t)run->size);
    while (confirmed < sent) confirmed = confirmed_after(rabbit, confirmed, NULL);

    int64_t start = now_ns();
    for (int more = 1; more || confirmed < sent;) {
        more = sent <= run->count && seconds_since(start) < run->seconds;
        for (; more && sent <= run->count && sent - confirmed < run->param; sent++) publish(rabbit, run->topic, run->payload, (size_t)run->size);
        if (confirmed < sent) confirmed = confirmed_after(rabbit, confirmed, NULL);
        for (long before = -1; before != confirmed;) before = confirmed, confirmed = confirmed_after(rabbit, before, &now);
    }
    answer(sent - 1, seconds_since(start));
}

static amqp_connection_state_t consumer_new(const struct run *run) {
    amqp_connection_state_t rabbit = connect_rabbit(run->port);
    amqp_basic_consume(rabbit, CHANNEL, amqp_cstring_bytes(run->topic), amqp_empty_bytes, 0, 1, 0, amqp_empty_table);
    check(rabbit, "to consume");
    return rabbit;
}

static void consume(const struct run *run) {
    amqp_connection_state_t rabbit = consumer_new(run);
    amqp_envelope_t envelope;
    long received = 0;
    int64_t start = 0, begun = now_ns();
    while (received < run->count && seconds_since(begun) < run->seconds) {
        if (!next(rabbit, &envelope, 1000)) continue;
        amqp_destroy_envelope(&envelope);
        if (!received++) start = now_ns();
    }
    answer(received - 1, seconds_since(start));
}

struct receiver {
    const struct run *run;
    struct samples samples;
    volatile long received;
};

static void *receive_latency(void *argument) {
    struct receiver *receiver = argument;
    amqp_connection_state_t rabbit = consumer_new(receiver->run);
    amqp_envelope_t envelope;
    int64_t begun = now_ns();
    while (receiver->received <= receiver->run->count && seconds_since(begun) < receiver->run->seconds) {
        if (!next(rabbit, &envelope, 1000)) continue;
        sample(&receiver->samples, envelope.message.body.bytes);
        amqp_destroy_envelope(&envelope);
        receiver->received++;
    }
    return NULL;
}

static void latency(const struct run *run) {
    struct receiver receiver = {run, samples_new(run->count + 1), 0};
    amqp_connection_state_t rabbit = publisher_new(run->port);
    const struct timeval now = {0, 0};
    long sent = 1, confirmed = 0;
    stamp(run->payload, now_ns());
    publish(rabbit, run->topic, run->payload, (size_t)run->size);
    while (confirmed < sent) confirmed = confirmed_after(rabbit, confirmed, NULL);
    pthread_t thread = start_thread(receive_latency, &receiver);
    while (!receiver.received) usleep(1000);

    int64_t start = now_ns();
    for (long i = 0; i < run->count && seconds_since(start) < run->seconds; i++, sent++) {
        stamp(run->payload, pace(start, i, run->param));
        publish(rabbit, run->topic, run->payload, (size_t)run->size);
        confirmed = confirmed_after(rabbit, confirmed, &now);
    }
    while (confirmed < sent) confirmed = confirmed_after(rabbit, confirmed, NULL);
    pthread_join(thread, NULL);
    answer_latency(&receiver.samples);
}

int main(int argc, char **argv) {
    const struct client client = {.create = create, .drop = drop, .produce = produce, .consume = consume, .latency = latency,
                                  };
    return bench_main(argc, argv, &client);
}
