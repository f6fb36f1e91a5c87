#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "connection.h"
#include "scenario.h"

namespace ringbolt::sim {
namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;

struct Settings {
  uint32_t mtu_bytes = 1024;
  uint32_t operations = 0;
  uint32_t queue_depth = 1;
  uint8_t timeout_code = 0;
  uint8_t retry_count = 7;
  uint8_t max_rd_atomic = 1;
  bool is_selective[2] = {false, false};  ///< whether each side knows the other to be one of ours
  bool is_cut_for_good = false;
  bool has_slow_receiver = false;
  Weather weather;
};

Settings choose(Random& random) {
  Settings settings;
  settings.mtu_bytes = 256U << random.below(5);
  settings.operations = static_cast<uint32_t>(random.between(1, 40));
  settings.queue_depth = static_cast<uint32_t>(random.between(1, 32));
  settings.timeout_code = static_cast<uint8_t>(random.between(8, 12));  // 1 to 17 ms
  settings.max_rd_atomic = static_cast<uint8_t>(random.between(1, 16));
  // Both know of each other, neither does, or a greeting was lost.
  const uint64_t greeting = random.below(8);
  settings.is_selective[0] = greeting < 5;
  settings.is_selective[1] = greeting < 4;
  settings.has_slow_receiver = random.one_in(4);
  constexpr std::array<uint32_t, 6> kLosses{0, 0, 100, 1'000, 10'000, 100'000};
  Weather& weather = settings.weather;
  weather.loss = kLosses[random.below(kLosses.size())];
  weather.duplication = random.one_in(3) ? static_cast<uint32_t>(random.below(50'000)) : 0;
  weather.reordering = random.one_in(3) ? static_cast<uint32_t>(random.below(50'000)) : 0;
  weather.corruption = random.one_in(3) ? static_cast<uint32_t>(random.below(10'000)) : 0;
  weather.delay_ns = random.between(1'000, 200'000);
  weather.reorder_delay_ns = random.between(1'000, 1'000'000);
  weather.bits_per_second = random.one_in(2) ? 0 : random.between(100'000'000, 10'000'000'000);
  weather.queue_bytes = random.between(20'000, 2'000'000);
  // A timeout shorter than the way there and back through a full window would be a fault of its own.
  const uint64_t window_bits = uint64_t{64} * (settings.mtu_bytes + 128) * 8;
  const uint64_t window_ns = weather.bits_per_second == 0 ? 0 : window_bits * kSecondNs / weather.bits_per_second;
  while (uint64_t{4096} << settings.timeout_code < 4 * (weather.delay_ns + window_ns) + weather.reorder_delay_ns) {
    ++settings.timeout_code;
  }
  if (random.one_in(8)) {
    weather.cut_from_ns = random.below(2'000'000);
    settings.is_cut_for_good = random.one_in(2);
    settings.retry_count = static_cast<uint8_t>(settings.is_cut_for_good ? random.below(8) : 7);
    // A short one must be over before the retries are.
    const uint64_t timeout_ns = uint64_t{4096} << settings.timeout_code;
    // The end must come from the cut, not from losses that use up what retries it leaves.
    weather.corruption = 0;
    weather.loss = settings.is_cut_for_good ? 0 : std::min(weather.loss, 1'000U);
    weather.cut_until_ns = settings.is_cut_for_good ? UINT64_MAX : weather.cut_from_ns + random.below(4 * timeout_ns);
  }
  return settings;
}

std::string describe(const Settings& settings) {
  const Weather& weather = settings.weather;
  return fmt::format(
      "mtu {} ops {} depth {} timeout {} retries {} rd_atomic {} selective {}{} loss {} dup {} reorder {} corrupt {} "
      "ppm, delay "
      "{} ns, rate {} bit/s, queue {} B, cut {}..{}{}",
      settings.mtu_bytes, settings.operations, settings.queue_depth, settings.timeout_code, settings.retry_count,
      settings.max_rd_atomic, settings.is_selective[0] ? 1 : 0, settings.is_selective[1] ? 1 : 0, weather.loss,
      weather.duplication, weather.reordering, weather.corruption, weather.delay_ns, weather.bits_per_second,
      weather.queue_bytes, weather.cut_from_ns, weather.cut_until_ns,
      settings.has_slow_receiver ? ", slow receiver" : "");
}

RcEngines make_engines(const Settings& settings, uint32_t sq_psn, uint32_t rq_psn) {
  transport::RequesterAttributes requester;
  requester.dest_qp = 0x11;
  requester.first_psn = sq_psn;
  requester.mtu_bytes = settings.mtu_bytes;
  requester.queue_depth = settings.queue_depth;
  requester.timeout_code = settings.timeout_code;
  requester.retry_count = settings.retry_count;
  requester.max_rd_atomic = settings.max_rd_atomic;
  transport::ResponderAttributes responder;
  responder.dest_qp = 0x11;
  responder.first_psn = rq_psn;
  responder.mtu_bytes = settings.mtu_bytes;
  responder.max_dest_rd_atomic = settings.max_rd_atomic;
  responder.min_rnr_timer = 10;  // 0.32 ms
  return {transport::RcRequester(requester), transport::RcResponder(responder)};
}

/// A partition for good: RETRY_EXC after the programmed number of timeouts since the last progress, on who had work.
std::string check_failure(const Settings& settings, const End<RcEngines> (&ends)[2], const Network& network,
                          Outcome& outcome) {
  const uint64_t end_ns = outcome.virtual_ns;
  for (const End<RcEngines>& end : ends) {
    if (const auto& failure = end.engines.requester.failure()) {
      const uint64_t timeout_ns = uint64_t{4096} << settings.timeout_code;
      const uint64_t least_ns = timeout_ns * (settings.retry_count + 1U);
      const uint64_t since_ns = end_ns > settings.weather.cut_from_ns ? end_ns - settings.weather.cut_from_ns : 0;
      if (!settings.is_cut_for_good &&
          network.failures_since(end_ns - std::min(end_ns, least_ns + timeout_ns)) > settings.retry_count) {
        outcome.is_unlucky = true;
        return {};
      }
      if (!settings.is_cut_for_good) {
        return fmt::format("operation {} failed ({}) although the network works", failure->operation,
                           static_cast<int>(failure->why));
      }
      if (failure->why != transport::RequesterFailure::retry_exceeded) {
        return "another error than RETRY_EXC under a partition";
      }
      // Packets under way at the cut still count as progress; a timer may already run from before it.
      const uint64_t most_ns = least_ns + timeout_ns + 50'000'000;
      if (since_ns + timeout_ns < least_ns || since_ns > most_ns) {
        return fmt::format("RETRY_EXC {} ns after the cut; {} were programmed", since_ns, least_ns);
      }
      return {};
    }
  }
  return {};
}

}  // namespace

Outcome run_rc(uint64_t seed, bool is_tracing) {
  Random random(seed);
  const Settings settings = choose(random);
  const Workload work[2] = {make_workload(random, settings.operations, settings.mtu_bytes, Kinds::all),
                            make_workload(random, settings.operations, settings.mtu_bytes, Kinds::all)};
  // As often as not the numbers wrap.
  const auto psn = [&] {
    return static_cast<uint32_t>(random.one_in(2) ? 0xffff80 + random.below(256) : random.next()) & 0xffffff;
  };
  const uint32_t psns[2] = {psn(), psn()};
  End<RcEngines> ends[2] = {
      {make_engines(settings, psns[0], psns[1]), MemoryHost(0, work[0], work[1]), work[0], settings.queue_depth},
      {make_engines(settings, psns[1], psns[0]), MemoryHost(1, work[1], work[0]), work[1], settings.queue_depth}};
  for (uint32_t side = 0; side < 2; ++side) {
    if (settings.is_selective[side]) {
      ends[side].engines.requester.enable_selective();
      ends[1 - side].engines.responder.enable_selective();  // to whom that comes sealed
    }
    if (settings.has_slow_receiver) {
      ends[side].post_every_ns = random.between(10'000, 2'000'000);
      ends[side].next_post_ns = ends[side].post_every_ns;
    } else {
      ends[side].host.post_receives(SIZE_MAX);
    }
  }
  Network network(random.next(), settings.weather);
  network.trace(is_tracing);
  Outcome outcome;
  outcome.description = describe(settings);
  outcome.virtual_ns = run(ends, network, 120 * kSecondNs);
  outcome.packets = network.counters().sent;
  outcome.complaint = check_failure(settings, ends, network, outcome);
  const bool has_failed = ends[0].engines.has_failed() || ends[1].engines.has_failed();
  for (End<RcEngines>& end : ends) {
    if (outcome.complaint.empty() && !has_failed && !end.is_done()) {
      outcome.complaint = fmt::format("no progress: {} of {} operations complete after {} ns", end.checked,
                                      end.outbound.operations.size(), outcome.virtual_ns);
    }
    if (outcome.complaint.empty() && end.host.failed()) {
      outcome.complaint = fmt::format("a responder failed ({})", static_cast<int>(*end.host.failed()));
    }
    if (outcome.complaint.empty() && !has_failed && end.host.complaint().empty()) {
      end.host.check_all_executed();
    }
    if (!end.host.complaint().empty()) {
      outcome.complaint = end.host.complaint();
    }
  }
  return outcome;
}

}  // namespace ringbolt::sim
