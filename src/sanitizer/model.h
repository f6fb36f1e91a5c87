#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <string_view>
#include <vector>

#include "base/calling_place.h"
#include "base/mutex.h"
#include "sanitizer/kept_memory.h"
#include "sanitizer/race_table.h"

/// What the sanitizer knows of the program's objects. Plain values, which Shadow guards.
namespace ringbolt::sanitizer {

struct SharedQueue {
  ibv_srq* c = nullptr;
  base::Mutex order RINGBOLT_HELD_AS(order_of_posts);  ///< from the note of a post to the device's having it
  uint32_t posted = 0;
};

struct CompletionQueue {
  uint32_t entries = 0;
  uint32_t expected = 0;  ///< completions of requests of its own queues that nobody has polled
  ibv_comp_channel* channel = nullptr;
  base::CallSite made{};
  base::CallSite armed{};
  bool is_armed_late = false;  ///< while something might complete, and nobody has polled since
};

struct QueuePair {
  ibv_qp* c = nullptr;
  uint32_t qpn = 0;  ///< as the others: still known where the program has destroyed it meanwhile
  ibv_qp_type type = IBV_QPT_RC;
  ibv_qp_cap caps{};
  bool signals_all = false;
  bool is_on_network = false;  ///< its device is
  bool keeps = false;          ///< what it receives may wait elsewhere: its device is a plain one
  CompletionQueue* send_cq = nullptr;
  CompletionQueue* receive_cq = nullptr;
  SharedQueue* srq = nullptr;
  ibv_qp_state told = IBV_QPS_RESET;  ///< by the program
  uint64_t peer = 0;                  ///< whose process it leads to, as far as it can be told apart
  base::Mutex send_order RINGBOLT_HELD_AS(order_of_posts);  ///< as SharedQueue::order
  base::Mutex receive_order RINGBOLT_HELD_AS(order_of_posts);
  std::deque<uint32_t> sends;  ///< that the program can't know to be done, in their order
  uint32_t signaled = 0;       ///< of those
  uint32_t receives = 0;       ///< posted
  base::CallSite failed{};     ///< where an error completion of it was polled
  ibv_wc_status failure = IBV_WC_SUCCESS;
};

enum class Use : uint8_t { send, receive, read };  ///< read: a READ or an atomic, whose answer is written here

/// A piece of a request's memory.
struct Piece {
  uint64_t address = 0;
  uint32_t length = 0;
  uint32_t lkey = 0;
  size_t segment = 0;        ///< of the request's list
  KeptMemory::Piece kept{};  ///< where its data wait
};

struct Request {
  uint32_t number = 0;
  uint64_t wr_id = 0;
  Use use = Use::send;
  ibv_wr_opcode opcode = IBV_WR_SEND;
  bool is_signaled = true;
  bool is_fenced = false;
  bool has_unknown_memory = false;  ///< a key that is none: the device will say so
  bool is_summed = false;           ///< `sum` is that of its bytes
  bool is_poisoned = false;         ///< its memory
  bool is_given_up = false;         ///< told of already: nothing of it is looked at any more
  bool is_forsaken = false;         ///< its memory is no more the device's, and gets nothing
  QueuePair* qp = nullptr;          ///< null: of `srq`
  SharedQueue* srq = nullptr;
  KeptMemory* kept = nullptr;
  ibv_pd* pd = nullptr;
  uint32_t qpn = 0;
  uint32_t sum = 0;
  uint64_t length = 0;  ///< of all pieces
  uint64_t remote_address = 0;
  uint32_t rkey = 0;
  base::CallSite posted{};
  std::vector<Piece> pieces;
  std::optional<uint32_t> race_place{};   ///< in the table of races
  std::optional<RaceTable::Entry> met{};  ///< what another process did meanwhile

  bool is_one_sided() const {
    return use == Use::read || opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  }
  bool is_atomic() const {
    return use == Use::read && (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD);
  }
};

struct Region {
  uint64_t address = 0;
  uint64_t length = 0;
  uint64_t iova = 0;
  uint32_t access = 0;
  const ibv_pd* pd = nullptr;
  base::CallSite made{};
};

enum class ObjectKind : uint8_t { pd, mr, mw, cq, channel, qp, srq, ah };
struct ObjectWords {
  std::string_view one;
  std::string_view many;
  std::string_view destroyer;
};
constexpr ObjectWords words_of(ObjectKind kind) {
  constexpr ObjectWords kWords[] = {
      {"protection domain", "protection domains", "ibv_dealloc_pd"},
      {"memory region", "memory regions", "ibv_dereg_mr"},
      {"memory window", "memory windows", "ibv_dealloc_mw"},
      {"completion queue", "completion queues", "ibv_destroy_cq"},
      {"completion channel", "completion channels", "ibv_destroy_comp_channel"},
      {"queue pair", "queue pairs", "ibv_destroy_qp"},
      {"shared receive queue", "shared receive queues", "ibv_destroy_srq"},
      {"address handle", "address handles", "ibv_destroy_ah"},
  };
  return kWords[static_cast<uint8_t>(kind)];
}

/// An object of the program that it must destroy.
struct Owned {
  ObjectKind kind = ObjectKind::pd;
  base::CallSite made{};
  base::CallSite busy{};  ///< where it was to be destroyed, and was in use
};

}  // namespace ringbolt::sanitizer
