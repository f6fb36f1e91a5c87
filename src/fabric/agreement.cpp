#include "fabric/agreement.h"

#include <algorithm>
#include <bit>
#include <cerrno>

#include "base/assert.h"
#include "base/little_endian.h"

namespace ringbolt::fabric {
namespace {

/// Of messages of later epochs; an honest rank is at most as many epochs ahead as there are members.
constexpr size_t kMaxWaiting = size_t{4} * kMaxAgreeingRanks * kMaxAgreeingRanks;

}  // namespace

Agreement::Agreement(uint32_t self, RankSet members, Rules rules) : self_(self), rules_(rules), members_(members) {
  RINGBOLT_ASSERT(self < kMaxAgreeingRanks && (members & set_of(self)) != 0);
}

bool Agreement::is_quorum(RankSet ranks) const {
  const RankSet voters = ranks & members_;
  const RankSet electorate = members_ & ~ended_;
  const int twice = 2 * std::popcount(voters);
  const int all = std::popcount(electorate);
  // The lowest bit that is set. Of two halves only one has it, so two halves never decide both.
  const RankSet lowest = electorate & (~electorate + 1);
  return twice > all || (twice == all && (voters & lowest) != 0);
}

Agreement::Output Agreement::open() {
  Output output;
  if (!is_fenced_ && !is_open_) {
    is_open_ = true;
    // A vote for oneself, so that the loop over all voters needs no exception.
    votes_[self_] = failed_;
    send(members_ & ~failed_, Kind::vote, failed_, output);
    decide_if_all_agree(output);
  }
  output.is_fenced = is_fenced_;
  return output;
}

Agreement::Output Agreement::suspect_certainly(RankSet ranks) {
  Output output;
  if (!is_fenced_) {
    ended_ |= ranks & ~set_of(self_);
    add_suspects(ranks, output);
    decide_if_all_agree(output);  // who was suspected before may have stood in the way of a majority
  }
  output.is_fenced = is_fenced_;
  return output;
}

Agreement::Output Agreement::suspect(RankSet ranks) {
  Output output;
  if (!is_fenced_) {
    add_suspects(ranks, output);
  }
  output.is_fenced = is_fenced_;
  return output;
}

Agreement::Output Agreement::receive(uint32_t from, const Message& message) {
  Output output;
  if (from < kMaxAgreeingRanks && from != self_) {
    take(from, message, output);
  }
  output.is_fenced = is_fenced_;
  return output;
}

void Agreement::send(RankSet to, Kind kind, RankSet failed, Output& output) const {
  for (uint32_t rank = 0; rank < kMaxAgreeingRanks; ++rank) {
    if ((to & set_of(rank)) != 0 && rank != self_) {
      output.messages.push_back({rank, {kind, epoch_, failed}});
    }
  }
}

/// Step 1: whom a member suspects all whom it does not suspect shall hear of.
void Agreement::add_suspects(RankSet ranks, Output& output) {
  // Each rank is added once in an epoch, which bounds the messages: a vote to each member for each.
  const RankSet added = ranks & members_ & ~failed_ & ~set_of(self_);
  if (added == 0) {
    return;
  }
  failed_ |= added;
  votes_[self_] = failed_;
  send(members_ & ~failed_, Kind::vote, failed_, output);
  decide_if_all_agree(output);
}

void Agreement::take(uint32_t from, const Message& message, Output& output) {
  if (is_fenced_) {
    return;
  }
  // Whatever the epoch: who is suspected after it has voted may have decided by that vote, and be excluded by the
  // others.
  if (message.kind == Kind::commit && (message.failed & set_of(self_)) != 0) {
    is_fenced_ = true;
    return;
  }
  if (message.epoch > epoch_) {
    if (waiting_.size() < kMaxWaiting) {
      waiting_.push_back({from, message});
    }
    return;
  }
  if (message.epoch < epoch_) {
    // Who still votes there has missed the decision, or was excluded by it and has not been told.
    if (message.kind == Kind::vote && message.epoch != 0 && (rules_.tells_excluded || (members_ & set_of(from)) != 0)) {
      output.messages.push_back({from, {Kind::commit, message.epoch, commits_[message.epoch - 1]}});
    }
    return;
  }
  // But for a commit that excludes this rank, above.
  if (((failed_ | ~members_) & set_of(from)) != 0) {
    return;  // step 2: one who is given up is believed nothing else
  }
  if (message.kind == Kind::vote) {
    take_vote(from, message.failed, output);
    // Another one has seen all agree. An empty set counts only where this rank has opened the votes itself.
  } else if ((message.failed & members_) != 0 || (message.failed == 0 && is_open_)) {
    decide(message.failed & members_, output);
  }
}

/// Step 3.
void Agreement::take_vote(uint32_t from, RankSet failed, Output& output) {
  // Who suspects this rank is not answered: it is excluded by a commit, or takes it back by none.
  if ((failed & (set_of(self_) | set_of(from) | ~members_)) != 0) {
    return;
  }
  votes_[from] = failed;
  // Suspicion is contagious, and never taken back in an epoch: so all sets grow to the same one.
  if ((failed & ~failed_) != 0) {
    add_suspects(failed, output);
  } else {
    decide_if_all_agree(output);
  }
}

/// Step 4.
void Agreement::decide_if_all_agree(Output& output) {
  const RankSet voters = members_ & ~failed_;
  if ((failed_ == 0 && !is_open_) || (rules_.needs_majority && !is_quorum(voters))) {
    return;
  }
  for (uint32_t rank = 0; rank < kMaxAgreeingRanks; ++rank) {
    if ((voters & set_of(rank)) != 0 && votes_[rank] != failed_) {
      return;
    }
  }
  decide(failed_, output);
}

/// Steps 4 and 5: tells everybody, and opens the next epoch with what is left.
void Agreement::decide(RankSet failed, Output& output) {
  // Before members_ shrinks: those who are excluded have to hear of it.
  send(rules_.tells_excluded ? members_ : members_ & ~failed, Kind::commit, failed, output);
  output.decisions.push_back({epoch_, failed});
  commits_.push_back(failed);
  // Of a commit from elsewhere: it may say less than this rank suspects, and the rest goes into the next epoch.
  const RankSet still_suspected = failed_ & ~failed;
  members_ &= ~failed;
  failed_ = 0;
  is_open_ = false;
  votes_.fill(std::nullopt);
  ++epoch_;
  add_suspects(still_suspected, output);
  // Each may open a further epoch, which takes from the rest.
  const uint32_t epoch = epoch_;
  std::vector<Waiting> ready;
  const auto later = std::stable_partition(waiting_.begin(), waiting_.end(),
                                           [epoch](const Waiting& waiting) { return waiting.message.epoch > epoch; });
  // Out of waiting_ before any is taken: taking one may decide, and come back here.
  ready.assign(later, waiting_.end());
  waiting_.erase(later, waiting_.end());
  for (const Waiting& waiting : ready) {
    take(waiting.from, waiting.message, output);
  }
}

std::array<std::byte, kAgreementBytes> emit(const Agreement::Message& message) {
  std::array<std::byte, kAgreementBytes> out{};
  // Bytes 1 to 3 stay zero, and parse_agreement() reads them along with the kind.
  base::put_le<uint8_t>(out, 0, static_cast<uint8_t>(message.kind));
  base::put_le<uint32_t>(out, 4, message.epoch);
  base::put_le<uint64_t>(out, 8, message.failed);
  return out;
}

base::Result<Agreement::Message> parse_agreement(std::span<const std::byte> in) {
  if (in.size() != kAgreementBytes) {
    return base::fail(EBADMSG);
  }
  const auto first = base::get_le<uint32_t>(in, 0);
  if (first != static_cast<uint32_t>(Agreement::Kind::vote) &&
      first != static_cast<uint32_t>(Agreement::Kind::commit)) {
    return base::fail(EBADMSG);
  }
  return Agreement::Message{static_cast<Agreement::Kind>(first), base::get_le<uint32_t>(in, 4),
                            base::get_le<uint64_t>(in, 8)};
}

}  // namespace ringbolt::fabric
