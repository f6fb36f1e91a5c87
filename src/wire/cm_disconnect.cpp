#include "wire/cm_disconnect.h"

#include "wire/cm_body.h"

namespace ringbolt::wire {
namespace {

struct DreqAt {
  static constexpr size_t local_id = 0, remote_id = 4, remote_qpn = 8, private_data = 12;
};
static_assert(DreqAt::private_data + CmDreq::kPrivateBytes == kCmBodyBytes);

struct DrepAt {
  static constexpr size_t local_id = 0, remote_id = 4, private_data = 8;
};
static_assert(DrepAt::private_data + CmDrep::kPrivateBytes == kCmBodyBytes);

}  // namespace

CmDreq parse_cm_dreq(MadIn mad) {
  const CmBodyIn in = cm_body(mad);
  return {.local_id = get_be<uint32_t>(in, DreqAt::local_id),
          .remote_id = get_be<uint32_t>(in, DreqAt::remote_id),
          .remote_qpn = get_be24(in, DreqAt::remote_qpn),
          .private_data = get_bytes<std::byte, CmDreq::kPrivateBytes>(in, DreqAt::private_data)};
}

void emit(const CmDreq& dreq, MadOut mad) {
  const CmBodyOut out = blank_cm_body(mad);
  put_be(out, DreqAt::local_id, dreq.local_id);
  put_be(out, DreqAt::remote_id, dreq.remote_id);
  put_be24(out, DreqAt::remote_qpn, dreq.remote_qpn);
  put_bytes(out, DreqAt::private_data, dreq.private_data);
}

CmDrep parse_cm_drep(MadIn mad) {
  const CmBodyIn in = cm_body(mad);
  return {.local_id = get_be<uint32_t>(in, DrepAt::local_id),
          .remote_id = get_be<uint32_t>(in, DrepAt::remote_id),
          .private_data = get_bytes<std::byte, CmDrep::kPrivateBytes>(in, DrepAt::private_data)};
}

void emit(const CmDrep& drep, MadOut mad) {
  const CmBodyOut out = blank_cm_body(mad);
  put_be(out, DrepAt::local_id, drep.local_id);
  put_be(out, DrepAt::remote_id, drep.remote_id);
  put_bytes(out, DrepAt::private_data, drep.private_data);
}

}  // namespace ringbolt::wire
