#include "group/join_options.h"

#include <fmt/core.h>

#include <array>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/overlay_device.h"
#include "base/say.h"
#include "bootstrap/hello.h"
#include "bootstrap/jaccl_devices.h"
#include "group/failure.h"
#include "mesh/knobs.h"

namespace ringbolt::group {
namespace {

engine::Checksums checksums_of(const std::string& text) {
  if (text.empty() || text == "on") {
    return engine::Checksums::carried;
  }
  if (text != "off" && text != "every") {
    throw JoinError(fmt::format("RINGBOLT_CRC is \"{}\": it must be on, off or every", text));
  }
  return text == "every" ? engine::Checksums::every : engine::Checksums::none;
}

/// What MLX, JACCL and exo would do otherwise, and we can't or needn't. One line each.
void report_ignored(const bootstrap::Environment& environment) {
  const std::array<std::array<const char*, 2>, 4> ignored{{
      {"JACCL_RING", "each call takes the schedule that suits the cables; of a ring that is a ring"},
      {"MLX_JACCL_RING", "each call takes the schedule that suits the cables; of a ring that is a ring"},
      {"MLX_METAL_FAST_SYNCH", "it chooses how MLX's GPU waits, and there is none here"},
      {"EXO_FAST_SYNCH", "it chooses how MLX's GPU waits, and there is none here"},
  }};
  for (const auto& [name, why] : ignored) {
    if (const auto found = environment.find(name); found != environment.end()) {
      base::say(fmt::format("ringbolt: {}={} is ignored: {}\n", name,
                            bootstrap::printable(std::as_bytes(std::span(found->second)), 60), why));
    }
  }
}

}  // namespace

bootstrap::Environment variables_of(const JoinOptions& options) {
  bootstrap::Environment variables = options.environment ? *options.environment : bootstrap::environment_of_process();
  if (options.said.count("RINGBOLT_SECRET") > 0) {
    variables.erase("RINGBOLT_SECRET_FILE");  // two secrets would be refused
  }
  for (const auto& [name, value] : options.said) {
    variables.insert_or_assign(name, value);
  }
  if (options.port != 0) {
    variables["RINGBOLT_COORDINATOR"] = bootstrap::to_text({options.host, options.port});
  }
  return variables;
}

mesh::MeshPlan plan_of(const bootstrap::Environment& environment, const bootstrap::Config& meeting) {
  const auto value = [&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::string() : found->second;
  };
  mesh::MeshPlan plan;
  plan.meeting = meeting;
  const std::string verbs = value("RINGBOLT_VERBS");
  plan.verbs = verbs.empty() ? "auto" : verbs;
  plan.checksums = checksums_of(value("RINGBOLT_CRC"));
  const std::string measure = value("RINGBOLT_MEASURE");
  if (!measure.empty() && measure != "on" && measure != "off") {
    throw JoinError(fmt::format("RINGBOLT_MEASURE is \"{}\": it must be on or off", measure));
  }
  plan.is_measured = measure != "off";
  plan.liveness = mesh::liveness_from(environment);
  for (const char* name : {"JACCL_IBV_DEVICES", "MLX_IBV_DEVICES"}) {
    if (const std::string path = value(name); !path.empty() && plan.matrix.empty()) {
      const auto devices = bootstrap::parse_jaccl_devices(bootstrap::read_file(path, false));
      if (!devices) {
        throw JoinError(fmt::format("{} ({}): {}", path, name, devices.error().text()));
      }
      for (const std::string& line :
           plan.meeting.rank == 0 ? bootstrap::warnings(*devices) : std::vector<std::string>{}) {
        base::say(fmt::format("ringbolt: {} ({}): {}\n", path, name, line));
      }
      plan.matrix = devices->cells;
      for (auto& row : plan.matrix) {
        for (auto& cell : row) {
          std::erase(cell, base::kOverlayDevice);  // where no cable leads we relay ourselves
        }
      }
    }
  }
  if (plan.meeting.rank == 0) {
    report_ignored(environment);
  }
  return plan;
}

}  // namespace ringbolt::group
