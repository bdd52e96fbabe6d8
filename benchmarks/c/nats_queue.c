/* The benchmark's NATS JetStream client for queues, over a plain socket. Arguments and answers: see queue.h.
 * A queue is a file-backed stream with work-queue retention and one durable pull consumer that all workers share.
 *
 *     cc -O2 -o nats_queue nats_queue.c -lpthread
 *     ./nats_queue 4222 create q && ./nats_queue 4222 flow q count=200000 consumers=8
 *
 * Every message is published with a reply subject and acknowledged by the server one by one. A worker asks for
 * PREFETCH messages and again whenever half of them have come. A work queue allows explicit acknowledgements only,
 * each a message of its own (JetStream's ack-all is refused), so acks=batch and acks=single are the same here: what
 * was received together is acknowledged with one write.
 */
#include "nats.h"
#include "queue.h"

#define WORKERS "workers" /* the durable consumer */
#define CONSUMERS_MAX 64

static void create(const struct job *job) {
    char json[512], subject[256];
    struct nats n = connect_nats(job->port, REPLY);
    snprintf(json, sizeof json,
             "{\"name\":\"%s\",\"subjects\":[\"%s\"],\"storage\":\"file\",\"num_replicas\":1,\"retention\":\"workqueue\"}",
             job->queue, job->queue);
    call(&n, json, "$JS.API.STREAM.CREATE.%s", job->queue);
    snprintf(json, sizeof json,
             "{\"stream_name\":\"%s\",\"config\":{\"durable_name\":\"" WORKERS "\",\"ack_policy\":\"explicit\","
             "\"deliver_policy\":\"all\",\"max_ack_pending\":%d}}", job->queue, CONSUMERS_MAX * PREFETCH);
    snprintf(subject, sizeof subject, "%s." WORKERS, job->queue);
    call(&n, json, "$JS.API.CONSUMER.DURABLE.CREATE.%s", subject);
}

static void drop(const struct job *job) {
    struct nats n = connect_nats(job->port, REPLY);
    call(&n, "", "$JS.API.STREAM.DELETE.%s", job->queue);
}

/* --- publishing ------------------------------------------------------------------------------------ */

static void *publisher(const struct job *job) {
    struct nats *n = malloc(sizeof *n);
    *n = connect_nats(job->port, REPLY);
    return n;
}

static void publish(void *publisher, const struct job *job, long first, long count) {
    struct nats *n = publisher;
    for (long i = 0; i < count; i++) {
        if (n->queued + (size_t)job->size + 256 > OUT_BYTES) send_queued(n);
        set_number(job, first + i);
        put_publish(n, job->queue, REPLY, job->payload, (int)job->size);
    }
    send_queued(n);
}

static long confirmed(void *publisher, int wait) {
    struct nats *n = publisher;
    struct message m;
    long fresh = 0;
    for (receive(&n->in, wait ? 0 : MSG_DONTWAIT); take(n, &m); fresh++) check_acknowledgement(&m);
    return fresh;
}

/* --- consuming ------------------------------------------------------------------------------------- */

struct worker {
    struct nats n;
    char subject[256], inbox[64];
    long asked; /* messages that may still come without asking again */
};

static void ask(struct worker *w) {
    char json[64];
    int length = snprintf(json, sizeof json, "{\"batch\":%ld}", PREFETCH - w->asked);
    put_publish(&w->n, w->subject, w->inbox, json, length);
    w->asked = PREFETCH;
}

static void worker_new(struct worker *w, const struct job *job, int number) {
    const struct timeval idle = {0, 50000}; /* after which a worker looks whether the run is over */
    snprintf(w->subject, sizeof w->subject, "$JS.API.CONSUMER.MSG.NEXT.%s." WORKERS, job->queue);
    snprintf(w->inbox, sizeof w->inbox, "_INBOX.worker.%d", number);
    w->n = connect_nats(job->port, w->inbox);
    setsockopt(w->n.fd, SOL_SOCKET, SO_RCVTIMEO, &idle, sizeof idle);
    w->asked = 0;
    ask(w), send_queued(&w->n);
}

/* Takes and acknowledges all that has been received. */
static void take_messages(struct worker *w, struct tally *tally) {
    struct message m;
    long fresh = 0;
    while (take(&w->n, &m)) {
        if (m.headers) die("nats-server answered %.*s", m.headers, m.payload - m.headers);
        fresh += took(tally, m.payload, m.length);
        put_publish(&w->n, m.reply, "", "+ACK", 4);
        w->asked--;
    }
    if (w->asked <= PREFETCH / 2) ask(w);
    if (w->n.queued) send_queued(&w->n);
    if (fresh) acknowledged(tally, fresh);
}

/* A round trip, so that no acknowledgement is still on its way. */
static void settle(struct worker *w) {
    put(&w->n, "PING\r\n", 6), send_queued(&w->n);
    while (!memmem(w->n.in.data + w->n.in.start, w->n.in.end - w->n.in.start, "PONG\r\n", 6)) receive(&w->n.in, 0);
    close(w->n.fd);
}

static void consume(struct tally *tally, int number) {
    struct worker w;
    if (tally->job->consumers > CONSUMERS_MAX) die("at most %d consumers", CONSUMERS_MAX);
    worker_new(&w, tally->job, number);
    consumer_ready(tally);
    while (!finished(tally)) {
        turn(tally);
        receive(&w.n.in, 0);
        take_messages(&w, tally);
    }
    settle(&w);
}

int main(int argc, char **argv) {
    const struct queue_client client = {create, drop, publisher, publish, confirmed, consume, NULL};
    return queue_main(argc, argv, &client);
}
