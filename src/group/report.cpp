// What people are told of a group.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <stdexcept>

#include "base/lock_guard.h"
#include "group/failure.h"
#include "group/state.h"

namespace ringbolt::group {

/// Takes the lock for as long as the words are made. For people: the form may change.
std::string Group::report() const {
  if (!state_->communicator) {
    return "a group without ranks\n";
  }
  mesh::Mesh& mesh = state_->groups->mesh();
  const base::LockGuard guard(mesh.lock);
  const mesh::BroughtUp& made = mesh.made();
  std::string text = fmt::format("rank {} of {}\n", rank(), size());
  for (const mesh::CableWords& cable : made.cables) {
    text += fmt::format("  {}: {}, found by {}\n", cable.text(),
                        cable.rate_mbps > 0 ? fmt::format("{:.1f} Gb/s", cable.rate_mbps / 1000.0) : "rate unknown",
                        cable.how);
  }
  for (const mesh::LinkFigures& link : made.links) {
    text += link.bytes_per_ms == 0 ? fmt::format("  ranks {}-{}: too slow to be measured in time\n", link.a, link.b)
                                   : fmt::format("  ranks {}-{}: {:.1f} us and {:.1f} Gb/s measured\n", link.a, link.b,
                                                 static_cast<double>(link.latency_ns) / 1000,
                                                 static_cast<double>(link.bytes_per_ms) * 8e-6);
  }
  for (const std::string& port : made.unmatched) {
    text += fmt::format("  no cable: {}\n", port);
  }
  if (mesh.engine() == nullptr) {
    return text;
  }
  for (uint32_t other = 0; other < mesh.n_ranks(); ++other) {
    if (other == mesh.rank()) {
      continue;
    }
    if (!mesh.engine()->paths().is_reachable(other)) {
      text += fmt::format("  rank {} of the world: no way\n", other);
      continue;
    }
    const auto& via = mesh.engine()->paths().via(other);
    text += fmt::format("  rank {} of the world: {}\n", other,
                        via.empty() ? "direct" : fmt::format("through {}", fmt::join(via, ", ")));
  }
  const engine::EngineCounts& counts = mesh.engine()->counts();
  text += fmt::format(
      "  chunks sent {}, received {}, sent again {}, received twice {}, relayed {}, dropped by relays {}, bad headers "
      "{}, "
      "bad payloads {}, strangers {}, acknowledgements {}\n",
      counts.chunks_sent, counts.chunks_received, counts.resent, counts.duplicates, counts.relayed, counts.relay_drops,
      counts.bad_headers, counts.bad_payloads, counts.strangers, counts.acks_sent);
  return text;
}

std::vector<uint32_t> Group::relays(uint32_t peer) const {
  if (peer >= size()) {
    throw std::out_of_range(fmt::format("relays of rank {}: of {} ranks", peer, size()));
  }
  mesh::Mesh& mesh = state_->groups->mesh();
  const base::LockGuard guard(mesh.lock);
  engine::Engine* engine = mesh.engine();
  if (engine == nullptr || peer == rank()) {
    return {};
  }
  const uint32_t member = state_->communicator->member(peer);
  if (!engine->paths().is_reachable(member)) {
    throw JoinError(
        fmt::format("rank {}: no cables lead to rank {} any more; ringbolt status says which are cut", rank(), peer));
  }
  const auto& via = engine->paths().via(member);
  return {via.begin(), via.end()};
}

}  // namespace ringbolt::group
