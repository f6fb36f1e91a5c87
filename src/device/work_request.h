#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "device/send_request.h"

/// What a program says in a send work request.
namespace ringbolt::device {

/// Tells the program which request of its list was refused. Null: it asks for no name, as an extended queue pair's
/// builders do.
template <class Request>
void name_refused(Request* request, Request** bad) {
  if (bad != nullptr) {
    *bad = request;
  }
}

/// Bytes of all pieces; more than there can be counts as the most that can be said.
inline uint32_t total_length(const ibv_send_wr& wr) {
  uint64_t length = 0;
  for (int i = 0; i < wr.num_sge; ++i) {
    length += wr.sg_list[i].length;
  }
  return static_cast<uint32_t>(std::min<uint64_t>(length, UINT32_MAX));
}

/// What an opcode of a send request is: one table instead of a branch by opcode at each question.
struct Operation {
  uint32_t types = 0;  ///< of queue pairs that know it, a bit each
  ibv_wc_opcode completion = IBV_WC_SEND;
  bool carries_data = true;  ///< it may be sent inline
};
inline constexpr uint32_t kOnRc = 1U << IBV_QPT_RC;
inline constexpr uint32_t kOnConnected = kOnRc | 1U << IBV_QPT_UC;
inline constexpr uint32_t kOnAll = kOnConnected | 1U << IBV_QPT_UD;
static_assert(IBV_WR_SEND_WITH_INV > IBV_WR_BIND_MW && IBV_WR_SEND_WITH_INV > IBV_WR_LOCAL_INV);
inline constexpr auto kOperations = [] {
  std::array<Operation, IBV_WR_SEND_WITH_INV + 2> table{};  // the last one is nobody's
  table[IBV_WR_SEND] = table[IBV_WR_SEND_WITH_IMM] = {kOnAll, IBV_WC_SEND, true};
  table[IBV_WR_SEND_WITH_INV] = {kOnRc, IBV_WC_SEND, true};
  table[IBV_WR_RDMA_WRITE] = table[IBV_WR_RDMA_WRITE_WITH_IMM] = {kOnConnected, IBV_WC_RDMA_WRITE, true};
  table[IBV_WR_RDMA_READ] = {kOnRc, IBV_WC_RDMA_READ, false};
  table[IBV_WR_ATOMIC_CMP_AND_SWP] = {kOnRc, IBV_WC_COMP_SWAP, false};
  table[IBV_WR_ATOMIC_FETCH_AND_ADD] = {kOnRc, IBV_WC_FETCH_ADD, false};
  table[IBV_WR_LOCAL_INV] = {kOnConnected, IBV_WC_LOCAL_INV, true};
  table[IBV_WR_BIND_MW] = {kOnConnected, IBV_WC_BIND_MW, true};
  return table;
}();

/// Nobody's, if the device does not know the opcode.
inline const Operation& operation_of(ibv_wr_opcode opcode) {
  return kOperations[std::min<uint32_t>(opcode, IBV_WR_SEND_WITH_INV + 1)];
}

/// The request as the engine executes it, for a queue pair of that type with that Q_Key. Of its operands only those
/// that the opcode defines: programs leave the others uninitialised.
SendRequest describe(const ibv_send_wr& wr, ibv_qp_type type, uint32_t own_qkey);

}  // namespace ringbolt::device
