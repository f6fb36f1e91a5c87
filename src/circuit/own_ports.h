#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bringup/port_card.h"
#include "bringup/trial.h"

namespace ringbolt::circuit {

/// This node's ports, as its network asks for them. Ports keep their numbers, which are the same in all processes of a
/// node: those that are down, too, have one. Of one thread.
class OwnPorts {
 public:
  virtual ~OwnPorts() = default;
  /// [port]: what each is. One that can't carry circuits, or could not so far, has an empty card (no RC, no GID). The
  /// reference stays good; look_again() changes an element.
  virtual const std::vector<bringup::PortCard>& cards() const = 0;
  /// Whether the device says that the port works.
  virtual bool is_active(uint16_t port) const = 0;
  /// Makes the card anew: whether the port can carry circuits now. May block for a second, if its device does. False:
  /// not yet, and cards() is as before.
  virtual bool look_again(uint16_t port) = 0;
  /// bringup::try_candidates() from that port. Throws base::Error likewise. For each an errno, 0 for one that was
  /// reached. Blocks for seconds at most.
  virtual std::vector<int> try_candidates(uint16_t port, std::span<const bringup::TrialCandidate> there) = 0;
};

}  // namespace ringbolt::circuit
