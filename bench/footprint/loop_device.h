#pragma once

#include <infiniband/verbs.h>

#include <memory>
#include <vector>

namespace ringbolt::bench {

template <auto destroy>
struct Destroy {
  template <class T>
  void operator()(T* object) const {
    destroy(object);
  }
};
template <class T, auto destroy>
using Owned = std::unique_ptr<T, Destroy<destroy>>;
using QueuePair = Owned<ibv_qp, ibv_destroy_qp>;

using CompletionQueue = Owned<ibv_cq, ibv_destroy_cq>;

/// The first device of the verbs library, with a PD, an armable CQ, and RC queue pairs of default depth (128 sends, 128
/// receives, one piece each) that may be connected to each other. Throws std::runtime_error. Not thread-safe.
class LoopDevice {
 public:
  /// Queue pairs find each other by the GID of that index.
  explicit LoopDevice(uint8_t gid_index = 1);

  /// A queue pair in INIT, whose sends all have completions.
  QueuePair make_queue_pair() const { return make_queue_pair(*cq_, true, 0); }
  /// The same on another completion queue; `signals_all` false: a send says itself whether it wants a completion.
  QueuePair make_queue_pair(ibv_cq& cq, bool signals_all, uint32_t inline_bytes) const;
  /// With the device's channel.
  CompletionQueue make_completion_queue() const;
  /// Brings both to RTS, connected to each other.
  void connect(ibv_qp& one, ibv_qp& other) const;
  /// Sends `count` empty messages from one to the other and waits for both sides' completions.
  /// On the device's own queue, for 10 s at most in all.
  void exchange(ibv_qp& from, ibv_qp& to, int count) const;
  /// Posts one receive, and one send that will complete it.
  void post_message(ibv_qp& from, ibv_qp& to) const;

  ibv_pd* pd() const { return pd_.get(); }
  ibv_cq* cq() const { return cq_.get(); }
  ibv_comp_channel* channel() const { return channel_.get(); }

 private:
  Owned<ibv_context, ibv_close_device> context_;
  Owned<ibv_pd, ibv_dealloc_pd> pd_;
  Owned<ibv_comp_channel, ibv_destroy_comp_channel> channel_;
  CompletionQueue cq_;
  const uint8_t gid_index_;
  ibv_gid gid_{};
};

}  // namespace ringbolt::bench
