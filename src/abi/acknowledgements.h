#pragma once

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cstdint>

namespace ringbolt::abi {

/// Events that the program took and must acknowledge before their object goes.
/// Lies in the object behind the C structure, and lives as long.
struct Taken {
  // Sequentially consistent: who waits compares it with a count under the object's mutex. Both wrap alike.
  std::atomic<uint32_t> events{0};
};

/// The events of one kind of one object: how many were taken, and how many are acknowledged. The count of the latter
/// lies in the object's C structure, under the mutex there, and who destroys the object waits until both are equal
/// (ibv_ack_cq_events(3), ibv_get_async_event(3)). Refers to these, and owns nothing. Thread-safe.
/// Made anew for each use. The object must stay until the call returns: who acknowledges last must not look at it
/// after.
class Acknowledgements {
 public:
  Acknowledgements(pthread_mutex_t& mutex, pthread_cond_t& condition, uint32_t& completed, Taken& taken)
      : mutex_(&mutex), condition_(&condition), completed_(&completed), taken_(&taken) {}

  /// The program gets an event. Before it can be acknowledged.
  void take() const { taken_->events.fetch_add(1); }
  /// `count`: events, as the program says: more than it took makes wait() block for good, as the man page warns.
  void acknowledge(uint32_t count) const;

  /// Blocks until all that was taken is acknowledged.
  void wait() const;
  /// The same for so long at most: how many were not, then.
  /// By CLOCK_REALTIME: setting the clock makes it longer or shorter.
  uint32_t wait_for(std::chrono::milliseconds most) const;

 private:
  pthread_mutex_t* mutex_;
  pthread_cond_t* condition_;
  uint32_t* completed_;
  Taken* taken_;
};

}  // namespace ringbolt::abi
