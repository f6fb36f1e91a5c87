// A peer of a stream over RDMA that says what it likes, in any order, while the program does what programs do: what is
// announced to us is never left by a WRITE, what we announce is never left by a read, no command uses a slot twice, and
// it ends for the reasons of the rules alone. The first byte says which role is played, with how many receive buffers.

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "base/assert.h"
#include "input.h"
#include "stream/protocol.h"
#include "stream_rules.h"

namespace {

using namespace ringbolt;
using namespace ringbolt::stream;

constexpr uint32_t kRxLength = 4096;
constexpr uint32_t kLongest = 16U << 20U;

/// The machine, and what the test knows of it by itself.
struct World {
  World(Role role, uint32_t n_buffers)
      : buffers(n_buffers),
        rules(role, kLongest),
        protocol({.role = role,
                  .rx_address = 0x1000,
                  .rx_length = kRxLength,
                  .rx_buffers = n_buffers,
                  .rx_key = 1,
                  .max_tx_length = kLongest}) {}

  /// What has just come was met as the rules have it.
  void check(fuzz::StreamRules::Reasons allowed) const {
    RINGBOLT_ASSERT((allowed & fuzz::StreamRules::only(protocol.reason())) != 0);
  }

  uint32_t buffers;
  fuzz::StreamRules rules;
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
  const auto sent = std::span(bytes).first(input.take<uint8_t>() == 1 ? 31 : bytes.size());
  const auto allowed = world.rules.command(sent);
  world.protocol.take_command(sent, world.now_ns);
  const auto message = ControlMessage::parse(bytes);
  if (was_alive) {
    world.check(allowed);
  }
  if (world.protocol.is_alive() && message) {
    world.rules.took(*message);
  }
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
      const auto bytes = input.take<uint8_t>();
      const bool was_alive = protocol.is_alive();
      const auto allowed = world.rules.data(immediate, bytes);
      protocol.take_data(immediate, bytes, world.now_ns);
      if (was_alive) {
        world.check(allowed);
        world.rules.took_data(protocol.is_alive() ? immediate : 0);
      }
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
  while (const auto command = protocol.next_command()) {
    ++world.under_way;
    const auto said = ControlMessage::parse(command->bytes);
    RINGBOLT_ASSERT(said && world.rules.may_say(*said));
  }
  RINGBOLT_ASSERT(protocol.statistics().bytes_arrived <= protocol.statistics().bytes_sent);
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
