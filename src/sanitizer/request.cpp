#include "sanitizer/request.h"

#include "sanitizer/posted_list.h"
#include "sanitizer/queues.h"

namespace ringbolt::sanitizer {
namespace {

bool carries_data(ibv_wr_opcode opcode) { return opcode != IBV_WR_LOCAL_INV && opcode != IBV_WR_BIND_MW; }

bool is_answered(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_RDMA_READ || opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

uint64_t length_of(const ibv_sge* list, int count) {
  uint64_t length = 0;
  // A count that is nonsense is the device's to refuse; the list is not read beyond what anybody could mean.
  for (int i = 0; i < count && i < kMostPieces; ++i) {
    length += list[i].length;
  }
  return length;
}

}  // namespace

std::unique_ptr<Request> request_of(QueuePair& qp, const ibv_send_wr& wr, const base::CallSite& site) {
  auto request = std::make_unique<Request>();
  request->wr_id = wr.wr_id;
  request->use = is_answered(wr.opcode) ? Use::read : Use::send;
  request->opcode = wr.opcode;
  request->is_signaled = qp.signals_all || (wr.send_flags & IBV_SEND_SIGNALED) != 0;
  request->is_fenced = (wr.send_flags & IBV_SEND_FENCE) != 0;
  request->qp = &qp;
  request->pd = qp.c->pd;
  request->qpn = qp.qpn;
  request->peer = qp.peer;
  request->posted = site;
  if (request->is_one_sided()) {
    const bool is_atomic = request->is_atomic();
    request->remote_address = is_atomic ? wr.wr.atomic.remote_addr : wr.wr.rdma.remote_addr;
    request->rkey = is_atomic ? wr.wr.atomic.rkey : wr.wr.rdma.rkey;
  }
  request->length = carries_data(wr.opcode) ? length_of(wr.sg_list, wr.num_sge) : 0;
  return request;
}

std::unique_ptr<Request> request_of(QueuePair* qp, SharedQueue* srq, ibv_pd* pd, const ibv_recv_wr& wr,
                                    const base::CallSite& site) {
  auto request = std::make_unique<Request>();
  request->wr_id = wr.wr_id;
  request->use = Use::receive;
  request->qp = qp;
  request->srq = srq;
  request->pd = pd;
  request->qpn = qp == nullptr ? 0 : qp->qpn;
  request->posted = site;
  request->length = length_of(wr.sg_list, wr.num_sge);
  return request;
}

bool uses_memory(const ibv_send_wr& wr) { return carries_data(wr.opcode) && (wr.send_flags & IBV_SEND_INLINE) == 0; }

std::vector<Piece> copied_pieces(const ibv_send_wr& wr, uint32_t most_bytes) {
  std::vector<Piece> pieces;
  const bool is_inline = carries_data(wr.opcode) && (wr.send_flags & IBV_SEND_INLINE) != 0;
  if (!is_inline || wr.num_sge > kMostPieces || length_of(wr.sg_list, wr.num_sge) > most_bytes) {
    return pieces;
  }
  for (int i = 0; i < wr.num_sge; ++i) {
    if (wr.sg_list[i].length != 0) {
      pieces.push_back({wr.sg_list[i].addr, wr.sg_list[i].length, 0, static_cast<size_t>(i), {}});
    }
  }
  return pieces;
}

}  // namespace ringbolt::sanitizer
