// A lane whose memory a hostile process of the same user writes: both ends read it without leaving it.
//
// The input is a row of steps: what the other side scribbles, then what our side does. The lane lies at the end of its
// allocation, so a sanitizer sees every byte beyond it; the checks below hold without one as well.

#include <algorithm>
#include <cstring>
#include <memory>

#include "base/assert.h"
#include "input.h"
#include "link/lane_consumer.h"
#include "link/lane_producer.h"

namespace {

using namespace ringbolt;

constexpr int kMaxSteps = 2000;

bool is_inside(const link::LaneMemory& lane, const std::byte* first, size_t length) {
  return first >= lane.data && first + length <= lane.data + link::kLaneDataBytes;
}

void receive_one(link::LaneConsumer& consumer, const link::LaneMemory& lane) {
  link::SlotHeader header;
  if (!consumer.peek(header)) {
    return;
  }
  if (const std::byte* payload = consumer.payload(header)) {
    RINGBOLT_ASSERT(is_inside(lane, payload, header.length));
    volatile std::byte sum{};
    std::for_each(payload, payload + header.length, [&sum](std::byte one) { sum = sum ^ one; });
  }
  const auto fields = consumer.fields<link::AtomicFields>();
  consumer.respond(fields.operation, fields.swap);
  consumer.release();
  if (consumer.has_news()) {
    consumer.tell();
  }
}

void send_one(link::LaneProducer& producer, const link::LaneMemory& lane, uint32_t length) {
  link::LaneProducer::Place place;
  if (!producer.has_slot() || !producer.reserve(length, place)) {
    return;
  }
  RINGBOLT_ASSERT(is_inside(lane, place.data, length));
  std::memset(place.data, 0x5a, length);
  link::SlotHeader header;
  header.kind = link::SlotKind::send;
  header.length = length;
  header.data_at = place.data_at;
  producer.publish(header, true);
}

void scribble(link::LaneMemory& lane, fuzz::Input& input) {
  const auto at = input.take<uint32_t>() % (sizeof lane / 4);
  const auto value = input.take<uint32_t>();
  std::memcpy(reinterpret_cast<std::byte*>(&lane) + size_t{at} * 4, &value, sizeof value);
}

/// A slot that the other side filled in and published: without this the fuzzer would have to guess sequence numbers.
void publish(link::LaneMemory& lane, uint32_t number, fuzz::Input& input) {
  link::Slot& slot = lane.slots[number % link::kLaneSlots];
  slot.header = input.take<link::SlotHeader>();
  const auto fields = input.take<link::AtomicFields>();
  std::memcpy(slot.body, &fields, sizeof fields);
  slot.sequence.store(number + 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  auto incoming = std::make_unique<link::LaneMemory>();
  auto outgoing = std::make_unique<link::LaneMemory>();
  link::LaneConsumer consumer(*incoming);
  link::LaneProducer producer(*outgoing);
  for (int step = 0; step < kMaxSteps && !input.is_empty(); ++step) {
    switch (input.take<uint8_t>() % 8) {
      case 0:
        scribble(*incoming, input);
        break;
      case 1:
        scribble(*outgoing, input);
        break;
      case 2:
      case 3:
        publish(*incoming, consumer.consumed(), input);
        receive_one(consumer, *incoming);
        break;
      case 4:
        receive_one(consumer, *incoming);
        break;
      case 5:
        send_one(producer, *outgoing, input.take<uint32_t>() % (link::kLaneDataBytes + 2));
        break;
      case 6:
        outgoing->consumed.store(input.take<uint32_t>());
        producer.refresh();
        break;
      default:
        RINGBOLT_ASSERT(producer.refusal() <= link::Refusal::operation);
        producer.take_consumed(input.take<uint32_t>());
        break;
    }
    RINGBOLT_ASSERT(producer.published() - producer.consumed() <= link::kLaneSlots);
  }
  return 0;
}
