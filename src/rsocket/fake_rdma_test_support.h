#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

/// The functions of librdmacm and libibverbs that the parts of a socket call, for tests without a library or a device:
/// they note what they are asked, and a test says what completes. One thread at a time.
namespace ringbolt::rsocket::test {

/// A work request of the send queue, and the bytes that it took.
struct Sent {
  ibv_wr_opcode opcode = IBV_WR_SEND;
  uint64_t wr_id = 0;
  uint32_t immediate = 0;  ///< in host order
  uint64_t address = 0;
  uint32_t key = 0;
  bool is_inline = false;
  std::string bytes;
};

struct FakeRdma {
  std::vector<std::string> calls;    ///< of rdma_cm, in their order
  std::string refused;               ///< a call that fails, with `error`
  int error = ENETDOWN;              ///< of what is refused
  rdma_conn_param last_param{};      ///< of rdma_connect and rdma_accept
  std::string last_data;             ///< the private data with it
  std::vector<int> timeouts_ms;      ///< of the steps of resolving
  std::deque<rdma_cm_event> events;  ///< that rdma_get_cm_event is to bring
  int ids = 0, channels = 0, regions = 0;
  std::vector<Sent> sent;
  std::deque<ibv_wc> completions;  ///< that polling is to bring
  uint32_t receives = 0;           ///< posted
  uint32_t inline_bytes = 256;     ///< the device's
  int max_qp_wr = 16384;           ///< likewise
  int max_cqe = 16384;             ///< likewise
  int access = 0;                  ///< of the last region
  uint32_t next_key = 1;

  static FakeRdma& get();
  /// What was sent and not completed, done.
  void complete(const Sent& sent, ibv_wc_status status = IBV_WC_SUCCESS);
  /// A message of the peer: `word` is its immediate data, `bytes` were written with it.
  void bring(uint32_t word, uint32_t bytes);
};

/// An id with a device, as one has it whose address is resolved. Everything begins anew with it.
struct FakeId {
  FakeId();
  rdma_cm_id id{};
  ibv_context device{};
  ibv_pd pd{};
};

}  // namespace ringbolt::rsocket::test
