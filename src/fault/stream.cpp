#include "fault/stream.h"

#include <algorithm>
#include <utility>

#include "fault/dice.h"

namespace ringbolt::fault {
namespace {

// Folds one more value into a key. The constant is odd and arbitrary, and keeps small values from being scrambled to
// 0.
uint64_t mixed(uint64_t key, uint64_t value) { return scramble(key ^ scramble(value + 0x632be59bd9b4e019U)); }

/// `count` bits more, all different: one that is turned twice would be whole again.
void add_flips(uint64_t count, size_t bytes, Dice& dice, Verdict& verdict) {
  constexpr int kMaxTries = 256;  // a short frame may not have so many
  // Verdict::flips has room for kMaxBits; several rules add to it.
  const auto wanted = static_cast<uint32_t>(std::min<uint64_t>(verdict.flip_count + count, Rule::kMaxBits));
  for (int i = 0; i < kMaxTries && verdict.flip_count < wanted; ++i) {
    const auto bit = static_cast<uint32_t>(dice.below(bytes * 8));
    auto* const end = verdict.flips.data() + verdict.flip_count;
    if (std::find(verdict.flips.data(), end, bit) == end) {
      *end = bit;
      ++verdict.flip_count;
    }
  }
}

// From delay - jitter to delay + jitter, in ns, all alike; never less than 1, since 0 means "not held" in a verdict.
uint64_t delay_of(const Rule& rule, Dice& dice) {
  const uint64_t spread_ns = std::min(rule.jitter_ns, rule.delay_ns);
  const uint64_t least_ns = rule.delay_ns - spread_ns;
  return std::max<uint64_t>(least_ns + dice.below(spread_ns + rule.jitter_ns + 1), 1);
}

/// A pulled cable may be plugged back in so much later.
bool is_restored(const Rule& rule, uint64_t age_ns) {
  // The caller has seen to it that age_ns is from_ns at least.
  return rule.kind == Kind::unplug && rule.delay_ns != 0 && age_ns - rule.from_ns >= rule.delay_ns;
}

/// How long the cable is taken. With a window of frames it waits for the answer to the last of them, two delays later.
uint64_t transfer_ns(const Rule& rule, size_t bytes) {
  constexpr uint64_t kFrameBytes = 4096;
  constexpr uint64_t kBitsPerByte = 8;
  const uint64_t frames = std::max<uint64_t>(1, (bytes + kFrameBytes - 1) / kFrameBytes);
  // Bits by Mbit/s are microseconds; times 1000, ns. In 64 bits, up to 2 PB.
  const uint64_t by_rate = rule.rate_mbps == 0 ? 0 : bytes * kBitsPerByte * 1000 / rule.rate_mbps;
  const uint64_t by_window = rule.window_frames == 0 ? 0 : frames * 2 * rule.delay_ns / rule.window_frames;
  return std::max(by_rate, by_window);
}

}  // namespace

void turn_bits(const Verdict& verdict, std::span<std::byte> frame) {
  for (uint32_t i = 0; i < verdict.flip_count; ++i) {
    const uint32_t bit = verdict.flips[i];
    // judge() chose among as many bytes as it was told; a caller that says more than it has must do no harm.
    if (bit / 8 < frame.size()) {
      frame[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    }
  }
}

// The cable's number is not in it: the same port on another cable has the same bad luck. + 1: node 0 is not "none".
uint64_t Stream::key_of(const Rule& rule) const {
  uint64_t key = mixed(rule.seed, static_cast<uint64_t>(rule.kind));
  key = mixed(key, place_.node ? *place_.node + 1ULL : 0ULL);
  for (const char letter : place_.port) {
    key = mixed(key, static_cast<unsigned char>(letter));
  }
  key = mixed(key, static_cast<uint64_t>(direction_));
  // The stream without a salt gives the same whether or not a place has others.
  return salt_ == 0 ? key : mixed(key, salt_);
}

void Stream::set_rules(const Plan& plan, uint64_t now_ns) {
  std::vector<Active> before = std::exchange(active_, {});
  for (const Rule& rule : plan.rules) {
    if (subject_of(rule.kind) != subject_ || !rule.applies_to(place_, direction_) ||
        (rule.object && rule.object != object_) || (rule.kind == Kind::pd_null && object_ != Object::pd)) {
      continue;
    }
    // By value: the text of a plan is read anew at each change, and rules have no names.
    const auto same = std::ranges::find(before, rule, &Active::rule);
    if (same != before.end()) {
      active_.push_back(std::move(*same));
      before.erase(same);
    } else {
      // It counts from the next frame, wherever this stream is by now.
      active_.push_back({rule, key_of(rule), tally_.frames, now_ns, 0});
    }
  }
}

bool Stream::is_due(const Active& active, uint64_t frame, uint64_t now_ns) {
  // Two threads may have read their clocks in one order and come here in the other.
  const uint64_t age_ns = now_ns > active.since_ns ? now_ns - active.since_ns : 0;
  return frame >= active.rule.first_frame && frame <= active.rule.last_frame && age_ns >= active.rule.from_ns &&
         age_ns < active.rule.until_ns && !is_restored(active.rule, age_ns);
}

Verdict Stream::judge(size_t bytes, uint64_t now_ns) {
  Verdict verdict;
  verdict.number = tally_.frames++;
  for (Active& active : active_) {
    const uint64_t frame = verdict.number - active.first;
    if (is_due(active, frame, now_ns)) {
      apply(active, active.key, frame, bytes, now_ns, verdict);
    }
  }
  // A lost frame suffers nothing else, and the tally counts it once. A lost message is different: its sender still
  // sees when it completes.
  if (verdict.is_lost && subject_ != Subject::message) {
    const uint64_t number = verdict.number;
    verdict = {};
    verdict.number = number;
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

Verdict Stream::judge_again(uint64_t number, uint32_t repetition, size_t bytes, uint64_t now_ns) {
  Verdict verdict;
  verdict.number = number;
  for (Active& active : active_) {
    const uint64_t frame = std::max(number, active.first) - active.first;  // a rule may be younger than the frame
    if (is_due(active, frame + repetition, now_ns)) {
      apply(active, mixed(active.key, repetition), frame, bytes, now_ns, verdict);
    }
  }
  return verdict;
}

const Rule* Stream::holding(Kind kind, uint64_t now_ns) const {
  // Ranges of frames don't apply to what holds: first_frame satisfies its own.
  const auto found = std::ranges::find_if(active_, [&](const Active& active) {
    return active.rule.kind == kind && is_due(active, active.rule.first_frame, now_ns);
  });
  return found == active_.end() ? nullptr : &found->rule;
}

void Stream::apply(Active& active, uint64_t key, uint64_t frame, size_t bytes, uint64_t now_ns, Verdict& verdict) {
  const Rule& rule = active.rule;
  Dice dice(key, frame);
  // Thrown even for a certain rule, so that what the dice give next does not depend on the chance.
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
      verdict.overtakers = std::max(verdict.overtakers, static_cast<uint32_t>(rule.overtakers));
      verdict.hold_ns = std::max(verdict.hold_ns, std::max<uint64_t>(rule.within_ns, 1));
      break;
    case Kind::corrupt:
      add_flips(rule.bits, bytes, dice, verdict);
      break;
    case Kind::truncate:
      // At least one byte stays, and at least one goes: hence frames of two bytes at least.
      verdict.kept_bytes = std::min<size_t>(verdict.kept_bytes, 1 + dice.below(bytes - 1));
      break;
    case Kind::delay:
      verdict.hold_ns += delay_of(rule, dice);
      break;
    case Kind::shape:
      // Frames queue: each begins when the one before has left, and arrives its delay later.
      active.line_free_ns = std::max(active.line_free_ns, now_ns) + transfer_ns(rule, bytes);
      verdict.hold_ns += active.line_free_ns - now_ns + delay_of(rule, dice);
      break;
    case Kind::rtr_errno:
    case Kind::call_errno:
    case Kind::pd_null:
      verdict.is_refused = true;
      verdict.error = rule.error;
      break;
    case Kind::exhaust:
      // Of objects, `bytes` is how many there are already (see judge()).
      if (bytes >= rule.left) {
        verdict.is_refused = true;
        verdict.error = rule.error;
      }
      break;
    case Kind::rtr_block:
    case Kind::destroy_hang:
    case Kind::query_hang:
    case Kind::completion_late:
      verdict.hold_ns += rule.delay_ns;
      break;
    case Kind::completion_error:
    case Kind::receive_error:
      verdict.status = static_cast<uint32_t>(rule.status);
      break;
    case Kind::frame_mismatch: {
      constexpr uint32_t kLocalLengthError = 1;  // as enum ibv_wc_status has it
      verdict.status = kLocalLengthError;
      break;
    }
    case Kind::completion_missing:
    case Kind::message_loss:
      verdict.is_lost = true;
      break;
    case Kind::bitflip:
      add_flips(rule.bits, bytes, dice, verdict);
      break;
    case Kind::rnr:
      verdict.is_not_ready = true;
      break;
    case Kind::early:
      verdict.is_early = true;
      verdict.hold_ns += rule.delay_ns;
      break;
    case Kind::silent_overrun:
      verdict.is_refused = true;
      break;
    case Kind::coalesce:
    case Kind::qp_age:
    case Kind::flap:
    case Kind::unplug:
    case Kind::frozen:
    case Kind::cross_cables:
    case Kind::gid_change:
    case Kind::gid_shuffle:
    case Kind::gid_empty:
    case Kind::rename_devices:
      break;  // they hold, see holding()
  }
}

}  // namespace ringbolt::fault
