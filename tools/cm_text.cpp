#include "cm_text.h"

#include <fmt/format.h>

#include <variant>

#include "wire/cm_message.h"
#include "wire/cm_private.h"

namespace ringbolt::tools {
namespace {

std::string service_of(uint64_t id) {
  const uint16_t port = wire::cm_service_port(id);
  switch (wire::cm_port_space(id)) {
    case wire::kPortSpaceTcp:
      return fmt::format("TCP port {}", port);
    case wire::kPortSpaceUdp:
      return fmt::format("UDP port {}", port);
    case wire::kPortSpaceIb:
      return fmt::format("IB port {}", port);
    case wire::kPortSpaceIpoib:
      return fmt::format("IPoIB port {}", port);
    default:
      return fmt::format("service {:#x}", id);
  }
}

std::string answered_of(wire::CmAnswered answered) {
  switch (answered) {
    case wire::CmAnswered::req:
      return "the REQ";
    case wire::CmAnswered::rep:
      return "the REP";
    default:
      return "no message";
  }
}

struct Words {
  std::string operator()(const wire::CmReq& req) const {
    const char* transport = req.transport == wire::CmTransport::uc   ? "UC"
                            : req.transport == wire::CmTransport::rc ? "RC"
                                                                     : "other";
    return fmt::format("REQ id {:#x} to {}, {} QP {:#x} PSN {}, reads {}/{}, retries {}, RNR retries {}", req.local_id,
                       service_of(req.service_id), transport, req.local_qpn, req.starting_psn, req.responder_resources,
                       req.initiator_depth, req.retry_count, req.rnr_retry_count);
  }
  std::string operator()(const wire::CmRep& rep) const {
    return fmt::format("REP id {:#x} to {:#x}, QP {:#x} PSN {}, reads {}/{}, RNR retries {}", rep.local_id,
                       rep.remote_id, rep.local_qpn, rep.starting_psn, rep.responder_resources, rep.initiator_depth,
                       rep.rnr_retry_count);
  }
  std::string operator()(const wire::CmRtu& rtu) const {
    return fmt::format("RTU id {:#x} to {:#x}", rtu.local_id, rtu.remote_id);
  }
  std::string operator()(const wire::CmMra& mra) const {
    return fmt::format("MRA id {:#x} to {:#x}: {} takes longer", mra.local_id, mra.remote_id,
                       answered_of(mra.answered));
  }
  std::string operator()(const wire::CmRej& rej) const {
    return fmt::format("REJ id {:#x} to {:#x}: {} is refused, reason {}", rej.local_id, rej.remote_id,
                       answered_of(rej.answered), rej.reason);
  }
  std::string operator()(const wire::CmDreq& dreq) const {
    return fmt::format("DREQ id {:#x} to {:#x}, QP {:#x}", dreq.local_id, dreq.remote_id, dreq.remote_qpn);
  }
  std::string operator()(const wire::CmDrep& drep) const {
    return fmt::format("DREP id {:#x} to {:#x}", drep.local_id, drep.remote_id);
  }
  std::string operator()(const wire::CmSidrReq& req) const {
    return fmt::format("SIDR_REQ id {:#x} to {}", req.request_id, service_of(req.service_id));
  }
  std::string operator()(const wire::CmSidrRep& rep) const {
    return fmt::format("SIDR_REP id {:#x}: status {}, QP {:#x} Q_Key {:#x}", rep.request_id, rep.status, rep.qpn,
                       rep.qkey);
  }
};

}  // namespace

std::string describe_cm(wire::MadIn mad) {
  const auto message = wire::parse_cm(mad);
  if (!message) {
    const wire::MadHeader header = wire::parse_mad_header(mad);
    return fmt::format("management class {:#x} method {:#x} attribute {:#x}", header.management_class, header.method,
                       header.attribute);
  }
  return std::visit(Words{}, message->message);
}

}  // namespace ringbolt::tools
