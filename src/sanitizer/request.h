#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/calling_place.h"
#include "sanitizer/kept_memory.h"
#include "sanitizer/race_table.h"

namespace ringbolt::sanitizer {

struct QueuePair;
struct SharedQueue;

enum class Use : uint8_t { send, receive, read };  ///< read: a READ or an atomic, whose answer is written here

/// A piece of a request's memory.
struct Piece {
  uint64_t address = 0;
  uint32_t length = 0;
  uint32_t lkey = 0;
  size_t segment = 0;        ///< of the request's list, which has empty ones that are no pieces
  KeptMemory::Piece kept{};  ///< where its data wait

  /// The program's. It may be unmapped by now: see mapped.h.
  std::span<std::byte> memory() const { return {reinterpret_cast<std::byte*>(address), length}; }
};

/// A region that a request writes to and may not.
struct ReadOnly {
  uint32_t lkey = 0;
  base::CallSite made{};
};

/// A work request that the device has, as it was posted, and what is known of its memory. While it is in the table of
/// requests it is under the lock of Shadow; before and behind, its one owner's.
/// Its address stays the same from request_of() to the end. `kept` pieces are given back by Shadow, not by a
/// destructor.
struct Request {
  uint32_t number = 0;
  uint64_t wr_id = 0;
  Use use = Use::send;
  ibv_wr_opcode opcode = IBV_WR_SEND;
  bool is_signaled = true;
  bool is_fenced = false;
  bool has_unknown_memory = false;  ///< a key that is none, or that forbids it: the device will say so
  bool is_summed = false;           ///< `sum` is that of its bytes
  bool is_poisoned = false;         ///< its memory
  bool is_given_up = false;         ///< told of already: nothing of it is looked at any more
  bool is_forsaken = false;         ///< its memory is no more the device's, and gets nothing
  QueuePair* qp = nullptr;          ///< null: of `srq`. Not followed once the request is out of the table
  SharedQueue* srq = nullptr;
  KeptMemory* kept = nullptr;
  ibv_pd* pd = nullptr;
  uint32_t qpn = 0;
  uint32_t sum = 0;     ///< CRC-32C
  uint64_t length = 0;  ///< of all pieces, in bytes
  uint64_t peer = 0;    ///< of its queue pair when it was posted
  uint64_t remote_address = 0;
  uint32_t rkey = 0;
  base::CallSite posted{};
  std::vector<Piece> pieces;
  std::optional<ReadOnly> read_only{};  ///< where the device may not write what comes
  std::vector<KeptMemory::Piece>
      borrowed{};  ///< of a fenced send: kept pieces of READs that it sends from, of `lender`
  KeptMemory* lender = nullptr;
  std::optional<uint32_t> race_place{};   ///< in the table of races
  std::optional<RaceTable::Entry> met{};  ///< what another process did meanwhile

  bool is_one_sided() const {
    return use == Use::read || opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  }
  bool is_atomic() const {
    return use == Use::read && (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD);
  }
};

/// As it is posted, without a number and its pieces. Pure.
/// Reads `wr` and its list of pieces, not what they lead to.
std::unique_ptr<Request> request_of(QueuePair& qp, const ibv_send_wr& wr, const base::CallSite& site);
/// On a queue pair, or a shared queue: the other one is null.
std::unique_ptr<Request> request_of(QueuePair* qp, SharedQueue* srq, ibv_pd* pd, const ibv_recv_wr& wr,
                                    const base::CallSite& site);
/// Whether the device reads or writes the program's memory after the post. Inline data are copied while they are
/// posted, and are the program's again (ibv_post_send(3)). Pure.
bool uses_memory(const ibv_send_wr& wr);
/// What a post with inline data copies, of `most_bytes` at most: more the device refuses without a look. Pure.
std::vector<Piece> copied_pieces(const ibv_send_wr& wr, uint32_t most_bytes);

}  // namespace ringbolt::sanitizer
