#include "samples.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace ringbolt::bench {
namespace {

uint64_t monotonic_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000U + static_cast<uint64_t>(t.tv_nsec);
}

double measure_ns_per_tick() {
  const uint64_t start_ns = monotonic_ns();
  const uint64_t start = now_ticks();
  while (monotonic_ns() - start_ns < 20'000'000) {
  }
  return static_cast<double>(monotonic_ns() - start_ns) / static_cast<double>(now_ticks() - start);
}

/// How often the kernel took the core away: a disturbed block shows here.
long involuntary_switches() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nivcsw;
}

}  // namespace

double ns_per_tick() {
  static const double value = measure_ns_per_tick();
  return value;
}

Samples::Samples() : ticks_(kMax, 1) { ns_per_tick(); }

void Samples::begin(uint64_t iterations) {
  if (iterations > kMax) {
    throw std::runtime_error(fmt::format("{} iterations in a block; at most {}", iterations, kMax));
  }
  count_ = 0;
  start_switches_ = involuntary_switches();
  start_ticks_ = now_ticks();
}

std::string Samples::latency_report(double trips) {
  end_ticks_ = now_ticks();
  if (count_ == 0) {
    return "ok " + tail();
  }
  const auto begin = ticks_.begin();
  const auto end = begin + static_cast<std::ptrdiff_t>(count_);
  const double sum = std::accumulate(begin, end, 0.0);
  std::sort(begin, end);
  const double scale = ns_per_tick() / trips;
  const auto quantile = [&](double q) {
    return scale * ticks_[static_cast<std::size_t>(q * static_cast<double>(count_ - 1))];
  };
  return fmt::format("ok p50_ns={:.1f} p99_ns={:.1f} max_ns={:.1f} mean_ns={:.1f} n={} {}", quantile(0.5),
                     quantile(0.99), quantile(1.0), scale * sum / static_cast<double>(count_), count_, tail());
}

std::string Samples::rate_report(uint64_t count) {
  end_ticks_ = now_ticks();
  const double seconds = static_cast<double>(end_ticks_ - start_ticks_) * ns_per_tick() * 1e-9;
  return fmt::format("ok rate={:.0f} n={} {}", static_cast<double>(count) / seconds, count, tail());
}

std::string Samples::tail() {
  return fmt::format("seconds={:.6f} switches={}",
                     static_cast<double>(end_ticks_ - start_ticks_) * ns_per_tick() * 1e-9,
                     involuntary_switches() - start_switches_);
}

}  // namespace ringbolt::bench
