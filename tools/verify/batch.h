#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "verify/context.h"
#include "verify/rig.h"
#include "verify/under_way.h"

namespace ringbolt::tools::verify {

/// Posts one-sided operations on the queue pairs of a rig and awaits their completions. Not thread-safe.
class Batch {
 public:
  Batch(const Context& context, const Rig& rig);

  bool has_room(uint32_t queue_pair) const { return under_way(queue_pair) < rig_.sends(); }
  uint64_t under_way(uint32_t queue_pair) const { return lanes_[queue_pair].count(); }
  uint64_t posted(uint32_t queue_pair) const { return lanes_[queue_pair].posted(); }
  /// The send slot that the next operation may use, if there is room.
  std::span<std::byte> next_slot(uint32_t queue_pair) const {
    return rig_.send_slot(queue_pair, lanes_[queue_pair].posted() % rig_.sends());
  }
  /// Posts one operation. Returns 0, or what ibv_post_send returned: with something under way that may mean a full
  /// queue.
  [[nodiscard]] int post(uint32_t queue_pair, ibv_send_wr& request, std::span<std::byte> local);
  /// Takes completions: calls done(queue pair) for each operation that is over, in the order in which they were posted.
  /// True if there were some. Throws
  /// ProbeFailure if one is a failure.
  template <class Done>
  bool reap(Done&& done) {
    ibv_wc completions[16];
    const size_t count = rig_.poll(rig_.send_cq(), completions);
    for (size_t i = 0; i < count; ++i) {
      const Over over = judge(completions[i]);
      for (uint64_t one = 0; one < over.count; ++one) {
        done(over.queue_pair);
      }
    }
    return count != 0;
  }
  /// Until all that was posted has completed.
  template <class Done>
  void await_all(const char* what, Done&& done) {
    while (!is_idle()) {
      if (reap(done)) {
        context_.watch.moved();
      } else {
        (void)context_.watch.idle(what);
      }
    }
  }
  bool is_idle() const;
  /// "queue pair 0: 512 posted, 500 completed".
  std::string where() const;

 private:
  struct Over {
    uint32_t queue_pair = 0;
    uint64_t count = 0;
  };

  Over judge(const ibv_wc& completion);

  const Context& context_;
  const Rig& rig_;
  std::vector<UnderWay> lanes_;
};

}  // namespace ringbolt::tools::verify
