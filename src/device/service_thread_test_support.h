#pragma once

#include <cstdint>
#include <memory>

#include "device/service_thread.h"
#include "link/rendezvous.h"

namespace ringbolt::device {

/// How it sleeps and is woken is the test's.
class RendezvousWithoutPeers : public link::Rendezvous {
 public:
  uint32_t slot() const override { return 0; }
  uint64_t incarnation() const override { return 0; }
  std::shared_ptr<link::Peer> peer_at(uint32_t) override { return nullptr; }
  bool has_pending() const override { return false; }
  bool watch(int) override { return true; }
  void unwatch(int) override {}
  void leave() override {}
  void abandon_after_fork() override {}
};

}  // namespace ringbolt::device
