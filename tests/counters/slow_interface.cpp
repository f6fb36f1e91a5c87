#include "slow_interface.h"

#include <poll.h>

#include <cstdlib>
#include <utility>

#include "deadline.h"
#include "far.h"
#include "pattern.h"
#include "port_counters.h"

namespace ringbolt::counters {
namespace {

using namespace conformance;

/// The interface for a while: after the first 128 kB nothing leaves within a test.
class SlowInterface {
 public:
  SlowInterface() {
    is_slow_ = std::system("tc qdisc add dev lo root tbf rate 1kbit burst 128kb limit 100mb 2> /dev/null") == 0;
  }
  ~SlowInterface() { end(); }
  bool is_slow() const { return is_slow_; }
  void end() {
    if (std::exchange(is_slow_, false)) {
      EXPECT_EQ(std::system("tc qdisc del dev lo root"), 0);
    }
  }

 private:
  bool is_slow_;
};

/// A queue pair that posts more datagrams than the socket holds.
struct Crowd {
  explicit Crowd(const Device& device, ibv_cq* cq = nullptr)
      : near(device, deep(), {.send_cq = cq}), memory(near.pd(), kBytes), ah(make_ah(device, near.pd(), device.gid)) {
    near.connect({});
  }
  static constexpr uint32_t kBytes = 4096;
  static QpOptions deep() {
    QpOptions options;
    options.type = IBV_QPT_UD;
    options.send_wr = 16384;
    options.cq_entries = 16384;
    return options;
  }
  /// Until some have to wait, and then more than a batch holds. How many it posted.
  uint64_t post() {
    constexpr uint64_t kMore = 64;
    const Counts before = read_ports();
    const Deadline deadline;
    uint64_t posted = 0;
    for (uint64_t most = deep().send_wr; posted < most && !deadline.has_passed(); ++posted) {
      SendWr wr(posted, IBV_WR_SEND, {memory.sge(0, kBytes)}, IBV_SEND_SIGNALED);
      wr.datagram(ah.get(), 0x123456);
      EXPECT_EQ(wr.post(near.qp()), 0);
      if (most == deep().send_wr && grown_since(before).contains("port_xmit_wait")) {
        most = posted + kMore;
      }
    }
    return posted;
  }

  Endpoint near;
  Region memory;
  Ah ah;
};

}  // namespace

void slow_interface() {
  SlowInterface interface;
  if (!interface.is_slow()) {
    GTEST_SKIP() << "no qdisc here";
  }
  const Device device = open_device();
  const Channel channel = make_channel(device);
  const Cq cq = make_cq(device, static_cast<int>(Crowd::deep().cq_entries), channel.get());
  Crowd crowd(device, cq.get());
  const uint64_t posted = crowd.post();
  uint64_t done = 0;
  const auto take = [&] {
    for (ibv_wc wc; ibv_poll_cq(cq.get(), 1, &wc) == 1;) {
      expect_success(wc, done++, IBV_WC_SEND);
    }
  };
  take();
  EXPECT_LT(done, posted);
  ASSERT_EQ(ibv_req_notify_cq(cq.get(), 0), 0);
  interface.end();
  for (pollfd event{channel->fd, POLLIN, 0}; done < posted && poll(&event, 1, 10'000) == 1; take()) {
    ibv_cq* source = nullptr;
    void* context = nullptr;
    ASSERT_EQ(ibv_get_cq_event(channel.get(), &source, &context), 0);
    ibv_ack_cq_events(source, 1);
    ASSERT_EQ(ibv_req_notify_cq(cq.get(), 0), 0);
  }
  EXPECT_EQ(done, posted);
}

void connected_while_slow() {
  constexpr uint32_t kBytes = 256 * 1024;
  SlowInterface interface;
  if (!interface.is_slow()) {
    GTEST_SKIP() << "no qdisc here";
  }
  const Device device = open_device();
  Crowd crowd(device);
  Endpoint near(device, {});
  Endpoint far(device, {});
  connect(near, far);
  Region from(near.pd(), 2 * kBytes);
  Region to(far.pd(), 2 * kBytes);
  const Piece first{0, kBytes};
  const Piece second{kBytes, kBytes};
  from.fill({&first, 1}, 1);
  to.fill({&second, 1}, 2);
  crowd.post();
  ASSERT_EQ(post_recv(far.qp(), 1, {to.sge(0, kBytes)}), 0);
  ASSERT_EQ(SendWr(1, IBV_WR_SEND, {from.sge(0, kBytes)}).post(near.qp()), 0);
  SendWr read(2, IBV_WR_RDMA_READ, {from.sge(kBytes, kBytes)});
  ASSERT_EQ(read.remote(to.address(kBytes), to.rkey()).post(near.qp()), 0);
  EXPECT_TRUE(is_empty(near.send_cq()));
  interface.end();
  expect_success(wait_completion(far.recv_cq()), 1, IBV_WC_RECV);
  expect_success(wait_completion(near.send_cq()), 1, IBV_WC_SEND);
  expect_success(wait_completion(near.send_cq()), 2, IBV_WC_RDMA_READ);
  EXPECT_EQ(first_mismatch(to.bytes().first(kBytes), 1), -1);
  EXPECT_EQ(first_mismatch(from.bytes().last(kBytes), 2), -1);
}

void ended_while_slow() {
  const SlowInterface interface;
  if (!interface.is_slow()) {
    GTEST_SKIP() << "no qdisc here";
  }
  const Device device = open_device();
  Crowd crowd(device);
  crowd.post();
  crowd.near.destroy_qp();
}

}  // namespace ringbolt::counters
