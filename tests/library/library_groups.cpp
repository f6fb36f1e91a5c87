// Groups that are made of others, by several threads too, and how they end.
#include <cerrno>
#include <exception>
#include <optional>
#include <stdexcept>
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

/// Each rank's bytes to all of them, by messages in the group that they are of.
Exchange by_messages(Group& group, const std::vector<uint32_t>& ranks) {
  return [&group, ranks](const void* mine, void* all, size_t bytes) {
    std::vector<Request> under_way;
    for (size_t i = 0; i < ranks.size(); ++i) {
      under_way.push_back(group.send_async(mine, bytes, Type::uint8, ranks[i]));
      under_way.push_back(group.recv_async(static_cast<char*>(all) + i * bytes, bytes, Type::uint8, ranks[i]));
    }
    for (Request& one : under_way) {
      expect_ok(one.wait());
    }
  };
}

/// Groups that only their own ranks make, the others going on meanwhile.
void subgroups(Group& group) {
  const uint32_t me = group.rank();
  const uint32_t last = group.size() - 1;
  if (me == 0 || me == last) {
    const std::vector<uint32_t> ends = last == 0 ? std::vector<uint32_t>{0} : std::vector<uint32_t>{last, 0};
    for (int round = 0; round < 3; ++round) {
      Group pair = group.subgroup(ends, by_messages(group, ends));
      expect(pair.size() == ends.size() && pair.rank() == (me == last ? 0U : 1U), "who is in a group of both ends");
      collectives(pair, 1000);
    }
  }
  collectives(group, 100);
  for (const std::vector<uint32_t>& none :
       {std::vector<uint32_t>{}, {me, me}, {me, last + 1}, {(me + 1) % (last + 2)}}) {
    try {
      group.subgroup(none, by_messages(group, none));
      expect(false, "ranks that make no group");
    } catch (const Error& error) {
      expect(error.code() == EINVAL, error.what());
    }
  }
  try {
    group.subgroup({me}, [](const void*, void*, size_t) { throw std::out_of_range("no exchange"); });
    expect(false, "an exchange that throws");
  } catch (const std::out_of_range& thrown) {
    expect(std::string(thrown.what()) == "no exchange", "what the exchange throws");
  }
  collectives(group, 100);
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
