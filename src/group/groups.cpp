#include "group/groups.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/lock_guard.h"
#include "fabric/among.h"
#include "group/failure.h"
#include "group/word.h"

namespace ringbolt::group {
namespace {

/// Groups that this rank has not made yet, of which something is kept. How much that is, those who send it know: they
/// are at most 64 calls ahead, and wait for windows in each. It has been acknowledged and would never come again.
constexpr size_t kMostEarlyGroups = 256;

fabric::Graph without(const fabric::Graph& graph, const std::vector<bool>& avoided) {
  fabric::Graph left{graph.n_nodes, {}};
  for (uint32_t i = 0; i < graph.cables.size(); ++i) {
    if (i >= avoided.size() || !avoided[i]) {
      left.cables.push_back(graph.cables[i]);
    }
  }
  return left;
}

}  // namespace

std::shared_ptr<Groups> Groups::join(const mesh::MeshPlan& plan) {
  std::shared_ptr<Groups> made(new Groups(mesh::Mesh::join(plan)));
  const base::LockGuard guard(made->mesh_.lock);
  made->mesh_.attach(*made, mesh::kGroupChannels);
  return made;
}

Groups::Groups(std::unique_ptr<mesh::Mesh> mesh) : owned_(std::move(mesh)), mesh_(*owned_) {}

// First: the mesh calls this until it has left.
Groups::~Groups() { owned_.reset(); }

bool Groups::are_joined(const std::vector<uint32_t>& ranks, const std::vector<bool>& avoided) const {
  const auto hops = fabric::hops_from(fabric::neighbours(without(mesh_.made().graph, avoided)), ranks.front());
  return std::none_of(ranks.begin(), ranks.end(), [&](uint32_t rank) { return hops[rank] == fabric::kUnreachable; });
}

std::shared_ptr<Communicator> Groups::make_communicator(uint16_t id, std::vector<uint32_t> members, uint32_t self,
                                                        std::vector<bool> avoided, uint16_t origin) {
  if (!numbers_.may_make(id)) {
    // Only of shrunk groups: numbers for a split are reserved.
    throw JoinError(
        fmt::format("group {} was made by another thread at the same time: shrink one group after the other", id));
  }
  const fabric::Graph graph = fabric::graph_among(without(mesh_.made().graph, avoided), members);
  std::shared_ptr<Communicator> made(
      new Communicator(mesh_.engine(), id, std::move(members), self, graph, mesh_.made().model, std::move(avoided),
                       origin),
      // It keeps the mesh alive until the communicator is gone, and with it the lock that end() takes.
      [groups = shared_from_this()](Communicator* ended) { groups->end(ended); });
  communicators_[id] = made.get();
  numbers_.make(id);
  // A rank that failed before there was a group would never be told of again.
  for (const auto& [failed, status] : mesh_.failed_ranks()) {
    if (made->has(failed)) {
      tell_failure(*made, status);  // the others may know nothing of it
      made->break_off(status);
    }
  }
  if (auto early = early_.find(id); early != early_.end()) {
    // Taken out first: what follows may add to early_.
    const std::vector<Early> arrived = std::move(early->second);
    early_.erase(early);
    for (const Early& one : arrived) {
      if (one.word.empty()) {
        on_chunk(one.header, one.receipt);
      } else {
        on_word(one.header, one.word);
      }
    }
  }
  return made;
}

void Groups::unreserve(std::span<const uint16_t> ids) {
  for (const uint16_t id : ids) {
    numbers_.unreserve(id);
    const auto early = early_.find(id);
    if (early == early_.end()) {
      continue;
    }
    for (const Early& arrived : early->second) {
      if (arrived.word.empty()) {
        mesh_.engine()->release(arrived.receipt.id);
      }
    }
    early_.erase(early);
  }
}

std::vector<bool> Groups::groups_under_way() const {
  std::vector<bool> groups(size_t{UINT16_MAX} + 1);
  if (mesh_.made().station) {
    mesh_.made().station->engine().note_groups_under_way(groups);
  }
  return groups;
}

void Groups::end(const Communicator* communicator) {
  const base::LockGuard guard(mesh_.lock);
  const auto known = communicators_.find(communicator->id());
  if (known != communicators_.end() && known->second == communicator) {
    communicators_.erase(known);
    numbers_.end(communicator->id());
  }
  delete communicator;
}

/// Null if there is none. It stays while the lock is held.
Communicator* Groups::communicator(uint16_t group) const {
  const auto found = communicators_.find(group & static_cast<uint16_t>(~kMessageGroup));
  return found == communicators_.end() ? nullptr : found->second;
}

/// Whether to keep what comes for a group that is not there: not if it is gone, and not without end.
bool Groups::may_come(uint16_t group) const {
  if (!numbers_.may_come(group & static_cast<uint16_t>(~kMessageGroup))) {
    return false;
  }
  return early_.count(group) > 0 || early_.size() < kMostEarlyGroups;
}

void Groups::break_off(const Status& status) {
  for (const auto& [id, communicator] : communicators_) {
    communicator->break_off(status);
  }
}

void Groups::on_chunk(const engine::ChunkHeader& header, const engine::Receipt& receipt) {
  if (Communicator* const to = communicator(header.group); to != nullptr && to->has(header.source)) {
    to->on_chunk(header, receipt);
    return;
  }
  const auto id = static_cast<uint16_t>(header.group & ~kMessageGroup);
  if (!may_come(id)) {
    mesh_.engine()->release(receipt.id);
    return;
  }
  early_[id].push_back({header, mesh_.engine()->settle(receipt), {}});
}

void Groups::on_word(const engine::ChunkHeader& header, std::span<const std::byte> bytes) {
  if (!bytes.empty() && bytes[0] == static_cast<std::byte>(WordKind::shrinking)) {
    hear_shrinking(header.source, header.group, bytes.subspan(1));
    return;
  }
  const auto word = parse_word(bytes);
  if (!word) {
    return;
  }
  if (Communicator* const to = communicator(header.group); to != nullptr && to->has(header.source)) {
    to->on_word(header, *word);
    return;
  }
  const auto id = static_cast<uint16_t>(header.group & ~kMessageGroup);
  if (may_come(id)) {
    early_[id].push_back({header, {}, {bytes.begin(), bytes.end()}});
  }
}

/// Format: the group's number, two bytes, little-endian, and a message of Shrinking.
void Groups::on_message(uint32_t from, uint16_t kind, std::span<const std::byte> bytes) {
  if (kind == kShrinkingMessage && bytes.size() > 2) {
    const auto group = static_cast<uint16_t>(static_cast<uint16_t>(bytes[0]) | static_cast<uint16_t>(bytes[1]) << 8);
    hear_shrinking(from, group, bytes.subspan(2));
  }
}

void Groups::on_rank_failed(uint32_t rank, const Status& status) {
  for (const auto& [id, communicator] : communicators_) {
    if (communicator->has(rank)) {
      tell_failure(*communicator, status);
      communicator->break_off(status);
    }
  }
}

void Groups::on_rank_given_up(uint32_t rank, bool is_certain) {
  for (const auto& [group, shrinking] : shrinkings_) {
    shrinking->suspect(rank, is_certain);
  }
}

/// All members learn of it at once, also those who would not notice by themselves.
void Groups::tell_failure(const Communicator& communicator, const Status& status) {
  if (!communicator.broken().is_ok()) {
    return;
  }
  const std::vector<std::byte> word =
      emit(Word{WordKind::aborted, status.code, fmt::format("{} (as rank {} says)", status.text, communicator.rank())});
  for (const uint32_t member : communicator.members()) {
    // A rank that is given up takes nothing.
    if (member != rank() && mesh_.failed_ranks().count(member) == 0) {
      engine::Address address;
      address.destination = member;
      address.group = communicator.id();
      mesh_.engine()->send_word(word, address);
    }
  }
}

bool Groups::advance(uint64_t now_ns) {
  bool wants_turn = false;
  for (const auto& [id, communicator] : communicators_) {
    wants_turn = communicator->advance(now_ns) || wants_turn;
  }
  return wants_turn;
}

bool Groups::is_busy() const {
  return std::any_of(communicators_.begin(), communicators_.end(),
                     [](const auto& one) { return one.second->is_busy(); });
}

void Groups::see_to(Call& call) {
  if (mesh_.engine() != nullptr) {
    mesh_.want_turn();
    return;
  }
  // Ends, as each advance() of one rank's schedule does some of it and waits for no peer.
  while (call.wants_turn()) {  // nobody else is there
    call.advance();
  }
}

}  // namespace ringbolt::group
