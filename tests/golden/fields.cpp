#include "fields.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <variant>

#include "wire/bytes.h"
#include "wire/cm_private.h"
#include "wire/opcode.h"

namespace ringbolt::golden {
namespace {

using namespace wire;

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  }
  return text;
}

std::string as_text(const Address& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  inet_ntop(is_ipv4(address) ? AF_INET : AF_INET6, address.data() + (is_ipv4(address) ? 12 : 0), text.data(),
            text.size());
  return text.data();
}

class Collector {
 public:
  Collector(Fields& fields, std::string prefix) : fields_(fields), prefix_(std::move(prefix)) {}

  void add(const std::string& name, uint64_t value) { fields_[prefix_ + name] = std::to_string(value); }
  void add(const std::string& name, std::span<const std::byte> bytes) { fields_[prefix_ + name] = hex(bytes); }
  void add(const std::string& name, const Address& address) { fields_[prefix_ + name] = as_text(address); }

 private:
  Fields& fields_;
  std::string prefix_;
};

void add_extensions(const Headers& headers, Collector& in) {
  const uint8_t opcode = headers.bth.opcode;
  if (has_reth(opcode)) {
    in.add("reth.va", headers.reth.address);
    in.add("reth.r_key", headers.reth.key);
    in.add("reth.dmalen", headers.reth.length);
  }
  if (has_atomic_eth(opcode)) {
    in.add("reth.va", headers.atomic.address);
    in.add("reth.r_key", headers.atomic.key);
    in.add("atomiceth.swapdt", headers.atomic.swap_or_add);
    in.add("atomiceth.cmpdt", headers.atomic.compare);
  }
  if (has_aeth(opcode) && is_rc(opcode)) {
    in.add("aeth.syndrome", headers.aeth.syndrome);
    in.add("aeth.msn", headers.aeth.msn);
  }
  if (has_atomic_ack(opcode)) {
    in.add("atomicacketh.origremdt", headers.atomic_ack);
  }
  if (has_deth(opcode)) {
    in.add("deth.q_key", headers.deth.qkey);
    in.add("deth.srcqp", headers.deth.source_qp);
  }
  if (has_immediate(opcode)) {
    in.add("immdt", std::as_bytes(std::span(&headers.immediate, 1)));
  }
  if (has_invalidate(opcode)) {
    std::array<std::byte, 4> key{};
    put_be(key, 0, headers.invalidate_key);
    in.add("ieth", key);
  }
}

void add_ip_header(std::span<const std::byte> private_data, Collector& in) {
  const auto header = parse_cm_ip_header(private_data.first<kCmIpHeaderBytes>());
  if (header) {
    const std::string family = is_ipv4(header->source) ? "4" : "6";
    in.add("ip_cm.sport", header->source_port);
    in.add("ip_cm.sip" + family, header->source);
    in.add("ip_cm.dip" + family, header->destination);
    in.add("ip_cm.private", private_data.subspan(kCmIpHeaderBytes));
  }
}

struct MessageFields {
  Fields& fields;

  void operator()(const CmReq& req) const {
    Collector in(fields, "infiniband.cm.req");
    in.add("", req.local_id);
    in.add(".localcaguid", req.local_guid);
    in.add(".localqkey", req.qkey);
    in.add(".localqpn", req.local_qpn);
    in.add(".responderres", req.responder_resources);
    in.add(".initdepth", req.initiator_depth);
    in.add(".remoteresptout", req.remote_cm_timeout);
    in.add(".transpsvctype", static_cast<uint64_t>(req.transport));
    in.add(".e2eflowctrl", req.has_flow_control ? 1 : 0);
    in.add(".startpsn", req.starting_psn);
    in.add(".localresptout", req.local_cm_timeout);
    in.add(".retrcount", req.retry_count);
    in.add(".pkey", req.pkey);
    in.add(".pppmtu", req.path_mtu);
    in.add(".rnrretrcount", req.rnr_retry_count);
    in.add(".maxcmretr", req.max_cm_retries);
    in.add(".srq", req.has_srq ? 1 : 0);
    in.add(".prim_locallid", req.primary.local_lid);
    in.add(".prim_hoplim", req.primary.hop_limit);
    in.add(".prim_tfcclass", req.primary.traffic_class);
    in.add(".prim_localacktout", req.primary.ack_timeout);
    const std::string suffix = is_ipv4(req.primary.local_gid) ? "_ipv4" : "";
    in.add(".prim_localgid" + suffix, req.primary.local_gid);
    in.add(".prim_remotegid" + suffix, req.primary.remote_gid);
    Collector ip(fields, "infiniband.cm.req.");
    add_ip_header(req.private_data, ip);
  }
  void operator()(const CmRep& rep) const {
    Collector in(fields, "infiniband.cm.rep");
    in.add("", rep.local_id);
    in.add(".remotecommid", rep.remote_id);
    in.add(".localqpn", rep.local_qpn);
    in.add(".startpsn", rep.starting_psn);
    in.add(".respres", rep.responder_resources);
    in.add(".initdepth", rep.initiator_depth);
    in.add(".tgtackdelay", rep.target_ack_delay);
    in.add(".e2eflowctrl", rep.has_flow_control ? 1 : 0);
    in.add(".rnrretrcount", rep.rnr_retry_count);
    in.add(".srq", rep.has_srq ? 1 : 0);
    in.add(".localcaguid", rep.local_guid);
    in.add(".private", rep.private_data);
  }
  void operator()(const CmRtu& rtu) const { ids("infiniband.cm.rtu", rtu.local_id, rtu.remote_id, rtu.private_data); }
  void operator()(const CmDrep& drep) const {
    ids("infiniband.cm.drsp", drep.local_id, drep.remote_id, drep.private_data);
  }
  void operator()(const CmDreq& dreq) const {
    ids("infiniband.cm.dreq", dreq.local_id, dreq.remote_id, dreq.private_data);
    fields["infiniband.cm.req.remoteqpneecn"] = std::to_string(dreq.remote_qpn);  // Wireshark's name
  }
  void operator()(const CmRej& rej) const {
    ids("infiniband.cm.rej", rej.local_id, rej.remote_id, rej.private_data);
    Collector in(fields, "infiniband.cm.rej");
    in.add(".msgrej", static_cast<uint64_t>(rej.answered));
    in.add(".rejinfolen", rej.info_length);
    in.add(".reason", rej.reason);
    in.add(".ari", rej.info);
  }
  void operator()(const CmMra&) const {}
  void operator()(const CmSidrReq&) const {}
  void operator()(const CmSidrRep&) const {}

 private:
  void ids(const std::string& prefix, uint32_t local_id, uint32_t remote_id, std::span<const std::byte> rest) const {
    Collector in(fields, prefix);
    in.add(".localcommid", local_id);
    in.add(".remotecommid", remote_id);
    in.add(".private", rest);
  }
};

}  // namespace

Fields fields_of(const PacketView& view) {
  Fields fields;
  const Bth& bth = view.headers.bth;
  Collector in(fields, "infiniband.");
  in.add("bth.opcode", bth.opcode);
  in.add("bth.se", bth.is_solicited ? 1 : 0);
  in.add("bth.m", bth.is_migrated ? 1 : 0);
  in.add("bth.padcnt", bth.pad_count);
  in.add("bth.p_key", bth.pkey);
  in.add("bth.destqp", bth.dest_qp);
  in.add("bth.a", bth.wants_ack ? 1 : 0);
  in.add("bth.psn", bth.psn);
  add_extensions(view.headers, in);
  return fields;
}

Fields fields_of(const CmMad& mad) {
  Fields fields;
  Collector in(fields, "infiniband.mad.");
  in.add("transactionid", mad.transaction_id);
  std::visit([&](const auto& message) { in.add("attributeid", std::remove_cvref_t<decltype(message)>::kAttribute); },
             mad.message);
  std::visit(MessageFields{fields}, mad.message);
  return fields;
}

}  // namespace ringbolt::golden
