#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace ringbolt::nccl {

/// ncclResult_t, as far as a plugin returns it. "Not yet" is `success` with a null output. The numbers are NCCL's.
enum class Result : int {
  success = 0,
  system_error = 2,    ///< here: no device, no memory, no way left
  internal_error = 3,  ///< a protocol was broken: bad bytes, a checksum that differs
  invalid_argument = 4,
  invalid_usage = 5,  ///< the caller's mistake: a message longer than its receive
  remote_error = 6,   ///< the peer's process has ended, closed, or fallen silent
};

/// ncclDebugLogger_t: levels 2 WARN and 3 INFO are used; flags 0x1 INIT, 0x10 NET. `format` as printf's. Must not
/// call back into the plugin.
using Logger = void (*)(int level, unsigned long flags, const char* file, int line, const char* format, ...);

inline constexpr size_t kHandleBytes = 128;  ///< NCCL_NET_HANDLE_MAXSIZE
inline constexpr int kMostReceives = 8;      ///< buffers of one grouped receive
inline constexpr int kHostMemory = 1;        ///< NCCL_PTR_HOST

/// What all versions of the property structs are filled from. Pointers stay valid and unchanged for the process's
/// life. Speeds of all ports together.
struct Properties {
  const char* name = nullptr;
  const char* pci_path = nullptr;  ///< or null
  uint64_t guid = 0;
  int speed_mbps = 0;
  int port = 1;
  float latency_us = 0;
  int max_comms = 65536;
  int max_receives = kMostReceives;
  int memory_types = kHostMemory;
  int registration_is_global = 1;
};

// What the tables of all versions call; one implementation for all of them. Thread-safe as NCCL uses it: data calls of
// one comm come from one thread, everything else from any. Nothing blocks but init() and finalize(). Comms, listeners,
// requests and registrations are opaque pointers. Nothing is thrown.

/// Each success is answered by one finalize(), but for tables up to v10, which have none: those pass a null `context`.
Result init(void** context, uint64_t comm_id, Logger logger) noexcept;
/// With the last context and comm the endpoint ends, which blocks for up to 2 s.
Result finalize(void* context) noexcept;
/// Before a successful init() too.
Result devices(int* n) noexcept;
/// invalid_argument before init(), and for any device but 0. On an error the output is as it was.
Result properties(int device, Properties& properties) noexcept;
/// Fills kHandleBytes of `handle`. The comm is the caller's until close_listen().
Result listen(void* context, int device, void* handle, void** listen_comm) noexcept;
/// `*send_comm` stays null until there is a connection; `handle` is the same memory each time, and is written to. An
/// error ends what was begun: the next call with that handle begins anew. The comm is the caller's until
/// close_send().
Result connect(void* context, int device, void* handle, void** send_comm) noexcept;
/// The comm is the caller's until close_receive(); it does not need the listener any more.
Result accept(void* listen_comm, void** receive_comm) noexcept;
/// `type`: kHostMemory; any other is refused. `data`, `size`: bytes that stay mapped until deregister_memory(). May
/// block while devices pin them. Memory that no device takes is registered all the same, and copied.
Result register_memory(void* comm, void* data, size_t size, int type, void** registration) noexcept;
Result deregister_memory(void* comm, void* registration) noexcept;
/// `registration`: of register_memory(), or null. `size`: bytes. `data` is the plugin's until test() says that it is
/// done, or fails. `*request` null: not now, ask again. A request is the circuit's, and not used after test() has
/// said `done`.
Result isend(void* comm, void* data, size_t size, int tag, void* registration, void** request) noexcept;
/// Overwrites `*request`, whatever is in it. `data`, `sizes`, `tags`, `registrations` (or null): [n], read during the
/// call alone. Else as isend().
Result irecv(void* comm, int n, void** data, const size_t* sizes, const int* tags, void** registrations,
             void** request) noexcept;
/// `sizes` may be null; of receives it gets as many as there are buffers. `sizes` is written only with `*done` = 1. A
/// failure is told to each request of the comm, each time.
Result test(void* request, int* done, int* sizes) noexcept;
/// Requests that are not done are given up. What was copied is still delivered, for up to 2 s.
Result close_send(void* comm) noexcept;
/// Once it returns no memory of the program is written to.
Result close_receive(void* comm) noexcept;
/// Comms that were accepted stay.
Result close_listen(void* listen_comm) noexcept;
/// A line to NCCL's log, by the logger of the last init(); nothing before that.
void warn(const std::string& text) noexcept;

}  // namespace ringbolt::nccl
