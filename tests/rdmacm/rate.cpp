// Opens connections at a rate, or many at once, in one process, and counts what is left.
//
//   rdmacm_rate RATE SECONDS OPEN
//
// RATE connections a second for SECONDS, each made, used for nothing and ended; then OPEN connections at once. Exit 1
// when the rate is missed or descriptors are left.

#include <sys/resource.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "support.h"

namespace ringbolt::rdmacm_test {
namespace {

uint64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000U + static_cast<uint64_t>(time.tv_nsec);
}

size_t descriptors() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

size_t resident_kib() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  unsigned long total = 0;
  unsigned long resident = 0;
  const bool is_read = file != nullptr && std::fscanf(file, "%lu %lu", &total, &resident) == 2;
  if (file != nullptr) {
    std::fclose(file);
  }
  return is_read ? resident * 4 : 0;
}

struct Connections {
  Channel servers;
  Channel clients;
  rdma_cm_id* listener = listen(servers);
  std::vector<std::pair<rdma_cm_id*, rdma_cm_id*>> open;

  void make() {
    rdma_cm_id* client = routed(clients, ntohs(rdma_get_src_port(listener)));
    make_qp(client);
    rdma_conn_param param = parameters();
    EXPECT_EQ(rdma_connect(client, &param), 0);
    rdma_cm_id* server = servers.expect(RDMA_CM_EVENT_CONNECT_REQUEST).id;
    make_qp(server);
    EXPECT_EQ(rdma_accept(server, &param), 0) << std::strerror(errno);
    clients.expect(RDMA_CM_EVENT_ESTABLISHED);
    servers.expect(RDMA_CM_EVENT_ESTABLISHED);
    open.emplace_back(client, server);
  }
  void end() {
    const auto [client, server] = open.back();
    open.pop_back();
    EXPECT_EQ(rdma_disconnect(client), 0);
    servers.expect(RDMA_CM_EVENT_DISCONNECTED);
    EXPECT_EQ(rdma_disconnect(server), 0);
    clients.expect(RDMA_CM_EVENT_DISCONNECTED);
    discard(client);
    discard(server);
  }
};

/// Whether the connections could be made at the rate.
bool keep_rate(Connections& connections, unsigned rate, unsigned seconds) {
  const uint64_t begin = now_ns();
  const uint64_t total = uint64_t{rate} * seconds;
  for (uint64_t i = 0; i < total; ++i) {
    const uint64_t due = begin + i * 1'000'000'000U / rate;
    if (now_ns() < due) {
      const timespec until{static_cast<time_t>(due / 1'000'000'000U), static_cast<long>(due % 1'000'000'000U)};
      clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
    }
    connections.make();
    connections.end();
  }
  const double took = static_cast<double>(now_ns() - begin) / 1e9;
  std::printf("%llu connections in %.1f s: %.0f a second\n", static_cast<unsigned long long>(total), took,
              static_cast<double>(total) / took);
  return took < seconds + 2.0;
}

int run(unsigned rate, unsigned seconds, unsigned at_once) {
  Connections connections;
  connections.make();
  connections.end();
  const size_t descriptors_before = descriptors();
  const bool is_quick = rate == 0 || keep_rate(connections, rate, seconds);
  const size_t resident_before = resident_kib();
  for (unsigned i = 0; i < at_once; ++i) {
    connections.make();
  }
  const size_t descriptors_open = descriptors();
  const size_t resident_open = resident_kib();
  while (!connections.open.empty()) {
    connections.end();
  }
  std::printf("%u open at once: %zu descriptors, %zu KiB more resident\n", at_once, descriptors_open,
              resident_open - resident_before);
  std::printf("descriptors before %zu, after %zu\n", descriptors_before, descriptors());
  discard(connections.listener);
  return is_quick && descriptors() <= descriptors_before + 8 && !testing::Test::HasFailure() ? 0 : 1;
}

}  // namespace
}  // namespace ringbolt::rdmacm_test

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: rdmacm_rate RATE SECONDS OPEN\n");
    return 2;
  }
  testing::InitGoogleTest(&argc, argv);
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  char folder[] = "/tmp/rbc-XXXXXX";
  if (mkdtemp(folder) == nullptr) {
    return 1;
  }
  setenv("RINGBOLT_RUNTIME_DIR", folder, 1);
  const auto number = [&](int i) { return static_cast<unsigned>(std::strtoul(argv[i], nullptr, 10)); };
  const int result = ringbolt::rdmacm_test::run(number(1), number(2), number(3));
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return result;
}
