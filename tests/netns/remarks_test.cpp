// What a port says, once, of messages and packets that are too long. Through memory, and in a network namespace of its
// own through its loopback interface, whose MTU shrinks.
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "far.h"

namespace {

using namespace ringbolt::conformance;

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

void set_loopback_mtu(int bytes) {
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_mtu = bytes;
  ASSERT_EQ(ioctl(socket, SIOCSIFMTU, &request), 0) << std::strerror(errno);
  close(socket);
}

class Remarks : public testing::TestWithParam<ibv_wr_opcode> {};
INSTANTIATE_TEST_SUITE_P(All, Remarks, testing::Values(IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ));

TEST_P(Remarks, name_the_length_of_a_message_beyond_the_largest_and_the_limit) {
  testing::internal::CaptureStderr();
  {
    Link link(Placement::same_process, QpOptions(), 4096);
    Endpoint second(link.device, QpOptions());
    Endpoint third(link.device, QpOptions());
    connect(second, third);
    const auto share = static_cast<uint32_t>(uint64_t{link.device.port.max_msg_sz} / 16);
    Region part(link.near.pd(), share + 1);
    std::vector<ibv_sge> sges(16, part.sge(0, share));
    sges[0].length += 1;
    for (Endpoint* endpoint : {&link.near, &second}) {
      SendWr wr(1, GetParam(), sges);
      wr.remote(link.far.region_address(), link.far.rkey());
      ASSERT_EQ(wr.post(endpoint->qp()), 0);
      expect_status(wait_completion(endpoint->send_cq()), 1, IBV_WC_LOC_LEN_ERR);
    }
  }
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(count_of(said,
                     "a message of 1073741825 bytes ends in LOC_LEN_ERR: messages of this port have 1073741824 "
                     "at most, its max_msg_sz; send it in parts\n"),
            1U)
      << said;
  EXPECT_EQ(count_of(said, "\n"), 1U) << said;
}

TEST(Remarks, name_the_length_of_a_datagram_beyond_the_path_mtu) {
  testing::internal::CaptureStderr();
  {
    QpOptions options;
    options.type = IBV_QPT_UD;
    Link link(Placement::same_process, options, 8192);
    const Ah target = make_ah(link.device, link.near.pd(), link.far.address().gid);
    SendWr wr(1, IBV_WR_SEND, {link.memory.sge(0, 4097)});
    ASSERT_EQ(wr.datagram(target.get(), link.far.address().qp_num).post(link.near.qp()), 0);
    expect_status(wait_completion(link.near.send_cq()), 1, IBV_WC_LOC_LEN_ERR);
  }
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(count_of(said,
                     "a message of 4097 bytes ends in LOC_LEN_ERR: datagrams of this port have 4096 at most, its "
                     "path MTU; send it in parts\n"),
            1U)
      << said;
}

class ShrunkMtu : public testing::TestWithParam<ibv_qp_type> {
 protected:
  void SetUp() override {
    if (std::getenv("RINGBOLT_NETDEVS") == nullptr) {
      GTEST_SKIP() << "no network here";
    }
  }
  void TearDown() override { set_loopback_mtu(65536); }
};
INSTANTIATE_TEST_SUITE_P(All, ShrunkMtu, testing::Values(IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD));

TEST_P(ShrunkMtu, is_named_with_what_the_queue_pair_needs) {
  testing::internal::CaptureStderr();
  {
    QpOptions options;
    options.type = GetParam();
    options.retry_cnt = 1;
    Link link(Placement::same_process, options, 8192);
    const Ah target = options.type == IBV_QPT_UD ? make_ah(link.device, link.near.pd(), link.far.address().gid) : Ah();
    const auto send = [&](uint64_t id) {
      SendWr wr(id, IBV_WR_SEND, {link.memory.sge(0, 4096)});
      if (target) {
        wr.datagram(target.get(), link.far.address().qp_num);
      }
      ASSERT_EQ(wr.post(link.near.qp()), 0);
    };
    ASSERT_EQ(link.far.post_recv(1, {{0, 8192}}), 0);
    send(1);
    expect_success(wait_completion(link.near.send_cq()), 1, IBV_WC_SEND);
    EXPECT_EQ(link.far.wait_recv().status, IBV_WC_SUCCESS);
    ASSERT_EQ(link.far.post_recv(2, {{0, 8192}}), 0);
    set_loopback_mtu(1500);
    for (const uint64_t id : {2U, 3U}) {
      send(id);
      const ibv_wc wc = wait_completion(link.near.send_cq());
      EXPECT_EQ(wc.status, options.type != IBV_QPT_RC ? IBV_WC_SUCCESS
                           : id == 2                  ? IBV_WC_RETRY_EXC_ERR
                                                      : IBV_WC_WR_FLUSH_ERR);
    }
  }
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(count_of(said,
                     "packets of its path MTU of 4096 bytes are lost: lo has an MTU of 1500 now, and they may need "
                     "4192; ip link set lo mtu 4192, or connect anew with a path MTU of 1024\n"),
            1U)
      << said;
  EXPECT_EQ(count_of(said, "\n"), 1U) << said;
}

}  // namespace
