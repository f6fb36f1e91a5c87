#include "wire/packet.h"

#include <cerrno>
#include <cstring>

#include "wire/bytes.h"
#include "wire/layout.h"
#include "wire/opcode.h"

// Hot path: no allocation, lock, system call or exception.
namespace ringbolt::wire {
namespace {

using In = std::span<const std::byte>;

Bth get_bth(In in) {
  const uint32_t flags = get_be<uint8_t>(in, BthAt::flags);
  const uint32_t dest_qp = get_be<uint32_t>(in, BthAt::dest_qp);
  const uint32_t psn = get_be<uint32_t>(in, BthAt::psn);
  return {.opcode = get_be<uint8_t>(in, BthAt::opcode),
          .is_solicited = (flags & kBthSolicited) != 0,
          .is_migrated = (flags & kBthMigrated) != 0,
          .pad_count = static_cast<uint8_t>(flags >> kBthPadShift & 3U),
          .pkey = get_be<uint16_t>(in, BthAt::pkey),
          .fecn = (dest_qp & kBthFecn) != 0,
          .becn = (dest_qp & kBthBecn) != 0,
          .dest_qp = dest_qp & kQpnMask,
          .wants_ack = (psn & kBthAckRequest) != 0,
          .is_sealed = (psn & kBthSealed) != 0,
          .carries_ack = (psn & kBthSealed) != 0 && (psn & kBthCarriesAck) != 0,
          .psn = psn & kPsnMask};
}

/// Precondition: `in` holds the headers that `traits` ask for.
void get_extensions(In in, uint32_t traits, Headers& headers) {
  size_t at = kBthBytes;
  if ((traits & kTraitDeth) != 0) {
    headers.deth = {.qkey = get_be<uint32_t>(in, at), .source_qp = get_be<uint32_t>(in, at + 4) & kQpnMask};
    at += kDethBytes;
  }
  if ((traits & kTraitReth) != 0) {
    headers.reth = {.address = get_be<uint64_t>(in, at + RethAt::address),
                    .key = get_be<uint32_t>(in, at + RethAt::key),
                    .length = get_be<uint32_t>(in, at + RethAt::length)};
    at += kRethBytes;
  }
  if ((traits & kTraitAtomicEth) != 0) {
    headers.atomic = {.address = get_be<uint64_t>(in, at + AtomicEthAt::address),
                      .key = get_be<uint32_t>(in, at + AtomicEthAt::key),
                      .swap_or_add = get_be<uint64_t>(in, at + AtomicEthAt::swap_or_add),
                      .compare = get_be<uint64_t>(in, at + AtomicEthAt::compare)};
    at += kAtomicEthBytes;
  }
  if ((traits & kTraitAeth) != 0) {
    const uint32_t word = get_be<uint32_t>(in, at);
    headers.aeth = {.syndrome = static_cast<uint8_t>(word >> 24), .msn = word & kPsnMask};
    at += kAethBytes;
  }
  if ((traits & kTraitAtomicAckEth) != 0) {
    headers.atomic_ack = get_be<uint64_t>(in, at);
    at += kAtomicAckEthBytes;
  }
  if ((traits & kTraitImmediate) != 0) {
    std::memcpy(&headers.immediate, in.data() + at, sizeof headers.immediate);
    at += kImmediateBytes;
  }
  if ((traits & kTraitInvalidate) != 0) {
    headers.invalidate_key = get_be<uint32_t>(in, at);
  }
}

/// 0, or an errno.
int parse_into(PacketView& view, In packet) {
  if (packet.size() < kBthBytes + kIcrcBytes || packet.size() % 4 != 0) {
    return EBADMSG;
  }
  view.headers.bth = get_bth(packet);
  const uint32_t traits = opcode_traits(view.headers.bth.opcode);
  // Of the transport header there is only version 0.
  const uint32_t version = get_be<uint8_t>(packet, BthAt::flags) & kBthVersionMask;
  if ((traits & kTraitKnown) == 0 || version != 0) {
    return EPROTONOSUPPORT;
  }
  const size_t headers = header_bytes(view.headers.bth.opcode);
  const size_t seal = seal_bytes(view.headers.bth);
  if (packet.size() < headers + seal + kIcrcBytes) {
    return EBADMSG;
  }
  const size_t padded = packet.size() - headers - seal - kIcrcBytes;
  const bool is_payload_allowed = (traits & kTraitPayload) != 0;
  if (padded < view.headers.bth.pad_count || (!is_payload_allowed && padded != 0)) {
    return EBADMSG;
  }
  get_extensions(packet, traits, view.headers);
  view.payload = packet.subspan(headers, padded - view.headers.bth.pad_count);
  if (seal != 0) {
    if (view.headers.bth.carries_ack) {
      const uint32_t aeth = get_be<uint32_t>(packet, headers + padded + 4);
      view.headers.carried_ack = {.psn = get_be<uint32_t>(packet, headers + padded) & kPsnMask,
                                  .aeth = {.syndrome = static_cast<uint8_t>(aeth >> 24), .msn = aeth & kPsnMask}};
    }
    view.headers.seal = get_be<uint64_t>(packet, headers + padded + seal - kSealBytes);
  }
  return 0;
}

}  // namespace

base::Result<PacketView> parse(std::span<const std::byte> packet) {
  base::Result<PacketView> view;  // filled in where it is returned: a view is 160 bytes
  if (const int error = parse_into(*view, packet); error != 0) [[unlikely]] {
    view = base::fail(error);
  }
  return view;
}

}  // namespace ringbolt::wire
