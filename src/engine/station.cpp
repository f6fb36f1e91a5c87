#include "engine/station.h"

#include <algorithm>
#include <cerrno>

#include "base/assert.h"
#include "base/error.h"

namespace ringbolt::engine {
namespace {

/// All receives of a cable, and the sends that may complete.
constexpr int kEntriesPerCable = static_cast<int>(kSmallReceives + kLargeReceives + 128);

}  // namespace

Station::Station(const verbs::Library& library, const EnginePlan& plan, const std::vector<LocalCable>& cables) {
  RINGBOLT_ASSERT(!cables.empty());
  SlabLayout layout;
  const ChunkSlots::Rows slots = ChunkSlots::make_rows(layout);
  for (const LocalCable& cable : cables) {
    auto device = std::find_if(devices_.begin(), devices_.end(),
                               [&](const auto& known) { return known->name() == cable.device; });
    if (device == devices_.end()) {
      const auto n_cables = std::count_if(cables.begin(), cables.end(),
                                          [&](const LocalCable& other) { return other.device == cable.device; });
      devices_.push_back(
          std::make_unique<Device>(library, cable.device, static_cast<int>(n_cables) * kEntriesPerCable));
      device = devices_.end() - 1;
    }
    CablePlan cable_plan = cable.plan;
    cable_plan.fabric_cable = cable.fabric_cable;
    cables_.push_back(std::make_unique<Cable>(**device, cable_plan, static_cast<uint16_t>(cables_.size()), layout));
    fabric_cables_.push_back(cable.fabric_cable);
  }
  slab_.emplace(devices_.front()->pd(), layout.used_bytes());
  for (const auto& device : devices_) {
    device->register_slab(*slab_);
  }
  engine_.emplace(plan, devices_, cables_, slots, slab_->bytes());
}

bool Station::is_port_active(uint32_t cable) const {
  const Cable& asked = *cables_[cable];
  const auto port = asked.device().context().query_port(asked.plan().port);
  return port && port->state == IBV_PORT_ACTIVE;
}

std::vector<uint32_t> Station::take_lost_ports() {
  std::vector<uint32_t> lost;
  for (const auto& device : devices_) {
    for (auto event = device->context().take_event(); event; event = device->context().take_event()) {
      for (uint32_t i = 0; event->event_type == IBV_EVENT_PORT_ERR && i < cables_.size(); ++i) {
        if (&cables_[i]->device() == device.get() &&
            static_cast<int>(cables_[i]->plan().port) == event->element.port_num) {
          lost.push_back(i);
        }
      }
    }
  }
  return lost;
}

CableAddress Station::address(uint32_t cable) const {
  const Cable& made = *cables_[cable];
  const verbs::Context& context = made.device().context();
  const auto port = context.query_port(made.plan().port);
  const auto gid = context.query_gid(made.plan().port, made.plan().gid_index);
  if (!port || !gid) {
    throw base::Error(!port ? port.error().value : gid.error().value, !port ? "ibv_query_port" : "ibv_query_gid",
                      made.plan().name);
  }
  return made.address(*gid, port->lid);
}

}  // namespace ringbolt::engine
