#include "wire/headers.h"

#include <cstring>

#include "base/assert.h"
#include "wire/bytes.h"
#include "wire/layout.h"
#include "wire/opcode.h"

// Hot path: no allocation, lock, system call or exception.
namespace ringbolt::wire {
namespace {

constexpr uint32_t flag(bool is_set, uint32_t bit) { return is_set ? bit : 0U; }

void put_bth(const Bth& bth, std::span<std::byte> out) {
  put_be<uint8_t>(out, BthAt::opcode, bth.opcode);
  put_be<uint8_t>(out, BthAt::flags,
                  static_cast<uint8_t>(flag(bth.is_solicited, kBthSolicited) | flag(bth.is_migrated, kBthMigrated) |
                                       (bth.pad_count & 3U) << kBthPadShift));
  put_be(out, BthAt::pkey, bth.pkey);
  put_be<uint32_t>(out, BthAt::dest_qp, flag(bth.fecn, kBthFecn) | flag(bth.becn, kBthBecn) | (bth.dest_qp & kQpnMask));
  put_be<uint32_t>(out, BthAt::psn,
                   flag(bth.wants_ack, kBthAckRequest) | flag(bth.is_sealed, kBthSealed) |
                       flag(bth.is_sealed && bth.carries_ack, kBthCarriesAck) | (bth.psn & kPsnMask));
}

void put_reth(const Reth& reth, std::span<std::byte> out) {
  put_be(out, RethAt::address, reth.address);
  put_be(out, RethAt::key, reth.key);
  put_be(out, RethAt::length, reth.length);
}

void put_atomic(const AtomicEth& atomic, std::span<std::byte> out) {
  put_be(out, AtomicEthAt::address, atomic.address);
  put_be(out, AtomicEthAt::key, atomic.key);
  put_be(out, AtomicEthAt::swap_or_add, atomic.swap_or_add);
  put_be(out, AtomicEthAt::compare, atomic.compare);
}

}  // namespace

size_t emit(const Headers& headers, std::span<std::byte> out) {
  const uint32_t traits = opcode_traits(headers.bth.opcode);
  const size_t length = header_bytes(headers.bth.opcode);
  RINGBOLT_ASSERT(length != 0 && out.size() >= length);
  put_bth(headers.bth, out);
  size_t at = kBthBytes;
  if ((traits & kTraitDeth) != 0) {
    put_be(out, at, headers.deth.qkey);
    put_be<uint32_t>(out, at + 4, headers.deth.source_qp & kQpnMask);
    at += kDethBytes;
  }
  if ((traits & kTraitReth) != 0) {
    put_reth(headers.reth, out.subspan(at));
    at += kRethBytes;
  }
  if ((traits & kTraitAtomicEth) != 0) {
    put_atomic(headers.atomic, out.subspan(at));
    at += kAtomicEthBytes;
  }
  if ((traits & kTraitAeth) != 0) {
    put_be<uint32_t>(out, at, uint32_t{headers.aeth.syndrome} << 24 | (headers.aeth.msn & kPsnMask));
    at += kAethBytes;
  }
  if ((traits & kTraitAtomicAckEth) != 0) {
    put_be(out, at, headers.atomic_ack);
    at += kAtomicAckEthBytes;
  }
  if ((traits & kTraitImmediate) != 0) {
    std::memcpy(out.data() + at, &headers.immediate, sizeof headers.immediate);
    at += kImmediateBytes;
  }
  if ((traits & kTraitInvalidate) != 0) {
    put_be(out, at, headers.invalidate_key);
    at += kImmediateBytes;
  }
  return at;
}

void emit_seal(const Headers& headers, std::span<std::byte> out) {
  size_t at = 0;
  if (headers.bth.carries_ack) {
    const CarriedAck& ack = headers.carried_ack;
    put_be<uint32_t>(out, at, ack.psn & kPsnMask);
    put_be<uint32_t>(out, at + 4, uint32_t{ack.aeth.syndrome} << 24 | (ack.aeth.msn & kPsnMask));
    at += kCarriedAckBytes;
  }
  put_be(out, at, headers.seal);
}

}  // namespace ringbolt::wire
