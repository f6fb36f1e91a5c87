// Looking up a key, which every one-sided operation and every piece of a work request does.
#include <benchmark/benchmark.h>

#include "link/region_table.h"

namespace ringbolt::bench {
namespace {

void find_region(benchmark::State& state) {
  link::RegionTable table;
  if (!table.create()) {
    state.SkipWithError("no memory for a region table");
    return;
  }
  link::Region region;
  region.first = 4096;
  region.length = 4096;
  const auto key = table.add(region);
  for (auto _ : state) {
    link::Region found;
    benchmark::DoNotOptimize(key && table.find(*key, found));
    benchmark::DoNotOptimize(found);
  }
}
BENCHMARK(find_region);

}  // namespace
}  // namespace ringbolt::bench
