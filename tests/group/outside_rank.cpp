// What C++ has for joining without the environment, from outside of the library: an exchange of the program's own, then
// a place to meet; and the progress descriptor. Runs as one rank per node, in a folder that all ranks share (its
// argument). Prints "ok", or what went wrong.
#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "ringbolt/group.h"

namespace {

using namespace ringbolt;

constexpr int kPatienceMs = 60'000;

void expect(bool is_so, const std::string& what) {
  if (!is_so) {
    throw std::runtime_error(what);
  }
}

/// Of one moment: nothing holds it.
uint16_t free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  const bool is_bound = ::bind(fd, reinterpret_cast<sockaddr*>(&address), length) == 0 &&
                        ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0;
  ::close(fd);
  expect(is_bound, "a free port");
  return ntohs(address.sin_port);
}

class Rank {
 public:
  Rank(uint32_t rank, uint32_t size, std::string folder) : rank_(rank), size_(size), folder_(std::move(folder)) {
    options_.reads_process_environment = false;
    options_.rank = rank;
    options_.size = size;
    options_.verbs = std::getenv("RINGBOLT_VERBS") == nullptr ? "" : std::getenv("RINGBOLT_VERBS");
    options_.timeout_ms = kPatienceMs;
    options_.measures_cables = false;
  }

  void run() {
    expect(version() >= RINGBOLT_VERSION, "an older library than its headers");
    refusals();
    JoinOptions by_exchange = options_;
    by_exchange.exchange = [this](const void* mine, void* all, size_t bytes) { gather_by_files(mine, all, bytes); };
    Group group = Group::join(by_exchange);
    works(group);
    event_loop(group);
    group = group.rejoin();  // which exchanges anew
    works(group);
    expect(n_exchanges_ == 2, "exchanges: " + std::to_string(n_exchanges_));
    at_a_place(group);
  }

 private:
  void gather_by_files(const void* mine, void* all, size_t bytes) {
    const auto place = [&](uint32_t rank, const char* kind) {
      return folder_ + "/" + kind + std::to_string(n_exchanges_) + "." + std::to_string(rank);
    };
    std::ofstream(place(rank_, "hidden"), std::ios::binary)
        .write(static_cast<const char*>(mine), std::streamsize(bytes));
    std::filesystem::rename(place(rank_, "hidden"), place(rank_, "shown"));
    for (uint32_t rank = 0; rank < size_; ++rank) {
      for (int waited_ms = 0; !std::filesystem::exists(place(rank, "shown")); ++waited_ms) {
        expect(waited_ms < kPatienceMs, "nothing comes from rank " + std::to_string(rank));
        ::usleep(1000);
      }
      std::ifstream(place(rank, "shown"), std::ios::binary)
          .read(static_cast<char*>(all) + rank * bytes, std::streamsize(bytes));
    }
    ++n_exchanges_;
  }

  /// Each says why, and none waits for other ranks.
  void refusals() {
    const auto refused = [&](const JoinOptions& options, const std::string& words, int code) {
      try {
        (void)Group::join(options);
      } catch (const Error& error) {
        expect(std::strstr(error.what(), words.c_str()) != nullptr && error.code() == code,
               words + " is not in: " + error.what() + ", " + std::to_string(error.code()));
        return;
      }
      expect(false, "nobody says " + words);
    };
    JoinOptions options = options_;
    options.size.reset();
    refused(options, "go together", EINVAL);
    options = options_;
    options.rank = size_;
    refused(options, "ranks count from 0", EINVAL);
    options = options_;
    options.host = "127.0.0.1";
    refused(options, "at no port", EINVAL);
    options = options_;
    options.timeout_ms = 0;
    refused(options, "is 0 ms", EINVAL);
    options = options_;
    options.exchange = [](const void*, void*, size_t) {};
    refused(options, "in the order of ranks", EPROTO);
    struct Own {
      int number;
    };
    options.exchange = [](const void*, void*, size_t) { throw Own{42}; };
    try {
      (void)Group::join(options);
      expect(false, "what the exchange throws comes out of join()");
    } catch (const Own& thrown) {
      expect(thrown.number == 42, "another exception");
    }
  }

  void works(Group& group) const {
    std::vector<int64_t> data(1000);
    for (size_t i = 0; i < data.size(); ++i) {
      data[i] = int64_t{rank_} * 1000 + static_cast<int64_t>(i);
    }
    const Status status = group.all_reduce(data.data(), data.data(), data.size(), Type::int64, Reduction::max);
    expect(status.is_ok(), status.text);
    for (size_t i = 0; i < data.size(); ++i) {
      expect(data[i] == int64_t{size_ - 1} * 1000 + static_cast<int64_t>(i), "the greatest element");
    }
  }

  void event_loop(Group& group) const {
    pollfd event{group.progress_fd(), POLLIN, 0};
    const uint32_t next = (rank_ + 1) % size_;
    const uint32_t before = (rank_ + size_ - 1) % size_;
    std::vector<uint32_t> got(20);
    std::vector<Request> under_way;
    for (uint32_t i = 0; i < got.size(); ++i) {
      under_way.push_back(group.recv_async(&got[i], 1, Type::uint32, before));
    }
    std::vector<uint32_t> sent(got.size());
    for (uint32_t i = 0; i < got.size(); ++i) {
      sent[i] = rank_ * 100 + i;
      under_way.push_back(group.send_async(&sent[i], 1, Type::uint32, next));
    }
    while (!under_way.empty()) {
      expect(::poll(&event, 1, kPatienceMs) == 1, "no event although messages are under way");
      uint64_t n_ends = 0;
      expect(::read(event.fd, &n_ends, sizeof n_ends) == sizeof n_ends, "the event is read");
      std::erase_if(under_way, [](Request& request) {
        const bool is_done = request.is_done();
        expect(!is_done || request.wait().is_ok(), "a message");
        return is_done;
      });
    }
    for (uint32_t i = 0; i < got.size(); ++i) {
      expect(got[i] == before * 100 + i, "a message's data");
    }
  }

  /// A second group beside the first, which tells where.
  void at_a_place(Group& first) {
    uint16_t port = rank_ == 0 ? free_port() : uint16_t{0};
    expect(first.broadcast(&port, 1, Type::uint16, 0).is_ok(), "the port");
    options_.host = "127.0.0.1";
    options_.port = port;
    options_.group = "second";
    options_.secret = "told by the first group";
    options_.checksums = Checksums::every;
    Group second = Group::join(options_);
    works(second);
    Group half = second.split(static_cast<int>(rank_) - 1, 0);  // rank 0 is in none
    expect(half.size() == (rank_ == 0 ? 0U : 1U), "the size of a part");
    expect(rank_ > 0 || half.barrier().code == EINVAL, "a call of a group without ranks");
    expect(rank_ > 0 || half.report() == "a group without ranks\n", "its report");
  }

  uint32_t rank_;
  uint32_t size_;
  std::string folder_;
  JoinOptions options_;
  int n_exchanges_ = 0;
};

}  // namespace

int main(int argc, char** argv) try {
  const char* node = std::getenv("RINGBOLT_NODE");
  const char* nodes = std::getenv("RINGBOLT_NODES");
  expect(argc == 2 && node != nullptr && nodes != nullptr, "ringbolt run -- outside_rank_cpp FOLDER");
  Rank(static_cast<uint32_t>(std::atoi(node)), static_cast<uint32_t>(std::atoi(nodes)), argv[1]).run();
  std::puts("ok");
  return 0;
} catch (const std::exception& error) {
  std::printf("failed: %s\n", error.what());
  return 1;
}
