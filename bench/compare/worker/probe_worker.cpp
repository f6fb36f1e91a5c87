// The cache-line probe: how far apart are core 0 and core 1 right now? A block of `probe` gives the median round trip
// of one cache line between them, by plain stores and loads.
#include <fmt/format.h>

#include "serve.h"

namespace ringbolt::bench {
namespace {

struct ProbeChannel {
  ProbeChannel(const Options& options, Control& control) : rank(options.rank) { control.exchange(""); }
  static std::string description() { return "cache-line probe"; }
  unsigned rank;
};

}  // namespace

template <>
std::string run_block(ProbeChannel& channel, const Block& block) {
  const uint64_t iterations = block.command.iterations;
  std::atomic<uint64_t>& question = block.page.stamp;
  std::atomic<uint64_t>& answer = block.page.echo;
  const uint64_t base = block.round << 32U;
  block.page.arrive(2, block.round);
  block.samples.begin(iterations);
  for (uint64_t i = 0; i < iterations; ++i) {
    const uint64_t start = now_ticks();
    if (channel.rank == 0) {
      question.store(base + i, std::memory_order_release);
      while (answer.load(std::memory_order_acquire) != base + i) {
      }
      block.samples.add(now_ticks() - start);
    } else {
      while (question.load(std::memory_order_acquire) != base + i) {
      }
      answer.store(base + i, std::memory_order_release);
    }
  }
  return block.samples.latency_report(1);
}

}  // namespace ringbolt::bench

int main(int argc, char** argv) { return ringbolt::bench::worker_main<ringbolt::bench::ProbeChannel>(argc, argv); }
