// One rank of a group that measures messages between two ranks, with what they hold written and compared. The receiver
// prints a line of JSON. Run on all nodes of a cluster:
//
//   bench_group_stream stream FROM TO BYTES DEPTH COUNT   COUNT messages of BYTES, DEPTH of them under way
//   bench_group_stream first FROM TO BYTES TIMES          how long a message's first and last bytes take to get there
//
// Times are those of CLOCK_MONOTONIC, which the namespaces of one machine share.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "ringbolt/group.h"

namespace {

using ringbolt::Group;
using ringbolt::Status;
using ringbolt::Type;

constexpr uint64_t kBucketNs = 10'000'000;
constexpr ringbolt::CallOptions kPatient{.timeout_ms = 120'000, .is_reproducible = true, .algorithm = {}};

uint64_t now_ns() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

void check(const Status& status) {
  if (!status.is_ok()) {
    throw std::runtime_error(status.text);
  }
}

/// Every word tells the message and its place, and none is 0.
void write(std::vector<uint64_t>& words, uint64_t message) {
  for (uint64_t i = 0; i < words.size(); ++i) {
    words[i] = (message + 1) * 0x9e3779b97f4a7c15U + i + 1;
  }
}

uint64_t count_wrong(const std::vector<uint64_t>& words, uint64_t message) {
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < words.size(); ++i) {
    wrong += words[i] == (message + 1) * 0x9e3779b97f4a7c15U + i + 1 ? 0U : 1U;
  }
  return wrong;
}

struct Wanted {
  std::string mode;
  uint32_t from = 0;
  uint32_t to = 0;
  uint64_t n_words = 0;
  uint64_t depth = 1;
  uint64_t count = 0;
};

void send_all(Group& group, const Wanted& wanted) {
  std::vector<std::vector<uint64_t>> buffers(wanted.depth, std::vector<uint64_t>(wanted.n_words));
  std::deque<ringbolt::Request> under_way;
  for (uint64_t message = 0; message < wanted.count; ++message) {
    if (under_way.size() == wanted.depth) {
      check(under_way.front().wait());
      under_way.pop_front();
    }
    std::vector<uint64_t>& words = buffers[message % wanted.depth];
    write(words, message);
    under_way.push_back(group.send_async(words.data(), words.size(), Type::uint64, wanted.to, kPatient));
  }
  for (ringbolt::Request& request : under_way) {
    check(request.wait());
  }
}

/// Bytes that came in each 10 ms.
void print_series(const std::vector<uint64_t>& done_ns, uint64_t bytes) {
  std::vector<uint64_t> buckets((done_ns.back() - done_ns.front()) / kBucketNs + 1);
  for (const uint64_t at : done_ns) {
    buckets[(at - done_ns.front()) / kBucketNs] += bytes;
  }
  std::printf("\"bucket_ns\": %llu, \"buckets\": [", static_cast<unsigned long long>(kBucketNs));
  for (size_t i = 0; i < buckets.size(); ++i) {
    std::printf("%s%llu", i == 0 ? "" : ", ", static_cast<unsigned long long>(buckets[i]));
  }
  std::printf("]");
}

void receive_all(Group& group, const Wanted& wanted) {
  std::vector<std::vector<uint64_t>> buffers(wanted.depth, std::vector<uint64_t>(wanted.n_words));
  std::deque<ringbolt::Request> under_way;
  std::vector<uint64_t> done_ns;
  uint64_t wrong = 0;
  const auto begin = [&](uint64_t message) {
    std::vector<uint64_t>& words = buffers[message % wanted.depth];
    under_way.push_back(group.recv_async(words.data(), words.size(), Type::uint64, wanted.from, kPatient));
  };
  for (uint64_t message = 0; message < std::min(wanted.depth, wanted.count); ++message) {
    begin(message);
  }
  for (uint64_t message = 0; message < wanted.count; ++message) {
    check(under_way.front().wait());
    under_way.pop_front();
    done_ns.push_back(now_ns());
    wrong += count_wrong(buffers[message % wanted.depth], message);
    if (message + wanted.depth < wanted.count) {
      begin(message + wanted.depth);
    }
  }
  const uint64_t bytes = wanted.n_words * sizeof(uint64_t);
  const uint64_t skipped = wanted.count / 10;  // until it has found its pace
  const auto taken = static_cast<double>(done_ns.back() - done_ns[skipped]);
  std::printf("{\"messages\": %llu, \"wrong\": %llu, \"gbps\": %.4f, \"begin_ns\": %llu, ",
              static_cast<unsigned long long>(wanted.count), static_cast<unsigned long long>(wrong),
              static_cast<double>((wanted.count - 1 - skipped) * bytes) * 8 / taken,
              static_cast<unsigned long long>(done_ns.front()));
  print_series(done_ns, bytes);
  std::printf("}\n");
}

/// The time of the sender's call travels in front, in a message of its own.
void send_timed(Group& group, const Wanted& wanted) {
  std::vector<uint64_t> words(wanted.n_words);
  for (uint64_t message = 0; message < wanted.count; ++message) {
    write(words, message);
    check(group.barrier(kPatient));
    const uint64_t begun_ns = now_ns();
    check(group.send(words.data(), words.size(), Type::uint64, wanted.to, kPatient));
    check(group.send(&begun_ns, 1, Type::uint64, wanted.to, kPatient));
  }
}

void receive_timed(Group& group, const Wanted& wanted) {
  std::vector<uint64_t> words(wanted.n_words);
  std::printf("{\"first_us\": [");
  std::string whole;
  uint64_t wrong = 0;
  for (uint64_t message = 0; message < wanted.count; ++message) {
    std::fill(words.begin(), words.end(), 0);
    check(group.barrier(kPatient));
    std::atomic<uint64_t> seen_ns = 0;
    std::atomic<bool> is_over = false;
    ringbolt::Request request = group.recv_async(words.data(), words.size(), Type::uint64, wanted.from, kPatient);
    std::thread watcher([&] {
      while (__atomic_load_n(words.data(), __ATOMIC_RELAXED) == 0 && !is_over) {
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      }
      seen_ns = now_ns();
    });
    const Status status = request.wait();
    const uint64_t done_ns = now_ns();
    is_over = true;
    watcher.join();
    check(status);
    uint64_t begun_ns = 0;
    check(group.recv(&begun_ns, 1, Type::uint64, wanted.from, kPatient));
    wrong += count_wrong(words, message);
    std::printf("%s%.1f", message == 0 ? "" : ", ", static_cast<double>(seen_ns - begun_ns) / 1000);
    whole += (message == 0 ? "" : ", ") + std::to_string(static_cast<double>(done_ns - begun_ns) / 1000);
  }
  std::printf("], \"whole_us\": [%s], \"wrong\": %llu}\n", whole.c_str(), static_cast<unsigned long long>(wrong));
}

Wanted wanted_of(const std::vector<std::string>& words) {
  const bool is_stream = words.size() == 6 && words[0] == "stream";
  if (!is_stream && !(words.size() == 5 && words[0] == "first")) {
    throw std::invalid_argument("give: stream FROM TO BYTES DEPTH COUNT, or first FROM TO BYTES TIMES");
  }
  const auto number = [&](size_t at) { return std::stoull(words[at]); };
  Wanted wanted{words[0], static_cast<uint32_t>(number(1)), static_cast<uint32_t>(number(2)), number(3) / 8, 1,
                number(4)};
  if (is_stream) {
    wanted.depth = number(4);
    wanted.count = number(5);
  }
  if (wanted.n_words == 0 || wanted.depth == 0 || wanted.count < 2 || wanted.from == wanted.to) {
    throw std::invalid_argument("at least 8 bytes, two messages, one under way, and two ranks");
  }
  return wanted;
}

void run(const Wanted& wanted) {
  Group group = Group::join();
  if (wanted.from >= group.size() || wanted.to >= group.size()) {
    throw std::invalid_argument("no such rank in this group of " + std::to_string(group.size()));
  }
  const bool is_stream = wanted.mode == "stream";
  check(group.barrier(kPatient));
  if (group.rank() == wanted.from) {
    is_stream ? send_all(group, wanted) : send_timed(group, wanted);
  } else if (group.rank() == wanted.to) {
    is_stream ? receive_all(group, wanted) : receive_timed(group, wanted);
  } else if (!is_stream) {
    for (uint64_t message = 0; message < wanted.count; ++message) {
      check(group.barrier(kPatient));
    }
  }
  check(group.barrier(kPatient));
  if (std::getenv("BENCH_REPORT") != nullptr) {
    std::fprintf(stderr, "rank %u\n%s\n", group.rank(), group.report().c_str());
  }
}

}  // namespace

int main(int argc, char** argv) try {
  run(wanted_of(std::vector<std::string>(argv + 1, argv + argc)));
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "bench_group_stream: %s\n", error.what());
  return 1;
}
