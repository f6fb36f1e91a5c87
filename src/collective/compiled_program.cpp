#include <algorithm>
#include <tuple>
#include <utility>

#include "base/assert.h"
#include "collective/executor.h"

namespace ringbolt::collective {
namespace {

bool comes_before(const CompiledProgram::LaneEnd& a, const CompiledProgram::LaneEnd& b) {
  return std::tie(a.peer, a.lane) < std::tie(b.peer, b.lane);
}

/// Sorts ends and gives them their indices; a lane has one step at each end.
void index_ends(std::vector<CompiledProgram::LaneEnd>& ends) {
  std::sort(ends.begin(), ends.end(), comes_before);
  for (size_t i = 0; i < ends.size(); ++i) {
    ends[i].index = static_cast<uint32_t>(i);
    RINGBOLT_ASSERT(i == 0 || comes_before(ends[i - 1], ends[i]));
  }
}

}  // namespace

CompiledProgram::CompiledProgram(Program program) : program_(std::move(program)) {
  const auto n_steps = static_cast<uint32_t>(program_.steps.size());
  dependents_.resize(n_steps);
  incoming_index_.resize(n_steps);
  outgoing_index_.resize(n_steps);
  for (uint32_t i = 0; i < n_steps; ++i) {
    const Step& step = program_.steps[i];
    RINGBOLT_ASSERT(!step.sources.empty() && !step.targets.empty());
    RINGBOLT_ASSERT(step.bytes == 0 || step.chunk_bytes > 0);
    n_chunks_.push_back(
        step.bytes == 0 ? 1 : static_cast<uint32_t>((step.bytes + step.chunk_bytes - 1) / step.chunk_bytes));
    for (const Source& source : step.sources) {
      if (source.kind == Source::Kind::lane) {
        incoming_.push_back({source.peer, source.lane, i, 0});
      } else if (source.after != kNoStep) {
        RINGBOLT_ASSERT(source.after < n_steps);
        dependents_[source.after].push_back(i);
      }
    }
    for (const Target& target : step.targets) {
      if (target.kind == Target::Kind::lane) {
        outgoing_.push_back({target.peer, target.lane, i, 0});
      }
    }
  }
  index_ends(incoming_);
  index_ends(outgoing_);
  for (uint32_t i = 0; i < n_steps; ++i) {
    const Step& step = program_.steps[i];
    for (const Source& source : step.sources) {
      const bool is_lane = source.kind == Source::Kind::lane;
      incoming_index_[i].push_back(is_lane ? find(incoming_, source.peer, source.lane)->index : 0);
    }
    for (const Target& target : step.targets) {
      const bool is_lane = target.kind == Target::Kind::lane;
      outgoing_index_[i].push_back(is_lane ? find(outgoing_, target.peer, target.lane)->index : 0);
    }
  }
}

const CompiledProgram::LaneEnd* CompiledProgram::find(const std::vector<LaneEnd>& ends, uint32_t peer, uint32_t lane) {
  const LaneEnd wanted{peer, lane, 0, 0};
  const auto found = std::lower_bound(ends.begin(), ends.end(), wanted, comes_before);
  return found == ends.end() || comes_before(wanted, *found) ? nullptr : &*found;
}

}  // namespace ringbolt::collective
