// Completion flags between the host and one GPU, both ways: by kernels, and by a stream's own operations.
//   handoff [ROUNDS]     default 1000000; exit status 77: there is no GPU
// Memory is pinned and mapped: host and device reach the same words. Every wait of either side has a deadline.
#include <cuda.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include <ringbolt/completion_flag.cuh>

namespace {

using namespace std::chrono_literals;
using namespace ringbolt;
using device::FlagBudget;
using Clock = CompletionFlag::Clock;

constexpr size_t kWords = 32;

[[noreturn]] void fail(const char* what, const std::string& why) {
  std::fprintf(stderr, "%s: %s\n", what, why.c_str());
  std::exit(1);
}

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) {
    fail(what, cudaGetErrorString(error));
  }
}

/// What both sides reach. Owned by this, until the process ends.
struct Shared {
  explicit Shared(unsigned uses = 0) {
    void* memory = nullptr;
    check(cudaHostAlloc(&memory, 3 * sizeof(CompletionFlag) + 2 * kWords * sizeof(uint64_t), cudaHostAllocMapped),
          "cudaHostAlloc");
    auto* bytes = static_cast<char*>(memory);
    to_device = CompletionFlag::create(bytes, uses | kFlagReadByDevice);
    to_host = CompletionFlag::create(bytes + sizeof(CompletionFlag), kFlagSignalledByDevice | kFlagPayloadByDma);
    there = reinterpret_cast<uint64_t*>(bytes + 2 * sizeof(CompletionFlag));
    back = there + kWords;
    bad = back + kWords;
    *bad = 0;
  }
  CompletionFlag* to_device;
  CompletionFlag* to_host;
  uint64_t* there;  ///< payload, kWords
  uint64_t* back;
  uint64_t* bad;  ///< stale words that the device saw
};

__global__ void answer(Shared shared, uint64_t rounds, FlagBudget budget, FlagStatus* last) {
  for (uint64_t round = 1; round <= rounds; ++round) {
    *last = device::wait(*shared.to_device, round, budget);
    if (*last != FlagStatus::ready) {
      return;
    }
    for (size_t i = 0; i < kWords; ++i) {
      *shared.bad += shared.there[i] != round + i;
      shared.back[i] = 2 * round + i;
    }
    device::signal(*shared.to_host, round);
  }
}

__global__ void copy_words(uint64_t* to, const uint64_t* from, uint64_t round, uint64_t* bad) {
  for (size_t i = 0; i < kWords; ++i) {
    *bad += from[i] != round + i;
    to[i] = 2 * round + i;
  }
}

__global__ void touch(const CompletionFlag* flag, int* is_usable) { *is_usable = device::is_usable(*flag) ? 1 : 0; }

/// Sends a round to the device, waits for its answer and looks at it. How many words were stale.
uint64_t hand_over(Shared& shared, uint64_t round) {
  for (size_t i = 0; i < kWords; ++i) {
    shared.there[i] = round + i;
  }
  if (shared.to_device->signal(round) != FlagSignal::done) {
    fail("signal", shared.to_device->explain(round));
  }
  if (shared.to_host->wait(round, Clock::now() + 10s) != FlagStatus::ready) {
    fail("wait", shared.to_host->explain(round));
  }
  uint64_t stale = 0;
  for (size_t i = 0; i < kWords; ++i) {
    stale += shared.back[i] != 2 * round + i;
  }
  return stale;
}

template <class T>
T* mapped() {
  void* memory = nullptr;
  check(cudaHostAlloc(&memory, sizeof(T), cudaHostAllocMapped), "cudaHostAlloc");
  return new (memory) T{};
}

void print(const char* what, std::vector<double> us, uint64_t stale) {
  std::sort(us.begin(), us.end());
  const auto at = [&](double share) { return us[static_cast<size_t>(share * static_cast<double>(us.size() - 1))]; };
  std::printf("%-18s %zu round trips, %llu stale words; us: p50 %.2f, p99 %.2f, p99.99 %.2f\n", what, us.size(),
              static_cast<unsigned long long>(stale), at(0.5), at(0.99), at(0.9999));
  if (stale != 0) {
    std::exit(1);
  }
}

void by_kernel(uint64_t rounds) {
  Shared shared;
  auto* last = mapped<FlagStatus>();
  answer<<<1, 1>>>(shared, rounds, FlagBudget{20'000'000'000}, last);
  check(cudaGetLastError(), "answer");
  std::vector<double> us;
  uint64_t stale = 0;
  for (uint64_t round = 1; round <= rounds; ++round) {
    const auto begin = Clock::now();
    stale += hand_over(shared, round);
    us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  }
  check(cudaDeviceSynchronize(), "answer");
  print("kernel", std::move(us), stale + *shared.bad);
}

template <class Function>
Function entry(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult how{};
  if (cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &how) != cudaSuccess || found == nullptr) {
    fail(name, "the driver does not have it");
  }
  return reinterpret_cast<Function>(found);
}

/// The stream waits and signals by itself. It has no deadline: hand_over() has, and ends the program.
void by_stream(uint64_t rounds) {
  int has_64_bits = 0;
  check(cudaDeviceGetAttribute(&has_64_bits, static_cast<cudaDeviceAttr>(CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS), 0),
        "cudaDeviceGetAttribute");
  if (has_64_bits == 0) {
    std::printf("skip: the device has no stream operations of 64 bits\n");
    return;
  }
  const auto wait_value = entry<decltype(&cuStreamWaitValue64)>("cuStreamWaitValue64");
  const auto write_value = entry<decltype(&cuStreamWriteValue64)>("cuStreamWriteValue64");
  Shared shared;
  cudaStream_t stream{};
  check(cudaStreamCreate(&stream), "cudaStreamCreate");
  std::vector<double> us;
  uint64_t stale = 0;
  for (uint64_t round = 1; round <= rounds; ++round) {
    if (wait_value(stream, reinterpret_cast<CUdeviceptr>(&shared.to_device->seq), round, CU_STREAM_WAIT_VALUE_GEQ) != 0) {
      fail("cuStreamWaitValue64", "refused");
    }
    copy_words<<<1, 1, 0, stream>>>(shared.back, shared.there, round, shared.bad);
    if (write_value(stream, reinterpret_cast<CUdeviceptr>(&shared.to_host->seq), round, CU_STREAM_WRITE_VALUE_DEFAULT) != 0) {
      fail("cuStreamWriteValue64", "refused");
    }
    const auto begin = Clock::now();
    stale += hand_over(shared, round);
    us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  }
  check(cudaStreamSynchronize(stream), "copy_words");
  print("stream operations", std::move(us), stale + *shared.bad);
}

void end_by_abort() {
  Shared shared;
  auto* last = mapped<FlagStatus>();
  answer<<<1, 1>>>(shared, 1, FlagBudget{20'000'000'000}, last);
  std::this_thread::sleep_for(50ms);
  const auto begin = Clock::now();
  shared.to_device->abort({FlagReason::user, 0, 1});
  check(cudaDeviceSynchronize(), "an aborted kernel");
  const double ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  std::printf("abort              the kernel ended after %.1f ms\n", ms);
  if (*last != FlagStatus::aborted || ms > 100) {
    fail("abort", "the kernel did not end by it");
  }
}

void end_by_budget() {
  Shared shared;
  auto* last = mapped<FlagStatus>();
  answer<<<1, 1>>>(shared, 1, FlagBudget{100'000'000}, last);
  check(cudaDeviceSynchronize(), "a kernel whose budget is spent");
  auto* is_usable = mapped<int>();
  touch<<<1, 1>>>(shared.to_device, is_usable);
  check(cudaDeviceSynchronize(), "the kernel behind it");
  const auto seen = shared.to_device->dev_error;
  std::printf("budget             dev_error %#llx, the next kernel finds it %s\n", static_cast<unsigned long long>(seen),
              *is_usable != 0 ? "usable" : "unusable");
  if (*last != FlagStatus::timeout || (seen & 0xffff) != 2 || *is_usable != 0) {
    fail("budget", "it did not leave word");
  }
}

}  // namespace

int main(int n_arguments, char** arguments) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::printf("skip: there is no GPU\n");
    return 77;
  }
  const uint64_t rounds = n_arguments > 1 ? std::strtoull(arguments[1], nullptr, 10) : 1'000'000;
  // Loaded before anything waits: loading may have to wait for a kernel that runs.
  for (const void* kernel : {reinterpret_cast<const void*>(answer), reinterpret_cast<const void*>(copy_words),
                             reinterpret_cast<const void*>(touch)}) {
    cudaFuncAttributes attributes{};
    check(cudaFuncGetAttributes(&attributes, kernel), "cudaFuncGetAttributes");
  }
  end_by_abort();
  end_by_budget();
  by_kernel(rounds);
  by_stream(rounds);
  std::printf("completion flags of host and device: all right\n");
}
