// Hot path: no allocation after construction.
#include "perf/poster.h"

#include <cstdlib>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"

namespace ringbolt::tools::perf {

Poster::Poster(Link& link, Peer& peer, ibv_wr_opcode opcode)
    : link_(link),
      peer_(peer),
      signal_every_(link.depths().signal_every),
      requests_(link.depths().post_list),
      pieces_(link.depths().post_list),
      unsignalled_(link.queue_pairs()) {
  const bool sends_data = opcode == IBV_WR_SEND || opcode == IBV_WR_RDMA_WRITE;
  for (uint32_t index = 0; index < link.queue_pairs(); ++index) {
    const bool fits = sends_data && link.size_bytes() <= link.queue_pair(index).inline_bytes();
    flags_.push_back(fits ? unsigned{IBV_SEND_INLINE} : 0U);
  }
  for (size_t i = 0; i < requests_.size(); ++i) {
    requests_[i].next = i + 1 < requests_.size() ? &requests_[i + 1] : nullptr;
    requests_[i].opcode = opcode;
    requests_[i].sg_list = &pieces_[i];
    requests_[i].num_sge = 1;
    pieces_[i].lkey = link.local_key();
  }
}

ibv_send_wr& Poster::add(uint32_t queue_pair, std::span<std::byte> local, uint64_t remote_address) {
  ibv_send_wr& request = requests_[added_];
  ibv_sge& piece = pieces_[added_];
  piece.addr = reinterpret_cast<uintptr_t>(local.data());
  piece.length = static_cast<uint32_t>(local.size());
  // Of SENDs nobody reads it; of UD and of atomics the same union is written anew.
  request.wr.rdma.remote_addr = remote_address;
  request.wr.rdma.rkey = link_.theirs().remote_key;
  request.send_flags = flags_[queue_pair];
  uint32_t& unsignalled = unsignalled_[queue_pair];
  if (++unsignalled >= signal_every_) {
    request.send_flags |= IBV_SEND_SIGNALED;
    request.wr_id = uint64_t{queue_pair} << 32U | unsignalled;
    unsignalled = 0;
  }
  link_.queue_pair(queue_pair).address_request(request);
  ++added_;
  return request;
}

void Poster::post(uint32_t queue_pair) {
  ibv_send_wr& last = requests_[added_ - 1];
  ibv_send_wr* const after = std::exchange(last.next, nullptr);
  added_ = 0;
  ibv_send_wr* bad = nullptr;
  const int error = ibv_post_send(link_.queue_pair(queue_pair).get(), requests_.data(), &bad);
  // Relinked before the error is looked at, since fail() throws.
  last.next = after;
  if (error != 0) {
    peer_.fail("ibv_post_send: {}", base::reason_of(std::abs(error)));
  }
}

}  // namespace ringbolt::tools::perf
