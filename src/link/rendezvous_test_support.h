#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "link/rendezvous.h"
#include "link/socket.h"

/// What the tests of the rendezvous share: ends with a sink that writes everything down, children, strangers.
namespace ringbolt::link::testing {

/// Everything below happens within milliseconds; a test that waits this long has failed.
inline constexpr uint64_t kPatienceNs = 20'000'000'000;

class TempFolder {
 public:
  TempFolder() {
    std::string pattern = "/tmp/rb-XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  std::string slots() const { return path_ + "/slots"; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// A memfd whose first eight bytes say who made it.
inline base::UniqueFd marked_memfd(uint64_t mark) {
  base::UniqueFd fd(memfd_create("mark", MFD_CLOEXEC));
  EXPECT_EQ(pwrite(fd.get(), &mark, sizeof mark, 0), static_cast<ssize_t>(sizeof mark));
  return fd;
}

inline uint64_t mark_of(int fd) {
  uint64_t mark = 0;
  EXPECT_EQ(pread(fd, &mark, sizeof mark, 0), static_cast<ssize_t>(sizeof mark));
  return mark;
}

/// Writes down what it is told, in order.
class Recorder : public RendezvousSink {
 public:
  void on_ready(const std::shared_ptr<Peer>& peer) override {
    ready.push_back(peer);
    events.push_back("ready");
  }
  void on_offer(const std::shared_ptr<Peer>& peer, const Offer& offer, OfferFiles files) override {
    EXPECT_TRUE(peer->is_ready());
    offers.push_back(offer);
    lane_marks.push_back(mark_of(files.lane.get()));
    channels.push_back(files.receive_channel.is_open() + files.send_channel.is_open());
    events.push_back("offer");
  }
  void on_withdraw(const std::shared_ptr<Peer>&, const Withdraw& withdraw) override {
    withdraws.push_back(withdraw);
    events.push_back("withdraw");
  }
  void on_refuse(const std::shared_ptr<Peer>&, const Refuse& refuse) override {
    refusals.push_back(refuse);
    events.push_back("refuse");
  }
  void on_release(const std::shared_ptr<Peer>&, const Release& release) override {
    releases.push_back(release);
    events.push_back("release");
  }
  void on_arena(const std::shared_ptr<Peer>&, const Arena&, base::UniqueFd memory) override {
    arena_marks.push_back(mark_of(memory.get()));
    events.push_back("arena");
  }
  void on_gone(const std::shared_ptr<Peer>& peer) override {
    EXPECT_TRUE(peer->is_gone());
    gone.push_back(peer);
    events.push_back("gone");
  }
  void on_poke() override { ++pokes; }
  void on_bell() override { ++bells; }

  std::vector<std::shared_ptr<Peer>> ready, gone;
  std::vector<Offer> offers;
  std::vector<Withdraw> withdraws;
  std::vector<Refuse> refusals;
  std::vector<Release> releases;
  std::vector<uint64_t> lane_marks, arena_marks;
  std::vector<int> channels;  // descriptors that came beside each lane
  std::vector<std::string> events;
  int pokes = 0;
  int bells = 0;
};

/// One end: a rendezvous with its sink.
struct End {
  explicit End(const std::string& directory, uint64_t mark = 1, uint32_t slot_limit = kSlotCount)
      : table(marked_memfd(mark)), rendezvous(Rendezvous::open({directory, table.get(), table.get(), slot_limit}, seen)) {}
  base::UniqueFd table;
  Recorder seen;
  std::unique_ptr<Rendezvous> rendezvous;
};

/// Dispatches at all ends until `is_done`.
inline bool run_until(std::initializer_list<End*> ends, const std::function<bool()>& is_done) {
  const uint64_t deadline = base::now_ns() + kPatienceNs;
  while (!is_done()) {
    if (base::now_ns() > deadline) {
      return false;
    }
    for (End* end : ends) {
      end->rendezvous->dispatch(ends.size() == 1 ? 100 : 1);
    }
  }
  return true;
}

inline size_t open_descriptors() {
  size_t count = 0;
  DIR* folder = opendir("/proc/self/fd");
  while (folder != nullptr && readdir(folder) != nullptr) {
    ++count;
  }
  closedir(folder);
  return count;
}

inline std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// Not where seccomp forbids it, and not under an emulator.
inline bool kernel_reads_other_memory() {
  char from = 1;
  char to = 0;
  const iovec source{&from, 1};
  const iovec target{&to, 1};
  return process_vm_readv(getpid(), &target, 1, &source, 1, 0) == 1;
}

/// A child process that runs `body` and exits with its result; killed and reaped at the end.
class Child {
 public:
  explicit Child(const std::function<int()>& body) : pid_(fork()) {
    if (pid_ == 0) {
      // Whatever happens, the child ends here: one that let an exception pass would run all further tests, too.
      try {
        _exit(body());
      } catch (const std::exception& problem) {
        std::fprintf(stderr, "a child of this test: %s\n", problem.what());
        _exit(1);
      }
    }
  }
  ~Child() {
    if (pid_ > 0) {
      kill(SIGKILL);
      wait();
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  void kill(int signal) const { ::kill(pid_, signal); }
  int wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return status;
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

inline Offer numbered_offer(uint32_t number) {
  Offer offer;
  offer.source_qpn = number;
  offer.target_qpn = number ^ 0xabcdU;
  offer.nonce = uint64_t{number} << 32;
  return offer;
}

/// A socket connected to a slot by hand, as a stranger would.
inline base::UniqueFd call(const std::string& slots, uint32_t slot) {
  const base::UniqueFd folder(open(slots.c_str(), O_DIRECTORY | O_PATH | O_CLOEXEC));
  const auto address = socket_address(slots, folder.get(), std::to_string(slot) + ".sock");
  return connect_socket(*address);
}

/// In a child: opens an end at `slots`, calls `slot`, sends a message and serves until killed.
inline int serve_until_killed(const std::string& slots, uint32_t slot, uint32_t slot_limit = kSlotCount) {
  End mine(slots, 99, slot_limit);
  const auto peer = mine.rendezvous->peer_at(slot);
  if (!peer || !peer->send(Withdraw{7, 8, 9})) {
    return 1;
  }
  for (;;) {
    mine.rendezvous->dispatch(-1);
  }
}

}  // namespace ringbolt::link::testing
