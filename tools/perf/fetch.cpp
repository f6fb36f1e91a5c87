// Hot path: no allocation, lock or system call for an operation.
#include "perf/fetch.h"

#include <cstring>

#include <fmt/format.h>

#include "perf/message.h"

namespace ringbolt::tools::perf {

uint64_t atomic_value(uint64_t count) { return count * 0x9e3779b97f4a7c15U; }

Fetch::Fetch(Link& link, Peer& peer, Check check)
    : link_(link),
      peer_(peer),
      check_(check),
      is_atomic_(link.parameters().operation == Operation::kAtomic),
      source_slots_(slots_used(link.theirs().send_slots, link.depths().receive_slots)),
      // An atomic's own receive slots are the counters that the peer may work on.
      landing_slots_(is_atomic_ ? link.depths().send_slots : link.depths().receive_slots) {}

ibv_wr_opcode Fetch::opcode_of(const Parameters& parameters) {
  if (parameters.operation == Operation::kRead) {
    return IBV_WR_RDMA_READ;
  }
  return parameters.atomic_kind == AtomicKind::kFetchAdd ? IBV_WR_ATOMIC_FETCH_AND_ADD : IBV_WR_ATOMIC_CMP_AND_SWP;
}

void Fetch::add(Poster& poster, uint32_t queue_pair, uint64_t sequence) const {
  if (!is_atomic_) {
    poster.add(queue_pair, link_.receive_slot(queue_pair, sequence % landing_slots_),
               link_.remote_send_address(queue_pair, sequence % source_slots_));
    return;
  }
  ibv_send_wr& request = poster.add(queue_pair, link_.send_slot(queue_pair, sequence % landing_slots_), 0);
  request.wr.atomic.remote_addr = link_.remote_receive_address(queue_pair, 0);
  request.wr.atomic.rkey = link_.theirs().remote_key;
  const bool adds = link_.parameters().atomic_kind == AtomicKind::kFetchAdd;
  request.wr.atomic.compare_add = adds ? atomic_value(1) : atomic_value(sequence);
  request.wr.atomic.swap = adds ? 0 : atomic_value(sequence + 1);
}

void Fetch::check(uint32_t queue_pair, uint64_t sequence) const {
  if (is_atomic_) {
    uint64_t found = 0;
    std::memcpy(&found, link_.send_slot(queue_pair, sequence % landing_slots_).data(), sizeof found);
    if (found != atomic_value(sequence)) {
      peer_.fail(fmt::format("atomic {} on queue pair {} found {:#x} where the ones before must have left {:#x}",
                             sequence, queue_pair, found, atomic_value(sequence)));
    }
    return;
  }
  const auto source = static_cast<uint32_t>(sequence % source_slots_);
  const std::span<std::byte> message = link_.receive_slot(queue_pair, sequence % landing_slots_);
  if (const auto wrong = find_damage(message, link_.theirs().seed, source, source, check_)) {
    peer_.fail(fmt::format("READ {} of {} bytes on queue pair {} brought damage from byte {} on", sequence,
                           message.size(), queue_pair, *wrong));
  }
}

}  // namespace ringbolt::tools::perf
