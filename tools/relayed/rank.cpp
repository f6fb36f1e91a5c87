#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/say.h"
#include "bootstrap/environment.h"
#include "commands.h"
#include "failure.h"
#include "pattern.h"
#include "perf/probe.h"
#include "perf/result.h"
#include "ranks/start.h"
#include "relayed/measure.h"
#include "ringbolt/group.h"

namespace ringbolt::tools::relayed {
namespace {

constexpr uint64_t kWarmUpRounds = 50;
constexpr size_t kMostBatchBytes = size_t{16} << 20U;
constexpr uint64_t kMostBatch = 8;

/// Messages between this rank and one other; what fails is thrown.
class Line {
 public:
  Line(Group& group, uint32_t peer, const RelayProbeOptions& options) : group_(group), peer_(peer) {
    options_.timeout_ms = static_cast<uint64_t>(options.timeout_s * 1000) + 1;
  }

  void send_word(uint64_t word) { check(group_.send(&word, 1, Type::uint64, peer_, options_)); }
  uint64_t receive_word() {
    uint64_t word = 0;
    check(group_.recv(&word, 1, Type::uint64, peer_, options_));
    return word;
  }
  Request send(const std::vector<std::byte>& bytes) {
    return group_.send_async(bytes.data(), bytes.size(), Type::uint8, peer_, options_);
  }
  Request receive(std::vector<std::byte>& bytes) {
    return group_.recv_async(bytes.data(), bytes.size(), Type::uint8, peer_, options_);
  }
  static void check(const Status& status) {
    if (!status.is_ok()) {
      throw ProbeFailure(status.text);
    }
  }

 private:
  Group& group_;
  uint32_t peer_;
  CallOptions options_;
};

/// An answer is not the question: a message that comes back to its sender does not pass.
constexpr uint64_t kAnswer = 0x5555'0000'0000'0000U;
/// In a question: the last one. The asker decides when it is enough, by count or by time.
constexpr uint64_t kLastRound = uint64_t{1} << 40U;

uint64_t after_s(double seconds) { return base::now_ns() + static_cast<uint64_t>(seconds * 1e9); }

void expect_word(uint64_t got, uint64_t expected) {
  if (got != expected) {
    throw ProbeFailure(fmt::format("message {:#x} arrived as {:#x}", expected, got));
  }
}

void ask_rounds(Line& line, const RelayProbeOptions& options, ProbeReport& report) {
  perf::Histogram times;
  const uint64_t end_ns = after_s(options.phase_s);
  bool is_last = false;
  for (uint64_t round = 0; !is_last; ++round) {
    const uint64_t begin = base::now_ns();
    is_last = round + 1 == kWarmUpRounds + options.rounds || begin >= end_ns;
    const uint64_t word = round | (is_last ? kLastRound : 0);
    line.send_word(word);
    expect_word(line.receive_word(), word ^ kAnswer);
    // On a machine so busy that time runs out in the warm-up, the last round has to do.
    if (round >= kWarmUpRounds || is_last) {
      times.add(base::now_ns() - begin);
    }
  }
  const perf::LatencyFigures found = perf::latency_figures(times, 0, true);
  report.latency_us = found.p50_us;
  report.latency_p99_us = found.p99_us;
  report.latency_most_us = found.most_us;
  report.rounds = found.rounds;
}

void answer_rounds(Line& line) {
  bool is_last = false;
  for (uint64_t round = 0; !is_last; ++round) {
    const uint64_t word = line.receive_word();
    is_last = (word & kLastRound) != 0;
    expect_word(word & ~kLastRound, round);
    line.send_word(word ^ kAnswer);
  }
}

/// Some messages on their way together, and their memory.
struct Batch {
  explicit Batch(const RelayProbeOptions& options)
      : memory(std::clamp<uint64_t>(kMostBatchBytes / options.size_bytes, 1, kMostBatch),
               std::vector<std::byte>(options.size_bytes)) {}

  std::vector<std::vector<std::byte>> memory;
  std::vector<Request> requests = {};
  uint32_t first = 0;  ///< number of its first message

  void wait() {
    for (Request& request : requests) {
      Line::check(request.wait());
    }
    requests.clear();
  }
  void verify() {
    const size_t n = requests.size();
    wait();
    for (size_t i = 0; i < n; ++i) {
      const auto number = first + static_cast<uint32_t>(i);
      if (const auto place = find_mismatch(memory[i], number)) {
        throw ProbeFailure(fmt::format("message {} differs from byte {} on", number, *place));
      }
    }
  }
};

/// A word says how many messages follow it; 0 ends it. One batch is filled while the other is on its way. Time runs
/// from before the first message until the receiver says that it has verified all.
void stream(Line& line, const RelayProbeOptions& options, ProbeReport& report) {
  std::array<Batch, 2> batches{Batch(options), Batch(options)};
  const uint64_t end_ns = after_s(options.phase_s);
  const uint64_t begin = base::now_ns();
  uint32_t sent = 0;
  for (size_t turn = 0; sent < options.messages && (sent == 0 || base::now_ns() < end_ns); turn ^= 1U) {
    Batch& batch = batches.at(turn);
    batch.wait();
    const auto n = std::min(static_cast<uint32_t>(batch.memory.size()), options.messages - sent);
    line.send_word(n);
    for (uint32_t i = 0; i < n; ++i) {
      fill_pattern(batch.memory[i], sent++);
      batch.requests.push_back(line.send(batch.memory[i]));
    }
  }
  for (Batch& batch : batches) {
    batch.wait();
  }
  line.send_word(0);
  const uint64_t bytes = uint64_t{options.size_bytes} * sent;
  expect_word(line.receive_word(), bytes ^ kAnswer);
  report.duration_ns = base::now_ns() - begin;
  report.verified_bytes = bytes;
}

void verify(Line& line, const RelayProbeOptions& options) {
  std::array<Batch, 2> batches{Batch(options), Batch(options)};
  uint32_t received = 0;
  for (size_t turn = 0;; turn ^= 1U) {
    const uint64_t n = line.receive_word();
    Batch& batch = batches.at(turn);
    if (n > batch.memory.size()) {
      throw ProbeFailure(fmt::format("{} messages are to follow, and {} are the most", n, batch.memory.size()));
    }
    batch.first = received;
    for (uint32_t i = 0; i < n; ++i, ++received) {
      batch.requests.push_back(line.receive(batch.memory[i]));
    }
    batches.at(turn ^ 1U).verify();
    if (n == 0) {
      break;
    }
  }
  line.send_word((uint64_t{options.size_bytes} * received) ^ kAnswer);
}

/// Measures both ends' sending in turns: round trips of 8 bytes, then messages whose every byte the other one verifies.
/// Blocks for the options' time limit at most for each message. Throws ProbeFailure.
void measure(Line&& line, bool is_first, const RelayProbeOptions& options, ProbeReport& report) {
  for (const bool is_mine : {is_first, !is_first}) {
    if (is_mine) {
      ask_rounds(line, options, report);
      stream(line, options, report);
    } else {
      answer_rounds(line);
      verify(line, options);
    }
  }
}

}  // namespace
}  // namespace ringbolt::tools::relayed

namespace ringbolt::tools {
namespace {

using relayed::Report;

/// The members of the group are nodes in their order: this one's rank.
GroupOptions group_options(const RelayProbeOptions& options) {
  GroupOptions wanted;
  wanted.timeout_ms = static_cast<uint64_t>(options.timeout_s * 1000) + 1;
  wanted.verbs = "soft";
  wanted.environment = bootstrap::environment_of_process();
  const std::string node = wanted.environment["RINGBOLT_NODE"];
  const auto found = std::ranges::find_if(options.members, [&](uint32_t one) { return std::to_string(one) == node; });
  if (found == options.members.end()) {
    throw UsageError(fmt::format("RINGBOLT_NODE is \"{}\", which is no member of the group", node));
  }
  ranks::take_rank(wanted.environment, static_cast<uint32_t>(found - options.members.begin()),
                   static_cast<uint32_t>(options.members.size()), options.members.front());
  return wanted;
}

/// Pairs of ranks that others relay, which all ranks agree in.
std::vector<std::pair<uint32_t, uint32_t>> relayed_pairs(Group& group) {
  std::vector<uint8_t> mine(group.size());
  for (uint32_t peer = 0; peer < group.size(); ++peer) {
    mine[peer] = peer != group.rank() && !group.relays(peer).empty() ? 1 : 0;
  }
  std::vector<uint8_t> all(size_t{group.size()} * group.size());
  if (const Status status = group.all_gather(mine.data(), all.data(), mine.size(), Type::uint8); !status.is_ok()) {
    throw FoundProblem(status.text);
  }
  std::vector<std::pair<uint32_t, uint32_t>> pairs;
  for (uint32_t a = 0; a < group.size(); ++a) {
    for (uint32_t b = a + 1; b < group.size(); ++b) {
      if (all[size_t{a} * group.size() + b] != 0) {
        pairs.emplace_back(a, b);
      }
    }
  }
  return pairs;
}

/// This rank's part in measuring one pair; others wait. False if it failed: then the group is of no use any more.
bool measure_pair(Group& group, const std::pair<uint32_t, uint32_t>& pair, const RelayProbeOptions& options) {
  const bool is_lower = group.rank() == pair.first;
  if (!is_lower && group.rank() != pair.second) {
    return true;
  }
  const uint32_t peer = is_lower ? pair.second : pair.first;
  Report report{options.members[group.rank()], options.members[peer], {}, {}};
  for (const uint32_t relay : group.relays(peer)) {
    report.through.push_back(options.members[relay]);
  }
  try {
    relayed::measure(relayed::Line(group, peer, options), is_lower, options, report.figures);
  } catch (const ProbeFailure& failure) {
    report.figures.problem = failure.what();
    std::ranges::replace(report.figures.problem, '\n', ' ');
    group.abort(fmt::format("measuring ranks {} and {} has failed", pair.first, pair.second));
  }
  fmt::print("{}", relayed::emit(report));
  std::fflush(stdout);
  return report.figures.problem.empty();
}

}  // namespace

int relay_probe(const RelayProbeOptions& options) {
  Group group = ranks::join(group_options(options), static_cast<uint32_t>(options.members.size()));
  CallOptions while_others_measure;
  // Two ranks measure, each message within its time limit, and this one waits for both to end.
  while_others_measure.timeout_ms = static_cast<uint64_t>((options.timeout_s + 4 * options.phase_s + 1) * 1000);
  for (const auto& pair : relayed_pairs(group)) {
    if (!measure_pair(group, pair, options)) {
      return kFoundProblem;
    }
    if (const Status status = group.barrier(while_others_measure); !status.is_ok()) {
      base::say(fmt::format("rank {}: {}\n", group.rank(), status.text));
      return kFoundProblem;
    }
  }
  return kOk;
}

}  // namespace ringbolt::tools
