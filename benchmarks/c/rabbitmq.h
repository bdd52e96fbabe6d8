/* RabbitMQ with librabbitmq: a connection with one channel, publisher confirms, messages. */
#ifndef RABBITMQ_H
#define RABBITMQ_H

#include "bench.h"
#include <amqp.h>
#include <amqp_tcp_socket.h>
#include <sys/time.h>

#define CHANNEL 1

static inline amqp_connection_state_t connect_rabbit(int port) {
    int one = 1;
    amqp_connection_state_t rabbit = amqp_new_connection();
    amqp_socket_t *sock = amqp_tcp_socket_new(rabbit);
    if (!sock || amqp_socket_open(sock, "127.0.0.1", port)) die("can't connect to port %d", port);
    setsockopt(amqp_get_sockfd(rabbit), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    amqp_rpc_reply_t reply = amqp_login(rabbit, "/", 0, 131072, 0, AMQP_SASL_METHOD_PLAIN, "guest", "guest");
    if (reply.reply_type != AMQP_RESPONSE_NORMAL) die("RabbitMQ refused the login");
    if (!amqp_channel_open(rabbit, CHANNEL)) die("RabbitMQ opened no channel");
    return rabbit;
}

static inline void check(amqp_connection_state_t rabbit, const char *what) {
    amqp_rpc_reply_t reply = amqp_get_rpc_reply(rabbit);
    if (reply.reply_type != AMQP_RESPONSE_NORMAL) die("RabbitMQ refused %s", what);
}

static inline amqp_connection_state_t publisher_new(int port) {
    amqp_connection_state_t rabbit = connect_rabbit(port);
    amqp_confirm_select(rabbit, CHANNEL);
    check(rabbit, "publisher confirms");
    return rabbit;
}

static inline void publish(amqp_connection_state_t rabbit, const char *queue, void *payload, size_t size) {
    amqp_basic_properties_t properties = {._flags = AMQP_BASIC_DELIVERY_MODE_FLAG, .delivery_mode = 2};
    amqp_bytes_t body = {size, payload};
    if (amqp_basic_publish(rabbit, CHANNEL, amqp_empty_bytes, amqp_cstring_bytes(queue), 0, 0, &properties, body))
        die("RabbitMQ closed the connection");
}

/* Waits for one confirmation, or looks for it with a timeout; 0 if none came. It may stand for many messages. */
static inline int take_confirm(amqp_connection_state_t rabbit, amqp_basic_ack_t *ack, const struct timeval *timeout) {
    amqp_frame_t frame;
    int status = amqp_simple_wait_frame_noblock(rabbit, &frame, timeout);
    if (status == AMQP_STATUS_TIMEOUT) return 0;
    if (status != AMQP_STATUS_OK) die("RabbitMQ: %s", amqp_error_string2(status));
    if (frame.frame_type != AMQP_FRAME_METHOD || frame.payload.method.id != AMQP_BASIC_ACK_METHOD)
        die("RabbitMQ did not confirm a message");
    *ack = *(amqp_basic_ack_t *)frame.payload.method.decoded;
    amqp_maybe_release_buffers(rabbit);
    return 1;
}

/* Waits up to `wait_ms` for a message; 0 if none came. */
static inline int next(amqp_connection_state_t rabbit, amqp_envelope_t *envelope, int wait_ms) {
    struct timeval timeout = {wait_ms / 1000, wait_ms % 1000 * 1000};
    amqp_maybe_release_buffers(rabbit);
    amqp_rpc_reply_t reply = amqp_consume_message(rabbit, envelope, &timeout, 0);
    if (reply.reply_type == AMQP_RESPONSE_NORMAL) return 1;
    if (reply.library_error != AMQP_STATUS_TIMEOUT) die("RabbitMQ: %s", amqp_error_string2(reply.library_error));
    return 0;
}

#endif
