#include "library_parts.h"

#include <stdexcept>

namespace ringbolt::test {

void expect(bool is_so, const std::string& what) {
  if (!is_so) {
    throw std::runtime_error(what);
  }
}

void expect_ok(const Status& status) { expect(status.is_ok(), std::to_string(status.code) + " " + status.text); }

int32_t value(uint32_t rank, size_t i) { return static_cast<int32_t>(i * 17 + rank * 1000); }

std::vector<int32_t> numbers(uint32_t rank, size_t count) {
  std::vector<int32_t> made(count);
  for (size_t i = 0; i < count; ++i) {
    made[i] = value(rank, i);
  }
  return made;
}

void collectives(Group& group, size_t count) {
  const uint32_t n = group.size();
  const uint32_t me = group.rank();
  const std::vector<int32_t> mine = numbers(me, count);
  std::vector<int32_t> out(count);
  expect_ok(group.all_reduce(mine.data(), out.data(), count, Type::int32, Reduction::sum));
  for (size_t i = 0; i < count; ++i) {
    int32_t sum = 0;
    for (uint32_t rank = 0; rank < n; ++rank) {
      sum += value(rank, i);
    }
    expect(out[i] == sum, "all_reduce");
  }
  const uint32_t root = n - 1;
  std::vector<int32_t> data = me == root ? mine : std::vector<int32_t>(count);
  expect_ok(group.broadcast(data.data(), count, Type::int32, root));
  expect(data == numbers(root, count), "broadcast");
  std::vector<int32_t> all(count * n);
  expect_ok(group.all_gather(mine.data(), all.data(), count, Type::int32));
  std::vector<int32_t> gathered(me == root ? count * n : 0);
  expect_ok(group.gather(mine.data(), gathered.data(), count, Type::int32, root));
  for (uint32_t rank = 0; rank < n; ++rank) {
    for (size_t i = 0; i < count; ++i) {
      expect(all[rank * count + i] == value(rank, i), "all_gather");
      expect(me != root || gathered[rank * count + i] == value(rank, i), "gather");
    }
  }
  expect_ok(group.scatter(all.data(), out.data(), count, Type::int32, root));
  expect(out == mine, "scatter");
  expect_ok(group.reduce(mine.data(), out.data(), count, Type::int32, Reduction::max, root));
  expect(me != root || out == numbers(n - 1, count), "reduce");
  const std::vector<int32_t> wide = numbers(me, count * n);
  expect_ok(group.reduce_scatter(wide.data(), out.data(), count, Type::int32, Reduction::min));
  for (size_t i = 0; i < count; ++i) {
    expect(out[i] == value(0, me * count + i), "reduce_scatter");
  }
  expect_ok(group.all_to_all(wide.data(), all.data(), count, Type::int32));
  for (uint32_t rank = 0; rank < n; ++rank) {
    for (size_t i = 0; i < count; ++i) {
      expect(all[rank * count + i] == value(rank, me * count + i), "all_to_all");
    }
  }
  expect_ok(group.barrier());
}

}  // namespace ringbolt::test
