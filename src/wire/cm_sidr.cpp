#include "wire/cm_sidr.h"

#include "wire/cm_body.h"

namespace ringbolt::wire {
namespace {

struct ReqAt {
  static constexpr size_t request_id = 0, pkey = 4, service_id = 8, private_data = 16;
};
static_assert(ReqAt::private_data + CmSidrReq::kPrivateBytes == kCmBodyBytes);

struct RepAt {
  static constexpr size_t request_id = 0, status = 4, info_length = 5, qpn = 8, service_id = 12, qkey = 20, info = 24,
                          private_data = 96;
};
static_assert(RepAt::private_data + CmSidrRep::kPrivateBytes == kCmBodyBytes);

}  // namespace

CmSidrReq parse_cm_sidr_req(MadIn mad) {
  const CmBodyIn in = cm_body(mad);
  return {.request_id = get_be<uint32_t>(in, ReqAt::request_id),
          .pkey = get_be<uint16_t>(in, ReqAt::pkey),
          .service_id = get_be<uint64_t>(in, ReqAt::service_id),
          .private_data = get_bytes<std::byte, CmSidrReq::kPrivateBytes>(in, ReqAt::private_data)};
}

void emit(const CmSidrReq& req, MadOut mad) {
  const CmBodyOut out = blank_cm_body(mad);
  put_be(out, ReqAt::request_id, req.request_id);
  put_be(out, ReqAt::pkey, req.pkey);
  put_be(out, ReqAt::service_id, req.service_id);
  put_bytes(out, ReqAt::private_data, req.private_data);
}

CmSidrRep parse_cm_sidr_rep(MadIn mad) {
  const CmBodyIn in = cm_body(mad);
  return {.request_id = get_be<uint32_t>(in, RepAt::request_id),
          .status = get_be<uint8_t>(in, RepAt::status),
          .info_length = get_be<uint8_t>(in, RepAt::info_length),
          .qpn = get_be24(in, RepAt::qpn),
          .service_id = get_be<uint64_t>(in, RepAt::service_id),
          .qkey = get_be<uint32_t>(in, RepAt::qkey),
          .info = get_bytes<std::byte, CmSidrRep::kInfoBytes>(in, RepAt::info),
          .private_data = get_bytes<std::byte, CmSidrRep::kPrivateBytes>(in, RepAt::private_data)};
}

void emit(const CmSidrRep& rep, MadOut mad) {
  const CmBodyOut out = blank_cm_body(mad);
  put_be(out, RepAt::request_id, rep.request_id);
  put_be(out, RepAt::status, rep.status);
  put_be(out, RepAt::info_length, rep.info_length);
  put_be24(out, RepAt::qpn, rep.qpn);
  put_be(out, RepAt::service_id, rep.service_id);
  put_be(out, RepAt::qkey, rep.qkey);
  put_bytes(out, RepAt::info, rep.info);
  put_bytes(out, RepAt::private_data, rep.private_data);
}

}  // namespace ringbolt::wire
