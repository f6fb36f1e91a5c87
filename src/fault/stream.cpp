#include "fault/stream.h"

#include <algorithm>
#include <utility>

#include "fault/dice.h"

namespace ringbolt::fault {
namespace {

uint64_t mixed(uint64_t key, uint64_t value) { return scramble(key ^ scramble(value + 0x632be59bd9b4e019U)); }

/// `count` bits more, all different: one that is turned twice would be whole again.
void add_flips(uint32_t count, size_t bytes, Dice& dice, Verdict& verdict) {
  constexpr int kMaxTries = 256;  // a short frame may not have so many
  const uint32_t wanted = std::min(verdict.flip_count + count, Rule::kMaxBits);
  for (int i = 0; i < kMaxTries && verdict.flip_count < wanted; ++i) {
    const auto bit = static_cast<uint32_t>(dice.below(bytes * 8));
    auto* const end = verdict.flips.data() + verdict.flip_count;
    if (std::find(verdict.flips.data(), end, bit) == end) {
      *end = bit;
      ++verdict.flip_count;
    }
  }
}

}  // namespace

void turn_bits(const Verdict& verdict, std::span<std::byte> frame) {
  for (uint32_t i = 0; i < verdict.flip_count; ++i) {
    const uint32_t bit = verdict.flips[i];
    if (bit / 8 < frame.size()) {
      frame[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    }
  }
}

uint64_t Stream::key_of(const Rule& rule) const {
  uint64_t key = mixed(rule.seed, static_cast<uint64_t>(rule.kind));
  key = mixed(key, place_.node ? *place_.node + 1ULL : 0ULL);
  for (const char letter : place_.port) {
    key = mixed(key, static_cast<unsigned char>(letter));
  }
  return mixed(key, static_cast<uint64_t>(direction_));
}

void Stream::set_rules(const Plan& plan, uint64_t now_ns) {
  std::vector<Active> before = std::exchange(active_, {});
  for (const Rule& rule : plan.rules) {
    if (subject_of(rule.kind) != subject_ || !rule.applies_to(place_, direction_)) {
      continue;
    }
    const auto same = std::ranges::find(before, rule, &Active::rule);
    if (same != before.end()) {
      active_.push_back(std::move(*same));
      before.erase(same);
    } else {
      active_.push_back({rule, key_of(rule), 0, now_ns});
    }
  }
}

bool Stream::is_due(const Active& active, uint64_t now_ns) {
  const uint64_t age_ns = now_ns > active.since_ns ? now_ns - active.since_ns : 0;
  return active.frames >= active.rule.first_frame && active.frames <= active.rule.last_frame &&
         age_ns >= active.rule.from_ns && age_ns < active.rule.until_ns;
}

Verdict Stream::judge(size_t bytes, uint64_t now_ns) {
  Verdict verdict;
  ++tally_.frames;
  for (Active& active : active_) {
    if (is_due(active, now_ns)) {
      apply(active.rule, active.key, active.frames, bytes, verdict);
    }
    ++active.frames;
  }
  if (verdict.is_lost) {
    verdict = {};
    verdict.is_lost = true;
  }
  tally_.lost += verdict.is_lost ? 1U : 0U;
  tally_.duplicated += verdict.copies;
  tally_.reordered += verdict.overtakers != 0 ? 1U : 0U;
  tally_.delayed += verdict.overtakers == 0 && verdict.hold_ns != 0 ? 1U : 0U;
  tally_.corrupted += verdict.flip_count != 0 ? 1U : 0U;
  tally_.truncated += verdict.kept_bytes != SIZE_MAX ? 1U : 0U;
  return verdict;
}

void Stream::apply(const Rule& rule, uint64_t key, uint64_t frame, size_t bytes, Verdict& verdict) {
  Dice dice(key, frame);
  if (dice.below(Rule::kCertain) >= rule.chance) {
    return;
  }
  switch (rule.kind) {
    case Kind::loss:
      verdict.is_lost = true;
      break;
    case Kind::duplicate:
      ++verdict.copies;
      break;
    case Kind::reorder:
      verdict.overtakers = std::max(verdict.overtakers, rule.overtakers);
      verdict.hold_ns = std::max(verdict.hold_ns, std::max<uint64_t>(rule.within_ns, 1));
      break;
    case Kind::corrupt:
      add_flips(rule.bits, bytes, dice, verdict);
      break;
    case Kind::truncate:
      verdict.kept_bytes = std::min<size_t>(verdict.kept_bytes, 1 + dice.below(bytes - 1));
      break;
    case Kind::delay: {
      const uint64_t spread_ns = std::min(rule.jitter_ns, rule.delay_ns);
      const uint64_t least_ns = rule.delay_ns - spread_ns;
      verdict.hold_ns += std::max<uint64_t>(least_ns + dice.below(spread_ns + rule.jitter_ns + 1), 1);
      break;
    }
    case Kind::rtr_errno:
      verdict.error = rule.error;
      break;
    case Kind::rtr_block:
    case Kind::completion_late:
      verdict.hold_ns += rule.delay_ns;
      break;
    case Kind::completion_error:
      verdict.status = rule.status;
      break;
    case Kind::pd_null:
    case Kind::completion_missing:
      verdict.is_lost = true;
      break;
  }
}

}  // namespace ringbolt::fault
