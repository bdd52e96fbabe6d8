/* Kafka's share groups (KIP-932) over plain sockets: one topic and the requests of a member, which fetches from one of
 * the nodes that lead its partitions. The subscription has the name of the topic. Errors end the program, but for those
 * that a broker answers while it loads a coordinator, which are tried again.
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
#define NODES_MAX 16
#define PARTITIONS_MAX 256

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

static inline void create_topic(struct link *link, const char *topic, long partitions, long replicas) {
    struct frame *f = &link->out;
    begin(f, CREATE_TOPICS, 4);
    put32(f, 1), put_string(f, topic), put32(f, partitions), put16(f, (int)replicas), put32(f, 0), put32(f, 0);
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

/* The port of the group's coordinator. Kafka creates its internal topics when it is asked for one. */
static inline int find_coordinator(struct link *link, const char *group) {
    int64_t begun = now_ns();
    const char *at;
    int error;
    do {
        begin(&link->out, FIND_COORDINATOR, 2);
        put_string(&link->out, group), put8(&link->out, 0);
        at = call(link) + 4;
        error = take16(&at);
    } while (try_again("FindCoordinator", error, begun));
    int message = take16(&at);
    at += (message > 0 ? message : 0) + 4; /* the node's id */
    at += 2 + get16(at);
    return take32(&at);
}

static inline void set_group_config(struct link *link, const char *group, const char *name, const char *value) {
    struct frame *f = &link->out;
    begin(f, INCREMENTAL_ALTER_CONFIGS, 0);
    put32(f, 1), put8(f, GROUP_RESOURCE), put_string(f, group);
    put32(f, 1), put_string(f, name), put8(f, 0), put_string(f, value), put8(f, 0);
    const char *at = call(link) + 4 + 4;
    if (get16(at)) die("%s=%s was answered with error %d", name, value, get16(at));
}

/* Where a topic lies: the nodes' ports, and for each partition the number of its leader among them. */
struct layout {
    char topic_id[16];
    int nodes, ids[NODES_MAX], ports[NODES_MAX];
    int partitions, leader[PARTITIONS_MAX];
};

static inline void take_nodes(struct layout *layout, const char **at) {
    layout->nodes = 0;
    for (uint32_t brokers = take_array(at); brokers; brokers--) {
        int id = take32(at), n = layout->nodes;
        skip_compact(at);
        int port = take32(at);
        skip_compact(at), skip_tags(at);
        if (n == NODES_MAX) die("more than %d nodes", NODES_MAX);
        layout->ids[n] = id, layout->ports[n] = port, layout->nodes++;
    }
}

static inline int number_of(const struct layout *layout, int id) {
    for (int i = 0; i < layout->nodes; i++)
        if (layout->ids[i] == id) return i;
    return -1;
}

/* Answers the error of one of the partitions, if there is any. */
static inline int take_leaders(struct layout *layout, const char **at) {
    int error = 0;
    layout->partitions = (int)take_array(at);
    if (layout->partitions > PARTITIONS_MAX) die("more than %d partitions", PARTITIONS_MAX);
    for (int i = 0; i < layout->partitions; i++) {
        int failed = take16(at), index = take32(at), leader = number_of(layout, take32(at));
        *at += 4; /* the leader's epoch */
        for (int lists = 0; lists < 3; lists++) { /* replicas, in sync, offline */
            uint32_t length = take_array(at);
            *at += 4 * length;
        }
        skip_tags(at);
        if (failed || leader < 0) error = 5;
        else if (index < layout->partitions) layout->leader[index] = leader;
    }
    return error;
}

static inline void find_topic(struct link *link, const char *topic, struct layout *layout) {
    int64_t begun = now_ns();
    int error;
    do {
        struct frame *f = &link->out;
        begin_flexible(f, METADATA, 12);
        put_uvarint(f, 2), put64(f, 0), put64(f, 0), put_compact(f, topic), put8(f, 0);
        put8(f, 0), put8(f, 0), put8(f, 0); /* no creation, no operations, no tags */
        const char *at = call_flexible(link) + 4;
        take_nodes(layout, &at);
        skip_compact(&at), at += 4; /* cluster, controller */
        if (take_array(&at) != 1) die("Metadata does not know the topic");
        error = take16(&at);
        skip_compact(&at);
        memcpy(layout->topic_id, at, 16), at += 16 + 1; /* internal? */
        if (!error) error = take_leaders(layout, &at);
    } while (try_again("Metadata", error, begun));
}

/* The nodes that lead something, in `nodes`; answers how many there are. */
static inline int leading(const struct layout *layout, int nodes[NODES_MAX]) {
    int count = 0;
    for (int node = 0; node < layout->nodes; node++)
        for (int i = 0; i < layout->partitions; i++)
            if (layout->leader[i] == node) {
                nodes[count++] = node;
                break;
            }
    return count;
}

/* --- a member -------------------------------------------------------------------------------------- */

struct member {
    struct link *link;        /* to the node that it fetches from */
    struct link *coordinator; /* the same one, if that is the group's coordinator */
    const char *topic;        /* also the subscription's name */
    char id[23], topic_id[16];
    int epoch; /* of the membership */
    int partitions[PARTITIONS_MAX], count; /* what the node leads */
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
    struct frame *f = &m->coordinator->out;
    begin_flexible(f, SHARE_GROUP_HEARTBEAT, 1);
    put_compact(f, m->topic), put_compact(f, m->id), put32(f, epoch), put8(f, 0);
    if (epoch == 0)
        put_uvarint(f, 2), put_compact(f, m->topic);
    else
        put8(f, 0);
    put8(f, 0);
    const char *at = call_flexible(m->coordinator) + 4;
    int error = take16(&at);
    if (try_again("ShareGroupHeartbeat", error, now_ns())) return 0;
    skip_compact(&at), skip_compact(&at);
    m->epoch = take32(&at), at += 4;
    return *at++ < 0 ? 0 : take_array(&at);
}

static inline void choose_node(struct member *m, int port, int number) {
    struct layout layout;
    int nodes[NODES_MAX];
    find_topic(m->coordinator, m->topic, &layout);
    int node = nodes[number % leading(&layout, nodes)];
    memcpy(m->topic_id, layout.topic_id, sizeof m->topic_id);
    for (int i = 0; i < layout.partitions; i++)
        if (layout.leader[i] == node) m->partitions[m->count++] = i;
    m->link = layout.ports[node] == port ? m->coordinator : link_new(layout.ports[node]);
}

/* Member `number` of all: they are spread over the nodes, and each fetches all that its node leads. Runs are shorter than
 * a member's session timeout, so there are heartbeats to join and to leave only. */
static inline void join(struct member *m, int port, const char *topic, int number) {
    int64_t begun = now_ns();
    *m = (struct member){.coordinator = link_new(port), .topic = topic};
    make_id(m->id);
    int coordinator = find_coordinator(m->coordinator, topic);
    if (coordinator != port) close(m->coordinator->in.fd), m->coordinator = link_new(coordinator);
    choose_node(m, coordinator, number);
    while (!heartbeat(m, m->epoch)) {
        if (seconds_since(begun) > RETRY_SECONDS) die("the member was assigned nothing");
        usleep(RETRY_US);
    }
}

static inline void leave(struct member *m) {
    heartbeat(m, -1);
    close(m->link->in.fd);
    if (m->coordinator != m->link) close(m->coordinator->in.fd);
}

/* Writes a ShareFetch up to its partitions: `partitions` of them follow, then fetch_end(). */
static inline void fetch_begin(struct member *m, int session_epoch, int wait_ms, int records, uint32_t partitions) {
    struct frame *f = &m->link->out;
    begin_flexible(f, SHARE_FETCH, 1);
    put_compact(f, m->topic), put_compact(f, m->id), put32(f, session_epoch);
    put32(f, wait_ms), put32(f, 1), put32(f, INBOX_BYTES / 8), put32(f, records), put32(f, records);
    put_uvarint(f, partitions ? 2 : 1);
    if (partitions) put_bytes(f, m->topic_id, 16), put_uvarint(f, partitions + 1);
}

/* Then come so many fetch_acknowledge(), and fetch_partition_end(). */
static inline void fetch_partition(struct member *m, int index, uint32_t acknowledgements) {
    put32(&m->link->out, index), put_uvarint(&m->link->out, acknowledgements + 1);
}

static inline void fetch_acknowledge(struct member *m, int64_t first, int64_t last) {
    struct frame *f = &m->link->out;
    put64(f, first), put64(f, last), put_uvarint(f, 2), put8(f, ACCEPT), put8(f, 0);
}

static inline void fetch_partition_end(struct member *m) { put8(&m->link->out, 0); }

static inline void fetch_end(struct member *m, uint32_t partitions) {
    struct frame *f = &m->link->out;
    if (partitions) put8(f, 0);
    put_uvarint(f, 1), put8(f, 0); /* nothing forgotten */
}

/* An answer to a ShareFetch; next_partition() fills in all but the first two. */
struct fetched {
    uint32_t partitions;
    const char *at;
    int index;
    const char *records, *records_end;
    const char *acquired; /* `ranges` of first i64, last i64, deliveries i16, tags */
    uint32_t ranges;
};

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
    got.partitions = take_array(&at);
    got.at = at;
    return got;
}

/* Moves `got` behind its next range, which must be there. */
static inline void next_range(struct fetched *got, int64_t *first, int64_t *last) {
    *first = take64(&got->acquired), *last = take64(&got->acquired);
    got->acquired += 2;
    skip_tags(&got->acquired);
    got->ranges--;
}

/* Moves `got` to its next partition; 0 if there is none. */
static inline int next_partition(struct fetched *got) {
    int64_t first, last;
    if (!got->partitions) return 0;
    got->partitions--;
    got->index = take32(&got->at);
    int error = take16(&got->at);
    if (error) try_again("ShareFetch of a partition", error, now_ns());
    skip_compact(&got->at);
    error = take16(&got->at);
    if (error) die("an acknowledgement was answered with error %d", error);
    skip_compact(&got->at), got->at += 8, skip_tags(&got->at); /* leader */
    uint32_t length = take_array(&got->at);
    got->records = got->at, got->records_end = got->at + length;
    got->at += length;
    got->ranges = take_array(&got->at);
    struct fetched behind = {.ranges = got->ranges, .acquired = got->at};
    got->acquired = got->at;
    while (behind.ranges) next_range(&behind, &first, &last);
    got->at = behind.acquired;
    skip_tags(&got->at);
    return 1;
}

#endif
