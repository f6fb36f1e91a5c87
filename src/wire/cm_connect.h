#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "wire/cm_path.h"
#include "wire/mad.h"

/// The three messages that make a connection. Numbers in host order; widths as commented, wider values are cut.
/// parse_*: reads the body, whatever the header says. emit: writes the body, all bytes after the header.
namespace ringbolt::wire {

enum class CmTransport : uint8_t { rc = 0, uc = 1, rd = 2, extended = 3 };

/// A wish for a connection. Values only: whether its numbers make sense is the state machine's to say (src/cm).
struct CmReq {
  static constexpr uint16_t kAttribute = wire::kCmReq;
  static constexpr size_t kPrivateBytes = 92;

  uint32_t local_id = 0;
  uint64_t service_id = 0;
  uint64_t local_guid = 0;
  uint32_t qkey = 0;
  uint32_t local_qpn = 0;  ///< 24 bits
  uint8_t responder_resources = 0;
  uint32_t local_eecn = 0;  ///< 24 bits
  uint8_t initiator_depth = 0;
  uint32_t remote_eecn = 0;       ///< 24 bits
  uint8_t remote_cm_timeout = 0;  ///< 5 bits, 4.096 us * 2^n
  CmTransport transport = CmTransport::rc;
  bool has_flow_control = false;
  uint32_t starting_psn = 0;     ///< 24 bits
  uint8_t local_cm_timeout = 0;  ///< 5 bits, 4.096 us * 2^n
  uint8_t retry_count = 0;       ///< 3 bits
  uint16_t pkey = 0xffff;
  uint8_t path_mtu = 0;  ///< 4 bits, 1: 256 ... 5: 4096 bytes
  bool rdc_exists = false;
  uint8_t rnr_retry_count = 0;  ///< 3 bits
  uint8_t max_cm_retries = 0;   ///< 4 bits
  bool has_srq = false;
  uint8_t extended_transport = 0;  ///< 3 bits, 1: XRC
  CmPath primary;
  CmPath alternate;
  std::array<std::byte, kPrivateBytes> private_data{};
  friend bool operator==(const CmReq&, const CmReq&) = default;
};

/// The answer of who takes it. `local_id` is its sender's, `remote_id` that of who gets it, as in all messages after
/// it.
struct CmRep {
  static constexpr uint16_t kAttribute = wire::kCmRep;
  static constexpr size_t kPrivateBytes = 196;

  uint32_t local_id = 0;
  uint32_t remote_id = 0;
  uint32_t qkey = 0;
  uint32_t local_qpn = 0;     ///< 24 bits
  uint32_t local_eecn = 0;    ///< 24 bits
  uint32_t starting_psn = 0;  ///< 24 bits
  uint8_t responder_resources = 0;
  uint8_t initiator_depth = 0;
  uint8_t target_ack_delay = 0;  ///< 5 bits
  uint8_t failover = 0;          ///< 2 bits
  bool has_flow_control = false;
  uint8_t rnr_retry_count = 0;  ///< 3 bits
  bool has_srq = false;
  uint64_t local_guid = 0;
  std::array<std::byte, kPrivateBytes> private_data{};
  friend bool operator==(const CmRep&, const CmRep&) = default;
};

/// Ready to use.
struct CmRtu {
  static constexpr uint16_t kAttribute = wire::kCmRtu;
  static constexpr size_t kPrivateBytes = 224;

  uint32_t local_id = 0;
  uint32_t remote_id = 0;
  std::array<std::byte, kPrivateBytes> private_data{};
  friend bool operator==(const CmRtu&, const CmRtu&) = default;
};

CmReq parse_cm_req(MadIn mad);
CmRep parse_cm_rep(MadIn mad);
CmRtu parse_cm_rtu(MadIn mad);

void emit(const CmReq& message, MadOut mad);
void emit(const CmRep& message, MadOut mad);
void emit(const CmRtu& message, MadOut mad);

}  // namespace ringbolt::wire
