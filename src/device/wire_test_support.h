#pragma once

// Two queue pairs of one process that reach each other through a loopback interface of their own.

#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>

#include "device/part_test_support.h"
#include "link/udp_test_support.h"

namespace ringbolt::device {

/// A device on the loopback interface with two queue pairs that are connected through it.
struct WirePair {
  explicit WirePair(ibv_qp_type type, const std::string& faults = {}, const std::string& like = {})
      : device(like, faults), a(device, type), b(device, type) {}

  Variable netdevs{"RINGBOLT_NETDEVS", "lo"};
  Variable loopback{"RINGBOLT_LOOPBACK", "network"};
  DeviceUnderTest device;
  // Gone after the queue pairs, for which packets may still be under way.
  Memory from{device.pd(), 128 << 10, Memory::kAll};
  Memory to{device.pd(), 128 << 10, Memory::kAll};
  End a;
  End b;

  int write(uint64_t id, size_t length, uint64_t address, uint32_t key, ibv_wr_opcode opcode = IBV_WR_RDMA_WRITE) {
    ibv_sge piece = from.piece(0, length);
    ibv_send_wr wr = End::request(opcode, id, &piece);
    wr.imm_data = 0x1234;
    wr.wr.rdma = {address, key};
    return a.post(wr);
  }
  bool holds_same(size_t length) { return std::memcmp(from.data(), to.data(), length) == 0; }
  uint64_t drops(Drop why) {
    uint64_t sum = 0;
    for (const Drops::Port& port : device.process().network().drops().read()) {
      sum += port.counts[static_cast<size_t>(why)];
    }
    return sum;
  }
  bool reaches_drops(Drop why, uint64_t count) {
    const uint64_t deadline = base::now_ns() + 20'000'000'000;
    while (drops(why) < count && base::now_ns() < deadline) {
      b.poll_receive();
    }
    return drops(why) >= count;
  }
};

/// In a child, with a network of its own.
inline void run_on_network(const std::function<void()>& body) {
  const auto user = geteuid();
  const auto group = getegid();
  link::testing::in_own_network_with_selectors([&] {
    if (user != 0) {  // in a namespace of users, where it is nobody yet, and may make no files
      std::ofstream("/proc/self/setgroups") << "deny";
      std::ofstream("/proc/self/uid_map") << user << ' ' << user << " 1";
      std::ofstream("/proc/self/gid_map") << group << ' ' << group << " 1";
    }
    body();
  });
}

}  // namespace ringbolt::device
