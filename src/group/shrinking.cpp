#include "group/shrinking.h"

#include <algorithm>
#include <array>

#include "base/little_endian.h"

namespace ringbolt::group {

Shrinking::Shrinking(uint32_t self, fabric::RankSet members, uint16_t group, Send send)
    : self_(self),
      group_(group),
      members_(members),
      send_(std::move(send)),
      agreement_(self, members),
      next_sent_(fabric::kMaxAgreeingRanks),
      next_received_(fabric::kMaxAgreeingRanks),
      early_(fabric::kMaxAgreeingRanks) {}

void Shrinking::begin(fabric::RankSet ended, fabric::RankSet suspects, uint16_t next_id) {
  has_begun_ = true;
  wish_ = std::max(wish_, next_id);
  // Whoever is suspected before the first vote need not be voted for twice.
  carry_out(agreement_.suspect_certainly(ended));
  carry_out(agreement_.suspect(suspects));
  if (outcomes_.empty()) {
    carry_out(agreement_.open());
  }
  const auto waiting = std::exchange(unopened_, {});
  for (const auto& [from, message] : waiting) {
    take(from, message);
  }
}

void Shrinking::suspect(uint32_t rank, bool is_certain) {
  if (has_begun_) {
    const fabric::RankSet ranks = fabric::set_of(rank);
    carry_out(is_certain ? agreement_.suspect_certainly(ranks) : agreement_.suspect(ranks));
  }
}

void Shrinking::receive(uint32_t from, std::span<const std::byte> bytes) {
  if (bytes.size() != kShrinkingBytes || from >= fabric::kMaxAgreeingRanks) {
    return;
  }
  const auto agreement = fabric::parse_agreement(bytes.subspan(6));
  const auto number = base::get_le<uint32_t>(bytes, 0);
  // Unsigned: one that came before is far ahead, too.
  if (!agreement || number - next_received_[from] >= kMostEarly) {
    return;  // damaged, come already, or nothing that an honest rank sends
  }
  early_[from].insert({number, {*agreement, base::get_le<uint16_t>(bytes, 4)}});
  for (auto next = early_[from].find(next_received_[from]); next != early_[from].end();
       next = early_[from].find(next_received_[from])) {
    const Message message = next->second;
    early_[from].erase(next);
    ++next_received_[from];
    if (has_begun_) {
      take(from, message);
    } else {
      unopened_.push_back({from, message});
    }
  }
}

void Shrinking::take(uint32_t from, const Message& message) {
  const uint32_t epoch = message.agreement.epoch;
  if (message.agreement.kind == fabric::Agreement::Kind::vote) {
    uint16_t& wish = wishes_[{epoch, from}];
    wish = std::max(wish, message.id);
  } else {
    // The first one stays: all that decide alike have the same.
    ids_.insert({{epoch, message.agreement.failed}, message.id});
  }
  carry_out(agreement_.receive(from, message.agreement));
}

/// Beyond the numbers that the epochs before have taken.
uint16_t Shrinking::wish_of(uint32_t epoch) const {
  uint16_t wish = wish_;
  for (const auto& [decision, id] : ids_) {
    wish = decision.first < epoch ? std::max(wish, static_cast<uint16_t>(id + 1)) : wish;
  }
  return wish;
}

/// The same from this rank's first vote in the epoch to its decision, whatever it hears or is asked meanwhile: others
/// decide by what its vote has told them.
uint16_t Shrinking::own_wish(uint32_t epoch) {
  return wishes_.try_emplace({epoch, self_}, wish_of(epoch)).first->second;
}

/// All who decide by votes have those of the same ranks, with the same wishes; the others are told.
uint16_t Shrinking::id_of(uint32_t epoch, fabric::RankSet failed) {
  if (const auto known = ids_.find({epoch, failed}); known != ids_.end()) {
    return known->second;
  }
  uint16_t id = own_wish(epoch);
  for (uint32_t rank = 0; rank < fabric::kMaxAgreeingRanks; ++rank) {
    if ((members_ & ~failed & fabric::set_of(rank)) != 0) {
      id = std::max(id, wishes_[{epoch, rank}]);
    }
  }
  // Groups that are shrunk at the same time, by threads that each rank runs in an order of its own, get different
  // numbers.
  id = static_cast<uint16_t>(id + static_cast<uint16_t>(group_ - id) % kApart);
  ids_[{epoch, failed}] = id;
  return id;
}

void Shrinking::carry_out(const fabric::Agreement::Output& output) {
  for (const auto& [to, message] : output.messages) {
    std::array<std::byte, kShrinkingBytes> bytes{};
    const bool is_commit = message.kind == fabric::Agreement::Kind::commit;
    base::put_le<uint32_t>(bytes, 0, next_sent_[to]++);
    base::put_le<uint16_t>(bytes, 4, is_commit ? id_of(message.epoch, message.failed) : own_wish(message.epoch));
    const auto words = fabric::emit(message);
    std::copy(words.begin(), words.end(), bytes.begin() + 6);
    send_(to, bytes);
  }
  for (const fabric::Agreement::Decision& decision : output.decisions) {
    const uint16_t id = id_of(decision.epoch, decision.failed);
    members_ &= ~decision.failed;
    wish_ = std::max(wish_, static_cast<uint16_t>(id + 1));
    outcomes_.push_back({members_, id});
  }
}

/// Oldest first: a rank that was slow to ask gets the decision that the others have gone on from.
std::optional<Shrinking::Outcome> Shrinking::take_outcome() {
  if (outcomes_.empty()) {
    return std::nullopt;
  }
  const Outcome first = outcomes_.front();
  outcomes_.pop_front();
  return first;
}

}  // namespace ringbolt::group
