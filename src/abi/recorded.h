#pragma once

#include <infiniband/verbs.h>

#include <type_traits>

#include "abi/objects.h"
#include "base/c_border.h"
#include "trace/recorder.h"

/// Posts and polls of programs that record (RINGBOLT_RECORD): around the calls of a context's table, whichever these
/// are. Tables of others do not lead here. Hot path.
namespace ringbolt::abi {

/// Where the program is, in the frame of the function that it calls.
#define RINGBOLT_RECORDED_PLACE(to) (to)->place_of_call(__builtin_return_address(0), __builtin_frame_address(0))

// recorded.cpp
/// Those from `wr` to before `end`, which were taken.
void record_sends(trace::Recorder& to, ibv_qp* c, const ibv_send_wr* wr, const ibv_send_wr* end, uint64_t at,
                  uint64_t place);
/// `kind`: to a queue pair, or a shared queue; `object`: its number, or id.
void record_receives(trace::Recorder& to, trace::Kind kind, uint32_t object, const ibv_recv_wr* wr,
                     const ibv_recv_wr* end, uint64_t at, uint64_t place);
void record_polled(trace::Recorder& to, const ibv_wc* wc, int count, uint64_t place);
/// `which`: as Kind::refused numbers them.
void record_refused(trace::Recorder& to, uint8_t which, uint32_t object, uint64_t wr_id, int error, uint64_t place);
void note_recorded(ibv_qp& qp, const ibv_qp_init_attr& init);
void forget_recorded(const Qp& qp);
/// `kind` of something that happened to a completion queue.
void record_queue(trace::Kind kind, const ibv_cq* cq, uint32_t number = 1, uint8_t flags = 0);

/// A post that wants to know when it began, if anybody has looked: 0, nobody has.
template <auto kPost, class Queue, class Wr>
[[gnu::always_inline]] inline int post_at(Queue* queue, Wr* wr, Wr** bad, [[maybe_unused]] uint64_t at) {
  if constexpr (std::is_invocable_v<decltype(kPost), Queue*, Wr*, Wr**, uint64_t>) {
    return kPost(queue, wr, bad, at);
  } else {
    return kPost(queue, wr, bad);
  }
}

/// Of a post that has failed: where those end that were taken. `refused`: what the post has written to its bad_wr,
/// which is handed on to the program's; null: nothing, as some profiles do it. Then none counts as taken, and the
/// program's own pointer is neither read nor written: it may never have been set.
template <class Wr>
const Wr* end_of_taken(const Wr* wr, Wr* refused, Wr** bad) {
  if (refused != nullptr && bad != nullptr) {
    *bad = refused;
  }
  return refused != nullptr ? refused : wr;
}

template <auto kPost>
[[gnu::always_inline]] inline int recorded_post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) {
  trace::Recorder* const to = trace::recorder();
  if (to == nullptr) {  // a forked child's
    return post_at<kPost>(qp, wr, bad, 0);
  }
  const uint64_t place = bad == nullptr ? batch_place() : RINGBOLT_RECORDED_PLACE(to);
  const uint64_t at = to->time();
  ibv_send_wr* refused = nullptr;
  const int error = post_at<kPost>(qp, wr, bad == nullptr ? nullptr : &refused, at);
  if (error == 0) [[likely]] {
    record_sends(*to, qp, wr, nullptr, at, place);
    return 0;
  }
  const ibv_send_wr* const end = end_of_taken(wr, refused, bad);  // of extended posts all or none are taken
  record_sends(*to, qp, wr, end, at, place);
  record_refused(*to, 0, qp->qp_num, end == nullptr ? 0 : end->wr_id, error, place);
  return error;
}

/// To a queue pair, or to a shared receive queue.
template <auto kPost, class Queue>
[[gnu::always_inline]] inline int recorded_post_receive(Queue* queue, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  trace::Recorder* const to = trace::recorder();
  if (to == nullptr) {
    return post_at<kPost>(queue, wr, bad, 0);
  }
  constexpr bool kIsShared = std::is_same_v<Queue, ibv_srq>;
  uint32_t object = 0;
  if constexpr (kIsShared) {
    object = trace::id_of(queue);
  } else {
    object = queue->qp_num;
  }
  const uint64_t place = RINGBOLT_RECORDED_PLACE(to);
  const uint64_t at = to->time();
  ibv_recv_wr* refused = nullptr;
  const int error = post_at<kPost>(queue, wr, &refused, at);
  const ibv_recv_wr* const end = error == 0 ? nullptr : end_of_taken(wr, refused, bad);
  record_receives(*to, kIsShared ? trace::Kind::post_shared : trace::Kind::post_receive, object, wr, end, at, place);
  if (error != 0) [[unlikely]] {
    record_refused(*to, kIsShared ? 2 : 1, object, end == nullptr ? 0 : end->wr_id, error, place);
  }
  return error;
}

template <auto kPoll>
[[gnu::always_inline]] inline int recorded_poll(ibv_cq* cq, int count, ibv_wc* wc) {
  const int got = kPoll(cq, count, wc);
  if (trace::Recorder* const to = trace::recorder(); got > 0 && to != nullptr) {
    record_polled(*to, wc, got, RINGBOLT_RECORDED_PLACE(to));
  }
  return got;
}

template <auto kArm>
[[gnu::always_inline]] inline int recorded_arm(ibv_cq* cq, int solicited_only) {
  record_queue(trace::Kind::armed, cq, 1, solicited_only != 0 ? 1 : 0);  // before: an event may come at once
  return kArm(cq, solicited_only);
}

/// Puts these in place of the calls that they are around.
template <auto kPoll, auto kArm, auto kSend, auto kReceive, auto kShared>
void record_calls(ibv_context_ops& ops) {
  using base::guarded;
  using base::put;
  if (trace::recorder() == nullptr) {
    return;
  }
  put(ops.poll_cq, guarded<recorded_poll<kPoll>, base::caught_minus_one>);
  put(ops.req_notify_cq, guarded<recorded_arm<kArm>>);
  put(ops.post_send, guarded<recorded_post_send<kSend>>);
  put(ops.post_recv, guarded<recorded_post_receive<kReceive, ibv_qp>>);
  put(ops.post_srq_recv, guarded<recorded_post_receive<kShared, ibv_srq>>);
}

}  // namespace ringbolt::abi
