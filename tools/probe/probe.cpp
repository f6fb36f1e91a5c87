#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "commands.h"
#include "failure.h"
#include "probe/channel.h"
#include "probe/endpoint.h"
#include "probe/probe_failure.h"
#include "probe/report.h"
#include "probe/rounds.h"
#include "probe/starvation.h"
#include "probe/verbs_library.h"
#include "stop.h"

namespace ringbolt::tools {
namespace {

constexpr uint64_t kWarmUpRounds = 200;

/// Time runs from before the first post until the receiver says that it has verified all.
void stream(Endpoint& endpoint, const ProbeOptions& options, ProbeReport& report) {
  const uint64_t end_ns = after_s(options.phase_s);
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
  uint64_t bytes = 0;
  const auto receive = [&] {
    endpoint.receive_message(static_cast<uint32_t>(bytes / options.size_bytes));
    bytes += options.size_bytes;
  };
  while (endpoint.next_is_message()) {
    receive();
  }
  const uint64_t sent = endpoint.receive_word();  // it may have overtaken messages
  while (bytes < sent) {
    receive();
  }
  expect_word(sent, bytes);
  endpoint.send_word(bytes ^ kAnswer);
}

/// What share of its time, in millionths, this process waited for a processor in a part of its work.
template <class Work>
uint64_t starved_ppm_of(const Work& work) {
  const uint64_t begin = base::now_ns();
  const uint64_t before = starved_ns();
  work();
  return (std::max(starved_ns(), before) - before) * 1'000'000 / std::max<uint64_t>(base::now_ns() - begin, 1);
}

ProbeReport measure(const ProbeOptions& options) {
  const bool has_channel = options.channel_fd >= 0;
  Channel channel(has_channel ? options.channel_fd : STDIN_FILENO, has_channel ? options.channel_fd : STDOUT_FILENO,
                  base::now_ns() + static_cast<uint64_t>(options.timeout_s * 1e9));
  const verbs::Library verbs = open_verbs(options.library);
  Endpoint endpoint(verbs, options.device, SlotPlan::for_size(options.size_bytes), channel);
  ProbeReport report;
  report.is_reliable = endpoint.is_reliable();
  for (const bool is_mine : {options.is_first, !options.is_first}) {
    const uint64_t latency_ppm = starved_ppm_of([&] {
      is_mine ? ask_rounds(endpoint, {kWarmUpRounds, options.rounds, after_s(options.phase_s)}, report)
              : answer_rounds(endpoint);
    });
    channel.meet();
    const uint64_t bandwidth_ppm =
        starved_ppm_of([&] { is_mine ? stream(endpoint, options, report) : verify(endpoint, options); });
    channel.meet();
    (is_mine ? report.starved_ppm.asking : report.starved_ppm.answering) = latency_ppm;
    (is_mine ? report.starved_ppm.sending : report.starved_ppm.receiving) = bandwidth_ppm;
  }
  return report;
}

}  // namespace

int probe(const ProbeOptions& options) {
  ::signal(SIGPIPE, SIG_IGN);
  catch_stop();
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
