#pragma once

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/lock_guard.h"
#include "circuit/endpoint.h"
#include "verbs/soft_device_test_support.h"

// Two endpoints of one process, over our own device: both ends where a sanitizer sees them.
namespace ringbolt::circuit::test {

using namespace std::chrono_literals;

inline bool comes_true(const std::function<bool()>& what, std::chrono::milliseconds within = 20s) {
  const auto deadline = std::chrono::steady_clock::now() + within;
  while (!what()) {
    if (std::chrono::steady_clock::now() > deadline) {
      return false;
    }
    std::this_thread::sleep_for(100us);
  }
  return true;
}

class Circuits : public testing::Test {
 protected:
  std::unique_ptr<Endpoint> make(const std::string& name, bool has_checksums = false, Way way = Way::automatic) const {
    EndpointPlan plan;
    plan.verbs = "soft";
    plan.node = 1;
    plan.name = name;
    plan.group = "test";
    plan.has_checksums = has_checksums;
    plan.most_silent_ms = 5000;
    plan.way = way;
    return std::make_unique<Endpoint>(plan, [](Level, const std::string&) {});
  }

  /// A circuit from `from` to `to`.
  void connect(Endpoint& from, Endpoint& to) {
    std::array<std::byte, kHandleBytes> handle{};
    const uint64_t listener = to.listen(handle);
    ASSERT_TRUE(comes_true([&] {
      outgoing = from.connect(handle);
      return outgoing->ready() != nullptr;
    }));
    ASSERT_TRUE(comes_true([&] { return (incoming = to.accept(listener)) != nullptr; }));
    from.hand_over(outgoing->id());
    to.close_listener(listener);
    sender = outgoing->ready();
    receiver = incoming->circuit();
  }

  Send* send(const std::vector<std::byte>& bytes, int32_t tag = 0, const Registered* registered = nullptr) {
    const base::LockGuard guard(sender->lock);
    return sender->post(bytes.data(), bytes.size(), tag, registered);
  }
  Receive* receive(std::vector<std::vector<std::byte>*> buffers, std::vector<int> tags,
                   std::vector<const Registered*> registered = {}) {
    registered.resize(buffers.size());
    std::vector<void*> data;
    std::vector<size_t> sizes;
    for (std::vector<std::byte>* const buffer : buffers) {
      data.push_back(buffer->data());
      sizes.push_back(buffer->size());
    }
    const base::LockGuard guard(receiver->lock);
    return receiver->post(static_cast<uint32_t>(buffers.size()), data.data(), sizes.data(), tags.data(),
                          registered.data());
  }
  bool is_sent(Send* one) {
    const base::LockGuard guard(sender->lock);
    return sender->is_done(*one);
  }
  bool is_received(Receive* one) {
    const base::LockGuard guard(receiver->lock);
    return receiver->is_done(*one);
  }
  void pop() {
    const base::LockGuard guard(receiver->lock);
    receiver->pop();
  }
  void close() {
    sender.reset();
    receiver.reset();
    outgoing->close();
    incoming->close();
    outgoing.reset();
    incoming.reset();
  }

  verbs::test::RuntimeFolder folder;
  std::shared_ptr<Outgoing> outgoing;
  std::shared_ptr<Incoming> incoming;
  std::shared_ptr<SendCircuit> sender;
  std::shared_ptr<ReceiveCircuit> receiver;
};

inline std::vector<std::byte> pattern(size_t size, unsigned seed) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<std::byte>(i * 7 + seed * 13 + i / 251);
  }
  return bytes;
}

}  // namespace ringbolt::circuit::test
