/* A WebSocket client (RFC 6455) over a plain socket, as much of it as Postroad's streams need: binary frames that are
 * not fragmented. Frames to the server are masked with zeros, which the RFC lets a client that nobody can trick choose.
 */
#ifndef WEBSOCKET_H
#define WEBSOCKET_H

#include "kafka_bytes.h"

#define SOCKET_INBOX_BYTES (16 << 20)
#define LOOK_MS 100 /* a wait for frames ends after this, if none come */
#define NO_CHECK "AAAAAAAAAAAAAAAAAAAAAA==" /* a key: the server's proof that it read it is not looked at */

enum { BINARY = 2, CLOSE = 8, PING = 9, PONG = 10 };

static inline struct inbox socket_open(int port, const char *path, const char *subprotocol) {
    struct inbox in = inbox_new(connect_local(port), SOCKET_INBOX_BYTES);
    struct timeval look = {0, LOOK_MS * 1000};
    char request[1024];
    int length = snprintf(request, sizeof request,
                          "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                          "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " NO_CHECK "\r\n"
                          "Sec-WebSocket-Protocol: %s\r\n\r\n", path, port, subprotocol);
    char *end = NULL;
    send_all(in.fd, request, (size_t)length);
    while (!end) receive(&in, 0), end = memmem(in.data, in.end, "\r\n\r\n", 4);
    if (memcmp(in.data, "HTTP/1.1 101 ", 13)) die("no stream: %.*s", (int)(end - in.data), in.data);
    in.start = (size_t)(end + 4 - in.data);
    setsockopt(in.fd, SOL_SOCKET, SO_RCVTIMEO, &look, sizeof look);
    return in;
}

/* Writes the head of a frame before its `length` bytes. */
static inline void put_head(struct frame *f, int opcode, size_t length) {
    put8(f, 0x80 | opcode);
    if (length < 126)
        put8(f, 0x80 | (int)length);
    else if (length < 1 << 16)
        put8(f, 0x80 | 126), put16(f, (int)length);
    else
        put8(f, 0x80 | 127), put64(f, (int64_t)length);
    put32(f, 0); /* the mask */
}

/* A frame that has arrived. `end` NULL: none has, as a whole. */
struct arrived {
    int opcode;
    const char *at, *end;
};

static inline struct arrived next_frame(struct inbox *in) {
    const unsigned char *head = (const unsigned char *)in->data + in->start;
    size_t there = in->end - in->start, length = there < 2 ? 0 : head[1] & 127;
    size_t size = length == 126 ? 4 : length == 127 ? 10 : 2;
    if (there < size) return (struct arrived){0};
    if (size == 4) length = (uint16_t)get16((const char *)head + 2);
    if (size == 10) length = (size_t)get64((const char *)head + 2);
    if (there < size + length) return (struct arrived){0};
    if (!(head[0] & 0x80)) die("a frame in fragments");
    in->start += size + length;
    return (struct arrived){head[0] & 15, (const char *)head + size, (const char *)head + size + length};
}

#endif
