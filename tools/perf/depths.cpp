#include "perf/depths.h"

#include <algorithm>

namespace ringbolt::tools::perf {
namespace {

/// In each direction, over all queue pairs.
constexpr uint64_t kBudgetBytes = uint64_t{1} << 20U;
// perftest's defaults, where memory allows them.
constexpr uint32_t kMostInFlight = 128;
constexpr uint32_t kMostWindow = 512;
constexpr uint32_t kMostSignalEvery = 100;
/// Of WRITE, whose window is memory only: so large that its target may be away for a while.
constexpr uint64_t kWriteBudgetBytes = uint64_t{4} << 20U;
constexpr uint32_t kMostWriteWindow = 16384;
/// Messages in one place need no memory of their own; yet a slow link should not get too much to do at once.
constexpr uint64_t kSharers = 16;

uint32_t fitting(uint64_t size_bytes, const Parameters& parameters, uint32_t most, uint64_t budget = kBudgetBytes) {
  const uint64_t count = budget / (std::max<uint64_t>(size_bytes, 64) * parameters.queue_pairs);
  return static_cast<uint32_t>(std::clamp<uint64_t>(count, 2, most));
}

}  // namespace

uint32_t slots_used(uint32_t send_slots, uint32_t receive_slots) {
  return receive_slots % send_slots != 0 ? send_slots : send_slots - 1;
}

Depths Depths::of(uint64_t size_bytes, const Parameters& parameters, const Tuning& tuning, bool is_latency) {
  Depths depths;
  depths.has_one_place =
      !is_latency && parameters.bandwidth_check == Check::kNone && parameters.operation != Operation::kAtomic;
  const uint64_t needed_bytes = depths.has_one_place ? size_bytes / kSharers : size_bytes;
  depths.in_flight =
      tuning.tx_depth != 0
          ? tuning.tx_depth
          : std::max((is_latency ? 1 : fitting(needed_bytes, parameters, kMostInFlight)), tuning.post_list);
  depths.in_flight = std::max(depths.in_flight, tuning.signal_every);
  depths.send_slots = depths.in_flight + 2;
  const uint32_t window = is_latency ? 2
                          : parameters.operation == Operation::kWrite
                              ? fitting(needed_bytes, parameters, kMostWriteWindow, kWriteBudgetBytes)
                              : fitting(needed_bytes, parameters, kMostWindow);
  depths.receive_slots = tuning.rx_depth != 0 ? tuning.rx_depth : window;
  if (parameters.operation == Operation::kRead) {
    depths.receive_slots = depths.in_flight;  // what is read lands there
  }
  depths.post_list = tuning.post_list;
  depths.signal_every = tuning.signal_every != 0
                            ? std::min(tuning.signal_every, depths.in_flight)
                            : std::clamp(depths.in_flight - depths.in_flight / 4, 1U, kMostSignalEvery);
  const bool fetches = parameters.operation == Operation::kRead || parameters.operation == Operation::kAtomic;
  if (fetches || is_latency) {
    depths.signal_every = 1;  // each is awaited
  }
  return depths;
}

void Depths::limit(uint64_t most) {
  const auto limited = [most](uint32_t depth) { return static_cast<uint32_t>(std::clamp<uint64_t>(most, 1, depth)); };
  in_flight = limited(in_flight);
  send_slots = in_flight + 2;
  receive_slots = limited(receive_slots);
  signal_every = limited(std::min(signal_every, in_flight));
  post_list = limited(std::min(post_list, in_flight));
}

}  // namespace ringbolt::tools::perf
