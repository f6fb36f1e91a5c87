#include "carriers.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "cluster/address_plan.h"
#include "namespaces.h"

namespace ringbolt::tools {
namespace {

constexpr uint64_t kPatienceNs = 5'000'000'000;
constexpr std::chrono::milliseconds kPause{5};

/// A socket of that namespace, which asks for its interfaces. By a thread that enters it and ends: this one stays
/// outside.
base::UniqueFd socket_within(const std::string& path) {
  base::UniqueFd made;
  std::thread([&] {
    const base::UniqueFd place(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (place.is_open() && ::setns(place.get(), CLONE_NEWNET) == 0) {
      made.reset(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    }
  }).join();
  return made;
}

bool has_carrier(int socket, const std::string& netdev) {
  ifreq request{};
  netdev.copy(request.ifr_name, sizeof request.ifr_name - 1);
  return ::ioctl(socket, SIOCGIFFLAGS, &request) != 0 || (request.ifr_flags & IFF_RUNNING) != 0;
}

}  // namespace

void wait_for_carriers(const cluster::Cluster& model) {
  const uint64_t deadline_ns = base::now_ns() + kPatienceNs;
  for (uint32_t node = 0; node < model.nodes.size(); ++node) {
    std::vector<std::string> netdevs;
    std::ranges::transform(model.nodes[node].ports, std::back_inserter(netdevs), &cluster::Port::netdev);
    if (model.has_management) {
      netdevs.emplace_back(cluster::kManagementNetdev);
    }
    const base::UniqueFd socket = socket_within(namespace_path(model.name, node));
    for (const std::string& netdev : netdevs) {
      while (socket.is_open() && !has_carrier(socket.get(), netdev) && base::now_ns() < deadline_ns) {
        std::this_thread::sleep_for(kPause);
      }
    }
  }
}

}  // namespace ringbolt::tools
