#include "collective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <thread>
#include <vector>

namespace ringbolt::bench {
namespace {

float of_half_word(const std::string& type, uint16_t bits) {
  if (type == "bfloat16") {
    const uint32_t word = static_cast<uint32_t>(bits) << 16U;
    float value = 0;
    std::memcpy(&value, &word, sizeof value);
    return value;
  }
  const int exponent = (bits >> 10U) & 31;
  return std::ldexp(static_cast<float>(1024 + (bits & 1023)), exponent - 25);
}

std::vector<float> numbers(const std::string& type, const std::vector<std::byte>& bytes) {
  std::vector<float> values;
  if (type == "float32") {
    values.resize(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  for (std::size_t i = 0; i < bytes.size(); i += 2) {
    uint16_t bits = 0;
    std::memcpy(&bits, &bytes[i], sizeof bits);
    values.push_back(of_half_word(type, bits));
  }
  return values;
}

std::vector<std::byte> input_of(const std::string& type, std::size_t length, unsigned rank, uint64_t call) {
  std::vector<std::byte> bytes(length);
  write_input(pattern_of(type), bytes.data(), length, rank, call);
  return bytes;
}

/// The sum by other means: exact in float, then written as an element of the type.
std::vector<std::byte> sum_of(const std::string& type, std::size_t length, unsigned ranks, uint64_t call) {
  std::vector<float> sum(length / (type == "float32" ? 4 : 2));
  for (unsigned rank = 0; rank < ranks; ++rank) {
    const std::vector<float> values = numbers(type, input_of(type, length, rank, call));
    for (std::size_t i = 0; i < sum.size(); ++i) {
      sum[i] += values[i];
    }
  }
  std::vector<std::byte> bytes(length);
  for (std::size_t i = 0; i < sum.size(); ++i) {
    uint32_t word = 0;
    std::memcpy(&word, &sum[i], sizeof word);
    if (type == "float32") {
      std::memcpy(&bytes[4 * i], &word, 4);
      continue;
    }
    uint16_t half = static_cast<uint16_t>(word >> 16U);
    if (type == "float16") {
      half = static_cast<uint16_t>(((((word >> 23U) & 255U) - 112U) << 10U) | ((word >> 13U) & 1023U));
    }
    EXPECT_EQ(of_half_word(type, half), sum[i]) << "the sum is not exact in " << type;
    std::memcpy(&bytes[2 * i], &half, 2);
  }
  return bytes;
}

TEST(Pattern, sums_are_exact_in_every_type) {
  for (const std::string type : {"float32", "float16", "bfloat16"}) {
    for (const unsigned ranks : {1U, 2U, 4U}) {
      const std::vector<std::byte> sum = sum_of(type, 4096, ranks, 3);
      EXPECT_NO_THROW(expect_sum(pattern_of(type), sum.data(), sum.size(), 0, ranks, 3)) << type << " of " << ranks;
    }
  }
}

TEST(Pattern, every_wrong_word_is_seen_and_named) {
  std::vector<std::byte> sum = sum_of("float32", 256, 2, 0);
  for (std::size_t byte = 0; byte < sum.size(); byte += 4) {
    sum[byte + 1] ^= std::byte{1};
    try {
      expect_sum(pattern_of("float32"), sum.data(), sum.size(), 0, 2, 0);
      ADD_FAILURE() << "byte " << byte << " passed";
    } catch (const std::runtime_error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(fmt::format("wrong at byte {}:", byte)));
    }
    sum[byte + 1] ^= std::byte{1};
  }
}

TEST(Pattern, calls_ranks_and_places_differ) {
  for (const std::string type : {"float32", "float16", "bfloat16"}) {
    const std::vector<std::byte> first = input_of(type, 8192, 0, 0);
    EXPECT_NE(first, input_of(type, 8192, 1, 0));
    EXPECT_NE(first, input_of(type, 8192, 0, 1));
    EXPECT_NE(0, std::memcmp(first.data(), first.data() + 4096, 4096)) << "a shifted chunk would pass";
  }
}

TEST(Work, operations_are_parsed) {
  EXPECT_EQ(parse_work("barrier"), Work{});
  EXPECT_EQ(parse_work("all_reduce/bfloat16/in"), (Work{Work::Kind::all_reduce, "bfloat16", true}));
  EXPECT_EQ(parse_work("all_gather/float32/out"), (Work{Work::Kind::all_gather, "float32", false}));
  for (const char* const wrong : {"", "all_reduce", "all_reduce/in", "all_reduce/float32/over", "gather/float32/in"}) {
    EXPECT_THROW((void)parse_work(wrong), std::runtime_error) << wrong;
  }
}

TEST(Work, places_in_and_out_of_place) {
  const Buffers buffers;
  const Places reduced = places_of({Work::Kind::all_reduce, "float32", true}, buffers, 64, 1, 2);
  EXPECT_EQ(reduced.in, reduced.out);
  const Places gathered = places_of({Work::Kind::all_gather, "float32", true}, buffers, 64, 1, 2);
  EXPECT_EQ(gathered.in, gathered.out + 64);
  const Places apart = places_of({Work::Kind::all_reduce, "float32", false}, buffers, kMostInput, 1, 2);
  EXPECT_EQ(apart.out, apart.in + kMostInput);
  EXPECT_THROW(places_of({Work::Kind::all_reduce, "float32", false}, buffers, kMostInput + 4, 1, 2),
               std::runtime_error);
  EXPECT_THROW(places_of({Work::Kind::all_gather, "float32", false}, buffers, kMostInput, 1, 2), std::runtime_error);
}

/// Sums by way of memory that both threads know.
struct ThreadChannel {
  struct Shared {
    std::atomic<uint64_t> arrivals = 0;
    std::vector<float> inputs[2];
  };

  unsigned rank;
  unsigned ranks;
  Shared& shared;
  uint64_t round = 0;
  bool is_wrong = false;

  void barrier() {
    shared.arrivals.fetch_add(1);
    for (++round; shared.arrivals.load() < 2 * round;) {
      std::this_thread::yield();
    }
  }
  void all_reduce(const std::byte* in, std::byte* out, std::size_t bytes, const std::string&) {
    shared.inputs[rank].resize(bytes / sizeof(float));
    std::memcpy(shared.inputs[rank].data(), in, bytes);
    barrier();
    for (std::size_t i = 0; i < bytes / sizeof(float); ++i) {
      const float sum = is_wrong ? 0 : shared.inputs[0][i] + shared.inputs[1][i];
      std::memcpy(out + i * sizeof sum, &sum, sizeof sum);
    }
    barrier();
  }
  void all_gather(const std::byte*, std::byte*, std::size_t) {}
};

std::string run_two(const Command& command) {
  TurnPage page{};
  ThreadChannel::Shared shared;
  std::string reports[2];
  std::vector<std::thread> threads;
  for (unsigned rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      Samples samples;
      ThreadChannel channel{rank, 2, shared};
      const Buffers buffers;
      reports[rank] = run_collective(channel, buffers, Block{command, page, 1, samples});
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return reports[0];
}

TEST(Collective, rank_0_has_a_sample_of_every_call) {
  EXPECT_THAT(run_two({"all_reduce/float32/out", 64, 7, true}), testing::HasSubstr(" n=7 "));
  EXPECT_THAT(run_two({"all_reduce/float32/in", 64, 1, true}), testing::HasSubstr(" n=1 "));
  EXPECT_THAT(run_two({"barrier", 0, 5, false}), testing::HasSubstr(" n=5 "));
}

TEST(Collective, a_wrong_output_is_refused) {
  TurnPage page{};
  ThreadChannel::Shared shared;
  ThreadChannel channel{0, 1, shared};
  channel.is_wrong = true;
  shared.arrivals = 1000;  // nobody to wait for
  shared.inputs[1].resize(16);
  Samples samples;
  const Command command{"all_reduce/float32/out", 64, 1, true};
  EXPECT_THROW(run_collective(channel, Buffers(), Block{command, page, 1, samples}), std::runtime_error);
}

}  // namespace
}  // namespace ringbolt::bench
