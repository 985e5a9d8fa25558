// The other end of an MQTT broker, as light as it can be: many connections in one thread (MQTT 3.1.1).
//
//   mqttload connect HOST PORT COUNT RATE
//       COUNT connections, RATE a second; they stay until standard input ends
//   mqttload fanout HOST PORT TOPIC SUBSCRIBERS MESSAGES WINDOW QOS SIZE
//       one publisher that has at most WINDOW messages under way to all SUBSCRIBERS together
//   mqttload latency HOST PORT TOPIC SUBSCRIBERS RATE SECONDS QOS
//       one publisher that sends RATE messages a second; from its write to each read
//
// One line of JSON. Status 1: something was refused, or nothing came for ten seconds.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { BUFFER = 65536, PATIENCE_MS = 10000, CONNACK = 2, PUBLISH = 3, SUBACK = 9 };

typedef struct {
    int fd, have;
    uint64_t since; // when CONNECT was sent
    unsigned char *buffer;
} Connection;

static struct sockaddr_in address;
static int events_fd, messages_qos;
static uint64_t accepted, refused, subscribed, delivered;
static double *delays;
static uint64_t delays_room, timed;

static void die(const char *what) {
    perror(what);
    exit(1);
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int put_length(unsigned char *out, unsigned length) {
    int n = 0;
    do {
        out[n++] = (unsigned char)((length & 127) | (length > 127 ? 128 : 0));
    } while (length >>= 7);
    return n;
}

static int put_text(unsigned char *out, const char *text) {
    int length = (int)strlen(text);
    out[0] = (unsigned char)(length >> 8), out[1] = (unsigned char)length;
    memcpy(out + 2, text, (size_t)length);
    return length + 2;
}

static void send_all(int fd, const unsigned char *data, size_t length) {
    while (length) {
        ssize_t sent = send(fd, data, length, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR) die("send");
        if (sent > 0) data += sent, length -= (size_t)sent;
    }
}

static void connect_one(Connection *one, const char *kind, int number) {
    one->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (one->fd < 0) die("socket");
    int on = 1;
    setsockopt(one->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(one->fd, (struct sockaddr *)&address, sizeof address)) die("connect");
    char name[32];
    snprintf(name, sizeof name, "%s%d", kind, number);
    unsigned char packet[64] = {0x10}, *body = packet + 2;
    int n = put_text(body, "MQTT");
    memcpy(body + n, "\x04\x02\x00\x78", 4), n += 4; // level 4, clean session, keep alive 120 s
    n += put_text(body + n, name);
    packet[1] = (unsigned char)n;
    one->since = now_ns();
    one->buffer = NULL, one->have = 0;
    send_all(one->fd, packet, (size_t)n + 2);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = one};
    if (epoll_ctl(events_fd, EPOLL_CTL_ADD, one->fd, &event)) die("epoll_ctl");
}

static void note_delay(double seconds) {
    if (timed < delays_room) delays[timed++] = seconds;
}

static void subscribe(Connection *one, const char *topic) {
    unsigned char packet[300] = {0x82};
    unsigned char body[290] = {0, 1};
    int n = 2 + put_text(body + 2, topic);
    body[n++] = (unsigned char)messages_qos;
    int head = 1 + put_length(packet + 1, (unsigned)n);
    memcpy(packet + head, body, (size_t)n);
    send_all(one->fd, packet, (size_t)(head + n));
}

// Take the complete packets out of what a connection has received; acknowledge those with QoS 1.
static void take(Connection *one, int latency) {
    unsigned char *at = one->buffer, *end = at + one->have, answers[BUFFER];
    size_t answered = 0;
    while (end - at >= 2) {
        unsigned length = 0, shift = 0;
        unsigned char *body = at + 1;
        do {
            if (body == end) goto partial;
            length |= (unsigned)(*body & 127) << shift, shift += 7;
        } while (*body++ & 128);
        if ((size_t)(end - body) < length) break;
        int kind = *at >> 4;
        if (kind == CONNACK) {
            body[1] ? refused++ : accepted++;
            if (latency) note_delay((double)(now_ns() - one->since) / 1e9);
        } else if (kind == SUBACK) {
            body[2] > 2 ? refused++ : subscribed++;
        } else if (kind == PUBLISH) {
            unsigned char *payload = body + 2 + (body[0] << 8 | body[1]);
            if (*at >> 1 & 3) {
                memcpy(answers + answered, "\x40\x02", 2), memcpy(answers + answered + 2, payload, 2);
                answered += 4, payload += 2;
            }
            delivered++;
            uint64_t sent;
            memcpy(&sent, payload, 8);
            if (latency) note_delay((double)(now_ns() - sent) / 1e9);
        }
        at = body + length;
    }
partial:
    one->have = (int)(end - at);
    memmove(one->buffer, at, (size_t)one->have);
    if (answered) send_all(one->fd, answers, answered);
}

static int receive(Connection *one, int latency) {
    if (!one->buffer && !(one->buffer = malloc(BUFFER))) die("malloc");
    ssize_t got = recv(one->fd, one->buffer + one->have, BUFFER - (size_t)one->have, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 1;
    if (got <= 0) {
        refused++;
        epoll_ctl(events_fd, EPOLL_CTL_DEL, one->fd, NULL);
        return 0;
    }
    one->have += (int)got;
    take(one, latency);
    if (!one->have && accepted && !subscribed && latency == 2) { // an idle one needs no memory
        free(one->buffer);
        one->buffer = NULL;
    }
    return 1;
}

// One round of the loop. Returns how often the timer has run out; -1 if nothing came within the patience.
static int64_t turn(int timer, int latency) {
    struct epoll_event events[256];
    int64_t expired = 0;
    int count = epoll_wait(events_fd, events, 256, PATIENCE_MS);
    if (count == 0) return -1;
    for (int n = 0; n < count; n++) {
        if (events[n].data.ptr) {
            receive(events[n].data.ptr, latency);
        } else {
            uint64_t times;
            if (read(timer, &times, 8) == 8) expired += (int64_t)times;
        }
    }
    return expired;
}

static int make_timer(double rate) {
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    long period = (long)(1e9 / rate);
    struct itimerspec every = {{period / 1000000000, period % 1000000000}, {0, 1}};
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    if (timerfd_settime(timer, 0, &every, NULL) || epoll_ctl(events_fd, EPOLL_CTL_ADD, timer, &event)) die("timerfd");
    return timer;
}

static int by_size(const void *one, const void *other) {
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

static void print_delays(void) {
    qsort(delays, timed, sizeof *delays, by_size);
    printf("\"p50_ms\": %.3f, \"p99_ms\": %.3f, \"max_ms\": %.3f", timed ? delays[timed / 2] * 1e3 : -1,
           timed ? delays[timed * 99 / 100] * 1e3 : -1, timed ? delays[timed - 1] * 1e3 : -1);
}

static void room_for(uint64_t count) {
    delays_room = count;
    if (!(delays = malloc((count + 1) * sizeof *delays))) die("malloc");
}

static int connects(uint64_t count, double rate) {
    Connection *all = calloc(count, sizeof *all);
    room_for(count);
    uint64_t begun = 0, began = now_ns();
    int timer = make_timer(rate / 10 < 1 ? 1 : rate / 10);
    uint64_t answered = 0, since = began;
    while (accepted + refused < count) {
        int64_t times = turn(timer, 2);
        if (accepted + refused > answered) answered = accepted + refused, since = now_ns();
        if (times < 0 || now_ns() - since > (uint64_t)PATIENCE_MS * 1000000) break;
        for (int64_t n = times * (rate < 10 ? (int64_t)rate : 10); n > 0 && begun < count; n--, begun++)
            connect_one(&all[begun], "idle", (int)begun);
    }
    printf("{\"connected\": %lu, \"refused\": %lu, \"seconds\": %.3f, ", accepted, count - accepted,
           (double)(now_ns() - began) / 1e9);
    print_delays();
    printf("}\n");
    fflush(stdout);
    close(timer);
    while (getchar() != EOF) {
    }
    struct epoll_event events[256];
    for (int ready; (ready = epoll_wait(events_fd, events, 256, 0)) > 0;)
        for (int n = 0; n < ready; n++) receive(events[n].data.ptr, 0);
    if (refused) fprintf(stderr, "%lu connections were refused or have ended\n", refused);
    return refused ? 1 : 0;
}

static Connection *subscribers(uint64_t count, const char *topic) {
    Connection *all = calloc(count + 1, sizeof *all); // the last one publishes
    for (uint64_t n = 0; n <= count; n++) {
        connect_one(&all[n], n == count ? "publisher" : "subscriber", (int)n);
        while (accepted <= n)
            if (turn(-1, 0) < 0 || refused) exit(1);
    }
    for (uint64_t n = 0; n < count; n++) {
        subscribe(&all[n], topic);
        while (subscribed <= n)
            if (turn(-1, 0) < 0 || refused) exit(1);
    }
    return all;
}

// A PUBLISH: returns its length, and where its payload begins.
static int make_publish(unsigned char *out, const char *topic, int qos, int size, int *payload) {
    int rest = 2 + (int)strlen(topic) + (qos ? 2 : 0) + size;
    out[0] = (unsigned char)(0x30 | qos << 1);
    int n = 1 + put_length(out + 1, (unsigned)rest);
    n += put_text(out + n, topic);
    if (qos) out[n++] = 0, out[n++] = 1;
    *payload = n;
    memset(out + n, 'x', (size_t)size);
    return n + size;
}

static void publish(int fd, unsigned char *packet, int length, int payload, uint64_t number) {
    if (messages_qos) {
        unsigned id = (unsigned)(number % 65535) + 1;
        packet[payload - 2] = (unsigned char)(id >> 8), packet[payload - 1] = (unsigned char)id;
    }
    uint64_t now = now_ns();
    memcpy(packet + payload, &now, 8);
    send_all(fd, packet, (size_t)length);
}

static int fanout(const char *topic, uint64_t count, uint64_t messages, uint64_t window, int size) {
    Connection *all = subscribers(count, topic);
    unsigned char packet[BUFFER];
    int payload, length = make_publish(packet, topic, messages_qos, size, &payload);
    uint64_t sent = 0, began = now_ns();
    while (delivered < messages * count) {
        while (sent < messages && delivered + window * count > sent * count)
            publish(all[count].fd, packet, length, payload, sent++);
        if (turn(-1, 0) < 0) break;
    }
    double seconds = (double)(now_ns() - began) / 1e9;
    printf("{\"deliveries\": %lu, \"missing\": %lu, \"seconds\": %.3f, \"deliveries_per_s\": %.0f}\n", delivered,
           messages * count - delivered, seconds, (double)delivered / seconds);
    return delivered != messages * count || refused;
}

static int latency(const char *topic, uint64_t count, double rate, double seconds) {
    Connection *all = subscribers(count, topic);
    unsigned char packet[BUFFER];
    int payload, length = make_publish(packet, topic, messages_qos, 100, &payload);
    uint64_t messages = (uint64_t)(rate * seconds), sent = 0;
    room_for(messages * count);
    int timer = make_timer(rate);
    uint64_t came = 0, since = now_ns();
    while (delivered < messages * count) {
        int64_t times = turn(timer, 1);
        if (delivered > came) came = delivered, since = now_ns();
        if (now_ns() - since > (uint64_t)PATIENCE_MS * 1000000) break;
        for (; times > 0 && sent < messages; times--) publish(all[count].fd, packet, length, payload, sent++);
        if (times < 0) break;
    }
    printf("{\"deliveries\": %lu, \"missing\": %lu, ", delivered, messages * count - delivered);
    print_delays();
    printf("}\n");
    return delivered != messages * count || refused;
}

int main(int argc, char **argv) {
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    events_fd = epoll_create1(EPOLL_CLOEXEC);
    if (argc > 3) {
        address.sin_family = AF_INET, address.sin_port = htons((uint16_t)atoi(argv[3]));
        if (inet_pton(AF_INET, argv[2], &address.sin_addr) != 1) die(argv[2]);
    }
    if (argc == 6 && !strcmp(argv[1], "connect")) return connects(strtoul(argv[4], NULL, 10), atof(argv[5]));
    if (argc == 10 && !strcmp(argv[1], "fanout")) {
        messages_qos = atoi(argv[8]);
        return fanout(argv[4], strtoul(argv[5], NULL, 10), strtoul(argv[6], NULL, 10), strtoul(argv[7], NULL, 10),
                      atoi(argv[9]));
    }
    if (argc == 9 && !strcmp(argv[1], "latency")) {
        messages_qos = atoi(argv[8]);
        return latency(argv[4], strtoul(argv[5], NULL, 10), atof(argv[6]), atof(argv[7]));
    }
    fprintf(stderr, "usage: see the first lines of mqttload.c\n");
    return 2;
}
