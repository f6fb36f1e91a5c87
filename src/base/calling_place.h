#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace ringbolt::base {

/// Where a call came from, before anybody knows its line: return addresses from the inside out, 0 where there is none.
/// More than one, since without optimization the verbs' inline functions are functions of the program.
struct CallSite {
  std::array<uintptr_t, 3> returns{};

  explicit operator bool() const { return returns[0] != 0; }
};

/// Of the call of our libraries in this thread, by unwinding: microseconds. Thread-safe. Does not fail: `returns` holds
/// what was found. The first call in a process loads libgcc's unwinder, which allocates (backtrace(3)).
CallSite call_site();

/// The same for a few nanoseconds, from the function that is called: its `__builtin_frame_address(0)` and
/// `__builtin_return_address(0)`. It begins with the first frame outside our libraries, as far as theirs have frame
/// pointers, which librdmacm is built with. The callers of inline functions are found where these have them, which is
/// so where they are functions at all (without optimization). Thread-safe. Reads no memory outside the calling
/// thread's stack.
CallSite call_site_of(const void* frame, const void* return_address);

/// "client.c:88 in connect_to()", by libdw and the program's debugging information; "client+0x1a2b" without either.
/// Takes milliseconds the first time. Thread-safe. Throws std::bad_alloc. May block on a lock of its own while
/// another thread has libdw read a file.
std::string place_of(const CallSite& site);

/// Whether the call that returns there is one of the verbs' inline functions, which without optimization are functions
/// of the program. Takes milliseconds the first time. Thread-safe.
bool is_verbs_wrapper(uintptr_t returns_to);

/// As place_of(), of an address in a program's or library's file: `offset` from where the file is loaded. Thread-safe.
std::string place_in(const std::string& file, uint64_t offset);

/// place_of() the call that goes on in this thread.
inline std::string calling_place() { return place_of(call_site()); }

}  // namespace ringbolt::base
