#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>

#include "verbs/objects.h"
#include "verbs/queue_pair.h"
#include "verbs/slab.h"

/// Our own device, in a runtime folder of the test's own.
namespace ringbolt::verbs::test {

/// Points RINGBOLT_RUNTIME_DIR at a fresh folder and leaves any cluster, while it lives.
class RuntimeFolder {
 public:
  RuntimeFolder() {
    if (mkdtemp(path_) == nullptr) {
      throw std::runtime_error("cannot make a folder below /tmp");
    }
    setenv("RINGBOLT_RUNTIME_DIR", path_, 1);
    for (const char* name : {"RINGBOLT_CLUSTER", "RINGBOLT_NODE", "RINGBOLT_LIKE", "RINGBOLT_FAULTS"}) {
      unsetenv(name);
    }
  }
  ~RuntimeFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  RuntimeFolder(const RuntimeFolder&) = delete;
  RuntimeFolder& operator=(const RuntimeFolder&) = delete;

 private:
  char path_[32] = "/tmp/rbv-XXXXXX";
};

/// The default device, like another machine's if `like` says so.
class Device {
 public:
  explicit Device(const std::string& like = "") {
    if (!like.empty()) {
      setenv("RINGBOLT_LIKE", like.c_str(), 1);
    }
    context = std::make_unique<Context>(Library::open("soft"), "");
    pd = std::make_unique<ProtectionDomain>(*context);
    cq = std::make_unique<CompletionQueue>(*context, 64);
  }

  QueuePairPlan plan(ibv_qp_type type, uint32_t depth = 8) const {
    return {.type = type, .send_cq = cq.get(), .receive_cq = cq.get(), .send_depth = depth, .receive_depth = depth};
  }
  /// The end of a queue pair of this device.
  Peer end(const UnconnectedQueuePair& qp) const {
    return {.qp_number = qp.number(),
            .psn = Path{}.psn,
            .lid = context->query_port(1)->lid,
            .gid = *context->query_gid(1, kGidIndex)};
  }
  static constexpr uint8_t kGidIndex = 1;  // IPv4-mapped in every profile that the tests take
  static Path path() { return {.gid_index = kGidIndex}; }

  /// Waits for one completion; gives up after five seconds.
  ibv_wc wait_for_one() const {
    const uint64_t deadline = now_ms() + 5000;
    ibv_wc one{};
    while (now_ms() < deadline) {
      const auto n_taken = cq->poll({&one, 1});
      if (!n_taken || *n_taken == 1) {
        return one;
      }
    }
    throw std::runtime_error("no completion within 5 s");
  }

 private:
  static uint64_t now_ms() {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<uint64_t>(t.tv_sec) * 1000 + static_cast<uint64_t>(t.tv_nsec) / 1'000'000;
  }

  RuntimeFolder folder_;

 public:
  std::unique_ptr<Context> context;
  std::unique_ptr<ProtectionDomain> pd;
  std::unique_ptr<CompletionQueue> cq;
};

}  // namespace ringbolt::verbs::test
