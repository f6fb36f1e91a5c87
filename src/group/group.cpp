#include "ringbolt/group.h"
#include "base/lock_guard.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/overlay_device.h"
#include "base/say.h"
#include "bootstrap/environment.h"
#include "bootstrap/hello.h"
#include "bootstrap/jaccl_devices.h"
#include "collective/element.h"
#include "group/failure.h"
#include "group/state.h"
#include "mesh/knobs.h"

namespace ringbolt {
namespace {

using collective::Operation;
using group::Asked;

static_assert(static_cast<uint32_t>(Type::complex64) + 1 == collective::kTypes);
static_assert(static_cast<uint32_t>(Reduction::avg) + 1 == collective::kReductions);

engine::Checksums checksums_of(const std::string& text) {
  if (text.empty() || text == "on") {
    return engine::Checksums::carried;
  }
  if (text != "off" && text != "every") {
    throw group::JoinError(fmt::format("RINGBOLT_CRC is \"{}\": it must be on, off or every", text));
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

mesh::MeshPlan plan_of(const GroupOptions& options) {
  const bootstrap::Environment environment =
      options.environment.empty() ? bootstrap::environment_of_process() : options.environment;
  const auto value = [&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::string() : found->second;
  };
  mesh::MeshPlan plan;
  plan.meeting = bootstrap::config_from(environment, bootstrap::read_file);
  plan.verbs = !options.verbs.empty()             ? options.verbs
               : !value("RINGBOLT_VERBS").empty() ? value("RINGBOLT_VERBS")
                                                  : "auto";
  plan.checksums = options.has_crc ? checksums_of(value("RINGBOLT_CRC")) : engine::Checksums::none;
  const std::string measure = value("RINGBOLT_MEASURE");
  if (!measure.empty() && measure != "on" && measure != "off") {
    throw group::JoinError(fmt::format("RINGBOLT_MEASURE is \"{}\": it must be on or off", measure));
  }
  plan.is_measured = options.measures_cables && measure != "off";
  plan.liveness = mesh::liveness_from(environment);
  for (const char* name : {"JACCL_IBV_DEVICES", "MLX_IBV_DEVICES"}) {
    if (const std::string path = value(name); !path.empty() && plan.matrix.empty()) {
      const auto devices = bootstrap::parse_jaccl_devices(bootstrap::read_file(path, false));
      if (!devices) {
        throw group::JoinError(fmt::format("{} ({}): {}", path, name, devices.error().text()));
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

}  // namespace

Group::Group(std::unique_ptr<State> state) : state_(std::move(state)) {}
Group::~Group() = default;
Group::Group(Group&&) noexcept = default;
Group& Group::operator=(Group&&) noexcept = default;

Group Group::join(const GroupOptions& options) {
  if (options.timeout_ms == 0) {
    throw group::JoinError(
        "GroupOptions::timeout_ms is 0: no call could end within it; give milliseconds, such as 300000");
  }
  auto state = std::make_unique<State>();
  state->options = options;
  state->groups = group::Groups::join(plan_of(options));
  std::vector<uint32_t> members(state->groups->n_ranks());
  for (uint32_t rank = 0; rank < members.size(); ++rank) {
    members[rank] = rank;
  }
  const base::LockGuard guard(state->groups->lock());
  state->communicator = state->groups->make_communicator(0, std::move(members), state->groups->rank(), {});
  return Group(std::move(state));
}

uint32_t Group::rank() const { return state_->communicator ? state_->communicator->rank() : 0; }
uint32_t Group::size() const { return state_->communicator ? state_->communicator->n_ranks() : 0; }

Group Group::rejoin() {
  if (state_->groups != nullptr) {
    {
      const base::LockGuard guard(state_->groups->lock());
      state_->groups->break_off({ECANCELED, "the ranks meet anew"});
    }
    state_->communicator.reset();
    state_->groups.reset();  // leaves; a device may have no queue pairs to spare for both
  }
  return join(state_->options);
}

void Group::abort(const std::string& reason) {
  if (!state_->communicator) {
    return;
  }
  const base::LockGuard guard(state_->groups->lock());
  state_->communicator->abort(reason);
}

Request::Request() = default;
Request::Request(Request&&) noexcept = default;
Request& Request::operator=(Request&& other) noexcept {
  if (this != &other) {
    cancel();
    state_ = std::move(other.state_);
  }
  return *this;
}
Request::~Request() { cancel(); }

bool Request::is_done() const {
  if (state_ == nullptr || state_->call == nullptr || state_->call->is_done()) {
    return true;
  }
  if (state_->groups->n_ranks() == 1) {  // a mesh of one rank has no thread, by which deadlines pass
    const base::LockGuard guard(state_->groups->lock());
    state_->communicator->advance(base::now_ns());
  }
  return state_->call->is_done();
}

Status Request::wait() {
  if (state_ == nullptr) {
    return {EINVAL, "this request stands for no call"};
  }
  if (state_->call == nullptr) {
    return state_->refused;
  }
  if (!state_->call->is_done()) {
    state_->groups->mesh().wait([&] { return state_->call->is_done(); });
  }
  return state_->groups->mesh().explained(state_->call->status());
}

void Request::cancel() {
  if (is_done()) {
    return;
  }
  const base::LockGuard guard(state_->groups->lock());
  state_->communicator->fail(*state_->call, {ECANCELED, "the call has been cancelled"});
}

}  // namespace ringbolt
