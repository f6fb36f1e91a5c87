// One rank that uses every part of the public API and checks what comes back. Prints "ok" last.
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <numeric>
#include <string>
#include <vector>

#include "library_parts.h"
#include "ringbolt/group.h"

namespace {

using namespace ringbolt;
using namespace ringbolt::test;

void uneven(Group& group) {
  const uint32_t n = group.size();
  const uint32_t me = group.rank();
  std::vector<size_t> counts(n);
  for (uint32_t rank = 0; rank < n; ++rank) {
    counts[rank] = rank * 37;
  }
  const std::vector<int32_t> mine = numbers(me, counts[me]);
  std::vector<int32_t> all(std::accumulate(counts.begin(), counts.end(), size_t{0}));
  expect_ok(group.all_gatherv(mine.data(), all.data(), counts, Type::int32));
  size_t at = 0;
  for (uint32_t rank = 0; rank < n; ++rank) {
    for (size_t i = 0; i < counts[rank]; ++i) {
      expect(all[at++] == value(rank, i), "all_gatherv");
    }
  }
  // Rank r sends (r + s) % 5 * 11 elements to rank s.
  std::vector<size_t> sent(n);
  std::vector<size_t> received(n);
  for (uint32_t other = 0; other < n; ++other) {
    sent[other] = received[other] = (me + other) % 5 * 11;
  }
  const std::vector<int32_t> from = numbers(me, std::accumulate(sent.begin(), sent.end(), size_t{0}));
  std::vector<int32_t> to(std::accumulate(received.begin(), received.end(), size_t{0}));
  expect_ok(group.all_to_allv(from.data(), sent, to.data(), received, Type::int32));
  at = 0;
  for (uint32_t rank = 0; rank < n; ++rank) {
    size_t begin = 0;
    for (uint32_t before = 0; before < me; ++before) {
      begin += (rank + before) % 5 * 11;
    }
    for (size_t i = 0; i < received[rank]; ++i) {
      expect(to[at++] == value(rank, begin + i), "all_to_allv");
    }
  }
  // Two begun at once, another call between their beginning and their end.
  std::vector<std::vector<int32_t>> results(2, std::vector<int32_t>(to.size()));
  std::vector<Request> exchanges;
  for (auto& result : results) {
    exchanges.push_back(group.all_to_allv_async(from.data(), sent, result.data(), received, Type::int32));
  }
  expect_ok(group.barrier());
  for (size_t i = 0; i < results.size(); ++i) {
    expect_ok(exchanges[i].wait());
    expect(results[i] == to, "all_to_allv in the background");
  }
  counts.pop_back();
  expect(group.all_gatherv(mine.data(), all.data(), counts, Type::int32).code == EINVAL, "a count too few");
  if (n > 1) {
    Request given_up = group.all_to_allv_async(from.data(), sent, to.data(), received, Type::int32);
    given_up.cancel();  // on each rank before or after it has come about
    const Status end = given_up.wait();
    expect(end.is_ok() || end.code == ECANCELED, "a cancelled all_to_allv: " + end.text);
    expect_ok(group.barrier());
    received[(me + 1) % n] += 1;
    to.resize(to.size() + 1);
    const Status status = group.all_to_allv(from.data(), sent, to.data(), received, Type::int32);
    expect(status.code == EPROTO && status.text.find("awaits") != std::string::npos, "all_to_allv of unequal counts");
  }
}

/// An all_to_allv that fails takes as many numbers on the rank that is to blame as on the others: what follows is
/// exact.
void uneven_mistakes(Group& group) {
  const uint32_t n = group.size();
  const uint32_t me = group.rank();
  const std::vector<int32_t> from = numbers(me, 10 * n);
  std::vector<int32_t> to(10 * n);
  const std::vector<size_t> tens(n, 10);
  const std::vector<size_t> fewer(n - 1, 10);
  for (uint32_t odd = 0; odd < 2; ++odd) {
    const Status refused = group.all_to_allv(from.data(), me == odd ? fewer : tens, to.data(), tens, Type::int32);
    expect(refused.code == (me == odd ? EINVAL : EPROTO) && refused.text.find("counts for") != std::string::npos,
           "a count too few on one rank: " + refused.text);
    collectives(group, 10);
    std::vector<Request> calls;  // what is begun before the failure is known keeps its number, too
    for (int i = 0; i < 3; ++i) {
      calls.push_back(
          group.all_to_allv_async(from.data(), i == 1 && me == odd ? fewer : tens, to.data(), tens, Type::int32));
    }
    collectives(group, 10);
    for (size_t i = 0; i < calls.size(); ++i) {
      expect(calls[i].wait().is_ok() == (i != 1), "the second one of three");
    }
    const Status other =
        me == odd ? group.all_to_allv(from.data(), tens, to.data(), tens, Type::int32) : group.barrier();
    expect(other.code == EPROTO && other.text.find("barrier") != std::string::npos &&
               other.text.find("all_to_allv of int32") != std::string::npos,
           "an all_to_allv on one rank: " + other.text);
    collectives(group, 10);
    const Status barrier =
        me != odd ? group.all_to_allv(from.data(), tens, to.data(), tens, Type::int32) : group.barrier();
    expect(barrier.code == EPROTO && barrier.text.find("barrier") != std::string::npos,
           "an all_to_allv on all ranks but one: " + barrier.text);
    collectives(group, 10);
  }
}

void messages(Group& group) {
  const uint32_t n = group.size();
  const uint32_t me = group.rank();
  const uint32_t next = (me + 1) % n;
  const uint32_t before = (me + n - 1) % n;
  // More small ones than may be ahead of their receiver, then a long one.
  std::vector<Request> sends;
  std::vector<int32_t> words(200);
  for (uint32_t i = 0; i < words.size(); ++i) {
    words[i] = value(me, i);
    sends.push_back(group.send_async(&words[i], 1, Type::int32, next));
  }
  const std::vector<int32_t> longer = numbers(me, 300'001);
  sends.push_back(group.send_async(longer.data(), longer.size(), Type::int32, next));
  for (uint32_t i = 0; i < words.size(); ++i) {
    int32_t got = 0;
    expect_ok(group.recv(&got, 1, Type::int32, before));
    expect(got == value(before, i), "a short message");
  }
  std::vector<int32_t> got(longer.size());
  expect_ok(group.recv(got.data(), got.size(), Type::int32, before));
  expect(got == numbers(before, got.size()), "a long message");
  for (Request& send : sends) {
    expect_ok(send.wait());
  }
}

/// What one rank copies for itself alone takes several turns, and is done without a wait() all the same.
void long_copies_of_one(Group& group) {
  const std::vector<int32_t> from = numbers(group.rank(), 8'000'000);
  std::vector<int32_t> to(from.size());
  Group alone = group.split(static_cast<int>(group.rank()), 0);
  const auto ends = [&](Request call, const std::string& what) {
    for (int i = 0; i < 10'000 && !call.is_done(); ++i) {
      usleep(1000);
    }
    expect(call.is_done() && call.wait().is_ok() && to == from, what);
    to.assign(from.size(), 0);
  };
  ends(alone.all_to_all_async(from.data(), to.data(), from.size(), Type::int32), "a long all_to_all of one");
  ends(alone.all_to_allv_async(from.data(), {from.size()}, to.data(), {from.size()}, Type::int32),
       "a long all_to_allv of one");
}

/// Both ends of a message are this rank.
void messages_to_itself(Group& group) {
  const uint32_t me = group.rank();
  for (int i = 0; i < 40; ++i) {
    const std::vector<int32_t> sent = numbers(me + static_cast<uint32_t>(i), 1000);
    std::vector<int32_t> got(sent.size());
    if (i % 2 == 0) {
      Request receipt = group.recv_async(got.data(), got.size(), Type::int32, me);
      expect_ok(group.send(sent.data(), sent.size(), Type::int32, me));
      expect_ok(receipt.wait());
    } else {
      Request sending = group.send_async(sent.data(), sent.size(), Type::int32, me);
      expect_ok(group.recv(got.data(), got.size(), Type::int32, me));
      expect_ok(sending.wait());
    }
    expect(got == sent, "a message to itself");
  }
  int32_t word = 1;
  Request longer = group.recv_async(&word, 1, Type::int32, me);
  expect(group.send(&word, 0, Type::int32, me).code == EPROTO && longer.wait().code == EPROTO, "unequal ends");
  CallOptions soon;
  soon.timeout_ms = 20;
  const Status alone = group.send(&word, 1, Type::int32, me, soon);
  expect(alone.code == ETIMEDOUT && alone.text.find("recv()") != std::string::npos, "one end alone: " + alone.text);
  expect(group.recv(&word, 1, Type::int32, me).code == ECANCELED, "the other end of one that failed");
  expect(group.send(nullptr, 1, Type::int32, me).code == EINVAL, "no data");
  expect(group.recv(&word, 1, Type::int32, me).code == ECANCELED, "the other end of one that was refused");
  expect_ok(group.barrier());
}

/// A deadline passes without a wait(), also where no other rank and no thread is.
void deadline_without_a_wait(Group& group) {
  CallOptions soon;
  soon.timeout_ms = 50;
  int32_t word = 0;
  Request alone = group.recv_async(&word, 1, Type::int32, group.rank(), soon);
  for (int i = 0; i < 10'000 && !alone.is_done(); ++i) {
    usleep(1000);
  }
  expect(alone.is_done() && alone.wait().code == ETIMEDOUT, "a deadline that nobody waits for");
  expect(group.send(&word, 1, Type::int32, group.rank()).code == ECANCELED, "the other end of one that is too late");
}

/// What fails about a message one way has nothing to do with the one of the same number the other way.
void messages_both_ways(Group& group) {
  const uint32_t me = group.rank();
  if (me > 1) {
    return;
  }
  const uint32_t peer = 1 - me;
  constexpr int kGivenUp = 40;  // more than a rank ends before it tells how many
  int32_t got = -1;
  if (me == 1) {
    for (int i = 0; i < kGivenUp; ++i) {
      Request receipt = group.recv_async(&got, 1, Type::int32, peer);
      receipt.cancel();
      expect(receipt.wait().code == ECANCELED, "a receive that is given up");
    }
    const int32_t word = value(me, 7);
    expect_ok(group.send(&word, 1, Type::int32, peer));
  } else {
    expect_ok(group.recv(&got, 1, Type::int32, peer));
    expect(got == value(peer, 7), "a message beside those that failed");
    for (int i = 0; i < kGivenUp; ++i) {
      const Status status = group.send(&got, 1, Type::int32, peer);
      expect(status.is_ok() || status.code == ECANCELED, "a send to a receive that was given up: " + status.text);
    }
  }
}

void several_at_once(Group& group) {
  constexpr size_t kCalls = 100;  // more than may be ahead of a rank that does not come
  const size_t count = 5000;
  std::vector<std::vector<int32_t>> data;
  std::vector<Request> calls;
  // One that takes longer than all behind it.
  const std::vector<int32_t> longer = numbers(group.rank(), 4'000'000);
  std::vector<int32_t> sums(longer.size());
  Request longest = group.all_reduce_async(longer.data(), sums.data(), sums.size(), Type::int32, Reduction::sum);
  for (size_t i = 0; i < kCalls; ++i) {
    data.push_back(numbers(group.rank() + static_cast<uint32_t>(i), count));
  }
  for (auto& one : data) {
    calls.push_back(group.all_reduce_async(one.data(), one.data(), count, Type::int32, Reduction::sum));
  }
  while (!calls.empty()) {  // the last first
    expect_ok(calls.back().wait());
    const auto call = static_cast<uint32_t>(calls.size() - 1);
    for (size_t i = 0; i < count; i += 499) {
      int32_t sum = 0;
      for (uint32_t rank = 0; rank < group.size(); ++rank) {
        sum += value(rank + call, i);
      }
      expect(data[call][i] == sum, "one of several all_reduces at once");
    }
    calls.pop_back();
  }
  expect_ok(longest.wait());
}

void mistakes(Group& group) {
  std::vector<float> data(10);
  const uint32_t n = group.size();
  expect(group.broadcast(data.data(), 10, Type::float32, n).code == EINVAL, "a root that there is not");
  expect(group.all_reduce(data.data(), data.data(), 1, Type::complex64, Reduction::max).code == EINVAL,
         "the greatest complex number");
  CallOptions unknown;
  unknown.algorithm = "magic";
  const Status status = group.all_reduce(data.data(), data.data(), 10, Type::float32, Reduction::sum, unknown);
  expect(status.code == EINVAL && status.text.find("magic") != std::string::npos, "an unknown algorithm");
  expect(group.send(data.data(), 1, Type::float32, n).code == EINVAL, "a message to no rank");
  expect(group.all_reduce(nullptr, data.data(), 10, Type::float32, Reduction::sum).code == EINVAL, "no input");
  expect(group.all_gather(data.data(), nullptr, 1, Type::float32).code == EINVAL, "no output");
  expect(group.all_reduce(data.data(), data.data(), SIZE_MAX / 4 + 2, Type::float32, Reduction::sum).code == EINVAL,
         "more bytes than a number holds");
  expect_ok(group.all_reduce(nullptr, nullptr, 0, Type::float32, Reduction::sum));
  CallOptions patient;
  patient.timeout_ms = UINT64_MAX;
  expect_ok(group.all_reduce(data.data(), data.data(), 10, Type::float32, Reduction::sum, patient));
  const auto no_type = static_cast<Type>(99);
  expect(group.all_reduce(data.data(), data.data(), 1, no_type, Reduction::sum).code == EINVAL,
         "a type that there is not");
  if (n == 1) {
    return;
  }
  const uint32_t next = (group.rank() + 1) % n;
  const uint32_t before = (group.rank() + n - 1) % n;
  const Status message = group.send(data.data(), 1, no_type, next);
  expect(message.code == EINVAL && message.text.find("type 99") != std::string::npos, "a message of no type");
  const Status unsent = group.recv(data.data(), 1, Type::float32, before);
  expect(unsent.code == EPROTO && unsent.text.find("type 99") != std::string::npos, "its other end: " + unsent.text);
  // One rank's arguments make no sense: the others hear of it at once, and the group goes on.
  const float* in = group.rank() == 1 ? nullptr : data.data();
  const Status senseless = group.all_reduce(in, data.data(), 10, Type::float32, Reduction::sum);
  expect(senseless.code == (group.rank() == 1 ? EINVAL : EPROTO) && senseless.text.find("null") != std::string::npos,
         "no input on one rank: " + senseless.text);
  collectives(group, 10);
  // All ranks but one call the same: all hear of it, and the group goes on.
  const size_t count = group.rank() == 1 ? 11 : 10;
  std::vector<float> room(11);
  const Status differs = group.all_reduce(room.data(), room.data(), count, Type::float32, Reduction::sum);
  expect(differs.code == EPROTO && differs.text.find("all_reduce of 11 float32") != std::string::npos,
         "unequal counts: " + differs.text);
  collectives(group, 10);
  // One rank does not come.
  CallOptions soon;
  soon.timeout_ms = 300;
  if (group.rank() != 0) {
    const Status late = group.all_reduce(room.data(), room.data(), 5, Type::float32, Reduction::sum, soon);
    expect(late.code == ETIMEDOUT || late.code == ECANCELED, "a rank that does not come: " + late.text);
  } else {
    usleep(600'000);
    const Status late = group.all_reduce(room.data(), room.data(), 5, Type::float32, Reduction::sum);
    expect(late.code == ECANCELED && late.text.find("gave up") != std::string::npos, "too late: " + late.text);
  }
  collectives(group, 10);
}

}  // namespace

int main() try {
  GroupOptions options;
  options.timeout_ms = 60'000;
  Group group = Group::join(options);
  for (const size_t count : {size_t{0}, size_t{1}, size_t{1000}, size_t{200'003}}) {
    collectives(group, count);
  }
  uneven(group);
  long_copies_of_one(group);
  messages_to_itself(group);
  deadline_without_a_wait(group);
  if (group.size() > 1) {
    messages(group);
    messages_both_ways(group);
    uneven_mistakes(group);
  }
  several_at_once(group);
  splits(group);
  subgroups(group);
  splits_by_threads(group);
  shrinks_by_threads(group);
  shrinks_in_a_row(group);
  mistakes(group);
  ends(group);
  expect(group.report().find("rank ") == 0, "a report");
  expect(group.explain("all_reduce", 1000, Type::float32).find("direct") != std::string::npos, "an explanation");
  expect_ok(group.barrier());
  std::puts("ok");
  return 0;
} catch (const std::exception& error) {
  std::printf("failed: %s\n", error.what());
  return 1;
}
