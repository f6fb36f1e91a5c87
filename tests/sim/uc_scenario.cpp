#include <fmt/format.h>

#include "connection.h"
#include "scenario.h"

namespace ringbolt::sim {
namespace {

/// Every message announces itself, with its number as immediate data.
Workload make_numbered(Random& random, uint32_t count, uint32_t mtu_bytes) {
  Workload workload = make_workload(random, count, mtu_bytes, Kinds::unconnected);
  workload.receives.assign(count, UINT32_MAX);
  for (uint32_t i = 0; i < count; ++i) {
    workload.operations[i].has_immediate = true;
    workload.operations[i].immediate = i;
  }
  return workload;
}

}  // namespace

Outcome run_uc(uint64_t seed, bool is_tracing) {
  Random random(seed);
  const uint32_t mtu_bytes = 256U << random.below(5);
  const auto count = static_cast<uint32_t>(random.between(1, 60));
  Weather weather;
  const bool is_fair = random.one_in(4);
  if (!is_fair) {
    weather.loss = static_cast<uint32_t>(random.below(100'000));
    weather.duplication = static_cast<uint32_t>(random.below(50'000));
    weather.reordering = static_cast<uint32_t>(random.below(50'000));
    weather.corruption = static_cast<uint32_t>(random.below(10'000));
  }
  const Workload work[2] = {make_numbered(random, count, mtu_bytes), make_numbered(random, count, mtu_bytes)};
  const uint32_t psns[2] = {static_cast<uint32_t>(0xffffe0 + random.below(64)) & 0xffffff,
                            static_cast<uint32_t>(random.next()) & 0xffffff};
  const auto engines = [&](uint32_t sq_psn, uint32_t rq_psn) {
    return UcEngines{transport::UcRequester({0x11, sq_psn, mtu_bytes, 8}), transport::UcResponder({rq_psn, mtu_bytes})};
  };
  End<UcEngines> ends[2] = {{engines(psns[0], psns[1]), MemoryHost(0, work[0], work[1]), work[0], 8},
                            {engines(psns[1], psns[0]), MemoryHost(1, work[1], work[0]), work[1], 8}};
  for (End<UcEngines>& end : ends) {
    end.host.expect_gaps();
    end.host.post_receives(SIZE_MAX);
  }
  Network network(random.next(), weather);
  network.trace(is_tracing);
  Outcome outcome;
  outcome.description = fmt::format("uc mtu {} messages {} loss {} dup {} reorder {} corrupt {} ppm", mtu_bytes, count,
                                    weather.loss, weather.duplication, weather.reordering, weather.corruption);
  outcome.virtual_ns = run(ends, network, 10'000'000'000);
  outcome.packets = network.counters().sent;
  for (End<UcEngines>& end : ends) {
    end.host.check_all_executed();
    if (!end.host.complaint().empty()) {
      outcome.complaint = end.host.complaint();
    } else if (end.host.failed()) {
      outcome.complaint = "a responder failed";
    } else if (is_fair && end.host.messages() != count) {
      outcome.complaint =
          fmt::format("only {} of {} messages arrived although nothing was lost", end.host.messages(), count);
    }
  }
  return outcome;
}

}  // namespace ringbolt::sim
