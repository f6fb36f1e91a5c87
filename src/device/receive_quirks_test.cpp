// What profiles (docs/profiles.md) and faults (docs/faults.md) make of a receive queue.

#include "device/receive_quirks.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <cerrno>

#include "device/part_test_support.h"
#include "link/lane.h"

namespace ringbolt::device {
namespace {

/// A receive queue with quirks.
class ReceiveQuirksTest : public testing::Test {
 protected:
  static constexpr uint32_t kFrame = 4096;

  /// `depth`: in receives, or in frames where the profile counts those.
  void begin(const std::string& like, const std::string& faults, ibv_qp_type type = IBV_QPT_UC, uint32_t depth = 4) {
    queue_.reset();
    own_.reset();
    data_.reset();
    device_.reset();  // it leaves the environment as it was, for the next one
    device_ = std::make_unique<DeviceUnderTest>(like, faults);
    data_ = std::make_unique<Memory>(device_->pd(), 16 * kFrame, IBV_ACCESS_LOCAL_WRITE);
    own_ = std::make_unique<CoreUnderTest>(*device_, type);
    queue_ = std::make_unique<ReceiveQueue>(own_->core, depth, 4, true);
    const ReceiveGuard guard(core().locks);
    queue_->note_rtr();
  }
  QueuePairCore& core() { return own_->core; }
  int post(uint64_t id, std::vector<ibv_sge> pieces) {
    bad_ = nullptr;
    ibv_recv_wr wr{id, nullptr, pieces.data(), static_cast<int>(pieces.size())};
    return queue_->post(&wr, &bad_);
  }
  int post(uint64_t id, size_t length = 8) { return post(id, {data_->piece(0, length)}); }
  /// A message of so many bytes comes. kNothing: it finds no receive.
  ibv_wc_status take(uint32_t length) {
    const base::LockGuard cq_guard(own_->receives->lock);
    const ReceiveGuard guard(core().locks);
    if (!queue_->open()) {
      return End::kNothing;
    }
    const ibv_wc_status status = queue_->begin(length);
    if (status == IBV_WC_SUCCESS) {
      queue_->complete(*own_->receives, {0x77, IBV_WC_RECV, length, 0, 0});
    } else {
      queue_->fail(*own_->receives, status);
    }
    return status;
  }
  /// A message comes past the receives, if it may. Where it went.
  Bypass bring(const std::string& message, ibv_wc_opcode opcode = IBV_WC_RECV) {
    const ReceiveGuard guard(core().locks);
    ReceiveQuirks& quirks = *queue_->quirks();
    const auto length = static_cast<uint32_t>(message.size());
    const Bypass way = quirks.choose(*queue_, opcode == IBV_WC_RECV ? length : 0);
    if (way != Bypass::none) {
      if (opcode == IBV_WC_RECV) {
        quirks.append(reinterpret_cast<const std::byte*>(message.data()), length);
      }
      quirks.end({0x77, opcode, length, 0, 0});
    }
    return way;
  }
  void deliver() {
    const base::LockGuard cq_guard(own_->receives->lock);
    const ReceiveGuard guard(core().locks);
    queue_->quirks()->deliver(*queue_, *own_->receives);
  }
  Ends poll() { return ends_of(poll_all(*own_->receives)); }
  std::string bytes(size_t length) { return {reinterpret_cast<const char*>(data_->data()), length}; }

  std::unique_ptr<DeviceUnderTest> device_;
  std::unique_ptr<Memory> data_;
  std::unique_ptr<CoreUnderTest> own_;
  std::unique_ptr<ReceiveQueue> queue_;
  ibv_recv_wr* bad_ = nullptr;
};

// --- Rules of a profile.

TEST_F(ReceiveQuirksTest, takes_receives_from_the_state_of_the_knob_on) {
  const std::array<std::array<int, 3>, 3> errors{{{0, 0, 0}, {EINVAL, 0, 0}, {EINVAL, EINVAL, 0}}};
  const std::array<const char*, 3> knobs{"tn3205,recv-from=init", "tn3205,recv-from=rtr", "tn3205,recv-from=rts"};
  const std::array<ibv_qp_state, 3> states{IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS};
  for (size_t knob = 0; knob < knobs.size(); ++knob) {
    begin(knobs[knob], "");
    for (size_t state = 0; state < states.size(); ++state) {
      core().set_state(states[state]);
      EXPECT_EQ(post(1), errors[knob][state]) << knobs[knob] << " " << states[state];
    }
  }
}

TEST_F(ReceiveQuirksTest, usb4_takes_one_piece) {
  begin("usb4-linux", "", IBV_QPT_RC);
  EXPECT_EQ(post(1, {data_->piece(0, 8), data_->piece(8, 8)}), EINVAL);
  EXPECT_NE(bad_, nullptr);
  EXPECT_EQ(post(1, {data_->piece(0, 8)}), 0);
  EXPECT_EQ(post(2, std::vector<ibv_sge>{}), 0);
}

TEST_F(ReceiveQuirksTest, depth_is_counted_in_frames) {
  begin("tn3205", "");
  ASSERT_EQ(post(1, 2 * kFrame + 1), 0);  // three frames
  EXPECT_EQ(post(2, kFrame + 1), -ENOMEM);
  EXPECT_EQ(bad_, nullptr);                       // as the observed driver leaves it
  ASSERT_EQ(post(2, std::vector<ibv_sge>{}), 0);  // an empty one is a frame
  EXPECT_EQ(post(3, 1), -ENOMEM);
  EXPECT_EQ(take(3 * kFrame - 1), IBV_WC_LOC_LEN_ERR);  // its room is 2 frames and a byte
  EXPECT_EQ(post(3, 3 * kFrame), 0);
  EXPECT_EQ(post(4, 1), -ENOMEM);
}

TEST_F(ReceiveQuirksTest, apple_takes_sixteen_frames_fewer_than_it_granted) {
  begin("apple", "", IBV_QPT_UC, 18);
  EXPECT_EQ(post(1, 2 * kFrame), 0);
  EXPECT_EQ(post(2, 1), -ENOMEM);
}

TEST_F(ReceiveQuirksTest, reset_and_flush_give_the_frames_back) {
  begin("tn3205", "");
  ASSERT_EQ(post(1, 4 * kFrame), 0);
  {
    const ReceiveGuard guard(core().locks);
    queue_->reset();
  }
  ASSERT_EQ(post(2, 4 * kFrame), 0);
  {
    const base::LockGuard cq_guard(own_->receives->lock);
    const ReceiveGuard guard(core().locks);
    queue_->flush(*own_->receives);
  }
  EXPECT_EQ(poll(), (Ends{{2, IBV_WC_WR_FLUSH_ERR}}));
  EXPECT_EQ(post(3, 4 * kFrame), 0);
}

TEST_F(ReceiveQuirksTest, silent_overrun_is_accepted_and_ends_in_a_length_error) {
  begin("tn3205,overrun=silent", "");
  ASSERT_EQ(post(1, 4 * kFrame), 0);
  ASSERT_EQ(post(2, 1), 0);
  EXPECT_EQ(take(4 * kFrame), IBV_WC_SUCCESS);
  ASSERT_EQ(post(3, 1), 0);  // within the depth again
  EXPECT_EQ(take(1), IBV_WC_LOC_LEN_ERR);
  EXPECT_EQ(take(1), IBV_WC_SUCCESS);
}

TEST_F(ReceiveQuirksTest, fault_may_accept_an_overrun_silently) {
  begin("tn3205", "silent-overrun count 0-0");
  ASSERT_EQ(post(1, 4 * kFrame), 0);
  ASSERT_EQ(post(2, 1), 0);
  EXPECT_EQ(post(3, 1), -ENOMEM);
  EXPECT_EQ(take(4 * kFrame), IBV_WC_SUCCESS);
  EXPECT_EQ(take(1), IBV_WC_LOC_LEN_ERR);
}

TEST_F(ReceiveQuirksTest, message_and_receive_have_as_many_frames) {
  begin("tn3205", "", IBV_QPT_UC, 64);
  const std::array<std::array<uint32_t, 2>, 5> good{
      {{0, 0}, {1, 1}, {kFrame, 0}, {kFrame, 1}, {2 * kFrame, kFrame + 1}}};
  for (const auto& [room, length] : good) {
    ASSERT_EQ(post(1, room), 0);
    EXPECT_EQ(take(length), IBV_WC_SUCCESS) << room << " " << length;
  }
  const std::array<std::array<uint32_t, 2>, 3> bad{{{2 * kFrame, kFrame}, {kFrame + 1, 0}, {3 * kFrame, 2 * kFrame}}};
  for (const auto& [room, length] : bad) {
    ASSERT_EQ(post(1, room), 0);
    EXPECT_EQ(take(length), IBV_WC_LOC_LEN_ERR) << room << " " << length;
  }
}

TEST_F(ReceiveQuirksTest, mac_knows_the_regions_that_there_were_at_rtr) {
  begin("tn3205", "");
  Memory late(device_->pd(), kFrame, IBV_ACCESS_LOCAL_WRITE);
  ASSERT_EQ(post(1, {late.piece(0, 8)}), 0);
  EXPECT_EQ(take(8), IBV_WC_LOC_PROT_ERR);
  ASSERT_EQ(post(2, {data_->piece(0, 8)}), 0);
  EXPECT_EQ(take(8), IBV_WC_SUCCESS);
  {
    const ReceiveGuard guard(core().locks);
    queue_->note_rtr();  // the next life
  }
  ASSERT_EQ(post(3, {late.piece(0, 8)}), 0);
  EXPECT_EQ(take(8), IBV_WC_SUCCESS);
}

// --- Pieces that become receives.

TEST_F(ReceiveQuirksTest, each_piece_may_be_a_receive_of_its_own) {
  begin("tn3205,multi-sge=accept", "");
  ASSERT_EQ(post(9, {data_->piece(0, 4), data_->piece(8, 4)}), 0);
  EXPECT_EQ(take(4), IBV_WC_SUCCESS);
  EXPECT_EQ(take(5), IBV_WC_LOC_LEN_ERR);
  EXPECT_EQ(take(1), End::kNothing);
  EXPECT_EQ(poll(), (Ends{{9, IBV_WC_SUCCESS}, {9, IBV_WC_LOC_LEN_ERR}}));
}

TEST_F(ReceiveQuirksTest, pieces_find_room_all_or_none) {
  begin("tn3205,multi-sge=accept", "");
  ASSERT_EQ(post(1, {data_->piece(0, 4), data_->piece(8, 4), data_->piece(16, 4)}), 0);
  EXPECT_NE(post(2, {data_->piece(0, 4), data_->piece(8, 4)}), 0);
  EXPECT_EQ(post(3, {data_->piece(0, 4)}), 0);
  EXPECT_NE(post(4, {data_->piece(0, 4)}), 0);
}

// --- Messages that meet no receive.

TEST_F(ReceiveQuirksTest, plain_device_and_rc_hold_the_sender_back) {
  begin("tn3205", "");
  EXPECT_FALSE(queue_->quirks()->diverts());
  EXPECT_EQ(bring("early"), Bypass::none);
  begin("roce,norecv=drop", "", IBV_QPT_RC);
  EXPECT_FALSE(queue_->quirks()->diverts());
  EXPECT_EQ(bring("early"), Bypass::none);
}

TEST_F(ReceiveQuirksTest, dropped_message_is_counted_and_gone) {
  begin("roce,norecv=drop", "");
  EXPECT_EQ(bring("early"), Bypass::dropped);
  EXPECT_EQ(counter(*device_, "out_of_buffer"), 1U);
  ASSERT_EQ(post(1), 0);
  deliver();
  EXPECT_TRUE(poll().empty());
  EXPECT_EQ(bring("in time"), Bypass::none);
}

TEST_F(ReceiveQuirksTest, message_that_waits_takes_the_next_receive) {
  begin("roce,norecv=park", "");
  EXPECT_EQ(bring("one"), Bypass::waits);
  EXPECT_EQ(bring("two"), Bypass::waits);
  deliver();
  EXPECT_TRUE(poll().empty());
  ASSERT_EQ(post(1), 0);
  deliver();
  EXPECT_EQ(poll(), (Ends{{1, IBV_WC_SUCCESS}}));
  EXPECT_EQ(bytes(3), "one");
  ASSERT_EQ(post(2), 0);
  EXPECT_EQ(bring("three"), Bypass::waits);  // the second is before it
  deliver();
  EXPECT_EQ(bytes(3), "two");
  EXPECT_EQ(counter(*device_, "out_of_buffer"), 0U);
}

TEST_F(ReceiveQuirksTest, as_many_messages_wait_as_there_is_room_for) {
  begin("roce,norecv=park:2:1000", "", IBV_QPT_UC);
  EXPECT_EQ(bring("a"), Bypass::waits);
  EXPECT_EQ(bring("b"), Bypass::waits);
  EXPECT_EQ(bring("c"), Bypass::dropped);
  ASSERT_EQ(post(1), 0);
  deliver();
  EXPECT_EQ(bring("d"), Bypass::waits);
}

TEST_F(ReceiveQuirksTest, as_many_bytes_wait_as_there_is_room_for) {
  begin("roce,norecv=park:64:10", "", IBV_QPT_UC);
  EXPECT_EQ(bring("123456"), Bypass::waits);
  EXPECT_EQ(bring("12345"), Bypass::dropped);
  EXPECT_EQ(bring("1234"), Bypass::waits);
  EXPECT_EQ(bring(""), Bypass::waits);
}

TEST_F(ReceiveQuirksTest, message_too_long_for_its_receive_ends_the_queue_pair) {
  begin("roce,norecv=park", "", IBV_QPT_UC);
  EXPECT_EQ(bring("123456789"), Bypass::waits);
  ASSERT_EQ(post(1, 8), 0);
  deliver();
  EXPECT_EQ(poll(), (Ends{{1, IBV_WC_LOC_LEN_ERR}}));
  EXPECT_EQ(core().state(), IBV_QPS_ERR);
}

TEST_F(ReceiveQuirksTest, immediate_of_a_write_waits_without_its_data) {
  begin("roce,norecv=park", "", IBV_QPT_UC);
  EXPECT_EQ(bring("lies in memory already", IBV_WC_RECV_RDMA_WITH_IMM), Bypass::waits);
  ASSERT_EQ(post(1, std::vector<ibv_sge>{}), 0);
  deliver();
  const auto all = poll_all(*own_->receives);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(all[0].opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(all[0].byte_len, 22U);
}

TEST_F(ReceiveQuirksTest, message_comes_in_parts) {
  begin("roce,norecv=park:4:8", "", IBV_QPT_UC);
  {
    const ReceiveGuard guard(core().locks);
    ReceiveQuirks& quirks = *queue_->quirks();
    const std::string parts = "abcdef";
    ASSERT_EQ(quirks.choose(*queue_, 6), Bypass::waits);
    for (size_t at = 0; at < parts.size(); at += 2) {
      quirks.append(reinterpret_cast<const std::byte*>(parts.data()) + at, 2);
    }
    EXPECT_EQ(quirks.bypassed_bytes(), 6U);
    quirks.end({0x77, IBV_WC_RECV, 6, 0, 0});
    EXPECT_EQ(quirks.bypass(), Bypass::none);
  }
  ASSERT_EQ(post(1), 0);
  deliver();
  EXPECT_EQ(bytes(6), "abcdef");
}

TEST_F(ReceiveQuirksTest, message_whose_bytes_can_not_be_had_is_dropped_after_all) {
  begin("roce,norecv=park", "", IBV_QPT_UC);
  {
    const ReceiveGuard guard(core().locks);
    ASSERT_EQ(queue_->quirks()->choose(*queue_, 6), Bypass::waits);
    queue_->quirks()->drop();
    queue_->quirks()->end({0x77, IBV_WC_RECV, 6, 0, 0});
  }
  EXPECT_EQ(counter(*device_, "out_of_buffer"), 1U);
  ASSERT_EQ(post(1), 0);
  deliver();
  EXPECT_TRUE(poll().empty());
}

TEST_F(ReceiveQuirksTest, reset_forgets_what_waits) {
  begin("roce,norecv=park:1:100", "", IBV_QPT_UC);
  EXPECT_EQ(bring("a"), Bypass::waits);
  {
    const ReceiveGuard guard(core().locks);
    queue_->reset();
  }
  EXPECT_EQ(bring("b"), Bypass::waits);
  ASSERT_EQ(post(1), 0);
  deliver();
  EXPECT_EQ(bytes(1), "b");
}

// --- Addresses without a carry (docs/profiles.md, mr-crosses-4-gib).

/// Pages on both sides of a 4 GiB boundary, and some 4 GiB below those behind it.
class Wrapped {
 public:
  static constexpr size_t kBytes = 8192;
  static constexpr uint64_t k4GiB = uint64_t{1} << 32U;
#if defined(__SANITIZE_THREAD__)
  static constexpr uint64_t kFirst = 16 * k4GiB;  // what thread sanitizer leaves to programs
#else
  static constexpr uint64_t kFirst = 0x2000'0000'0000ULL;  // beyond what address sanitizer keeps for itself
#endif

  Wrapped() {
    for (uint64_t boundary = kFirst; boundary < kFirst + 64 * k4GiB && above_ == nullptr; boundary += k4GiB) {
      above_ = take(boundary - kBytes, 2 * kBytes);
      below_ = above_ == nullptr ? nullptr : take(boundary - k4GiB, kBytes);
      if (above_ != nullptr && below_ == nullptr) {
        munmap(above_, 2 * kBytes);
        above_ = nullptr;
      }
    }
  }
  ~Wrapped() {
    if (is_there()) {
      munmap(above_, 2 * kBytes), munmap(below_, kBytes);
    }
  }
  Wrapped(const Wrapped&) = delete;
  Wrapped& operator=(const Wrapped&) = delete;

  bool is_there() const { return above_ != nullptr; }
  std::byte* before_boundary() const { return above_; }
  std::byte* behind_boundary() const { return above_ + kBytes; }
  std::byte* landing() const { return below_; }

 private:
  static std::byte* take(uint64_t address, size_t length) {
    void* const at = mmap(reinterpret_cast<void*>(address), length, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    return at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
  }
  std::byte* above_ = nullptr;
  std::byte* below_ = nullptr;
};

class WrappedReceiveTest : public ReceiveQuirksTest {
 protected:
  /// A message of two pages goes to the two pages around the boundary. `lands`: a region takes what lies too low.
  void receive_across(bool lands) {
    begin("roce,wrap4g=corrupt", "", IBV_QPT_UC);
    const auto at = [](std::byte* place) { return reinterpret_cast<uint64_t>(place); };
    ProtectionDomain other(device_->context());
    const auto across = *MemoryRegion::create(device_->pd(), at(pages_.before_boundary()), 2 * Wrapped::kBytes,
                                              at(pages_.before_boundary()), IBV_ACCESS_LOCAL_WRITE);
    const auto below = *MemoryRegion::create(lands ? device_->pd() : other, at(pages_.landing()), Wrapped::kBytes,
                                             at(pages_.landing()), IBV_ACCESS_LOCAL_WRITE);
    ASSERT_EQ(post(1, {{at(pages_.behind_boundary()) - kFrame, 2 * kFrame, across->key()}}), 0);
    const std::vector<std::byte> message(2 * kFrame, std::byte{7});
    const ReceiveGuard guard(core().locks);
    ASSERT_TRUE(queue_->quirks()->wraps());
    ASSERT_TRUE(queue_->open());
    ASSERT_EQ(queue_->begin(2 * kFrame), IBV_WC_SUCCESS);
    queue_->place(0, message.data(), kFrame / 2);
    queue_->place(kFrame / 2, message.data(), 3 * kFrame / 2);
  }
  Wrapped pages_;
};

TEST_F(WrappedReceiveTest, what_lies_beyond_the_boundary_lands_4_gib_too_low) {
  if (!pages_.is_there()) {
    GTEST_SKIP() << "skip: no free pages around any 4 GiB boundary";
  }
  receive_across(true);
  EXPECT_EQ(pages_.behind_boundary()[-1], std::byte{7});
  EXPECT_EQ(pages_.behind_boundary()[-static_cast<ptrdiff_t>(kFrame)], std::byte{7});
  EXPECT_EQ(pages_.behind_boundary()[0], std::byte{0});
  EXPECT_EQ(pages_.landing()[0], std::byte{7});
  EXPECT_EQ(pages_.landing()[kFrame - 1], std::byte{7});
  EXPECT_EQ(pages_.landing()[kFrame], std::byte{0});
}

TEST_F(WrappedReceiveTest, harms_no_region_of_another_domain) {
  if (!pages_.is_there()) {
    GTEST_SKIP() << "skip: no free pages around any 4 GiB boundary";
  }
  receive_across(false);
  EXPECT_EQ(pages_.behind_boundary()[-1], std::byte{7});
  EXPECT_EQ(pages_.behind_boundary()[0], std::byte{0});
  EXPECT_EQ(pages_.landing()[0], std::byte{0});
}

// --- Faults.

TEST_F(ReceiveQuirksTest, receive_may_end_with_any_status) {
  begin("", "receive-error status 4 count 1-1", IBV_QPT_RC);
  for (uint64_t id = 0; id < 3; ++id) {
    ASSERT_EQ(post(id), 0);
  }
  EXPECT_EQ(take(8), IBV_WC_SUCCESS);
  EXPECT_EQ(take(8), IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(take(8), IBV_WC_SUCCESS);
}

TEST_F(ReceiveQuirksTest, receive_may_end_as_if_its_frames_did_not_match) {
  begin("", "frame-mismatch count 0-0", IBV_QPT_RC);
  ASSERT_EQ(post(0), 0);
  EXPECT_EQ(take(8), IBV_WC_LOC_LEN_ERR);
}

TEST_F(ReceiveQuirksTest, rule_of_the_profile_speaks_before_a_fault) {
  begin("tn3205", "receive-error status 4 count 0-0", IBV_QPT_UC, 64);
  ASSERT_EQ(post(0, 2 * kFrame), 0);
  ASSERT_EQ(post(1), 0);
  EXPECT_EQ(take(1), IBV_WC_LOC_LEN_ERR);
  EXPECT_EQ(take(1), IBV_WC_LOC_PROT_ERR);  // the fault's first message
}

TEST_F(ReceiveQuirksTest, refused_call_names_the_receive_and_posts_those_before_it) {
  begin("", "call-errno call post-recv errno EIO count 1-1", IBV_QPT_RC);
  std::array<ibv_recv_wr, 3> list{};
  for (size_t i = 0; i < list.size(); ++i) {
    list[i] = {i, i + 1 < list.size() ? &list[i + 1] : nullptr, nullptr, 0};
  }
  EXPECT_EQ(queue_->post(list.data(), &bad_), EIO);
  EXPECT_EQ(bad_, &list[1]);
  EXPECT_EQ(queue_->post(&list[1], &bad_), 0);
  for (uint64_t id = 0; id < 3; ++id) {
    EXPECT_EQ(take(0), IBV_WC_SUCCESS) << id;
  }
}

TEST_F(ReceiveQuirksTest, coalescing_begins_after_idle_time_and_ends_with_traffic_at_two_ticks) {
  begin("", "coalesce after 1ms every 5ms", IBV_QPT_RC);
  const auto holds = [this](bool has_arrived) {
    const ReceiveGuard guard(core().locks);
    return queue_->quirks()->is_coalescing(has_arrived);
  };
  const uint64_t deadline = base::now_ns() + 20'000'000'000;
  while (!holds(true) && base::now_ns() < deadline) {
  }
  const uint64_t began = base::now_ns();
  int ticks = 0;  // looks that let something through
  while (ticks < 2 && base::now_ns() < deadline) {
    ticks += holds(true) ? 0 : 1;
  }
  EXPECT_GE(base::now_ns() - began, 5'000'000U);  // the second tick, if this thread was off its core for the first
  core().cable.note_traffic();
  EXPECT_FALSE(holds(true));
}

TEST_F(ReceiveQuirksTest, plain_queue_learns_of_faults_later) {
  begin("", "receive-error status 4 count 0-0", IBV_QPT_RC);
  queue_ = std::make_unique<ReceiveQueue>(core(), 4, 4, false);
  ASSERT_EQ(post(0), 0);
  ASSERT_EQ(post(1), 0);
  EXPECT_EQ(take(8), IBV_WC_SUCCESS);
  {
    const ReceiveGuard guard(core().locks);
    queue_->add_quirks();
  }
  EXPECT_EQ(take(8), IBV_WC_LOC_PROT_ERR);
}

}  // namespace
}  // namespace ringbolt::device
