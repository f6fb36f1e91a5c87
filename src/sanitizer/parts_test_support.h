#pragma once

#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sanitizer/kept_memories.h"
#include "sanitizer/queues.h"
#include "sanitizer/reports.h"
#include "sanitizer/request_table.h"

/// Requests and queues without a device, for tests of the parts of Shadow.
namespace ringbolt::sanitizer::testing {

inline base::CallSite site(uintptr_t place) { return {{place, 0, 0}}; }

/// Memory of a program, of which pieces of requests are made.
struct Memory {
  alignas(64) std::array<std::byte, 1024> bytes{};

  Piece piece(size_t offset, uint32_t length, uint32_t lkey = 7) {
    return {reinterpret_cast<uint64_t>(bytes.data() + offset), length, lkey, 0, {}};
  }
  void write(size_t offset, std::string_view text) { std::memcpy(bytes.data() + offset, text.data(), text.size()); }
  std::string text(size_t offset, size_t length) const {
    return {reinterpret_cast<const char*>(bytes.data() + offset), length};
  }
};

/// Under its number as `wr_id` and as the place of its post.
inline std::unique_ptr<Request> request(uint32_t number, Use use, std::vector<Piece> pieces = {}) {
  auto made = std::make_unique<Request>();
  made->number = number;
  made->wr_id = 1000 + number;
  made->use = use;
  made->opcode = use == Use::read ? IBV_WR_RDMA_READ : IBV_WR_SEND;
  made->posted = site(number);
  for (const Piece& one : pieces) {
    made->length += one.length;
    made->pieces.push_back(one);
    made->pieces.back().segment = made->pieces.size() - 1;
  }
  return made;
}

/// The list that a request with these pieces is posted with.
inline std::vector<ibv_sge> list_of(const Request& request) {
  std::vector<ibv_sge> list;
  for (const Piece& one : request.pieces) {
    list.push_back({one.address, one.length, one.lkey});
  }
  return list;
}

/// Memory of ours, registered at nothing. `registered`: regions that there are.
struct Kept {
  static inline int registered = 0;
  KeptMemories memories{{[](ibv_pd*, void*, size_t, uint32_t* lkey) -> void* {
                           *lkey = 99;
                           return ++registered, &registered;
                         },
                         [](void*) { --registered; }}};

  /// The list with which the device has the request.
  std::vector<ibv_sge> take(Request& request) {
    std::vector<ibv_sge> list = list_of(request);
    EXPECT_TRUE(memories.take(request, list.data()));
    return list;
  }
};

inline std::string_view rule_of(const std::optional<Finding>& found) { return found ? found->rule : "nothing"; }
inline std::vector<std::string> rules_of(const std::vector<Finding>& found) {
  std::vector<std::string> rules;
  for (const Finding& one : found) {
    rules.emplace_back(one.rule);
  }
  return rules;
}
using Rules = std::vector<std::string>;

/// A queue pair in RTS on completion queues of `entries`.
struct Pair {
  explicit Pair(uint32_t depth = 4, uint32_t entries = 4) : cq(entries, nullptr, site(0xc0)) {
    qp.c = &c;
    qp.qpn = 5;
    qp.caps.max_send_wr = depth;
    qp.send_cq = qp.receive_cq = &cq;
    qp.told = IBV_QPS_RTS;
  }
  ibv_qp c{};
  CompletionQueue cq;
  QueuePair qp;
};

}  // namespace ringbolt::sanitizer::testing
