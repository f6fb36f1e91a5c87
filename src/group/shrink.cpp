// Groups of those who are left.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/clock.h"
#include "base/lock_guard.h"
#include "group/failure.h"
#include "group/groups.h"
#include "group/word.h"

namespace ringbolt::group {
namespace {

fabric::RankSet set_of(const std::vector<uint32_t>& ranks) {
  fabric::RankSet set = 0;
  for (const uint32_t rank : ranks) {
    set |= fabric::set_of(rank);
  }
  return set;
}

std::vector<uint32_t> ranks_of(const std::vector<uint32_t>& members, fabric::RankSet set) {
  std::vector<uint32_t> ranks;
  std::copy_if(members.begin(), members.end(), std::back_inserter(ranks),
               [&](uint32_t rank) { return (set & fabric::set_of(rank)) != 0; });
  return ranks;
}

}  // namespace

/// Null: there is no such group here, or the mesh is too large to agree. Lives as long as this.
Shrinking* Groups::shrinking(uint16_t group) {
  const auto known = shrinkings_.find(group);
  if (known != shrinkings_.end()) {
    return known->second.get();
  }
  const Communicator* const of = communicator(group);
  if (of == nullptr || n_ranks() > fabric::kMaxAgreeingRanks) {
    return nullptr;
  }
  // Votes of other members may come for as long as the mesh lives, and must not meet a later group of that number.
  numbers_.retire(group);
  return shrinkings_
      .emplace(group,
               std::make_unique<Shrinking>(rank(), set_of(of->members()), group,
                                           [this, group](uint32_t to, std::span<const std::byte> bytes)
                                               RINGBOLT_REQUIRES(mesh_.lock) { send_shrinking(group, to, bytes); }))
      .first->second.get();
}

/// Both ways, since either may be closed: who gets it twice takes it once.
void Groups::send_shrinking(uint16_t group, uint32_t to, std::span<const std::byte> bytes) {
  std::vector<std::byte> message = {static_cast<std::byte>(group), static_cast<std::byte>(group >> 8)};
  message.insert(message.end(), bytes.begin(), bytes.end());
  (void)mesh_.send_message(to, kShrinkingMessage, message);
  std::vector<std::byte> word = {static_cast<std::byte>(WordKind::shrinking)};
  word.insert(word.end(), bytes.begin(), bytes.end());
  engine::Address address;
  address.destination = to;
  address.group = group;
  mesh_.engine()->send_word(word, address);
}

void Groups::hear_shrinking(uint32_t from, uint16_t group, std::span<const std::byte> bytes) {
  if (const Communicator* const of = communicator(group); of != nullptr && !of->has(from)) {
    return;  // of an earlier group of that number
  }
  if (Shrinking* const of = shrinking(group)) {
    of->receive(from, bytes);
    return;
  }
  // Votes are sent once: a rank may have made a group, lost another rank of it and voted, all before this one has made
  // it.
  if (communicator(group) == nullptr && may_come(group)) {
    Early vote;
    vote.header.source = static_cast<uint8_t>(from);
    vote.header.group = group;
    vote.word = {static_cast<std::byte>(WordKind::shrinking)};
    vote.word.insert(vote.word.end(), bytes.begin(), bytes.end());
    early_[group].push_back(std::move(vote));
  }
}

std::shared_ptr<Communicator> Groups::shrink(const std::shared_ptr<Communicator>& communicator, uint64_t deadline_ns) {
  if (communicator->n_ranks() == 1) {
    const base::LockGuard guard(mesh_.lock);
    const std::vector<bool> free = free_group_ids();
    const auto first = std::find(free.begin(), free.end(), true);
    if (first == free.end()) {
      throw JoinError(fmt::format("shrink: {} groups are there, and that is the most", free.size()));
    }
    const std::vector<uint16_t> number{static_cast<uint16_t>(first - free.begin())};
    reserve(number);  // one that was given before, too, may come again now
    return make_communicator(number.front(), communicator->members(), 0, communicator->avoided());
  }
  // Held to the end but while it waits: whoever makes groups at the same time is seen by make_communicator().
  const base::LockGuard guard(mesh_.lock);
  Shrinking* const of = shrinking(communicator->id());
  if (of == nullptr) {
    throw JoinError(fmt::format("shrink: groups of up to {} ranks can be shrunk", fabric::kMaxAgreeingRanks), EINVAL);
  }
  // Calls under way would wait for ranks that have gone on.
  communicator->break_off({ECANCELED, "the group is being shrunk"});
  fabric::RankSet failed = 0;
  for (const auto& [rank, status] : mesh_.failed_ranks()) {
    failed |= fabric::set_of(rank);
  }
  of->begin(mesh_.ended_ranks(), failed, numbers_.next_shrunk());
  std::optional<Shrinking::Outcome> outcome;
  mesh_.wait_locked(
      [&] {
        outcome = of->take_outcome();
        return outcome || of->is_fenced() || base::now_ns() >= deadline_ns;
      },
      0);
  if (of->is_fenced()) {
    throw JoinError("shrink: the others have gone on without this rank, since they could not reach it", ECONNRESET);
  }
  if (!outcome) {
    throw JoinError(
        fmt::format("shrink: the deadline has passed; given up so far: ranks {}; of the others some have not "
                    "called shrink, or too few are left to go on",
                    fmt::join(ranks_of(communicator->members(), of->suspects()), ", ")),
        ETIMEDOUT);
  }
  if (outcome->id > kMostGroups) {
    throw JoinError(fmt::format("shrink: {} is the last number of a group, and {} would be the next one", kMostGroups,
                                outcome->id));
  }
  std::vector<uint32_t> left = ranks_of(communicator->members(), outcome->members);
  const auto self = static_cast<uint32_t>(std::find(left.begin(), left.end(), rank()) - left.begin());
  // Of cables that are cut at this time each rank has news of its own; who is gone all know alike.
  std::vector<bool> gone(mesh_.made().cables.size());
  std::vector<bool> avoided = communicator->avoided();
  avoided.resize(gone.size());
  for (size_t i = 0; i < gone.size(); ++i) {
    const auto is_gone = [&](uint32_t rank) {
      return communicator->has(rank) && (outcome->members & fabric::set_of(rank)) == 0;
    };
    gone[i] = is_gone(mesh_.made().cables[i].a) || is_gone(mesh_.made().cables[i].b);
    avoided[i] = avoided[i] || gone[i];
  }
  if (!are_joined(left, avoided)) {
    avoided = gone;  // one that was cut when the group was made has been needed since, and is back
  }
  return make_communicator(outcome->id, std::move(left), self, std::move(avoided), communicator->id());
}

}  // namespace ringbolt::group
