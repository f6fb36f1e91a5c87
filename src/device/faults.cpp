#include "device/faults.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "base/error.h"
#include "cluster/read_file.h"
#include "device/port.h"
#include "fault/plan_text.h"

namespace ringbolt::device {

fault::Plan faults_from_environment() {
  const char* value = std::getenv("RINGBOLT_FAULTS");
  if (value == nullptr) {
    return {};
  }
  const bool is_path = value[0] == '/';
  auto plan = fault::parse_plan(is_path ? cluster::read_file(value, fault::kMaxPlanBytes) : std::string(value));
  if (!plan) {
    throw base::Error(EINVAL, plan.error().text(), is_path ? value : "RINGBOLT_FAULTS",
                      "docs/faults.md has the words; for example: loss 1% seed 7");
  }
  return std::move(*plan);
}

fault::Plan FaultSource::read(std::string& complaint) const {
  fault::Plan plan = own;
  if (path.empty()) {
    return plan;
  }
  try {
    auto more = fault::parse_plan(cluster::read_file(path, fault::kMaxPlanBytes));
    if (more) {
      plan.rules.insert(plan.rules.end(), more->rules.begin(), more->rules.end());
    } else {
      complaint = path + ": " + more.error().text() + "; ringbolt fault clear makes it whole";
    }
  } catch (const base::Error& error) {
    complaint = error.errno_value() == ENOENT ? "" : error.what();
  }
  return plan;
}

fault::Place place_of(const Port& port) {
  const FaultSource& source = port.fabric->faults;
  if (!source.node) {
    return {std::nullopt, std::nullopt, port.name, std::nullopt};
  }
  return {source.node, port.cable, port.name, port.peer_node};
}

void check_faults(const fault::Plan& plan, std::span<const std::shared_ptr<const Port>> ports) {
  for (const fault::Rule& rule : plan.rules) {
    const bool is_of_frames = fault::subject_of(rule.kind) == fault::Subject::frame;
    const auto suffers = [&](const std::shared_ptr<const Port>& port) {
      const fault::Place place = place_of(*port);
      return rule.applies_to(place, fault::Direction::send) || rule.applies_to(place, fault::Direction::receive);
    };
    const auto found = std::ranges::find_if(ports, suffers);
    if (is_of_frames && found != ports.end() && !(*found)->is_on_network()) {
      throw base::Error(EOPNOTSUPP, "set faults of frames", (*found)->name,
                        "its cable is shared memory, which carries no frames: unset RINGBOLT_FAULTS, or take a port on "
                        "a network (RINGBOLT_NETDEVS, ringbolt up --netns)");
    }
    const bool is_elsewhere = !ports.empty() && ports.front()->fabric->faults.node;  // other nodes read the same words
    if (found == ports.end() && !is_elsewhere) {
      throw base::Error(EINVAL, "\"" + fault::emit_rule(rule) + "\" fits none of the ports", "RINGBOLT_FAULTS",
                        "name a device that ibv_devices lists, and no node or cable outside clusters");
    }
  }
}

}  // namespace ringbolt::device
