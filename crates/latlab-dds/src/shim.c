/* The types of latlab's topics, as idl/latlab.idl states them; the address of receiving sockets; and checks of the layouts
   and values that src/ffi.rs declares. */
#include <errno.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "dds/dds.h"

typedef struct latlab_octets {
  uint32_t maximum;
  uint32_t length;
  uint8_t *buffer;
  bool release;
} latlab_octets;

typedef struct message {
  latlab_octets bytes;
} message;

typedef struct keyed_message {
  uint32_t key;
  latlab_octets bytes;
} keyed_message;

static const uint32_t message_ops[] = {
  DDS_OP_ADR | DDS_OP_TYPE_SEQ | DDS_OP_SUBTYPE_1BY, offsetof (message, bytes),
  DDS_OP_RTS
};

static const uint32_t keyed_message_ops[] = {
  DDS_OP_ADR | DDS_OP_FLAG_KEY | DDS_OP_FLAG_MU | DDS_OP_TYPE_4BY, offsetof (keyed_message, key),
  DDS_OP_ADR | DDS_OP_TYPE_SEQ | DDS_OP_SUBTYPE_1BY, offsetof (keyed_message, bytes),
  DDS_OP_RTS,
  DDS_OP_KOF | 1, 0u
};

/* The offset of the operation DDS_OP_KOF. */
static const dds_key_descriptor_t keyed_message_keys[] = { { "key", 5, 0 } };

const dds_topic_descriptor_t latlab_message = {
  .m_size = sizeof (message),
  .m_align = _Alignof (message),
  .m_flagset = 0,
  .m_nkeys = 0,
  .m_typename = "latlab::Message",
  .m_keys = NULL,
  .m_nops = 2,
  .m_ops = message_ops,
  .m_meta = ""
};

const dds_topic_descriptor_t latlab_keyed_message = {
  .m_size = sizeof (keyed_message),
  .m_align = _Alignof (keyed_message),
  .m_flagset = DDS_TOPIC_FIXED_KEY | DDS_TOPIC_FIXED_KEY_XCDR2,
  .m_nkeys = 1,
  .m_typename = "latlab::KeyedMessage",
  .m_keys = keyed_message_keys,
  .m_nops = 3,
  .m_ops = keyed_message_ops,
  .m_meta = ""
};

/* Sockets that the calling thread binds to every address are bound to this one; AF_UNSPEC: as the library asks. */
static _Thread_local struct sockaddr_storage latlab_address = { .ss_family = AF_UNSPEC };

/* Sets that address: `bytes` are the 4 of an IPv4 or the 16 of an IPv6 address; 0 bytes unset it. */
void latlab_set_address (const uint8_t *bytes, size_t count, uint32_t scope)
{
  memset (&latlab_address, 0, sizeof (latlab_address));
  latlab_address.ss_family = AF_UNSPEC;
  if (count == 4) {
    struct sockaddr_in *v4 = (struct sockaddr_in *) &latlab_address;
    v4->sin_family = AF_INET;
    memcpy (&v4->sin_addr, bytes, 4);
  } else if (count == 16) {
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *) &latlab_address;
    v6->sin6_family = AF_INET6;
    v6->sin6_scope_id = scope;
    memcpy (&v6->sin6_addr, bytes, 16);
  }
}

/* The sockets that the calling thread bound since they were last taken; a participant has about three. */
#define MOST_SOCKETS 16
static _Thread_local int latlab_sockets[MOST_SOCKETS];
static _Thread_local size_t latlab_socket_count;

/* Copies them to `place` and forgets them; returns how many there are. */
size_t latlab_take_sockets (int *place, size_t capacity)
{
  const size_t count = latlab_socket_count < capacity ? latlab_socket_count : capacity;
  memcpy (place, latlab_sockets, count * sizeof (int));
  latlab_socket_count = 0;
  return count;
}

/* Datagrams that the kernel dropped at the socket because its buffer was full, modulo 2^32; -1: unknown (before Linux
   4.12). */
int64_t latlab_drops (int socket)
{
  uint32_t numbers[SK_MEMINFO_VARS];
  socklen_t bytes = sizeof (numbers);
  if (getsockopt (socket, SOL_SOCKET, SO_MEMINFO, numbers, &bytes) != 0 || bytes != sizeof (numbers))
    return -1;
  return numbers[SK_MEMINFO_DROPS];
}

/* close(2) of the library: it closes sockets whose partners found their port in use. */
int latlab_close (int socket)
{
  size_t kept = 0;
  for (size_t i = 0; i < latlab_socket_count; i++)
    if (latlab_sockets[i] != socket)
      latlab_sockets[kept++] = latlab_sockets[i];
  latlab_socket_count = kept;
  return close (socket);
}

/* recvmsg(2) of the library. A thread that waits in it ends after the time-out at the latest, also if a firewall drops the
   datagram that the library then sends to itself. Of this error the library says nothing. */
ssize_t latlab_recvmsg (int socket, struct msghdr *message, int flags)
{
  const ssize_t bytes = recvmsg (socket, message, flags);
  if (bytes < 0 && errno == EAGAIN)
    errno = ECONNREFUSED;
  return bytes;
}

/* bind(2), and the socket is kept if that succeeds. */
static int bound (int socket, const struct sockaddr *address, socklen_t bytes)
{
  const struct timeval timeout = { .tv_sec = 1 };
  const int code = bind (socket, address, bytes);
  (void) setsockopt (socket, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof (timeout));
  if (code == 0 && latlab_socket_count < MOST_SOCKETS)
    latlab_sockets[latlab_socket_count++] = socket;
  return code;
}

/* bind(2) of the library: build.rs renames the call in its file of sockets. */
int latlab_bind (int socket, const struct sockaddr *asked, socklen_t bytes)
{
  struct sockaddr_storage address;
  if (asked->sa_family != latlab_address.ss_family)
    return bound (socket, asked, bytes);
  memcpy (&address, asked, bytes);
  if (asked->sa_family == AF_INET) {
    struct sockaddr_in *v4 = (struct sockaddr_in *) &address;
    if (v4->sin_addr.s_addr == htonl (INADDR_ANY))
      v4->sin_addr = ((struct sockaddr_in *) &latlab_address)->sin_addr;
  } else {
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *) &address;
    const struct sockaddr_in6 *own = (struct sockaddr_in6 *) &latlab_address;
    if (IN6_IS_ADDR_UNSPECIFIED (&v6->sin6_addr)) {
      v6->sin6_addr = own->sin6_addr;
      v6->sin6_scope_id = own->sin6_scope_id;
    }
  }
  return bound (socket, (struct sockaddr *) &address, bytes);
}

#define SAME(name, value) _Static_assert ((name) == (value), #name)
#define POINTERS(count) ((count) * sizeof (void *))
#define AT(type, member, offset) _Static_assert (offsetof (type, member) == (offset), #type "." #member)

_Static_assert (sizeof (latlab_octets) == sizeof (dds_sequence_t), "dds_sequence_t");
AT (dds_sequence_t, _maximum, 0);
AT (dds_sequence_t, _length, 4);
AT (dds_sequence_t, _buffer, offsetof (latlab_octets, buffer));
AT (dds_sequence_t, _release, offsetof (latlab_octets, release));
SAME (sizeof (dds_entity_t), 4);
SAME (sizeof (dds_return_t), 4);
SAME (sizeof (dds_instance_handle_t), 8);
SAME (sizeof (dds_data_representation_id_t), 2);
SAME (DDS_RETCODE_TIMEOUT, -10);
SAME (DDS_RELIABILITY_BEST_EFFORT, 0);
SAME (DDS_RELIABILITY_RELIABLE, 1);
SAME (DDS_HISTORY_KEEP_LAST, 0);
SAME (DDS_HISTORY_KEEP_ALL, 1);
SAME (DDS_DATA_REPRESENTATION_XCDR1, 0);
SAME (sizeof (dds_sample_info_t), 64);
AT (dds_sample_info_t, valid_data, 12);
AT (dds_sample_info_t, source_timestamp, 16);
AT (dds_sample_info_t, publication_handle, 32);
SAME (sizeof (dds_publication_matched_status_t), 24);
AT (dds_publication_matched_status_t, current_count, 8);
SAME (sizeof (dds_subscription_matched_status_t), 24);
AT (dds_subscription_matched_status_t, current_count, 8);
SAME (sizeof (dds_offered_incompatible_qos_status_t), 12);
AT (dds_offered_incompatible_qos_status_t, last_policy_id, 8);
SAME (sizeof (dds_requested_incompatible_qos_status_t), 12);
AT (dds_requested_incompatible_qos_status_t, last_policy_id, 8);
SAME (sizeof (dds_sample_lost_status_t), 8);
AT (dds_builtintopic_endpoint_t, qos, 40 + POINTERS (2));
AT (dds_log_data_t, message, 8 + POINTERS (3));
AT (dds_log_data_t, size, 8 + POINTERS (4));
AT (dds_log_data_t, hdrsize, 8 + POINTERS (5));
