#pragma once

/* Ringbolt for programs in C, and for whatever can call C. All that libringbolt.so exports is declared here:
 * ringbolt/group.h is made of it, and says more about each call. */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of this header; ringbolt_version() tells that of the library. Within one major number a program runs with any library
 * that is not older than the header it was compiled with. */
#define RINGBOLT_VERSION_MAJOR 0
#define RINGBOLT_VERSION_MINOR 1
#define RINGBOLT_VERSION_PATCH 0
#define RINGBOLT_VERSION (RINGBOLT_VERSION_MAJOR * 10000 + RINGBOLT_VERSION_MINOR * 100 + RINGBOLT_VERSION_PATCH)
uint32_t ringbolt_version(void);

typedef enum ringbolt_type {
  RINGBOLT_BOOL,
  RINGBOLT_INT8,
  RINGBOLT_INT16,
  RINGBOLT_INT32,
  RINGBOLT_INT64,
  RINGBOLT_UINT8,
  RINGBOLT_UINT16,
  RINGBOLT_UINT32,
  RINGBOLT_UINT64,
  RINGBOLT_FLOAT16,
  RINGBOLT_BFLOAT16,
  RINGBOLT_FLOAT32,
  RINGBOLT_FLOAT64,
  RINGBOLT_COMPLEX64,
  RINGBOLT_TYPE_NONE = 0x7fffffff /* no type: a number that is none can be passed, and is refused */
} ringbolt_type;

typedef enum ringbolt_reduction {
  RINGBOLT_SUM,
  RINGBOLT_PROD,
  RINGBOLT_MAX,
  RINGBOLT_MIN,
  RINGBOLT_AVG,
  RINGBOLT_REDUCTION_NONE = 0x7fffffff /* likewise */
} ringbolt_reduction;

typedef enum ringbolt_checksums {
  RINGBOLT_CHECKSUMS_OFF,
  RINGBOLT_CHECKSUMS_ON,                  /* CRC-32C of every chunk that crosses a cable */
  RINGBOLT_CHECKSUMS_EVERY,               /* also of what is read in memory that two ranks share */
  RINGBOLT_CHECKSUMS_UNKNOWN = 0x7fffffff /* likewise */
} ringbolt_checksums;

typedef struct ringbolt_group ringbolt_group;
typedef struct ringbolt_request ringbolt_request;
typedef struct ringbolt_options ringbolt_options;

/* All functions return 0 or an errno, as ringbolt/status.h lists them, unless said otherwise. The words that belong to
 * the last error of the calling thread: never NULL; valid until its next call. */
const char* ringbolt_error(void);

/* How ranks meet and what their group is like. What nobody has set, the environment says (docs/environment.md); what
 * has been set wins over it, and NULL, "" or 0 leaves it to the environment again. Messages name the variable that
 * would have said the same. Opaque, with a function for each, because it owns copies of texts and is made once: later
 * versions can add what they like. One thread at a time. */
int ringbolt_options_create(ringbolt_options** options);
void ringbolt_options_destroy(ringbolt_options* options);
/* NAME=VALUE each, NULL behind the last: they stand for the process's environment, which is not read then. */
int ringbolt_options_set_environment(ringbolt_options* options, const char* const* variables);
/* This process's rank, from 0, of so many. */
int ringbolt_options_set_rank(ringbolt_options* options, uint32_t rank, uint32_t size);
/* Where rank 0 is: an address or a name, and a port. With an exchange at rank 0 alone, and port 0. */
int ringbolt_options_set_meeting(ringbolt_options* options, const char* host, uint16_t port);
/* At which address of its machine rank 0 listens. */
int ringbolt_options_set_bind_address(ringbolt_options* options, const char* address);
/* Groups of different names refuse each other. Up to 64 printable letters. */
int ringbolt_options_set_group(ringbolt_options* options, const char* name);
/* What all ranks know and nobody else; never sent. */
int ringbolt_options_set_secret(ringbolt_options* options, const char* secret);
/* For the whole of joining. */
int ringbolt_options_set_join_timeout(ringbolt_options* options, uint64_t timeout_ms);
/* Of calls that say nothing of their own; 300,000 if it is not set, and never 0. */
int ringbolt_options_set_timeout(ringbolt_options* options, uint64_t timeout_ms);
/* "auto", "system", "soft" or a path. */
int ringbolt_options_set_verbs(ringbolt_options* options, const char* library);
/* Whether cables are measured when ranks meet. Alike on all ranks, as are checksums. */
int ringbolt_options_set_measuring(ringbolt_options* options, int is_measured);
int ringbolt_options_set_checksums(ringbolt_options* options, ringbolt_checksums checksums);
/* Gives `mine` to all ranks and takes what each gives: `all` has room for `length_bytes` of every rank, in the order of
 * ranks. Returns 0 or an errno; no exception may leave it. */
typedef int (*ringbolt_exchange)(void* context, const void* mine, void* all, size_t length_bytes);
/* Ranks that can tell each other something already, by MPI or a store, need no port that they agree on: rank 0 takes a
 * free one and tells it, and a secret if there is none. Ranks on several machines need a host, of rank 0. Called once
 * by ringbolt_join_with() on all ranks, in the same thread, and again by ringbolt_rejoin(): `context` stays valid until
 * the group and all that have come of it are given back. */
int ringbolt_options_set_exchange(ringbolt_options* options, ringbolt_exchange exchange, void* context);

/* Meets the other ranks, by the variables of the environment (docs/environment.md), and connects the cables. Blocks.
 * *group is set on success alone, and given back with ringbolt_leave(). */
int ringbolt_join(ringbolt_group** group);
/* The same by options, which may be destroyed afterwards; NULL: none. */
int ringbolt_join_with(const ringbolt_options* options, ringbolt_group** group);
void ringbolt_leave(ringbolt_group* group);
uint32_t ringbolt_rank(const ringbolt_group* group);
uint32_t ringbolt_size(const ringbolt_group* group);

/* Collectives: all ranks call the same in the same order. Counts are in elements; timeout_ms 0 is the group's own. */
int ringbolt_all_reduce(ringbolt_group* group, const void* in, void* out, size_t count, ringbolt_type type,
                        ringbolt_reduction reduction, uint64_t timeout_ms);
int ringbolt_reduce_scatter(ringbolt_group* group, const void* in, void* out, size_t count, ringbolt_type type,
                            ringbolt_reduction reduction, uint64_t timeout_ms);
int ringbolt_all_gather(ringbolt_group* group, const void* in, void* out, size_t count, ringbolt_type type,
                        uint64_t timeout_ms);
/* counts: [size], elements of each rank; in: [counts[rank]]; out: one after the other. */
int ringbolt_all_gatherv(ringbolt_group* group, const void* in, void* out, const size_t* counts, ringbolt_type type,
                         uint64_t timeout_ms);
int ringbolt_broadcast(ringbolt_group* group, void* data, size_t count, ringbolt_type type, uint32_t root,
                       uint64_t timeout_ms);
int ringbolt_reduce(ringbolt_group* group, const void* in, void* out, size_t count, ringbolt_type type,
                    ringbolt_reduction reduction, uint32_t root, uint64_t timeout_ms);
int ringbolt_gather(ringbolt_group* group, const void* in, void* out, size_t count, ringbolt_type type, uint32_t root,
                    uint64_t timeout_ms);
int ringbolt_scatter(ringbolt_group* group, const void* in, void* out, size_t count, ringbolt_type type, uint32_t root,
                     uint64_t timeout_ms);
int ringbolt_all_to_all(ringbolt_group* group, const void* in, void* out, size_t count, ringbolt_type type,
                        uint64_t timeout_ms);
/* sent, received: [size], elements to each rank and from it. */
int ringbolt_all_to_allv(ringbolt_group* group, const void* in, const size_t* sent, void* out, const size_t* received,
                         ringbolt_type type, uint64_t timeout_ms);
int ringbolt_send(ringbolt_group* group, const void* data, size_t count, ringbolt_type type, uint32_t peer,
                  uint64_t timeout_ms);
int ringbolt_recv(ringbolt_group* group, void* data, size_t count, ringbolt_type type, uint32_t peer,
                  uint64_t timeout_ms);
int ringbolt_barrier(ringbolt_group* group, uint64_t timeout_ms);

/* The same, begun and not waited for. Buffers stay valid and untouched until the call is done; counts are copied.
 * *request is set on success alone, and given back with ringbolt_wait(), or with ringbolt_cancel() and then
 * ringbolt_wait(). */
int ringbolt_all_reduce_start(ringbolt_group* group, const void* in, void* out, size_t count, ringbolt_type type,
                              ringbolt_reduction reduction, uint64_t timeout_ms, ringbolt_request** request);
int ringbolt_reduce_scatter_start(ringbolt_group* group, const void* in, void* out, size_t count, ringbolt_type type,
                                  ringbolt_reduction reduction, uint64_t timeout_ms, ringbolt_request** request);
int ringbolt_all_gather_start(ringbolt_group* group, const void* in, void* out, size_t count, ringbolt_type type,
                              uint64_t timeout_ms, ringbolt_request** request);
int ringbolt_all_gatherv_start(ringbolt_group* group, const void* in, void* out, const size_t* counts,
                               ringbolt_type type, uint64_t timeout_ms, ringbolt_request** request);
int ringbolt_broadcast_start(ringbolt_group* group, void* data, size_t count, ringbolt_type type, uint32_t root,
                             uint64_t timeout_ms, ringbolt_request** request);
int ringbolt_reduce_start(ringbolt_group* group, const void* in, void* out, size_t count, ringbolt_type type,
                          ringbolt_reduction reduction, uint32_t root, uint64_t timeout_ms, ringbolt_request** request);
int ringbolt_gather_start(ringbolt_group* group, const void* in, void* out, size_t count, ringbolt_type type,
                          uint32_t root, uint64_t timeout_ms, ringbolt_request** request);
int ringbolt_scatter_start(ringbolt_group* group, const void* in, void* out, size_t count, ringbolt_type type,
                           uint32_t root, uint64_t timeout_ms, ringbolt_request** request);
int ringbolt_all_to_all_start(ringbolt_group* group, const void* in, void* out, size_t count, ringbolt_type type,
                              uint64_t timeout_ms, ringbolt_request** request);
int ringbolt_all_to_allv_start(ringbolt_group* group, const void* in, const size_t* sent, void* out,
                               const size_t* received, ringbolt_type type, uint64_t timeout_ms,
                               ringbolt_request** request);
int ringbolt_barrier_start(ringbolt_group* group, uint64_t timeout_ms, ringbolt_request** request);
int ringbolt_send_start(ringbolt_group* group, const void* data, size_t count, ringbolt_type type, uint32_t peer,
                        uint64_t timeout_ms, ringbolt_request** request);
int ringbolt_recv_start(ringbolt_group* group, void* data, size_t count, ringbolt_type type, uint32_t peer,
                        uint64_t timeout_ms, ringbolt_request** request);

/* The same calls, and all that they can be asked for, in one struct. */
typedef enum ringbolt_operation {
  RINGBOLT_ALL_REDUCE,
  RINGBOLT_REDUCE_SCATTER,
  RINGBOLT_ALL_GATHER,
  RINGBOLT_ALL_GATHERV,
  RINGBOLT_BROADCAST,
  RINGBOLT_REDUCE,
  RINGBOLT_GATHER,
  RINGBOLT_SCATTER,
  RINGBOLT_ALL_TO_ALL,
  RINGBOLT_ALL_TO_ALLV,
  RINGBOLT_BARRIER,
  RINGBOLT_SEND,
  RINGBOLT_RECV,
  RINGBOLT_OPERATION_NONE = 0x7fffffff
} ringbolt_operation;

enum {
  /* Sums and products of floating-point numbers may be reduced in whatever order is fastest. */
  RINGBOLT_ANY_ORDER = 1
};

/* Set to 0 what you don't need: ringbolt_call call = {.struct_size = sizeof call, .operation = RINGBOLT_BARRIER}; a
 * program that was compiled with a smaller struct goes on working with later versions, which add members at the end. */
typedef struct ringbolt_call {
  size_t struct_size;
  ringbolt_operation operation;
  ringbolt_type type;
  ringbolt_reduction reduction;
  uint32_t rank;          /* the root; of a message the other end */
  const void* in;         /* of recv and broadcast not used */
  void* out;              /* of send not used; of broadcast the data on all ranks */
  size_t count;           /* elements, as in the functions above */
  const size_t* counts;   /* of all_gatherv, and of all_to_allv those that are sent */
  size_t n_counts;        /* how many: the group's size */
  const size_t* received; /* of all_to_allv */
  size_t n_received;      /* the group's size */
  uint64_t timeout_ms;    /* 0: the group's own */
  const char* algorithm;  /* "ring", "trees", ...; NULL: the one that should be fastest. Alike on all ranks */
  uint32_t flags;         /* RINGBOLT_ANY_ORDER */
  uint32_t reserved;      /* 0 */
} ringbolt_call;

/* Makes the call, and blocks until it has ended. */
int ringbolt_run(ringbolt_group* group, const ringbolt_call* call);
/* Begins it; the struct and what it points to, but for the buffers, are copied. */
int ringbolt_start(ringbolt_group* group, const ringbolt_call* call, ringbolt_request** request);

/* Blocks until the call has ended, at the latest at its deadline, says how, and frees the request. */
int ringbolt_wait(ringbolt_request* request);
/* Blocks until the call has ended, but not much longer than timeout_ms (20 ms at most), and frees nothing: 1 if it has
 * ended, so that ringbolt_wait() does not block; else 0. For who has to look at something else now and then, as Python
 * has to for signals. */
int ringbolt_wait_for(ringbolt_request* request, uint64_t timeout_ms);
/* 1 if the call has ended, so that ringbolt_wait() does not block; else 0. Does not block. */
int ringbolt_test(const ringbolt_request* request);
/* A descriptor for poll(2) and epoll(7): it becomes readable when a call that was begun with one of these functions may
 * have ended, or when the group has broken. Then read 8 bytes of it, which makes it unreadable again, and only then
 * ringbolt_test() all requests that are under way: what ends meanwhile makes it readable anew. Readable at first. The
 * library's own thread moves the calls. It is the group's: don't close it; don't use it after ringbolt_leave(). In a
 * group of one process no thread is there: see to deadlines with ringbolt_test(). */
int ringbolt_progress_fd(ringbolt_group* group, int* fd);
/* Gives the call up on all ranks: those that are not done get ECANCELED. */
int ringbolt_cancel(ringbolt_request* request);

/* Ranks of one color become a group, in the order of (key, rank). A negative color: *made is NULL. */
int ringbolt_split(ringbolt_group* group, int color, int key, ringbolt_group** made);
/* Ranks of a group become a group, in the order of `ranks` [n]; these alone call it, all with the same list, and the
 * others of `group` need not know of it, but pass on what these send each other. `exchange` gathers bytes among the n,
 * in that order, and is called several times before this returns, in the same thread, and not later. */
int ringbolt_subgroup(ringbolt_group* group, const uint32_t* ranks, size_t n, ringbolt_exchange exchange, void* context,
                      ringbolt_group** made);
/* After a rank has failed: the group of those that are left, which all of them ask for. The old one is still to be
 * given back. */
int ringbolt_shrink(ringbolt_group* group, ringbolt_group** made);
/* All ranks meet anew: those that are left call this, those that have been started again call ringbolt_join(). Give
 * back groups that came of this one first; this one is still to be given back, and has no ranks any more. */
int ringbolt_rejoin(ringbolt_group* group, ringbolt_group** made);
/* Cables, ways and figures, for people: writes up to `size` bytes, the final zero included, and returns how many
 * characters there are in all. */
size_t ringbolt_report(const ringbolt_group* group, char* text, size_t size);
/* Likewise: which algorithm a call of "all_reduce", "all_gather", ... would take, and what else would do. */
size_t ringbolt_explain(const ringbolt_group* group, const char* operation, size_t count, ringbolt_type type,
                        char* text, size_t size);
/* The ranks that pass on what this one sends to `peer`, as things are now, by their numbers when the ranks met: writes
 * up to `most` of them, and to *n how many there are. Errors: ERANGE, no such rank; EIO, no cables lead there any more.
 */
int ringbolt_relays(const ringbolt_group* group, uint32_t peer, uint32_t* relays, size_t most, size_t* n);
/* Makes every call of the group fail on all ranks. */
int ringbolt_abort(ringbolt_group* group, const char* reason);

#ifdef __cplusplus
}
#endif
