// One thread takes away what another one still reads.

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>

#include "sanitizer/shadow_test_support.h"

namespace ringbolt::sanitizer {
namespace {

using testing::device;

class ShadowThreadsTest : public testing::Shadowed {};

/// A pipe by a name, in place of a file that findings go to.
class NamedPipe {
 public:
  explicit NamedPipe(const char* variable) : variable_(variable) {
    std::string folder = "/tmp/rb-pipe-XXXXXX";
    folder_ = ::mkdtemp(folder.data());
    EXPECT_EQ(::mkfifo(path().c_str(), 0600), 0);
    fd_ = ::open(path().c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
    ::setenv(variable, path().c_str(), 1);
  }
  NamedPipe(const NamedPipe&) = delete;
  NamedPipe& operator=(const NamedPipe&) = delete;
  ~NamedPipe() {
    ::unsetenv(variable_);
    ::close(fd_);
    ::unlink(path().c_str());
    ::rmdir(folder_.c_str());
  }
  /// Who writes to it waits from here on.
  void fill() {
    const std::array<char, 4096> zeros{};
    while (::write(fd_, zeros.data(), zeros.size()) > 0) {
    }
  }
  void drain() {
    std::array<char, 4096> bytes{};
    while (::read(fd_, bytes.data(), bytes.size()) > 0) {
    }
  }
  void wait_until_something_comes() {
    pollfd events{fd_, POLLIN, 0};
    ::poll(&events, 1, -1);
  }

 private:
  std::string path() const { return folder_ + "/pipe"; }

  const char* const variable_;
  std::string folder_;
  int fd_ = -1;
};

TEST_F(ShadowThreadsTest, a_domain_goes_when_what_has_waited_there_is_in_place) {
  static std::atomic<bool> is_drained;  // for a call that takes nothing of ours along
  static std::atomic<bool> was_drained;
  is_drained = was_drained = false;
  NamedPipe log("RINGBOLT_SANITIZE_LOG");
  NamedPipe json("RINGBOLT_SANITIZE_JSON");
  Shadow::Calls calls = testing::device_calls();
  calls.memory.remove = [](void*) {
    was_drained = is_drained.load();
    --device.registered;
  };
  start("on", 100, calls);
  json.fill();
  receive(0, 64);
  write(20, "mine");  // told of when the completion is polled, and telling waits
  device.receive(std::string(64, 'r'));
  std::thread polls([&] { poll(); });
  log.wait_until_something_comes();
  std::thread drains([&] {
    is_drained = true;
    json.drain();
  });
  shadow->queue_pair_gone(qp);
  shadow->domain_goes(&pd);
  drains.join();
  polls.join();
  EXPECT_TRUE(was_drained) << "it went while another thread copied from there";
  EXPECT_EQ(device.registered, 0U);
  EXPECT_EQ(text(0, 64), std::string(64, 'r'));
}

}  // namespace
}  // namespace ringbolt::sanitizer
