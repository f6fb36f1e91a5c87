#include "sanitizer/words.h"

#include <fmt/format.h>

namespace ringbolt::sanitizer {

std::string_view name_of(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_RDMA_WRITE:
      return "IBV_WR_RDMA_WRITE";
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return "IBV_WR_RDMA_WRITE_WITH_IMM";
    case IBV_WR_SEND:
      return "IBV_WR_SEND";
    case IBV_WR_SEND_WITH_IMM:
      return "IBV_WR_SEND_WITH_IMM";
    case IBV_WR_RDMA_READ:
      return "IBV_WR_RDMA_READ";
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      return "IBV_WR_ATOMIC_CMP_AND_SWP";
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return "IBV_WR_ATOMIC_FETCH_AND_ADD";
    case IBV_WR_SEND_WITH_INV:
      return "IBV_WR_SEND_WITH_INV";
    default:
      return "a request";
  }
}

std::string text_of(const Request& request) {
  const std::string where =
      request.srq != nullptr ? "a shared receive queue" : fmt::format("queue pair {:#x}", request.qpn);
  return fmt::format("{} of {} bytes on {}, wr_id {:#x}",
                     request.use == Use::receive ? "a receive" : name_of(request.opcode), request.length, where,
                     request.wr_id);
}

}  // namespace ringbolt::sanitizer
