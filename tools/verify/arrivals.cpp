// Hot path: accept() is called for every message.
#include "verify/arrivals.h"

#include <algorithm>

#include <fmt/format.h>

namespace ringbolt::tools::verify {
namespace {

/// A number so far ahead is no number of a sender that respects the window.
constexpr uint64_t kFarAhead = uint64_t{1} << 17U;
// As many as a text is still read with.
constexpr size_t kMostGaps = 8;

const char* plural(uint64_t count) { return count == 1 ? "" : "s"; }

}  // namespace

std::string text_of(const Difference& one) {
  return fmt::format("first at byte {}: expected 0x{:02x}, found 0x{:02x}; {} byte{} and {} bit{} differ", one.first,
                     std::to_integer<unsigned>(one.expected), std::to_integer<unsigned>(one.found), one.bytes,
                     plural(one.bytes), one.bits, plural(one.bits));
}

Arrivals::Arrivals(const Step& step, uint32_t queue_pair, uint16_t epoch, uint64_t seed, Tally& tally)
    : step_(step),
      queue_pair_(queue_pair),
      epoch_(epoch),
      seed_(seed),
      tally_(tally),
      name_(fmt::format("queue pair {}", queue_pair)) {}

Stamp Arrivals::stamp_of(uint64_t sequence) const {
  return {epoch_, static_cast<uint8_t>(queue_pair_), sequence, size_of(step_, queue_pair_, sequence)};
}

void Arrivals::note_gap(uint64_t instead) {
  if (gaps_.size() == kMostGaps) {
    std::erase_if(gaps_, [&](const Gap& gap) { return missing_.count(gap.missing) == 0; });
  }
  if (gaps_.size() < kMostGaps) {
    gaps_.push_back({next_, instead});
  }
}

void Arrivals::count(uint64_t sequence, bool is_verified, uint64_t bytes) {
  for (; next_ < sequence; ++next_) {
    missing_.insert(next_);
    note_gap(sequence);
  }
  missing_.erase(sequence);
  next_ = std::max(next_, sequence + 1);
  last_ = sequence;
  messages_ += is_verified ? 1 : 0;
  verified_bytes_ += is_verified ? bytes : 0;
}

bool Arrivals::accept(std::span<const std::byte> message, uint64_t length) {
  uint64_t sequence = next_;
  if (step_.order == Order::kAny || step_.loss_ppm != 0) {
    const std::optional<Stamp> stamp = stamp_in(message, seed_);
    if (stamp) {
      sequence = stamp->sequence;
    }
    const bool may_come = step_.order == Order::kAny ? is_awaited(sequence) : sequence >= next_;
    if (!may_come || sequence > next_ + kFarAhead) {
      return false;
    }
  }
  const Stamp stamp = stamp_of(sequence);
  if (length != stamp.length || message.size() != length || !is_message(message, seed_, stamp)) {
    return false;
  }
  count(sequence, true, length);
  return true;
}

void Arrivals::note_late(uint64_t waited_us) {
  add(Kind::kLate,
      fmt::format("message {} completed before its data was there: it was whole only {} us later", last_, waited_us));
}

uint64_t Arrivals::examine(std::span<const std::byte> message, uint64_t length, bool is_untouched) {
  const Stamp due = stamp_of(next_);
  if (is_untouched && length >= kTellingBytes) {  // fewer bytes may look so by chance
    add(Kind::kNoData, fmt::format("the receive of message {} completed with {} bytes, and not one of them was written",
                                   next_, length));
    count(next_, false, 0);
    return 0;
  }
  const std::optional<Stamp> stamp = stamp_in(message, seed_);
  if (!stamp) {
    return examine_unreadable(message, length);
  }
  if (stamp->epoch != epoch_) {
    add(Kind::kForeign, fmt::format("message {} of a queue pair that is gone (epoch {}, this one is {}) came where "
                                    "message {} was due",
                                    stamp->sequence, stamp->epoch, epoch_, next_));
    return length;
  }
  if (stamp->queue_pair != queue_pair_) {
    add(Kind::kForeign, fmt::format("message {} of queue pair {} came where message {} was due", stamp->sequence,
                                    stamp->queue_pair, next_));
    return length;
  }
  if (!is_awaited(stamp->sequence)) {
    const bool has_length_of_due = length == due.length && length != stamp->length;
    if (has_length_of_due) {
      add(Kind::kStale, fmt::format("the receive of message {} holds data of message {}", next_, stamp->sequence));
      count(next_, false, 0);
      return std::max<uint64_t>(length, stamp->length);
    }
    add(Kind::kDoubled,
        fmt::format("message {} came again: expected {}, found {}", stamp->sequence, next_, stamp->sequence));
    return std::max<uint64_t>(length, stamp->length);
  }
  return examine_stamped(message, length, *stamp);
}

uint64_t Arrivals::examine_stamped(std::span<const std::byte> message, uint64_t length, const Stamp& stamp) {
  if (stamp.sequence > next_ + kFarAhead || stamp.length != size_of(step_, queue_pair_, stamp.sequence)) {
    add(Kind::kForeign,
        fmt::format("a message that was not sent in this run ({} of {} bytes) came where message {} was due",
                    stamp.sequence, stamp.length, next_));
    return length;
  }
  if (stamp.sequence < next_ && step_.order == Order::kStrict) {
    add(Kind::kOrder, fmt::format("message {} came after message {}: expected {}, found {}", stamp.sequence, last_,
                                  next_, stamp.sequence));
  }
  const bool is_whole = length == stamp.length && is_message(message, seed_, stamp);
  if (!is_whole) {
    describe(message, length, stamp);
  }
  count(stamp.sequence, is_whole, length);
  return std::max<uint64_t>(length, stamp.length);
}

uint64_t Arrivals::examine_unreadable(std::span<const std::byte> message, uint64_t length) {
  // The one that is due, or, if any order is good, the awaited one that it is most like.
  std::vector<uint64_t> candidates{next_};
  if (step_.order == Order::kAny) {
    candidates.insert(candidates.end(), missing_.begin(), missing_.end());
  }
  // Each costs a comparison of the whole message: bounded, as this runs in the polling loop.
  constexpr size_t kMostTried = 256;
  candidates.resize(std::min(candidates.size(), kMostTried));
  uint64_t best = next_;
  size_t fewest = SIZE_MAX;
  for (const uint64_t one : candidates) {
    const Stamp stamp = stamp_of(one);
    const auto wrong = message_difference(message.first(std::min<size_t>(message.size(), stamp.length)), seed_, stamp);
    const size_t differing = (wrong ? wrong->bytes : 0) + (length == stamp.length ? 0 : message.size());
    if (differing < fewest) {
      fewest = differing;
      best = one;
    }
  }
  describe(message, length, stamp_of(best));
  const bool is_unknown = step_.order == Order::kAny && fewest > message.size() / 2;
  if (is_unknown) {
    ++unreadable_;
  } else {
    count(best, false, 0);
  }
  return std::max<uint64_t>(length, size_of(step_, queue_pair_, best));
}

void Arrivals::describe(std::span<const std::byte> message, uint64_t length, const Stamp& sent) {
  const auto wrong = message_difference(message.first(std::min<size_t>(message.size(), sent.length)), seed_, sent);
  if (length != sent.length) {
    add(Kind::kLength, fmt::format("message {} of {} bytes arrived as {}{}", sent.sequence, sent.length, length,
                                   wrong ? ", damaged: " + text_of(*wrong) : ""));
    return;
  }
  if (wrong) {
    add(Kind::kDamaged,
        fmt::format("message {} of {} bytes is damaged, {}", sent.sequence, sent.length, text_of(*wrong)));
  }
}

void Arrivals::give_up(uint64_t posted) {
  posted = std::min(posted, next_ + kFarAhead);  // what a peer tells is not trusted
  for (; next_ < posted; ++next_) {
    missing_.insert(next_);
    note_gap(next_);
  }
  for (const Gap& gap : gaps_) {
    if (missing_.count(gap.missing) != 0 && lost_gaps_.size() < kMostGaps) {
      lost_gaps_.push_back(gap);
    }
  }
  gaps_.clear();
  lost_ += missing_.size();
  missing_.clear();
}

void Arrivals::judge_loss(uint64_t posted) {
  const uint64_t lost = lost_ - std::min(lost_, unreadable_);
  const auto allowed = static_cast<uint64_t>(static_cast<double>(posted) * step_.loss_ppm / 1e6);
  if (lost <= allowed) {
    return;
  }
  std::string which;
  for (const Gap& gap : lost_gaps_) {
    which += gap.instead == gap.missing ? fmt::format("; message {} never came, nor any after it", gap.missing)
                                        : fmt::format("; expected {}, found {}", gap.missing, gap.instead);
  }
  tally_.add(Kind::kLost,
             fmt::format("{}: {} of {} messages never came{}{}", name_, lost, posted,
                         allowed == 0 ? "" : fmt::format(" ({} may)", allowed), which),
             lost);
}

}  // namespace ringbolt::tools::verify
