#include "stream/control_message.h"

#include "stream/big_endian.h"

namespace ringbolt::stream {

static_assert(ControlAt::key + sizeof(uint32_t) == kControlBytes);
static_assert(ControlAt::features + sizeof(uint64_t) == kControlBytes);

std::optional<ControlMessage> ControlMessage::parse(std::span<const std::byte> in) {
  if (in.size() != kControlBytes) {
    return std::nullopt;
  }
  const auto opcode = get_be<uint16_t>(in, ControlAt::opcode);
  if (opcode > static_cast<uint16_t>(Opcode::register_xfer_memory)) {
    return std::nullopt;
  }
  ControlMessage message;
  message.opcode = static_cast<Opcode>(opcode);
  // No default: the compiler tells of an opcode that is new.
  switch (message.opcode) {
    case Opcode::get_server_feature:
    case Opcode::set_client_feature:
      message.select = get_be<uint16_t>(in, ControlAt::select);
      message.features = get_be<uint64_t>(in, ControlAt::features);
      break;
    case Opcode::keepalive:
      break;
    case Opcode::register_xfer_memory:
      message.address = get_be<uint64_t>(in, ControlAt::address);
      message.length = get_be<uint32_t>(in, ControlAt::length);
      message.key = get_be<uint32_t>(in, ControlAt::key);
      break;
  }
  return message;
}

ControlBytes ControlMessage::emit() const {
  ControlBytes out{};
  put_be(out, ControlAt::opcode, static_cast<uint16_t>(opcode));
  switch (opcode) {
    case Opcode::get_server_feature:
    case Opcode::set_client_feature:
      put_be(out, ControlAt::select, select);
      put_be(out, ControlAt::features, features);
      break;
    case Opcode::keepalive:
      break;
    case Opcode::register_xfer_memory:
      put_be(out, ControlAt::address, address);
      put_be(out, ControlAt::length, length);
      put_be(out, ControlAt::key, key);
      break;
  }
  return out;
}

}  // namespace ringbolt::stream
