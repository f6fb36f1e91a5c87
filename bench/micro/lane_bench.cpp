// The lane by itself: publishing and consuming slots without queue pairs.
#include <benchmark/benchmark.h>

#include <memory>

#include "link/lane_consumer.h"
#include "link/lane_producer.h"
#include "micro/pinned_thread.h"

namespace ringbolt::bench {
namespace {

/// The slot of an 8-byte SEND that tells the peer `consumed`.
void publish_small(link::LaneProducer& lane, uint32_t consumed = 0) {
  lane.publish(link::SlotKind::send, link::kSlotFirst | link::kSlotLast, sizeof(uint64_t), 0, consumed, 0, false);
}

/// Both ends on one core: the instructions alone, no cache line moves.
void publish_and_consume(benchmark::State& state) {
  const auto memory = std::make_unique<link::LaneMemory>();
  link::LaneProducer producer(*memory);
  link::LaneConsumer consumer(*memory);
  for (auto _ : state) {
    publish_small(producer);
    link::SlotHeader received;
    benchmark::DoNotOptimize(consumer.peek(received));
    consumer.release();
    producer.take_consumed(consumer.consumed());
  }
}
BENCHMARK(publish_and_consume);

/// A stream from core 0 to core 1, whose count comes back when it has nothing to consume.
void stream_between_cores(benchmark::State& state) {
  const auto memory = std::make_unique<link::LaneMemory>();
  link::LaneProducer producer(*memory);
  link::LaneConsumer consumer(*memory);
  const PinnedThread other([&consumer] {
    link::SlotHeader received;
    if (consumer.peek(received)) {
      consumer.release();
    } else if (consumer.has_news()) {
      consumer.tell();
    }
  });
  for (auto _ : state) {
    while (!producer.has_slot()) {
      producer.refresh();
    }
    publish_small(producer);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(stream_between_cores)->UseRealTime();

/// One slot there, one slot back.
void ping_pong_between_cores(benchmark::State& state) {
  const auto there = std::make_unique<link::LaneMemory>();
  const auto back = std::make_unique<link::LaneMemory>();
  link::LaneProducer question(*there);
  link::LaneConsumer asked(*there);
  link::LaneProducer answer(*back);
  link::LaneConsumer answered(*back);
  const PinnedThread other([&] {
    link::SlotHeader received;
    if (asked.peek(received)) {
      asked.release();
      answer.take_consumed(received.consumed);
      publish_small(answer, asked.consumed());
    }
  });
  for (auto _ : state) {
    publish_small(question, answered.consumed());
    link::SlotHeader received;
    while (!answered.peek(received)) {
    }
    answered.release();
    question.take_consumed(received.consumed);
  }
}
BENCHMARK(ping_pong_between_cores)->UseRealTime();

}  // namespace
}  // namespace ringbolt::bench
