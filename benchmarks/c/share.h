/* Kafka's share groups (KIP-932) over a plain socket: one connection, one topic with one partition, and the requests
 * of a member. The subscription has the name of the topic. Errors end the program, but for those that a broker
 * answers while it loads a coordinator, which are tried again.
 */
#ifndef SHARE_H
#define SHARE_H

#include "kafka_bytes.h"

#define RETRY_SECONDS 30
#define RETRY_US 20000
#define TIMEOUT_MS 30000
#define INBOX_BYTES (32 << 20)
#define GROUP_RESOURCE 32
#define ACCEPT 1

enum {
    PRODUCE = 0, METADATA = 3, FIND_COORDINATOR = 10, CREATE_TOPICS = 19, DELETE_TOPICS = 20, DELETE_GROUPS = 42,
    INCREMENTAL_ALTER_CONFIGS = 44, SHARE_GROUP_HEARTBEAT = 76, SHARE_FETCH = 78,
};

struct link {
    struct inbox in;
    struct frame out;
    long correlation;
};

static inline struct link *link_new(int port) {
    struct link *link = calloc(1, sizeof *link);
    if (!link) die("no memory for a connection");
    link->in = inbox_new(connect_local(port), INBOX_BYTES);
    return link;
}

static inline void link_send(struct link *link) {
    end(&link->out);
    set_correlation(&link->out, ++link->correlation);
    send_all(link->in.fd, link->out.data, link->out.length);
}

/* The body of the next answer; valid until more is received. */
static inline const char *link_wait(struct link *link) {
    const char *body;
    size_t length;
    while (!(body = take(&link->in, &length))) receive(&link->in, 0);
    return body + 4;
}

static inline const char *call(struct link *link) { return link_send(link), link_wait(link); }

static inline const char *call_flexible(struct link *link) {
    const char *at = call(link);
    skip_tags(&at);
    return at;
}

/* True for an error that passes; ends the program for any other one. */
static inline int try_again(const char *what, int error, int64_t begun) {
    const int loading[] = {3, 5, 14, 15, 16, 41}; /* unknown topic, no leader, coordinator, controller */
    if (!error) return 0;
    for (size_t i = 0; i < sizeof loading / sizeof *loading; i++)
        if (error == loading[i] && seconds_since(begun) < RETRY_SECONDS) return usleep(RETRY_US), 1;
    die("%s was answered with error %d", what, error);
    return 0;
}

/* --- topics and subscriptions ---------------------------------------------------------------------- */

static inline void create_topic(struct link *link, const char *topic) {
    struct frame *f = &link->out;
    begin(f, CREATE_TOPICS, 4);
    put32(f, 1), put_string(f, topic), put32(f, 1), put16(f, 1), put32(f, 0), put32(f, 0);
    put32(f, TIMEOUT_MS), put8(f, 0);
    const char *at = call(link) + 4 + 4;
    at += 2 + get16(at);
    if (get16(at)) die("the topic was answered with error %d", get16(at));
}

static inline void delete_topic(struct link *link, const char *topic) {
    struct frame *f = &link->out;
    begin(f, DELETE_TOPICS, 3);
    put32(f, 1), put_string(f, topic), put32(f, TIMEOUT_MS);
    const char *at = call(link) + 4 + 4;
    at += 2 + get16(at);
    if (get16(at)) die("to delete the topic was answered with error %d", get16(at));
}

/* A subscription that still has members stays; it is nobody's any more. */
static inline void delete_group(struct link *link, const char *group) {
    begin(&link->out, DELETE_GROUPS, 1);
    put32(&link->out, 1), put_string(&link->out, group);
    call(link);
}

/* Kafka creates its internal topics when it is asked for a coordinator. */
static inline void find_coordinator(struct link *link, const char *group) {
    int64_t begun = now_ns();
    int error;
    do {
        begin(&link->out, FIND_COORDINATOR, 2);
        put_string(&link->out, group), put8(&link->out, 0);
        error = get16(call(link) + 4);
    } while (try_again("FindCoordinator", error, begun));
}

static inline void set_group_config(struct link *link, const char *group, const char *name, const char *value) {
    struct frame *f = &link->out;
    begin(f, INCREMENTAL_ALTER_CONFIGS, 0);
    put32(f, 1), put8(f, GROUP_RESOURCE), put_string(f, group);
    put32(f, 1), put_string(f, name), put8(f, 0), put_string(f, value), put8(f, 0);
    const char *at = call(link) + 4 + 4;
    if (get16(at)) die("%s=%s was answered with error %d", name, value, get16(at));
}

static inline void find_topic(struct link *link, const char *topic, char id[16]) {
    int64_t begun = now_ns();
    const char *at;
    int error;
    do {
        struct frame *f = &link->out;
        begin_flexible(f, METADATA, 12);
        put_uvarint(f, 2), put64(f, 0), put64(f, 0), put_compact(f, topic), put8(f, 0);
        put8(f, 0), put8(f, 0), put8(f, 0); /* no creation, no operations, no tags */
        at = call_flexible(link) + 4;
        for (uint32_t brokers = take_array(&at); brokers; brokers--)
            at += 4, skip_compact(&at), at += 4, skip_compact(&at), skip_tags(&at);
        skip_compact(&at), at += 4; /* cluster, controller */
        if (take_array(&at) != 1) die("Metadata does not know the topic");
        error = take16(&at);
        skip_compact(&at);
    } while (try_again("Metadata", error, begun));
    memcpy(id, at, 16);
}

/* --- a member -------------------------------------------------------------------------------------- */

struct member {
    struct link *link;
    const char *topic; /* also the subscription's name */
    char id[23], topic_id[16];
    int epoch;         /* of the membership */
    int session_epoch; /* of the next ShareFetch; 0 opens a session */
};

/* Member ids are 16 random bytes in base64. */
static inline void make_id(char id[23]) {
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    unsigned char random[22];
    FILE *source = fopen("/dev/urandom", "rb");
    if (!source || fread(random, sizeof random, 1, source) != 1) die("no random bytes");
    fclose(source);
    for (int i = 0; i < 21; i++) id[i] = alphabet[random[i] % (sizeof alphabet - 1)];
    id[21] = 'A', id[22] = 0; /* the last character carries two bits only */
}

/* Answers the number of topics that the member has been assigned; 0 also if nothing has changed. */
static inline uint32_t heartbeat(struct member *m, int epoch) {
    struct frame *f = &m->link->out;
    begin_flexible(f, SHARE_GROUP_HEARTBEAT, 1);
    put_compact(f, m->topic), put_compact(f, m->id), put32(f, epoch), put8(f, 0);
    if (epoch == 0)
        put_uvarint(f, 2), put_compact(f, m->topic);
    else
        put8(f, 0);
    put8(f, 0);
    const char *at = call_flexible(m->link) + 4;
    int error = take16(&at);
    if (try_again("ShareGroupHeartbeat", error, now_ns())) return 0;
    skip_compact(&at), skip_compact(&at);
    m->epoch = take32(&at), at += 4;
    return *at++ < 0 ? 0 : take_array(&at);
}

/* Runs are shorter than a member's session timeout, so there are heartbeats to join and to leave only. */
static inline void join(struct member *m, int port, const char *topic) {
    int64_t begun = now_ns();
    *m = (struct member){.link = link_new(port), .topic = topic};
    make_id(m->id);
    find_coordinator(m->link, topic);
    find_topic(m->link, topic, m->topic_id);
    while (!heartbeat(m, m->epoch)) {
        if (seconds_since(begun) > RETRY_SECONDS) die("the member was assigned nothing");
        usleep(RETRY_US);
    }
}

static inline void leave(struct member *m) {
    heartbeat(m, -1);
    close(m->link->in.fd);
}

/* Writes a ShareFetch up to its acknowledgements; fetch_acknowledge() and fetch_end() write the rest. */
static inline void fetch_begin(struct member *m, int session_epoch, int wait_ms, int records, uint32_t acknowledgements) {
    struct frame *f = &m->link->out;
    int with_topic = session_epoch == 0 || acknowledgements;
    begin_flexible(f, SHARE_FETCH, 1);
    put_compact(f, m->topic), put_compact(f, m->id), put32(f, session_epoch);
    put32(f, wait_ms), put32(f, 1), put32(f, INBOX_BYTES / 8), put32(f, records), put32(f, records);
    put_uvarint(f, with_topic ? 2 : 1);
    if (with_topic) put_bytes(f, m->topic_id, 16), put_uvarint(f, 2), put32(f, 0), put_uvarint(f, acknowledgements + 1);
}

static inline void fetch_acknowledge(struct member *m, int64_t first, int64_t last) {
    struct frame *f = &m->link->out;
    put64(f, first), put64(f, last), put_uvarint(f, 2), put8(f, ACCEPT), put8(f, 0);
}

/* `with_topic`: whether fetch_begin() named one. */
static inline void fetch_end(struct member *m, int with_topic) {
    struct frame *f = &m->link->out;
    if (with_topic) put8(f, 0), put8(f, 0);
    put_uvarint(f, 1), put8(f, 0); /* nothing forgotten */
}

struct fetched {
    const char *records, *records_end;
    const char *acquired; /* `ranges` of first i64, last i64, deliveries i16, tags */
    uint32_t ranges;
};

static inline void check_partition(const char **at) {
    int error = (*at += 4, take16(at));
    if (error) die("ShareFetch of the partition was answered with error %d", error);
    skip_compact(at);
    error = take16(at);
    if (error) die("an acknowledgement was answered with error %d", error);
    skip_compact(at), *at += 8, skip_tags(at); /* leader */
}

/* Waits for the answer to a ShareFetch; it is valid until the next request. */
static inline struct fetched fetch_wait(struct member *m) {
    struct fetched got = {0};
    const char *at = link_wait(m->link);
    skip_tags(&at), at += 4;
    int error = take16(&at);
    if (error) die("ShareFetch was answered with error %d", error);
    skip_compact(&at), at += 4;
    if (!take_array(&at)) return got;
    at += 16;
    if (!take_array(&at)) return got;
    check_partition(&at);
    uint32_t length = take_array(&at);
    got.records = at, got.records_end = at + length;
    at += length;
    got.ranges = take_array(&at);
    got.acquired = at;
    return got;
}

/* Moves `got` behind its next range, which must be there. */
static inline void next_range(struct fetched *got, int64_t *first, int64_t *last) {
    *first = take64(&got->acquired), *last = take64(&got->acquired);
    got->acquired += 2;
    skip_tags(&got->acquired);
    got->ranges--;
}

#endif
