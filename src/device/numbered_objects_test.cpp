#include "device/numbered_objects.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "base/clock.h"

namespace ringbolt::device {
namespace {

/// Something that knows its number, and may do something at its end.
struct Numbered {
  explicit Numbered(uint32_t its) : number(its) {}
  ~Numbered() {
    if (at_end) {
      at_end();
    }
  }
  Numbered(const Numbered&) = delete;
  Numbered& operator=(const Numbered&) = delete;
  const uint32_t number;
  std::function<void()> at_end;
};

class NumberedObjectsTest : public testing::Test {
 protected:
  using Numbers = std::vector<uint32_t>;
  std::shared_ptr<Numbered> add(uint32_t number) {
    const auto object = std::make_shared<Numbered>(number);
    objects_.add(number, object);
    return object;
  }
  /// Calls `use` with the number of each that is visited, in order.
  std::vector<uint32_t> visited(const std::function<void(uint32_t)>& use = [](uint32_t) {}) {
    std::vector<uint32_t> numbers;
    objects_.each([&](Numbered& one) {
      numbers.push_back(one.number);
      use(one.number);
    });
    return numbers;
  }

  NumberedObjects<Numbered> objects_;
};

TEST_F(NumberedObjectsTest, are_found_until_they_are_removed) {
  EXPECT_EQ(objects_.find(5), nullptr);
  EXPECT_TRUE(visited().empty());
  const auto five = add(5);
  EXPECT_EQ(objects_.find(5), five);
  EXPECT_EQ(objects_.find(4), nullptr);
  EXPECT_EQ(objects_.find(6), nullptr);
  objects_.remove(6);
  EXPECT_EQ(objects_.find(5), five);
  objects_.remove(5);
  objects_.remove(5);
  EXPECT_EQ(objects_.find(5), nullptr);
  EXPECT_EQ(five.use_count(), 1);
}

TEST_F(NumberedObjectsTest, live_as_long_as_they_are_in_here_or_held) {
  std::weak_ptr<Numbered> one = add(1);
  EXPECT_FALSE(one.expired());
  auto held = objects_.find(1);
  objects_.remove(1);
  EXPECT_FALSE(one.expired());
  held.reset();
  EXPECT_TRUE(one.expired());
}

TEST_F(NumberedObjectsTest, are_visited_in_the_order_of_their_numbers_to_the_last) {
  for (const uint32_t number : {7U, 0U, UINT32_MAX, 3U, UINT32_MAX - 1}) {
    add(number);
  }
  EXPECT_EQ(visited(), (Numbers{0, 3, 7, UINT32_MAX - 1, UINT32_MAX}));
}

TEST_F(NumberedObjectsTest, visitor_may_remove_what_it_visits_and_others) {
  for (const uint32_t number : {1U, 2U, 3U, 4U, 5U}) {
    add(number);
  }
  EXPECT_EQ(visited([this](uint32_t number) {
              if (number == 2) {
                objects_.remove(1);  // was visited
                objects_.remove(2);  // is
                objects_.remove(4);  // would be
              }
            }),
            (Numbers{1, 2, 3, 5}));
  EXPECT_EQ(visited(), (Numbers{3, 5}));
}

TEST_F(NumberedObjectsTest, visitor_may_add_and_meets_those_ahead_alone) {
  add(4);
  EXPECT_EQ(visited([this](uint32_t number) {
              if (number == 4) {
                add(3);
                add(6);
              }
            }),
            (Numbers{4, 6}));
  EXPECT_EQ(visited(), (Numbers{3, 4, 6}));
}

TEST_F(NumberedObjectsTest, visited_one_lives_until_the_visit_is_over) {
  std::weak_ptr<Numbered> one = add(1);
  objects_.each([&](Numbered& visited_one) {
    objects_.remove(1);
    EXPECT_FALSE(one.expired());
    EXPECT_EQ(visited_one.number, 1U);
  });
  EXPECT_TRUE(one.expired());
}

// What an object does at its end may well lead back here: with the lock held it would wait for itself.
TEST_F(NumberedObjectsTest, end_without_the_lock_of_the_table) {
  std::vector<bool> was_found;
  add(1)->at_end = [&] { was_found.push_back(objects_.find(1) != nullptr); };
  add(2)->at_end = [&] { was_found.push_back(objects_.find(2) != nullptr); };
  objects_.remove(1);
  objects_.each([&](Numbered&) { objects_.remove(2); });
  EXPECT_EQ(was_found, (std::vector{false, false}));
}

// As many visits as it takes until others came or went in the midst of some; until then each yields halfway.
TEST_F(NumberedObjectsTest, those_that_stay_are_visited_once_while_others_come_and_go) {
  constexpr uint32_t kMost = 64;
  constexpr int kRounds = 1'000;
  constexpr int kLeastDisturbed = 10;
  constexpr uint64_t kPatienceNs = 20'000'000'000;  // what takes that long has failed
  Numbers staying;
  for (uint32_t number = 0; number < kMost; number += 2) {
    add(number);
    staying.push_back(number);
  }
  std::atomic<bool> is_over{false};
  std::atomic<uint32_t> changes{0};
  std::thread others([&] {
    for (uint32_t turn = 0; !is_over.load(std::memory_order_relaxed); ++turn) {
      const uint32_t number = turn * 2 % kMost + 1;
      add(number);
      objects_.remove((number + 20) % kMost);
      changes.fetch_add(1, std::memory_order_relaxed);
    }
  });
  uint32_t wrong = 0;
  int disturbed = 0;  // visits
  const uint64_t deadline = base::now_ns() + kPatienceNs;
  for (int round = 0; round < kRounds || (disturbed < kLeastDisturbed && base::now_ns() < deadline); ++round) {
    uint32_t changes_before = 0;
    Numbers found = visited([&](uint32_t number) {
      if (number == 0) {
        changes_before = changes;
      } else if (number == kMost / 2 && disturbed < kLeastDisturbed) {
        std::this_thread::yield();
      } else if (number == kMost - 2) {
        disturbed += changes == changes_before ? 0 : 1;
      }
    });
    wrong += std::ranges::is_sorted(found) ? 0U : 1U;
    std::erase_if(found, [](uint32_t number) { return number % 2 != 0; });
    wrong += found == staying ? 0U : 1U;
  }
  is_over = true;
  others.join();
  EXPECT_EQ(wrong, 0U);
  EXPECT_GE(disturbed, kLeastDisturbed);
}

}  // namespace
}  // namespace ringbolt::device
