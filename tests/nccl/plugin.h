#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "abi.h"
#include "board.h"

namespace ringbolt::test {

/// What a case ends with that finds the plugin, or itself, in the wrong.
class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Nothing was wrong, but something came too late: a machine that has other things to do is late once, and not again.
class Late : public Failure {
 public:
  using Failure::Failure;
};

/// A listener's address, with room behind it that nobody may write to. It stays where it is between retries of connect.
struct Handle {
  alignas(8) std::array<unsigned char, abi::kHandleBytes> bytes{};
  std::array<unsigned char, abi::kHandleBytes> beyond{};
};

/// One plugin, loaded as NCCL loads it: the newest of its tables or the one asked for. Every method is one call of the
/// plugin and returns its code. A broken contract, whatever the code, is a Failure: an output left as it was, a code
/// that no plugin may return. Thread-safe as far as the plugin is; each call is timed on the board of its rank.
class Plugin {
 public:
  /// `version` 0: the newest. Throws Failure.
  Plugin(const std::string& path, int version, Board& board);
  ~Plugin();  // dlclose
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;

  [[nodiscard]] int version() const { return version_; }
  [[nodiscard]] const char* name() const { return name_; }

  int init(void** context, uint64_t comm_id);
  int devices(int* count);
  [[nodiscard]] size_t properties_bytes() const;
  int properties(int device, void* raw);
  int listen(void* context, int device, Handle& handle, void** listener);
  int connect(void* context, int device, Handle& handle, void** send_comm);
  int accept(void* listener, void** receive_comm);
  int reg_mr(void* comm, void* data, size_t bytes, int type, void** region);
  int reg_dma_buf(void* comm, void* data, size_t bytes, int fd, void** region);
  int dereg_mr(void* comm, void* region);
  int isend(void* comm, void* data, size_t bytes, int tag, void* region, void** request);
  /// `is_optional`: as NCCL marks single receives of LL and LL128, from v9 on.
  int irecv(void* comm, int count, void** data, size_t* bytes, int* tags, void** regions, void** request,
            bool is_optional = false);
  int iflush(void* comm, int count, void** data, int* bytes, void** regions, void** request);
  int test(void* request, int* done, int* sizes);
  int close_send(void* comm);
  int close_recv(void* comm);
  int close_listen(void* listener);
  /// Success without a call before v11.
  int finalize(void* context);

  [[nodiscard]] bool has_finalize() const { return version_ >= 11; }
  [[nodiscard]] bool has_dma_buf() const { return common_.reg_mr_dma_buf != nullptr; }

  /// Tells a thread which seat on the board is its own; none: "another".
  static void take_seat(Seat* seat);
  /// The last warning that the plugin logged in this process.
  static std::string last_warning();
  static void be_verbose(int rank);
  /// Counts what data calls allocate, per thread; costs the count nothing outside of them.
  void count_allocations(bool is_on);
  /// Takes out of data calls too what they waited for a processor. Too slow for anything but few and small messages.
  void time_data_calls_fairly() { is_fair_ = true; }

 private:
  /// What has the same signature in all tables.
  struct Common {
    int (*devices)(int*);
    int (*get_properties)(int, void*);
    int (*accept)(void*, void**, void**);
    int (*reg_mr)(void*, void*, size_t, int, void**);
    int (*reg_mr_dma_buf)(void*, void*, size_t, int, uint64_t, int, void**);
    int (*dereg_mr)(void*, void*);
    int (*iflush)(void*, int, void**, int*, void**, void**);
    int (*test)(void*, int*, int*);
    int (*close_send)(void*);
    int (*close_recv)(void*);
    int (*close_listen)(void*);
  };

  template <typename Table>
  void adopt(const Table& table);
  template <typename Function>
  int timed(Call call, Function&& function);

  void* library_ = nullptr;
  int version_ = 0;
  const char* name_ = nullptr;
  Board& board_;
  bool counts_allocations_ = false;
  bool is_fair_ = false;
  Common common_{};
  const abi::TableV8* v8_ = nullptr;
  const abi::TableV9* v9_ = nullptr;
  const abi::TableV10* v10_ = nullptr;
  const abi::TableV11* v11_ = nullptr;
};

/// What this thread spent ready to run, but without a processor; zero where the kernel does not tell.
uint64_t waited_for_processor_ns();

/// The versions whose tables `path` exports, newest first.
std::vector<int> exported_versions(const std::string& path);

/// Throws Failure unless `code` is `wanted`, with the plugin's last warning.
void expect(int code, const std::string& what, int wanted = abi::kSuccess);

}  // namespace ringbolt::test
