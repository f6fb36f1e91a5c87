#include "perf/parameters.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "pair/two_ends.h"

namespace ringbolt::tools::perf {
namespace {

// Well below 2^31, the most that a message of RC or UC may have (InfiniBand Architecture).
constexpr uint64_t kMostBytes = uint64_t{1} << 30U;
// The largest MTU that verbs know, IBV_MTU_4096.
constexpr uint64_t kMostUdBytes = 4096;

bool is_fetched(Operation operation) { return operation == Operation::kRead || operation == Operation::kAtomic; }

std::string objection_to_operation(const Parameters& all) {
  return pair::first_of({
      {is_fetched(all.operation) && all.transport != Transport::kRc,
       fmt::format("{} goes over RC only: leave out -c {}", text_of(all.operation), text_of(all.transport))},
      {all.operation == Operation::kWrite && all.transport == Transport::kUd,
       "UD has no WRITE: use -c RC or -c UC, or perf send"},
      {all.operation == Operation::kAtomic && all.sizes != std::vector<uint64_t>{8},
       "atomic operations are of 8 bytes: leave out -s and -a"},
  });
}

std::string objection_to_sizes(const Parameters& all) {
  const bool is_ud = all.transport == Transport::kUd;
  for (const uint64_t size : all.sizes) {
    if (size == 0 && !is_ud) {
      return "-s is in bytes, from 1 on";
    }
    if (size > (is_ud ? kMostUdBytes : kMostBytes)) {
      return is_ud
                 ? fmt::format("a UD message is one packet: -s can't be above the MTU, {} bytes at most", kMostUdBytes)
                 : fmt::format("-s {} is too much: {} bytes at most", size, kMostBytes);
    }
  }
  return "";
}

std::string phases_text(const Parameters& one) {
  return !one.has_latency ? "bandwidth" : one.has_bandwidth ? "both" : "latency";
}

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
  // A message takes a cache line of memory at least.
  const uint64_t count = budget / (std::max<uint64_t>(size_bytes, 64) * parameters.queue_pairs);
  return static_cast<uint32_t>(std::clamp<uint64_t>(count, 2, most));
}

}  // namespace

const char* text_of(Operation operation) {
  constexpr std::array kTexts{"send", "write", "read", "atomic"};
  return kTexts[static_cast<size_t>(operation)];
}

const char* text_of(Check check) {
  constexpr std::array kTexts{"full", "sample", "none"};
  return kTexts[static_cast<size_t>(check)];
}

const char* text_of(AtomicKind kind) { return kind == AtomicKind::kFetchAdd ? "fetch_add" : "cmp_swap"; }

std::string title_of(const Parameters& parameters) {
  if (parameters.operation == Operation::kAtomic) {
    return parameters.atomic_kind == AtomicKind::kFetchAdd ? "RC atomic fetch and add" : "RC atomic compare and swap";
  }
  std::string operation = text_of(parameters.operation);
  std::transform(operation.begin(), operation.end(), operation.begin(),
                 [](char letter) { return static_cast<char>(letter - 'a' + 'A'); });
  return fmt::format("{} {}", text_of(parameters.transport), operation);
}

std::string objection_to(const Parameters& all, const Tuning& tuning) {
  for (const auto& objection : {objection_to_operation(all), objection_to_sizes(all)}) {
    if (!objection.empty()) {
      return objection;
    }
  }
  const bool is_fetch = is_fetched(all.operation);
  const char* operation = text_of(all.operation);
  const uint32_t tx_depth = tuning.tx_depth;
  return pair::first_of({
      {!all.has_bandwidth && all.is_bidirectional, "-b is for bandwidth: a round trip goes both ways already"},
      {!all.has_bandwidth && all.queue_pairs != 1, "-q is for bandwidth: latency is that of one queue pair"},
      {!all.has_bandwidth && tuning.post_list != 1, "-l is for bandwidth: a round trip posts one request at a time"},
      {all.has_latency && all.operation == Operation::kWrite && tuning.has_events,
       "-e can't be had with the latency of write: its receiver looks at memory, which raises no event"},
      {is_fetch && tuning.inline_bytes > 0, fmt::format("-I is for send and write: {} sends no data", operation)},
      {is_fetch && tuning.rx_depth != 0,
       fmt::format("-r is for send and write: {} receives by nothing posted", operation)},
      {is_fetch && tuning.signal_every != 0,
       fmt::format("-Q is for send and write: each {} is checked, so each completes visibly", operation)},
      {tx_depth != 0 && tuning.signal_every > tx_depth,
       fmt::format("-Q {} can't be above -t {}: no completion would ever come", tuning.signal_every, tx_depth)},
      {tx_depth != 0 && tuning.post_list > tx_depth,
       fmt::format("-l {} can't be above -t {}: the list would not fit the queue", tuning.post_list, tx_depth)},
  });
}

std::vector<uint64_t> all_sizes(uint64_t most) {
  std::vector<uint64_t> sizes;
  for (uint64_t size = 2; size <= most; size *= 2) {
    sizes.push_back(size);
  }
  return sizes;
}

std::vector<pair::HelloEntry> entries_of(const Parameters& one) {
  return {{"operation", "OP", text_of(one.operation)},
          {"connection", "-c", text_of(one.transport)},
          {"measured", "--lat or --report-both", phases_text(one)},
          {"directions", "-b", one.is_bidirectional ? "both" : "one"},
          {"atomic", "--atomic_type", text_of(one.atomic_kind)},
          {"sizes", "-s or -a", fmt::format("{}", fmt::join(one.sizes, ","))},
          {"queue-pairs", "-q", std::to_string(one.queue_pairs)},
          {"iterations", "-n", std::to_string(one.iterations)},
          {"seconds", "-D", fmt::format("{}", one.duration_s)},
          {"latency-check", "--check", text_of(one.latency_check)},
          {"bandwidth-check", "--check", text_of(one.bandwidth_check)}};
}

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
  // With fewer none would ever be signalled, and nothing would make room.
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
  if (is_fetched(parameters.operation) || is_latency) {
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
