// Groups that are made of others, by several threads too, and how they end.
#include <cerrno>
#include <exception>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "library_parts.h"

namespace ringbolt::test {

void splits(Group& group) {
  const uint32_t me = group.rank();
  Group half = group.split(static_cast<int>(me % 2), -static_cast<int>(me));
  expect(half.size() == (group.size() + 1 - me % 2) / 2, "the size of a half");
  expect(half.rank() == half.size() - 1 - me / 2, "the order in a half");
  collectives(half, 1000);
  Group none = group.split(me == 0 ? 0 : -1, 0);
  expect(none.size() == (me == 0 ? 1U : 0U), "a group of one, and none");
  if (me == 0) {
    collectives(none, 10);
  } else {
    expect(none.barrier().code == EINVAL, "a call of no group");
  }
  collectives(group, 100);
  collectives(half, 100);
}

/// Threads that split different groups at the same time, each rank's in another order.
void splits_by_threads(Group& group) {
  Group twin = group.split(0, static_cast<int>(group.rank()));
  for (int round = 0; round < 5; ++round) {
    std::vector<std::optional<Group>> made(2);
    const auto split = [&](size_t which) { made[which].emplace((which == 0 ? group : twin).split(0, 0)); };
    const size_t first = (group.rank() + static_cast<uint32_t>(round)) % 2;
    std::thread other([&] { split(first); });
    split(1 - first);
    other.join();
    // What they do is told apart, though it looks alike.
    std::vector<std::vector<int32_t>> data = {numbers(group.rank(), 3000), numbers(group.rank() + 10, 3000)};
    Request sums = made[0]->all_reduce_async(data[0].data(), data[0].data(), 3000, Type::int32, Reduction::max);
    expect_ok(made[1]->all_reduce(data[1].data(), data[1].data(), 3000, Type::int32, Reduction::max));
    expect_ok(sums.wait());
    expect(data[0] == numbers(group.size() - 1, 3000) && data[1] == numbers(group.size() + 9, 3000),
           "groups that two threads have made");
  }
}

/// Threads that shrink different groups, or split one, at the same time, each rank's in another order.
void shrinks_by_threads(Group& group) {
  const uint32_t me = group.rank();
  std::vector<Group> old;
  for (int i = 0; i < 3; ++i) {
    old.push_back(group.split(0, static_cast<int>(me)));
  }
  for (uint32_t round = 0; round < 20; ++round) {
    std::vector<std::optional<Group>> made(old.size());
    std::vector<std::string> problems(old.size());
    const auto make = [&](size_t which) {
      try {
        made[which].emplace(which == 2 ? old[2].split(0, 0) : old[which].shrink());
        collectives(*made[which], which * 100 + 1);  // at once: others may not have made it yet
      } catch (const std::exception& error) {
        problems[which] = error.what();
      }
    };
    std::vector<std::thread> threads;
    for (size_t i = 0; i < old.size(); ++i) {
      threads.emplace_back(make, (i + me + round) % old.size());
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    for (size_t i = 0; i < old.size(); ++i) {
      expect(problems[i].empty(), "a group that a thread makes beside others: " + problems[i]);
      old[i] = std::move(*made[i]);
    }
  }
}

/// Some ranks shrink a group again that others have not made yet.
void shrinks_in_a_row(Group& group) {
  Group shrunk = group.split(0, 0);
  for (int i = 0; i < 50; ++i) {
    shrunk = shrunk.shrink();
    expect(shrunk.size() == group.size() && shrunk.rank() == group.rank(), "a group that nobody has left");
  }
  collectives(shrunk, 1000);
}

void ends(Group& group) {
  Group other = group.split(0, 0);
  Status status = other.barrier();  // the end may come before it is over
  if (other.rank() == 0) {
    expect_ok(status);
    other.abort("enough");
  }
  for (int i = 0; i < 1000 && status.is_ok(); ++i) {
    status = other.barrier();
  }
  expect(other.size() == 1 || (status.code == ECANCELED && status.text.find("enough") != std::string::npos),
         "an aborted group: " + status.text);
  expect_ok(group.barrier());
}

}  // namespace ringbolt::test
