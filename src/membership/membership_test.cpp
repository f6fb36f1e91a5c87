#include "membership/membership.h"

#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>

#include "base/condition.h"
#include "base/error.h"

namespace ringbolt::membership {
namespace {

/// Throws at all that it hears, and notes the kinds of messages.
class Thrower final : public User {
 public:
  void on_member(const Announcement&) override {
    {
      const base::LockGuard guard(lock);
      ++n_members;
      changed.notify_all();
    }
    throw std::runtime_error("of a member");
  }
  void on_gone(MemberId, const std::string&, const std::string&) override { throw std::runtime_error("of an end"); }
  void on_message(MemberId, uint16_t kind, std::span<const std::byte>) override {
    {
      const base::LockGuard guard(lock);
      kinds.push_back(kind);
      changed.notify_all();
    }
    throw std::runtime_error("of a message");
  }

  base::Mutex lock;
  base::Condition changed;
  int n_members RINGBOLT_GUARDED_BY(lock) = 0;
  std::vector<uint16_t> kinds RINGBOLT_GUARDED_BY(lock);
};

MembershipPlan plan_of(const std::string& group) {
  MembershipPlan plan;
  plan.member = new_member();
  plan.name = "member";
  plan.group = group;
  plan.most_silent_ms = 5000;
  return plan;
}

TEST(Membership, goes_on_where_its_user_throws) {
  const std::string group = "throwers " + std::to_string(new_member());
  Thrower one;
  Thrower other;
  Membership sender(plan_of(group), one);
  Membership receiver(plan_of(group), other);
  sender.call(receiver.contact());
  const auto is_true_within_20_s = [](Thrower& at, auto what) {
    const base::LockGuard guard(at.lock);
    return at.changed.wait_for(at.lock, std::chrono::seconds(20), what);
  };
  ASSERT_TRUE(is_true_within_20_s(one, [&]() RINGBOLT_REQUIRES(one.lock) { return one.n_members > 0; }));
  ASSERT_TRUE(is_true_within_20_s(other, [&]() RINGBOLT_REQUIRES(other.lock) { return other.n_members > 0; }));
  sender.send(receiver.id(), 7, {});
  sender.send(receiver.id(), 8, {});
  EXPECT_TRUE(is_true_within_20_s(other, [&]() RINGBOLT_REQUIRES(other.lock) { return other.kinds.size() == 2; }));
  const base::LockGuard guard(other.lock);
  EXPECT_EQ(other.kinds, (std::vector<uint16_t>{7, 8}));
}

TEST(Membership, refuses_details_that_nobody_would_read) {
  Thrower user;
  MembershipPlan plan = plan_of("long");
  plan.details.resize(kMostDetailBytes);
  Membership member(plan, user);
  EXPECT_THROW(member.announce(std::vector<std::byte>(kMostDetailBytes + 1)), base::Error);
  EXPECT_NO_THROW(member.announce(std::vector<std::byte>(kMostDetailBytes)));
  plan.details.resize(kMostDetailBytes + 1);
  EXPECT_THROW(Membership(plan, user), base::Error);
}

}  // namespace
}  // namespace ringbolt::membership
