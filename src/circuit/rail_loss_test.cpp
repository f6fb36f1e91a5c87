#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <set>

#include "base/clock.h"
#include "base/lock_guard.h"
#include "bringup/survey.h"
#include "circuit/frame_header.h"
#include "circuit/paths.h"
#include "circuit/receive_circuit.h"
#include "circuit/send_circuit.h"
#include "verbs/soft_device_test_support.h"

// Two rails between the ends of a circuit, of which one is lost: with what was under way on it, or after that came.
namespace ringbolt::circuit {
namespace {

constexpr CircuitId kId = 7;

class RailLoss : public testing::Test {
 protected:
  std::unique_ptr<Rail> rail(std::span<std::byte> sends, uint32_t n_receives, uint32_t receive_bytes) const {
    RailPlan plan;
    plan.gid_index = devices->cards()[0].gid_index;
    plan.n_receives = n_receives;
    plan.receive_bytes = receive_bytes;
    plan.send_depth = 2 * kWindow;
    plan.sends = sends;
    return std::make_unique<Rail>(*devices, plan);
  }
  /// A rail of the sender's, connected with what is returned: the receiver's end.
  std::unique_ptr<Rail> connect(uint16_t number, std::span<std::byte> answers) {
    auto near = rail(sender.slots(), 2 * kWindow, kFrameHeaderBytes);
    auto far = rail(answers, kWindow + 8, kSlotBytes);
    far->connect(near->address());
    near->connect(far->address());
    const base::LockGuard guard(sender.lock);
    sender.add_rail(number, std::move(near), {}, 1000);
    return far;
  }
  void connect_to_receiver(uint16_t number) {
    auto far = connect(number, receiver.answers());
    const base::LockGuard guard(receiver.lock);
    receiver.add_rail(number, std::move(far), {});
  }
  void move_both() {
    {
      const base::LockGuard guard(sender.lock);
      sender.progress();
    }
    const base::LockGuard guard(receiver.lock);
    receiver.progress_idle();
  }
  /// Moves both ends until `what` holds: false after ten seconds. Queue pairs are connected by a thread of the device,
  /// so that no number of turns is enough.
  template <typename What>
  bool moves_until(const What& what) {
    for (const uint64_t deadline = base::now_ns() + 10'000'000'000; !what();) {
      if (base::now_ns() > deadline) {
        return false;
      }
      move_both();
    }
    return true;
  }
  bool is_live(uint16_t number) {
    const base::LockGuard guard(sender.lock);
    for (const SendCircuit::RailView& view : sender.rails()) {
      if (view.number == number) {
        return view.is_live;
      }
    }
    return false;
  }
  void lose(uint16_t number) {
    const base::LockGuard guard(sender.lock);
    sender.fail_rail(number, "lost");
  }
  /// Posts one receive at a time, as who awaits each before the next, and looks at what comes.
  void receive_all(const std::vector<std::vector<std::byte>>& messages) {
    for (const auto& message : messages) {
      std::vector<std::byte> buffer(message.size());
      void* data = buffer.data();
      const size_t size = buffer.size();
      const int tag = 0;
      Receive* receive = nullptr;
      {
        const base::LockGuard guard(receiver.lock);
        receive = receiver.post(1, &data, &size, &tag);
      }
      ASSERT_NE(receive, nullptr);
      ASSERT_TRUE(moves_until([&] {
        const base::LockGuard guard(receiver.lock);
        return receiver.is_done(*receive);
      })) << receiver.failure_text()
          << sender.failure_text();
      EXPECT_EQ(buffer, message);
      const base::LockGuard guard(receiver.lock);
      receiver.pop();
    }
  }
  std::vector<std::vector<std::byte>> send_all(size_t n, size_t size) {
    std::vector<std::vector<std::byte>> messages;
    for (size_t i = 0; i < n; ++i) {
      messages.emplace_back(size, static_cast<std::byte>(i + 1));
    }
    const base::LockGuard guard(sender.lock);
    for (const auto& message : messages) {
      EXPECT_NE(sender.post(message.data(), message.size(), 0), nullptr);
    }
    return messages;
  }

  verbs::test::RuntimeFolder folder;
  verbs::Library library = verbs::Library::open("soft");
  std::shared_ptr<const Devices> devices = std::make_shared<const Devices>(library, bringup::survey(library).cards());
  SendCircuit sender{kId, 2, "receiver", true, devices, 0, 2 * kWindow};
  ReceiveCircuit receiver{kId, 1, "sender", true, devices, 0};
};

/// Rails of which a frame of that kind lies in the memory that they send from.
std::set<uint16_t> rails_with(FrameKind kind, std::span<const std::byte> memory) {
  std::set<uint16_t> rails;
  for (size_t at = 0; at + kFrameHeaderBytes <= memory.size(); at += kFrameHeaderBytes) {
    const auto header = parse_frame(memory.subspan(at, kShortHeaderBytes), kShortHeaderBytes);
    if (header && header->kind == kind && header->circuit == kId) {
      rails.insert(header->rail);
    }
  }
  return rails;
}

/// Numbers grow with each try, and an old rail may stand for long: a device reads the frames of both.
TEST_F(RailLoss, rails_of_any_numbers_send_from_places_of_their_own) {
  for (const uint16_t number : std::array<uint16_t, 3>{0, 8, 64}) {
    connect_to_receiver(number);
  }
  ASSERT_TRUE(moves_until([&] { return is_live(0) && is_live(8) && is_live(64); }));
  EXPECT_EQ(rails_with(FrameKind::hello, sender.slots()), (std::set<uint16_t>{0, 8, 64}));
  EXPECT_EQ(rails_with(FrameKind::hello_ack, receiver.answers()), (std::set<uint16_t>{0, 8, 64}));
}

TEST_F(RailLoss, a_receiver_has_twice_as_many_rails_as_a_sender) {
  for (uint16_t number = 0; number < 2 * kMostRails + 1; ++number) {
    connect_to_receiver(number);
  }
  {
    const base::LockGuard guard(receiver.lock);
    const auto ended = receiver.take_ended();
    ASSERT_EQ(ended.size(), 1U) << "one too many";
    EXPECT_EQ(ended[0].number, 2 * kMostRails);
    receiver.fail_rail(3, "lost");
  }
  connect_to_receiver(100);  // in the place of the one that has failed
  const base::LockGuard guard(receiver.lock);
  EXPECT_EQ(receiver.take_ended().size(), 1U);
  EXPECT_EQ(receiver.rails().size(), 2 * kMostRails);
}

TEST_F(RailLoss, what_was_under_way_comes_by_a_rail_that_was_full_of_later_frames) {
  std::vector<std::byte> answer(kFrameHeaderBytes);
  const std::unique_ptr<Rail> nowhere = connect(0, answer);  // what comes here is lost
  FrameHeader hello_ack;
  hello_ack.kind = FrameKind::hello_ack;
  hello_ack.circuit = kId;
  emit(hello_ack, answer.data());
  ASSERT_TRUE(nowhere->send(answer.data(), kShortHeaderBytes));
  connect_to_receiver(1);
  ASSERT_TRUE(moves_until([&] { return is_live(0) && is_live(1); }));
  const auto messages = send_all(40, 1000);  // both windows are full, the first message is lost
  for (int i = 0; i < 100; ++i) {
    move_both();
  }
  lose(0);
  receive_all(messages);
}

TEST_F(RailLoss, what_is_missing_for_long_holds_up_what_is_new) {
  std::vector<std::byte> answer(kFrameHeaderBytes);
  const std::unique_ptr<Rail> nowhere = connect(0, answer);  // what comes here is lost
  FrameHeader hello_ack;
  hello_ack.kind = FrameKind::hello_ack;
  hello_ack.circuit = kId;
  emit(hello_ack, answer.data());
  ASSERT_TRUE(nowhere->send(answer.data(), kShortHeaderBytes));
  connect_to_receiver(1);
  ASSERT_TRUE(moves_until([&] { return is_live(0) && is_live(1); }));
  // The receiver holds up to 512 frames that it can't match before the first one.
  std::vector<std::vector<std::byte>> messages;  // posted memory stays where it is when they move
  std::vector<Send*> sends;
  for (int i = 0; i < 3000; ++i) {
    std::vector<std::byte> message(100, static_cast<std::byte>(messages.size()));
    move_both();
    const base::LockGuard guard(sender.lock);
    std::erase_if(sends, [&](Send* one) RINGBOLT_REQUIRES(sender.lock) { return sender.is_done(*one); });
    if (sends.size() < kMostSends) {
      sends.push_back(sender.post(message.data(), message.size(), 0));
      ASSERT_NE(sends.back(), nullptr);
      messages.push_back(std::move(message));
    }
  }
  EXPECT_GT(messages.size(), 384U);
  EXPECT_LT(messages.size(), 3000U);
  EXPECT_EQ(receiver.failure(), FailureKind::none) << receiver.failure_text();
  lose(0);
  receive_all(messages);
}

TEST_F(RailLoss, what_came_twice_is_received_once) {
  connect_to_receiver(0);
  connect_to_receiver(1);
  ASSERT_TRUE(moves_until([&] { return is_live(0) && is_live(1); }));
  const auto messages = send_all(40, 70'000);
  {
    const base::LockGuard guard(receiver.lock);
    receiver.progress();  // it has come, and the sender has not heard so
  }
  lose(0);
  receive_all(messages);
  EXPECT_EQ(receiver.failure(), FailureKind::none) << receiver.failure_text();
}

TEST_F(RailLoss, bytes_that_were_spoilt_are_an_error) {
  std::vector<std::byte> frame(kShortHeaderBytes + 8);
  auto near = rail(frame, 2 * kWindow, kFrameHeaderBytes);
  auto far = rail(receiver.answers(), kWindow + 8, kSlotBytes);
  far->connect(near->address());
  near->connect(far->address());
  {
    const base::LockGuard guard(receiver.lock);
    receiver.add_rail(0, std::move(far), {});
  }
  FrameHeader header;
  header.circuit = kId;
  header.length = 8;
  header.has_checksum = true;
  header.checksum = 1;
  emit(header, frame.data());
  ASSERT_TRUE(near->send(frame.data(), static_cast<uint32_t>(frame.size())));
  EXPECT_TRUE(moves_until([&] {
    const base::LockGuard guard(receiver.lock);
    return receiver.failure() != FailureKind::none;
  }));
  const base::LockGuard guard(receiver.lock);
  EXPECT_EQ(receiver.failure(), FailureKind::protocol);
  EXPECT_NE(receiver.failure_text().find("checksum"), std::string::npos) << receiver.failure_text();
}

}  // namespace
}  // namespace ringbolt::circuit
