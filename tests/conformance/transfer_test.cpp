// Every operation that moves bytes, over every connected type, at every boundary of size and list
// length, within a process and between two.
#include <arpa/inet.h>

#include "deadline.h"
#include "far.h"
#include "pattern.h"

namespace ringbolt::conformance {
namespace {

struct Operation {
  ibv_wr_opcode opcode;
  const char* name;
  ibv_wc_opcode completion;
  bool takes_receive;
  bool is_remote;
  bool has_immediate;
};

constexpr Operation kSend{IBV_WR_SEND, "SEND", IBV_WC_SEND, true, false, false};
constexpr Operation kSendImm{IBV_WR_SEND_WITH_IMM, "SEND_IMM", IBV_WC_SEND, true, false, true};
constexpr Operation kWrite{IBV_WR_RDMA_WRITE, "WRITE", IBV_WC_RDMA_WRITE, false, true, false};
constexpr Operation kWriteImm{IBV_WR_RDMA_WRITE_WITH_IMM, "WRITE_IMM", IBV_WC_RDMA_WRITE, true,
                              true, true};
constexpr Operation kRead{IBV_WR_RDMA_READ, "READ", IBV_WC_RDMA_READ, false, true, false};

// Around the path MTU of 4096 and around where implementations change their way of copying.
constexpr uint32_t kSizes[] = {0,    1,    7,     64,    65,    4095,  4096,
                               4097, 8193, 16385, 65535, 65536, 65537, 1048579};
constexpr uint32_t kSgeCounts[] = {1, 3, 16};
constexpr uint64_t kSpare = 2048;

struct Transfer {
  Operation operation;
  ibv_qp_type type;
  Placement placement;
};

void PrintTo(const Transfer& one, std::ostream* out) {
  *out << type_name(one.type) << '_' << one.operation.name << '_' << placement_name(one.placement);
}

class TransferTest : public testing::TestWithParam<Transfer> {
 protected:
  static QpOptions options() {
    QpOptions chosen;
    chosen.type = GetParam().type;
    return chosen;
  }

  /// Moves one message through the link and checks every byte, completion and guard.
  void move(Link& link, uint32_t size, uint32_t near_sges, uint32_t far_sges, uint64_t seed) {
    const Operation& operation = GetParam().operation;
    const bool is_read = operation.opcode == IBV_WR_RDMA_READ;
    const std::vector<Piece> near_pieces = split(size, near_sges);
    // One-sided operations have one piece of remote memory, at an odd address.
    const std::vector<Piece> far_pieces =
        operation.is_remote ? std::vector<Piece>{{65, size}} : split(size, far_sges);
    link.memory.clear();
    link.far.clear();
    if (is_read) {
      link.far.fill(far_pieces, seed);
    } else {
      link.memory.fill(near_pieces, seed);
    }
    if (operation.takes_receive) {
      // A write with immediate uses up a receive without touching its list.
      ASSERT_EQ(link.far.post_recv(seed, operation.is_remote ? std::vector<Piece>{} : far_pieces),
                0);
    }
    SendWr wr(seed + 1, operation.opcode, link.memory.sges(near_pieces));
    wr.immediate(0xabc00000u + static_cast<uint32_t>(seed));
    wr.remote(link.far.region_address(65), link.far.rkey());
    ASSERT_EQ(wr.post(link.near.qp()), 0);
    const ibv_wc sent = wait_completion(link.near.send_cq());
    expect_success(sent, seed + 1, operation.completion);
    EXPECT_EQ(sent.qp_num, link.near.qp()->qp_num);
    if (is_read) {
      EXPECT_EQ(sent.byte_len, size);
      EXPECT_EQ(link.memory.check(near_pieces, size, seed), "");
      return;
    }
    if (operation.takes_receive) {
      expect_receive(link, size, seed);
    }
    const bool may_be_on_its_way = GetParam().type == IBV_QPT_UC && !operation.takes_receive;
    EXPECT_EQ(may_be_on_its_way ? link.far.check_soon(far_pieces, size, seed) : link.far.check(far_pieces, size, seed),
              "");
  }

  void expect_receive(Link& link, uint32_t size, uint64_t seed) {
    const Operation& operation = GetParam().operation;
    const ibv_wc received = link.far.wait_recv();
    expect_success(received, seed,
                   operation.is_remote ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV);
    EXPECT_EQ(received.byte_len, size);
    EXPECT_EQ(received.qp_num, link.far.address().qp_num);
    EXPECT_EQ((received.wc_flags & IBV_WC_WITH_IMM) != 0, operation.has_immediate);
    if (operation.has_immediate) {
      EXPECT_EQ(ntohl(received.imm_data), 0xabc00000u + static_cast<uint32_t>(seed));
    }
  }
};

TEST_P(TransferTest, moves_every_size_through_every_list_length) {
  constexpr uint64_t kRegion = 1048579 + kSpare;
  Link link(GetParam().placement, options(), kRegion);
  uint64_t seed = 100;
  for (const uint32_t size : kSizes) {
    for (const uint32_t sges : kSgeCounts) {
      // Large messages once: their lists were covered by the smaller ones.
      if (size > 100000 && sges != 3) {
        continue;
      }
      SCOPED_TRACE(std::to_string(size) + " bytes, " + std::to_string(sges) + " pieces");
      seed += 2;
      move(link, size, sges, kSgeCounts[(seed / 2) % 3], seed);
      if (HasFatalFailure()) {
        return;
      }
    }
  }
}

TEST_P(TransferTest, moves_nothing_through_an_empty_list) {
  Link link(GetParam().placement, options(), 4096);
  const Operation& operation = GetParam().operation;
  if (operation.takes_receive) {
    ASSERT_EQ(link.far.post_recv(1, {}), 0);
  }
  SendWr wr(2, operation.opcode, {});
  wr.immediate(5).remote(link.far.region_address(), link.far.rkey());
  ASSERT_EQ(wr.post(link.near.qp()), 0);
  expect_success(wait_completion(link.near.send_cq()), 2, operation.completion);
  if (operation.takes_receive) {
    EXPECT_EQ(link.far.wait_recv().byte_len, 0u);
  }
  EXPECT_EQ(link.far.check({}, 0, 0), "");
  EXPECT_EQ(link.memory.check({}, 0, 0), "");
}

TEST_P(TransferTest, keeps_many_messages_in_order) {
  constexpr uint32_t kMessages = 48;
  constexpr uint64_t kStride = 20000;
  Link link(GetParam().placement, options(), kMessages * kStride + kSpare);
  const Operation& operation = GetParam().operation;
  const bool is_read = operation.opcode == IBV_WR_RDMA_READ;
  const auto piece = [](uint32_t i) { return Piece{i * kStride, (i * 1237) % 20000}; };
  for (uint32_t i = 0; i < kMessages; ++i) {
    if (is_read) {
      link.far.fill({piece(i)}, i);
    } else {
      link.memory.fill(std::vector<Piece>{piece(i)}, i);
    }
    if (operation.takes_receive) {
      ASSERT_EQ(link.far.post_recv(i, {piece(i)}), 0);
    }
  }
  for (uint32_t i = 0; i < kMessages; ++i) {
    SendWr wr(i, operation.opcode, {link.memory.sge(piece(i).offset, piece(i).length)});
    wr.immediate(i).remote(link.far.region_address(piece(i).offset), link.far.rkey());
    ASSERT_EQ(wr.post(link.near.qp()), 0);
  }
  for (uint32_t i = 0; i < kMessages; ++i) {
    expect_success(wait_completion(link.near.send_cq()), i, operation.completion);
    if (operation.takes_receive) {
      const ibv_wc received = link.far.wait_recv();
      EXPECT_EQ(received.wr_id, i);
      EXPECT_EQ(received.byte_len, piece(i).length);
    }
  }
  if (is_read) {
    for (uint32_t i = 0; i < kMessages; ++i) {
      const Piece part = piece(i);
      EXPECT_EQ(first_mismatch(link.memory.bytes().subspan(part.offset, part.length), i), -1);
    }
  } else {
    // An unreliable WRITE is complete once it is sent: over a network the last one may still be on its way.
    const uint64_t last = piece(kMessages - 1).offset + (piece(kMessages - 1).length - 8) / 4096 * 4096;
    wait_until([&] { return link.far.word(last) == link.memory.word(last); });
    // The guards of one message are the bytes of another here: compare word by word instead.
    const bool may_be_on_its_way = GetParam().type == IBV_QPT_UC && !operation.takes_receive;
    for (uint32_t i = 0; i < kMessages; ++i) {
      for (uint64_t at = piece(i).offset; at + 8 <= piece(i).offset + piece(i).length; at += 4096) {
        const auto is_there = [&] { return link.far.word(at) == link.memory.word(at); };
        EXPECT_TRUE(may_be_on_its_way ? wait_until(is_there) : is_there()) << "message " << i << " at " << at;
      }
    }
  }
}

std::vector<Transfer> transfers() {
  std::vector<Transfer> list;
  for (const Placement placement : {Placement::same_process, Placement::other_process}) {
    for (const Operation& operation : {kSend, kSendImm, kWrite, kWriteImm, kRead}) {
      list.push_back({operation, IBV_QPT_RC, placement});
    }
    for (const Operation& operation : {kSend, kSendImm, kWrite, kWriteImm}) {
      list.push_back({operation, IBV_QPT_UC, placement});
    }
  }
  return list;
}

INSTANTIATE_TEST_SUITE_P(All, TransferTest, testing::ValuesIn(transfers()), testing::PrintToStringParamName());

/// The largest message that a port announces, and one byte more.
class LargestMessageTest : public testing::TestWithParam<ibv_wr_opcode> {};

TEST_P(LargestMessageTest, one_byte_too_many_is_a_local_length_error) {
  QpOptions options;
  Link link(Placement::same_process, options, 4096);
  const uint64_t largest = link.device.port.max_msg_sz;
  // The same memory sixteen times over: nothing is to be read before the length is judged.
  const auto share = static_cast<uint32_t>(largest / 16);
  Region part(link.near.pd(), share + 1);
  std::vector<ibv_sge> sges(16, part.sge(0, share));
  sges[0].length += 1;
  SendWr wr(1, GetParam(), sges);
  wr.remote(link.far.region_address(), link.far.rkey());
  ASSERT_EQ(wr.post(link.near.qp()), 0);
  expect_status(wait_completion(link.near.send_cq()), 1, IBV_WC_LOC_LEN_ERR);
  EXPECT_EQ(link.near.state(), IBV_QPS_ERR);
}

INSTANTIATE_TEST_SUITE_P(All, LargestMessageTest,
                         testing::Values(IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ));

TEST(LargestMessage, write_of_exactly_the_limit_arrives) {
  QpOptions options;
  Link link(Placement::same_process, options, 4096);
  const uint64_t largest = link.device.port.max_msg_sz;
  const auto share = static_cast<uint32_t>(largest / 16);
  Region source(link.near.pd(), share);
  for (uint64_t at = 0; at + 8 <= share; at += 4096) {
    source.set_word(at, at ^ 0x5555);
  }
  Region target(link.near.pd(), largest);
  // The far side has a protection domain of its own, so the target goes through a pair of this one.
  Endpoint a(link.device, options, {link.near.pd(), nullptr, nullptr, nullptr});
  Endpoint b(link.device, options, {link.near.pd(), nullptr, nullptr, nullptr});
  connect(a, b);
  const std::vector<ibv_sge> sges(16, source.sge(0, share));
  ASSERT_EQ(SendWr(7, IBV_WR_RDMA_WRITE, sges).remote(target.address(), target.rkey()).post(a.qp()),
            0);
  expect_success(wait_completion(a.send_cq()), 7, IBV_WC_RDMA_WRITE);
  for (uint64_t part = 0; part < 16; ++part) {
    for (uint64_t at = 0; at + 8 <= share; at += 1 << 20) {
      ASSERT_EQ(target.word(part * share + at), at ^ 0x5555) << "part " << part << " at " << at;
    }
  }
}

}  // namespace
}  // namespace ringbolt::conformance
