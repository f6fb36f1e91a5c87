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

/// The first device of the verbs library, with a PD, an armable CQ, and RC queue pairs of default depth (128 sends, 128
/// receives, one piece each) that may be connected to each other. Throws std::runtime_error. Not thread-safe.
class LoopDevice {
 public:
  LoopDevice();

  /// A queue pair in INIT.
  QueuePair make_queue_pair() const;
  /// Brings both to RTS, connected to each other.
  void connect(ibv_qp& one, ibv_qp& other) const;
  /// Sends `count` empty messages from one to the other and waits for both sides' completions.
  void exchange(ibv_qp& from, ibv_qp& to, int count) const;
  /// Posts one receive, and one send that will complete it.
  void post_message(ibv_qp& from, ibv_qp& to) const;

  ibv_cq* cq() const { return cq_.get(); }
  ibv_comp_channel* channel() const { return channel_.get(); }

 private:
  Owned<ibv_context, ibv_close_device> context_;
  Owned<ibv_pd, ibv_dealloc_pd> pd_;
  Owned<ibv_comp_channel, ibv_destroy_comp_channel> channel_;
  Owned<ibv_cq, ibv_destroy_cq> cq_;
  ibv_gid gid_{};
};

}  // namespace ringbolt::bench
