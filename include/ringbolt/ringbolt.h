#pragma once

/* Ringbolt for programs in C, and for whatever can call C: a part of ringbolt/group.h, with the same meaning. */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

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

typedef struct ringbolt_group ringbolt_group;
typedef struct ringbolt_request ringbolt_request;

/* All functions return 0 or an errno, as ringbolt/status.h lists them, unless said otherwise. The words that belong to
 * the last error of the calling thread: never NULL; valid until its next call. */
const char* ringbolt_error(void);

/* Meets the other ranks, by the variables of the environment (docs/environment.md), and connects the cables. Blocks.
 * *group is set on success alone, and given back with ringbolt_leave(). */
int ringbolt_join(ringbolt_group** group);
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
/* Blocks until the call has ended, at the latest at its deadline, says how, and frees the request. */
int ringbolt_wait(ringbolt_request* request);
/* 1 if the call has ended, so that ringbolt_wait() does not block; else 0. Does not block. */
int ringbolt_test(const ringbolt_request* request);
/* Gives the call up on all ranks: those that are not done get ECANCELED. */
int ringbolt_cancel(ringbolt_request* request);

/* Ranks of one color become a group, in the order of (key, rank). A negative color: *made is NULL. */
int ringbolt_split(ringbolt_group* group, int color, int key, ringbolt_group** made);
/* After a rank has failed: the group of those that are left, which all of them ask for. The old one is still to be
 * given back. */
int ringbolt_shrink(ringbolt_group* group, ringbolt_group** made);
/* All ranks meet anew: those that are left call this, those that have been started again call ringbolt_join(). Give
 * back groups that came of this one first; this one is still to be given back, and has no ranks any more. */
int ringbolt_rejoin(ringbolt_group* group, ringbolt_group** made);
/* Cables, ways and figures, for people: writes up to `size` bytes, the final zero included, and returns how many
 * characters there are in all. */
size_t ringbolt_report(const ringbolt_group* group, char* text, size_t size);
/* Makes every call of the group fail on all ranks. */
int ringbolt_abort(ringbolt_group* group, const char* reason);

#ifdef __cplusplus
}
#endif
