/* The benchmark's RabbitMQ client, on librabbitmq. Arguments and answers: see bench.h.
 * A topic is a durable classic queue, reached through the default exchange.
 *
 *     cc -O2 -o rabbitmq rabbitmq.c -lrabbitmq -lpthread
 *     ./rabbitmq 5672 create t && ./rabbitmq 5672 produce t 10000 1024 5 1000
 *
 * Messages are persistent and confirmed by the server (publisher confirms); PARAM of them unconfirmed. Reading is
 * basic.consume without acknowledgements.
 */
#include "bench.h"
#include <amqp.h>
#include <amqp_tcp_socket.h>
#include <sys/time.h>

#define CHANNEL 1

static amqp_connection_state_t connect_rabbit(const struct run *run) {
    int one = 1;
    amqp_connection_state_t rabbit = amqp_new_connection();
    amqp_socket_t *sock = amqp_tcp_socket_new(rabbit);
    if (!sock || amqp_socket_open(sock, "127.0.0.1", run->port)) die("can't connect to port %d", run->port);
    setsockopt(amqp_get_sockfd(rabbit), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    amqp_rpc_reply_t reply = amqp_login(rabbit, "/", 0, 131072, 0, AMQP_SASL_METHOD_PLAIN, "guest", "guest");
    if (reply.reply_type != AMQP_RESPONSE_NORMAL) die("RabbitMQ refused the login");
    if (!amqp_channel_open(rabbit, CHANNEL)) die("RabbitMQ opened no channel");
    return rabbit;
}

static void check(amqp_connection_state_t rabbit, const char *what) {
    amqp_rpc_reply_t reply = amqp_get_rpc_reply(rabbit);
    if (reply.reply_type != AMQP_RESPONSE_NORMAL) die("RabbitMQ refused %s", what);
}

static void create(const struct run *run) {
    amqp_connection_state_t rabbit = connect_rabbit(run);
    amqp_queue_declare(rabbit, CHANNEL, amqp_cstring_bytes(run->topic), 0, 1, 0, 0, amqp_empty_table);
    check(rabbit, "the queue");
    amqp_destroy_connection(rabbit);
    answer(0, 0);
}

static void drop(const struct run *run) {
    amqp_connection_state_t rabbit = connect_rabbit(run);
    amqp_queue_delete(rabbit, CHANNEL, amqp_cstring_bytes(run->topic), 0, 0);
    check(rabbit, "to delete the queue");
    amqp_destroy_connection(rabbit);
    answer(0, 0);
}

static amqp_connection_state_t publisher_new(const struct run *run) {
    amqp_connection_state_t rabbit = connect_rabbit(run);
    amqp_confirm_select(rabbit, CHANNEL);
    check(rabbit, "publisher confirms");
    return rabbit;
}

static void publish(amqp_connection_state_t rabbit, const struct run *run) {
    amqp_basic_properties_t properties = {._flags = AMQP_BASIC_DELIVERY_MODE_FLAG, .delivery_mode = 2};
    amqp_bytes_t body = {(size_t)run->size, run->payload};
    if (amqp_basic_publish(rabbit, CHANNEL, amqp_empty_bytes, amqp_cstring_bytes(run->topic), 0, 0, &properties, body))
        die("RabbitMQ closed the connection");
}

/* Takes one confirmation, which may stand for many messages; answers how many are confirmed in all. */
static long take_confirm(amqp_connection_state_t rabbit, long confirmed, const struct timeval *timeout) {
    amqp_frame_t frame;
    int status = amqp_simple_wait_frame_noblock(rabbit, &frame, timeout);
    if (status == AMQP_STATUS_TIMEOUT) return confirmed;
    if (status != AMQP_STATUS_OK) die("RabbitMQ: %s", amqp_error_string2(status));
    if (frame.frame_type != AMQP_FRAME_METHOD || frame.payload.method.id != AMQP_BASIC_ACK_METHOD)
        die("RabbitMQ did not confirm a message");
    amqp_basic_ack_t *ack = frame.payload.method.decoded;
    confirmed = ack->multiple ? (long)ack->delivery_tag : confirmed + 1;
    amqp_maybe_release_buffers(rabbit);
    return confirmed;
}

static void produce(const struct run *run) {
    amqp_connection_state_t rabbit = publisher_new(run);
    const struct timeval now = {0, 0};
    long sent = 1, confirmed = 0;
    publish(rabbit, run);
    while (confirmed < sent) confirmed = take_confirm(rabbit, confirmed, NULL);

    int64_t start = now_ns();
    for (int more = 1; more || confirmed < sent;) {
        more = sent <= run->count && seconds_since(start) < run->seconds;
        for (; more && sent <= run->count && sent - confirmed < run->param; sent++) publish(rabbit, run);
        if (confirmed < sent) confirmed = take_confirm(rabbit, confirmed, NULL);
        for (long before = -1; before != confirmed;) before = confirmed, confirmed = take_confirm(rabbit, before, &now);
    }
    answer(sent - 1, seconds_since(start));
}

static amqp_connection_state_t consumer_new(const struct run *run) {
    amqp_connection_state_t rabbit = connect_rabbit(run);
    amqp_basic_consume(rabbit, CHANNEL, amqp_cstring_bytes(run->topic), amqp_empty_bytes, 0, 1, 0, amqp_empty_table);
    check(rabbit, "to consume");
    return rabbit;
}

/* Waits up to a second for a message; 0 if none came. */
static int next(amqp_connection_state_t rabbit, amqp_envelope_t *envelope) {
    struct timeval second = {1, 0};
    amqp_maybe_release_buffers(rabbit);
    amqp_rpc_reply_t reply = amqp_consume_message(rabbit, envelope, &second, 0);
    if (reply.reply_type == AMQP_RESPONSE_NORMAL) return 1;
    if (reply.library_error != AMQP_STATUS_TIMEOUT) die("RabbitMQ: %s", amqp_error_string2(reply.library_error));
    return 0;
}

static void consume(const struct run *run) {
    amqp_connection_state_t rabbit = consumer_new(run);
    amqp_envelope_t envelope;
    long received = 0;
    int64_t start = 0, begun = now_ns();
    while (received < run->count && seconds_since(begun) < run->seconds) {
        if (!next(rabbit, &envelope)) continue;
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
        if (!next(rabbit, &envelope)) continue;
        sample(&receiver->samples, envelope.message.body.bytes);
        amqp_destroy_envelope(&envelope);
        receiver->received++;
    }
    return NULL;
}

static void latency(const struct run *run) {
    struct receiver receiver = {run, samples_new(run->count + 1), 0};
    amqp_connection_state_t rabbit = publisher_new(run);
    const struct timeval now = {0, 0};
    long sent = 1, confirmed = 0;
    stamp(run->payload, now_ns());
    publish(rabbit, run);
    while (confirmed < sent) confirmed = take_confirm(rabbit, confirmed, NULL);
    pthread_t thread = start_thread(receive_latency, &receiver);
    while (!receiver.received) usleep(1000);

    int64_t start = now_ns();
    for (long i = 0; i < run->count && seconds_since(start) < run->seconds; i++, sent++) {
        stamp(run->payload, pace(start, i, run->param));
        publish(rabbit, run);
        confirmed = take_confirm(rabbit, confirmed, &now);
    }
    while (confirmed < sent) confirmed = take_confirm(rabbit, confirmed, NULL);
    pthread_join(thread, NULL);
    answer_latency(&receiver.samples);
}

int main(int argc, char **argv) {
    const struct client client = {create, drop, produce, consume, latency};
    return bench_main(argc, argv, &client);
}
