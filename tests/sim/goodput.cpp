// Goodput against loss: the share of what the cable could carry that arrives as data, in thousandths.
//
//   goodput TABLE           compares with the table; exit 1 when a line differs or a goal is missed
//   goodput TABLE --write   writes it
//
// Nothing here depends on a clock or a machine, so the figures are exact: a change of a protocol engine that moves one
// is seen, and has to be meant.

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include "connection.h"

namespace {

using namespace ringbolt;
using transport::Operation;

constexpr uint64_t kBitsPerSecond = 2'500'000'000;
constexpr uint64_t kDelayNs = 20'000;
constexpr uint32_t kMessageBytes = 65536;
constexpr uint32_t kQueueDepth = 16;
constexpr uint64_t kFrameOverheadBytes = 12 + 4 + 40 + 8 + 38;  // BTH, ICRC, IPv6, UDP, Ethernet

// The goals for own peers (selective recovery).
constexpr uint32_t kGoalAt1000ppm = 950;
constexpr uint32_t kGoalAt10000ppm = 850;
// A READ that is executed again takes those behind it along: they must not tell of an earlier time.
constexpr uint32_t kReadGoalAt1000ppm = 800;
constexpr uint32_t kReadGoalAt10000ppm = 600;

struct Case {
  Operation::Kind kind;
  uint32_t mtu_bytes;
  uint32_t messages;
  uint32_t loss_ppm;
  bool is_selective;
};

struct Result {
  uint32_t goodput = 0;  ///< thousandths
  uint64_t resent = 0;
  uint64_t timeouts = 0;
  std::string complaint;
};

sim::Workload make_work(const Case& what) {
  sim::Workload work;
  for (uint32_t i = 0; i < what.messages; ++i) {
    Operation operation;
    operation.kind = what.kind;
    operation.length = kMessageBytes;
    operation.key = sim::kRegionKey;
    if (what.kind == Operation::send) {
      work.receives.push_back(kMessageBytes);
    } else {
      operation.remote_address = sim::kRegionAddress;  // all from or to one place
    }
    work.operations.push_back(operation);
  }
  work.read_bytes = what.kind == Operation::read ? kMessageBytes : 0;
  work.written_bytes = what.kind == Operation::write ? kMessageBytes : 0;
  return work;
}

sim::RcEngines make_engines(const Case& what) {
  transport::RequesterAttributes requester;
  requester.mtu_bytes = what.mtu_bytes;
  requester.queue_depth = kQueueDepth;
  requester.timeout_code = 10;  // 4 ms
  requester.max_rd_atomic = 16;
  transport::ResponderAttributes responder;
  responder.mtu_bytes = what.mtu_bytes;
  responder.max_dest_rd_atomic = 16;
  sim::RcEngines engines{transport::RcRequester(requester), transport::RcResponder(responder)};
  if (what.is_selective) {
    engines.requester.enable_selective();
    engines.responder.enable_selective();
  }
  return engines;
}

Result measure(const Case& what) {
  const sim::Workload work = make_work(what);
  const sim::Workload none;
  sim::Weather weather;
  weather.loss = what.loss_ppm;
  weather.delay_ns = kDelayNs;
  weather.bits_per_second = kBitsPerSecond;
  weather.queue_bytes = 1U << 20;
  sim::End<sim::RcEngines> ends[2] = {{make_engines(what), sim::MemoryHost(0, work, none), work, kQueueDepth},
                                      {make_engines(what), sim::MemoryHost(1, none, work), none, kQueueDepth}};
  ends[1].host.post_receives(SIZE_MAX);
  sim::Network network(1, weather);
  const uint64_t end_ns = sim::run(ends, network, 600'000'000'000);
  Result result;
  result.complaint = !ends[0].is_done() ? "not finished" : ends[0].host.complaint() + ends[1].host.complaint();
  const uint64_t payload_bits = uint64_t{what.messages} * kMessageBytes * 8;
  const uint64_t wire_bits = payload_bits / what.mtu_bytes * (what.mtu_bytes + kFrameOverheadBytes);
  const uint64_t least_ns = wire_bits * 10 / (kBitsPerSecond / 100'000'000);
  result.goodput = static_cast<uint32_t>(least_ns / 10 * 1000 / (end_ns / 10));
  const transport::RequesterCounters& counters = ends[0].engines.requester.counters();
  result.resent = counters.resent;
  result.timeouts = counters.timeouts;
  return result;
}

const char* name_of(Operation::Kind kind) {
  return kind == Operation::send ? "SEND" : kind == Operation::write ? "WRITE" : "READ";
}

/// The table; complaints go to `problems`.
std::string make_table(std::string& problems) {
  std::string table = fmt::format(
      "# Goodput of one RC queue pair in thousandths of what the cable carries: {} byte messages, {} under way, {} "
      "Gb/s,\n"
      "# {} us one way. Made by: goodput tests/sim/goodput.txt --write\n"
      "#                      go-back-N                       selective\n"
      "#  kind   mtu   loss   goodput  resent  timeouts       goodput  resent  timeouts\n",
      kMessageBytes, kQueueDepth, static_cast<double>(kBitsPerSecond) / 1e9, kDelayNs / 1000);
  for (const auto& [kind, mtu_bytes, messages] :
       {std::tuple{Operation::send, 4096U, 512U}, {Operation::send, 1024U, 256U}, {Operation::read, 4096U, 512U}}) {
    for (const uint32_t loss : {0U, 100U, 1'000U, 10'000U, 100'000U}) {
      std::string line = fmt::format("{:>7} {:>5} {:>5}%", name_of(kind), mtu_bytes, static_cast<double>(loss) / 1e4);
      for (const bool is_selective : {false, true}) {
        const Result result = measure({kind, mtu_bytes, messages, loss, is_selective});
        line += fmt::format("   {:>7} {:>7} {:>9}{}", result.goodput, result.resent, result.timeouts,
                            is_selective ? "" : "    ");
        const bool is_read = kind == Operation::read;
        const uint32_t goal = loss <= 1'000    ? (is_read ? kReadGoalAt1000ppm : kGoalAt1000ppm)
                              : loss == 10'000 ? (is_read ? kReadGoalAt10000ppm : kGoalAt10000ppm)
                                               : 0;
        if (!result.complaint.empty() || (is_selective && result.goodput < goal)) {
          problems += fmt::format("{} mtu {} loss {} ppm selective {}: {} of 1000, goal {} {}\n", name_of(kind),
                                  mtu_bytes, loss, is_selective ? 1 : 0, result.goodput, goal, result.complaint);
        }
      }
      table += line + "\n";
    }
  }
  return table;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || (argc == 3 && std::string(argv[2]) != "--write") || argc > 3) {
    std::fprintf(stderr, "usage: goodput TABLE [--write]\n");
    return 2;
  }
  std::string problems;
  const std::string table = make_table(problems);
  std::printf("%s%s", table.c_str(), problems.c_str());
  if (argc == 3) {
    std::ofstream(argv[1]) << table;
    return problems.empty() ? 0 : 1;
  }
  std::stringstream kept;
  kept << std::ifstream(argv[1]).rdbuf();
  if (kept.str() != table) {
    std::printf("%s differs; it was:\n%s", argv[1], kept.str().c_str());
    return 1;
  }
  return problems.empty() ? 0 : 1;
}
