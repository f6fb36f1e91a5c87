#pragma once

// The measured loop of a collective, the same code for every peer. A peer is a Channel:
//   unsigned rank, ranks;
//   all_reduce(in, out, bytes, type)  sums; in place when out == in. Throws for a type that the peer doesn't have
//   all_gather(in, out, bytes)        `bytes` of each rank; in place when in lies in out
//   barrier()

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "blocks.h"
#include "pattern.h"
#include "start_line.h"

namespace ringbolt::bench {

/// Most bytes that a rank gives to a call.
constexpr std::size_t kMostInput = std::size_t{16} << 20U;

/// What a block's operation says: `all_reduce/TYPE/out|in`, `all_gather/TYPE/out|in` or `barrier`; `in` is in place.
struct Work {
  enum class Kind : uint8_t { all_reduce, all_gather, barrier };
  Kind kind = Kind::barrier;
  std::string type = "float32";
  bool is_in_place = false;

  friend bool operator==(const Work&, const Work&) = default;
};

/// Throws std::runtime_error.
Work parse_work(const std::string& operation);

/// Input and output of one rank in private memory, as a program has them. Every page has been touched.
class Buffers {
 public:
  /// Throws std::bad_alloc.
  Buffers();

  std::byte* input() const { return memory_.get(); }
  std::byte* output() const { return memory_.get() + kMostInput; }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> memory_;
};

/// Where a rank's input and output lie in this work.
struct Places {
  std::byte* in = nullptr;
  std::byte* out = nullptr;
};
/// Throws std::runtime_error if they don't fit.
Places places_of(const Work& work, const Buffers& buffers, std::size_t length_bytes, unsigned rank, unsigned ranks);

template <class Channel>
void call(Channel& channel, const Work& work, const Places& places, std::size_t length_bytes) {
  switch (work.kind) {
    case Work::Kind::all_reduce:
      return channel.all_reduce(places.in, places.out, length_bytes, work.type);
    case Work::Kind::all_gather:
      return channel.all_gather(places.in, places.out, length_bytes);
    case Work::Kind::barrier:
      return channel.barrier();
  }
}

/// Reads the whole output.
void expect_output(const Work& work, const Pattern& pattern, const Places& places, std::size_t length_bytes,
                   unsigned ranks, uint64_t number);

/// Every call begins on all ranks at one time and ends when the last of them has read its output. The inputs are
/// rewritten before, outside of the timed part.
template <class Channel>
std::string run_collective(Channel& channel, const Buffers& buffers, const Block& block) {
  const auto& [operation, size, iterations, is_touched] = block.command;
  const Work work = parse_work(operation);
  const Pattern pattern = pattern_of(work.type);
  const Places places = places_of(work, buffers, size, channel.rank, channel.ranks);
  write_input(pattern, places.in, size, channel.rank, 0);
  block.page.arrive(channel.ranks, block.round);
  block.samples.begin(iterations);
  StartLine line(block.page, channel.rank, channel.ranks);
  uint64_t start = 0;
  uint64_t last_start = 0;
  for (uint64_t i = 0; i < iterations; ++i) {
    if (is_touched) {
      write_input(pattern, places.in, size, channel.rank, i);
    }
    last_start = std::exchange(start, line.wait());
    call(channel, work, places, size);
    if (is_touched) {
      expect_output(work, pattern, places, size, channel.ranks, i);
    }
    line.finish(settled_ticks());
    // By now all ranks have said when they finished the call before this one.
    if (channel.rank == 0 && i > 0) {
      block.samples.add(line.last_finish_before() - last_start);
    }
  }
  line.wait();
  if (channel.rank == 0) {
    block.samples.add(line.last_finish() - start);
  }
  return block.samples.latency_report(1);
}

}  // namespace ringbolt::bench
