#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/station.h"
#include "mesh/mending.h"
#include "mesh/reconnection.h"

namespace ringbolt::mesh {

/// Connects this rank's ends of cables that have failed anew, as soon as they work again: a Mending for each, its words
/// brought to the other end, and the calls of the device that it takes. Under the lock of whoever uses the station; a
/// call that may block for good has a thread of its own. Not thread-safe. `cable`: a local one of the station.
class Mender {
 public:
  /// What carries its words, and is told what comes of it. Called from within its functions; may not call back.
  class Surroundings {
   public:
    virtual ~Surroundings() = default;
    /// To a rank, past the cables; never blocks. False: there is no way, and it goes over cables, if any are left.
    virtual bool send_mending(uint32_t to, std::span<const std::byte> word) = 0;
    /// A cable works again, as far as this end can tell.
    virtual void on_mended(uint32_t cable, uint64_t now_ns) = 0;
  };

  /// `station` may be null: then there are no cables. `around` must outlive it.
  Mender(std::shared_ptr<engine::Station> station, Surroundings& around);

  /// The cable has failed here: it is dead to the engine already. Also from within hear(), which has it fail.
  void fail(uint32_t cable);
  /// The rank does not come back in this mesh: nothing is done for cables to it from now on.
  void give_up(uint32_t rank);
  /// Takes the steps that are due. One that waits for nobody is taken at once; a reset, which starts all over, once an
  /// interval. Blocks for no device.
  void progress(uint64_t now_ns);
  /// `word` and `from` are a peer's: a cable that does not lead to it is none of its business. Whether it is about one
  /// that does: progress() may have something to do then.
  bool hear(uint32_t from, std::span<const std::byte> word);
  /// For whoever ends: gives what is being connected so long for each cable. What is not over then is left behind, with
  /// the station.
  void wait_for_each(uint64_t time_ns);

 private:
  /// One end of a cable.
  struct End {
    Mending mending = {};
    std::unique_ptr<Reconnection> reconnection = {};  // under way
    bool is_given_up = false;
  };
  void go_on(uint32_t cable, uint64_t now_ns);
  void end_reconnecting(uint32_t cable);
  void tell(uint32_t cable);

  std::shared_ptr<engine::Station> station_;
  Surroundings& around_;   // not owned
  std::vector<End> ends_;  // [local cable]
  uint64_t next_interval_ns_ = 0;
};

}  // namespace ringbolt::mesh
