#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "wire/mad.h"

/// The end of a connection. Numbers in host order; parse and emit as in cm_connect.h.
namespace ringbolt::wire {

struct CmDreq {
  static constexpr uint16_t kAttribute = wire::kCmDreq;
  static constexpr size_t kPrivateBytes = 220;

  uint32_t local_id = 0;
  uint32_t remote_id = 0;
  uint32_t remote_qpn = 0;  ///< 24 bits, of the receiver of this message
  std::array<std::byte, kPrivateBytes> private_data{};
  friend bool operator==(const CmDreq&, const CmDreq&) = default;
};

struct CmDrep {
  static constexpr uint16_t kAttribute = wire::kCmDrep;
  static constexpr size_t kPrivateBytes = 224;

  uint32_t local_id = 0;
  uint32_t remote_id = 0;
  std::array<std::byte, kPrivateBytes> private_data{};
  friend bool operator==(const CmDrep&, const CmDrep&) = default;
};

CmDreq parse_cm_dreq(MadIn mad);
CmDrep parse_cm_drep(MadIn mad);

void emit(const CmDreq& message, MadOut mad);
void emit(const CmDrep& message, MadOut mad);

}  // namespace ringbolt::wire
