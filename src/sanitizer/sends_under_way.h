#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace ringbolt::sanitizer {

/// The sends of one queue pair that its program can't know to be done, in the order of their posts. One without a
/// completion of its own is done when one behind it is (InfiniBand Architecture Specification 1.4, 10.8.5): until such
/// a completion was polled it counts. Under the lock of Shadow.
class SendsUnderWay {
 public:
  void post(uint32_t number, bool is_signaled) {
    sends_.push_back({number, is_signaled});
    signaled_ += is_signaled ? 1U : 0U;
  }

  /// What the completion of `number` says to be done: those before it that have no completion of their own, and itself,
  /// last. One before it that has one may be settled by another thread at this moment, and is not of them.
  /// Nothing is taken out: Shadow::take_out() says drop() for each.
  std::vector<uint32_t> done_with(uint32_t number) const {
    std::vector<uint32_t> done;
    if (const auto end = find(number); end != sends_.end()) {
      for (auto at = sends_.begin(); at != end; ++at) {
        if (!at->is_signaled) {
          done.push_back(at->number);
        }
      }
    }
    done.push_back(number);
    return done;
  }

  /// It is over, or was never posted. No effect where it is not here.
  /// In a row: most are found at its beginning.
  void drop(uint32_t number) {
    if (const auto known = find(number); known != sends_.end()) {
      signaled_ -= known->is_signaled ? 1U : 0U;
      sends_.erase(known);
    }
  }

  size_t count() const { return sends_.size(); }
  uint32_t signaled() const { return signaled_; }
  /// Whether a completion will come for one of the first `depth`, which makes room in a queue of that depth.
  bool can_drain(size_t depth) const {
    const auto end = sends_.begin() + static_cast<std::ptrdiff_t>(std::min(depth, sends_.size()));
    return std::any_of(sends_.begin(), end, [](const Send& one) { return one.is_signaled; });
  }

 private:
  struct Send {
    uint32_t number;
    bool is_signaled;
  };
  std::deque<Send>::const_iterator find(uint32_t number) const {
    return std::ranges::find(sends_, number, &Send::number);
  }

  std::deque<Send> sends_;
  uint32_t signaled_ = 0;  // of those
};

}  // namespace ringbolt::sanitizer
