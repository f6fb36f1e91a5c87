#pragma once

/* Byte streams over RDMA in the way of Valkey (docs/stream.md), for programs in C, and for whatever can call C. All
 * that libringbolt-stream.so exports is declared here; ringbolt/byte_stream.h wraps it for C++.
 *
 * All functions return 0 or an errno unless said otherwise, and write their outputs only on success. NULL where a
 * handle, an output or memory of more than 0 bytes is wanted: EINVAL. Times are in milliseconds: 0 does not block, and
 * answers EAGAIN where it would have to; one that passes answers ETIMEDOUT. No call waits longer.
 *
 * Thread-safe, but for the calls that destroy: nobody may use what is destroyed. One thread may wait to read a stream
 * and another one to write it. A child of fork() can use nothing of its parent's. */

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of this header; ringbolt_stream_version() tells that of the library. Within one major number a program runs with any
 * library that is not older than the header it was compiled with. */
#define RINGBOLT_STREAM_VERSION 100
uint32_t ringbolt_stream_version(void);

/* The words that belong to the last error of the calling thread: never NULL; valid until its next call. They name the
 * peer, the device, the numbers and what to do; for want of RDMA, why there is none. */
const char* ringbolt_stream_error(void);

typedef struct ringbolt_stream_service ringbolt_stream_service;
typedef struct ringbolt_stream_listener ringbolt_stream_listener;
typedef struct ringbolt_stream ringbolt_stream;

/* Why a stream ended, or why a listener did not take one. Those from BAD_COMMAND_LENGTH to OUT_OF_SEND_SLOTS are things
 * that the peer said and the protocol forbids. */
typedef enum ringbolt_stream_reason {
  RINGBOLT_STREAM_OPEN,        /* it has not ended */
  RINGBOLT_STREAM_LOCAL,       /* this side closed it */
  RINGBOLT_STREAM_PEER_CLOSED, /* the peer did, or its process ended */
  RINGBOLT_STREAM_BAD_COMMAND_LENGTH,
  RINGBOLT_STREAM_BAD_OPCODE,
  RINGBOLT_STREAM_BAD_RX_LENGTH,
  RINGBOLT_STREAM_OVER_BUDGET, /* memory_budget_bytes */
  RINGBOLT_STREAM_RX_LENGTH_CHANGED,
  RINGBOLT_STREAM_IMM_OVERRUN,
  RINGBOLT_STREAM_IMM_UNDERRUN,
  RINGBOLT_STREAM_IMM_FLOOD,
  RINGBOLT_STREAM_COMMAND_FLOOD,
  RINGBOLT_STREAM_FEATURE,
  RINGBOLT_STREAM_OUT_OF_SEND_SLOTS,
  RINGBOLT_STREAM_PEER_LOST,   /* it does not answer any more */
  RINGBOLT_STREAM_WORK_FAILED, /* the device refused or failed a request */
  RINGBOLT_STREAM_REFUSED,     /* nobody listens there, or it does not want us */
  RINGBOLT_STREAM_UNREACHABLE,
  RINGBOLT_STREAM_TOO_MANY,    /* max_streams of the listener */
  RINGBOLT_STREAM_NOT_ALLOWED, /* not on the listener's list */
  RINGBOLT_STREAM_HANDSHAKE_TIMEOUT,
  RINGBOLT_STREAM_NO_RESOURCES,
  RINGBOLT_STREAM_REASON_NONE = 0x7fffffff /* no reason: a number that is none can be passed */
} ringbolt_stream_reason;

/* "peer-closed" and the like; "unknown" for a number that is none. Never NULL. */
const char* ringbolt_stream_reason_name(ringbolt_stream_reason reason);
/* What happened and what to do about it. Never NULL. */
const char* ringbolt_stream_reason_words(ringbolt_stream_reason reason);

/* What may be waited for, as bits. */
typedef enum ringbolt_stream_event {
  RINGBOLT_STREAM_READABLE = 1,           /* bytes to read, or the end */
  RINGBOLT_STREAM_WRITABLE = 2,           /* room for one byte at least, or the end */
  RINGBOLT_STREAM_ENDED = 4,              /* nothing more comes than what is unread */
  RINGBOLT_STREAM_CONNECTED = 8,          /* both sides are ready */
  RINGBOLT_STREAM_EVENT_NONE = 0x7fffffff /* likewise */
} ringbolt_stream_event;

/* What all streams of a program share: the libraries, a budget of memory, and a thread that looks after streams while
 * nobody calls them. 0 and NULL leave a member to its default. struct_size: sizeof of it; later versions add members.
 */
typedef struct ringbolt_stream_service_options {
  size_t struct_size;
  const char* verbs;            /* "auto", "system", "soft" or a path; NULL: RINGBOLT_VERBS, else "auto" */
  uint64_t memory_budget_bytes; /* for the buffers of all streams; 16 GiB */
  uint32_t service_interval_ms; /* how often idle streams are looked after; 500 */
  uint32_t reserved;            /* 0 */
} ringbolt_stream_service_options;

/* What one stream is like; likewise. */
typedef struct ringbolt_stream_options {
  size_t struct_size;
  uint32_t receive_bytes;      /* of a receive buffer, 4096 to 16 MiB; 1 MiB. The peer sends so much before it waits */
  uint32_t receive_buffers;    /* 1 to 16; 1. With more the peer goes on while the program reads */
  uint32_t max_send_bytes;     /* longest receive buffer of a peer; 16 MiB. So much memory is taken to send from */
  uint32_t spin_us;            /* how long a call that waits polls before it sleeps; 0 */
  uint32_t keepalive_ms;       /* of a server, to idle clients; of a client, writes of nothing. 3000 */
  uint32_t connect_timeout_ms; /* for all of connecting; of a server, from the request to "ready to use"; 5000 */
  uint32_t flags;              /* RINGBOLT_STREAM_NO_KEEPALIVE */
  uint32_t reserved;           /* 0 */
  /* Memory of the program's own for the receive buffers, receive_bytes times receive_buffers of it, which stays until
   * the stream was destroyed; NULL: the library's. Not of a listener. */
  void* receive_memory;
  size_t receive_memory_bytes;
} ringbolt_stream_options;

enum { RINGBOLT_STREAM_NO_KEEPALIVE = 1 };

/* Whom a listener takes; likewise. */
typedef struct ringbolt_stream_listener_options {
  size_t struct_size;
  const ringbolt_stream_options* stream; /* of each stream; NULL: all defaults */
  const char* const* allowed; /* "10.0.0.7", "10.1.0.0/16", "fd77::/64", NULL behind the last; NULL: everybody */
  uint32_t max_streams;       /* at a time; 10000 */
  uint32_t backlog;           /* requests that wait to be accepted; 0: as many as the connection manager holds */
} ringbolt_stream_listener_options;

/* Loads the libraries. `options` may be NULL. The words of an error say why RDMA can't be used. */
int ringbolt_stream_service_create(const ringbolt_stream_service_options* options, ringbolt_stream_service** service);
/* Its streams and listeners live on. NULL is nothing. */
void ringbolt_stream_service_destroy(ringbolt_stream_service* service);
/* How many streams of the service ended for that reason. */
int ringbolt_stream_service_ended(const ringbolt_stream_service* service, ringbolt_stream_reason reason,
                                  uint64_t* count);

/* Connects, and waits for it up to timeout_ms; 0 begins it alone: wait for RINGBOLT_STREAM_CONNECTED. `host`: an
 * address; or a name, which is looked up within timeout_ms: with 0 within connect_timeout_ms, the one call that blocks
 * then. A resolver that does not answer is left behind, in a thread of its own. `options` may be NULL. */
int ringbolt_stream_connect(ringbolt_stream_service* service, const char* host, uint16_t port,
                            const ringbolt_stream_options* options, uint64_t timeout_ms, ringbolt_stream** stream);

/* Listens. `host` NULL or "": at all addresses of the machine; a name is looked up within connect_timeout_ms. Port 0: a
 * free one. `options` may be NULL. */
int ringbolt_stream_listen(ringbolt_stream_service* service, const char* host, uint16_t port,
                           const ringbolt_stream_listener_options* options, ringbolt_stream_listener** listener);
/* Its streams live on. NULL is nothing. */
void ringbolt_stream_listener_destroy(ringbolt_stream_listener* listener);
int ringbolt_stream_listener_port(const ringbolt_stream_listener* listener, uint16_t* port);
/* For poll(2) and epoll(7): readable while a request waits. The listener's own. */
int ringbolt_stream_listener_fd(const ringbolt_stream_listener* listener, int* fd);
/* How many requests and streams of the listener ended for that reason, and, for RINGBOLT_STREAM_OPEN, how many streams
 * it has now. */
int ringbolt_stream_listener_ended(const ringbolt_stream_listener* listener, ringbolt_stream_reason reason,
                                   uint64_t* count);
/* The next stream. It may not be connected yet: its calls wait for that. */
int ringbolt_stream_accept(ringbolt_stream_listener* listener, uint64_t timeout_ms, ringbolt_stream** stream);

/* Waits until all that was written is known to be in the peer's memory, then ends the stream, which is still to be
 * destroyed. 0: it is, whether the peer's program reads it or not. An error says that some may not be, and its words
 * and `bytes_arrived` how much: ETIMEDOUT; EPIPE where the peer has closed the stream first and had not acknowledged
 * all, though it may have read it; ECONNRESET where it does not answer any more. */
int ringbolt_stream_close(ringbolt_stream* stream, uint64_t timeout_ms);
/* Ends it without waiting, and frees it. NULL is nothing. */
void ringbolt_stream_destroy(ringbolt_stream* stream);

/* Up to `size` bytes, one at least: *n is how many, 0 when the peer has closed the stream and all was read. */
int ringbolt_stream_read(ringbolt_stream* stream, void* data, size_t size, uint64_t timeout_ms, size_t* n);
/* The unread bytes where they lie, in up to two pieces, the second behind the first; of no length when the peer has
 * closed the stream. They are the program's until ringbolt_stream_consume(). A hostile peer may write there at any
 * time: copy what decides something before looking at it. */
int ringbolt_stream_peek(ringbolt_stream* stream, uint64_t timeout_ms, struct iovec pieces[2]);
/* So many of them were taken. EINVAL: there are not so many. */
int ringbolt_stream_consume(ringbolt_stream* stream, size_t count);

/* All of it, or as much as has found room by then: *n is how much, and it is no error that it is not all, unless it is
 * nothing. After a short write the descriptor also stands for RINGBOLT_STREAM_WRITABLE, until that was told by
 * ringbolt_stream_wait() or the next write. What was written is on its way when this returns. */
int ringbolt_stream_write(ringbolt_stream* stream, const void* data, size_t size, uint64_t timeout_ms, size_t* n);
/* Likewise of several pieces, up to 1024, which leave as one message if they are short. */
int ringbolt_stream_writev(ringbolt_stream* stream, const struct iovec* pieces, int n_pieces, uint64_t timeout_ms,
                           size_t* n);

/* Memory of the program's own to send from without a copy. It stays where it is until it is unregistered or the stream
 * was destroyed. ENOTCONN: the stream has no device yet. EBUSY: it is still being sent. */
int ringbolt_stream_register(ringbolt_stream* stream, void* memory, size_t size);
int ringbolt_stream_unregister(ringbolt_stream* stream, void* memory);
/* As ringbolt_stream_write(), from registered memory, which stays untouched until ringbolt_stream_wait_sent(). EINVAL:
 * it is not, or not all of it is, registered. */
int ringbolt_stream_write_registered(ringbolt_stream* stream, const void* data, size_t size, uint64_t timeout_ms,
                                     size_t* n);
/* Until the device needs no memory any more that was written so. */
int ringbolt_stream_wait_sent(ringbolt_stream* stream, uint64_t timeout_ms);

/* One descriptor for poll(2) and epoll(7), the stream's own: readable (POLLIN) while one of the wanted events is there.
 * It may be readable for less: after each time ask ringbolt_stream_wait() with 0, or read and write with 0, until they
 * have nothing more. */
int ringbolt_stream_fd(ringbolt_stream* stream, int* fd);
/* Which events it stands for; RINGBOLT_STREAM_READABLE at first. */
int ringbolt_stream_want(ringbolt_stream* stream, uint32_t events);
/* Waits until one of the events is there, and says which are: ENDED and CONNECTED too, asked for or not. With
 * timeout_ms 0 it looks, and answers 0 even if there is none. */
int ringbolt_stream_wait(ringbolt_stream* stream, uint32_t events, uint64_t timeout_ms, uint32_t* now);

/* Why it ended. */
int ringbolt_stream_ended(const ringbolt_stream* stream, ringbolt_stream_reason* reason);
/* In words that name the peer and the device; "" while it has not. Writes up to `size` bytes, the final zero included,
 * and returns how many characters there are in all. So do the two below. */
size_t ringbolt_stream_words(const ringbolt_stream* stream, char* text, size_t size);
/* The RDMA device that carries it: "rdma_lo"; "" while none was found. */
size_t ringbolt_stream_device(const ringbolt_stream* stream, char* text, size_t size);
/* "10.0.0.7:41234", "[fd77::1]:6379". */
size_t ringbolt_stream_peer(const ringbolt_stream* stream, char* text, size_t size);

/* What a stream has seen. Later versions add members. */
typedef struct ringbolt_stream_statistics {
  size_t struct_size;
  uint64_t bytes_sent;
  uint64_t bytes_received;
  uint64_t messages_sent;
  uint64_t messages_received;
  uint64_t announcements_sent;     /* of receive buffers: all but the first are re-registrations */
  uint64_t announcements_received; /* likewise of the peer's */
  uint64_t stalls;                 /* times that a writer waited for the peer to announce its buffer anew */
  uint64_t stall_ns;               /* and for how long */
  uint64_t keepalives_sent;
  uint64_t keepalives_skipped; /* the peer had not taken several before */
  uint64_t keepalives_received;
  uint64_t receives_reposted;
  uint64_t bytes_arrived; /* of bytes_sent: known to be in the peer's memory. Exact once the stream was closed */
} ringbolt_stream_statistics;

/* struct_size is to be set. */
int ringbolt_stream_get_statistics(const ringbolt_stream* stream, ringbolt_stream_statistics* statistics);

#ifdef __cplusplus
}
#endif
