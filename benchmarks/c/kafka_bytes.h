/* Kafka's bytes: frames, integers, strings and record batches of format 2. All integers are big-endian.
 *
 *     request:  size i32, key i16, version i16, correlation i32, client-id=null i16, [tags], body
 *     answer:   size i32, correlation i32, [tags], body
 *
 *     batch:  base-offset i64, length i32, leader-epoch i32, magic=2, crc u32, attributes i16, last-offset-delta i32,
 *             base-timestamp i64, max-timestamp i64, producer i64, epoch i16, sequence i32, count i32, records
 *     record: length, attributes, timestamp-delta, offset-delta, key-length=-1, value-length, value, headers (varints)
 *
 * Flexible messages (with tags) write strings and arrays with their length + 1 as an unsigned varint in front.
 */
#ifndef KAFKA_BYTES_H
#define KAFKA_BYTES_H

#include "bench.h"

#define BATCH_HEADER 61 /* bytes before the first record */
#define BATCH_LENGTH 8
#define BATCH_CRC 17 /* where the checksum stands in a batch; it covers all that follows it */
#define BATCH_LAST_DELTA 23
#define BATCH_COUNT 57

struct frame {
    char data[2 << 20];
    size_t length, batch, value; /* batch, value: where the last ones begin */
};

/* --- writing --------------------------------------------------------------------------------------- */

static inline void put8(struct frame *f, int v) { f->data[f->length++] = (char)v; }
static inline void put16(struct frame *f, int v) { put8(f, v >> 8), put8(f, v); }
static inline void put32(struct frame *f, int64_t v) { put16(f, (int)(v >> 16)), put16(f, (int)v); }
static inline void put64(struct frame *f, int64_t v) { put32(f, v >> 32), put32(f, v); }

static inline void put_bytes(struct frame *f, const void *data, size_t n) {
    memcpy(f->data + f->length, data, n);
    f->length += n;
}

static inline void put_string(struct frame *f, const char *s) { put16(f, (int)strlen(s)), put_bytes(f, s, strlen(s)); }

static inline void put_uvarint(struct frame *f, uint32_t value) {
    for (; value >= 0x80; value >>= 7) put8(f, (int)(value | 0x80));
    put8(f, (int)value);
}

static inline uint32_t zigzag(int32_t value) { return ((uint32_t)value << 1) ^ (uint32_t)(value >> 31); }

static inline void put_varint(struct frame *f, int32_t value) { put_uvarint(f, zigzag(value)); }

static inline int varint_bytes(int32_t value) {
    int bytes = 1;
    for (uint32_t rest = zigzag(value); rest >= 0x80; rest >>= 7) bytes++;
    return bytes;
}

static inline void put_compact(struct frame *f, const char *s) {
    put_uvarint(f, (uint32_t)strlen(s) + 1);
    put_bytes(f, s, strlen(s));
}

static inline void set32(char *at, uint32_t v) { v = htonl(v), memcpy(at, &v, 4); }

static inline void begin(struct frame *f, int key, int version) {
    f->length = 4;
    put16(f, key), put16(f, version), put32(f, 0), put16(f, -1);
}

static inline void begin_flexible(struct frame *f, int key, int version) { begin(f, key, version), put8(f, 0); }

static inline void end(struct frame *f) { set32(f->data, (uint32_t)(f->length - 4)); }

static inline void set_correlation(struct frame *f, long id) { set32(f->data + 8, (uint32_t)id); }

/* --- reading --------------------------------------------------------------------------------------- */

static inline int32_t get32(const char *at) {
    uint32_t v;
    memcpy(&v, at, 4);
    return (int32_t)ntohl(v);
}

static inline int16_t get16(const char *at) { return (int16_t)((unsigned char)at[0] << 8 | (unsigned char)at[1]); }

static inline int64_t get64(const char *at) { return ((int64_t)get32(at) << 32) | (uint32_t)get32(at + 4); }

/* Moves *at behind an unsigned varint. */
static inline uint32_t take_uvarint(const char **at) {
    uint32_t value = 0;
    for (int shift = 0; shift < 35; shift += 7) {
        unsigned char byte = (unsigned char)*(*at)++;
        value |= (uint32_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return value;
    }
    die("a varint that does not end");
    return 0;
}

static inline int32_t take_varint(const char **at) {
    uint32_t value = take_uvarint(at);
    return (int32_t)(value >> 1) ^ -(int32_t)(value & 1);
}

static inline int16_t take16(const char **at) { return *at += 2, get16(*at - 2); }
static inline int32_t take32(const char **at) { return *at += 4, get32(*at - 4); }
static inline int64_t take64(const char **at) { return *at += 8, get64(*at - 8); }

/* The number of elements of a compact array; a missing one has none. */
static inline uint32_t take_array(const char **at) {
    uint32_t length = take_uvarint(at);
    return length ? length - 1 : 0;
}

static inline void skip_compact(const char **at) { uint32_t length = take_array(at); *at += length; }

static inline void skip_tags(const char **at) {
    for (uint32_t tags = take_uvarint(at); tags; tags--) {
        take_uvarint(at);
        uint32_t length = take_uvarint(at);
        *at += length;
    }
}

/* The next whole answer in the inbox (after its size field), or NULL; *length is its length. */
static inline const char *take(struct inbox *in, size_t *length) {
    if (in->end - in->start < 4) return NULL;
    *length = (size_t)get32(in->data + in->start);
    if (in->end - in->start < 4 + *length) return NULL;
    const char *body = in->data + in->start + 4;
    in->start += 4 + *length;
    return body;
}

/* --- checksums ------------------------------------------------------------------------------------- */

static uint32_t crc_table[256];

static inline void crc32c_init(void) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int bit = 0; bit < 8; bit++) c = c & 1 ? (c >> 1) ^ 0x82F63B78u : c >> 1;
        crc_table[i] = c;
    }
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static inline size_t crc32c_words(uint32_t *crc, const char *data, size_t length) {
    uint64_t c = *crc, word;
    size_t at = 0;
    for (; at + 8 <= length; at += 8) memcpy(&word, data + at, 8), c = __builtin_ia32_crc32di(c, word);
    *crc = (uint32_t)c;
    return at;
}
#endif

static inline uint32_t crc32c(const char *data, size_t length) {
    uint32_t c = ~0u;
    size_t at = 0;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2")) at = crc32c_words(&c, data, length);
#endif
    for (; at < length; at++) c = crc_table[(c ^ (unsigned char)data[at]) & 0xff] ^ (c >> 8);
    return ~c;
}

/* Writes the checksum of the frame's last batch, which ends where the frame ends now. */
static inline void seal(struct frame *f) {
    char *batch = f->data + f->batch;
    size_t length = f->length - f->batch;
    set32(batch + BATCH_CRC, crc32c(batch + BATCH_CRC + 4, length - BATCH_CRC - 4));
}

#endif
