#include "circuit/registrations.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

#include "bringup/survey.h"
#include "verbs/soft_device_test_support.h"

namespace ringbolt::circuit {
namespace {

class RegistrationsOf : public testing::Test {
 protected:
  verbs::test::RuntimeFolder folder;
  verbs::Library library = verbs::Library::open("soft");
  std::shared_ptr<const Devices> devices = std::make_shared<const Devices>(library, bringup::survey(library).cards());
  std::vector<std::pair<Level, std::string>> said;
  Registrations registrations{devices,
                              [this](Level level, const std::string& text) { said.emplace_back(level, text); }};
  std::vector<std::byte> memory = std::vector<std::byte>(size_t{1} << 20U);
};

TEST_F(RegistrationsOf, parts_of_what_is_there_are_the_same) {
  registrations.use(devices->device(0));
  const Registered* const whole = registrations.add(memory.data(), memory.size());
  ASSERT_NE(whole, nullptr);
  EXPECT_TRUE(whole->key(0).has_value());
  EXPECT_EQ(registrations.add(memory.data() + 100'000, 5), whole);
  EXPECT_EQ(registrations.add(memory.data(), memory.size()), whole);
  EXPECT_EQ(registrations.size(), 1U);
  registrations.remove(whole);
  registrations.remove(whole);
  EXPECT_EQ(registrations.size(), 1U) << "somebody has it still";
  registrations.remove(whole);
  EXPECT_EQ(registrations.size(), 0U);
  registrations.remove(whole);  // once too often: nothing
}

TEST_F(RegistrationsOf, ranges_that_overlap_are_two) {
  registrations.use(devices->device(0));
  const Registered* const first = registrations.add(memory.data(), 300'000);
  const Registered* const second = registrations.add(memory.data() + 200'000, 300'000);
  EXPECT_NE(first, second);
  EXPECT_EQ(registrations.add(memory.data() + 250'000, 10'000), first);
  EXPECT_EQ(registrations.size(), 2U);
}

TEST_F(RegistrationsOf, hold_what_lies_in_whole_pages) {
  const Registered* const one = registrations.add(memory.data() + 1, 1);
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  EXPECT_TRUE(one->holds(memory.data() + 1, 1));
  EXPECT_FALSE(one->holds(memory.data() + 1, page + 1));
  EXPECT_FALSE(one->holds(memory.data() + 1, SIZE_MAX));
  EXPECT_FALSE(one->holds(memory.data() + 2 * page, 1));
  EXPECT_EQ(registrations.add(memory.data(), SIZE_MAX), nullptr);
}

TEST_F(RegistrationsOf, devices_come_later) {
  const Registered* const one = registrations.add(memory.data(), 100);
  EXPECT_FALSE(one->key(0).has_value()) << "no rail uses it";
  registrations.use(devices->device(0));
  ASSERT_TRUE(one->key(0).has_value());
  EXPECT_EQ(one->keys()[0], one->key(0));
  EXPECT_FALSE(one->key(kMostDevices).has_value());
}

TEST_F(RegistrationsOf, what_a_device_refuses_is_said_once_and_no_error) {
  registrations.use(devices->device(0));
  auto* const nowhere = reinterpret_cast<std::byte*>(uintptr_t{1} << 20U);  // nobody's pages
  const Registered* const one = registrations.add(nowhere, 5000);
  ASSERT_NE(one, nullptr);
  if (one->key(0)) {
    GTEST_SKIP() << "the device registers what is not there";
  }
  (void)registrations.add(nowhere + 10'000'000, 1);
  ASSERT_EQ(said.size(), 2U);
  EXPECT_EQ(said[0].first, Level::warning);
  EXPECT_EQ(said[1].first, Level::info);
  for (const char* const word : {"0x100000", "8192 bytes", "errno"}) {
    EXPECT_NE(said[0].second.find(word), std::string::npos) << said[0].second;
  }
}

}  // namespace
}  // namespace ringbolt::circuit
