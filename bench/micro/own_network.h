#pragma once

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

namespace ringbolt::bench {

/// Puts the calling thread, and those it makes, into a network namespace of its own with a loopback interface, and back
/// again: a benchmark needs the RoCE port for itself. Needs root.
/// Of one thread: it is destroyed on the thread that made it. Without root nothing is changed, and is_entered() is
/// false.
class OwnNetwork {
 public:
  OwnNetwork() : before_(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)) {
    is_entered_ = before_ >= 0 && unshare(CLONE_NEWNET) == 0;
    const int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ifreq request{};
    std::strcpy(request.ifr_name, "lo");
    request.ifr_flags = IFF_UP;
    if (is_entered_) {
      ioctl(any, SIOCSIFFLAGS, &request);
    }
    close(any);
  }
  ~OwnNetwork() {
    if (is_entered_) {
      setns(before_, CLONE_NEWNET);
    }
    close(before_);
  }
  OwnNetwork(const OwnNetwork&) = delete;
  OwnNetwork& operator=(const OwnNetwork&) = delete;
  bool is_entered() const { return is_entered_; }

 private:
  int before_;
  bool is_entered_ = false;
};

}  // namespace ringbolt::bench
