#include "verify/plan.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "pair/two_ends.h"
#include "verify/stamp.h"

namespace ringbolt::tools::verify {
namespace {

using pair::Transport;

constexpr uint64_t kUsualMostBytes = 65536;
constexpr uint64_t kUsualChurnBytes = 4096;
constexpr uint32_t kUsualQueuePairs = 4;
/// Of memory for what is under way, in each direction.
constexpr uint64_t kSendBudget = uint64_t{2} << 20U;
constexpr uint64_t kReceiveBudget = uint64_t{4} << 20U;
/// Queues of devices that count frames may take so many fewer than they say.
constexpr uint64_t kFrameReserve = 16;

/// A device that has every transport.
constexpr Abilities kAll{true, true, true};

std::string refuse_transport(Mode mode, Transport transport, const Abilities& both) {
  const bool is_one_sided = mode == Mode::kRead || mode == Mode::kAtomic;
  return pair::first_of({
      {transport == Transport::kRc && !both.has_rc,
       "RC: one of the devices has none (it reports no READ contexts); -c UC is on every device"},
      {transport == Transport::kUd && !both.has_ud,
       "UD: one of the devices has none (it reports no address handles); -c UC is on every device"},
      {is_one_sided && transport != Transport::kRc,
       fmt::format("{}: goes over RC only, not over {}", text_of(mode), text_of(transport))},
      {(mode == Mode::kWrite || mode == Mode::kChurn) && transport == Transport::kUd,
       fmt::format("{}: over RC and UC only, not over UD", text_of(mode))},
      {mode == Mode::kAtomic && !both.has_atomics, "atomic: one of the devices has no atomics"},
  });
}

Transport usual_transport(Mode mode, const Abilities& both) {
  const bool needs_rc = mode == Mode::kRead || mode == Mode::kAtomic;
  return both.has_rc || needs_rc ? Transport::kRc : Transport::kUc;
}

std::string settle_sizes(const Wish& wish, const Abilities& both, Step& step) {
  if (step.mode == Mode::kAtomic) {
    step.least_bytes = step.most_bytes = 8;
    return "";
  }
  uint64_t limit = both.most_message_bytes;
  if (step.transport == Transport::kUd) {
    limit = std::min<uint64_t>(limit, both.mtu_bytes);
  }
  if (step.counts_frames) {
    limit = std::min(limit, (uint64_t{both.most_requests} - std::min<uint64_t>(kFrameReserve, both.most_requests - 1)) *
                                kFrameBytes);
  }
  const uint64_t usual = step.mode == Mode::kChurn ? kUsualChurnBytes : kUsualMostBytes;
  step.most_bytes = wish.most_bytes.value_or(std::max(std::min(usual, limit), wish.least_bytes.value_or(0)));
  const bool must_tell = step.order == Order::kAny || step.loss_ppm != 0;
  // What may get lost should tell who it is, so that a gap is seen as one.
  step.least_bytes = wish.least_bytes.value_or(must_tell || step.transport != Transport::kRc ? kTellingBytes : 1);
  step.least_bytes = std::min(step.least_bytes, step.most_bytes);
  if (step.most_bytes > limit) {
    return fmt::format("messages of {} bytes: the devices take {} at most (--max, -s)", step.most_bytes, limit);
  }
  if (must_tell && step.least_bytes < kTellingBytes) {
    return fmt::format(
        "messages of {} bytes: with --order any or --allow-loss each must tell who it is, which takes {} (--min, "
        "-s)",
        step.least_bytes, kTellingBytes);
  }
  return "";
}

std::string settle_depths(const Wish& wish, const Abilities& both, Step& step) {
  step.queue_pairs = wish.queue_pairs != 0 ? wish.queue_pairs : std::min(kUsualQueuePairs, both.most_queue_pairs);
  if (step.queue_pairs > both.most_queue_pairs) {
    return fmt::format("{} queue pairs: the devices have {} (-q)", step.queue_pairs, both.most_queue_pairs);
  }
  const uint64_t each = std::max<uint64_t>(step.most_bytes, 64) * step.queue_pairs;
  const uint64_t frames =
      step.counts_frames ? std::max<uint64_t>((step.most_bytes + kFrameBytes - 1) / kFrameBytes, 1) : 1;
  const uint64_t room =
      (both.most_requests - std::min<uint64_t>(step.counts_frames ? kFrameReserve : 0, both.most_requests - 1)) /
      frames;
  // All queue pairs share one completion queue for sends and one for receives, which must not overrun.
  const uint64_t completions = std::max<uint64_t>(both.most_completions / step.queue_pairs, 1);
  // Receives are a quarter more than the sender knows of.
  const uint64_t most_receives = std::max<uint64_t>(std::min(room, completions) * 3 / 4, 1);
  const uint64_t most_sends = std::max<uint64_t>(std::min(room, completions), 1);
  const uint64_t usual_sends = std::clamp<uint64_t>(kSendBudget / each, 2, step.mode == Mode::kChurn ? 16 : 64);
  const uint64_t usual_receives = std::clamp<uint64_t>(kReceiveBudget / each, 4, 128);
  step.send_depth = wish.send_depth != 0 ? wish.send_depth : static_cast<uint32_t>(std::min(usual_sends, most_sends));
  step.receive_depth =
      wish.receive_depth != 0 ? wish.receive_depth : static_cast<uint32_t>(std::min(usual_receives, most_receives));
  // Who asks for a depth gets it, or the device's refusal.
  if (step.mode != Mode::kStream) {
    // There as many receives as sends.
    step.send_depth = wish.send_depth != 0 ? wish.send_depth
                                           : static_cast<uint32_t>(std::min<uint64_t>(step.send_depth, most_receives));
  }
  return "";
}

uint32_t count_of(int value) { return value > 0 ? static_cast<uint32_t>(value) : 1; }

}  // namespace

const char* mode_text(const Wish& wish) { return wish.mode ? text_of(*wish.mode) : "soak"; }

std::string objection_to(const Wish& wish) {
  const std::string objection = pair::first_of({
      {wish.least_bytes && wish.most_bytes && *wish.least_bytes > *wish.most_bytes,
       fmt::format("--min {} is above --max {}", wish.least_bytes.value_or(0), wish.most_bytes.value_or(0))},
      {wish.most_bytes && (*wish.most_bytes == 0 || *wish.most_bytes > kMostBytes),
       fmt::format("--max and -s are from 1 to {} bytes", kMostBytes)},
      {wish.least_bytes && *wish.least_bytes > kMostBytes, fmt::format("--min is at most {} bytes", kMostBytes)},
      {wish.count && wish.duration_s, "-n and -D both say how long: give one of them"},
      {!wish.mode && wish.count, "soak takes its time, -D or --hours: leave out -n"},
      {wish.order && wish.mode && *wish.mode != Mode::kStream, "--order is of stream: leave it out"},
      {wish.order == Order::kStrict && wish.transport == Transport::kUd, "UD keeps no order: leave out --order strict"},
      {wish.loss_percent != 0 && wish.transport == Transport::kRc,
       "RC may lose nothing: leave out --allow-loss, or give -c UC or -c UD"},
  });
  if (!objection.empty()) {
    return objection;
  }
  const std::string refusal = wish.transport && wish.mode ? refuse_transport(*wish.mode, *wish.transport, kAll) : "";
  if (refusal.empty() && wish.mode == Mode::kAtomic && (wish.least_bytes || wish.most_bytes)) {
    return "atomics are of 8 bytes: leave out -s, --min and --max";
  }
  return refusal;
}

std::vector<pair::HelloEntry> entries_of(const Wish& wish) {
  const auto number = [](const auto& value) { return value ? fmt::format("{}", *value) : std::string("any"); };
  return {{"mode", "MODE", mode_text(wish)},
          {"connection", "-c", wish.transport ? pair::text_of(*wish.transport) : "any"},
          {"order", "--order", wish.order ? text_of(*wish.order) : "any that fits"},
          {"least", "--min or -s", number(wish.least_bytes)},
          {"most", "--max or -s", number(wish.most_bytes)},
          {"queue-pairs", "-q", std::to_string(wish.queue_pairs)},
          {"directions", "-b", wish.is_bidirectional ? "both" : "one"},
          {"count", "-n", number(wish.count)},
          {"seconds", "-D or --hours", number(wish.duration_s)},
          {"loss", "--allow-loss", fmt::format("{}", wish.loss_percent)}};
}

Planned plan_step(const Wish& wish, Mode mode, std::optional<Transport> transport, const Abilities& both) {
  Planned planned;
  Step& step = planned.step;
  step.mode = mode;
  step.transport = transport.value_or(usual_transport(mode, both));
  step.counts_frames = both.counts_frames;
  step.is_bidirectional = wish.is_bidirectional && mode == Mode::kStream;
  step.has_read_back = mode == Mode::kWrite && step.transport == Transport::kRc;
  step.order = wish.order.value_or(step.transport == Transport::kUd ? Order::kAny : Order::kStrict);
  const bool may_lose = step.transport != Transport::kRc && (mode == Mode::kStream || mode == Mode::kWrite);
  step.loss_ppm = may_lose ? static_cast<uint32_t>(wish.loss_percent * 1e4) : 0;
  planned.refusal = refuse_transport(mode, step.transport, both);
  if (planned.refusal.empty()) {
    planned.refusal = settle_sizes(wish, both, step);
  }
  if (planned.refusal.empty()) {
    planned.refusal = settle_depths(wish, both, step);
  }
  return planned;
}

std::vector<Step> plan_turn(const Wish& wish, const Abilities& both, uint32_t turn,
                            std::vector<std::string>& left_out) {
  constexpr std::array<uint64_t, 4> kMost{65536, 4096, uint64_t{1} << 20U, 16384};
  std::vector<Step> steps;
  for (const Mode mode : kModes) {
    for (const Transport transport : {Transport::kRc, Transport::kUc, Transport::kUd}) {
      if (wish.transport && *wish.transport != transport) {
        continue;
      }
      if (!refuse_transport(mode, transport, kAll).empty()) {
        continue;  // no device has that
      }
      Wish one = wish;
      if (!one.most_bytes && transport != Transport::kUd && mode != Mode::kAtomic && mode != Mode::kChurn) {
        one.most_bytes =
            std::max(std::min(kMost[turn % kMost.size()], both.most_message_bytes), one.least_bytes.value_or(1));
      } else if (mode == Mode::kAtomic) {
        one.least_bytes = one.most_bytes = std::nullopt;
      } else if (one.most_bytes && transport == Transport::kUd) {
        one.most_bytes = std::min<uint64_t>(*one.most_bytes, both.mtu_bytes);
      }
      if (mode == Mode::kWrite && both.counts_frames) {
        left_out.emplace_back(
            "write: one of the devices has the shape of a Mac's, where a WRITE goes nowhere; `ringbolt "
            "verify write` shows whether it does");
        continue;
      }
      const Planned planned = plan_step(one, mode, transport, both);
      if (planned.refusal.empty()) {
        steps.push_back(planned.step);
        steps.back().is_bidirectional = mode == Mode::kStream && (wish.is_bidirectional || turn % 2 == 1);
        steps.back().is_reversed = turn % 2 == 1 && mode != Mode::kChurn && mode != Mode::kStream;
      } else {
        left_out.push_back(planned.refusal);
      }
    }
  }
  std::sort(left_out.begin(), left_out.end());
  left_out.erase(std::unique(left_out.begin(), left_out.end()), left_out.end());
  return steps;
}

Abilities abilities_of(const pair::Device& device) {
  const ibv_device_attr& limits = device.limits();
  Abilities one;
  one.has_rc = device.has_rc();
  one.has_ud = device.has_ud();
  one.has_atomics = one.has_rc && limits.atomic_cap != IBV_ATOMIC_NONE;
  one.counts_frames = device.counts_frames();
  one.most_queue_pairs = count_of(limits.max_qp);
  one.most_completions = count_of(limits.max_cqe);
  one.most_requests = count_of(limits.max_qp_wr);
  one.mtu_bytes = device.mtu_bytes();
  one.most_message_bytes = device.most_message_bytes();
  return one;
}

Abilities common(const Abilities& one, const Abilities& other) {
  Abilities both;
  both.has_rc = one.has_rc && other.has_rc;
  both.has_ud = one.has_ud && other.has_ud;
  both.has_atomics = one.has_atomics && other.has_atomics;
  both.counts_frames = one.counts_frames || other.counts_frames;
  both.most_queue_pairs = std::min(one.most_queue_pairs, other.most_queue_pairs);
  both.most_completions = std::min(one.most_completions, other.most_completions);
  both.most_requests = std::min(one.most_requests, other.most_requests);
  both.mtu_bytes = std::min(one.mtu_bytes, other.mtu_bytes);
  both.most_message_bytes = std::min(one.most_message_bytes, other.most_message_bytes);
  return both;
}

}  // namespace ringbolt::tools::verify
