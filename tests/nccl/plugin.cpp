#include "plugin.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>

#include "allocations.h"

namespace ringbolt::test {
namespace {

// A pointer that no plugin returns: an output that still holds it was not written.
void* stale() { return reinterpret_cast<void*>(0xa5a5a5a5a5a5a5a0U); }
void* optional_marker() { return reinterpret_cast<void*>(0x1U); }

thread_local Seat* t_seat = nullptr;
std::mutex log_mutex;
std::array<char, 512> last_warning_text{};
int verbose_rank = -1;

// Not through anything that allocates: a plugin may warn from a data call whose allocations are counted.
void log(int level, unsigned long, const char* file, int line, const char* format, ...) {
  std::array<char, 512> text{};
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text.data(), text.size(), format, arguments);
  va_end(arguments);
  const std::lock_guard lock(log_mutex);
  if (level == 2) {
    last_warning_text = text;
  }
  if (verbose_rank >= 0) {
    std::fprintf(stderr, "rank %d: level %d %s:%d %s\n", verbose_rank, level, file == nullptr ? "?" : file, line,
                 text.data());
  }
}

/// Of this thread so far.
struct Used {
  uint64_t processor_ns = 0;
  uint64_t sleeps = 0;  ///< not: times when another one was given its processor

  static Used now() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    return {static_cast<uint64_t>(time.tv_sec) * 1'000'000'000U + static_cast<uint64_t>(time.tv_nsec),
            static_cast<uint64_t>(usage.ru_nvcsw)};
  }
};

constexpr bool is_data(Call call) {
  return call == Call::isend || call == Call::irecv || call == Call::test || call == Call::iflush;
}

void raise_to(std::atomic<uint64_t>& highest, uint64_t value) {
  uint64_t before = highest.load(std::memory_order_relaxed);
  while (before < value && !highest.compare_exchange_weak(before, value)) {
  }
}

void require(bool holds, const char* call, const char* otherwise) {
  if (!holds) {
    throw Failure(std::string(call) + " " + otherwise);
  }
}

/// The name of a struct, not of a pointer or function.
std::string symbol_of(int version) { return "ncclNetPlugin_v" + std::to_string(version); }

}  // namespace

uint64_t waited_for_processor_ns() {
  struct Statistics {
    int descriptor = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    ~Statistics() { close(descriptor); }
  };
  const Statistics file;
  std::array<char, 96> text{};
  if (pread(file.descriptor, text.data(), text.size() - 1, 0) <= 0) {
    return 0;
  }
  char* second = nullptr;
  std::strtoull(text.data(), &second, 10);
  return std::strtoull(second, nullptr, 10);
}

template <typename Table>
void Plugin::adopt(const Table& table) {
  common_ = {table.devices,        table.get_properties, table.accept,      table.reg_mr,
             table.reg_mr_dma_buf, table.dereg_mr,       table.iflush,      table.test,
             table.close_send,     table.close_recv,     table.close_listen};
  name_ = table.name;
  const bool is_full = table.init != nullptr && table.listen != nullptr && table.connect != nullptr &&
                       table.isend != nullptr && table.irecv != nullptr && common_.devices != nullptr &&
                       common_.get_properties != nullptr && common_.accept != nullptr && common_.reg_mr != nullptr &&
                       common_.dereg_mr != nullptr && common_.iflush != nullptr && common_.test != nullptr &&
                       common_.close_send != nullptr && common_.close_recv != nullptr &&
                       common_.close_listen != nullptr;
  require(is_full && name_ != nullptr, symbol_of(version_).c_str(), "has an empty slot that NCCL calls");
}

Plugin::Plugin(const std::string& path, int version, Board& board) : board_(board) {
  library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  require(library_ != nullptr, "dlopen", library_ == nullptr ? dlerror() : "");
  void* found = nullptr;
  const int newest = version == 0 ? abi::kNewestVersion : version;
  const int oldest = version == 0 ? abi::kOldestVersion : version;
  // The newest first, and the first one found wins.
  for (version_ = newest; version_ >= oldest; --version_) {
    found = dlsym(library_, symbol_of(version_).c_str());
    if (found != nullptr) {
      break;
    }
  }
  require(found != nullptr, path.c_str(), "exports no such table");
  if (version_ == 8) {
    adopt(*(v8_ = static_cast<const abi::TableV8*>(found)));
  } else if (version_ == 9) {
    adopt(*(v9_ = static_cast<const abi::TableV9*>(found)));
  } else if (version_ == 10) {
    adopt(*(v10_ = static_cast<const abi::TableV10*>(found)));
  } else {
    adopt(*(v11_ = static_cast<const abi::TableV11*>(found)));
    require(v11_->finalize != nullptr, symbol_of(version_).c_str(), "has no finalize, which NCCL calls unasked");
  }
}

Plugin::~Plugin() { dlclose(library_); }

template <typename Function>
int Plugin::timed(Call call, Function&& function) {
  // Written before the call, so that the parent knows where a thread hangs or died.
  Seat& seat = t_seat != nullptr ? *t_seat : board_.seats[kOtherSeat];
  const bool is_excused = is_fair_ || !is_data(call);
  // Two reads of a file around each data call would be most of its time: those are charged in full.
  const uint64_t waited = is_excused ? waited_for_processor_ns() : 0;
  const Used before = is_excused ? Used::now() : Used();
  t_allocations.is_on = counts_allocations_ && is_data(call);
  const uint64_t begin = now_ns();
  seat.since_ns.store(begin, std::memory_order_relaxed);
  seat.call.store(call, std::memory_order_relaxed);
  const int code = function();
  const uint64_t end = now_ns();
  const Used after = is_excused ? Used::now() : Used();
  seat.call.store(Call::none, std::memory_order_relaxed);
  t_allocations.is_on = false;
  const uint64_t wall = end - begin;
  const uint64_t excused = is_excused ? waited_for_processor_ns() - waited : 0;
  raise_to(board_.longest_ns[static_cast<size_t>(call)], wall > excused ? wall - excused : 0);
  if (is_excused) {
    raise_to(board_.longest_processor_ns[static_cast<size_t>(call)], after.processor_ns - before.processor_ns);
    board_.sleeps[static_cast<size_t>(call)].fetch_add(after.sleeps - before.sleeps, std::memory_order_relaxed);
  }
  board_.calls[static_cast<size_t>(call)].fetch_add(1, std::memory_order_relaxed);
  if (code < 0 || code == 1 || code > abi::kRemoteError) {
    throw Failure(std::string(name_of(call)) + " returned " + std::to_string(code) +
                  ", which is no plugin's to return");
  }
  return code;
}

int Plugin::init(void** context, uint64_t comm_id) {
  return timed(Call::init, [&] {
    switch (version_) {
      case 8:
        return v8_->init(log);
      case 9:
        return v9_->init(log);
      case 10:
        return v10_->init(log, nullptr);
      default:
        abi::CommConfig config{.traffic_class = -1};
        return v11_->init(context, comm_id, &config, log, nullptr);
    }
  });
}

int Plugin::devices(int* count) {
  return timed(Call::devices, [&] { return common_.devices(count); });
}

size_t Plugin::properties_bytes() const {
  switch (version_) {
    case 8:
      return sizeof(abi::PropertiesV8);
    case 9:
    case 10:
      return sizeof(abi::PropertiesV9);
    case 11:
      return sizeof(abi::PropertiesV11);
    default:
      return sizeof(abi::PropertiesV12);
  }
}

int Plugin::properties(int device, void* raw) {
  return timed(Call::properties, [&] { return common_.get_properties(device, raw); });
}

int Plugin::listen(void* context, int device, Handle& handle, void** listener) {
  handle.beyond.fill(0xa5);
  *listener = nullptr;
  const int code = timed(Call::listen, [&] {
    switch (version_) {
      case 8:
        return v8_->listen(device, handle.bytes.data(), listener);
      case 9:
        return v9_->listen(device, handle.bytes.data(), listener);
      case 10:
        return v10_->listen(device, handle.bytes.data(), listener);
      default:
        return v11_->listen(context, device, handle.bytes.data(), listener);
    }
  });
  require(code != 0 || *listener != nullptr, "listen", "succeeded without a listener");
  require(std::all_of(handle.beyond.begin(), handle.beyond.end(), [](unsigned char byte) { return byte == 0xa5; }),
          "listen", "wrote more than the 128 bytes of a handle");
  return code;
}

int Plugin::connect(void* context, int device, Handle& handle, void** send_comm) {
  void* device_handle = nullptr;
  *send_comm = nullptr;
  const int code = timed(Call::connect, [&] {
    switch (version_) {
      case 8:
        return v8_->connect(device, handle.bytes.data(), send_comm, &device_handle);
      case 9:
        return v9_->connect(device, handle.bytes.data(), send_comm, &device_handle);
      case 10: {
        abi::CommConfig config{.traffic_class = -1};
        return v10_->connect(device, &config, handle.bytes.data(), send_comm, &device_handle);
      }
      default:
        return v11_->connect(context, device, handle.bytes.data(), send_comm, &device_handle);
    }
  });
  require(device_handle == nullptr, "connect", "set a device handle");
  return code;
}

int Plugin::accept(void* listener, void** receive_comm) {
  void* device_handle = nullptr;
  *receive_comm = nullptr;
  const int code = timed(Call::accept, [&] { return common_.accept(listener, receive_comm, &device_handle); });
  require(device_handle == nullptr, "accept", "set a device handle");
  return code;
}

int Plugin::reg_mr(void* comm, void* data, size_t bytes, int type, void** region) {
  return timed(Call::reg_mr, [&] { return common_.reg_mr(comm, data, bytes, type, region); });
}

int Plugin::reg_dma_buf(void* comm, void* data, size_t bytes, int fd, void** region) {
  return timed(Call::reg_mr,
               [&] { return common_.reg_mr_dma_buf(comm, data, bytes, abi::kCudaMemory, 0, fd, region); });
}

int Plugin::dereg_mr(void* comm, void* region) {
  return timed(Call::dereg_mr, [&] { return common_.dereg_mr(comm, region); });
}

int Plugin::isend(void* comm, void* data, size_t bytes, int tag, void* region, void** request) {
  *request = stale();  // NCCL's slot still holds the request before
  const int code = timed(Call::isend, [&] {
    switch (version_) {
      case 8:
        return v8_->isend(comm, data, static_cast<int>(bytes), tag, region, request);
      case 9:
        return v9_->isend(comm, data, bytes, tag, region, request);
      case 10:
        return v10_->isend(comm, data, bytes, tag, region, nullptr, request);
      default:
        return v11_->isend(comm, data, bytes, tag, region, nullptr, request);
    }
  });
  require(code != 0 || *request != stale(), "isend", "left *request as it was");
  return code;
}

int Plugin::irecv(void* comm, int count, void** data, size_t* bytes, int* tags, void** regions, void** request,
                  bool is_optional) {
  *request = is_optional && version_ > 8 ? optional_marker() : stale();
  std::array<int, abi::kMostSizes> narrow{};
  for (int i = 0; version_ == 8 && i < count; ++i) {
    narrow[static_cast<size_t>(i)] = static_cast<int>(bytes[i]);
  }
  const int code = timed(Call::irecv, [&] {
    switch (version_) {
      case 8:
        *request = nullptr;  // NCCL's own layer over old tables does this
        return v8_->irecv(comm, count, data, narrow.data(), tags, regions, request);
      case 9:
        return v9_->irecv(comm, count, data, bytes, tags, regions, request);
      case 10:
        return v10_->irecv(comm, count, data, bytes, tags, regions, nullptr, request);
      default:
        return v11_->irecv(comm, count, data, bytes, tags, regions, nullptr, request);
    }
  });
  require(code != 0 || (*request != stale() && *request != optional_marker()), "irecv", "left *request as it was");
  return code;
}

int Plugin::iflush(void* comm, int count, void** data, int* bytes, void** regions, void** request) {
  *request = stale();
  const int code = timed(Call::iflush, [&] { return common_.iflush(comm, count, data, bytes, regions, request); });
  require(code != 0 || *request != stale(), "iflush", "left *request as it was");
  return code;
}

// NCCL reads *done without having set it.
int Plugin::test(void* request, int* done, int* sizes) {
  *done = -1;
  const int code = timed(Call::test, [&] { return common_.test(request, done, sizes); });
  require(code != 0 || *done == 0 || *done == 1, "test", "left *done as it was");
  return code;
}

int Plugin::close_send(void* comm) {
  return timed(Call::close_send, [&] { return common_.close_send(comm); });
}

int Plugin::close_recv(void* comm) {
  return timed(Call::close_recv, [&] { return common_.close_recv(comm); });
}

int Plugin::close_listen(void* listener) {
  return timed(Call::close_listen, [&] { return common_.close_listen(listener); });
}

int Plugin::finalize(void* context) {
  return has_finalize() ? timed(Call::finalize, [&] { return v11_->finalize(context); }) : abi::kSuccess;
}

void Plugin::take_seat(Seat* seat) { t_seat = seat; }

std::string Plugin::last_warning() {
  const std::lock_guard lock(log_mutex);
  return last_warning_text.data();
}

void Plugin::count_allocations(bool is_on) {
  prepare_allocations();
  counts_allocations_ = is_on;
}

void Plugin::be_verbose(int rank) { verbose_rank = rank; }

std::vector<int> exported_versions(const std::string& path) {
  std::vector<int> found;
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  require(library != nullptr, "dlopen", library == nullptr ? dlerror() : "");
  for (int version = abi::kNewestVersion; version >= abi::kOldestVersion; --version) {
    if (dlsym(library, symbol_of(version).c_str()) != nullptr) {
      found.push_back(version);
    }
  }
  dlclose(library);
  return found;
}

void expect(int code, const std::string& what, int wanted) {
  if (code != wanted) {
    const std::string warning = Plugin::last_warning();
    throw Failure(what + " returned " + std::to_string(code) + (wanted == 0 ? "" : ", not " + std::to_string(wanted)) +
                  (warning.empty() ? "" : "; the plugin says: " + warning));
  }
}

}  // namespace ringbolt::test
