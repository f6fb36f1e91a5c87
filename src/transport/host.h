#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

/// What the engines want of who embeds them. The calls come only from inside on_packet() and touch memory that the
/// engine knows nothing of; they must not call back into the same engine.
namespace ringbolt::transport {

/// A host is there for one call of on_packet(), and holds whatever lock the engine is under.
enum class Access : uint8_t { write, read, atomic };

/// What became of bytes for the receive that was taken.
enum class Placed : uint8_t {
  ok,
  too_long,    ///< the receive is shorter than the message: local length error, NAK 61
  protection,  ///< its key or range is wrong: local protection error, NAK 63
};

/// A message that used up a receive.
struct Received {
  enum Kind : uint8_t { send, write_immediate };
  Kind kind = send;
  bool has_immediate = false;
  bool invalidated = false;
  bool is_solicited = false;
  uint32_t length = 0;
  uint32_t immediate = 0;  ///< as it lay on the wire
  uint32_t invalidated_key = 0;
};

/// Why a responder cannot go on. The queue pair goes to ERR once next_packet() has handed out what is left (the NAK).
enum class ResponderFailure : uint8_t {
  receive_too_short,   ///< the taken receive ends in LOC_LEN_ERR
  receive_protection,  ///< the taken receive ends in LOC_PROT_ERR
  invalid_request,     ///< the peer broke the protocol
  remote_access,       ///< the peer's key, range or permission is wrong
};

/// Host of a responder.
template <class Host>
concept ResponderHost = requires(Host host, uint32_t u32, uint64_t u64, std::span<const std::byte> bytes,
                                 const Received& received) {
  /// Takes the oldest posted receive for the message that begins (or for the immediate data of a WRITE); it is the
  /// current one until complete_receive() or fail(). False: none is posted.
  { host.take_receive() } -> std::same_as<bool>;
  /// Bytes for the current receive, from `offset` of the message. Never empty.
  { host.place_receive(u32, bytes) } -> std::same_as<Placed>;
  /// The current receive is filled.
  { host.complete_receive(received) } -> std::same_as<void>;
  /// Makes a key invalid (SEND with invalidate); false: it is none that the peer may invalidate.
  { host.invalidate(u32) } -> std::same_as<bool>;
  /// Whether the peer may do `Access` to `length` bytes at address u64 with key u32. Asked once a message, with
  /// its whole length, and never for length 0.
  { host.may_access(u64, u32, u32, Access::write) } -> std::same_as<bool>;  // address, length, key, access
  /// Stores bytes of a WRITE. Checks again: the region may have gone since. Never empty.
  { host.write(u64, u32, bytes) } -> std::same_as<bool>;  // address, key, bytes
  /// Does an 8-byte atomic and says what was there before; nullopt: not allowed. The address is aligned.
  { host.compare_swap(u64, u32, u64, u64) } -> std::same_as<std::optional<uint64_t>>;  // address, key, compare, swap
  { host.fetch_add(u64, u32, u64) } -> std::same_as<std::optional<uint64_t>>;          // address, key, add
  { host.fail(ResponderFailure::invalid_request) } -> std::same_as<void>;
};

/// Host of a requester: where answers go to.
template <class Host>
concept RequesterHost = requires(Host host, uint32_t u32, uint64_t u64, std::span<const std::byte> bytes) {
  /// Bytes of a READ: operation number, offset, bytes (never empty). They may come out of order and more than once
  /// until the operation is complete. False: the local memory may not be written.
  { host.place_read(u32, u32, bytes) } -> std::same_as<bool>;
  /// What an atomic found: operation number, value. False as above. May come twice, with the same value.
  { host.place_atomic(u32, u64) } -> std::same_as<bool>;
};

}  // namespace ringbolt::transport
