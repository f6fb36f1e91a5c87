#pragma once

#include <unistd.h>

#include <cstdint>
#include <span>
#include <vector>

#include "link/rendezvous.h"
#include "link/rendezvous_test_support.h"

namespace ringbolt::link::testing {

/// A process as its peer sees it; this one in truth. Its fields are the test's.
class FakePeer final : public Peer {
 public:
  /// Of neither table.
  FakePeer() = default;
  /// The descriptors must outlive it.
  FakePeer(int region_table, int wake_table) : region_table_(region_table), wake_table_(wake_table) {}

  pid_t process = getpid();
  bool reachable = kernel_reads_other_memory();
  bool gone = false;
  bool orderly = false;
  bool stopped = false;
  int rings = 0;
  std::vector<Message> sent;

  uint32_t slot() const override { return 1; }
  uint64_t incarnation() const override { return 1; }
  pid_t pid() const override { return process; }
  bool is_ready() const override { return true; }
  bool is_gone() const override { return gone; }
  bool left_orderly() const override { return orderly; }
  bool memory_is_reachable() const override { return reachable; }
  bool is_stopped() const override { return stopped; }
  void ring() override { ++rings; }
  int region_table_fd() const override { return region_table_; }
  int wake_table_fd() const override { return wake_table_; }
  bool send(const Message& message, std::span<const int>) override {
    sent.push_back(message);
    return !gone;
  }

 private:
  const int region_table_ = -1;
  const int wake_table_ = -1;
};

}  // namespace ringbolt::link::testing
