#include "verbs/queue_pair.h"

#include <gmock/gmock.h>
#include <poll.h>

#include "base/error.h"
#include "verbs/errand.h"
#include "verbs/soft_device_test_support.h"

namespace ringbolt::verbs {
namespace {

using test::Device;
using testing::AllOf;
using testing::HasSubstr;

template <class Build>
std::string refusal(Build build) {
  try {
    build();
    return {};
  } catch (const base::Error& error) {
    return error.what();
  }
}

std::byte pattern(size_t position) { return static_cast<std::byte>(position * 7 + position / 251); }

/// Two connected queue pairs of one device.
struct Pair {
  Pair(const Device& device, UnconnectedQueuePair left, UnconnectedQueuePair right)
      : peer_of_left(device.end(right)),
        peer_of_right(device.end(left)),
        a(std::move(left).connect(Device::path(), peer_of_left)),
        b(std::move(right).connect(Device::path(), peer_of_right)) {}
  Pair(const Device& device, ibv_qp_type type)
      : Pair(device, UnconnectedQueuePair(*device.pd, device.plan(type)),
             UnconnectedQueuePair(*device.pd, device.plan(type))) {}

  Peer peer_of_left;
  Peer peer_of_right;
  QueuePair a;
  QueuePair b;
};

/// Registered before the queue pairs are connected, as some devices want it.
struct Memory {
  explicit Memory(const Device& device) : slab(*device.pd, 65536), region(*device.pd, slab.bytes()) {}
  Slab slab;
  MemoryRegion region;
};

/// Sends `length` bytes from a to b and looks at each of them.
void expect_transfer(const Device& device, const Memory& memory, const QueuePair& a, const QueuePair& b,
                     size_t length) {
  const auto& [slab, region] = memory;
  for (size_t i = 0; i < length; ++i) {
    slab.bytes()[i] = pattern(i + length);
    slab.bytes()[32768 + i] = std::byte{0};
  }
  ibv_sge to = region.piece(32768, 16384);
  ibv_recv_wr receive{};
  receive.wr_id = 2;
  receive.sg_list = &to;
  receive.num_sge = 1;
  ASSERT_EQ(b.post_receive(receive), 0);
  ibv_sge from = region.piece(0, length);
  ibv_send_wr send{};
  send.wr_id = 1;
  send.sg_list = &from;
  send.num_sge = 1;
  send.opcode = IBV_WR_SEND;
  send.send_flags = IBV_SEND_SIGNALED;
  ASSERT_EQ(a.post_send(send), 0);
  uint64_t seen = 0;
  for (int i = 0; i < 2; ++i) {
    const ibv_wc completion = device.wait_for_one();
    ASSERT_EQ(completion.status, IBV_WC_SUCCESS);
    seen |= completion.wr_id;
    if (completion.wr_id == 2) {
      EXPECT_EQ(completion.byte_len, length);
    }
  }
  EXPECT_EQ(seen, 3U);
  for (size_t i = 0; i < length; ++i) {
    ASSERT_EQ(slab.bytes()[32768 + i], pattern(i + length)) << i;
  }
}

struct Kind {
  const char* like;
  ibv_qp_type type;
};
void PrintTo(const Kind& kind, std::ostream* out) {
  std::string name = *kind.like == '\0' ? "roce" : kind.like;
  std::erase(name, '-');
  *out << name << '_' << text_of(kind.type);
}
class VerbsTransfer : public testing::TestWithParam<Kind> {};

TEST_P(VerbsTransfer, carries_every_byte) {
  const Device device(GetParam().like);
  const Memory memory(device);
  const Pair pair(device, GetParam().type);
  // As many frames of 4 KiB as the receive has: devices over Thunderbolt want that.
  expect_transfer(device, memory, pair.a, pair.b, 16384);
  expect_transfer(device, memory, pair.b, pair.a, 12289);
}

TEST_P(VerbsTransfer, goes_on_after_a_new_connection) {
  const Device device(GetParam().like);
  const Memory memory(device);
  Pair first(device, GetParam().type);
  expect_transfer(device, memory, first.a, first.b, 16384);
  expect_transfer(device, memory, first.b, first.a, 16384);
  ASSERT_EQ(first.a.to_error(), 0);
  const uint32_t number = first.a.number();
  UnconnectedQueuePair left = std::move(first.a).reset();
  UnconnectedQueuePair right = std::move(first.b).reset();
  EXPECT_EQ(left.number(), number);
  const Pair second(device, std::move(left), std::move(right));
  expect_transfer(device, memory, second.a, second.b, 16384);
}

INSTANTIATE_TEST_SUITE_P(Kinds, VerbsTransfer,
                         testing::Values(Kind{"", IBV_QPT_UC}, Kind{"", IBV_QPT_RC}, Kind{"tn3205", IBV_QPT_UC},
                                         Kind{"apple", IBV_QPT_UC}, Kind{"usb4-linux", IBV_QPT_RC}),
                         testing::PrintToStringParamName());

TEST(VerbsQueuePair, knows_the_depth_that_was_granted) {
  const Device device("tn3205");
  const UnconnectedQueuePair qp(*device.pd, device.plan(IBV_QPT_UC));
  EXPECT_EQ(qp.send_depth(), 1023U);
  EXPECT_EQ(qp.receive_depth(), 1023U);
  EXPECT_EQ(qp.inline_bytes(), 0U);
}

TEST(VerbsQueuePair, has_been_granted_what_was_asked_where_nobody_can_be_asked) {
  const test::RuntimeFolder folder;
  Calls calls = Library::open("soft").calls();
  calls.query_qp = nullptr;
  const Context context(Library("no query", calls), "");
  const ProtectionDomain pd(context);
  const CompletionQueue cq(context, 8);
  const UnconnectedQueuePair qp(pd, {.send_cq = &cq, .receive_cq = &cq, .send_depth = 5, .receive_depth = 6});
  EXPECT_GE(qp.send_depth(), 5U);
  EXPECT_GE(qp.receive_depth(), 6U);
}

TEST(VerbsQueuePair, refusal_of_a_type_says_which_to_take) {
  const Device device("tn3205");
  EXPECT_THAT(refusal([&] { UnconnectedQueuePair(*device.pd, device.plan(IBV_QPT_RC)); }),
              AllOf(HasSubstr("rdma_lo, a RC queue pair of 8 sends"), HasSubstr("take UC")));
}

TEST(VerbsQueuePair, eleventh_of_a_mac_is_refused_until_one_goes) {
  const Device device("tn3205");
  std::vector<UnconnectedQueuePair> taken;
  const std::string text = refusal([&] {
    for (int i = 0; i < 11; ++i) {
      taken.emplace_back(*device.pd, device.plan(IBV_QPT_UC));
    }
  });
  EXPECT_EQ(taken.size(), 10U);
  EXPECT_THAT(text, AllOf(HasSubstr("Device or resource busy"), HasSubstr("a Mac has 10")));
  taken.pop_back();
  EXPECT_NO_THROW(UnconnectedQueuePair(*device.pd, device.plan(IBV_QPT_UC)));
}

TEST(VerbsQueuePair, peer_that_is_not_on_the_cable_is_an_errno_or_an_error) {
  const Device device("tn3205");
  UnconnectedQueuePair qp(*device.pd, device.plan(IBV_QPT_UC));
  Peer peer = device.end(qp);
  peer.gid.raw[15] = 77;  // nobody's address
  qp.to_init(Device::path());
  EXPECT_EQ(qp.try_to_rtr(peer), ETIMEDOUT);
  EXPECT_THAT(refusal([&] { qp.to_rtr(peer); }),
              AllOf(HasSubstr("from GID ::ffff:127.0.0.1 at index 1"), HasSubstr("at ::ffff:127.0.0.77"),
                    HasSubstr("not at the other end of this cable")));
  EXPECT_EQ(qp.try_to_rtr(device.end(qp)), 0);  // it is still in INIT
}

TEST(VerbsQueuePair, empty_slot_of_the_gid_table_is_named) {
  const Device device("tn3205");
  UnconnectedQueuePair qp(*device.pd, device.plan(IBV_QPT_UC));
  const Peer peer = device.end(qp);
  qp.to_init({.gid_index = 9});
  EXPECT_THAT(refusal([&] { qp.to_rtr(peer); }), AllOf(HasSubstr("GID :: at index 9"), HasSubstr("bridge")));
}

TEST(VerbsQueuePair, failed_posts_are_positive_errnos) {
  const Device device("tn3205");
  const Pair pair(device, IBV_QPT_UC);
  const Slab slab(*device.pd, 16384);
  const MemoryRegion region(*device.pd, slab.bytes());
  ibv_sge piece = region.piece(0, 16384);
  ibv_recv_wr receive{};
  receive.sg_list = &piece;
  receive.num_sge = 1;
  for (int i = 0; i < 1023 / 4; ++i) {
    ASSERT_EQ(pair.b.post_receive(receive), 0) << i;
  }
  ibv_recv_wr* bad = &receive;
  EXPECT_EQ(pair.b.post_receive(receive, &bad), ENOMEM);  // the device says -12 and leaves `bad` as it was
  EXPECT_EQ(bad, nullptr);
  ibv_send_wr write{};
  write.sg_list = &piece;
  write.num_sge = 1;
  write.opcode = IBV_WR_RDMA_WRITE;
  EXPECT_EQ(pair.a.post_send(write), EOPNOTSUPP);
}

TEST(VerbsQueuePair, in_error_gives_its_receives_back) {
  const Device device;
  const Pair pair(device, IBV_QPT_RC);
  const Slab slab(*device.pd, 4096);
  const MemoryRegion region(*device.pd, slab.bytes());
  ibv_sge piece = region.piece(0, 4096);
  ibv_recv_wr receive{};
  receive.wr_id = 41;
  receive.sg_list = &piece;
  receive.num_sge = 1;
  ASSERT_EQ(pair.b.post_receive(receive), 0);
  ASSERT_EQ(pair.b.to_error(), 0);
  const ibv_wc completion = device.wait_for_one();
  EXPECT_EQ(completion.status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(completion.wr_id, 41U);
}

TEST(VerbsQueuePair, completion_becomes_an_event_of_its_channel) {
  const Device device;
  const CompletionChannel channel(*device.context);
  const CompletionQueue cq(*device.context, 8, &channel);
  EXPECT_EQ(channel.take_event().error().value, EAGAIN);
  QueuePairPlan plan = device.plan(IBV_QPT_RC);
  plan.receive_cq = &cq;
  const Pair pair(device, UnconnectedQueuePair(*device.pd, plan), UnconnectedQueuePair(*device.pd, plan));
  ASSERT_EQ(cq.arm(), 0);
  const Slab slab(*device.pd, 4096);
  const MemoryRegion region(*device.pd, slab.bytes());
  ibv_sge piece = region.piece(0, 4096);
  ibv_recv_wr receive{};
  receive.sg_list = &piece;
  receive.num_sge = 1;
  ASSERT_EQ(pair.b.post_receive(receive), 0);
  ASSERT_EQ(pair.b.to_error(), 0);  // the flushed receive is the completion
  pollfd readable{channel.fd(), POLLIN, 0};
  ASSERT_EQ(::poll(&readable, 1, 5000), 1);
  const auto event = channel.take_event();
  ASSERT_TRUE(event);
  EXPECT_EQ(*event, cq.get());
}

TEST(QueuePair, tells_the_errno_of_a_provider_that_returns_minus_one) {
  const Device device;
  const Pair pair(device, IBV_QPT_RC);
  ibv_context_ops& ops = device.context->get()->ops;
  const ibv_context_ops before = ops;
  ops.post_send = [](ibv_qp*, ibv_send_wr*, ibv_send_wr**) {
    errno = ENOMEM;
    return -1;
  };
  ops.post_recv = [](ibv_qp*, ibv_recv_wr*, ibv_recv_wr**) {
    errno = ENOSPC;
    return -1;
  };
  ibv_send_wr send{};
  EXPECT_EQ(pair.a.post_send(send), ENOMEM);
  ibv_recv_wr receive{};
  EXPECT_EQ(pair.a.post_receive(receive), ENOSPC);
  ops = before;
}

TEST(QueuePair, says_where_it_is_while_it_goes_to_err) {
  static int (*modify_qp)(ibv_qp*, ibv_qp_attr*, int);
  static const Whereabouts* where_now;
  static std::string seen;
  const test::RuntimeFolder folder;
  Calls calls = Library::open("soft").calls();
  modify_qp = calls.modify_qp;
  calls.modify_qp = [](ibv_qp* qp, ibv_qp_attr* attributes, int mask) {
    if (attributes->qp_state == IBV_QPS_ERR) {
      seen = where_now->text();
    }
    return modify_qp(qp, attributes, mask);
  };
  within(UINT64_MAX, [&](Whereabouts& where) {
    where_now = &where;
    const Context context(Library("watched", calls), "");
    const ProtectionDomain pd(context);
    const CompletionQueue cq(context, 16);
    UnconnectedQueuePair qp(pd, {.type = IBV_QPT_RC, .send_cq = &cq, .receive_cq = &cq});
    const Peer itself{.qp_number = qp.number(), .psn = Path{}.psn, .gid = *context.query_gid(1, Device::kGidIndex)};
    EXPECT_EQ(std::move(qp).connect(Device::path(), itself).to_error(), 0);
  });
  EXPECT_THAT(seen, HasSubstr("ibv_modify_qp to ERR"));
}

}  // namespace
}  // namespace ringbolt::verbs
