// A peer of a stream over RDMA that says what it likes, in any order, while the program does what programs do: what is
// announced to us is never left by a WRITE, what we announce is never left by a read, and no command uses a slot twice.
// The first byte says which role is played, with how many receive buffers.

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "base/assert.h"
#include "input.h"
#include "stream/protocol.h"

namespace {

using namespace ringbolt;
using namespace ringbolt::stream;

constexpr uint32_t kRxLength = 4096;

/// The machine, and what the test knows of it by itself.
struct World {
  World(Role role, uint32_t n_buffers)
      : buffers(n_buffers),
        protocol({.role = role, .rx_address = 0x1000, .rx_length = kRxLength, .rx_buffers = n_buffers, .rx_key = 1}) {}

  uint32_t buffers;
  Protocol protocol;
  uint64_t now_ns = 1;
  uint64_t address = 0;  // the last announcement that was taken
  uint32_t under_way = 0;
};

ControlBytes any_command(fuzz::Input& input) {
  ControlBytes bytes{};
  const auto kind = input.take<uint8_t>();
  if (kind % 4 != 0) {  // mostly one that is understood
    ControlMessage message{.opcode = static_cast<Opcode>(kind / 4 % 4), .select = input.take<uint16_t>()};
    message.features = kind & 64U;
    message.address = input.take<uint64_t>();
    message.length = kind < 128 ? 100 : input.take<uint32_t>();
    message.key = input.take<uint32_t>();
    return message.emit();
  }
  for (std::byte& byte : bytes) {
    byte = input.take<std::byte>();
  }
  return bytes;
}

void take_command(World& world, fuzz::Input& input) {
  const ControlBytes bytes = any_command(input);
  const bool was_alive = world.protocol.is_alive();
  world.protocol.take_command(std::span(bytes).first(input.take<uint8_t>() == 1 ? 31 : bytes.size()), world.now_ns);
  const auto message = ControlMessage::parse(bytes);
  if (was_alive && world.protocol.is_alive() && message && message->opcode == Opcode::register_xfer_memory) {
    world.address = message->address;
    RINGBOLT_ASSERT(message->length == world.protocol.tx_length());
  }
  if (message) {
    RINGBOLT_ASSERT(ControlMessage::parse(message->emit()) == message);
  }
  if (const auto move = world.protocol.take_move()) {
    RINGBOLT_ASSERT(move->from + uint64_t{move->count} <= world.protocol.tx_length());
  }
  if (world.protocol.wants_sending_buffer() && world.protocol.is_alive()) {
    world.protocol.begin_sending();
  }
}

void check(const World& world, const Write& write) {
  RINGBOLT_ASSERT(write.length > 0 && uint64_t{write.offset} + write.length <= world.protocol.tx_length());
  RINGBOLT_ASSERT(write.remote_address == world.address + write.offset);
  RINGBOLT_ASSERT(!write.has_immediate ||
                  (write.immediate >= write.length && write.immediate <= write.offset + write.length));
}

void write_some(World& world, fuzz::Input& input) {
  const uint32_t room = world.protocol.room();
  const auto count = std::min<uint32_t>(room, input.take<uint16_t>());
  if (input.take<uint8_t>() % 2 == 0) {
    world.protocol.fill(count);
    if (const auto write = world.protocol.flush()) {
      check(world, *write);
    }
  } else if (count != 0 && !world.protocol.has_unflushed()) {
    if (const auto write = world.protocol.flush_direct(count, input.take<uint8_t>() % 2 == 0)) {
      check(world, *write);
    }
  }
}

void step(World& world, fuzz::Input& input) {
  Protocol& protocol = world.protocol;
  world.now_ns += input.take<uint32_t>();
  switch (input.take<uint8_t>() % 8) {
    case 0:
      protocol.established(world.now_ns);
      break;
    case 1:
      take_command(world, input);
      break;
    case 2: {
      const auto immediate = input.take<uint8_t>() % 2 == 0 ? input.take<uint8_t>() : input.take<uint32_t>();
      protocol.take_data(immediate, input.take<uint8_t>(), world.now_ns);
      break;
    }
    case 3:
      protocol.consume(std::min<uint32_t>(protocol.unread(), input.take<uint16_t>()));
      break;
    case 4:
      write_some(world, input);
      break;
    case 5:
      if (world.under_way > 0) {
        protocol.finish_command();
        --world.under_way;
      }
      break;
    case 6:
      protocol.finish_write(input.take<uint64_t>());
      protocol.note_stall(world.now_ns);
      break;
    default:
      protocol.tick(world.now_ns);
  }
  while (protocol.next_command()) {
    ++world.under_way;
  }
  RINGBOLT_ASSERT(world.under_way <= Protocol::kCommandSlots);
  const uint32_t ring = kRxLength * world.buffers;
  RINGBOLT_ASSERT(protocol.rx_offset() < ring && protocol.unread() <= ring);
  RINGBOLT_ASSERT(protocol.rx_offset() + protocol.contiguous() <= ring && protocol.contiguous() <= protocol.unread());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  const auto kind = input.take<uint8_t>();
  World world(kind % 2 == 0 ? Role::client : Role::server, 1U + kind / 2U % 3U);
  while (!input.is_empty()) {
    step(world, input);
  }
  return 0;
}
