#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/lock_guard.h"
#include "circuit/circuit.h"

namespace ringbolt::nccl {

/// What one thread has posted and awaits. Long messages are moved by whoever asks for them; but who waits for one
/// request may not ask for the others meanwhile, and his peer may wait for just those. So a test that finds nothing
/// done moves them on as well. Of one thread. Keeps no circuit alive. Where a
/// circuit's data calls go over to another thread, the old one keeps it until its next turn or its end; until then the
/// endpoint's thread alone moves it on between those calls.
class Pending {
 public:
  Pending() = default;
  /// The thread ends: another one may keep its circuits.
  ~Pending() {
    for (const std::weak_ptr<circuit::Circuit>& one : circuits_) {
      if (const std::shared_ptr<circuit::Circuit> circuit = one.lock()) {
        circuit->is_kept = false;
      }
    }
  }
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;

  /// Of a circuit that is not kept yet. Of too many, some are left to the endpoint's thread, which is slower.
  void keep(std::shared_ptr<circuit::Circuit> circuit) {
    if (n_ < kMost) {
      circuit->is_kept = true;
      circuits_[n_++] = std::move(circuit);
    }
  }
  /// Now and then: a thread may test without a pause.
  void move_on() {
    if (++n_asked_ % kTestsPerTurn != 0) {
      return;
    }
    // Circuits that are gone, or await nothing, make room: the last one takes their place.
    for (uint32_t i = 0; i < n_;) {
      const std::shared_ptr<circuit::Circuit> circuit = circuits_[i].lock();
      if (circuit != nullptr && circuit->is_awaited()) {
        // The endpoint's thread has it, and moves it on itself.
        if (circuit->lock.try_lock()) {
          const base::LockGuard guard(circuit->lock, base::kAdoptLock);
          circuit->progress();
        }
        ++i;
        continue;
      }
      if (circuit != nullptr) {
        circuit->is_kept = false;
      }
      // Without `++i`: the one that took the place is looked at next.
      circuits_[i] = std::exchange(circuits_[--n_], {});
    }
  }

 private:
  // Circuits: a bound on what a test that finds nothing costs.
  static constexpr uint32_t kMost = 64;
  // So that a test of a short message, which is some tens of nanoseconds, does not pay for a poll of all others.
  static constexpr uint32_t kTestsPerTurn = 8;

  // Weak: close_send() and close_receive() end circuits whatever stands here.
  std::array<std::weak_ptr<circuit::Circuit>, kMost> circuits_;
  uint32_t n_ = 0;
  uint32_t n_asked_ = 0;
};

// Valid until the thread ends; no other thread may use it.
inline Pending& pending_of_this_thread() {
  thread_local Pending pending;
  return pending;
}

}  // namespace ringbolt::nccl
