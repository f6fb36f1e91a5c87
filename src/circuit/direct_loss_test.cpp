#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>

#include "base/clock.h"
#include "base/crc.h"
#include "base/lock_guard.h"
#include "bringup/survey.h"
#include "circuit/clear_to_send.h"
#include "circuit/receive_circuit.h"
#include "circuit/send_circuit.h"
#include "verbs/soft_device_test_support.h"

// Rails that are lost while messages are written by them: all bytes are right, and none comes late.
namespace ringbolt::circuit {
namespace {

constexpr CircuitId kId = 7;
constexpr uint64_t kLong = 65'536;
constexpr auto kPoison = std::byte{0xcc};

class DirectLoss : public testing::Test {
 protected:
  DirectLoss() { registrations.use(devices->device(0)); }

  std::unique_ptr<Rail> near_rail(std::span<std::byte> sends, bool is_direct = true) const {
    RailPlan plan;
    plan.gid_index = devices->cards()[0].gid_index;
    plan.n_receives = 2 * kWindow;
    plan.receive_bytes = kClearToSendBytes;
    plan.send_depth = 4 * kWindow;
    plan.sends = sends;
    plan.is_direct = is_direct;
    return std::make_unique<Rail>(*devices, plan);
  }
  /// The receiver's end of a rail, connected with `near`.
  void add_far(uint16_t number, Rail& near, bool is_direct = true) {
    RailPlan plan;
    plan.gid_index = devices->cards()[0].gid_index;
    plan.n_receives = kWindow + 8;
    plan.receive_bytes = kSlotBytes;
    plan.send_depth = 2 * kWindow;
    plan.sends = receiver.answers();
    plan.is_direct = plan.takes_writes = is_direct;
    auto far = std::make_unique<Rail>(*devices, plan);
    far->connect(near.address());
    near.connect(far->address());
    const base::LockGuard guard(receiver.lock);
    receiver.add_rail(number, std::move(far), {});
  }
  void connect(uint16_t number, bool is_direct = true) {
    auto near = near_rail(sender.slots(), is_direct);
    add_far(number, *near, is_direct);
    const base::LockGuard guard(sender.lock);
    sender.add_rail(number, std::move(near), {}, 1000);
  }
  void move_both() {
    {
      const base::LockGuard guard(sender.lock);
      sender.progress();
    }
    const base::LockGuard guard(receiver.lock);
    receiver.progress_idle();
  }
  void wait_until_live(size_t n) {
    size_t n_live = 0;
    const uint64_t deadline = base::now_ns() + 20'000'000'000;
    while (n_live < n && base::now_ns() < deadline) {
      move_both();
      const base::LockGuard guard(sender.lock);
      n_live = static_cast<size_t>(std::ranges::count_if(sender.rails(), [](const auto& one) { return one.is_live; }));
    }
    ASSERT_EQ(n_live, n);
  }
  void lose(uint16_t number) {
    const base::LockGuard guard(sender.lock);
    sender.fail_rail(number, "lost");
  }
  const Registered* registered(std::vector<std::byte>& bytes) { return registrations.add(bytes.data(), bytes.size()); }
  Receive* post(std::vector<std::byte>& buffer) {
    void* const data = buffer.data();
    const size_t size = buffer.size();
    const int tag = 0;
    const Registered* const memory = registered(buffer);
    const base::LockGuard guard(receiver.lock);
    return receiver.post(1, &data, &size, &tag, &memory);
  }
  bool is_done(const Receive& one) {
    const base::LockGuard guard(receiver.lock);
    return receiver.is_done(one);
  }
  void pop() {
    const base::LockGuard guard(receiver.lock);
    receiver.pop();
  }
  /// Sends messages that need several windows, and calls `deeds`[turn] meanwhile; looks at every byte, and that nothing
  /// comes into a buffer whose receive is done.
  void transfer(const std::map<int, std::function<void()>>& deeds, size_t n_messages = 6, size_t size = 3'000'001) {
    std::vector<std::vector<std::byte>> messages;
    std::vector<std::vector<std::byte>> buffers;
    std::vector<Receive*> receives;
    std::vector<Send*> sends;
    for (size_t m = 0; m < n_messages; ++m) {
      auto& message = messages.emplace_back(size + m);
      for (size_t i = 0; i < message.size(); ++i) {
        message[i] = static_cast<std::byte>(i * 7 + m * 13 + i / 251);
      }
      buffers.emplace_back(size + m);
    }
    for (size_t m = 0; m < n_messages; ++m) {
      receives.push_back(post(buffers[m]));
    }
    for (size_t m = 0; m < n_messages; ++m) {
      const Registered* const memory = registered(messages[m]);
      const base::LockGuard guard(sender.lock);
      sends.push_back(sender.post(messages[m].data(), messages[m].size(), 0, memory));
    }
    size_t n_done = 0;
    const uint64_t deadline = base::now_ns() + 20'000'000'000;
    for (int turn = 0; n_done < n_messages && base::now_ns() < deadline; ++turn) {
      if (const auto deed = deeds.find(turn); deed != deeds.end()) {
        deed->second();
      }
      move_both();
      if (is_done(*receives[n_done])) {
        EXPECT_EQ(receives[n_done]->parts[0].length, messages[n_done].size());
        EXPECT_TRUE(buffers[n_done] == messages[n_done]) << n_done;
        std::ranges::fill(buffers[n_done], kPoison);
        pop();
        ++n_done;
      }
    }
    ASSERT_EQ(n_done, n_messages) << receiver.failure_text() << sender.failure_text();
    bool has_unfinished = true;
    while (has_unfinished && base::now_ns() < deadline) {
      move_both();
      const base::LockGuard guard(sender.lock);
      has_unfinished = sender.has_unfinished();
    }
    for (Send* const one : sends) {
      const base::LockGuard guard(sender.lock);
      EXPECT_TRUE(sender.is_done(*one));
    }
    for (const auto& buffer : buffers) {
      EXPECT_EQ(std::ranges::count(buffer, kPoison), static_cast<ptrdiff_t>(buffer.size())) << "something came late";
    }
  }

  verbs::test::RuntimeFolder folder;
  verbs::Library library = verbs::Library::open("soft");
  std::shared_ptr<const Devices> devices = std::make_shared<const Devices>(library, bringup::survey(library).cards());
  Registrations registrations{devices, [](Level, const std::string&) {}};
  SendCircuit sender{kId, 2, "receiver", true, devices, 0, 2 * kWindow, kLong};
  ReceiveCircuit receiver{kId, 1, "sender", true, devices, 0, kLong};
};

TEST_F(DirectLoss, what_was_under_way_comes_by_the_other_rail) {
  connect(0);
  connect(1);
  wait_until_live(2);
  transfer({{3, [&] { lose(0); }}});
}

TEST_F(DirectLoss, what_no_rail_can_write_any_more_comes_by_frames) {
  connect(0);
  connect(1, false);  // as one that is relayed
  wait_until_live(2);
  transfer({{3, [&] { lose(0); }}});
}

TEST_F(DirectLoss, a_rail_that_comes_later_takes_over) {
  connect(0);
  wait_until_live(1);
  transfer({{2, [&] { lose(0); }}, {3, [&] { connect(1); }}, {60, [&] { lose(1); }}, {61, [&] { connect(2); }}});
}

TEST_F(DirectLoss, that_the_receiver_sees_first) {
  connect(0);
  connect(1);
  wait_until_live(2);
  transfer({{2, [&] {
               const base::LockGuard guard(receiver.lock);
               receiver.fail_rail(0, "lost");
             }}});
}

/// A sender that is played by hand, with two rails, and what a receiver tells it.
class LateWrites : public DirectLoss {
 protected:
  void begin() {
    for (uint16_t number = 0; number < 2; ++number) {
      rails[number] = near_rail(memory);
      add_far(number, *rails[number]);
      FrameHeader hello;
      hello.kind = FrameKind::hello;
      hello.circuit = static_cast<uint32_t>(kId);
      hello.rail = number;
      std::byte* const at = memory.data() + number * kFrameHeaderBytes;
      emit(hello, at);
      ASSERT_TRUE(rails[number]->send(at, kShortHeaderBytes));
    }
    ASSERT_TRUE(comes_true([&] { return n_greeted == 2; }));
  }
  /// Other threads of the device may have to be waited for, on a busy machine for long.
  bool comes_true(const std::function<bool()>& what) {
    const uint64_t deadline = base::now_ns() + 20'000'000'000;
    while (!what() && base::now_ns() < deadline) {
      progress();
    }
    return what();
  }
  void progress() {
    {
      const base::LockGuard guard(receiver.lock);
      receiver.progress_idle();
    }
    for (const auto& rail : rails) {
      (void)rail->poll(
          [&](const Rail::Received& received) {
            const auto header = parse_frame(received.head, received.length_bytes);
            n_greeted += header && header->kind == FrameKind::hello_ack ? 1U : 0U;
            if (header && header->kind == FrameKind::clear_to_send) {
              is_told = parse_clear_to_send(*header, received.head.subspan(kShortHeaderBytes), clearance);
            }
            (void)rail->post_receive(received.slot);
          },
          [&](uint32_t) { ++n_completed; });
    }
  }
  /// A message of one piece by rail `number`.
  void write(uint16_t number, std::vector<std::byte>& bytes, uint32_t message, bool names_other,
             uint32_t clearance_number) {
    FrameHeader header;
    header.kind = FrameKind::piece;
    header.circuit = static_cast<uint32_t>(kId);
    header.rail = number;
    header.length = static_cast<uint32_t>(bytes.size());
    header.total = bytes.size();
    header.sequence = message * sequences_of(header.length);
    header.message = message;
    header.clearance = clearance_number;
    header.is_written = true;
    header.was_tried = names_other;
    header.tried_rail = static_cast<uint16_t>(1 - number);
    header.has_checksum = has_wrong_checksum;
    header.checksum = has_wrong_checksum ? ~base::crc32c(0, bytes) : 0;
    std::byte* const at = memory.data() + (2 + n_frames++) * kFrameHeaderBytes;
    emit(header, at);
    const ClearedPart& part = clearance.receives[0].parts[0];
    const ibv_sge from{reinterpret_cast<uintptr_t>(bytes.data()), header.length, registered(bytes)->key(0)->local};
    (void)rails[number]->write_and_send(from, part.address, part.keys[number], at, kFrameHeaderBytes, 1);
  }
  bool arrives(const Receive* receive) {
    return comes_true([&] { return is_done(*receive); });
  }
  bool is_told_soon() {
    return comes_true([&] { return is_told; });
  }
  std::string failure() {
    (void)comes_true([&] { return receiver.failure() != FailureKind::none; });
    return receiver.failure() == FailureKind::protocol ? receiver.failure_text() : "";
  }

  verbs::Slab slab{devices->device(0).pd, 64 * kFrameHeaderBytes};
  std::span<std::byte> memory = slab.bytes();
  std::array<std::unique_ptr<Rail>, 2> rails;
  ClearToSend clearance;
  bool is_told = false;
  bool has_wrong_checksum = false;
  size_t n_frames = 0;
  size_t n_completed = 0;
  size_t n_greeted = 0;
};

TEST_F(LateWrites, do_not_land_by_a_rail_that_was_given_up) {
  begin();
  std::vector<std::byte> buffer(100'000);
  std::vector<std::byte> bytes(100'000, std::byte{1});
  Receive* const receive = post(buffer);
  ASSERT_TRUE(is_told_soon());
  ASSERT_EQ(clearance.n_rails, 2U);
  write(1, bytes, 0, true, clearance.first);  // says that rail 0 may have written it
  ASSERT_TRUE(arrives(receive)) << receiver.failure_text();
  EXPECT_EQ(buffer, bytes);
  pop();
  std::ranges::fill(buffer, kPoison);
  // Now rail 0, which its sender has not ended, does what the network held back.
  std::vector<std::byte> late(100'000, std::byte{2});
  write(0, late, 1, false, clearance.first);
  EXPECT_TRUE(comes_true([&] { return rails[0]->has_failed(); })) << "its WRITE has failed";
  EXPECT_EQ(std::ranges::count(buffer, kPoison), static_cast<ptrdiff_t>(buffer.size()));
}

TEST_F(LateWrites, would_land_by_one_that_was_not) {
  begin();
  std::vector<std::byte> buffer(100'000);
  std::vector<std::byte> bytes(100'000, std::byte{1});
  Receive* const receive = post(buffer);
  ASSERT_TRUE(is_told_soon());
  write(1, bytes, 0, false, clearance.first);
  ASSERT_TRUE(arrives(receive));
  pop();
  std::ranges::fill(buffer, kPoison);
  std::vector<std::byte> late(100'000, std::byte{2});
  write(0, late, 1, false, clearance.first);
  EXPECT_TRUE(comes_true([&] { return buffer == late; })) << "else the test above shows nothing";
}

TEST_F(LateWrites, do_not_land_once_the_receiver_has_closed) {
  begin();
  std::vector<std::byte> buffer(100'000);
  (void)post(buffer);
  ASSERT_TRUE(is_told_soon());
  {
    const base::LockGuard guard(receiver.lock);
    receiver.abandon();
  }
  std::ranges::fill(buffer, kPoison);
  std::vector<std::byte> late(100'000, std::byte{2});
  write(0, late, 0, false, clearance.first);
  write(1, late, 0, false, clearance.first);
  EXPECT_TRUE(comes_true([&] { return rails[0]->has_failed(); })) << "its WRITE has failed";
  EXPECT_EQ(std::ranges::count(buffer, kPoison), static_cast<ptrdiff_t>(buffer.size()));
}

TEST_F(LateWrites, to_a_receive_that_was_not_cleared_are_a_failure) {
  begin();
  std::vector<std::byte> buffer(100'000);
  std::vector<std::byte> bytes(100'000, std::byte{1});
  (void)post(buffer);
  ASSERT_TRUE(is_told_soon());
  write(1, bytes, 0, false, clearance.first + 1);
  EXPECT_NE(failure().find("are to go elsewhere"), std::string::npos) << receiver.failure_text();
}

TEST_F(LateWrites, with_spoilt_bytes_are_a_failure) {
  begin();
  std::vector<std::byte> buffer(100'000);
  std::vector<std::byte> bytes(100'000, std::byte{1});
  (void)post(buffer);
  ASSERT_TRUE(is_told_soon());
  has_wrong_checksum = true;
  write(1, bytes, 0, false, clearance.first);
  EXPECT_NE(failure().find("checksum"), std::string::npos) << receiver.failure_text();
}

/// A receiver that is played by hand tells of what can't be.
TEST_F(DirectLoss, clearances_that_can_not_be_fail_the_sender) {
  auto near = near_rail(sender.slots());
  verbs::Slab memory(devices->device(0).pd, 4096);
  auto far = near_rail(memory.bytes());
  far->connect(near->address());
  near->connect(far->address());
  {
    const base::LockGuard guard(sender.lock);
    sender.add_rail(0, std::move(near), {}, 1000);
  }
  ClearToSend clearance;
  clearance.n_rails = 1;
  clearance.rails[0] = 5;  // no rail of this circuit
  clearance.n_receives = 1;
  clearance.receives[0].n_parts = 1;
  FrameHeader header;
  header.circuit = static_cast<uint32_t>(kId);
  const uint32_t length =
      emit(header, clearance, std::span<std::byte, kClearToSendBytes>(memory.bytes().data(), kClearToSendBytes));
  ASSERT_TRUE(far->send(memory.bytes().data(), length));
  const uint64_t deadline = base::now_ns() + 20'000'000'000;
  while (sender.failure() == FailureKind::none && base::now_ns() < deadline) {
    const base::LockGuard guard(sender.lock);
    sender.progress();
    (void)far->poll([](const Rail::Received&) {}, [](uint32_t) {});
  }
  EXPECT_EQ(sender.failure(), FailureKind::protocol);
}

}  // namespace
}  // namespace ringbolt::circuit
