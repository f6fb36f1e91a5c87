#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "wire/mad.h"

/// What two processes of ours agree on so that each hears of the other's end: docs/formats/lifeline.md.
namespace ringbolt::wire {

/// A vendor's class, whose datagrams say whose they are: who does not know them drops them (IBTA volume 1, 13.4.4 and
/// 16.5), and a "send" gets no answer.
inline constexpr uint8_t kMadClassLifeline = 0x4f;
inline constexpr uint8_t kLifelineClassVersion = 1;
inline constexpr uint32_t kLifelineOui = 0x025242;  ///< locally administered

/// "I can be reached at this TCP port": in the name of one connection, sent to the process that has its other end.
struct LifelineOffer {
  uint32_t local_id = 0;   ///< the connection, as its sender names it
  uint32_t remote_id = 0;  ///< as its receiver does
  uint64_t token = 0;      ///< the sending process: random, never used again
  uint16_t port = 0;       ///< its TCP port at the address that the datagram comes from
  bool is_answer = false;  ///< to an offer; nobody answers it
  friend bool operator==(const LifelineOffer&, const LifelineOffer&) = default;
};

/// Nothing for a datagram of another kind.
std::optional<LifelineOffer> parse_lifeline_offer(MadIn mad);
/// Writes all 256 bytes.
void emit(const LifelineOffer& offer, MadOut mad);

/// All that is ever said over a lifeline.
struct LifelineWord {
  enum class Kind : uint32_t {
    hello = 1,    ///< the caller's
    welcome = 2,  ///< the called one's: the line stands
    bye = 3,      ///< the line is not needed any more: its end means nothing
  };
  Kind kind = Kind::hello;
  uint64_t sender = 0;  ///< tokens of both processes
  uint64_t receiver = 0;
  friend bool operator==(const LifelineWord&, const LifelineWord&) = default;
};

inline constexpr size_t kLifelineWordBytes = 24;
std::optional<LifelineWord> parse_lifeline_word(std::span<const std::byte, kLifelineWordBytes> bytes);
std::array<std::byte, kLifelineWordBytes> emit(const LifelineWord& word);

}  // namespace ringbolt::wire
