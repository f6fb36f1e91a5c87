// One block of load on a key-value server: prints its figures. stream.py takes turns and compares.
//   bench_stream tcp|stream PORT CLIENTS BYTES get|set SPIN_US BLOCK_MS: against examples/key-value

#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "load.h"

namespace ringbolt::bench {
namespace {

int run(const std::vector<std::string>& words) {
  if (words.size() != 7) {
    std::fprintf(stderr, "usage: bench_stream tcp|stream PORT CLIENTS BYTES get|set SPIN_US BLOCK_MS\n");
    return 2;
  }
  const auto number = [&](size_t at) { return static_cast<uint32_t>(std::stoul(words.at(at))); };
  const Load load{.is_stream = words[0] == "stream",
                  .port = static_cast<uint16_t>(number(1)),
                  .clients = number(2),
                  .bytes = number(3),
                  .is_get = words[4] == "get",
                  .spin_us = number(5)};
  put_load(load, uint64_t{number(6)} * 1'000'000);
  return 0;
}

}  // namespace
}  // namespace ringbolt::bench

int main(int argc, char** argv) try {
  return ringbolt::bench::run({argv + 1, argv + argc});
} catch (const std::exception& error) {
  std::fprintf(stderr, "bench_stream: %s\n", error.what());
  return 1;
}
