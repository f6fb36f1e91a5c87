// One rank of a mesh: connects to every other rank and exchanges buffers of every size with each,
// checking every byte. Environment: JACCL_RANK (else RINGBOLT_NODE), JACCL_COORDINATOR,
// JACCL_IBV_DEVICES (path of the N x N device matrix). Exit code 0 when all was right.
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "coordinator.h"
#include "peer_link.h"
#include "side_channel.h"

namespace ringbolt::jaccl {
namespace {

constexpr int kSizes = 8;        // 4 KiB .. 512 KiB
constexpr int kBuffers = 2;      // in flight at once
constexpr int kRounds = 10;
constexpr uint64_t kSendType = 1;
constexpr uint64_t kReceiveType = 2;

std::string environment(const char* name, const char* other = nullptr) {
  const char* value = std::getenv(name);
  if (value == nullptr && other != nullptr) {
    value = std::getenv(other);
  }
  if (value == nullptr) {
    throw std::runtime_error(std::string(name) + " is not set");
  }
  return value;
}

/// Byte `position` of what `rank` sends in `round` at size index `size`.
uint8_t golden(int rank, int size, int round, size_t position) {
  const auto source = static_cast<uint64_t>(rank * 10007 + size * 131 + round);
  const uint64_t mixed =
      (position + 1) * uint64_t{0x9e3779b97f4a7c15} + source * uint64_t{0xc2b2ae3d27d4eb4f};
  return static_cast<uint8_t>(mixed >> 53);
}

struct Page {
  void operator()(uint8_t* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<uint8_t, Page>;

Memory allocate(size_t length) {
  constexpr size_t kMacPage = 16384;
  Memory memory(static_cast<uint8_t*>(std::aligned_alloc(kMacPage, std::max(length, kMacPage))));
  if (memory == nullptr) {
    throw std::runtime_error("out of memory");
  }
  return memory;
}

/// A mesh member. Send buffers are registered once for every peer, receive buffers are per peer.
class Rank {
 public:
  Rank(const RdmaLibrary& rdma, int rank, const nlohmann::json& devices, SideChannel& side)
      : rank_(rank), world_(static_cast<int>(devices.size())) {
    const int32_t count = world_;
    side.all_gather(&count, sizeof count);
    for (int peer = 0; peer < world_; ++peer) {
      if (peer == rank) {
        continue;
      }
      const nlohmann::json& cell = devices.at(static_cast<size_t>(rank))
                                       .at(static_cast<size_t>(peer));
      if (cell.is_null()) {
        continue;  // of a ring
      }
      const std::string name = cell.is_array() ? cell.at(0).get<std::string>()
                                               : cell.get<std::string>();
      links_[peer] = std::make_unique<PeerLink>(rdma, name);
    }
    add_buffers();
    exchange_records(side);
  }

  void run(SideChannel& side) {
    side.barrier();
    for (int size = 0; size < kSizes; ++size) {
      for (int round = 0; round < kRounds; ++round) {
        exchange(size, round);
      }
    }
    side.barrier();
  }

 private:
  static uint32_t bytes_of(int size) { return 4096u << size; }
  static size_t slot(int size, int buffer) {
    return static_cast<size_t>(size * kBuffers + buffer);
  }

  void add_buffers() {
    for (int size = 0; size < kSizes; ++size) {
      for (int buffer = 0; buffer < kBuffers; ++buffer) {
        send_.push_back(allocate(bytes_of(size)));
        for (auto& [peer, link] : links_) {
          send_index_[peer].push_back(link->add_memory(send_.back().get(), bytes_of(size)));
          receive_[peer].push_back(allocate(bytes_of(size)));
          receive_index_[peer].push_back(
              link->add_memory(receive_[peer].back().get(), bytes_of(size)));
        }
      }
    }
  }

  void exchange_records(SideChannel& side) {
    std::vector<PeerRecord> mine(static_cast<size_t>(world_));
    for (auto& [peer, link] : links_) {
      mine[static_cast<size_t>(peer)] = link->record();
    }
    const std::vector<uint8_t> bytes =
        side.all_gather(mine.data(), mine.size() * sizeof(PeerRecord));
    for (auto& [peer, link] : links_) {
      PeerRecord record;
      const auto at = static_cast<size_t>(peer * world_ + rank_) * sizeof record;
      std::memcpy(&record, bytes.data() + at, sizeof record);
      link->connect(record);
    }
  }

  void post_receives(int size) {
    for (int buffer = 0; buffer < kBuffers; ++buffer) {
      for (auto& [peer, link] : links_) {
        const uint64_t wr_id = kReceiveType << 16 | static_cast<uint64_t>(buffer) << 8 |
                               static_cast<uint64_t>(peer);
        link->post_receive(wr_id, receive_index_[peer][slot(size, buffer)], bytes_of(size));
      }
    }
  }

  void post_sends(int size) {
    for (int buffer = 0; buffer < kBuffers; ++buffer) {
      for (auto& [peer, link] : links_) {
        const uint64_t wr_id = kSendType << 16 | static_cast<uint64_t>(buffer) << 8 |
                               static_cast<uint64_t>(peer);
        link->post_send(wr_id, send_index_[peer][slot(size, buffer)], bytes_of(size));
      }
    }
  }

  /// Both buffers to and from every peer. Odd ranks send before they have posted a receive.
  void exchange(int size, int round) {
    for (int buffer = 0; buffer < kBuffers; ++buffer) {
      uint8_t* memory = send_[slot(size, buffer)].get();
      for (size_t i = 0; i < bytes_of(size); ++i) {
        memory[i] = golden(rank_, size, round * kBuffers + buffer, i);
      }
    }
    if (rank_ % 2 == 0) {
      post_receives(size);
      post_sends(size);
    } else {
      post_sends(size);
      post_receives(size);
    }
    wait_for_all();
    for (auto& [peer, link] : links_) {
      for (int buffer = 0; buffer < kBuffers; ++buffer) {
        check(size, round, peer, buffer);
      }
    }
  }

  void wait_for_all() {
    std::map<int, int> next_send;
    std::map<int, int> next_receive;
    int left = 2 * kBuffers * static_cast<int>(links_.size());
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (left > 0) {
      for (auto& [peer, link] : links_) {
        for (const ibv_wc& wc : link->poll()) {
          const bool is_send = wc.wr_id >> 16 == kSendType;
          int& next = is_send ? next_send[peer] : next_receive[peer];
          if (wc.status != IBV_WC_SUCCESS || static_cast<int>(wc.wr_id & 0xff) != peer ||
              static_cast<int>(wc.wr_id >> 8 & 0xff) != next || wc.qp_num != link->qp_num()) {
            throw std::runtime_error("unexpected completion " + std::to_string(wc.wr_id) +
                                     " with status " + std::to_string(wc.status) + " from peer " +
                                     std::to_string(peer));
          }
          ++next;
          --left;
        }
      }
      if (std::chrono::steady_clock::now() > limit) {
        throw std::runtime_error(std::to_string(left) + " completions did not come");
      }
    }
  }

  void check(int size, int round, int peer, int buffer) {
    uint8_t* memory = receive_[peer][slot(size, buffer)].get();
    for (size_t i = 0; i < bytes_of(size); ++i) {
      if (memory[i] != golden(peer, size, round * kBuffers + buffer, i)) {
        throw std::runtime_error("byte " + std::to_string(i) + " of " +
                                 std::to_string(bytes_of(size)) + " from rank " +
                                 std::to_string(peer) + " in round " + std::to_string(round) +
                                 " is wrong");
      }
    }
    std::memset(memory, 0xA5, bytes_of(size));
  }

  int rank_;
  int world_;
  // Memory before links: a link's registrations go first.
  std::vector<Memory> send_;
  std::map<int, std::vector<Memory>> receive_;
  std::map<int, std::vector<size_t>> send_index_;
  std::map<int, std::vector<size_t>> receive_index_;
  std::map<int, std::unique_ptr<PeerLink>> links_;
};

void run() {
  const int rank = std::stoi(environment("JACCL_RANK", "RINGBOLT_NODE"));
  std::ifstream file(environment("JACCL_IBV_DEVICES"));
  const nlohmann::json devices = nlohmann::json::parse(file);
  const RdmaLibrary rdma = load_rdma_library("librdma.dylib");
  // As after a registration that failed in the original.
  if (rdma.dereg_mr(nullptr) != EINVAL) {
    throw std::runtime_error("dereg_mr of nothing is not refused");
  }
  const std::string coordinator = environment("JACCL_COORDINATOR");
  const int world = static_cast<int>(devices.size());
  std::unique_ptr<Coordinator> own;
  if (rank == 0 && std::getenv("JACCL_TEST_HOSTS") != nullptr) {  // as in the original; tests bring one of their own
    own = std::make_unique<Coordinator>(
        world, static_cast<uint16_t>(std::stoi(coordinator.substr(coordinator.find(':') + 1))));
  }
  SideChannel side(coordinator, rank, world);
  Rank self(rdma, rank, devices, side);
  self.run(side);
}

}  // namespace
}  // namespace ringbolt::jaccl

int main() {
  try {
    ringbolt::jaccl::run();
    return 0;
  } catch (const std::exception& problem) {
    const char* rank = std::getenv("JACCL_RANK");
    std::fprintf(stderr, "jaccl rank %s: %s\n", rank != nullptr ? rank : "?", problem.what());
    return 1;
  }
}
