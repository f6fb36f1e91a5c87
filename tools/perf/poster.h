#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <vector>

#include "pair/peer.h"
#include "perf/link.h"

namespace ringbolt::tools::perf {

/// Builds lists of work requests and posts them; every so many'th is signalled. Its completion's id has the queue pair
/// in the upper half and in the lower half how many operations have completed with it. Not thread-safe.
/// Owns requests and scatter entries, which every post uses again: ibv_post_send(3) gives them back when it returns.
class Poster {
 public:
  Poster(Link& link, Peer& peer, ibv_wr_opcode opcode);

  /// Adds the operation on `local`; at `remote_address` of the peer's memory, if the opcode has such. Hot path.
  /// At most depths().post_list before a post(), all of one queue pair. The request is good until then.
  ibv_send_wr& add(uint32_t queue_pair, std::span<std::byte> local, uint64_t remote_address);
  /// Posts what was added, one at least, all on one queue pair. Throws ProbeFailure.
  void post(uint32_t queue_pair);
  uint32_t added() const { return added_; }

 private:
  Link& link_;
  Peer& peer_;
  uint32_t signal_every_;
  std::vector<ibv_send_wr> requests_;
  std::vector<ibv_sge> pieces_;
  std::vector<uint32_t> unsignalled_;  // of each queue pair
  std::vector<uint32_t> flags_;        // likewise: IBV_SEND_INLINE where the size fits
  uint32_t added_ = 0;
};

}  // namespace ringbolt::tools::perf
