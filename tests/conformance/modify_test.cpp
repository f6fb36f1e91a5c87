// A step of a queue pair that fails leaves it exactly as it was.
#include <functional>

#include "far.h"
#include "limit.h"

namespace ringbolt::conformance {
namespace {

constexpr ibv_qp_state kStates[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD};

/// A value that no queue pair may have, for each attribute that has one.
struct Spoil {
  const char* name;
  int bit;
  std::function<void(ibv_qp_attr&)> apply;
};

const std::vector<Spoil>& spoils() {
  static const std::vector<Spoil> all = {
      {"port 0", IBV_QP_PORT, [](ibv_qp_attr& attr) { attr.port_num = 0; }},
      {"port 9", IBV_QP_PORT, [](ibv_qp_attr& attr) { attr.port_num = 9; }},
      {"pkey index", IBV_QP_PKEY_INDEX, [](ibv_qp_attr& attr) { attr.pkey_index = 0xffff; }},
      {"MTU 0", IBV_QP_PATH_MTU, [](ibv_qp_attr& attr) { attr.path_mtu = static_cast<ibv_mtu>(0); }},
      {"MTU 6", IBV_QP_PATH_MTU, [](ibv_qp_attr& attr) { attr.path_mtu = static_cast<ibv_mtu>(6); }},
      {"peer", IBV_QP_DEST_QPN, [](ibv_qp_attr& attr) { attr.dest_qp_num = 1U << 24U; }},
      {"timeout", IBV_QP_TIMEOUT, [](ibv_qp_attr& attr) { attr.timeout = 32; }},
      {"retries", IBV_QP_RETRY_CNT, [](ibv_qp_attr& attr) { attr.retry_cnt = 8; }},
      {"RNR retries", IBV_QP_RNR_RETRY, [](ibv_qp_attr& attr) { attr.rnr_retry = 8; }},
      {"RNR timer", IBV_QP_MIN_RNR_TIMER, [](ibv_qp_attr& attr) { attr.min_rnr_timer = 32; }},
      {"READs out", IBV_QP_MAX_QP_RD_ATOMIC, [](ibv_qp_attr& attr) { attr.max_rd_atomic = 255; }},
      {"READs in", IBV_QP_MAX_DEST_RD_ATOMIC, [](ibv_qp_attr& attr) { attr.max_dest_rd_atomic = 255; }},
      {"path without GIDs", IBV_QP_AV, [](ibv_qp_attr& attr) { attr.ah_attr.is_global = 0; }},
      {"path from a port", IBV_QP_AV, [](ibv_qp_attr& attr) { attr.ah_attr.port_num = 9; }},
      {"path from a GID", IBV_QP_AV, [](ibv_qp_attr& attr) { attr.ah_attr.grh.sgid_index = 255; }},
      {"path to nowhere", IBV_QP_AV, [](ibv_qp_attr& attr) { attr.ah_attr.grh.dgid.raw[0] = 0x20; }},
      {"current state", IBV_QP_CUR_STATE, [](ibv_qp_attr& attr) { attr.cur_qp_state = IBV_QPS_SQE; }},
      {"what no step takes", IBV_QP_RATE_LIMIT, [](ibv_qp_attr& attr) { attr.rate_limit = 1; }},
  };
  return all;
}

/// All that can be asked of a queue pair.
struct Shown {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  ibv_qp_state handle;

  explicit Shown(const Endpoint& endpoint) : handle(endpoint.qp()->state) {
    constexpr int kAll = (IBV_QP_DEST_QPN << 1) - 1;
    must_succeed(ibv_query_qp(endpoint.qp(), &attr, kAll, &init), "ibv_query_qp");
  }
  bool operator==(const Shown& other) const {
    return std::memcmp(&attr, &other.attr, sizeof attr) == 0 && std::memcmp(&init, &other.init, sizeof init) == 0 &&
           handle == other.handle;
  }
};

class ModifyTest : public testing::TestWithParam<ibv_qp_type> {
 protected:
  ModifyTest() : device(open_device()), peer(device, options()) {}

  static QpOptions options() {
    QpOptions wanted;
    wanted.type = GetParam();
    return wanted;
  }
  /// Of a queue pair unlike options(): whatever is stored too early shows.
  static QpOptions other_options() {
    QpOptions wanted = options();
    wanted.path_mtu = IBV_MTU_1024;
    wanted.timeout = 17;
    wanted.retry_cnt = 6;
    wanted.rnr_retry = 2;
    wanted.min_rnr_timer = 21;
    wanted.rd_atomic = 3;
    wanted.access = 0;
    return wanted;
  }

  void bring(Endpoint& endpoint, ibv_qp_state to) const {
    if (to != IBV_QPS_RESET) {
      must_succeed(endpoint.to_init(), "RESET -> INIT");
    }
    if (to == IBV_QPS_RTR || to == IBV_QPS_RTS || to == IBV_QPS_SQD) {
      must_succeed(endpoint.to_rtr(peer.address()), "INIT -> RTR");
    }
    if (to == IBV_QPS_RTS || to == IBV_QPS_SQD) {
      must_succeed(endpoint.to_rts(), "RTR -> RTS");
    }
    if (to == IBV_QPS_SQD) {
      must_succeed(endpoint.to_state(to), "RTS -> SQD");
    }
  }

  /// The attributes of the step, and what it needs of them.
  ibv_qp_attr step(const Endpoint& other, ibv_qp_state to, int& mask) const {
    ibv_qp_attr attr{};
    mask = IBV_QP_STATE;
    if (to == IBV_QPS_INIT) {
      attr = other.init_attr(mask);
    } else if (to == IBV_QPS_RTR) {
      attr = other.rtr_attr(peer.address(), mask);
    } else if (to == IBV_QPS_RTS) {
      attr = other.rts_attr(mask);
    }
    attr.qp_state = to;
    return attr;
  }

  Device device;
  Endpoint peer;
};
INSTANTIATE_TEST_SUITE_P(All, ModifyTest, testing::Values(IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD),
                         [](const auto& parameter) { return type_name(parameter.param); });

TEST_P(ModifyTest, a_bad_value_changes_nothing_in_any_step) {
  const Endpoint other(device, other_options());
  for (const ibv_qp_state from : kStates) {
    Endpoint endpoint(device, options());
    bring(endpoint, from);
    const Shown before(endpoint);
    for (const ibv_qp_state to : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD}) {
      for (const Spoil& spoil : spoils()) {
        int mask = 0;
        ibv_qp_attr attr = step(other, to, mask);
        spoil.apply(attr);
        EXPECT_NE(ibv_modify_qp(endpoint.qp(), &attr, mask | spoil.bit), 0)
            << from << " -> " << to << " with a bad " << spoil.name;
        ASSERT_TRUE(Shown(endpoint) == before) << from << " -> " << to << " with a bad " << spoil.name;
      }
    }
  }
}

TEST_P(ModifyTest, a_step_that_finds_no_descriptor_changes_nothing) {
  if (GetParam() == IBV_QPT_UD) {
    GTEST_SKIP() << "skip: datagrams take nothing for a step";
  }
  Endpoint a(device, options());
  Endpoint b(device, options());
  Region from(a.pd(), 64);
  Region to(b.pd(), 64);
  ASSERT_EQ(a.to_init(), 0);
  const Shown before(a);
  {
    const Endpoint other(device, other_options());
    int mask = 0;
    ibv_qp_attr attr = step(other, IBV_QPS_RTR, mask);
    const Limit limit(getpid(), RLIMIT_NOFILE, next_descriptor(getpid()));
    if (ibv_modify_qp(a.qp(), &attr, mask | IBV_QP_ACCESS_FLAGS) == 0) {
      GTEST_SKIP() << "skip: on a network the step needs no descriptor";
    }
  }
  EXPECT_TRUE(Shown(a) == before);
  // And it can be taken all the same.
  ASSERT_EQ(a.to_rtr(b.address()), 0);
  ASSERT_EQ(a.to_rts(), 0);
  b.connect(a.address());
  from.fill(std::vector<Piece>{{0, 64}}, 4);
  ASSERT_EQ(post_recv(b.qp(), 1, {to.sge(0, 64)}), 0);
  ASSERT_EQ(SendWr(2, IBV_WR_SEND, {from.sge(0, 64)}).post(a.qp()), 0);
  expect_success(wait_completion(a.send_cq()), 2, IBV_WC_SEND);
  expect_success(wait_completion(b.recv_cq()), 1, IBV_WC_RECV);
  EXPECT_EQ(to.check(std::vector<Piece>{{0, 64}}, 64, 4), "");
}

}  // namespace
}  // namespace ringbolt::conformance
