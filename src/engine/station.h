#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/cable.h"
#include "engine/device.h"
#include "engine/engine.h"
#include "verbs/library.h"
#include "verbs/slab.h"

namespace ringbolt::engine {

/// One of this rank's ends of a cable, to be made.
struct LocalCable {
  std::string device;
  CablePlan plan;
  uint32_t fabric_cable = 0;  ///< its place in EnginePlan::fabric
};

/// All that one rank has of a fabric: devices, slab, cables and the engine over them, in the order in which they must
/// be built and go. Not thread-safe, but for the engine's own contract.
/// Under the lock of its owner. What it gives references to lives as long as it does.
class Station {
 public:
  /// Opens the devices, each once, and makes the cables up to INIT. There is at least one. Throws base::Error.
  Station(const verbs::Library& library, const EnginePlan& plan, const std::vector<LocalCable>& cables);

  /// What the other end of local cable `cable` must be told.
  CableAddress address(uint32_t cable) const;
  /// To RTR and RTS, once the other end has said its address. Throws base::Error.
  void connect(uint32_t cable, const CableAddress& peer) { cables_[cable]->connect(peer, slab_->bytes()); }
  /// In three parts, as Cable has them.
  Connecting begin_connecting(uint32_t cable, const CableAddress& peer) {
    return cables_[cable]->begin_connecting(peer, slab_->bytes());
  }
  void end_connecting(uint32_t cable, Connecting&& connecting) {
    cables_[cable]->end_connecting(std::move(connecting));
  }

  Engine& engine() { return *engine_; }
  uint32_t n_cables() const { return static_cast<uint32_t>(cables_.size()); }
  const Cable& cable(uint32_t cable) const { return *cables_[cable]; }
  /// Whether the device says that the cable's port works.
  bool is_port_active(uint32_t cable) const;
  /// Of the devices' events since the last call: local cables whose ports say that they have lost their cable. Does not
  /// block.
  std::vector<uint32_t> take_lost_ports();
  uint32_t fabric_cable(uint32_t cable) const { return fabric_cables_[cable]; }
  /// The slab, for tests that spoil it.
  std::span<std::byte> slab() { return slab_->bytes(); }

 private:
  std::vector<std::unique_ptr<Device>> devices_;
  std::optional<verbs::Slab> slab_;
  std::vector<std::unique_ptr<Cable>> cables_;
  std::vector<uint32_t> fabric_cables_;
  std::optional<Engine> engine_;
};

}  // namespace ringbolt::engine
