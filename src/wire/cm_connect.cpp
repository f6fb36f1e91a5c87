#include "wire/cm_connect.h"

#include "wire/cm_body.h"

namespace ringbolt::wire {
namespace {

// Offsets in the body; where several fields share a byte, their bits are in the code below.
struct ReqAt {
  static constexpr size_t local_id = 0, service_id = 8, local_guid = 16, qkey = 28, local_qpn = 32,
                          responder_resources = 35, local_eecn = 36, initiator_depth = 39, remote_eecn = 40,
                          transport = 43, starting_psn = 44, timeouts = 47, pkey = 48, mtu = 50, retries = 51,
                          primary = 52, alternate = 96, private_data = 140;
};
static_assert(ReqAt::private_data + CmReq::kPrivateBytes == kCmBodyBytes);

struct RepAt {
  static constexpr size_t local_id = 0, remote_id = 4, qkey = 8, local_qpn = 12, local_eecn = 16, starting_psn = 20,
                          responder_resources = 24, initiator_depth = 25, delays = 26, retries = 27, local_guid = 28,
                          private_data = 36;
};
static_assert(RepAt::private_data + CmRep::kPrivateBytes == kCmBodyBytes);

struct RtuAt {
  static constexpr size_t local_id = 0, remote_id = 4, private_data = 8;
};
static_assert(RtuAt::private_data + CmRtu::kPrivateBytes == kCmBodyBytes);

}  // namespace

CmReq parse_cm_req(MadIn mad) {
  const CmBodyIn in = cm_body(mad);
  CmReq req;
  req.local_id = get_be<uint32_t>(in, ReqAt::local_id);
  req.service_id = get_be<uint64_t>(in, ReqAt::service_id);
  req.local_guid = get_be<uint64_t>(in, ReqAt::local_guid);
  req.qkey = get_be<uint32_t>(in, ReqAt::qkey);
  req.local_qpn = get_be24(in, ReqAt::local_qpn);
  req.responder_resources = get_be<uint8_t>(in, ReqAt::responder_resources);
  req.local_eecn = get_be24(in, ReqAt::local_eecn);
  req.initiator_depth = get_be<uint8_t>(in, ReqAt::initiator_depth);
  req.remote_eecn = get_be24(in, ReqAt::remote_eecn);
  req.remote_cm_timeout = get_bits(in, ReqAt::transport, 0, 5);
  req.transport = static_cast<CmTransport>(get_bits(in, ReqAt::transport, 5, 2));
  req.has_flow_control = get_bits(in, ReqAt::transport, 7, 1) != 0;
  req.starting_psn = get_be24(in, ReqAt::starting_psn);
  req.local_cm_timeout = get_bits(in, ReqAt::timeouts, 0, 5);
  req.retry_count = get_bits(in, ReqAt::timeouts, 5, 3);
  req.pkey = get_be<uint16_t>(in, ReqAt::pkey);
  req.path_mtu = get_bits(in, ReqAt::mtu, 0, 4);
  req.rdc_exists = get_bits(in, ReqAt::mtu, 4, 1) != 0;
  req.rnr_retry_count = get_bits(in, ReqAt::mtu, 5, 3);
  req.max_cm_retries = get_bits(in, ReqAt::retries, 0, 4);
  req.has_srq = get_bits(in, ReqAt::retries, 4, 1) != 0;
  req.extended_transport = get_bits(in, ReqAt::retries, 5, 3);
  req.primary = parse_cm_path(in.subspan<ReqAt::primary, kCmPathBytes>());
  req.alternate = parse_cm_path(in.subspan<ReqAt::alternate, kCmPathBytes>());
  req.private_data = get_bytes<std::byte, CmReq::kPrivateBytes>(in, ReqAt::private_data);
  return req;
}

void emit(const CmReq& req, MadOut mad) {
  const CmBodyOut out = blank_cm_body(mad);
  put_be(out, ReqAt::local_id, req.local_id);
  put_be(out, ReqAt::service_id, req.service_id);
  put_be(out, ReqAt::local_guid, req.local_guid);
  put_be(out, ReqAt::qkey, req.qkey);
  put_be24(out, ReqAt::local_qpn, req.local_qpn);
  put_be(out, ReqAt::responder_resources, req.responder_resources);
  put_be24(out, ReqAt::local_eecn, req.local_eecn);
  put_be(out, ReqAt::initiator_depth, req.initiator_depth);
  put_be24(out, ReqAt::remote_eecn, req.remote_eecn);
  put_bits(out, ReqAt::transport, 0, 5, req.remote_cm_timeout);
  put_bits(out, ReqAt::transport, 5, 2, static_cast<unsigned>(req.transport));
  put_bits(out, ReqAt::transport, 7, 1, req.has_flow_control ? 1 : 0);
  put_be24(out, ReqAt::starting_psn, req.starting_psn);
  put_bits(out, ReqAt::timeouts, 0, 5, req.local_cm_timeout);
  put_bits(out, ReqAt::timeouts, 5, 3, req.retry_count);
  put_be(out, ReqAt::pkey, req.pkey);
  put_bits(out, ReqAt::mtu, 0, 4, req.path_mtu);
  put_bits(out, ReqAt::mtu, 4, 1, req.rdc_exists ? 1 : 0);
  put_bits(out, ReqAt::mtu, 5, 3, req.rnr_retry_count);
  put_bits(out, ReqAt::retries, 0, 4, req.max_cm_retries);
  put_bits(out, ReqAt::retries, 4, 1, req.has_srq ? 1 : 0);
  put_bits(out, ReqAt::retries, 5, 3, req.extended_transport);
  emit(req.primary, out.subspan<ReqAt::primary, kCmPathBytes>());
  emit(req.alternate, out.subspan<ReqAt::alternate, kCmPathBytes>());
  put_bytes(out, ReqAt::private_data, req.private_data);
}

CmRep parse_cm_rep(MadIn mad) {
  const CmBodyIn in = cm_body(mad);
  CmRep rep;
  rep.local_id = get_be<uint32_t>(in, RepAt::local_id);
  rep.remote_id = get_be<uint32_t>(in, RepAt::remote_id);
  rep.qkey = get_be<uint32_t>(in, RepAt::qkey);
  rep.local_qpn = get_be24(in, RepAt::local_qpn);
  rep.local_eecn = get_be24(in, RepAt::local_eecn);
  rep.starting_psn = get_be24(in, RepAt::starting_psn);
  rep.responder_resources = get_be<uint8_t>(in, RepAt::responder_resources);
  rep.initiator_depth = get_be<uint8_t>(in, RepAt::initiator_depth);
  rep.target_ack_delay = get_bits(in, RepAt::delays, 0, 5);
  rep.failover = get_bits(in, RepAt::delays, 5, 2);
  rep.has_flow_control = get_bits(in, RepAt::delays, 7, 1) != 0;
  rep.rnr_retry_count = get_bits(in, RepAt::retries, 0, 3);
  rep.has_srq = get_bits(in, RepAt::retries, 3, 1) != 0;
  rep.local_guid = get_be<uint64_t>(in, RepAt::local_guid);
  rep.private_data = get_bytes<std::byte, CmRep::kPrivateBytes>(in, RepAt::private_data);
  return rep;
}

void emit(const CmRep& rep, MadOut mad) {
  const CmBodyOut out = blank_cm_body(mad);
  put_be(out, RepAt::local_id, rep.local_id);
  put_be(out, RepAt::remote_id, rep.remote_id);
  put_be(out, RepAt::qkey, rep.qkey);
  put_be24(out, RepAt::local_qpn, rep.local_qpn);
  put_be24(out, RepAt::local_eecn, rep.local_eecn);
  put_be24(out, RepAt::starting_psn, rep.starting_psn);
  put_be(out, RepAt::responder_resources, rep.responder_resources);
  put_be(out, RepAt::initiator_depth, rep.initiator_depth);
  put_bits(out, RepAt::delays, 0, 5, rep.target_ack_delay);
  put_bits(out, RepAt::delays, 5, 2, rep.failover);
  put_bits(out, RepAt::delays, 7, 1, rep.has_flow_control ? 1 : 0);
  put_bits(out, RepAt::retries, 0, 3, rep.rnr_retry_count);
  put_bits(out, RepAt::retries, 3, 1, rep.has_srq ? 1 : 0);
  put_be(out, RepAt::local_guid, rep.local_guid);
  put_bytes(out, RepAt::private_data, rep.private_data);
}

CmRtu parse_cm_rtu(MadIn mad) {
  const CmBodyIn in = cm_body(mad);
  return {.local_id = get_be<uint32_t>(in, RtuAt::local_id),
          .remote_id = get_be<uint32_t>(in, RtuAt::remote_id),
          .private_data = get_bytes<std::byte, CmRtu::kPrivateBytes>(in, RtuAt::private_data)};
}

void emit(const CmRtu& rtu, MadOut mad) {
  const CmBodyOut out = blank_cm_body(mad);
  put_be(out, RtuAt::local_id, rtu.local_id);
  put_be(out, RtuAt::remote_id, rtu.remote_id);
  put_bytes(out, RtuAt::private_data, rtu.private_data);
}

}  // namespace ringbolt::wire
