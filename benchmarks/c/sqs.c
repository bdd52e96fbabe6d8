/* The benchmark's client for whatever speaks Amazon's SQS protocol (AWS JSON 1.0), over plain sockets: Postroad's
 * gateway, moto's server, ElasticMQ. Arguments: see queue.h.
 *
 *     cc -O2 -o sqs sqs.c
 *     ./sqs 8080 create q && ./sqs 8080 flow q count=10000 connections=16 batch=10
 *
 *     create, drop  as in queue.h
 *     send          SendMessage (batch=1) or SendMessageBatch on CONNECTIONS connections, one request at a time on each
 *     flow          the same, and ReceiveMessage and DeleteMessage (or its batch) too: a connection that is free takes
 *                   messages if as many as a request may bring are there for nobody else, and sends otherwise; what it
 *                   took it deletes next. Ends when all that was sent has been deleted
 *
 * The answer has also the percentiles of all requests: {"messages": n, "seconds": s, "p50_us": a, "p99_us": b}. Requests are
 * not signed: the signature is a constant, which none of these servers checks as they are started here.
 */
#define _GNU_SOURCE
#include "http.h"
#include "queue.h"

#define BATCH_MAX 10
#define NUMBER_DIGITS 16 /* that a body begins with */
#define RECEIPT_MAX 4096
#define WAIT_SECONDS 1 /* a receive's; there are messages when it is asked */
#define REGION "us-east-1"

/* --- one request --------------------------------------------------------------------------------- */

static const char *headers_of(const char *action) {
    static char headers[512];
    snprintf(headers, sizeof headers,
             "Content-Type: application/x-amz-json-1.0\r\nX-Amz-Target: AmazonSQS.%s\r\n"
             "Authorization: AWS4-HMAC-SHA256 Credential=bench/20260101/" REGION "/sqs/aws4_request, "
             "SignedHeaders=host, Signature=0000000000000000000000000000000000000000000000000000000000000000\r\n",
             action);
    return headers;
}

/* Behind `"name": "` in a JSON text, from `at` on; NULL if it is not there. */
static const char *find_string(const char *at, const char *name) {
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\"", name);
    if (!(at = strstr(at, quoted))) return NULL;
    at += strlen(quoted);
    at += strspn(at, ": ");
    return *at == '"' ? at + 1 : NULL;
}

static void check(const char *action, struct http_answer got) {
    const char *failed = strstr(got.body, "\"Failed\"");
    if (got.status != 200) die("%s was answered with status %d: %.200s", action, got.status, got.body);
    if (failed && failed[8 + strspn(failed + 8, ": [")] != ']') die("%s failed in part: %.200s", action, failed);
}

/* A request about a queue by its name; answers with the queue's URL, if the answer has one. */
static char *ask(const struct job *job, struct http *http, const char *action) {
    struct text body = {0};
    text_print(&body, "{\"QueueName\":\"%s\"}", job->queue);
    struct http_answer got = http_call(http, headers_of(action), &body);
    check(action, got);
    const char *url = find_string(got.body, "QueueUrl");
    if (!url) die("%s was answered without a URL: %.200s", action, got.body);
    free(body.data);
    return strndup(url, strcspn(url, "\""));
}

static void create(const struct job *job) {
    struct http http = http_new(job->port, -1, NULL);
    ask(job, &http, "CreateQueue");
    answer(0, 0);
}

static void drop(const struct job *job) {
    struct http http = http_new(job->port, -1, NULL);
    struct text body = {0};
    text_print(&body, "{\"QueueUrl\":\"%s\"}", ask(job, &http, "GetQueueUrl"));
    check("DeleteQueue", http_call(&http, headers_of("DeleteQueue"), &body));
    answer(0, 0);
}

/* --- the load ------------------------------------------------------------------------------------ */

enum state { FREE, SENDING, RECEIVING, DELETING };

struct worker {
    struct http http;
    enum state state;
    int64_t began;
    long messages; /* that its request is about */
};

struct load {
    const struct job *job;
    char *url;
    int poll, with_receives;
    struct worker *workers;
    struct text body;
    struct samples samples;
    uint8_t *seen;
    long numbered;            /* messages that were ever begun to be sent */
    long sent, deleted;       /* confirmed */
    long waiting;             /* sent, and no receive has been asked for them */
    long busy;                /* workers that wait for an answer */
    int64_t start, end, last; /* sending ends; the last answer */
};

static void post(struct load *load, struct worker *worker, enum state state, const char *action) {
    worker->state = state;
    worker->began = now_ns();
    load->busy++;
    http_post(&worker->http, headers_of(action), &load->body);
}

static void add_message(struct load *load) {
    const struct job *job = load->job;
    text_print(&load->body, "\"MessageBody\":\"%0*ld", NUMBER_DIGITS, load->numbered++);
    text_add(&load->body, job->payload, (size_t)job->size - NUMBER_DIGITS);
    text_add(&load->body, "\"", 1);
}

static void send_messages(struct load *load, struct worker *worker) {
    worker->messages = smaller(load->job->batch, load->job->count - load->numbered);
    if (load->job->batch == 1) {
        text_add(&load->body, ",", 1);
        add_message(load);
    } else {
        text_print(&load->body, ",\"Entries\":[");
        for (long i = 0; i < worker->messages; i++) {
            text_print(&load->body, "%s{\"Id\":\"%ld\",", i ? "," : "", i);
            add_message(load);
            text_add(&load->body, "}", 1);
        }
        text_add(&load->body, "]", 1);
    }
    text_add(&load->body, "}", 1);
    post(load, worker, SENDING, load->job->batch == 1 ? "SendMessage" : "SendMessageBatch");
}

static void receive_messages(struct load *load, struct worker *worker) {
    worker->messages = smaller(load->job->batch, load->waiting);
    load->waiting -= worker->messages;
    text_print(&load->body, ",\"MaxNumberOfMessages\":%ld,\"WaitTimeSeconds\":%d}", worker->messages, WAIT_SECONDS);
    post(load, worker, RECEIVING, "ReceiveMessage");
}

/* The next thing for a worker that is free, if there is any. */
static void go_on(struct load *load, struct worker *worker) {
    const struct job *job = load->job;
    int sending = now_ns() < load->end && load->numbered < job->count;
    load->body.length = 0;
    text_print(&load->body, "{\"QueueUrl\":\"%s\"", load->url);
    worker->state = FREE;
    if (load->with_receives && load->waiting && (load->waiting >= job->batch || !sending))
        receive_messages(load, worker);
    else if (sending)
        send_messages(load, worker);
}

/* --- answers ------------------------------------------------------------------------------------- */

static void count_message(struct load *load, const char *body) {
    char digits[NUMBER_DIGITS + 1] = {0};
    memcpy(digits, body, NUMBER_DIGITS);
    long number = atol(digits);
    if (number < 0 || number >= load->numbered) die("message %ld, which nobody sent", number);
    if (load->seen[number]++) die("message %ld came twice", number);
}

static void add_receipt(struct load *load, const char *receipt, long index) {
    size_t length = strcspn(receipt, "\"");
    if (length > RECEIPT_MAX || memchr(receipt, '\\', length)) die("a receipt handle that this client can't write: %.100s", receipt);
    if (load->job->batch > 1) text_print(&load->body, "%s{\"Id\":\"%ld\",", index ? "," : "", index);
    text_print(&load->body, "\"ReceiptHandle\":\"%.*s\"", (int)length, receipt);
    if (load->job->batch > 1) text_add(&load->body, "}", 1);
}

/* Deletes what the answer brought; 0 if it brought nothing. */
static long delete_messages(struct load *load, struct worker *worker, const char *answer) {
    long got = 0, bodies = 0, single = load->job->batch == 1;
    load->body.length = 0;
    text_print(&load->body, "{\"QueueUrl\":\"%s\",%s", load->url, single ? "" : "\"Entries\":[");
    for (const char *at = answer; (at = find_string(at, "ReceiptHandle")); got++) add_receipt(load, at, got);
    for (const char *at = answer; (at = find_string(at, "Body")); bodies++) count_message(load, at);
    if (got != bodies || got > worker->messages) die("%ld messages were asked for: %.200s", worker->messages, answer);
    load->waiting += worker->messages - got;
    worker->messages = got;
    text_print(&load->body, "%s}", single ? "" : "]");
    if (got) post(load, worker, DELETING, single ? "DeleteMessage" : "DeleteMessageBatch");
    return got;
}

static void take_answer(struct load *load, struct worker *worker, struct http_answer got) {
    static const char *names[] = {"nothing", "SendMessage", "ReceiveMessage", "DeleteMessage"};
    check(names[worker->state], got);
    load->busy--;
    load->last = now_ns();
    if (load->samples.count < load->samples.capacity) load->samples.ns[load->samples.count++] = load->last - worker->began;
    if (worker->state == RECEIVING && delete_messages(load, worker, got.body)) return;
    if (worker->state == SENDING) load->sent += worker->messages, load->waiting += worker->messages;
    if (worker->state == DELETING) load->deleted += worker->messages;
    go_on(load, worker);
}

/* --- a run --------------------------------------------------------------------------------------- */

static int is_over(const struct load *load) {
    int drained = !load->with_receives || load->deleted == load->sent;
    return !load->busy && drained && (now_ns() >= load->end || load->numbered >= load->job->count);
}

static void wake_free_workers(struct load *load) {
    for (long i = 0; i < load->job->connections; i++)
        if (load->workers[i].state == FREE) go_on(load, &load->workers[i]);
}

static void run_events(struct load *load) {
    struct epoll_event events[64];
    while (!is_over(load)) {
        int count = epoll_wait(load->poll, events, 64, 1000);
        for (int i = 0; i < count; i++) {
            struct worker *worker = events[i].data.ptr;
            struct http_answer got;
            receive(&worker->http.in, MSG_DONTWAIT);
            if (http_take(&worker->http, &got)) take_answer(load, worker, got);
        }
        wake_free_workers(load);
        if (now_ns() > load->end + DRAIN_SECONDS * 1000000000ll)
            die("%ld of %ld messages were not deleted", load->sent - load->deleted, load->sent);
    }
}

/* Every connection has been used once, so that connecting is not measured. */
static struct load load_new(const struct job *job, int with_receives) {
    struct load load = {.job = job, .poll = epoll_create1(0), .with_receives = with_receives};
    load.workers = calloc((size_t)job->connections, sizeof *load.workers);
    load.seen = calloc((size_t)job->count, 1);
    load.samples = samples_new(3 * job->count);
    if (load.poll < 0 || !load.workers || !load.seen) die("no memory for the load");
    for (long i = 0; i < job->connections; i++) {
        struct worker *worker = &load.workers[i];
        worker->http = http_new(job->port, load.poll, worker);
        free(load.url);
        load.url = ask(job, &worker->http, "GetQueueUrl");
    }
    return load;
}

static void answer_load(struct load *load) {
    struct samples *s = &load->samples;
    long messages = load->with_receives ? load->deleted : load->sent;
    if (!s->count) die("nothing was answered");
    qsort(s->ns, (size_t)s->count, sizeof *s->ns, by_value);
    printf("{\"messages\": %ld, \"seconds\": %.6f, \"p50_us\": %.1f, \"p99_us\": %.1f}\n", messages,
           (double)(load->last - load->start) / 1e9, (double)s->ns[s->count / 2] / 1e3,
           (double)s->ns[s->count * 99 / 100] / 1e3);
}

static void run_load(const struct job *job, int with_receives) {
    struct load load = load_new(job, with_receives);
    load.start = load.last = now_ns();
    load.end = load.start + (int64_t)(job->seconds * 1e9);
    wake_free_workers(&load);
    run_events(&load);
    answer_load(&load);
}

int main(int argc, char **argv) {
    struct job job = read_job(argc, argv);
    if (job.batch > BATCH_MAX) job.batch = BATCH_MAX;
    if (job.size < NUMBER_DIGITS || job.connections < 1) die("size: at least %d; connections: at least 1", NUMBER_DIGITS);
    if (!strcmp(job.command, "create"))
        create(&job);
    else if (!strcmp(job.command, "drop"))
        drop(&job);
    else if (!strcmp(job.command, "send") || !strcmp(job.command, "flow"))
        run_load(&job, !strcmp(job.command, "flow"));
    else
        die("this client does not know %s", job.command);
    return 0;
}
