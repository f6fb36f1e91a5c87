// Posting for RINGBOLT_EXPLAIN: the tables of contexts lead here instead, so that who explains nothing pays nothing.

#include <cerrno>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "abi/objects.h"
#include "abi/recorded.h"
#include "base/c_border.h"
#include "base/lock_guard.h"
#include "base/mutex.h"
#include "device/work_request.h"

namespace ringbolt::abi {
namespace {

/// Of the program's call of the guard that this is inlined into.
#define RINGBOLT_OWN_CALL_SITE() base::call_site_of(__builtin_frame_address(0), __builtin_return_address(0))

/// The same of a post at `at`, as explained_post_send_at() has it. What the recorder has found out of the place is not
/// found out again: the callers of a call that is the program's own are never told (base::place_of()).
[[gnu::always_inline]] inline base::CallSite site_of_post(const void* frame, const void* returns_to, uint64_t at) {
  if (at != 0 && trace::recorder()->is_own_place(returns_to)) [[likely]] {
    return {{reinterpret_cast<uintptr_t>(returns_to), 0, 0}};
  }
  return base::call_site_of(frame, returns_to);
}
#define RINGBOLT_SITE_OF_POST(at) site_of_post(__builtin_frame_address(0), __builtin_return_address(0), at)

/// Empty outside of wr_complete().
thread_local base::CallSite site_of_batch;

/// The queue pairs that were destroyed last are kept, so that who goes on to use one can be told.
/// Owns them; the one that was kept for longest is deleted for each new one. Thread-safe.
class Destroyed {
 public:
  void keep(std::unique_ptr<Qp> qp, std::string place) {
    // Bounds the memory: a program that makes and destroys without end is told of its latest ones.
    constexpr size_t kMost = 256;
    const base::LockGuard guard(mutex_);
    if (kept_.size() == kMost) {
      kept_.pop_front();
    }
    kept_.push_back({std::move(qp), std::move(place)});
  }
  std::string place_of(const ibv_qp* qp) {
    const base::LockGuard guard(mutex_);
    for (const auto& [one, place] : kept_) {
      if (one->classical() == qp) {
        return place;
      }
    }
    return "somewhere";
  }

 private:
  base::Mutex mutex_;
  std::deque<std::pair<std::unique_ptr<Qp>, std::string>> kept_ RINGBOLT_GUARDED_BY(mutex_);
};

Destroyed& destroyed() {
  static auto* const kept = new Destroyed;  // for as long as the process lives: libraries may end in any order
  return *kept;
}

}  // namespace

void keep_destroyed(Qp* qp) {
  // Null from here on: posts look at this first. A thread that posts at this moment races with the destroy, as
  // without us.
  qp->impl.reset();
  end_qp_ex(*qp);
  destroyed().keep(std::unique_ptr<Qp>(qp), base::calling_place());
}

base::Explanation why_destroyed(const ibv_qp* qp) {
  return {fmt::format("queue pair {:#x} was destroyed at {}", qp->qp_num, destroyed().place_of(qp)),
          "set pointers to what is destroyed to NULL, or destroy it later"};
}

int refuse_destroyed(const char* call, const ibv_qp* qp) {
  return base::refused(EINVAL, call, [&] { return why_destroyed(qp); });
}

void note_batch(const base::CallSite& site) { site_of_batch = site; }
uint64_t batch_place() {
  const uint64_t place = site_of_batch.returns[0];
  if (trace::Recorder* const to = trace::recorder(); to != nullptr) {
    to->note_place(place);
  }
  return place;
}

namespace {

// Each within its guard, whose caller is the program's call. `at`: when, by the recorder's clock; 0: nobody has looked.
[[gnu::always_inline]] inline int explained_poll_cq(ibv_cq* cq, int count, ibv_wc* wc) {
  const int got = poll_cq(cq, count, wc);
  if (device::Waiters& pollers = Cq::of(cq).impl->pollers(); pollers.wants_site(got, __builtin_return_address(0))) {
    pollers.note(RINGBOLT_OWN_CALL_SITE(), __builtin_return_address(0));
  } else {
    pollers.note_poll(got);
  }
  return got;
}

[[gnu::always_inline]] inline int explained_post_send_at(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad, uint64_t at) {
  if (Qp::of(qp).impl == nullptr) [[unlikely]] {
    device::name_refused(wr, bad);
    return refuse_destroyed("ibv_post_send", qp);
  }
  const bool is_batch = bad == nullptr && site_of_batch;  // of wr_complete(), which the program has called
  return Qp::of(qp).impl->post_send_noted(wr, bad, {is_batch ? site_of_batch : RINGBOLT_SITE_OF_POST(at), at});
}
[[gnu::always_inline]] inline int explained_post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) {
  return explained_post_send_at(qp, wr, bad, 0);
}

[[gnu::always_inline]] inline int explained_post_receive_at(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad,
                                                            uint64_t at) {
  if (Qp::of(qp).impl == nullptr) [[unlikely]] {
    device::name_refused(wr, bad);
    return refuse_destroyed("ibv_post_recv", qp);
  }
  return Qp::of(qp).impl->post_receive_noted(wr, bad, {RINGBOLT_SITE_OF_POST(at), at});
}
[[gnu::always_inline]] inline int explained_post_receive(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  return explained_post_receive_at(qp, wr, bad, 0);
}

[[gnu::always_inline]] inline int explained_post_srq_receive(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  return Srq::of(srq).impl->post_noted(wr, bad, {RINGBOLT_OWN_CALL_SITE()});
}

}  // namespace

void explain_calls(ibv_context_ops& ops) {
  base::put(ops.poll_cq, base::guarded<explained_poll_cq>);
  base::put(ops.post_srq_recv, base::guarded<explained_post_srq_receive>);
  base::put(ops.post_send, base::guarded<explained_post_send>);
  base::put(ops.post_recv, base::guarded<explained_post_receive>);
  record_calls<explained_poll_cq, request_notification, explained_post_send_at, explained_post_receive_at,
               explained_post_srq_receive>(ops);
}

}  // namespace ringbolt::abi
