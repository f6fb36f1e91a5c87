// Ports that go down and up, freeze, or have the wrong cable in them: faults that hold for a while.

#include <algorithm>

#include "base/clock.h"
#include "base/error.h"
#include "cluster/node_file.h"
#include "cluster/runtime_dir.h"
#include "device/gid_table.h"
#include "device/port.h"

namespace ringbolt::device {

bool Port::is_pulled() const {
  const auto flap = fabric->verb_faults.holding(fault::Kind::flap, *this);
  // By the clock of the machine: both ends of the cable see the same.
  const bool is_flapped = flap && base::now_ns() % flap->every_ns < flap->delay_ns;
  return is_flapped || unplugged().value_or(fault::Unplug::hang) != fault::Unplug::hang;
}

std::optional<uint64_t> Port::address_away() const {
  if (!fabric->verb_faults.has(fault::Subject::state)) {
    return std::nullopt;
  }
  const auto rule = fabric->verb_faults.holding(fault::Kind::gid_change, *this);
  const bool is_away = rule && (rule->every_ns == 0 || base::now_ns() % rule->every_ns < rule->delay_ns);
  return is_away ? std::optional(rule->index) : std::nullopt;
}

std::optional<fault::Unplug> Port::unplugged() const {
  if (!fabric->verb_faults.has(fault::Subject::state)) {
    return std::nullopt;
  }
  const auto rule = fabric->verb_faults.holding(fault::Kind::unplug, *this);
  return rule ? rule->unplug : std::nullopt;
}

bool Port::is_frozen() const {
  return fabric->verb_faults.holding(fault::Kind::frozen, *this).has_value() || unplugged() == fault::Unplug::hang;
}

bool Port::is_halted() const {
  if (!fabric->verb_faults.has(fault::Subject::state)) {
    return false;
  }
  const auto rule = fabric->verb_faults.holding(fault::Kind::frozen, *this);
  return rule && (!rule->node || rule->node == place_of(*this).node);
}

uint32_t Port::plug() const {
  if (!fabric->verb_faults.has(fault::Subject::state)) {
    return cable;
  }
  const auto rule = fabric->verb_faults.holding(fault::Kind::cross_cables, *this);
  return !rule ? cable : *rule->cable == cable ? static_cast<uint32_t>(*rule->other_cable) : *rule->cable;
}

std::vector<ibv_gid> Port::plugged_gids() const {
  const uint32_t plugged = plug();
  if (plugged == cable) {
    return peer_gids;
  }
  const auto rule = fabric->verb_faults.holding(fault::Kind::cross_cables, *this);
  if (!rule || is_on_network()) {
    return {};  // there its addresses are of another subnet
  }
  try {
    const auto runtime = cluster::RuntimeDir::from_environment();
    const cluster::NodeSpec crossed = cluster::load_node(runtime.node_file(fabric->cluster, *rule->node));
    const auto found = std::ranges::find(crossed.ports, plugged, &cluster::PortSpec::cable);
    if (found == crossed.ports.end()) {
      return {};
    }
    // At the crossed machine: what lies beyond its other port. At the far end: that other port.
    return rule->node == place_of(*this).node ? memory_gids(found->peer_guid, found->peer_ipv4)
                                              : memory_gids(found->guid, found->ipv4);
  } catch (const base::Error&) {
    return {};
  }
}

}  // namespace ringbolt::device
