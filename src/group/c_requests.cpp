// The C border, of calls that are begun and waited for later.
#include "group/c_border.h"

namespace {

using ringbolt::c_border::answer;
using ringbolt::c_border::begin;
using ringbolt::c_border::guarded;
using ringbolt::c_border::of;
using ringbolt::c_border::per_rank;
using ringbolt::c_border::refuse;
using ringbolt::c_border::within;

}  // namespace

extern "C" {

RINGBOLT_PUBLIC int ringbolt_all_reduce_start(ringbolt_group* group, const void* in, void* out, size_t count,
                                              ringbolt_type type, ringbolt_reduction reduction, uint64_t timeout_ms,
                                              ringbolt_request** request) {
  return begin(group, request, [&](auto& g) {
    return g.all_reduce_async(in, out, count, of(type), of(reduction), within(timeout_ms));
  });
}

RINGBOLT_PUBLIC int ringbolt_reduce_scatter_start(ringbolt_group* group, const void* in, void* out, size_t count,
                                                  ringbolt_type type, ringbolt_reduction reduction, uint64_t timeout_ms,
                                                  ringbolt_request** request) {
  return begin(group, request, [&](auto& g) {
    return g.reduce_scatter_async(in, out, count, of(type), of(reduction), within(timeout_ms));
  });
}

RINGBOLT_PUBLIC int ringbolt_all_gather_start(ringbolt_group* group, const void* in, void* out, size_t count,
                                              ringbolt_type type, uint64_t timeout_ms, ringbolt_request** request) {
  return begin(group, request,
               [&](auto& g) { return g.all_gather_async(in, out, count, of(type), within(timeout_ms)); });
}

RINGBOLT_PUBLIC int ringbolt_all_gatherv_start(ringbolt_group* group, const void* in, void* out, const size_t* counts,
                                               ringbolt_type type, uint64_t timeout_ms, ringbolt_request** request) {
  return begin(group, request, [&](auto& g) {
    return g.all_gatherv_async(in, out, per_rank(g, counts), of(type), within(timeout_ms));
  });
}

RINGBOLT_PUBLIC int ringbolt_broadcast_start(ringbolt_group* group, void* data, size_t count, ringbolt_type type,
                                             uint32_t root, uint64_t timeout_ms, ringbolt_request** request) {
  return begin(group, request,
               [&](auto& g) { return g.broadcast_async(data, count, of(type), root, within(timeout_ms)); });
}

RINGBOLT_PUBLIC int ringbolt_reduce_start(ringbolt_group* group, const void* in, void* out, size_t count,
                                          ringbolt_type type, ringbolt_reduction reduction, uint32_t root,
                                          uint64_t timeout_ms, ringbolt_request** request) {
  return begin(group, request, [&](auto& g) {
    return g.reduce_async(in, out, count, of(type), of(reduction), root, within(timeout_ms));
  });
}

RINGBOLT_PUBLIC int ringbolt_gather_start(ringbolt_group* group, const void* in, void* out, size_t count,
                                          ringbolt_type type, uint32_t root, uint64_t timeout_ms,
                                          ringbolt_request** request) {
  return begin(group, request,
               [&](auto& g) { return g.gather_async(in, out, count, of(type), root, within(timeout_ms)); });
}

RINGBOLT_PUBLIC int ringbolt_scatter_start(ringbolt_group* group, const void* in, void* out, size_t count,
                                           ringbolt_type type, uint32_t root, uint64_t timeout_ms,
                                           ringbolt_request** request) {
  return begin(group, request,
               [&](auto& g) { return g.scatter_async(in, out, count, of(type), root, within(timeout_ms)); });
}

RINGBOLT_PUBLIC int ringbolt_all_to_all_start(ringbolt_group* group, const void* in, void* out, size_t count,
                                              ringbolt_type type, uint64_t timeout_ms, ringbolt_request** request) {
  return begin(group, request,
               [&](auto& g) { return g.all_to_all_async(in, out, count, of(type), within(timeout_ms)); });
}

RINGBOLT_PUBLIC int ringbolt_all_to_allv_start(ringbolt_group* group, const void* in, const size_t* sent, void* out,
                                               const size_t* received, ringbolt_type type, uint64_t timeout_ms,
                                               ringbolt_request** request) {
  return begin(group, request, [&](auto& g) {
    return g.all_to_allv_async(in, per_rank(g, sent), out, per_rank(g, received), of(type), within(timeout_ms));
  });
}

RINGBOLT_PUBLIC int ringbolt_barrier_start(ringbolt_group* group, uint64_t timeout_ms, ringbolt_request** request) {
  return begin(group, request, [&](auto& g) { return g.barrier_async(within(timeout_ms)); });
}

RINGBOLT_PUBLIC int ringbolt_send_start(ringbolt_group* group, const void* data, size_t count, ringbolt_type type,
                                        uint32_t peer, uint64_t timeout_ms, ringbolt_request** request) {
  return begin(group, request, [&](auto& g) { return g.send_async(data, count, of(type), peer, within(timeout_ms)); });
}

RINGBOLT_PUBLIC int ringbolt_recv_start(ringbolt_group* group, void* data, size_t count, ringbolt_type type,
                                        uint32_t peer, uint64_t timeout_ms, ringbolt_request** request) {
  return begin(group, request, [&](auto& g) { return g.recv_async(data, count, of(type), peer, within(timeout_ms)); });
}

// The request is gone whatever the answer is: a second wait would use freed memory.
RINGBOLT_PUBLIC int ringbolt_wait(ringbolt_request* request) {
  if (request == nullptr) {
    return refuse(EINVAL, "the request is NULL");
  }
  const int code = guarded([&] { return answer(request->request.wait()); });
  delete request;
  return code;
}

RINGBOLT_PUBLIC int ringbolt_wait_for(ringbolt_request* request, uint64_t timeout_ms) {
  // No call is over at once: loops that wait for it end.
  if (request == nullptr) {
    return 1;
  }
  int has_ended = 0;
  // Nothing can be answered but yes or no; if it threw, it has not ended as far as is known.
  (void)guarded([&] {
    has_ended = request->request.wait_for(timeout_ms) ? 1 : 0;
    return 0;
  });
  return has_ended;
}

RINGBOLT_PUBLIC int ringbolt_test(const ringbolt_request* request) {
  return request == nullptr || request->request.is_done() ? 1 : 0;
}

RINGBOLT_PUBLIC int ringbolt_cancel(ringbolt_request* request) {
  if (request == nullptr) {
    return refuse(EINVAL, "the request is NULL");
  }
  return guarded([&] {
    request->request.cancel();
    return answer({});
  });
}

}  // extern "C"
