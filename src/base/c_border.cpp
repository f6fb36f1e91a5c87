#include "base/c_border.h"

#include <cxxabi.h>

#include <atomic>
#include <cerrno>
#include <exception>
#include <new>
#include <stdexcept>
#include <system_error>

#include "base/error.h"
#include "base/say.h"

namespace ringbolt::base {
namespace {

/// Without allocating: it may be want of memory that brought us here.
// Relaxed order would do: which of several threads says it does not matter.
int unforeseen(const char* words) {
  static std::atomic<bool> is_said{false};
  if (!is_said.exchange(true)) {
    say("ringbolt: a call failed in a way that was not foreseen (\"");
    say(words);
    say("\"), its program gets EIO; please report this\n");
  }
  return EIO;
}

// Other categories, such as iostream's or a resolver's, have numbers of their own that would be taken for errno
// values.
bool is_errno(const std::error_code& code) {
  return code.category() == std::generic_category() || code.category() == std::system_category();
}

}  // namespace

// A cancellation has no object: the runtime binds the reference to nothing, which UBSan minds. A cancelled thread
// (pthread_cancel) unwinds by this: glibc ends the process where it is caught and not passed on.
__attribute__((no_sanitize("null"))) int caught_errno() try { throw; } catch (const abi::__forced_unwind&) {
  throw;
} catch (const std::bad_alloc&) {
  return ENOMEM;
} catch (const Error& error) {
  // 0 would tell a C program that its call succeeded.
  return error.errno_value() != 0 ? error.errno_value() : unforeseen(error.what());
} catch (const std::system_error& error) {
  return is_errno(error.code()) && error.code().value() != 0 ? error.code().value() : unforeseen(error.what());
} catch (const std::exception& error) {
  return unforeseen(error.what());
} catch (...) {
  return unforeseen("an exception of no known kind");
}

int caught_minus_one() {
  errno = caught_errno();
  return -1;
}

std::nullptr_t caught_null() {
  errno = caught_errno();
  return nullptr;
}

void caught_nothing() { static_cast<void>(caught_errno()); }

}  // namespace ringbolt::base

namespace ringbolt::c_border {

std::string& last_error() {
  // Returned by reference: valid until the thread ends, overwritten by its next refusal.
  thread_local std::string words;
  return words;
}

int refuse(int code, std::string_view words) noexcept {
  try {
    last_error() = words;
  } catch (const std::bad_alloc&) {
    // Old words would be taken for those of this refusal.
    last_error().clear();
  }
  return code;
}

int refuse_caught() try { throw; } catch (const base::Error& error) {
  return refuse(error.errno_value() != 0 ? error.errno_value() : EIO, error.what());
} catch (const std::bad_alloc&) {
  return refuse(ENOMEM, "out of memory");
} catch (const std::out_of_range& error) {
  return refuse(ERANGE, error.what());
} catch (const std::exception& error) {
  return refuse(EIO, error.what());
} catch (...) {
  // Also the way of a cancellation, which caught_errno() passes on.
  return refuse(base::caught_errno(), "an exception of no known kind");
}

}  // namespace ringbolt::c_border
