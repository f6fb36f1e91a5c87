#include "engine/output_queue.h"

#include <gtest/gtest.h>

#include <map>

namespace ringbolt::engine {
namespace {

struct Sent {
  uint32_t source = 0;
  uint32_t number = 0;
};
using Queue = OutputQueue<Sent>;

constexpr uint32_t kBig = 65536;
constexpr uint32_t kSmall = 4096;

/// Lets the queue send as many chunks as there is credit for; bytes by source.
std::map<uint32_t, uint64_t> serve(Queue& queue, uint32_t credit, const std::map<uint32_t, uint32_t>& bytes_of) {
  std::map<uint32_t, uint64_t> sent;
  queue.serve([&](const Sent& entry, uint32_t, bool) {
    if (credit == 0) {
      return false;
    }
    --credit;
    sent[entry.source] += bytes_of.at(entry.source);
    return true;
  });
  return sent;
}

// A line of five, all to one end: at its neighbour, four ranks' chunks wait, its own among them.
TEST(OutputQueue, shares_a_cable_among_sources) {
  Queue queue;
  const std::map<uint32_t, uint32_t> bytes = {{1, kBig}, {2, kBig}, {3, kBig}, {4, kBig}};
  for (uint32_t i = 0; i < 100; ++i) {
    for (const auto& [source, length] : bytes) {
      queue.add(source, source, true, length, {source, i});
    }
  }
  std::map<uint32_t, uint64_t> sent;
  for (int i = 0; i < 200; ++i) {  // credit comes one by one
    for (const auto& [source, length] : serve(queue, 1, bytes)) {
      sent[source] += length;
    }
  }
  for (const auto& [source, length] : bytes) {
    EXPECT_EQ(sent[source], 50 * kBig) << source;
  }
}

TEST(OutputQueue, counts_bytes_and_not_chunks) {
  const std::map<uint32_t, uint32_t> bytes = {{1, kBig}, {2, kSmall}};
  for (const uint32_t at_once : {1U, 3U, 1000U}) {
    Queue queue;
    std::map<uint32_t, uint64_t> sent;
    for (uint32_t i = 0; i < 3000; ++i) {
      queue.add(1, 0, true, kBig, {1, i});
      queue.add(2, 0, false, kSmall, {2, i});
    }
    for (uint32_t used = 0; used < 1000; used += at_once) {
      for (const auto& [source, length] : serve(queue, at_once, bytes)) {
        sent[source] += length;
      }
    }
    EXPECT_LE(sent[1], sent[2] + kBig) << at_once;
    EXPECT_LE(sent[2], sent[1] + kBig) << at_once;
  }
}

TEST(OutputQueue, a_source_with_chunks_of_two_sizes_has_one_share) {
  Queue queue;
  for (uint32_t i = 0; i < 100; ++i) {
    queue.add(1, 0, true, kBig, {1, i});
    queue.add(1, 0, false, kBig, {1, i});
    queue.add(2, 0, true, kBig, {2, i});
  }
  const auto sent = serve(queue, 80, {{1, kBig}, {2, kBig}});
  EXPECT_EQ(sent.at(1), 40 * kBig);
  EXPECT_EQ(sent.at(2), 40 * kBig);
}

TEST(OutputQueue, what_has_no_credit_holds_up_nothing_and_keeps_its_share) {
  Queue queue;
  for (uint32_t i = 0; i < 20; ++i) {
    queue.add(1, 0, true, kBig, {1, i});
    queue.add(1, 1, true, kBig, {1, i});
    queue.add(2, 1, true, kBig, {2, i});
  }
  std::vector<uint32_t> classes;
  queue.serve([&](const Sent&, uint32_t buffer_class, bool) {
    classes.push_back(buffer_class);
    return buffer_class == 1;
  });
  EXPECT_EQ(std::count(classes.begin(), classes.end(), 1U), 40);
  EXPECT_EQ(queue.size(), 20U);
  EXPECT_EQ(serve(queue, 100, {{1, kBig}}).at(1), 20 * kBig);
  EXPECT_TRUE(queue.is_empty());
}

TEST(OutputQueue, keeps_the_order_of_a_flow) {
  Queue queue;
  for (uint32_t i = 0; i < 10; ++i) {
    queue.add(1, 0, true, 1 + i * 100, {1, i});
    queue.add(2, 0, true, 1000 - i * 100, {2, i});
  }
  std::map<uint32_t, uint32_t> next;
  queue.serve([&](const Sent& entry, uint32_t, bool) {
    EXPECT_EQ(entry.number, next[entry.source]++);
    return true;
  });
  EXPECT_TRUE(queue.is_empty());
}

TEST(OutputQueue, who_has_been_away_does_not_catch_up) {
  Queue queue;
  const std::map<uint32_t, uint32_t> bytes = {{1, kBig}, {2, kBig}};
  for (uint32_t i = 0; i < 1000; ++i) {
    queue.add(1, 0, true, kBig, {1, i});
  }
  serve(queue, 900, bytes);
  for (uint32_t i = 0; i < 1000; ++i) {
    queue.add(2, 0, true, kBig, {2, i});
  }
  const auto sent = serve(queue, 100, bytes);
  EXPECT_LE(sent.at(2), 51 * kBig);
  EXPECT_GE(sent.at(1), 49 * kBig);
}

TEST(OutputQueue, drops_all) {
  Queue queue;
  for (uint32_t i = 0; i < 10; ++i) {
    queue.add(i % 3, i % 2, i % 4 == 0, kBig, {i % 3, i});
  }
  uint32_t n_dropped = 0;
  queue.clear([&](const Sent&) { ++n_dropped; });
  EXPECT_EQ(n_dropped, 10U);
  EXPECT_TRUE(queue.is_empty());
  queue.add(1, 0, true, kBig, {1, 0});
  EXPECT_EQ(queue.size(), 1U);
}

}  // namespace
}  // namespace ringbolt::engine
