#include "place.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "plugin.h"

namespace ringbolt::test {
namespace {

void enter_namespace(const std::string& name) {
  const int file = open(("/run/netns/" + name).c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0 || setns(file, CLONE_NEWNET) != 0) {
    throw Failure("enter the namespace " + name + ": " + std::strerror(errno));
  }
  close(file);
  // As "ip netns exec" does: /sys shows the devices of the namespace that it was mounted in.
  if (unshare(CLONE_NEWNS) == 0 && mount("", "/", nullptr, MS_SLAVE | MS_REC, nullptr) == 0) {
    mount("nccl_harness", "/sys", "sysfs", 0, nullptr);
  }
}

}  // namespace

void settle_in(int rank, const Options& options) {
  if (!options.netns_prefix.empty()) {
    enter_namespace(options.netns_prefix + std::to_string(rank));
  }
  if (!options.cluster.empty()) {
    setenv("RINGBOLT_CLUSTER", options.cluster.c_str(), 1);
  }
  if (options.nodes > 0) {
    setenv("RINGBOLT_NODE", std::to_string(rank % options.nodes).c_str(), 1);
    setenv("RINGBOLT_NODES", std::to_string(options.nodes).c_str(), 1);
  }
}

}  // namespace ringbolt::test
