#include <algorithm>
#include <cstdio>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "commands.h"
#include "failure.h"
#include "probe/channel.h"
#include "probe/endpoint.h"
#include "probe/probe_failure.h"
#include "probe/report.h"
#include "probe/verbs_library.h"

namespace ringbolt::tools {
namespace {

constexpr uint32_t kWarmUpRounds = 200;
/// An answer is not the question: a message that comes back to its sender does not pass.
constexpr uint64_t kAnswer = 0x5555'0000'0000'0000U;

void expect_word(uint64_t got, uint64_t expected) {
  if (got != expected) {
    throw ProbeFailure(fmt::format("message {:#x} arrived as {:#x}", expected, got));
  }
}

void ask(Endpoint& endpoint, uint32_t rounds, ProbeReport& report) {
  std::vector<uint64_t> times_ns;
  times_ns.reserve(rounds);
  for (uint32_t round = 0; round < kWarmUpRounds + rounds; ++round) {
    const uint64_t begin = base::now_ns();
    endpoint.send_word(round);
    expect_word(endpoint.receive_word(), round ^ kAnswer);
    if (round >= kWarmUpRounds) {
      times_ns.push_back(base::now_ns() - begin);
    }
  }
  std::sort(times_ns.begin(), times_ns.end());
  report.median_rtt_ns = times_ns[times_ns.size() / 2];
  report.p99_rtt_ns = times_ns[times_ns.size() * 99 / 100];
  report.most_rtt_ns = times_ns.back();
  report.rounds = rounds;
}

void answer(Endpoint& endpoint, uint32_t rounds) {
  for (uint32_t round = 0; round < kWarmUpRounds + rounds; ++round) {
    expect_word(endpoint.receive_word(), round);
    endpoint.send_word(round ^ kAnswer);
  }
}

/// Time runs from before the first post until the receiver says that it has verified all.
void stream(Endpoint& endpoint, const ProbeOptions& options, ProbeReport& report) {
  const uint64_t bytes = uint64_t{options.size_bytes} * options.messages;
  const uint64_t begin = base::now_ns();
  for (uint32_t number = 0; number < options.messages; ++number) {
    endpoint.send_message(number);
  }
  expect_word(endpoint.receive_word(), bytes);
  report.duration_ns = base::now_ns() - begin;
  report.verified_bytes = bytes;
}

void verify(Endpoint& endpoint, const ProbeOptions& options) {
  for (uint32_t number = 0; number < options.messages; ++number) {
    endpoint.receive_message(number);
  }
  endpoint.send_word(uint64_t{options.size_bytes} * options.messages);
}

ProbeReport measure(const ProbeOptions& options) {
  Channel channel(options.channel_fd, base::now_ns() + static_cast<uint64_t>(options.timeout_s * 1e9));
  const VerbsLibrary verbs = VerbsLibrary::load(options.library);
  Endpoint endpoint(verbs, options.device, SlotPlan::for_size(options.size_bytes), channel);
  ProbeReport report;
  for (const bool is_mine : {options.is_first, !options.is_first}) {
    is_mine ? ask(endpoint, options.rounds, report) : answer(endpoint, options.rounds);
    channel.meet();
    is_mine ? stream(endpoint, options, report) : verify(endpoint, options);
    channel.meet();
  }
  return report;
}

}  // namespace

int probe(const ProbeOptions& options) {
  ProbeReport report;
  try {
    report = measure(options);
  } catch (const ProbeFailure& failure) {
    report.problem = failure.what();
    report.is_echo = failure.is_echo();
  } catch (const std::exception& error) {
    report.problem = error.what();
  }
  std::replace(report.problem.begin(), report.problem.end(), '\n', ' ');
  fmt::print("{}", emit_report(report));
  return report.problem.empty() ? kOk : kFoundProblem;
}

}  // namespace ringbolt::tools
