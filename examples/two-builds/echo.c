/* A UDP echo server on 127.0.0.1, as the change under test of docs/experiments.md.
 *
 * Build it twice:
 *     cc -O2 -o old echo.c
 *     cc -O2 -DPAUSE_NS=20000 -o new echo.c
 *
 * Usage: echo PORT
 */
#define _POSIX_C_SOURCE 200809L
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifndef PAUSE_NS
#define PAUSE_NS 0
#endif

static long long now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* What the second build does before each answer. */
static void pause_before_answer(void)
{
    long long end = now_ns() + PAUSE_NS;
    while (PAUSE_NS > 0 && now_ns() < end) {
    }
}

static int refuse(const char *what)
{
    fprintf(stderr, "echo: cannot %s: %s\n", what, strerror(errno));
    return 1;
}

int main(int count, char **words)
{
    char message[65536];
    struct sockaddr_in here = {.sin_family = AF_INET}, from;
    int port = count == 2 ? atoi(words[1]) : 0;
    if (port < 1 || port > 65535) {
        fprintf(stderr, "usage: echo PORT\n");
        return 2;
    }
    here.sin_port = htons((unsigned short)port);
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int socket_of = socket(AF_INET, SOCK_DGRAM, 0);
    if (socket_of < 0)
        return refuse("make a socket");
    if (bind(socket_of, (struct sockaddr *)&here, sizeof here) < 0)
        return refuse("bind the port");
    for (;;) {
        socklen_t length = sizeof from;
        ssize_t bytes = recvfrom(socket_of, message, sizeof message, 0, (struct sockaddr *)&from, &length);
        if (bytes < 0)
            return refuse("receive");
        pause_before_answer();
        if (sendto(socket_of, message, (size_t)bytes, 0, (struct sockaddr *)&from, length) < 0)
            return refuse("answer");
    }
}
