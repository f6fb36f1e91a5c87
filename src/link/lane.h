#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

/// A lane carries the messages of one queue pair to one other through shared memory: a ring of 64-byte slots and a ring
/// of payload bytes from the producer to the consumer, and a few words back. The consumer's process makes the memory.
/// Each word has one writer. Layout: docs/formats/lane.md.
namespace ringbolt::link {

// Neither end trusts the other: what it reads of the other's words is copied, checked, and then used. Both have the
// memory mapped as long as they use it, so that neither's death takes it from the other.
inline constexpr uint32_t kLaneSlots = 256;
inline constexpr uint32_t kLaneDataBytes = 224U << 10U;
inline constexpr uint32_t kLaneReadBufferBytes = 8U << 10U;
inline constexpr uint32_t kLaneResponses = 16;  ///< operations that the consumer executes, in flight at once
inline constexpr uint32_t kInlineBytes = 40;    ///< what is left of a slot's 64 bytes

enum class SlotKind : uint8_t {
  none = 0,
  send,          ///< a chunk of a SEND; `total` bytes in all, known from the first chunk
  send_shared,   ///< a whole SEND whose payload lies in an arena of the producer
  write,         ///< a chunk of a WRITE that the consumer executes
  write_done,    ///< an immediate for a WRITE whose data was placed already; takes a receive
  read,          ///< the consumer puts the bytes into the read buffer
  atomic,        ///< the consumer executes it and answers in a response
  datagram,      ///< a UD message
  refused,       ///< the producer had to refuse its own operation: the consumer's queue pair goes to error
  send_private,  ///< a whole SEND in private memory of the producer, which the consumer reads there; if it asked for
                 ///< that
};

// Flags of a slot.
inline constexpr unsigned kSlotFirst = 1;
inline constexpr unsigned kSlotLast = 2;  ///< of what completes a receive; without it, nobody else need be woken
inline constexpr unsigned kSlotSolicited = 4;
inline constexpr unsigned kSlotImmediate = 8;        ///< `immediate` is valid
inline constexpr unsigned kSlotInvalidate = 16;      ///< `immediate` is a key to invalidate
inline constexpr unsigned kSlotFetchAdd = 32;        ///< an atomic: add, else compare and swap
inline constexpr unsigned kSlotInvalidRequest = 64;  ///< refused as invalid, else for want of access
inline constexpr unsigned kSlotSignaled = 256;  ///< its sender may wait for its completion: tell it who is done with it
inline constexpr unsigned kSlotStays = 128;     ///< send_shared: the consumer may read it there after it has completed

/// The fields of a slot that the consumer acts on, copied out once so that the producer can't change them under it.
struct SlotHeader {
  SlotKind kind = SlotKind::none;
  uint8_t reserved = 0;
  uint16_t flags = 0;
  uint32_t length = 0;     ///< payload bytes of this slot
  uint32_t immediate = 0;  ///< network byte order, as the verbs carry it
  uint32_t consumed = 0;   ///< slots that the producer has consumed of the lane in the other direction
  uint32_t data_at = 0;    ///< place of the payload in the data ring; unused when it is inline
};

struct alignas(64) Slot {
  // Released by the producer when all else of the slot, and its payload, is written; acquired by the consumer. It is
  // never reset: numbers tell the rounds of the ring apart, and wrap.
  std::atomic<uint32_t> sequence;  ///< number of the slot since the lane began, plus one, once it is filled
  SlotHeader header;
  std::byte body[kInlineBytes];  ///< the payload when length <= kInlineBytes and the kind has no fields of its own
};
static_assert(sizeof(Slot) == 64 && offsetof(Slot, body) == 24);

/// Bodies of the kinds that have fields. `send` chunks of more than kInlineBytes start with SendFields.
struct SendFields {
  uint32_t total;  ///< bytes of the whole message
  uint32_t reserved;
  uint64_t begun_ns;  ///< of the first chunk of a long message: when it was sent, CLOCK_MONOTONIC; else nothing
};
struct PrivateFields {
  uint64_t address;
  uint64_t begun_ns;
  uint32_t key;  ///< of the producer's own region
  uint32_t total;
};
struct RemoteFields {  // write, read, write_done
  uint64_t remote_address;
  uint32_t key;
  uint32_t total;      ///< bytes of the whole message
  uint32_t operation;  ///< read: number of the response
  uint32_t reserved;
};
struct AtomicFields {
  uint64_t remote_address;
  uint64_t compare_or_add;
  uint64_t swap;
  uint32_t key;
  uint32_t operation;  ///< number of the response
};
struct SharedFields {
  uint64_t offset;
  uint32_t arena_id;
  uint32_t total;
};
struct DatagramFields {
  uint32_t qkey;
  uint8_t source_gid_index;
  uint8_t target_gid_index;
  uint8_t is_loopback;  ///< both indices are into the consumer's own table
  uint8_t reserved;
};
static_assert(sizeof(AtomicFields) <= kInlineBytes);

struct alignas(16) Response {
  std::atomic<uint32_t> sequence;  ///< number of the operation, plus one, once it is answered
  uint32_t reserved;
  // What was in the memory before an atomic; of a READ nothing: its bytes are in `read_buffer`.
  uint64_t value;
};

/// Why the consumer refused the message that starts at slot `consumed`. 0: it did not. `memory`: it has not got the
/// producer's memory that the message lies in; this alone ends a producer of UC, too, which knows no refusals else.
enum class Refusal : uint32_t { none = 0, invalid_request = 1, access = 2, operation = 3, memory = 4 };

struct LaneMemory {
  // Written by the producer: with every one-sided operation, and seldom. Two lines apart, since processors fetch pairs.
  alignas(128) std::atomic<uint32_t> announced_key;   ///< region that it is copying from or to right now
  alignas(128) std::atomic<uint32_t> producer_waits;  ///< for room: its service thread is rung when `consumed` moves
  std::atomic<uint32_t> is_ended;         ///< it has flushed its sends: what finds no receive by now is lost
  std::atomic<uint32_t> producer_fences;  ///< it uses heavy fences: the consumer may use light ones
  // Written by the consumer, often.
  alignas(128) std::atomic<uint32_t> consumed;  ///< slots done with
  std::atomic<uint32_t> refusal;                ///< enum Refusal
  std::atomic<uint32_t> waits_for_receive;      ///< number of the slot, plus one, that found no receive posted
  // Written by the consumer, seldom.
  alignas(128) std::atomic<uint32_t> consumer_fences;  ///< it uses heavy fences: the producer may use light ones
  std::atomic<uint32_t> access;                        ///< qp_access_flags of its queue pair
  // As `access` and `pulls`, written and read relaxed: who goes by an old one acts as a moment ago.
  std::atomic<uint32_t> rnr_timer_us;
  std::atomic<uint32_t> is_closed;  ///< its queue pair was reset, destroyed or is in error
  std::atomic<uint32_t> pulls;      ///< lengths of SENDs in private memory that it wants to read itself: SendWays
  alignas(128) Response responses[kLaneResponses];
  alignas(4096) std::byte read_buffer[kLaneReadBufferBytes];
  alignas(4096) Slot slots[kLaneSlots];
  alignas(4096) std::byte data[kLaneDataBytes];
};
inline constexpr size_t kLaneBytes = sizeof(LaneMemory);
static_assert(2 * kLaneBytes <= 512U << 10U, "a connected pair's shared memory");
static_assert(std::atomic<uint32_t>::is_always_lock_free && std::atomic<uint64_t>::is_always_lock_free);

}  // namespace ringbolt::link
