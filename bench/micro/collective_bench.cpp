// What a collective does to each byte besides moving it (adding up, checksum), beside what memcpy takes; and what the
// executor takes for a chunk that has hardly any bytes.

#include <benchmark/benchmark.h>

#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "base/copy.h"
#include "base/crc.h"
#include "collective/arithmetic.h"
#include "collective/executor.h"

namespace ringbolt::bench {
namespace {

using collective::ChunkTag;
using collective::Execution;

constexpr int64_t kKiB = 1024;

/// Numbers of every type without subnormal ones, which take processors longer.
std::vector<std::byte> numbers(int64_t length_bytes) {
  return std::vector<std::byte>(static_cast<size_t>(length_bytes), std::byte{0x3c});
}

/// To a place that lies so many bytes further in its page than the source: memcpy's rep movsb does not like a few.
void copy(benchmark::State& state, void (*copies)(void*, const void*, size_t)) {
  constexpr size_t kPage = 4096;
  const auto length = static_cast<size_t>(state.range(0));
  std::vector<std::byte> memory = numbers(2 * (state.range(0) + 2 * static_cast<int64_t>(kPage)));
  std::byte* from = memory.data() + (kPage - reinterpret_cast<uintptr_t>(memory.data()) % kPage);
  std::byte* to = from + (length + kPage - 1) / kPage * kPage + state.range(1);
  for (auto _ : state) {
    copies(to, from, length);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
void memory_copy(void* to, const void* from, size_t length) { std::memcpy(to, from, length); }
BENCHMARK_CAPTURE(copy, memcpy, memory_copy)->ArgsProduct({{4 * kKiB, 64 * kKiB, 1024 * kKiB}, {0, 16, 1024}});
BENCHMARK_CAPTURE(copy, ours, base::copy)->ArgsProduct({{4 * kKiB, 64 * kKiB, 1024 * kKiB}, {0, 16, 1024}});

/// The sum of two sources. Bytes of the result: of each source as many are read.
void reduce_two(benchmark::State& state, collective::Type type) {
  const std::vector<std::byte> first = numbers(state.range(0));
  const std::vector<std::byte> second = numbers(state.range(0));
  std::vector<std::byte> out(first.size());
  const std::array<const std::byte*, 2> sources = {first.data(), second.data()};
  for (auto _ : state) {
    collective::reduce(type, collective::Reduction::sum, out.data(), sources, out.size());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
  state.SetLabel(collective::text(collective::arithmetic()));
}
BENCHMARK_CAPTURE(reduce_two, float32, collective::Type::float32)->Arg(4 * kKiB)->Arg(64 * kKiB)->Arg(1024 * kKiB);
BENCHMARK_CAPTURE(reduce_two, bfloat16, collective::Type::bfloat16)->Arg(4 * kKiB)->Arg(64 * kKiB)->Arg(1024 * kKiB);
BENCHMARK_CAPTURE(reduce_two, float16, collective::Type::float16)->Arg(4 * kKiB)->Arg(64 * kKiB)->Arg(1024 * kKiB);

void crc32c_of_chunk(benchmark::State& state) {
  const std::vector<std::byte> bytes = numbers(state.range(0));
  for (auto _ : state) {
    benchmark::DoNotOptimize(base::crc32c(0, bytes));
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(crc32c_of_chunk)->Arg(64)->Arg(4 * kKiB)->Arg(64 * kKiB);

/// Hands chunks over within one thread, in order, without copying or allocating.
class HandOverP2p : public collective::PointToPoint {
 public:
  static constexpr uint32_t kSlots = 64;
  static constexpr uint32_t kSlotBytes = 64;

  struct Message {
    ChunkTag tag;
    uint32_t slot = 0;
    uint32_t length_bytes = 0;
    bool is_word_of_use = false;
  };

  HandOverP2p() {
    for (uint32_t i = 0; i < kSlots; ++i) {
      free_.push_back(i);
    }
    sent_.reserve(size_t{4} * kSlots);
  }

  std::optional<Slot> take_slot(uint32_t) override {
    if (free_.empty()) {
      return std::nullopt;
    }
    const uint32_t id = free_.back();
    free_.pop_back();
    return Slot{slots_[id].data(), id};
  }
  void fill(Slot slot, const std::byte* from, uint32_t length_bytes) override {
    std::memcpy(slot.bytes, from, length_bytes);
  }
  void send(Slot slot, uint32_t length_bytes, uint32_t, std::span<const uint32_t>, const ChunkTag& tag) override {
    sent_.push_back({tag, slot.id, length_bytes, false});
  }
  void cancel(Slot slot) override { free_.push_back(slot.id); }
  void tell_used(uint32_t, const ChunkTag& tag) override { sent_.push_back({tag, 0, 0, true}); }

  /// Gives all that was sent to the other rank. False if a chunk is refused.
  bool deliver(Execution& receiver, uint32_t from) {
    bool is_taken = true;
    for (size_t i = 0; i < sent_.size(); ++i) {
      const Message message = sent_[i];
      is_taken &= collective::Taken::ok ==
                  (message.is_word_of_use
                       ? receiver.hear_used(from, message.tag)
                       : receiver.arrive(from, message.tag,
                                         {this, message.slot, {slots_[message.slot].data(), message.length_bytes}}));
    }
    sent_.clear();
    return is_taken;
  }

 protected:
  void release(uint64_t parcel) override { free_.push_back(static_cast<uint32_t>(parcel)); }
  Place settle(uint64_t parcel, std::span<const std::byte> bytes) override { return {parcel, bytes}; }

 private:
  std::array<std::array<std::byte, kSlotBytes>, kSlots> slots_{};
  std::vector<uint32_t> free_;
  std::vector<Message> sent_;
};

/// Two ranks send each other everything and add it up.
collective::Program exchange(uint32_t rank, uint64_t bytes) {
  using collective::Buffer;
  using collective::Source;
  using collective::Target;
  const uint32_t peer = 1 - rank;
  const Source input{Source::Kind::local, Buffer::input, 0, collective::kNoStep, false, 0, 0};
  const Source transfer{Source::Kind::transfer, Buffer::input, 0, collective::kNoStep, false, peer, 0};
  const Target out{Target::Kind::local, Buffer::output, 0, 0, 0, {}};
  const Target to_peer{Target::Kind::transfer, Buffer::output, 0, peer, 0, {}};
  const std::vector<Source> sources =
      rank == 0 ? std::vector<Source>{input, transfer} : std::vector<Source>{transfer, input};
  return {0,
          {{bytes, HandOverP2p::kSlotBytes, {input}, {to_peer}, false},
           {bytes, HandOverP2p::kSlotBytes, sources, {out}, true}}};
}

/// Argument: chunks that each rank sends in a call. The time of an item is that of one chunk, from being written to
/// being added up, with its share of beginning the call.
void execute_chunks(benchmark::State& state) {
  const auto bytes = static_cast<uint64_t>(state.range(0)) * HandOverP2p::kSlotBytes;
  const std::vector<std::byte> input = numbers(static_cast<int64_t>(bytes));
  std::array<std::vector<std::byte>, 2> outputs = {input, input};
  std::array<HandOverP2p, 2> p2p;
  std::vector<Execution> ranks;
  for (uint32_t rank = 0; rank < 2; ++rank) {
    ranks.emplace_back(std::make_shared<const collective::CompiledProgram>(exchange(rank, bytes)));
  }
  uint32_t call = 0;
  for (auto _ : state) {
    for (size_t rank = 0; rank < 2; ++rank) {
      ranks[rank].start(call,
                        {input.data(), outputs[rank].data(), collective::Type::float32, collective::Reduction::sum, 0},
                        p2p[rank]);
    }
    ++call;
    while (!ranks[0].is_done() || !ranks[1].is_done()) {
      bool is_sound = true;
      for (uint32_t rank = 0; rank < 2; ++rank) {
        ranks[rank].advance();
        is_sound &= p2p[rank].deliver(ranks[1 - rank], rank);
      }
      if (!is_sound) {
        state.SkipWithError("a chunk was refused");
        return;
      }
    }
    for (uint32_t rank = 0; rank < 2; ++rank) {  // late words of use
      (void)p2p[rank].deliver(ranks[1 - rank], rank);
    }
  }
  state.SetItemsProcessed(state.iterations() * 2 * state.range(0));
}
BENCHMARK(execute_chunks)->Arg(1)->Arg(8)->Arg(64)->Arg(1024);

}  // namespace
}  // namespace ringbolt::bench
