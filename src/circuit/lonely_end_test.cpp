#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <stdexcept>
#include <utility>

#include "base/mutex.h"
#include "bringup/survey.h"
#include "circuit/endpoint_test_support.h"
#include "circuit/frame_header.h"
#include "circuit/rail.h"

// One end of a circuit whose other end is a member that says what the test wants: circuits that never come about.
namespace ringbolt::circuit {
namespace {

using test::comes_true;

constexpr CircuitId kItsCircuit = 77;

class Stranger final : public membership::User {
 public:
  /// Announces the same ports as `other`, which is of the same node.
  explicit Stranger(const std::vector<bringup::PortCard>& ports) : membership_(plan_of(ports), *this) {}

  void on_member(const membership::Announcement&) override {}
  void on_gone(MemberId, const std::string&, const std::string&) override {}
  void on_message(MemberId from, uint16_t kind, std::span<const std::byte> bytes) override {
    const base::LockGuard guard(lock_);
    from_ = from;
    heard_.push_back(parse_control(kind, bytes).value());
  }

  membership::Membership& membership() { return membership_; }
  void send(MemberId to, const Control& control) { membership_.send(to, kind_of(control), emit(control)); }
  /// The last of that kind that has come.
  template <class Kind>
  std::optional<Kind> heard() {
    const base::LockGuard guard(lock_);
    std::optional<Kind> last;
    for (const Control& one : heard_) {
      if (const auto* const found = std::get_if<Kind>(&one)) {
        last = *found;
      }
    }
    return last;
  }
  MemberId peer() {
    const base::LockGuard guard(lock_);
    return from_;
  }

 private:
  static membership::MembershipPlan plan_of(const std::vector<bringup::PortCard>& ports) {
    membership::MembershipPlan plan;
    plan.member = membership::new_member();
    plan.node = 1;
    plan.name = "stranger";
    plan.group = "test";
    plan.details = emit(NodePorts{1, ports, std::vector<bool>(ports.size(), true), {}});
    plan.most_silent_ms = 5000;
    return plan;
  }

  base::Mutex lock_;
  MemberId from_ RINGBOLT_GUARDED_BY(lock_) = 0;
  std::vector<Control> heard_ RINGBOLT_GUARDED_BY(lock_);
  membership::Membership membership_;  // last: its thread uses the others
};

class LonelyEnds : public test::Circuits {
 protected:
  /// Opens circuit kItsCircuit to a listener of `to`; the other end's member.
  static MemberId open(Stranger& stranger, const Handle& to) {
    stranger.membership().call(to.contact);
    // What has no way yet is lost.
    EXPECT_TRUE(comes_true([&] {
      stranger.send(to.contact.member, Open{kItsCircuit, to.listener, false, false});
      return stranger.heard<Opened>().has_value();
    }));
    return to.contact.member;
  }
  static RailOpen rail_to(const Stranger& stranger, MemberId member, uint16_t port) {
    const PortUse use{port, 0};
    return {kItsCircuit, 0, 1, {{const_cast<Stranger&>(stranger).membership().id(), {}, use}, {member, use, {}}}, {}};
  }
};

TEST_F(LonelyEnds, of_a_sender_that_closes_before_it_is_open_are_forgotten) {
  const auto b = make("b");
  std::array<std::byte, kHandleBytes> handle{};
  (void)b->listen(handle);
  Stranger stranger(b->ports());
  const MemberId there = open(stranger, *parse_handle(handle));
  stranger.send(there, Close{kItsCircuit, CloseReason::orderly, "it has changed its mind"});
  // Of a circuit that is still there it is the port that is refused.
  constexpr uint16_t kNoPort = 999;
  EXPECT_TRUE(comes_true([&] {
    stranger.send(there, rail_to(stranger, there, kNoPort));
    const auto down = stranger.heard<RailDown>();
    return down && down->why.find("no such circuit") != std::string::npos;
  }));
}

TEST_F(LonelyEnds, of_a_circuit_that_fails_before_it_is_open_tell_the_receiver) {
  const auto a = make("a");
  Stranger stranger(a->ports());
  std::array<std::byte, kHandleBytes> handle{};
  emit(Handle{stranger.membership().contact(), 1}, handle);
  ASSERT_TRUE(comes_true([&] {
    (void)a->connect(handle);
    return stranger.heard<Open>().has_value();
  }));
  const CircuitId circuit = stranger.heard<Open>()->circuit;
  stranger.send(stranger.peer(), Opened{circuit, 0});
  ASSERT_TRUE(comes_true([&] { return stranger.heard<RailOpen>().has_value(); }));
  const RailOpen asked = *stranger.heard<RailOpen>();
  const verbs::Library library = verbs::Library::open("soft");
  const Devices devices(library, bringup::survey(library).cards());
  std::vector<std::byte> nonsense(kShortHeaderBytes);
  RailPlan plan;
  plan.gid_index = devices.cards()[0].gid_index;
  plan.n_receives = kWindow + 8;
  plan.receive_bytes = kSlotBytes;
  plan.send_depth = 2 * kWindow;
  plan.sends = nonsense;
  Rail far(devices, plan);
  far.connect(asked.from);
  stranger.send(stranger.peer(), RailReady{circuit, asked.rail, far.address()});
  bool is_greeted = false;
  ASSERT_TRUE(comes_true([&] {
    (void)far.poll([&](const Rail::Received&) { is_greeted = true; }, [](uint32_t) {});
    return is_greeted;
  }));
  ASSERT_TRUE(far.send(nonsense.data(), kShortHeaderBytes));
  EXPECT_TRUE(comes_true([&] { return a->connect(handle)->is_refused(); }));
  EXPECT_NE(a->connect(handle)->failure_text().find("can't be read"), std::string::npos);
  EXPECT_TRUE(comes_true([&] { return stranger.heard<Close>() && stranger.heard<RailDown>(); }));
}

TEST_F(LonelyEnds, survive_what_is_thrown_in_their_thread) {
  EndpointPlan plan;
  plan.verbs = "soft";
  plan.node = 1;
  plan.name = "b";
  plan.group = "test";
  plan.most_silent_ms = 5000;
  std::atomic<bool> is_full = false;
  std::atomic<bool> has_thrown = false;
  Endpoint b(plan, [&](Level, const std::string&) {
    if (is_full) {
      has_thrown = true;
      throw std::runtime_error("no room in the log");
    }
  });
  std::array<std::byte, kHandleBytes> handle{};
  (void)b.listen(handle);
  Stranger stranger(b.ports());
  const MemberId there = open(stranger, *parse_handle(handle));
  is_full = true;
  // Without the address of a queue pair: it can't be connected, of which the log is told.
  EXPECT_TRUE(comes_true([&] {
    stranger.send(there, rail_to(stranger, there, 0));
    return has_thrown.load();
  }));
  is_full = false;
  EXPECT_TRUE(comes_true([&] {
    stranger.send(there, Open{kItsCircuit + 1, 1, false, false});
    return stranger.heard<Refused>().has_value();
  }));
}

}  // namespace
}  // namespace ringbolt::circuit
