// Sums a vector over all ranks. Build and run it with
//   g++ -std=c++20 all_reduce.cpp $(pkg-config --cflags --libs ringbolt) -o all_reduce
//   ringbolt up --emulate ring:4 && ringbolt run -- ./all_reduce
#include <cstdio>
#include <exception>
#include <vector>

#include <ringbolt/group.h>

int main() try {
  ringbolt::Group group = ringbolt::Group::join();
  std::vector<float> mine(1'000'000, static_cast<float>(group.rank() + 1));
  std::vector<float> sum(mine.size());
  const ringbolt::Status status = group.all_reduce(mine.data(), sum.data(), mine.size(), ringbolt::Type::float32,
                                                   ringbolt::Reduction::sum, {.timeout_ms = 10'000});
  if (!status.is_ok()) {
    std::fprintf(stderr, "rank %u: %s\n", group.rank(), status.text.c_str());
    return 1;
  }
  std::printf("rank %u of %u: every element is %g\n", group.rank(), group.size(), sum.back());
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
