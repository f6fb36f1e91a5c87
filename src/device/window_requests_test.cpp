// Memory windows: InfiniBand Architecture Specification 1.4, 10.6.7 (type 1 and type 2) and 10.6.7.2 (invalidation).
// Type 2 as 2B: the key is bound to a queue pair.

#include "device/window_requests.h"

#include <gtest/gtest.h>

#include "device/device_test_support.h"

namespace ringbolt::device {
namespace {

/// A window as programs hold it.
class Window {
 public:
  Window(ProtectionDomain& pd, ibv_mw_type type) : window_(*MemoryWindow::create(pd, type)) {
    c_.type = type;
    c_.handle = window_->key();
  }
  ibv_mw* c() { return &c_; }
  /// The key that the low byte makes of its own.
  uint32_t key(uint8_t low) const { return (window_->key() & ~0xffU) | low; }

 private:
  std::unique_ptr<MemoryWindow> window_;
  ibv_mw c_{};
};

class WindowRequestsTest : public testing::Test {
 protected:
  static constexpr uint32_t kAll = Memory::kAll | IBV_ACCESS_MW_BIND;
  static constexpr uint32_t kRemote = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

  WindowRequestsTest() {
    connect(owner_, user_);
    source_.fill(3);
  }
  struct Binding {
    uint32_t key;
    size_t offset;
    size_t length;
    unsigned access = kRemote;
  };
  /// What the binding of the window to a part of `memory` ends with.
  ibv_wc_status bind(Window& window, Memory& memory, const Binding& binding) {
    ibv_mr region{};
    region.lkey = memory.key();
    ibv_send_wr wr = End::request(IBV_WR_BIND_MW, 1, nullptr);
    wr.bind_mw.mw = window.c();
    wr.bind_mw.rkey = binding.key;
    wr.bind_mw.bind_info = {&region, memory.address() + binding.offset, binding.length, binding.access};
    EXPECT_EQ(owner_.post(wr), 0);
    return owner_.await_send().status;
  }
  ibv_wc_status invalidate(uint32_t key) {
    ibv_send_wr wr = End::request(IBV_WR_LOCAL_INV, 1, nullptr);
    wr.invalidate_rkey = key;
    EXPECT_EQ(owner_.post(wr), 0);
    return owner_.await_send().status;
  }
  /// What a WRITE of 8 bytes by the peer ends with.
  ibv_wc_status write(uint64_t address, uint32_t key) { return use(IBV_WR_RDMA_WRITE, address, key); }
  ibv_wc_status use(ibv_wr_opcode opcode, uint64_t address, uint32_t key) {
    ibv_sge piece = source_.piece(0, 8);
    ibv_send_wr wr = End::request(opcode, 2, &piece);
    wr.wr.rdma = {address, key};
    EXPECT_EQ(user_.post(wr), 0);
    return user_.await_send().status;
  }

  DeviceUnderTest device_;
  End owner_{device_, IBV_QPT_RC};
  End user_{device_, IBV_QPT_RC};
  Memory memory_{device_.pd(), 4096, kAll};
  Memory source_{device_.pd(), 64, Memory::kAll};
};

TEST_F(WindowRequestsTest, peer_writes_through_a_bound_window) {
  Window window(device_.pd(), IBV_MW_TYPE_2);
  ASSERT_EQ(bind(window, memory_, {window.key(7), 100, 50}), IBV_WC_SUCCESS);
  EXPECT_EQ(write(memory_.address() + 142, window.key(7)), IBV_WC_SUCCESS);  // its last 8 bytes
  EXPECT_EQ(std::memcmp(memory_.data() + 142, source_.data(), 8), 0);
}

TEST_F(WindowRequestsTest, window_ends_where_it_was_bound_to_end) {
  Window window(device_.pd(), IBV_MW_TYPE_2);
  ASSERT_EQ(bind(window, memory_, {window.key(7), 100, 50}), IBV_WC_SUCCESS);
  EXPECT_EQ(write(memory_.address() + 143, window.key(7)), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(WindowRequestsTest, window_begins_where_it_was_bound_to_begin) {
  Window window(device_.pd(), IBV_MW_TYPE_2);
  ASSERT_EQ(bind(window, memory_, {window.key(7), 100, 50}), IBV_WC_SUCCESS);
  EXPECT_EQ(write(memory_.address() + 99, window.key(7)), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(WindowRequestsTest, window_allows_what_it_was_bound_for) {
  Window window(device_.pd(), IBV_MW_TYPE_2);
  ASSERT_EQ(bind(window, memory_, {window.key(7), 0, 64, IBV_ACCESS_REMOTE_READ}), IBV_WC_SUCCESS);
  EXPECT_EQ(use(IBV_WR_RDMA_READ, memory_.address(), window.key(7)), IBV_WC_SUCCESS);
  EXPECT_EQ(write(memory_.address(), window.key(7)), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(WindowRequestsTest, unbound_window_allows_nothing) {
  Window window(device_.pd(), IBV_MW_TYPE_2);
  EXPECT_EQ(write(memory_.address(), window.key(0)), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(WindowRequestsTest, binding_of_another_low_byte_closes_the_one_before) {
  Window window(device_.pd(), IBV_MW_TYPE_2);
  ASSERT_EQ(bind(window, memory_, {window.key(7), 0, 64}), IBV_WC_SUCCESS);
  ASSERT_EQ(bind(window, memory_, {window.key(8), 0, 64}), IBV_WC_SUCCESS);
  EXPECT_EQ(write(memory_.address(), window.key(8)), IBV_WC_SUCCESS);
  EXPECT_EQ(write(memory_.address(), window.key(7)), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(WindowRequestsTest, binding_without_a_byte_closes_the_window) {
  Window window(device_.pd(), IBV_MW_TYPE_1);
  ASSERT_EQ(bind(window, memory_, {window.key(7), 0, 64}), IBV_WC_SUCCESS);
  ASSERT_EQ(bind(window, memory_, {window.key(8), 0, 0}), IBV_WC_SUCCESS);
  EXPECT_EQ(write(memory_.address(), window.key(7)), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(WindowRequestsTest, zero_based_window_is_named_by_offsets) {
  Window window(device_.pd(), IBV_MW_TYPE_2);
  ASSERT_EQ(bind(window, memory_, {window.key(7), 256, 64, kRemote | IBV_ACCESS_ZERO_BASED}), IBV_WC_SUCCESS);
  EXPECT_EQ(write(56, window.key(7)), IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(memory_.data() + 256 + 56, source_.data(), 8), 0);
  EXPECT_EQ(write(57, window.key(7)), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(WindowRequestsTest, type_2_belongs_to_the_queue_pair_that_bound_it) {
  End other_owner(device_, IBV_QPT_RC);
  End other_user(device_, IBV_QPT_RC);
  connect(other_owner, other_user);
  Window window(device_.pd(), IBV_MW_TYPE_2);
  ASSERT_EQ(bind(window, memory_, {window.key(7), 0, 64}), IBV_WC_SUCCESS);
  ibv_sge piece = source_.piece(0, 8);
  ibv_send_wr wr = End::request(IBV_WR_RDMA_WRITE, 2, &piece);
  wr.wr.rdma = {memory_.address(), window.key(7)};
  ASSERT_EQ(other_user.post(wr), 0);
  EXPECT_EQ(other_user.await_send().status, IBV_WC_REM_ACCESS_ERR);
}

TEST_F(WindowRequestsTest, type_1_belongs_to_its_domain) {
  End other_owner(device_, IBV_QPT_RC);
  End other_user(device_, IBV_QPT_RC);
  connect(other_owner, other_user);
  Window window(device_.pd(), IBV_MW_TYPE_1);
  ASSERT_EQ(bind(window, memory_, {window.key(7), 0, 64}), IBV_WC_SUCCESS);
  ibv_sge piece = source_.piece(0, 8);
  ibv_send_wr wr = End::request(IBV_WR_RDMA_WRITE, 2, &piece);
  wr.wr.rdma = {memory_.address(), window.key(7)};
  ASSERT_EQ(other_user.post(wr), 0);
  EXPECT_EQ(other_user.await_send().status, IBV_WC_SUCCESS);
}

// --- Bindings that fail.

TEST_F(WindowRequestsTest, region_without_leave_to_bind_is_refused) {
  Memory closed(device_.pd(), 64, Memory::kAll);
  Window window(device_.pd(), IBV_MW_TYPE_2);
  EXPECT_EQ(bind(window, closed, {window.key(7), 0, 64}), IBV_WC_MW_BIND_ERR);
}

TEST_F(WindowRequestsTest, binding_beyond_the_region_is_refused) {
  Window window(device_.pd(), IBV_MW_TYPE_2);
  EXPECT_EQ(bind(window, memory_, {window.key(7), 4000, 97}), IBV_WC_MW_BIND_ERR);
}

TEST_F(WindowRequestsTest, remote_write_needs_a_region_with_local_write) {
  Memory read_only(device_.pd(), 64, IBV_ACCESS_MW_BIND | IBV_ACCESS_REMOTE_READ);
  Window window(device_.pd(), IBV_MW_TYPE_2);
  ASSERT_EQ(bind(window, read_only, {window.key(7), 0, 64, IBV_ACCESS_REMOTE_READ}), IBV_WC_SUCCESS);
  EXPECT_EQ(bind(window, read_only, {window.key(8), 0, 64, IBV_ACCESS_REMOTE_WRITE}), IBV_WC_MW_BIND_ERR);
}

TEST_F(WindowRequestsTest, region_of_another_domain_is_refused) {
  ProtectionDomain other(device_.context());
  Memory foreign(other, 64, kAll);
  Window window(device_.pd(), IBV_MW_TYPE_2);
  EXPECT_EQ(bind(window, foreign, {window.key(7), 0, 64}), IBV_WC_MW_BIND_ERR);
}

TEST_F(WindowRequestsTest, window_of_another_domain_is_refused) {
  ProtectionDomain other(device_.context());
  Window foreign(other, IBV_MW_TYPE_2);
  EXPECT_EQ(bind(foreign, memory_, {foreign.key(7), 0, 64}), IBV_WC_MW_BIND_ERR);
}

TEST_F(WindowRequestsTest, key_of_another_window_is_refused) {
  Window window(device_.pd(), IBV_MW_TYPE_2);
  Window another(device_.pd(), IBV_MW_TYPE_2);
  EXPECT_EQ(bind(window, memory_, {another.key(7), 0, 64}), IBV_WC_MW_BIND_ERR);
}

TEST_F(WindowRequestsTest, failed_binding_leaves_the_window_as_it_was) {
  Window window(device_.pd(), IBV_MW_TYPE_1);
  ASSERT_EQ(bind(window, memory_, {window.key(7), 0, 64}), IBV_WC_SUCCESS);
  EXPECT_EQ(bind(window, memory_, {window.key(8), 4000, 97}), IBV_WC_MW_BIND_ERR);
  End other_owner(device_, IBV_QPT_RC);  // the first one is in error
  End other_user(device_, IBV_QPT_RC);
  connect(other_owner, other_user);
  ibv_sge piece = source_.piece(0, 8);
  ibv_send_wr wr = End::request(IBV_WR_RDMA_WRITE, 2, &piece);
  wr.wr.rdma = {memory_.address(), window.key(7)};
  ASSERT_EQ(other_user.post(wr), 0);
  EXPECT_EQ(other_user.await_send().status, IBV_WC_SUCCESS);
}

TEST_F(WindowRequestsTest, request_without_a_window_is_refused_at_once) {
  ibv_send_wr wr = End::request(IBV_WR_BIND_MW, 1, nullptr);
  wr.bind_mw.mw = nullptr;
  EXPECT_EQ(owner_.post(wr), EINVAL);
}

TEST_F(WindowRequestsTest, region_with_a_bound_window_knows_it) {
  const auto region = *MemoryRegion::create(device_.pd(), memory_.address(), 64, memory_.address(), kAll);
  EXPECT_FALSE(region->has_windows());
  Window window(device_.pd(), IBV_MW_TYPE_1);
  ibv_mr c{};
  c.lkey = region->key();
  ibv_send_wr wr = End::request(IBV_WR_BIND_MW, 1, nullptr);
  wr.bind_mw.mw = window.c();
  wr.bind_mw.rkey = window.key(7);
  wr.bind_mw.bind_info = {&c, memory_.address(), 64, kRemote};
  ASSERT_EQ(owner_.post(wr), 0);
  ASSERT_EQ(owner_.await_send().status, IBV_WC_SUCCESS);
  EXPECT_TRUE(region->has_windows());
  wr.bind_mw.rkey = window.key(8);
  wr.bind_mw.bind_info.length = 0;
  ASSERT_EQ(owner_.post(wr), 0);
  ASSERT_EQ(owner_.await_send().status, IBV_WC_SUCCESS);
  EXPECT_FALSE(region->has_windows());
}

// --- Invalidation.

TEST_F(WindowRequestsTest, invalidated_key_allows_nothing_any_more) {
  Window window(device_.pd(), IBV_MW_TYPE_2);
  ASSERT_EQ(bind(window, memory_, {window.key(7), 0, 64}), IBV_WC_SUCCESS);
  EXPECT_EQ(invalidate(window.key(7)), IBV_WC_SUCCESS);
  EXPECT_EQ(write(memory_.address(), window.key(7)), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(WindowRequestsTest, peer_invalidates_with_a_send) {
  Window window(device_.pd(), IBV_MW_TYPE_2);
  ASSERT_EQ(bind(window, memory_, {window.key(7), 0, 64}), IBV_WC_SUCCESS);
  ASSERT_EQ(owner_.receive(5, memory_.piece(1000, 8)), 0);
  ibv_sge piece = source_.piece(0, 8);
  ibv_send_wr wr = End::request(IBV_WR_SEND_WITH_INV, 2, &piece);
  wr.invalidate_rkey = window.key(7);
  ASSERT_EQ(user_.post(wr), 0);
  const ibv_wc wc = owner_.await_receive();
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(wc.wc_flags, static_cast<unsigned>(IBV_WC_WITH_INV));
  EXPECT_EQ(wc.invalidated_rkey, window.key(7));
  EXPECT_EQ(user_.await_send().status, IBV_WC_SUCCESS);
  EXPECT_EQ(write(memory_.address(), window.key(7)), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(WindowRequestsTest, window_of_type_1_is_closed_by_bindings_alone) {
  Window window(device_.pd(), IBV_MW_TYPE_1);
  ASSERT_EQ(bind(window, memory_, {window.key(7), 0, 64}), IBV_WC_SUCCESS);
  EXPECT_EQ(invalidate(window.key(7)), IBV_WC_LOC_QP_OP_ERR);
}

TEST_F(WindowRequestsTest, key_of_a_region_is_not_invalidated) {
  EXPECT_EQ(invalidate(memory_.key()), IBV_WC_LOC_QP_OP_ERR);
}

TEST_F(WindowRequestsTest, key_that_was_invalidated_is_not_invalidated_again) {
  Window window(device_.pd(), IBV_MW_TYPE_2);
  ASSERT_EQ(bind(window, memory_, {window.key(7), 0, 64}), IBV_WC_SUCCESS);
  EXPECT_EQ(invalidate(window.key(7)), IBV_WC_SUCCESS);
  EXPECT_EQ(invalidate(window.key(7)), IBV_WC_LOC_QP_OP_ERR);
}

TEST_F(WindowRequestsTest, window_can_be_bound_again_after_its_invalidation) {
  Window window(device_.pd(), IBV_MW_TYPE_2);
  for (uint8_t low = 0; low < 5; ++low) {
    ASSERT_EQ(bind(window, memory_, {window.key(low), 0, 64}), IBV_WC_SUCCESS);
    EXPECT_EQ(write(memory_.address(), window.key(low)), IBV_WC_SUCCESS);
    EXPECT_EQ(invalidate(window.key(low)), IBV_WC_SUCCESS);
  }
}

// What a peer has begun under the old key comes to its end before the queue says that the key is closed.
TEST_F(WindowRequestsTest, invalidation_is_complete_once_no_peer_uses_the_key) {
  Window window(device_.pd(), IBV_MW_TYPE_2);
  ASSERT_EQ(bind(window, memory_, {window.key(7), 0, 64}), IBV_WC_SUCCESS);
  const auto announce = [this](uint32_t key) {
    user_.qp().lanes().each_sending([key](Connection& connection) {
      if (key == 0) {
        connection.sender->end_access();
      } else {
        connection.sender->announce_access(key);
      }
    });
  };
  ASSERT_EQ(write(memory_.address(), window.key(7)), IBV_WC_SUCCESS);  // its lane is there
  announce(window.key(7));
  ibv_send_wr wr = End::request(IBV_WR_LOCAL_INV, 1, nullptr);
  wr.invalidate_rkey = window.key(7);
  ASSERT_EQ(owner_.post(wr), 0);
  ASSERT_EQ(owner_.send(2, memory_.piece(0, 8)), 0);  // waits behind it
  for (int polls = 0; polls < 1000; ++polls) {
    ASSERT_EQ(owner_.poll_send().status, End::kNothing);
  }
  EXPECT_EQ(owner_.qp().windows().draining_key(), window.key(7));
  announce(0);
  EXPECT_EQ(owner_.await_send().status, IBV_WC_SUCCESS);
  EXPECT_EQ(owner_.qp().windows().draining_key(), 0U);
}

TEST_F(WindowRequestsTest, window_that_is_freed_lets_its_key_go) {
  uint32_t key = 0;
  {
    Window window(device_.pd(), IBV_MW_TYPE_2);
    key = window.key(7);
    ASSERT_EQ(bind(window, memory_, {key, 0, 64}), IBV_WC_SUCCESS);
  }
  EXPECT_EQ(write(memory_.address(), key), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(WindowRequestsTest, window_has_type_1_or_2) {
  EXPECT_EQ(MemoryWindow::create(device_.pd(), static_cast<ibv_mw_type>(3)).error().value, EINVAL);
}

}  // namespace
}  // namespace ringbolt::device
