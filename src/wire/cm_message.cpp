#include "wire/cm_message.h"

#include <cerrno>
#include <type_traits>

namespace ringbolt::wire {

base::Result<CmMad> parse_cm(MadIn mad) {
  const MadHeader header = parse_mad_header(mad);
  if (header.base_version != kMadBaseVersion || header.management_class != kMadClassCm ||
      header.class_version != kCmClassVersion || header.method != kMadMethodSend) {
    return base::fail(EPROTONOSUPPORT);
  }
  switch (header.attribute) {
    case kCmReq:
      return CmMad{header.transaction_id, parse_cm_req(mad)};
    case kCmMra:
      return CmMad{header.transaction_id, parse_cm_mra(mad)};
    case kCmRej:
      return CmMad{header.transaction_id, parse_cm_rej(mad)};
    case kCmRep:
      return CmMad{header.transaction_id, parse_cm_rep(mad)};
    case kCmRtu:
      return CmMad{header.transaction_id, parse_cm_rtu(mad)};
    case kCmDreq:
      return CmMad{header.transaction_id, parse_cm_dreq(mad)};
    case kCmDrep:
      return CmMad{header.transaction_id, parse_cm_drep(mad)};
    case kCmSidrReq:
      return CmMad{header.transaction_id, parse_cm_sidr_req(mad)};
    case kCmSidrRep:
      return CmMad{header.transaction_id, parse_cm_sidr_rep(mad)};
    default:
      return base::fail(EPROTONOSUPPORT);
  }
}

void emit(const CmMad& cm, MadOut mad) {
  std::visit(
      [&](const auto& message) {
        MadHeader header;
        header.transaction_id = cm.transaction_id;
        header.attribute = std::remove_cvref_t<decltype(message)>::kAttribute;
        emit(header, mad);
        emit(message, mad);
      },
      cm.message);
}

}  // namespace ringbolt::wire
