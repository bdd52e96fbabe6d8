/* The benchmark's RabbitMQ client for queues, on librabbitmq. Arguments and answers: see queue.h.
 * kind=classic or kind=quorum; both durable, reached through the default exchange.
 *
 *     cc -O2 -o rabbitmq_queue rabbitmq_queue.c -lrabbitmq -lpthread
 *     ./rabbitmq_queue 5672 create q kind=quorum && ./rabbitmq_queue 5672 flow q count=20000 consumers=8 acks=single
 *
 * Messages are persistent and confirmed by the server. A consumer has up to PREFETCH messages under way; it
 * acknowledges each with a basic.ack of its own, or with multiple=true after ACK_EVERY and when no more wait.
 */
#include "queue.h"
#include "rabbitmq.h"

#define ACK_EVERY 100
#define IDLE_MS 50 /* after which a consumer looks whether the run is over */

static void create(const struct job *job) {
    amqp_connection_state_t rabbit = connect_rabbit(job->port);
    amqp_table_entry_t type = {amqp_cstring_bytes("x-queue-type"), {.kind = AMQP_FIELD_KIND_UTF8}};
    type.value.value.bytes = amqp_cstring_bytes(*job->kind ? job->kind : "classic");
    amqp_table_t arguments = {1, &type};
    amqp_queue_declare(rabbit, CHANNEL, amqp_cstring_bytes(job->queue), 0, 1, 0, 0, arguments);
    check(rabbit, "the queue");
    amqp_destroy_connection(rabbit);
}

static void drop(const struct job *job) {
    amqp_connection_state_t rabbit = connect_rabbit(job->port);
    amqp_queue_delete(rabbit, CHANNEL, amqp_cstring_bytes(job->queue), 0, 0);
    check(rabbit, "to delete the queue");
    amqp_destroy_connection(rabbit);
}

/* --- publishing ------------------------------------------------------------------------------------ */

/* Confirmations may come out of order: tags above `low` are marked in a ring, which is larger than any window. */
#define RING (1 << 20)

struct publisher {
    amqp_connection_state_t rabbit;
    uint64_t low; /* up to here all are confirmed */
    unsigned char above[RING];
};

static void *publisher(const struct job *job) {
    struct publisher *p = calloc(1, sizeof *p);
    if (!p || job->window >= RING) die("the window is too large");
    p->rabbit = publisher_new(job->port);
    return p;
}

static void publish_messages(void *publisher, const struct job *job, long first, long count) {
    struct publisher *p = publisher;
    for (long i = 0; i < count; i++) {
        set_number(job, first + i);
        publish(p->rabbit, job->queue, job->payload, (size_t)job->size);
    }
}

static long mark(struct publisher *p, const amqp_basic_ack_t *ack) {
    long fresh = 0;
    for (uint64_t tag = ack->multiple ? p->low + 1 : ack->delivery_tag; tag <= ack->delivery_tag; tag++) {
        fresh += !p->above[tag % RING];
        p->above[tag % RING] = 1;
    }
    while (p->above[(p->low + 1) % RING]) p->above[++p->low % RING] = 0;
    return fresh;
}

static long confirmed(void *publisher, int wait) {
    struct publisher *p = publisher;
    const struct timeval now = {0, 0};
    amqp_basic_ack_t ack;
    long fresh = 0;
    for (const struct timeval *timeout = wait ? NULL : &now; take_confirm(p->rabbit, &ack, timeout); timeout = &now)
        fresh += mark(p, &ack);
    return fresh;
}

/* --- consuming ------------------------------------------------------------------------------------- */

static amqp_connection_state_t consumer_new(const struct job *job) {
    amqp_connection_state_t rabbit = connect_rabbit(job->port);
    amqp_basic_qos(rabbit, CHANNEL, 0, PREFETCH, 0);
    check(rabbit, "the prefetch");
    amqp_basic_consume(rabbit, CHANNEL, amqp_cstring_bytes(job->queue), amqp_empty_bytes, 0, 0, 0, amqp_empty_table);
    check(rabbit, "to consume");
    return rabbit;
}

static void acknowledge(struct tally *tally, amqp_connection_state_t rabbit, uint64_t tag, int multiple, long fresh) {
    if (amqp_basic_ack(rabbit, CHANNEL, tag, multiple)) die("RabbitMQ closed the connection");
    acknowledged(tally, fresh);
}

static void consume(struct tally *tally, int number) {
    amqp_connection_state_t rabbit = consumer_new(tally->job);
    amqp_envelope_t envelope;
    uint64_t last = 0;
    long waiting = 0, fresh = 0; /* since the last acknowledgement */
    (void)number;
    consumer_ready(tally);
    while (!finished(tally)) {
        int idle_ms = waiting ? 0 : IDLE_MS;
        turn(tally);
        if (next(rabbit, &envelope, idle_ms)) {
            fresh += took(tally, envelope.message.body.bytes, envelope.message.body.len);
            last = envelope.delivery_tag;
            waiting++;
            amqp_destroy_envelope(&envelope);
            if (!tally->job->single && waiting < ACK_EVERY) continue;
        }
        if (waiting) acknowledge(tally, rabbit, last, !tally->job->single, fresh);
        waiting = fresh = 0;
    }
    amqp_channel_close(rabbit, CHANNEL, AMQP_REPLY_SUCCESS); /* answered after the acknowledgements before it */
    amqp_destroy_connection(rabbit);
}

int main(int argc, char **argv) {
    const struct queue_client client = {create, drop, publisher, publish_messages, confirmed, consume, NULL};
    return queue_main(argc, argv, &client);
}
