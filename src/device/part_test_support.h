#pragma once

// What the parts of a queue pair share, and a transport of the test's: for tests of one part without the others.

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/lock_guard.h"
#include "cluster/counter_page.h"
#include "device/device_test_support.h"
#include "device/queue_pair_core.h"
#include "device/queue_pair_transport.h"
#include "device/receive_queue.h"
#include "device/receive_quirks.h"
#include "device/send_queue.h"
#include "device/send_quirks.h"

namespace ringbolt::device {

/// Takes what it is told to take, remembers it, and completes what it is told to complete. Not thread-safe: its fields
/// are the test's.
class FakeTransport final : public QueuePairTransport {
 public:
  struct Submitted {
    uint64_t wr_id;
    SendRequest request;
    std::vector<ibv_sge> pieces;
    std::string bytes;  ///< as the pieces had them when it was taken
  };

  explicit FakeTransport(QueuePairCore& core) : core_(core) {}

  std::vector<Submitted> submitted;
  size_t room = SIZE_MAX;       ///< how many more it takes
  bool keeps_requests = false;  ///< it needs them again when they complete
  bool finishes = false;        ///< what it takes is complete at once
  bool completes_all = true;
  std::set<uint64_t> complete;                   ///< by wr_id, unless all are
  std::map<uint64_t, ibv_wc_status> fails;       ///< by wr_id: when it is submitted
  std::map<uint64_t, ibv_wc_status> fails_late;  ///< when it would be complete
  ibv_wc_status gives_up_with = IBV_WC_SUCCESS;
  std::vector<SendRequest> asked;  ///< requests as they were when it was asked whether they are complete
  int tries = 0;
  int push_outs = 0;
  int flushes = 0;
  int closes = 0;
  std::vector<uint32_t> postings;  ///< how many receives lay there when some were posted
  bool has_message = false;
  Delivery its_delivery = Delivery::delivered;
  uint32_t rnr_us = 10;

  bool submit(SendQueue& queue, SendEntry& entry, const SendRequest& request) override {
    ++tries;
    if (const auto failing = fails.find(entry.wr_id); failing != fails.end()) {
      return queue.fail(entry, failing->second);
    }
    if (room == 0) {
      return false;
    }
    --room;
    Submitted one{entry.wr_id, request, {request.pieces, request.pieces + request.pieces_count}, {}};
    for (const ibv_sge& piece : one.pieces) {
      one.bytes.append(reinterpret_cast<const char*>(piece.addr), piece.length);
    }
    submitted.push_back(one);
    entry.phase = finishes ? SendPhase::finished : keeps_requests ? SendPhase::wired : SendPhase::sent;
    return true;
  }
  void push_out(SendQueue&) override { ++push_outs; }
  void take_answers(SendQueue&, uint64_t) override {}
  bool is_complete(SendQueue& queue, SendEntry& entry, const SendRequest& request) override {
    if (!completes_all && !complete.contains(entry.wr_id)) {
      return false;
    }
    asked.push_back(request);
    if (const auto failing = fails_late.find(entry.wr_id); failing != fails_late.end()) {
      return queue.fail(entry, failing->second);
    }
    return true;
  }
  bool give_up() override {
    if (gives_up_with == IBV_WC_SUCCESS) {
      return false;
    }
    core_.enter_error(gives_up_with);
    return true;
  }
  void flush() override { ++flushes; }
  Delivery delivery(const SendQueue&, uint32_t) override { return its_delivery; }
  uint32_t rnr_timer_us() const override { return rnr_us; }
  void receive(ReceiveQueue&, CompletionQueue&) override {}
  void on_posting(uint32_t posted) override { postings.push_back(posted); }
  bool has_arrived() const override { return has_message; }
  bool may_have_arrived() const override { return has_message; }
  void close() override { ++closes; }

  std::vector<uint64_t> ids() const {
    std::vector<uint64_t> all;
    for (const Submitted& one : submitted) {
      all.push_back(one.wr_id);
    }
    return all;
  }

 private:
  QueuePairCore& core_;
};

/// The core of a queue pair that no process knows of, in the state RTS, with a completion queue for sends and one for
/// receives.
class CoreUnderTest {
 public:
  CoreUnderTest(DeviceUnderTest& device, ibv_qp_type type, uint32_t cqe = 64, SharedReceiveQueue* shared = nullptr)
      : device_(device),
        sends(*CompletionQueue::create(device.context(), cqe, nullptr)),
        receives(*CompletionQueue::create(device.context(), cqe, nullptr)),
        core(device.pd(), {sends, receives, shared}, of_type(type), &handle),
        transport(core) {
    core.qpn = kQpn;
    core.transport.store(&transport);
    core.set_state(IBV_QPS_RTS);
  }
  ~CoreUnderTest() {
    device_.process().remove(*sends);
    device_.process().remove(*receives);
  }
  CoreUnderTest(const CoreUnderTest&) = delete;
  CoreUnderTest& operator=(const CoreUnderTest&) = delete;

  static constexpr uint32_t kQpn = 0x4321;

 private:
  static ibv_qp_init_attr of_type(ibv_qp_type type) {
    ibv_qp_init_attr init{};
    init.qp_type = type;
    return init;
  }
  DeviceUnderTest& device_;

 public:
  ibv_qp handle{};
  std::shared_ptr<CompletionQueue> sends;
  std::shared_ptr<CompletionQueue> receives;
  QueuePairCore core;
  FakeTransport transport;
};

/// A counter of the device's port as programs read it, of either folder; UINT64_MAX where there is none.
inline uint64_t counter(DeviceUnderTest& device, const char* name) {
  const auto sum = cluster::read_counters(device.port().counter_path);
  for (const RingboltCounter& one : cluster::all_counters()) {
    if (sum && std::string(one.name) == name) {
      return ringbolt_counter_value(&one, &*sum);
    }
  }
  return UINT64_MAX;
}

/// What a poll for up to 64 completions gives.
inline std::vector<ibv_wc> poll_all(CompletionQueue& queue) {
  std::vector<ibv_wc> all(64);
  const int count = queue.poll(static_cast<int>(all.size()), all.data());
  EXPECT_GE(count, 0);
  all.resize(count < 0 ? 0 : static_cast<size_t>(count));
  return all;
}

/// The wr_id and the status of each, to be compared.
using Ends = std::vector<std::pair<uint64_t, ibv_wc_status>>;
inline Ends ends_of(const std::vector<ibv_wc>& completions) {
  Ends ends;
  for (const ibv_wc& wc : completions) {
    ends.emplace_back(wc.wr_id, wc.status);
  }
  return ends;
}

}  // namespace ringbolt::device
