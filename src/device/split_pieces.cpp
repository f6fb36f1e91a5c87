// Requests of several pieces on a device that was seen to end a message, and to complete, with each piece.

#include <cerrno>

#include "device/queue_pair.h"

namespace ringbolt::device {

uint32_t QueuePair::pieces_that_part(const ibv_send_wr& wr) const {
  const bool is_message = wr.opcode == IBV_WR_SEND || wr.opcode == IBV_WR_SEND_WITH_IMM ||
                          (wr.opcode == IBV_WR_RDMA_WRITE && context_.port().profile.knobs.writes_into_stream);
  const bool is_allowed = wr.num_sge > 1 && static_cast<uint32_t>(wr.num_sge) <= caps_.max_send_sge;
  return is_message && is_allowed ? static_cast<uint32_t>(wr.num_sge) : 1;
}

int QueuePair::push_pieces(const ibv_recv_wr& wr) {
  if (wr.num_sge <= 1 || static_cast<uint32_t>(wr.num_sge) > receive_.ring.max_sge()) {
    return receive_.ring.push(wr);
  }
  if (receive_.ring.depth() - receive_.ring.count() < static_cast<uint32_t>(wr.num_sge)) {
    return ENOMEM;
  }
  for (int i = 0; i < wr.num_sge; ++i) {
    ibv_recv_wr one = wr;
    one.sg_list = wr.sg_list + i;
    one.num_sge = 1;
    receive_.ring.push(one);
  }
  return 0;
}

}  // namespace ringbolt::device
