#pragma once

#include <array>
#include <cstdint>

/// Syndromes of the AETH (IBTA volume 1, section 9.7.5.2.1) and the RNR timer codes (table 45).
namespace ringbolt::wire {

inline constexpr uint8_t kSyndromeKindMask = 0xe0;
inline constexpr uint8_t kSyndromeAck = 0x00;  ///< low five bits: credit code
inline constexpr uint8_t kSyndromeRnr = 0x20;  ///< low five bits: timer code
inline constexpr uint8_t kSyndromeNak = 0x60;  ///< low five bits: why

/// An ACK that limits nothing.
inline constexpr uint8_t kAckUnlimited = 0x1f;

// NAK codes, the kind included.
inline constexpr uint8_t kNakSequence = 0x60;
inline constexpr uint8_t kNakInvalidRequest = 0x61;
inline constexpr uint8_t kNakRemoteAccess = 0x62;
inline constexpr uint8_t kNakRemoteOperation = 0x63;

constexpr bool is_ack(uint8_t syndrome) { return (syndrome & kSyndromeKindMask) == kSyndromeAck; }
constexpr bool is_rnr_nak(uint8_t syndrome) { return (syndrome & kSyndromeKindMask) == kSyndromeRnr; }
constexpr bool is_nak(uint8_t syndrome) { return (syndrome & kSyndromeKindMask) == kSyndromeNak; }

/// How long a sender waits after an RNR NAK; `code` counts modulo 32.
constexpr uint32_t rnr_timer_us(uint8_t code) {
  constexpr std::array<uint32_t, 32> table{655360, 10,    20,    30,     40,     60,     80,     120,
                                           160,    240,   320,   480,    640,    960,    1280,   1920,
                                           2560,   3840,  5120,  7680,   10240,  15360,  20480,  30720,
                                           40960,  61440, 81920, 122880, 163840, 245760, 327680, 491520};
  return table[code & 0x1f];
}

}  // namespace ringbolt::wire
