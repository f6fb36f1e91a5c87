#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/station.h"
#include "verbs/errand.h"

namespace ringbolt::mesh {

/// A local cable that is connected anew in a thread of its own, since its device may block for good in that: until it
/// is over that thread has the queue pairs, and holds the station. Whoever destroys this earlier leaves them to it. Not
/// thread-safe.
class Reconnection {
 public:
  /// Takes the cable's queue pairs and begins. Throws base::Error; then they are back.
  Reconnection(std::shared_ptr<engine::Station> station, uint32_t cable, const engine::CableAddress& peer);

  /// Without the lock of the mesh or with it: never blocks.
  bool is_over() const { return errand_->is_over(); }
  /// Blocks until `deadline_ns` (base::now_ns()) at most: whether it is over.
  bool wait_until(uint64_t deadline_ns) const { return errand_->wait_until(deadline_ns); }
  /// Once it is over: the cable has its queue pairs back. Throws base::Error if they are not connected.
  /// Once, under the lock of whoever uses the station.
  void finish();

 private:
  struct Work {  // in this order: queue pairs go before what they are of
    std::shared_ptr<engine::Station> station;
    engine::Connecting connecting;
  };
  uint32_t cable_;
  std::shared_ptr<Work> work_;
  std::unique_ptr<verbs::Errand> errand_;
};

}  // namespace ringbolt::mesh
