// What the two cores allow at best, without any verbs: how long until the other core has copied (or only read) data
// that this core has just written. The comparison's ratios are to be seen against these floors.
#include <benchmark/benchmark.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <chrono>
#include <cstring>
#include <memory>

#include "compare/worker/payload.h"
#include "micro/pinned_thread.h"

namespace ringbolt::bench {
namespace {

using CopyFunction = void (*)(std::byte* to, const std::byte* from, std::size_t size);

void by_memcpy(std::byte* to, const std::byte* from, std::size_t size) { std::memcpy(to, from, size); }

#if defined(__x86_64__)
/// One cache line of each quarter in turn: four streams for the prefetcher, which follows each only within its page.
__attribute__((target("avx2"))) void by_four_streams(std::byte* to, const std::byte* from, std::size_t size) {
  constexpr std::size_t kLine = 64;
  const std::size_t quarter = size / 4 / kLine * kLine;
  for (std::size_t at = 0; at < quarter; at += kLine) {
    __m256i halves[8];
    for (unsigned stream = 0; stream < 4; ++stream) {
      const auto* source = reinterpret_cast<const __m256i*>(from + stream * quarter + at);
      halves[2 * stream] = _mm256_loadu_si256(source);
      halves[2 * stream + 1] = _mm256_loadu_si256(source + 1);
    }
    for (unsigned stream = 0; stream < 4; ++stream) {
      auto* target = reinterpret_cast<__m256i*>(to + stream * quarter + at);
      _mm256_storeu_si256(target, halves[2 * stream]);
      _mm256_storeu_si256(target + 1, halves[2 * stream + 1]);
    }
  }
  std::memcpy(to + 4 * quarter, from + 4 * quarter, size - 4 * quarter);
}
#endif

/// Core 0 rewrites `size` bytes and rings; core 1 copies them with `copy` (nullptr: leaves them in place), reads them
/// all and answers. Timed from the ring to the answer.
void hand_over(benchmark::State& state, CopyFunction copy) {
  const auto size = static_cast<std::size_t>(state.range(0));
  const Arena arena = make_private_arena();
  alignas(64) std::atomic<uint64_t> ring{0};
  alignas(64) std::atomic<uint64_t> answer{0};
  std::atomic<bool> is_wrong{false};
  uint64_t seen = 0;
  const PinnedThread other([&] {
    const uint64_t round = ring.load(std::memory_order_acquire);
    if (round == seen) {
      return;
    }
    const std::byte* payload = arena.outgoing();
    if (copy != nullptr) {
      copy(arena.incoming(), payload, size);
      payload = arena.incoming();
    }
    if (!holds(payload, size, seed_of(0, round))) {
      is_wrong = true;
    }
    seen = round;
    answer.store(round, std::memory_order_release);
  });
  uint64_t round = 0;
  for (auto _ : state) {
    ++round;
    fill(arena.outgoing(), size, seed_of(0, round));
    const auto start = std::chrono::steady_clock::now();
    ring.store(round, std::memory_order_release);
    while (answer.load(std::memory_order_acquire) != round) {
    }
    state.SetIterationTime(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
  if (is_wrong) {
    state.SkipWithError("the other core read something else than what was written");
  }
  std::free(arena.base);
}

void sizes(benchmark::internal::Benchmark* bench) {
  for (const int64_t size : {8, 4 << 10, 64 << 10, 1 << 20, 16 << 20}) {
    bench->Arg(size);
  }
  bench->UseManualTime();
}

BENCHMARK_CAPTURE(hand_over, read_in_place, nullptr)->Apply(sizes);
BENCHMARK_CAPTURE(hand_over, pull_memcpy, by_memcpy)->Apply(sizes);
#if defined(__x86_64__)
BENCHMARK_CAPTURE(hand_over, pull_four_streams, by_four_streams)->Apply(sizes);
#endif

}  // namespace
}  // namespace ringbolt::bench
