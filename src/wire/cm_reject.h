#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "wire/mad.h"

/// "No" and "wait". Numbers in host order; parse and emit as in cm_connect.h.
namespace ringbolt::wire {

/// Which message a REJ or MRA answers.
enum class CmAnswered : uint8_t { req = 0, rep = 1, other = 2, reserved = 3 };

/// Reasons of a REJ (IBTA volume 1, table 108); those that we send or look at.
inline constexpr uint16_t kRejNoQp = 1;
inline constexpr uint16_t kRejNoResources = 3;
inline constexpr uint16_t kRejTimeout = 4;
inline constexpr uint16_t kRejUnsupported = 5;
inline constexpr uint16_t kRejInvalidCommId = 6;
inline constexpr uint16_t kRejInvalidServiceId = 8;
inline constexpr uint16_t kRejTransport = 9;
inline constexpr uint16_t kRejStaleConnection = 10;
inline constexpr uint16_t kRejInvalidGid = 12;
inline constexpr uint16_t kRejConsumer = 28;
inline constexpr uint16_t kRejDuplicateCommId = 30;
inline constexpr uint16_t kRejClassVersion = 31;
inline constexpr uint16_t kRejVendorOption = 35;

/// What `info` means depends on the reason.
struct CmRej {
  static constexpr uint16_t kAttribute = wire::kCmRej;
  static constexpr size_t kInfoBytes = 72;
  static constexpr size_t kPrivateBytes = 148;

  uint32_t local_id = 0;
  uint32_t remote_id = 0;
  CmAnswered answered = CmAnswered::req;
  uint8_t info_length = 0;  ///< 7 bits; as it came, may exceed kInfoBytes
  uint16_t reason = 0;
  std::array<std::byte, kInfoBytes> info{};
  std::array<std::byte, kPrivateBytes> private_data{};
  friend bool operator==(const CmRej&, const CmRej&) = default;
};

/// Message receipt acknowledged: the answer will take a while.
struct CmMra {
  static constexpr uint16_t kAttribute = wire::kCmMra;
  static constexpr size_t kPrivateBytes = 222;

  uint32_t local_id = 0;
  uint32_t remote_id = 0;
  CmAnswered answered = CmAnswered::req;
  uint8_t service_timeout = 0;  ///< 5 bits, 4.096 us * 2^n
  std::array<std::byte, kPrivateBytes> private_data{};
  friend bool operator==(const CmMra&, const CmMra&) = default;
};

CmRej parse_cm_rej(MadIn mad);
CmMra parse_cm_mra(MadIn mad);

void emit(const CmRej& message, MadOut mad);
void emit(const CmMra& message, MadOut mad);

}  // namespace ringbolt::wire
