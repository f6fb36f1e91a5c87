#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "wire/mad.h"

/// Service id resolution: who serves this id, for datagrams. Numbers in host order; parse and emit as in cm_connect.h.
namespace ringbolt::wire {

/// Has no communication ids: request_id is what the answer repeats.
struct CmSidrReq {
  static constexpr uint16_t kAttribute = wire::kCmSidrReq;
  static constexpr size_t kPrivateBytes = 216;

  uint32_t request_id = 0;
  uint16_t pkey = 0xffff;
  uint64_t service_id = 0;
  std::array<std::byte, kPrivateBytes> private_data{};
  friend bool operator==(const CmSidrReq&, const CmSidrReq&) = default;
};

inline constexpr uint8_t kSidrOk = 0;
inline constexpr uint8_t kSidrUnsupported = 1;  ///< nobody listens
inline constexpr uint8_t kSidrRejected = 2;
inline constexpr uint8_t kSidrNoQp = 3;
inline constexpr uint8_t kSidrRedirect = 4;
inline constexpr uint8_t kSidrVersion = 5;

struct CmSidrRep {
  static constexpr uint16_t kAttribute = wire::kCmSidrRep;
  static constexpr size_t kInfoBytes = 72;
  static constexpr size_t kPrivateBytes = 136;

  uint32_t request_id = 0;
  uint8_t status = kSidrOk;
  uint8_t info_length = 0;  ///< as it came, may exceed kInfoBytes
  uint32_t qpn = 0;         ///< 24 bits
  uint64_t service_id = 0;
  uint32_t qkey = 0;
  std::array<std::byte, kInfoBytes> info{};
  std::array<std::byte, kPrivateBytes> private_data{};
  friend bool operator==(const CmSidrRep&, const CmSidrRep&) = default;
};

CmSidrReq parse_cm_sidr_req(MadIn mad);
CmSidrRep parse_cm_sidr_rep(MadIn mad);

void emit(const CmSidrReq& message, MadOut mad);
void emit(const CmSidrRep& message, MadOut mad);

}  // namespace ringbolt::wire
