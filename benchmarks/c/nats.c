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
#define _GNU_SOURCE /* memmem */
#include "bench.h"

#define REPLY "_INBOX.bench"
#define DELIVER "_DELIVER.bench"
#define OUT_BYTES (8 << 20)

struct nats {
    int fd;
    struct inbox in;
    char *out; /* commands that wait to be sent together */
    size_t queued;
};

struct message {
    const char *reply; /* empty if none */
    int headers; /* bytes of headers before the payload */
    const char *payload; /* after the headers, if any */
    size_t length;
};

static void put(struct nats *n, const void *data, size_t length) {
    memcpy(n->out + n->queued, data, length);
    n->queued += length;
}

static void send_queued(struct nats *n) {
    send_all(n->fd, n->out, n->queued);
    n->queued = 0;
}

static void put_publish(struct nats *n, const char *subject, const char *reply, const void *payload, int size) {
    n->queued += (size_t)sprintf(n->out + n->queued, "PUB %s %s %d\r\n", subject, reply, size);
    put(n, payload, (size_t)size);
    put(n, "\r\n", 2);
}

/* Splits "MSG subject sid [reply] bytes" or "HMSG subject sid [reply] header-bytes bytes". */
static void parse_head(char *line, struct message *m) {
    char *words[8], *save = NULL;
    int count = 0, headers = line[0] == 'H';
    for (char *w = strtok_r(line, " \r\n", &save); w && count < 8; w = strtok_r(NULL, " \r\n", &save)) words[count++] = w;
    int numbers = headers ? 2 : 1, with_reply = count == 4 + numbers;
    m->reply = with_reply ? words[3] : "";
    m->headers = headers ? atoi(words[count - 2]) : 0;
}

/* Takes the next message from what has been received; 0 if none is whole yet. The message is valid until the next receive. */
static int take(struct nats *n, struct message *m) {
    struct inbox *in = &n->in;
    for (;;) {
        char *line = in->data + in->start, *end = memchr(line, '\n', in->end - in->start);
        if (!end) return 0;
        size_t head = (size_t)(end - line) + 1;
        if (!strncmp(line, "PING", 4)) {
            put(n, "PONG\r\n", 6), send_queued(n);
        } else if (line[0] == '-') {
            die("nats-server answered %.*s", (int)head - 2, line);
        } else if (!strncmp(line, "MSG ", 4) || !strncmp(line, "HMSG ", 5)) {
            const char *bytes = end;
            while (bytes[-1] != ' ') bytes--;
            size_t body = (size_t)atol(bytes);
            if (in->end - in->start < head + body + 2) return 0;
            *end = 0;
            parse_head(line, m);
            m->payload = end + 1 + m->headers;
            m->length = body - (size_t)m->headers;
            in->start += head + body + 2;
            return 1;
        }
        in->start += head;
    }
}

static void next(struct nats *n, struct message *m) {
    while (!take(n, m)) receive(&n->in, 0);
}

static struct nats connect_nats(const struct run *run, const char *subscribe) {
    struct nats n = {.fd = connect_local(run->port), .out = malloc(OUT_BYTES)};
    n.in = inbox_new(n.fd, 8 << 20);
    n.queued = (size_t)sprintf(n.out,
                               "CONNECT {\"verbose\":false,\"pedantic\":false,\"headers\":true,\"protocol\":1}\r\n"
                               "SUB %s 1\r\n", subscribe);
    send_queued(&n);
    return n;
}

/* A call of JetStream's own API: JSON to a subject, JSON back. */
static void call(struct nats *n, const char *json, const char *subject_format, const char *name) {
    char subject[256];
    struct message m;
    snprintf(subject, sizeof subject, subject_format, name);
    put_publish(n, subject, REPLY, json, (int)strlen(json));
    send_queued(n);
    next(n, &m);
    if (memmem(m.payload, m.length, "\"error\"", 7)) die("%s: %.*s", subject, (int)m.length, m.payload);
}

static void create(const struct run *run) {
    char json[512];
    struct nats n = connect_nats(run, REPLY);
    snprintf(json, sizeof json, "{\"name\":\"%s\",\"subjects\":[\"%s\"],\"storage\":\"file\",\"num_replicas\":1}",
             run->topic, run->topic);
    call(&n, json, "$JS.API.STREAM.CREATE.%s", run->topic);
    answer(0, 0);
}

static void drop(const struct run *run) {
    struct nats n = connect_nats(run, REPLY);
    call(&n, "", "$JS.API.STREAM.DELETE.%s", run->topic);
    answer(0, 0);
}

static void check_acknowledgement(const struct message *m) {
    if (memmem(m->payload, m->length, "\"error\"", 7) || m->headers) die("publish: %.*s", (int)m->length, m->payload);
}

static void produce(const struct run *run) {
    struct nats n = connect_nats(run, REPLY);
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
    struct nats n = connect_nats(run, REPLY);
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
    struct nats n = connect_nats(run, DELIVER);
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
    struct nats n = connect_nats(receiver->run, DELIVER);
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
    struct nats n = connect_nats(run, REPLY);
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
    const struct client client = {create, drop, produce, consume, latency};
    return bench_main(argc, argv, &client);
}
