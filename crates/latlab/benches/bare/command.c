/* The bare loop of commands: posix_spawn, wait4 and two clock reads for each execution, with the files, the session and
 * the signals of `latlab command`, without its poll, its host samples and its recording.
 *
 *     cc -O2 -o bare crates/latlab/benches/bare/command.c && ./bare 1000 /bin/true
 *
 * prints the time of each execution in ns, after a warm-up of 100. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

enum { WARMUP = 100 };

extern char **environ;

static void expect(int error, const char *what)
{
	if (error) {
		fprintf(stderr, "cannot %s: %s\n", what, strerror(error));
		exit(3);
	}
}

static int64_t now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

int main(int count_of_words, char **words)
{
	long count = count_of_words > 2 ? atol(words[1]) : 0;
	if (count < 1) {
		fprintf(stderr, "usage: bare COUNT PROGRAM [ARGUMENT...]\n");
		return 2;
	}
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, broken_pipe;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int64_t *times = calloc(count + WARMUP, sizeof *times);
	if (null < 0 || !times)
		return 3;
	/* Written before the loop, so that the loop causes no page faults. */
	memset(times, 1, (count + WARMUP) * sizeof *times);
	sigemptyset(&none);
	sigemptyset(&broken_pipe);
	sigaddset(&broken_pipe, SIGPIPE);
	expect(posix_spawn_file_actions_init(&actions), "prepare");
	for (int file = 0; file < 3; file++)
		expect(posix_spawn_file_actions_adddup2(&actions, null, file), "prepare");
	expect(posix_spawnattr_init(&attributes), "prepare");
	expect(posix_spawnattr_setsigmask(&attributes, &none), "prepare");
	expect(posix_spawnattr_setsigdefault(&attributes, &broken_pipe), "prepare");
	expect(posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK),
	       "prepare");
	for (long at = 0; at < count + WARMUP; at++) {
		struct rusage usage;
		pid_t pid;
		int status;
		int64_t started = now();
		expect(posix_spawn(&pid, words[2], &actions, &attributes, words + 2, environ), "execute");
		if (wait4(pid, &status, 0, &usage) != pid)
			return 3;
		times[at] = now() - started;
	}
	for (long at = WARMUP; at < count + WARMUP; at++)
		printf("%lld\n", (long long)times[at]);
	return 0;
}
