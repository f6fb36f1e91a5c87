#include <sched.h>

#include <atomic>

#include "cases.h"
#include "flow.h"

namespace ringbolt::test {
namespace {

// How NCCL's kernels read: they poll the flags of a receive buffer while it is being written.
struct Protocol {
  size_t line_bytes;
  uint64_t (*word)(uint64_t message, uint64_t i);  ///< the flag, or data, at offset 8 * i
};

constexpr size_t kSlots = 4;
constexpr size_t kWatched = 8;  // lines of each message
constexpr uint64_t kMessages = 1500;
constexpr size_t kLargest = 256 * 1024;

constexpr size_t bytes_of(uint64_t message) {
  constexpr std::array<size_t, 6> kMixedSizes = {128, 65536, 1024, kLargest, 16384, 4224};
  return kMixedSizes[message % kMixedSizes.size()];
}

uint64_t data_of(uint64_t message, uint64_t i) { return word_of(seed_of({.number = message}), i); }

/// LL: 4 bytes of data and 4 of flag in one word.
uint64_t ll_word(uint64_t message, uint64_t i) { return (message + 1) << 32U | (data_of(message, i) >> 32U); }
/// LL128: 15 words of data, then one of flag.
uint64_t ll128_word(uint64_t message, uint64_t i) { return i % 16 == 15 ? message + 1 : data_of(message, i); }

constexpr Protocol kLl = {.line_bytes = 8, .word = ll_word};
constexpr Protocol kLl128 = {.line_bytes = 128, .word = ll128_word};

bool has_flag(const Protocol& protocol, uint64_t word, uint64_t message) {
  return (protocol.line_bytes == 8 ? word >> 32U : word) == message + 1;
}

/// What the poller and the progress thread of a receiver share.
struct Shared {
  std::atomic<uint64_t> consumed = 0;   ///< messages that the poller has read in full
  std::atomic<uint64_t> completed = 0;  ///< messages that test has called done
  std::atomic<bool> is_over = false;
  // The poller's, read after it has ended.
  uint64_t lines = 0;
  uint64_t lines_before = 0;
  std::string problem;
};

/// Reads the lines of message after message.
class Poller {
 public:
  Poller(const Protocol& protocol, unsigned char* buffer, Shared& shared)
      : protocol_(protocol), buffer_(buffer), shared_(shared) {}

  void run() {
    for (message_ = 0; message_ < kMessages && !shared_.is_over; ++message_) {
      words_ = reinterpret_cast<uint64_t*>(buffer_ + message_ % kSlots * kLargest);
      const size_t lines = bytes_of(message_) / protocol_.line_bytes;
      seen_.assign(lines, false);
      // At first a few lines alone, each until it is there: that way its flag is seen the moment it lands.
      size_t left = lines;
      for (size_t part = 0; part < kWatched; ++part) {
        left -= watch((part * lines + mixed(message_ + part) % lines) / kWatched);
      }
      while (left > 0 && !shared_.is_over) {
        const size_t before = left;
        for (size_t line = 0; line < lines; ++line) {
          left -= !seen_[line] && read(line) ? 1U : 0U;
        }
        if (left == before) {
          yield_now();
        }
      }
      shared_.consumed.store(message_ + 1, std::memory_order_release);
    }
  }

 private:
  /// Returns how many lines it has read: none when that one had been read before, or when all is over.
  size_t watch(size_t line) {
    if (seen_[line]) {
      return 0;
    }
    for (uint32_t look = 1; !shared_.is_over; ++look) {
      if (read(line)) {
        return 1;
      }
      if (look % 4096 == 0) {
        yield_now();
      }
    }
    return 0;
  }

  /// False while the line's flag is not there.
  bool read(size_t line) {
    const size_t words = protocol_.line_bytes / 8;
    const size_t flag = line * words + words - 1;
    const uint64_t found = __atomic_load_n(words_ + flag, __ATOMIC_ACQUIRE);
    if (!has_flag(protocol_, found, message_)) {
      return false;
    }
    for (size_t i = line * words; i <= flag; ++i) {
      const uint64_t word = i == flag ? found : __atomic_load_n(words_ + i, __ATOMIC_RELAXED);
      if (word != protocol_.word(message_, i)) {
        shared_.problem = "message " + std::to_string(message_) + ": the flag of line " + std::to_string(line) +
                          " of " + std::to_string(seen_.size()) + " came before its word " +
                          std::to_string(i - line * words);
        shared_.is_over = true;
      }
    }
    seen_[line] = true;
    ++shared_.lines;
    shared_.lines_before += shared_.completed.load(std::memory_order_relaxed) <= message_ ? 1U : 0U;
    return true;
  }

  const Protocol& protocol_;
  unsigned char* buffer_;
  Shared& shared_;
  uint64_t message_ = 0;
  uint64_t* words_ = nullptr;
  std::vector<bool> seen_;
};

/// Half of the receives bear the marker, as all of NCCL's of these protocols: then "done" may come before the data.
void receive_lines(Rank& rank, const Link& link, Buffer& buffer, void* region, Shared& shared) {
  std::array<void*, kSlots> requests{};
  uint64_t posted = 0;
  uint64_t completed = 0;
  while (!shared.is_over && (completed < kMessages || shared.consumed < kMessages)) {
    bool moved = false;
    // A slot is free for the next message once it has been read and its request is done. At first only one is used:
    // then the poller waits for each message. Later it limps behind, and requests are under way at once.
    const size_t slots = posted < kMessages * 2 / 3 ? 1 : kSlots;
    if (posted < kMessages && posted < completed + slots &&
        posted < shared.consumed.load(std::memory_order_acquire) + slots) {
      void* data = buffer.data() + posted % kSlots * kLargest;
      size_t bytes = kLargest;
      int tag = link.peer;
      void*& request = requests[posted % kSlots];
      expect(rank.plugin().irecv(link.receive, 1, &data, &bytes, &tag, &region, &request, posted % 2 == 0), "irecv");
      moved = request != nullptr;
      posted += moved ? 1 : 0;
    }
    if (completed < posted) {
      int done = 0;
      std::array<int, abi::kMostSizes> sizes{};
      expect(rank.plugin().test(requests[completed % kSlots], &done, sizes.data()), "test");
      if (done == 1) {
        const bool is_optional = completed % 2 == 0 && rank.plugin().version() > 8;
        if (!is_optional && static_cast<size_t>(sizes[0]) != bytes_of(completed)) {
          throw Failure("message " + std::to_string(completed) + ": size " + std::to_string(sizes[0]) + ", not " +
                        std::to_string(bytes_of(completed)));
        }
        shared.completed.store(++completed, std::memory_order_relaxed);
        moved = true;
      }
    }
    if (!moved) {
      yield_now();
    }
  }
}

void send_lines(Rank& rank, const Link& link, const Protocol& protocol, Buffer& buffer, void* region) {
  std::array<void*, kSlots> requests{};
  uint64_t completed = 0;
  for (uint64_t message = 0; message < kMessages || completed < message;) {
    if (message < kMessages && message < completed + kSlots) {
      auto* const words = reinterpret_cast<uint64_t*>(buffer.data() + message % kSlots * kLargest);
      for (size_t i = 0; i < bytes_of(message) / 8; ++i) {
        words[i] = protocol.word(message, i);
      }
      void*& request = requests[message % kSlots];
      expect(rank.plugin().isend(link.send, words, bytes_of(message), rank.id(), region, &request), "isend");
      message += request != nullptr ? 1 : 0;
    }
    int done = 0;
    if (completed < message) {
      expect(rank.plugin().test(requests[completed % kSlots], &done, nullptr), "test");
      completed += done == 1 ? 1 : 0;
    }
    if (done == 0) {
      sleep_s(0.00002);  // two processors may be all there are: the poller and its rank's progress thread need them
    }
  }
}

/// Two threads that spin on one processor would see nothing of each other's work.
void pin_to(size_t place) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < 2) {
    return;
  }
  for (size_t processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (CPU_ISSET(processor, &allowed) && place-- == 0) {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(processor, &one);
      sched_setaffinity(0, sizeof one, &one);
      return;
    }
  }
}

/// Rank 0 sends, rank 1 reads.
void lines(Rank& rank, const Protocol& protocol) {
  if (rank.id() > 1) {
    return;
  }
  std::vector<Link> links = open_links(rank, {1 - rank.id()}, 1);
  Link& link = links[0];
  Buffer buffer(kSlots * kLargest);
  void* const comm = rank.id() == 0 ? link.send : link.receive;
  void* region = nullptr;
  expect(rank.plugin().reg_mr(comm, buffer.data(), buffer.bytes(), abi::kHostMemory, &region), "regMr");
  rank.step("send or poll lines");
  if (rank.id() == 0) {
    rank.progress().run([&] { send_lines(rank, link, protocol, buffer, region); });
  } else {
    Shared shared;
    std::thread poller([&] {
      pin_to(0);
      Poller(protocol, buffer.data(), shared).run();
    });
    auto receiving = rank.progress().start([&] {
      pin_to(1);
      receive_lines(rank, link, buffer, region, shared);
    });
    receiving.wait();
    shared.is_over = true;
    poller.join();
    receiving.get();
    if (!shared.problem.empty()) {
      throw Failure(shared.problem);
    }
    rank.note(std::to_string(shared.lines_before) + " of " + std::to_string(shared.lines) +
              " lines read before completion");
  }
  expect(rank.plugin().dereg_mr(comm, region), "deregMr");
  rank.barrier();
  close_links(rank, links);
}

// NCCL uses these two for all but large messages.
void ll(Rank& rank) { lines(rank, kLl); }
void ll128(Rank& rank) { lines(rank, kLl128); }

constexpr size_t kMarked = 1024;

/// Posts marked receives until one is refused, or many more than NCCL has. The wrapper finds a marker left in place.
std::vector<void*> post_marked(Rank& rank, const Link& link, Buffer& buffer, void* region) {
  std::vector<void*> requests;
  for (int refusals = 0; requests.size() < 4 * abi::kMostRequests && refusals < 3;) {
    void* data = buffer.data() + requests.size() * kMarked;
    size_t bytes = kMarked;
    int tag = link.peer;
    void* request = nullptr;
    expect(rank.plugin().irecv(link.receive, 1, &data, &bytes, &tag, &region, &request, true),
           "irecv with " + std::to_string(requests.size()) + " outstanding");
    if (request == nullptr) {
      ++refusals;
    } else {
      requests.push_back(request);
    }
  }
  if (requests.size() < abi::kMostRequests) {
    throw Failure("only " + std::to_string(requests.size()) + " marked receives outstanding, NCCL may have 32");
  }
  return requests;
}

void await(Rank& rank, void* request, const char* what) {
  const uint64_t begin = now_ns();
  for (int done = 0; done == 0; yield_now()) {
    std::array<int, abi::kMostSizes> sizes{};
    expect(rank.plugin().test(request, &done, sizes.data()), what);
    if (done == 0 && seconds_since(begin) > 10) {
      throw Failure(std::string(what) + " is not done after 10 s");
    }
  }
}

void send_numbered(Rank& rank, const Link& link, Buffer& buffer, void* region, uint64_t number) {
  unsigned char* const data = buffer.data() + number * kMarked;
  fill(data, kMarked, {rank.id(), 0, number});
  void* request = nullptr;
  const uint64_t begin = now_ns();
  while (request == nullptr && seconds_since(begin) < 10) {
    expect(rank.plugin().isend(link.send, data, kMarked, rank.id(), region, &request), "isend");
  }
  await(rank, request, "a send");
}

/// Rank 0 hears how many were taken, then sends to each of them.
void marker(Rank& rank) {
  if (rank.id() > 1) {
    return;
  }
  std::vector<Link> links = open_links(rank, {1 - rank.id()}, 1);
  Link& link = links[0];
  Buffer buffer((4 * abi::kMostRequests + 1) * kMarked);
  void* const comm = rank.id() == 0 ? link.send : link.receive;
  void* region = nullptr;
  expect(rank.plugin().reg_mr(comm, buffer.data(), buffer.bytes(), abi::kHostMemory, &region), "regMr");
  if (rank.id() == 0) {
    const uint64_t count = std::stoull(rank.take(1));
    rank.progress().run([&] {
      for (uint64_t number = 0; number <= count; ++number) {
        send_numbered(rank, link, buffer, region, number);
      }
    });
  } else {
    std::vector<void*> requests;
    rank.progress().run([&] { requests = post_marked(rank, link, buffer, region); });
    rank.post(0, std::to_string(requests.size()));
    rank.progress().run([&] {
      for (void* const request : requests) {
        await(rank, request, "a marked receive");
      }
      // One without the marker: once that is done, so is all before it, whenever the others were called done.
      void* data = buffer.data() + requests.size() * kMarked;
      size_t bytes = kMarked;
      int tag = 0;
      void* last = nullptr;
      const uint64_t begin = now_ns();
      while (last == nullptr && seconds_since(begin) < 10) {
        expect(rank.plugin().irecv(link.receive, 1, &data, &bytes, &tag, &region, &last), "irecv");
      }
      await(rank, last, "the receive after the marked ones");
    });
    for (size_t number = 0; number <= requests.size(); ++number) {
      if (first_wrong(buffer.data() + number * kMarked, kMarked, {0, 0, number})) {
        throw Failure("message " + std::to_string(number) + " is wrong");
      }
    }
    rank.note(std::to_string(requests.size()) + " marked receives outstanding");
  }
  expect(rank.plugin().dereg_mr(comm, region), "deregMr");
  rank.barrier();
  close_links(rank, links);
}

}  // namespace

std::vector<Case> poller_cases() {
  return {
      {.name = "ll", .asserts = "a reader of 8-byte words never sees a flag without its data", .run = ll},
      {.name = "ll128", .asserts = "a reader of 128-byte lines never sees a flag before its line", .run = ll128},
      {.name = "marker", .asserts = "the marker of optional receives is replaced, accepted or refused", .run = marker}};
}

}  // namespace ringbolt::test
