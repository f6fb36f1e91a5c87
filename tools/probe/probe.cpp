#include <unistd.h>

#include <algorithm>
#include <csignal>
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

constexpr uint64_t kWarmUpRounds = 200;
/// An answer is not the question: a message that comes back to its sender does not pass.
constexpr uint64_t kAnswer = 0x5555'0000'0000'0000U;
/// In a question: the last one. The asker decides when it is enough, by count or by time.
constexpr uint64_t kLast = uint64_t{1} << 40U;

uint64_t phase_end_ns(const ProbeOptions& options) {
  return base::now_ns() + static_cast<uint64_t>(options.phase_s * 1e9);
}

void expect_word(uint64_t got, uint64_t expected) {
  if (got != expected) {
    throw ProbeFailure(fmt::format("message {:#x} arrived as {:#x}", expected, got));
  }
}

void ask(Endpoint& endpoint, const ProbeOptions& options, ProbeReport& report) {
  std::vector<uint64_t> times_ns;
  times_ns.reserve(options.rounds);
  const uint64_t end_ns = phase_end_ns(options);
  bool is_last = false;
  for (uint64_t round = 0; !is_last; ++round) {
    const uint64_t begin = base::now_ns();
    is_last = round + 1 == kWarmUpRounds + options.rounds || begin >= end_ns;
    const uint64_t word = round | (is_last ? kLast : 0);
    endpoint.send_word(word);
    expect_word(endpoint.receive_word(), word ^ kAnswer);
    // On a machine so busy that time runs out in the warm-up, the last round has to do.
    if (round >= kWarmUpRounds || is_last) {
      times_ns.push_back(base::now_ns() - begin);
    }
  }
  std::sort(times_ns.begin(), times_ns.end());
  report.median_rtt_ns = times_ns[times_ns.size() / 2];
  report.p99_rtt_ns = times_ns[times_ns.size() * 99 / 100];
  report.most_rtt_ns = times_ns.back();
  report.rounds = times_ns.size();
}

void answer(Endpoint& endpoint) {
  bool is_last = false;
  for (uint64_t round = 0; !is_last; ++round) {
    const uint64_t word = endpoint.receive_word();
    is_last = (word & kLast) != 0;
    expect_word(word & ~kLast, round);
    endpoint.send_word(word ^ kAnswer);
  }
}

/// Time runs from before the first post until the receiver says that it has verified all.
void stream(Endpoint& endpoint, const ProbeOptions& options, ProbeReport& report) {
  const uint64_t end_ns = phase_end_ns(options);
  const uint64_t begin = base::now_ns();
  uint32_t sent = 0;
  while (sent < options.messages && (sent == 0 || base::now_ns() < end_ns)) {
    endpoint.send_message(sent++);
  }
  const uint64_t bytes = uint64_t{options.size_bytes} * sent;
  endpoint.send_word(bytes);
  expect_word(endpoint.receive_word(), bytes ^ kAnswer);
  report.duration_ns = base::now_ns() - begin;
  report.verified_bytes = bytes;
}

void verify(Endpoint& endpoint, const ProbeOptions& options) {
  uint32_t verified = 0;
  while (!endpoint.next_is_word()) {
    endpoint.receive_message(verified++);
  }
  const uint64_t bytes = uint64_t{options.size_bytes} * verified;
  expect_word(endpoint.receive_word(), bytes);
  endpoint.send_word(bytes ^ kAnswer);
}

ProbeReport measure(const ProbeOptions& options) {
  const bool has_channel = options.channel_fd >= 0;
  Channel channel(has_channel ? options.channel_fd : STDIN_FILENO, has_channel ? options.channel_fd : STDOUT_FILENO,
                  base::now_ns() + static_cast<uint64_t>(options.timeout_s * 1e9));
  const verbs::Library verbs = open_verbs(options.library);
  Endpoint endpoint(verbs, options.device, SlotPlan::for_size(options.size_bytes), channel);
  ProbeReport report;
  for (const bool is_mine : {options.is_first, !options.is_first}) {
    is_mine ? ask(endpoint, options, report) : answer(endpoint);
    channel.meet();
    is_mine ? stream(endpoint, options, report) : verify(endpoint, options);
    channel.meet();
  }
  return report;
}

}  // namespace

int probe(const ProbeOptions& options) {
  ::signal(SIGPIPE, SIG_IGN);
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
  fmt::print(options.channel_fd >= 0 ? stdout : stderr, "{}", emit_report(report));
  return report.problem.empty() ? kOk : kFoundProblem;
}

}  // namespace ringbolt::tools
