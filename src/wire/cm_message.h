#pragma once

#include <cstdint>
#include <variant>

#include "base/result.h"
#include "wire/cm_connect.h"
#include "wire/cm_disconnect.h"
#include "wire/cm_reject.h"
#include "wire/cm_sidr.h"
#include "wire/mad.h"

namespace ringbolt::wire {

// In the order of their attribute numbers.
using CmMessage = std::variant<CmReq, CmMra, CmRej, CmRep, CmRtu, CmDreq, CmDrep, CmSidrReq, CmSidrRep>;

/// A whole CM datagram: the message and what its header adds.
struct CmMad {
  uint64_t transaction_id = 0;
  CmMessage message;
  friend bool operator==(const CmMad&, const CmMad&) = default;
};

/// Accepts any bytes. Errors: EPROTONOSUPPORT: another base version, class, class version, method or attribute; LAP and
/// APR (alternate paths) are among them. Such datagrams get no answer.
base::Result<CmMad> parse_cm(MadIn mad);

/// Writes all 256 bytes.
void emit(const CmMad& message, MadOut mad);

}  // namespace ringbolt::wire
