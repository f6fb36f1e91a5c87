#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

// The commands of Valkey over RDMA: one SEND of exactly 32 bytes each, most significant byte first.
// Format: docs/formats/valkey-rdma.md.
namespace ringbolt::stream {

inline constexpr size_t kControlBytes = 32;
using ControlBytes = std::array<std::byte, kControlBytes>;

enum class Opcode : uint16_t {
  get_server_feature = 0,
  set_client_feature = 1,
  keepalive = 2,
  register_xfer_memory = 3,
};

/// Offsets of the fields, for the codec alone.
struct ControlAt {
  static constexpr size_t opcode = 0;
  static constexpr size_t select = 2, features = 24;            // of both feature commands
  static constexpr size_t address = 16, length = 24, key = 28;  // of RegisterXferMemory
};

/// One command. What its opcode has no field for is 0 and is not sent.
struct ControlMessage {
  Opcode opcode = Opcode::keepalive;
  uint16_t select = 0;    ///< feature commands
  uint64_t features = 0;  ///< feature commands
  uint64_t address = 0;   ///< RegisterXferMemory: where the receive buffer begins
  uint32_t length = 0;    ///< of it, in bytes
  uint32_t key = 0;       ///< its remote key

  /// Of exactly kControlBytes; nothing for another length or an unknown opcode. Reserved bytes are ignored. Pure.
  static std::optional<ControlMessage> parse(std::span<const std::byte> in);
  /// Reserved bytes are 0. Pure.
  ControlBytes emit() const;

  friend bool operator==(const ControlMessage&, const ControlMessage&) = default;
};

}  // namespace ringbolt::stream
