#pragma once

// Two queue pairs joined by lanes, without a process that knows of them: what each does, and when, is the test's
// choice.

#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/lane_transport.h"
#include "device/part_test_support.h"
#include "link/peer_test_support.h"
#include "link/remote_process.h"
#include "link/shared_segment.h"

namespace ringbolt::device {

using link::testing::FakePeer;

/// Memory that every peer can map, under a key.
class Shareable {
 public:
  Shareable(DeviceUnderTest& device, size_t length)
      : device_(device), data_(*device.process().allocate_buffer(length)) {
    region_ = *MemoryRegion::create(device.pd(), address(), length, address(), Memory::kAll);
  }
  ~Shareable() {
    region_.reset();
    device_.process().free_buffer(data_);
  }
  Shareable(const Shareable&) = delete;
  Shareable& operator=(const Shareable&) = delete;

  std::byte* data() { return data_; }
  uint64_t address() const { return reinterpret_cast<uint64_t>(data_); }
  uint32_t key() const { return region_->key(); }
  ibv_sge piece(size_t offset, size_t length) const {
    return {address() + offset, static_cast<uint32_t>(length), key()};
  }

 private:
  DeviceUnderTest& device_;
  std::byte* const data_;
  std::unique_ptr<MemoryRegion> region_;
};

/// One end of a pair of lanes.
class LaneEnd {
 public:
  static constexpr uint32_t kDepth = 512;
  static constexpr uint32_t kAccess = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

  LaneEnd(DeviceUnderTest& device, ibv_qp_type type, uint32_t own_qpn, uint32_t remote_qpn)
      : parts(device, type, 2 * kDepth),
        core(parts.core),
        connection(remote_qpn, *link::SharedSegment::create("lane of a test", link::kLaneBytes)),
        sends(core, {kDepth, 4, 64, true}, kDepth, nullptr),
        receives(core, kDepth, 4, false),
        transport(core, connection, nullptr) {
    core.qpn = own_qpn;
    core.mtu_shift = mtu_shift(IBV_MTU_1024);
    core.attributes.qp_access_flags = kAccess;
    core.attributes.timeout = 14;
    core.attributes.retry_cnt = 1;
    core.attributes.rnr_retry = 7;
    core.attributes.min_rnr_timer = 12;
    connection.receiver.set_access(kAccess);
    connection.receiver.set_rnr_timer_us(640);
    core.transport.store(&transport);
  }

  /// Its sends go to `other` from here on.
  void join(LaneEnd& other, std::shared_ptr<link::RemoteProcess> remote) {
    connection.sender.emplace(*reinterpret_cast<link::LaneMemory*>(other.connection.receive_segment.data()));
    connection.receive_queue = remote->queue(other.parts.receives->wake_name(), 0, {});
    connection.send_queue = remote->queue(other.parts.sends->wake_name(), 0, {});
    connection.remote = std::move(remote);
    connection.remote_pd_key = other.core.pd.key;
  }

  int post(ibv_send_wr wr) {
    ibv_send_wr* bad = nullptr;
    return sends.post(&wr, &bad);
  }
  int send(uint64_t id, ibv_sge piece, unsigned flags = 0) {
    return post(End::request(IBV_WR_SEND, id, &piece, flags));
  }
  /// WRITE, READ or an atomic of one piece.
  int one_sided(ibv_wr_opcode opcode, uint64_t id, ibv_sge piece, uint64_t remote, uint32_t key, unsigned flags = 0) {
    ibv_send_wr wr = End::request(opcode, id, &piece, flags);
    wr.wr.rdma = {remote, key};
    return post(wr);
  }
  int fetch_add(uint64_t id, ibv_sge piece, uint64_t remote, uint32_t key, uint64_t add) {
    ibv_send_wr wr = End::request(IBV_WR_ATOMIC_FETCH_AND_ADD, id, &piece);
    wr.wr.atomic = {remote, add, 0, key};
    return post(wr);
  }
  int compare_swap(uint64_t id, ibv_sge piece, uint64_t remote, uint32_t key, uint64_t compare, uint64_t swap) {
    ibv_send_wr wr = End::request(IBV_WR_ATOMIC_CMP_AND_SWP, id, &piece);
    wr.wr.atomic = {remote, compare, swap, key};
    return post(wr);
  }
  int receive(uint64_t id, std::vector<ibv_sge> pieces = {}) {
    ibv_recv_wr wr{id, nullptr, pieces.data(), static_cast<int>(pieces.size())};
    ibv_recv_wr* bad = nullptr;
    return receives.post(&wr, &bad);
  }

  /// What its completion queues do when they are polled.
  void take_arrived() {
    const base::LockGuard cq_guard(parts.receives->lock);
    const ReceiveGuard guard(core.locks);
    if (core.state() == IBV_QPS_ERR) {
      receives.flush(*parts.receives);
    } else {
      transport.receive(receives, *parts.receives);
    }
  }
  void push_sends() {
    const base::LockGuard guard(parts.sends->lock);
    sends.progress(*parts.sends);
  }
  Ends sent() {
    push_sends();
    return ends_of(poll_all(*parts.sends));
  }
  Ends received() {
    take_arrived();
    return ends_of(poll_all(*parts.receives));
  }
  ibv_wc received_one() {
    take_arrived();
    return End::poll(*parts.receives);
  }
  void fail() {
    const SendGuard guard(core.locks);
    core.enter_error(IBV_WC_WR_FLUSH_ERR);
  }
  ibv_qp_state state() const { return core.state(); }

  CoreUnderTest parts;
  QueuePairCore& core;
  Connection connection;
  SendQueue sends;
  ReceiveQueue receives;
  LaneTransport transport;
};

/// Two of them, to each other, and memory of both kinds.
class LanePairTest : public testing::Test {
 protected:
  static constexpr uint32_t kFirst = 0x4001;
  static constexpr uint32_t kSecond = 0x4002;
  static constexpr auto kNothing = End::kNothing;

  void begin(ibv_qp_type type) {
    a_ = std::make_unique<LaneEnd>(device_, type, kFirst, kSecond);
    b_ = std::make_unique<LaneEnd>(device_, type, kSecond, kFirst);
    a_->join(*b_, remote_);
    b_->join(*a_, remote_);
  }
  /// The other process lets nobody at its memory, and perhaps not even at its table.
  void hide_memory(bool and_table = false) {
    peer_->reachable = false;
    if (and_table) {
      const auto blind = std::make_shared<link::RemoteProcess>(peer_);
      a_->connection.remote = b_->connection.remote = blind;
    }
  }
  /// What was allocated so far is known to the other end.
  void introduce_arenas() {
    for (const auto& made : device_.process().arenas().all()) {
      const base::UniqueFd copy(dup(made.segment->descriptor()));
      ASSERT_EQ(remote_->arenas().add(made.arena_id, made.segment->length_bytes(), copy), 0);
    }
  }
  /// Until nothing moves any more.
  void pump(int turns = 64) {
    for (int i = 0; i < turns; ++i) {
      b_->take_arrived();
      a_->take_arrived();
      a_->push_sends();
      b_->push_sends();
    }
  }
  template <class From, class To>
  static bool are_equal(From& from, size_t from_offset, To& to, size_t to_offset, size_t length) {
    return std::memcmp(from.data() + from_offset, to.data() + to_offset, length) == 0;
  }

  DeviceUnderTest device_;
  Memory from_{device_.pd(), (1 << 20) + 64, Memory::kAll};
  Memory to_{device_.pd(), (1 << 20) + 64, Memory::kAll};
  std::shared_ptr<FakePeer> peer_ = std::make_shared<FakePeer>(
      device_.process().regions().descriptor(), device_.process().wakes().descriptor());
  std::shared_ptr<link::RemoteProcess> remote_ = [this] {
    auto remote = std::make_shared<link::RemoteProcess>(peer_);
    EXPECT_EQ(remote->open_regions(), 0);
    EXPECT_EQ(remote->open_wakes(), 0);
    return remote;
  }();
  std::unique_ptr<LaneEnd> a_;
  std::unique_ptr<LaneEnd> b_;
};

/// For RC and for UC.
class LanePairOfTypesTest : public LanePairTest, public testing::WithParamInterface<ibv_qp_type> {
 protected:
  void SetUp() override { begin(GetParam()); }
  bool is_reliable() const { return GetParam() == IBV_QPT_RC; }
  /// What RC says, and UC does not know.
  ibv_wc_status if_reliable(ibv_wc_status status) const { return is_reliable() ? status : IBV_WC_SUCCESS; }
};
inline std::string name_of_type(const testing::TestParamInfo<ibv_qp_type>& type) {
  return type.param == IBV_QPT_RC ? "RC" : "UC";
}

}  // namespace ringbolt::device
