// All send to all, and every rank adds up for itself, in the order of ranks.

#include "collective/assignment.h"

namespace ringbolt::collective {

/// all_reduce in one step: the whole input of every rank goes to every other.
Program build_exchange(const Assignment& assignment) {
  const Piece whole{0, total_bytes(assignment.problem)};
  const uint32_t chunk_bytes = assignment.chunk_bytes(assignment.topology.diameter(), whole.bytes);
  Program program;
  Step send = Assignment::step(whole, chunk_bytes);
  send.sources.push_back(from_local(Buffer::input, 0));
  Step sum = Assignment::step(whole, chunk_bytes);
  for (uint32_t peer = 0; peer < assignment.n_ranks(); ++peer) {
    if (peer == assignment.rank) {
      // In place the sum must not be written over what is still to be sent.
      sum.sources.push_back(from_local(Buffer::input, 0, 0));
    } else {
      send.targets.push_back(assignment.send_to(peer, 0));
      sum.sources.push_back(from_transfer(peer, 0));
    }
  }
  sum.targets.push_back(to_local(Buffer::output, 0));
  sum.finishes = true;
  add_step(program, std::move(send));
  add_step(program, std::move(sum));
  return program;
}

}  // namespace ringbolt::collective
