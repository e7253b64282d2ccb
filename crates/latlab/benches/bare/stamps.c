/* Stamps of both kernels, read without latlab: UDP ping-pong of 64 B on loopback, a probe every millisecond, both ends
 * blocking, the sender in ppoll with a time-out, as latlab's. All times are of CLOCK_REALTIME, as the stamps: none is
 * converted.
 *
 *     cc -O2 -o stamps crates/latlab/benches/bare/stamps.c && ./stamps 3000 0 1
 *
 * sends 3,000 probes from CPU 0 to CPU 1, and prints for each stage of `latlab explain` its name, the median in ns, and how
 * many probes have its stamps. The first 100 do not count. */
#define _GNU_SOURCE
#include <time.h>
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { WARMUP = 100, BYTES = 64, MS = 1000000, SECOND = 1000000000 };
enum { SENT, SCHED, DRIVER, PEER_STACK, PEER_RECEIVED, PEER_SENT, PEER_DRIVER, STACK, RECEIVED, STAMPS };
static const char *const STAGES[] = { "send call", "queue", "network, there", "peer's wake-up", "peer's process",
				      "peer's reply path", "network, back", "stack and wake-up here" };
/* The stamps of each probe, in memory that both ends share. */
static int64_t (*probes)[STAMPS];

static int64_t nanoseconds(struct timespec time) { return time.tv_sec * (int64_t)SECOND + time.tv_nsec; }

static int64_t now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_REALTIME, &time);
	return nanoseconds(time);
}

static void expect(int holds, const char *what)
{
	if (!holds) {
		perror(what);
		exit(3);
	}
}

/* Receives a datagram and its stamp; from the error queue, the stamp of one that left, and which one. */
static ssize_t receive(int fd, uint64_t *data, int flags, int64_t *stamp, struct sock_extended_err *left)
{
	char control[512];
	struct iovec part = { data, BYTES };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
	ssize_t bytes = recvmsg(fd, &message, flags);
	for (struct cmsghdr *it = bytes < 0 ? 0 : CMSG_FIRSTHDR(&message); it; it = CMSG_NXTHDR(&message, it)) {
		if (it->cmsg_level == SOL_SOCKET && it->cmsg_type == SCM_TIMESTAMPING)
			*stamp = nanoseconds(((struct scm_timestamping *)CMSG_DATA(it))->ts[0]);
		else if (left && it->cmsg_level == SOL_IP && it->cmsg_type == IP_RECVERR)
			memcpy(left, CMSG_DATA(it), sizeof *left);
	}
	return bytes;
}

static void read_error_queue(int fd, int driver)
{
	struct sock_extended_err left;
	int64_t stamp;
	/* OPT_TSONLY: no payload comes back. */
	while (receive(fd, 0, MSG_ERRQUEUE | MSG_DONTWAIT, &stamp, &left) >= 0)
		probes[left.ee_data][left.ee_info == SCM_TSTAMP_SCHED ? SCHED : driver] = stamp;
}

static void reflect(int fd)
{
	uint64_t data[BYTES / 8];
	int64_t stamp;
	for (;;) {
		expect(receive(fd, data, 0, &stamp, 0) == BYTES, "receive");
		int64_t *own = probes[data[0]];
		own[PEER_RECEIVED] = now();
		own[PEER_STACK] = stamp;
		own[PEER_SENT] = now();
		expect(send(fd, data, BYTES, 0) == BYTES, "send");
		read_error_queue(fd, PEER_DRIVER);
	}
}

static void ping(int fd, long count)
{
	uint64_t data[BYTES / 8] = { 0 };
	prctl(PR_SET_TIMERSLACK, 1);
	for (int64_t due = now() + MS; data[0] < (uint64_t)count; data[0]++, due += MS) {
		int64_t *own = probes[data[0]];
		clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &(struct timespec){ due / SECOND, due % SECOND }, 0);
		own[SENT] = now();
		expect(send(fd, data, BYTES, 0) == BYTES, "send");
		read_error_queue(fd, DRIVER);
		expect(ppoll(&(struct pollfd){ fd, POLLIN, 0 }, 1, &(struct timespec){ 0, MS }, 0) >= 0, "ppoll");
		expect(receive(fd, data, 0, &own[STACK], 0) == BYTES, "receive");
		own[RECEIVED] = now();
	}
}

static int by_size(const void *one, const void *other)
{
	return (*(const int64_t *)one > *(const int64_t *)other) - (*(const int64_t *)one < *(const int64_t *)other);
}

int main(int count_of_words, char **words)
{
	long count = count_of_words > 3 ? WARMUP + atol(words[1]) : 0;
	const int flags = SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_RX_SOFTWARE |
			  SOF_TIMESTAMPING_OPT_ID | SOF_TIMESTAMPING_OPT_TSONLY,
		  of_end[] = { flags | SOF_TIMESTAMPING_TX_SCHED, flags };
	struct sockaddr_in at[2];
	int ends[2];
	expect(count > WARMUP, "usage: stamps COUNT CPU PEER_CPU");
	probes = mmap(0, count * sizeof *probes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	int64_t *each = calloc(count, sizeof *each);
	expect(probes != MAP_FAILED && each, "allocate");
	for (int end = 0; end < 2; end++) {
		at[end] = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
		ends[end] = socket(AF_INET, SOCK_DGRAM, 0);
		expect(!bind(ends[end], (void *)&at[end], sizeof *at), "bind");
		expect(!getsockname(ends[end], (void *)&at[end], &(socklen_t){ sizeof *at }), "getsockname");
		expect(!setsockopt(ends[end], SOL_SOCKET, SO_TIMESTAMPING, &of_end[end], sizeof flags), "SO_TIMESTAMPING");
	}
	expect(!connect(ends[0], (void *)&at[1], sizeof *at) && !connect(ends[1], (void *)&at[0], sizeof *at), "connect");
	pid_t peer = fork();
	expect(peer >= 0, "fork");
	cpu_set_t only;
	CPU_ZERO(&only);
	CPU_SET(atoi(words[peer ? 2 : 3]), &only);
	expect(!sched_setaffinity(0, sizeof only, &only), "pin");
	if (!peer)
		reflect(ends[1]);
	ping(ends[0], count);
	usleep(10000); /* until the peer has read its last stamp */
	kill(peer, SIGKILL);
	for (int stage = SENT; stage < RECEIVED; stage++) {
		long n = 0;
		for (long probe = WARMUP; probe < count; probe++) {
			if (probes[probe][stage] && probes[probe][stage + 1])
				each[n++] = probes[probe][stage + 1] - probes[probe][stage];
		}
		qsort(each, n, sizeof *each, by_size);
		printf("%s\t%lld\t%ld\n", STAGES[stage], n ? (long long)each[n / 2] : -1, n);
	}
	return 0;
}
