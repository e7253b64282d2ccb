/* What the C library finds on Linux, glibc and musl alike. */
#ifndef DDS_CONFIG_H
#define DDS_CONFIG_H

#define DDSRT_HAVE_DYNLIB 1
#define DDSRT_HAVE_FILESYSTEM 1
#define DDSRT_HAVE_NETSTAT 1
#define DDSRT_HAVE_RUSAGE 1

#define DDSRT_HAVE_IPV6 1
#define DDSRT_HAVE_DNS 1
#define DDSRT_HAVE_GETADDRINFO 1
#define DDSRT_HAVE_GETHOSTNAME 1
#define DDSRT_HAVE_INET_NTOP 1
#define DDSRT_HAVE_INET_PTON 1
#define DDSRT_HAVE_CONDATTR_SETCLOCK 1

#endif
